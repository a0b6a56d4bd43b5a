"""Whole sessions as vectors: how each goes, and how it is written down."""

import frames
from codec import encode
from deck import commitments_hash
from documents import SIGNED_ROSTER, SIGNED_TERMS, plan_hash, roster_hash
from driver import Driver
from shamir import to_bytes
from suite import H


def nobody_missing():
    """Three sites, decks of two slots: a deck, two rounds, the next deck beside the second, and a round in it."""
    p = Driver("session 3", 3, slots=2)
    p.ask(b"first", 5)
    # Two values of K in one question: to the core a longer vector.
    p.ask(b"K = 2; " + b"K = 3", 7 + 10)
    p.ask(b"third", 5)
    return p.close()


def one_missing():
    """Five sites, a total over those that are left: site 4 is gone after its input to the second question, and before its input to the third."""
    p = Driver("session 5", 5)
    p.ask(b"first", 4)
    p.ask(b"second", 4, lose=lambda at, what, args: at == 4 and is_kind(args, "Survivors"))
    p.ask(b"third", 4, lose=lambda at, what, args: at == 4)
    p.do("aggregator", "gone", 4)
    p.run()
    p.ask(b"fourth", 4)
    return p.close()


def two_missing():
    """Seven sites: in one round site 6 is gone before its input, and site 5 after its input, before it signs."""
    p = Driver("session 7", 7)
    p.ask(b"first", 3, lose=lambda at, what, args: at == 6)
    p.do("aggregator", "gone", 6)
    p.run(lose=lambda at, what, args: at == 5)
    p.do("aggregator", "gone", 5)
    p.run()
    p.ask(b"second", 3)
    return p.close()


def is_kind(args, kind):
    return isinstance(args[-1], bytes) and frames.NAMES[args[-1][2]] == kind


def set_up_again():
    """Five sites, of which site 2 is gone before its shares: the deck is set up again without it (KEX-1, KEX-11)."""
    p = Driver(
        "session 4 of 5", 5, slots=3, lose=lambda at, what, args: at == 2 and is_kind(args, "DirectoryCertificate")
    )
    p.do("aggregator", "gone", 2)
    p.run()
    p.ask(b"first", 2)
    return p.close()


def many():
    """Ten sites: more survivors than a site checks proofs of (SUR-5)."""
    p = Driver("session 10", 10, slots=2)
    p.ask(b"first", 1)
    return p.close()


def the_same():
    """Four sites, and totals over all of them alone; three state their accounts. Site 3 is gone before its second input, and the
    run ends (SUR-3)."""
    standings = {s: H("an account", bytes([s])) for s in range(3)}
    p = Driver("session of the same", 4, slots=2, sites=("Same", {}), standings=standings)
    p.ask(b"first", 2)
    p.ask(b"second", 2, lose=lambda at, what, args: at == 3)
    p.do("aggregator", "gone", 3)
    p.run()
    return p


def counted():
    """Four sites and the intermediary, which opens no total: shares leave against a certificate only, though nobody is missing
    (UNM-1)."""
    p = Driver("session counted", 4, role="Intermediary")
    p.ask(b"first", 1)
    p.ask(b"second", 1)
    return p


SESSIONS = {
    "session_3": nobody_missing, "session_5": one_missing, "session_7": two_missing, "session_4_of_5": set_up_again,
    "session_10": many, "session_same": the_same,
    "session_counted": counted,
}  # fmt: skip


def write_session(p, text):
    """A session as JSON: frames by name, then the steps; the secrets of every deck and round beside them."""
    world, names, table = p.world, {}, {}
    for s in p.steps:
        for data in [s["in"].get("frame"), *(o.get("send") for o in s["out"])]:
            if data and data not in names:
                kind = frames.NAMES[data[2]]
                whose = f" of site {s['at']}" if s["at"] != "aggregator" else ""
                names[data] = f"{len(names):03} {kind}{whose}"
                table[names[data]] = data
    setting = {
        "name": world.name, "sites": world.n, "identities": [i.seed for i in world.identities],
        "roster": encode(SIGNED_ROSTER, sign(world, "roster", roster_hash)),
        "plan": encode(SIGNED_TERMS, sign(world, "terms", plan_hash)), "session": world.session, "role": world.role,
        "standings": [s.standing for s in world.sites],
    }  # fmt: skip
    return {
        "description": text, "setting": setting, "decks": decks(p), "rounds": rounds(p), "frames": table,
        "steps": [named(s, names) for s in p.steps],
    }, names  # fmt: skip


def sign(world, what, digest):
    document = getattr(world, what)
    return {what: document, "signature": world.identities[0].sign(digest(document))}


def named(s, names):
    """A step with the names of frames in place of their bytes, where they have one."""

    def short(x):
        return {k: names.get(v, v) if k in ("frame", "send") else v for k, v in x.items()}

    return {"at": s["at"], "in": short(s["in"]), "out": [short(o) for o in s["out"]]}


def decks(p):
    """What a site knows of a deck when it is ready."""
    out = []
    for i, s in enumerate(p.steps):
        for ready in (o["deck_ready"] for o in s["out"] if "deck_ready" in o and s["at"] != "aggregator"):
            world = p.before[i + 1] if i + 1 < len(p.before) else p.world
            d = world.sites[s["at"]].decks[ready["index"]]
            out.append({
                "site": s["at"], "index": d.index, "id": d.id, "directory": d.hash, "threshold": d.threshold,
                "members": d.members, "dh_private": d.dh_private, "kem_seed": d.kem_seed,
                "seeds": [to_bytes(b) for b in d.seeds], "commitments": commitments_hash(d.commitments),
                "standing": d.own["standing"],
                "pairs": dict(sorted(d.pairs.items())), "slot_commitments": d.slot_commitments,
                "sent": {m: secret for m, (_, secret) in d.sent.items()},
                "held": {m: [to_bytes(x) for x in row] for m, row in sorted(d.held.items())},
            })  # fmt: skip
    return out


def rounds(p):
    """What a site masks and with what."""
    out = []
    for i, s in enumerate(p.steps):
        if "contribute" in s["in"]:
            r = p.before[i].sites[s["at"]].round
            seeds = {v: r.seed(v) for v in r.cohort if v != s["at"]}
            out.append({
                "site": s["at"], "deck": r.deck.index, "slot": r.slot, "context": r.ctx, "x": s["in"]["contribute"],
                "self_key": r.self_key(), "round_seeds": seeds,
            })  # fmt: skip
    return out
