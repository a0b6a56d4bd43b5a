"""A site's ledger (spec section 11): chains of entries, good and bad."""

import copy
import json

from codec import F64, HASH, NOTHING, TEXT, U8, U16, U32, U64, Enum, Int, List, Option, Struct, encode
from identity import Identity
from met import and_one, set_of_sites
from suite import H, le64

GIVES = ["public_keys", "acknowledgement", "sealed_shares", "masked_words", "round_seeds", "self_mask_shares", "refusal",
         "encapsulated_secrets"]  # fmt: skip
COST = Struct(scalars=U64, nano_rho=Option(U64))
TABLE = Struct(rows=U64, digest=HASH)
ANSWER = Struct(kind=TEXT, question=HASH, cost=COST, drawn=Option(HASH), table=Option(TABLE))
BOUND = Struct(unit=Enum(row=NOTHING, person=U64), honest=U16, nano_rho=U64, before=U64)
TALK = Struct(plan=HASH, session=HASH, run=HASH)
PLACE = Struct(deck=U32, slot=U16, cohort=HASH)
MET = Struct(talk=TALK, deck=U32, all=HASH, members=List(Struct(id=HASH, answered=Struct(number=U64, link=HASH))))
NOTE = Enum(
    account=BOUND, signer=NOTHING, sites=HASH,
    agreed=Struct(plan=HASH, totals=Enum(noisy=NOTHING, exact=Option(TABLE))),
    begun=Struct(plan=HASH, nano_rho=U64), ended=HASH, charged=Struct(talk=TALK, place=PLACE, answer=ANSWER), met=MET,
)  # fmt: skip
FRAME = Struct(
    talk=TALK, round=Option(PLACE), discloses=Enum(**{name: NOTHING for name in GIVES}), bytes=U64, digest=HASH, data=TEXT,
)  # fmt: skip
FORM = 1
ENTRY = Struct(form=U8, index=U64, previous=HASH, signer=HASH, event=Enum(frame=FRAME, note=NOTE))


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
            return x[0] if x[1] == {} else {x[0]: plain(x[1])}
        return [plain(v) for v in x] if isinstance(x, list) else x

    return json.dumps(plain({**entry, "signature": signature}), separators=(",", ":")) + "\n"


def answer(n):
    exact = n != 16
    return {
        "kind": "fuzzy_sums" if exact else "shifts",
        "question": H("question in a ledger", b"question %d" % n),
        "cost": {"scalars": 9, "nano_rho": None if exact else 2_143_325},
        "drawn": None if exact else H("cohort in a ledger", b"some keys"),
        "table": {"rows": 120 + n, "digest": H("rows in a ledger", b"a table")} if exact else None,
    }


def met(*members):
    """Sites and how many answers each states."""
    links = ((s, n, H("ledger link", bytes([s])) if n else bytes(32)) for s, n in members)
    stated = ({"id": H("an account", bytes([s])), "answered": {"number": n, "link": link}} for s, n, link in links)
    return sorted(stated, key=lambda m: m["id"])


def bound(unit=("row", {}), nano_rho=10**9, before=0):
    """[POL-8]."""
    return {"unit": unit, "honest": 2, "nano_rho": nano_rho, "before": before}


TALK_OF = {"plan": H("a plan"), "session": H("a session"), "run": H("a run")}


def place(n):
    return {"deck": 1, "slot": n, "cohort": H("cohort in a ledger", b"keys")}


NOTES = {
    0: ("account", bound(("person", 3), before=7)), 11: ("account", bound(nano_rho=2 * 10**9)),
    6: ("sites", H("cohort in a ledger", b"keys")),
    7: ("agreed", {"plan": H("a plan"), "totals": ("exact", {"rows": 122, "digest": H("rows in a ledger", b"a table")})}),
    8: ("begun", {"plan": H("a plan"), "nano_rho": 500_000_000}),
    9: ("met", {"talk": TALK_OF, "deck": 1, "all": H("cohort in a ledger", b"keys"), "members": met((1, 4), (2, 0), (3, 2**64 - 1))}),
    10: ("ended", H("a plan")),
    13: ("agreed", {"plan": H("a plan"), "totals": ("noisy", {})}),
    14: ("agreed", {"plan": H("a plan"), "totals": ("exact", None)}),
    15: ("charged", {"talk": TALK_OF, "place": place(15), "answer": answer(15)}),
    16: ("charged", {"talk": TALK_OF, "place": place(16), "answer": answer(16)}),
}  # fmt: skip
LENGTH = 17


def event(n):
    if n in NOTES:
        return "note", NOTES[n]
    gives = {1: "masked_words", 2: "self_mask_shares", 3: "round_seeds", 4: "masked_words", 5: "refusal", 12: "public_keys"}[n]
    in_round = gives in ("masked_words", "round_seeds", "self_mask_shares")
    return "frame", {
        "talk": TALK_OF,
        "round": place(n) if in_round else None,
        "discloses": (gives, {}),
        "bytes": 100 + n,
        "digest": H("ledger frame", b"frame %d" % n),
        "data": "ward 7",
    }


def entry(n, previous, signer):
    return {"form": FORM, "index": n, "previous": previous, "signer": signer, "event": event(n)}


def chain(identity, changes=(), length=LENGTH):
    """Entries, each signed; `changes` are made before signing."""
    entries, lines, previous = [], [], bytes(32)
    for n in range(length):
        e = entry(n, previous, identity.public)
        for at, change in changes:
            if at == n:
                e = after_signing(e, change)
        previous = link(e)
        entries.append(e)
        lines.append(line(e, sign(identity, e)))
    return entries, lines


def changed(key, value):
    """Of the frame."""
    return lambda e: e["event"][1].__setitem__(key, value)


def noted(note):
    return lambda e: e.__setitem__("event", ("note", note))


def charged(**change):
    def of(e):
        note = copy.deepcopy(e["event"][1])
        note[1]["answer"].update(change)
        e["event"] = "note", note

    return of


def after_signing(entry, change):
    e = copy.deepcopy(entry)
    change(e)
    return e


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
    keys = [H("a key", bytes([s])) for s in (1, 2, 3)]
    for some in (keys, keys[::-1], keys[:1]):
        yield {"function": "sites", "keys": some, "result": set_of_sites(some)}
    yield case("cut", good[:5], head=links[5], rule="LED-5", entry=5)
    yield case("left out", good[:2] + good[3:], rule="LED-2", entry=2)
    yield case("out of order", good[:2] + [good[3], good[2]] + good[4:], rule="LED-2", entry=2)
    yield case("twice", good[:3] + good[2:], rule="LED-2", entry=3)
    other = chain(identity, [(1, changed("bytes", 7))])[1]
    yield case("another past", good[:2] + other[2:], rule="LED-2", entry=2)
    stranger = Identity(H("another seed"))
    yield case("another signature", after(4, line(entries[4], sign(stranger, entries[4]))), rule="LED-3", entry=4)
    yield case("another signer", after(4, line(entries[4], sign(identity, entries[4])).replace(identity.public.hex(), stranger.public.hex())), rule="LED-3", entry=4)
    places = [place(9), {**place(2), "cohort": H("another cohort")}]
    values = [
        *(("talk", {**TALK_OF, key: H("another")}) for key in TALK_OF), *(("round", place) for place in places),
        ("bytes", 1), ("digest", H("another frame")), ("data", "ward 8"), ("discloses", ("round_seeds", {})),
    ]  # fmt: skip
    for key, value in values:
        e = after_signing(entries[2], changed(key, value))
        yield case(f"{key} changed after signing", after(2, line(e, sign(identity, entries[2]))), rule="LED-3", entry=2)
    for name, note in [("another promise", NOTES[11]), ("another set of sites", ("sites", H("cohort in a ledger"))), ("an agreement", NOTES[13])]:
        e = after_signing(entries[6], noted(note))
        yield case(f"{name} noted after signing", after(6, line(e, sign(identity, entries[6]))), rule="LED-3", entry=6)
    cost = answer(15)["cost"]
    values = {
        "scalars": {"cost": {**cost, "scalars": 8}}, "nano_rho": {"cost": {**cost, "nano_rho": 1}, "table": None}, "kind": {"kind": "moments"},
        "drawn": {"drawn": H("keys")}, "table": {"table": {"rows": 122, "digest": H("rows in a ledger", b"a table")}},
    }  # fmt: skip
    for key, change in values.items():
        e = after_signing(entries[15], charged(**change))
        yield case(f"{key} changed after signing", after(15, line(e, sign(identity, entries[15]))), rule="LED-3", entry=15)

    def members(*some):
        return noted(("met", {**NOTES[9][1], "members": list(some)}))

    for name, n, change in [
        ("an answer of no round", 1, changed("round", None)),
        ("a name of 65 bytes", 3, changed("data", "x" * 65)),
        ("an exact answer without its rows", 15, charged(table=None)),
        ("rows of an answer with noise", 16, charged(table=answer(15)["table"])),
        ("a first entry that promises nothing", 0, noted(NOTES[6])),
        ("a first entry that is a frame", 0, lambda e: e.__setitem__("event", event(12))),
        ("nobody met", 9, members()),
        ("members out of order", 9, members(*met((1, 4), (2, 0))[::-1])),
        ("a member twice", 9, members(*met((1, 4), (1, 5)))),
    ]:
        yield case(name, chain(identity, [(n, change)])[1], rule="LED-1", entry=n)
    yield case("no round", after(5, good[5].replace('"round":null,', "")), rule="LED-1", entry=5)
    yield case("two events", after(2, good[2].replace('"event":{', '"event":{"note":"signer",')), rule="LED-1", entry=2)
    for name, value in [("no form", ""), ("a form of nothing", '"form":null,'), ("another form", '"form":2,')]:
        yield case(name, after(2, good[2].replace('"form":1,', value)), rule="LED-1", entry=2)
    text = good[1]
    for name, bad in [
        ("a space", text.replace(":", ": ", 1)),
        ("capital digits", text.replace(H("a plan").hex(), H("a plan").hex().upper())),
        ("another number's form", text.replace('"bytes":101', '"bytes":101.0')),
        ("a field more", text.replace('"index"', '"more":0,"index"')),
        ("a field twice", text.replace('"index":1', '"index":1,"index":1')),
        ("a field less", text.replace('"bytes":101,', "")),
        ("an unknown label", text.replace("masked_words", "plain_words")),
        ("an empty line", "\n" + text),
        ("no JSON", "entry\n"),
    ]:
        yield case(name, after(1, bad), rule="LED-1", entry=1)
    yield case("cut short", good[:-1] + [good[-1][:-1]], rule="LED-6", entry=LENGTH - 1)


def handed_over():
    """[LED-9]: chains that another key signs from entry 6 on."""
    old, new = (Identity(H("seed of a ledger", bytes([n]))) for n in range(2))

    def chain(notes, signers):
        lines, previous = [], bytes(32)
        for n, signer in enumerate(signers):
            e = entry(n, previous, signer.public)
            if n in notes:
                e["event"] = "note", notes[n]
            previous = link(e)
            lines.append(line(e, sign(signer, e)))
        return lines, previous

    def case(name, notes, signers, **found):
        lines, last = chain(notes, signers)
        found = found or {"entries": len(lines), "link": last}
        return {"function": "chain", "name": name, "text": "".join(lines), **found}

    signs = ("signer", {})
    yield case("gone on under another key", {6: signs}, (old,) * 6 + (new,) * 11)
    yield case("and under the first one again", {6: signs, 7: signs}, (old,) * 6 + (new,) + (old,) * 10)
    yield case("another key without a note", {}, (old,) * 6 + (new,), rule="LED-9", entry=6)
    yield case("the same key with a note", {6: signs}, (old,) * 7, rule="LED-9", entry=6)


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
