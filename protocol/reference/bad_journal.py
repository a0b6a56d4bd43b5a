"""Sites that resume from their journals, and journals from which no site resumes (spec section 12)."""

import frames
import journal
from codec import Refused, decode, encode
from party import Env, Site
from driver import step
from sessions import named
from shamir import to_bytes
from suite import ORDER, Draws, H


def entries_of(p, site, before):
    """The journal of a site before step `before`."""
    out = []
    for s in p.steps[:before]:
        for o in s["out"] if s["at"] == site else ():
            out = list(o["rewrite"]) if "rewrite" in o else out + [o["persist"]] if "persist" in o else out
    return out


def journals(drivers, written):
    """A site resumes: what it then answers, or why it does not go on."""
    cases = []

    def case(name, session, site, entries, *inputs, rule=None):
        p = drivers[session]
        world, out = p.world, {"name": name, "session": session, "site": site, "entries": entries}
        new = Site(Env(world.identities[site + 2], world.roster, world.terms, site, world.role), Draws("again"))
        try:
            journal.restore(new, entries)
            steps = [step(site, what, args, new.handle(what, *args)) for what, *args in inputs]
            found = {o.get("refused") for s in steps for o in s["out"]} - {None}
            out["steps"] = [named(s, written[session]) for s in steps]
        except Refused as bad:
            found = {bad.rule}
        assert found == ({rule} if rule else set()), f"{name}: {found}"
        cases.append({**out, "rule": rule} if rule else out)

    p, name = drivers["session_5"], "session_5"
    ask, alive, cert = p.find(0, "Ask", 2), p.find(0, "Survivors", 2), p.find(0, "Certificate")
    delivery = p.find(0, "DeliverShares")
    case("before its acknowledgement", name, 0, entries_of(p, 0, delivery + 1), ("frame", p.frame(delivery)))
    case("before the first question", name, 0, entries_of(p, 0, delivery + 1), ("frame", p.frame(p.find(0, "Ask"))))
    before = entries_of(p, 0, alive)
    case("after it masked: the same frame goes out again", name, 0, before, ("frame", p.frame(ask)))
    case("after it masked: survivors", name, 0, before, ("frame", p.frame(alive)), ("frame", p.frame(cert)))
    before = entries_of(p, 0, alive + 1)
    case("after it signed: the same again", name, 0, before, ("frame", p.frame(alive)), ("frame", p.frame(cert)))
    before = entries_of(p, 0, cert + 1)
    case("after its release: the same again", name, 0, before, ("frame", p.frame(cert)), ("frame", p.frame(ask)))
    follows = [("frame", p.frame(p.find(0, "Opening", 2))), ("frame", p.frame(p.find(0, "Ask", 3)))]
    case("after its release: the opening and the next question", name, 0, before, *follows)
    case("after its release: the next question without the opening", name, 0, before, follows[1], rule="OPN-7")
    case("after its release: the slot again", name, 0, before, ("frame", p.frame(p.find(0, "Ask", 1))), rule="RND-2")
    q = drivers["session_3"]
    third = q.find(0, "Ask", 2)
    refused = q.deviate(third, (0, "frame", q.frame(third)), (0, "refuse", "POL-3"))
    replaced = next(o["rewrite"] for o in refused[1]["out"] if "rewrite" in o)
    follows = [("frame", q.frame(q.find(0, "Opening", 1))), ("frame", q.frame(third))]
    case("after a refusal: the opening and the question again", "session_3", 0, replaced, *follows)
    other = frames.read("Ask", q.frame(third)[40:-64]) | {"previous_total": H("x")}
    directory = q.before[third].sites[0].decks[other["deck"]].hash
    ctx, hub = frames.round_context(q.world.session, directory, other), q.world.identities[0]
    other = frames.make(hub, q.world.session, "Ask", ctx, frames.message("Ask", other))
    case("after a refusal: as if another total had been opened", "session_3", 0, replaced, ("frame", other), rule="OPN-7")  # fmt: skip
    q = drivers["session_counted"]
    alive, cert = q.find(0, "Survivors"), q.find(0, "Certificate")
    case("after it signed that nobody is missing, for the intermediary", "session_counted", 0, entries_of(q, 0, alive + 1),
         ("frame", q.frame(cert)))  # fmt: skip
    case("a release to the intermediary without a signature", "session_counted", 0,
         [*entries_of(q, 0, alive), entries_of(q, 0, cert + 1)[-1]], rule="JRN-2")  # fmt: skip

    kinds = [decode(journal.ENTRY, e, 1 << 24)[0] for e in before]
    deck, masked, signed = (before[kinds.index(kind)] for kind in ("deck", "masked", "checked"))
    freed = before[-1]

    other = drivers["session_7"]

    def changed(entry, **fields):
        kind, old = decode(journal.ENTRY, entry, 1 << 24)
        return encode(journal.ENTRY, (kind, {**old, **fields}))

    first, seeds, held, pairs = (decode(journal.ENTRY, deck, 1 << 24)[1][f] for f in ("first", "seeds", "held", "pairs"))
    answer = decode(journal.ENTRY, masked, 1 << 24)[1]["frame"]
    for why, entries in [
        ("a damaged entry", [deck[:-1]]), ("an unknown entry", [b"\5\0\0\0"]),
        ("a deck of another session", [entries_of(other, 0, other.find(0, "DeliverShares") + 1)[0]]), ("a deck twice", [deck, deck]),
        ("two runs", [deck, changed(deck, run=H("r"), index=1)]), ("a round without its deck", [masked]),
        ("a slot again", [deck, masked, masked]), ("a signature of no round", [deck, signed]),
        ("a release of no round", [deck, masked, freed]), ("a release twice", [*before, freed]),
        ("a signature on the whole cohort", [*before[:-2], changed(signed, alive=[0, 1, 2, 3, 4])]),
        ("a signature after the release", [*before, signed]),
        ("a release of another set than was signed", [*before[:-1], changed(freed, alive=[0, 1, 2, 3, 4])]),
        ("a summary after a round", [deck, masked, journal.entry(
            "chain", context=H("c"), cohort=None, rounds=1, opened=None)]),
        ("lists of different lengths", [changed(deck, held=[*held[:-1], held[-1][:4]])]),
        ("a digest of commitments too few", [changed(deck, slot_commitments=[H("d")] * 7)]),
        ("a pair secret too few", [changed(deck, pairs=pairs[1:])]), ("a pair secret twice", [changed(deck, pairs=[*pairs[1:], pairs[-1]])]),
        ("a pair secret with nobody", [changed(deck, pairs=[*pairs[:-1], {**pairs[-1], "site": 9}])]),
        ("an answer of no words", [deck, changed(masked, frame=answer[:72] + answer[-64:])]),
        ("a half word", [deck, changed(masked, frame=answer[:-65] + answer[-64:])]),
        ("a frame that is no answer", [deck, changed(masked, frame=p.frame(ask))]),
        ("a round in a closed slot", [changed(deck, first=first + 1, seeds=seeds[1:], held=held[1:]), masked]),
        ("shares of a closed slot", [changed(deck, first=first + 1, seeds=seeds[1:])]),
        ("two rounds", [deck, masked, changed(masked, slot=first + 1)]),
        ("a share that is none", [changed(deck, seeds=[to_bytes(ORDER)] * len(seeds))]),
    ]:  # fmt: skip
        case(why, name, 0, entries, rule="JRN-2")
    return cases
