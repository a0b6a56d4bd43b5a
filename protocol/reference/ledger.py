"""A site's ledger (spec section 11): chains of entries, good and bad."""

import json

from codec import F64, HASH, NOTHING, TEXT, U8, U16, U32, U64, Enum, Int, List, Option, Struct, encode
from identity import Identity
from met import and_one
from release import block_id
from suite import H, le64

GIVES = ["public_keys", "acknowledgement", "sealed_shares", "masked_words", "round_seeds", "self_mask_shares", "refusal",
         "slot_burned", "nothing", "encapsulated_secrets"]  # fmt: skip
PLACES = Struct(columns=U32, at=List(Int(4, signed=True)))
FRAME = Struct(columns=List(TEXT), lower=List(F64), upper=List(F64))
PROBED = Struct(
    kind=TEXT, question=HASH, scalars=U64, milli_bits=U64, nano_rho=Option(U64), drawn=Option(HASH), frame=FRAME,
    centres=List(PLACES),
)  # fmt: skip
ANSWER = Struct(kind=TEXT, question=HASH, scalars=U64, nano_rho=Option(U64), drawn=Option(HASH))
COLUMNS = List(Struct(name=TEXT, values=HASH))
NOTE = Enum(columns=COLUMNS, changed=COLUMNS, separate=COLUMNS, undone=NOTHING, agreed=NOTHING,
            reserved=Struct(nano_rho=U64, until=U64),
            met=Struct(deck=U32, members=List(Struct(key=HASH, number=U64, link=HASH))))  # fmt: skip
BEFORE = dict(
    index=U64, previous=HASH, plan=HASH, session=HASH, run=HASH, deck_slot=Option(Struct(deck=U32, slot=U16)),
    cohort=Option(HASH), discloses=Enum(**{name: NOTHING for name in GIVES}), bytes=U64, digest=HASH, data=TEXT, rows=HASH,
)  # fmt: skip
SINCE = dict(version=U32, block=Option(List(Struct(key=HASH, version=U32))), note=Option(NOTE))
FORMS = {
    1: Struct(**BEFORE, answer=Option(PROBED)), 2: Struct(**BEFORE, **SINCE, answer=Option(PROBED)),
    3: Struct(form=U8, **BEFORE, **SINCE, answer=Option(ANSWER)),
}  # fmt: skip


def encoded(entry):
    return encode(FORMS[entry.get("form", 2 if "version" in entry else 1)], entry)


def link(entry):
    """[LED-2]."""
    return H("ledger link", encoded(entry))


def sign(identity, entry):
    """[LED-3]."""
    return identity.sign(H("ledger entry", encoded(entry)))


def line(entry, signature):
    """[LED-1]: one line in its one form."""

    def plain(name, x):
        if isinstance(x, (bytes, bytearray)):
            return x.hex()
        if name == "deck_slot" and x is not None:
            return list(x.values())
        if name == "discloses":
            return x[0]
        if name == "note":
            if x[0] == "reserved":
                return {x[0]: x[1]}
            if x[0] == "met":
                members = [[m["key"].hex(), m["number"], m["link"].hex()] for m in x[1]["members"]]
                return {x[0]: {"deck": x[1]["deck"], "members": members}}
            return {x[0]: [[c["name"], c["values"].hex()] for c in x[1]]} if x[1] else x[0]
        if name == "block":
            return [[m["key"].hex(), m["version"]] for m in x]
        if isinstance(x, dict):
            return {k: plain(k, v) for k, v in x.items()}
        return [plain("", v) for v in x] if isinstance(x, list) else x

    shown = {k: v for k, v in entry.items() if k not in ("block", "note") or v is not None}
    return json.dumps({**plain("", shown), "signature": signature.hex()}, separators=(",", ":")) + "\n"


def answer(n, form=3):
    exact, probed = n != 4, form < 3
    box = {"columns": ["age", "dose"], "lower": [0.0, -1.5], "upper": [120.0, 2.25]}
    return {
        "kind": "fuzzy_sums" if exact else "shifts",
        "question": H("question in a ledger", b"question %d" % n),
        "scalars": 9,
        **({"milli_bits": 9 * 33_600} if probed else {}),
        "nano_rho": None if exact else 2_143_325,
        "drawn": None if exact else H("cohort in a ledger", b"some keys"),
        **({"frame": box, "centres": [{"columns": 2, "at": [250_000 - n, 0, -1_000_000, 999_999]}]} if probed else {}),
    }


def block(sites=(1, 2, 3)):
    members = [{"key": H("a key", bytes([s])), "version": s} for s in sites]
    return sorted(members, key=lambda m: m["key"])


def columns(*names):
    return [{"name": name, "values": H("values", name.encode())} for name in names]


def met(*members):
    """Sites and how many answers each states."""
    links = ((s, n, H("ledger link", bytes([s])) if n else bytes(32)) for s, n in members)
    return sorted(({"key": H("a key", bytes([s])), "number": n, "link": link} for s, n, link in links), key=lambda m: m["key"])


NOTES = {
    7: ("columns", columns("age", "dose")), 8: ("changed", columns("age")), 9: ("separate", columns("age", "dose", "weight")),
    10: ("undone", {}), 11: ("agreed", {}), 12: ("reserved", {"nano_rho": 250_000_000, "until": 1_800_000_000}),
    13: ("met", {"deck": 1, "members": met((1, 4), (2, 0), (3, 2**64 - 1))}),
}  # fmt: skip
LENGTH = 14


def entry(n, previous, form=3):
    gives = ["public_keys", "masked_words", "self_mask_shares", "round_seeds", "masked_words", "refusal", "slot_burned"]
    gives = gives[n] if n < 7 else "nothing"
    in_round = gives in ("masked_words", "round_seeds", "self_mask_shares", "slot_burned")
    new = {"version": n // 4, "block": block() if n == 1 else None, "note": NOTES.get(n)}
    return {
        **({"form": form} if form == 3 else {}),
        "index": n,
        "previous": previous,
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
        **(new if form > 1 else {}),
        "answer": answer(n, form) if gives == "masked_words" else None,
    }


def chain(identity, changes=(), forms={}, length=LENGTH):
    """Entries, each signed; `changes` are made before signing; `forms` are those of entries of earlier forms."""
    entries, lines, previous = [], [], bytes(32)
    for n in range(length):
        e = entry(n, previous, forms.get(n, 3))
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
        return {"function": "chain", "name": name, "key": identity.public, "text": "".join(lines), **found}

    def after(n, text):
        return good[:n] + [text] + good[n + 1 :]

    whole = {"entries": LENGTH, "link": links[-1]}
    yield case("whole", good, **whole)
    yield case("whole, and with an entry that was noted before", good, head=links[2], **whole)
    first, second = dict.fromkeys(range(6), 1), dict.fromkeys(range(LENGTH), 2)
    for name, forms, length in [
        ("whole, of the first form", first, 6), ("begun in the first form", first, LENGTH),
        ("whole, of the second form", second, LENGTH), ("begun in the second form", dict.fromkeys(range(5), 2), LENGTH),
        ("begun in the first form, gone on in the second", {**second, **first}, LENGTH),
        ("in all three forms", {0: 1, 1: 1, 2: 2, 3: 2, 4: 2}, LENGTH),
    ]:  # fmt: skip
        before, lines = chain(identity, forms=forms, length=length)
        yield case(name, lines, entries=length, link=link(before[-1]))
    for name, forms in [
        ("the first form behind the second", {0: 1, 1: 2, 2: 1}), ("the first form behind the third", {0: 1, 2: 1}),
        ("the second form behind the third", {2: 2}),
    ]:  # fmt: skip
        yield case(name, chain(identity, forms=forms)[1], rule="LED-1", entry=2)
    before, lines = chain(identity, forms=second)
    values = {"milli_bits": 1, "frame": {**before[1]["answer"]["frame"], "lower": [0.0, -1.25]}, "centres": []}
    for key, value in values.items():
        e = {**before[1], "answer": {**before[1]["answer"], key: value}}
        signed = line(e, sign(identity, before[1]))
        yield case(f"{key} of the second form changed after signing", lines[:1] + [signed], rule="LED-3", entry=1)
    for name, text, entry in [
        ("the second form for the third", lines[2].replace('{"index"', '{"form":3,"index"'), 2),
        ("an answer of the second form without a field", lines[1].replace('"milli_bits":302400,', ""), 1),
    ]:
        rule = "LED-3" if entry == 2 else "LED-1"
        yield case(name, lines[:entry] + [text], rule=rule, entry=entry)
    yield case("nothing", [], entries=0, link=bytes(32))
    signed = H("ledger head", le64(LENGTH) + links[-1])
    yield {"function": "head", "key": identity.public, **whole, "signature": identity.sign(signed)}
    keys = [m["key"] for m in block()]
    yield {"function": "sites", "keys": keys, "result": block_id(keys)}
    yield case("cut", good[:5], head=links[5], rule="LED-5", entry=5)
    yield case("left out", good[:2] + good[3:], rule="LED-2", entry=2)
    yield case("out of order", good[:2] + [good[3], good[2]] + good[4:], rule="LED-2", entry=2)
    yield case("twice", good[:3] + good[2:], rule="LED-2", entry=3)
    other = chain(identity, [(1, changed("bytes", 7))])[1]
    yield case("another past", good[:2] + other[2:], rule="LED-2", entry=2)
    stranger = chain(Identity(H("another seed")))[1]
    yield case("another signer", good[:4] + stranger[4:], rule="LED-3", entry=4)
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
    values = {"scalars": 8, "nano_rho": 1, "kind": "moments", "drawn": H("keys")}
    for key, value in values.items():
        e = {**entries[1], "answer": {**entries[1]["answer"], key: value}}
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
        ("nobody met", 13, changed("note", ("met", {"deck": 0, "members": []}))),
        ("members out of order", 13, changed("note", ("met", {"deck": 0, "members": met((1, 4), (2, 0))[::-1]}))),
        ("a member twice", 13, changed("note", ("met", {"deck": 0, "members": met((1, 4), (1, 5))}))),
    ]:
        yield case(name, chain(identity, [(n, change)])[1], rule="LED-1", entry=n)
    for name, n, text in [("a block of nothing", 2, '"block":null,"answer"'), ("a note of nothing", 2, '"note":null,"answer"')]:
        yield case(name, after(n, good[n].replace('"answer"', text)), rule="LED-1", entry=n)
    for name, value in [("a version of nothing", '"version":null,'), ("no version", "")]:
        yield case(name, after(2, good[2].replace('"version":0,', value)), rule="LED-1", entry=2)
    for name, value in [("no form", ""), ("a form of nothing", '"form":null,'), ("a fourth form", '"form":4,')]:
        yield case(name, after(2, good[2].replace('"form":3,', value)), rule="LED-1", entry=2)
    answered = good[1].replace('"nano_rho"', '"milli_bits":0,"nano_rho"')
    yield case("a field of earlier forms", after(1, answered), rule="LED-1", entry=1)
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


def answers():
    """[LED-11]."""
    answered = {"number": 0, "link": bytes(32)}
    for deck, slot in [(0, 0), (0, 1), (2**32 - 1, 255)]:
        place = {"session": H("a session"), "run": H("a run"), "deck": deck, "slot": slot}
        after = and_one(answered, **place)
        yield {"function": "answers", **place, "before": answered, "after": after}
        answered = after


def ledger_cases():
    return "Ledgers (section 11): a bad chain names the rule and the entry.", [*chains(), *answers()]
