"""A site's ledger (spec section 11): chains of entries, good and bad."""

import json

from codec import F64, HASH, NOTHING, TEXT, U8, U16, U32, U64, Enum, Int, List, Option, Struct, encode
from identity import Identity
from met import and_one
from release import block_id
from suite import H, le64

GIVES = ["public_keys", "acknowledgement", "sealed_shares", "masked_words", "round_seeds", "self_mask_shares", "refusal",
         "slot_burned", "nothing", "encapsulated_secrets"]  # fmt: skip
COST = Struct(scalars=U64, nano_rho=Option(U64))
ANSWER = Struct(kind=TEXT, question=HASH, cost=COST, drawn=Option(HASH))
COLUMNS = List(Struct(name=TEXT, values=HASH))
NOTE = Enum(columns=COLUMNS, changed=COLUMNS, separate=COLUMNS, undone=NOTHING, signer=NOTHING, agreed=NOTHING,
            begun=U64, ended=NOTHING,
            met=Struct(deck=U32, all=HASH, members=List(Struct(id=HASH, answered=Struct(number=U64, link=HASH)))))  # fmt: skip
FORM = 1
ENTRY = Struct(
    form=U8, index=U64, previous=HASH, signer=HASH, plan=HASH, session=HASH, run=HASH, deck_slot=Option(Struct(deck=U32, slot=U16)),
    cohort=Option(HASH), discloses=Enum(**{name: NOTHING for name in GIVES}), bytes=U64, digest=HASH, data=TEXT, rows=HASH,
    version=U32, block=Option(List(Struct(id=HASH, version=U32))), note=Option(NOTE), answer=Option(ANSWER),
)  # fmt: skip


def encoded(entry):
    return encode(ENTRY, entry)


def link(entry):
    """[LED-2]."""
    return H("ledger link", encoded(entry))


def sign(identity, entry):
    """[LED-3]."""
    return identity.sign(H("ledger entry", encoded(entry)))


def line(entry, signature):
    """[LED-1]: one line in its one form."""

    def plain(x):
        if isinstance(x, (bytes, bytearray)):
            return x.hex()
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        if isinstance(x, tuple):
            # A variant: its name, or with what it holds.
            return {x[0]: plain(x[1])} if x[1] else x[0]
        return [plain(v) for v in x] if isinstance(x, list) else x

    shown = dict(entry)
    for name, several in [("deck_slot", lambda x: list(x.values())), ("block", lambda x: [list(m.values()) for m in x])]:
        if shown[name] is not None:
            shown[name] = several(shown[name])
    return json.dumps(plain({**shown, "signature": signature}), separators=(",", ":")) + "\n"


def answer(n):
    exact = n != 4
    return {
        "kind": "fuzzy_sums" if exact else "shifts",
        "question": H("question in a ledger", b"question %d" % n),
        "cost": {"scalars": 9, "nano_rho": None if exact else 2_143_325},
        "drawn": None if exact else H("cohort in a ledger", b"some keys"),
    }


def block(sites=(1, 2, 3)):
    members = [{"id": H("an account", bytes([s])), "version": s} for s in sites]
    return sorted(members, key=lambda m: m["id"])


def columns(*names):
    return [{"name": name, "values": H("values", name.encode())} for name in names]


def met(*members):
    """Sites and how many answers each states."""
    links = ((s, n, H("ledger link", bytes([s])) if n else bytes(32)) for s, n in members)
    stated = ({"id": H("an account", bytes([s])), "answered": {"number": n, "link": link}} for s, n, link in links)
    return sorted(stated, key=lambda m: m["id"])


NOTES = {
    7: ("columns", columns("age", "dose")), 8: ("changed", columns("age")), 9: ("separate", columns("age", "dose", "weight")),
    10: ("undone", {}), 11: ("agreed", {}), 12: ("begun", 500_000_000),
    13: ("met", {"deck": 1, "all": H("cohort in a ledger", b"keys"), "members": met((1, 4), (2, 0), (3, 2**64 - 1))}),
}  # fmt: skip
LENGTH = 14


def entry(n, previous, signer):
    gives = ["public_keys", "masked_words", "self_mask_shares", "round_seeds", "masked_words", "refusal", "slot_burned"]
    gives = gives[n] if n < 7 else "nothing"
    in_round = gives in ("masked_words", "round_seeds", "self_mask_shares", "slot_burned")
    return {
        "form": FORM,
        "index": n,
        "previous": previous,
        "signer": signer,
        "plan": H("a plan"),
        "session": H("a session"),
        "run": H("a run"),
        "deck_slot": {"deck": 1, "slot": n} if in_round or n == 10 else None,
        "cohort": H("cohort in a ledger", b"keys") if in_round else None,
        "discloses": (gives, {}),
        "bytes": 100 + n,
        "digest": H("ledger frame", b"frame %d" % n),
        "data": "ward 7",
        "rows": H("rows"),
        "version": n // 4,
        "block": block() if n == 1 else None,
        "note": NOTES.get(n),
        "answer": answer(n) if gives == "masked_words" else None,
    }


def chain(identity, changes=(), length=LENGTH):
    """Entries, each signed; `changes` are made before signing."""
    entries, lines, previous = [], [], bytes(32)
    for n in range(length):
        e = entry(n, previous, identity.public)
        for at, change in changes:
            if at == n:
                change(e)
        previous = link(e)
        entries.append(e)
        lines.append(line(e, sign(identity, e)))
    return entries, lines


def changed(key, value):
    return lambda e: e.__setitem__(key, value)


def chains():
    identity = Identity(H("seed of a ledger"))
    entries, good = chain(identity)
    links = [link(e) for e in entries]

    def case(name, lines, **found):
        if "rule" in found and found["rule"] != "LED-5":
            # What stands behind the entry at fault decides nothing.
            lines = lines[: found["entry"] + 1]
        return {"function": "chain", "name": name, "text": "".join(lines), **found}

    def after(n, text):
        return good[:n] + [text] + good[n + 1 :]

    whole = {"entries": LENGTH, "link": links[-1]}
    yield case("whole", good, **whole)
    yield case("whole, and with an entry that was noted before", good, head=links[2], **whole)
    yield case("nothing", [], entries=0, link=bytes(32))
    keys = [m["id"] for m in block()]
    yield {"function": "sites", "keys": keys, "result": block_id(keys)}
    yield case("cut", good[:5], head=links[5], rule="LED-5", entry=5)
    yield case("left out", good[:2] + good[3:], rule="LED-2", entry=2)
    yield case("out of order", good[:2] + [good[3], good[2]] + good[4:], rule="LED-2", entry=2)
    yield case("twice", good[:3] + good[2:], rule="LED-2", entry=3)
    other = chain(identity, [(1, changed("bytes", 7))])[1]
    yield case("another past", good[:2] + other[2:], rule="LED-2", entry=2)
    stranger = Identity(H("another seed"))
    yield case("another signature", after(4, line(entries[4], sign(stranger, entries[4]))), rule="LED-3", entry=4)
    yield case("another signer", after(4, line(entries[4], sign(identity, entries[4])).replace(identity.public.hex(), stranger.public.hex())), rule="LED-3", entry=4)
    values = {
        "plan": H("another plan"), "run": H("another run"), "cohort": H("another cohort"), "bytes": 1,
        "digest": H("another frame"), "data": "ward 8", "rows": H("other rows"),
        "deck_slot": {"deck": 1, "slot": 9}, "discloses": ("round_seeds", {}), "version": 1,
    }  # fmt: skip
    for key, value in values.items():
        e = {**entries[2], key: value}
        yield case(f"{key} changed after signing", after(2, line(e, sign(identity, entries[2]))), rule="LED-3", entry=2)
    for n, key, value in [
        (1, "block", block((1, 2))), (1, "block", None), (7, "note", ("changed", NOTES[7][1])), (9, "note", NOTES[8]),
    ]:  # fmt: skip
        e = {**entries[n], key: value}
        yield case(f"the {key} of entry {n} changed after signing", after(n, line(e, sign(identity, entries[n]))), rule="LED-3", entry=n)
    cost = entries[1]["answer"]["cost"]
    values = {
        "scalars": {"cost": {**cost, "scalars": 8}}, "nano_rho": {"cost": {**cost, "nano_rho": 1}}, "kind": {"kind": "moments"},
        "drawn": {"drawn": H("keys")},
    }  # fmt: skip
    for key, change in values.items():
        e = {**entries[1], "answer": {**entries[1]["answer"], **change}}
        yield case(f"{key} changed after signing", after(1, line(e, sign(identity, entries[1]))), rule="LED-3", entry=1)
    for name, n, change in [
        ("an answer without its numbers", 1, changed("answer", None)),
        ("numbers without an answer", 2, changed("answer", answer(2))),
        ("an answer of no round", 1, lambda e: e.update(deck_slot=None, cohort=None)),
        ("a cohort and no slot", 2, changed("deck_slot", None)),
        ("a name of 65 bytes", 3, changed("data", "x" * 65)),
        ("a block without an answer", 2, changed("block", block())),
        ("a block out of order", 1, changed("block", block()[::-1])),
        ("a block with a site twice", 1, changed("block", [block()[0], *block()])),
        ("a note beside something that left", 5, changed("note", NOTES[7])),
        ("nothing that left, and no note", 7, changed("note", None)),
        ("columns out of order", 7, changed("note", ("columns", columns("dose", "age")))),
        ("a column twice", 7, changed("note", ("columns", columns("age", "age")))),
        ("columns in a slot", 7, changed("deck_slot", {"deck": 1, "slot": 7})),
        ("nothing undone", 10, changed("deck_slot", None)),
        ("nobody met", 13, changed("note", ("met", {"deck": 0, "all": bytes(32), "members": []}))),
        ("members out of order", 13, changed("note", ("met", {"deck": 0, "all": bytes(32), "members": met((1, 4), (2, 0))[::-1]}))),
        ("a member twice", 13, changed("note", ("met", {"deck": 0, "all": bytes(32), "members": met((1, 4), (1, 5))}))),
    ]:
        yield case(name, chain(identity, [(n, change)])[1], rule="LED-1", entry=n)
    for key in ("block", "note"):
        yield case(f"no {key}", after(2, good[2].replace(f'"{key}":null,', "")), rule="LED-1", entry=2)
    for name, value in [("a version of nothing", '"version":null,'), ("no version", "")]:
        yield case(name, after(2, good[2].replace('"version":0,', value)), rule="LED-1", entry=2)
    for name, value in [("no form", ""), ("a form of nothing", '"form":null,'), ("another form", '"form":2,')]:
        yield case(name, after(2, good[2].replace('"form":1,', value)), rule="LED-1", entry=2)
    text = good[1]
    for name, bad in [
        ("a space", text.replace(":", ": ", 1)),
        ("capital digits", text.replace(H("a plan").hex(), H("a plan").hex().upper())),
        ("another number's form", text.replace('"bytes":101', '"bytes":101.0')),
        ("a field more", text.replace('"index"', '"more":0,"index"')),
        ("a field twice", text.replace('"index":1', '"index":1,"index":1')),
        ("a field less", text.replace('"data":"ward 7",', "")),
        ("an unknown label", text.replace("masked_words", "plain_words")),
        ("an empty line", "\n" + text),
        ("no JSON", "entry\n"),
    ]:
        yield case(name, after(1, bad), rule="LED-1", entry=1)
    yield case("cut short", good[:-1] + [good[-1][:-1]], rule="LED-6", entry=LENGTH - 1)


def handed_over():
    """[LED-9]: chains that another key signs from entry 8 on."""
    old, new = (Identity(H("seed of a ledger", bytes([n]))) for n in range(2))

    def chain(notes, signers):
        lines, previous = [], bytes(32)
        for n, signer in enumerate(signers):
            e = entry(n, previous, signer.public)
            e["note"] = notes.get(n, e["note"])
            previous = link(e)
            lines.append(line(e, sign(signer, e)))
        return lines, previous

    def case(name, notes, signers, **found):
        lines, last = chain(notes, signers)
        found = found or {"entries": len(lines), "link": last}
        return {"function": "chain", "name": name, "text": "".join(lines), **found}

    signs = ("signer", {})
    yield case("gone on under another key", {8: signs}, (old,) * 8 + (new,) * 6)
    yield case("and under the first one again", {8: signs, 9: signs}, (old,) * 8 + (new,) + (old,) * 5)
    yield case("another key without a note", {}, (old,) * 8 + (new,), rule="LED-9", entry=8)
    yield case("the same key with a note", {8: signs}, (old,) * 9, rule="LED-9", entry=8)


def answers():
    """[LED-11]."""
    answered = {"number": 0, "link": bytes(32)}
    for deck, slot in [(0, 0), (0, 1), (2**32 - 1, 255)]:
        place = {"session": H("a session"), "run": H("a run"), "deck": deck, "slot": slot}
        after = and_one(answered, **place)
        yield {"function": "answers", **place, "before": answered, "after": after}
        answered = after


def ledger_cases():
    return "Ledgers (section 11): a bad chain names the rule and the entry.", [*chains(), *handed_over(), *answers()]
