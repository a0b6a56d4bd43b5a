"""What must be refused of an opening, and where nothing may be asked before one (spec section 9.8)."""

import commit
import frames
import ristretto
from deviations import Cases, replaced, resigned
from suite import ORDER, H


def shifted(commitment, times):
    """A commitment and so many times the first generator."""
    return ristretto.encode(ristretto.add(ristretto.decode(commitment), ristretto.times(times, commit.generator(0))))


def added(o):
    """One more in the first word, and a commitment to fit it: only the signature on the commitment is against it."""
    point = shifted(o["inputs"][1]["commitment"], 1)
    low, high = o["low"], o["high"]
    return {
        **o, "low": [(low[0] + 1) % 2**64, *low[1:]], "high": [high[0] + (low[0] == 2**64 - 1), *high[1:]],
        "inputs": replaced(o["inputs"], 1, commitment=point),
    }  # fmt: skip


def swapped(items, i, j):
    items = list(items)
    items[i], items[j] = items[j], items[i]
    return items


def only(places):
    """An opening over these survivors alone."""
    each = ("alive", "inputs", "seeds", "checks")
    return lambda o: {k: [v[i] for i in places if i < len(v)] if k in each else v for k, v in o.items()}


def inputs(i, **fields):
    return lambda o: {**o, "inputs": replaced(o["inputs"], i, **fields)}


LIES = [
    ("with a number added to the total", "OPN-4", lambda o: {**o, "low": [(o["low"][0] + 1) % 2**64, *o["low"][1:]]}),
    ("with a carry added", "OPN-4", lambda o: {**o, "high": [0 if o["high"][0] else 1, *o["high"][1:]]}),
    ("with more carries than inputs", "OPN-2", lambda o: {**o, "high": [len(o["alive"]), *o["high"][1:]]}),
    ("with another's commitment", "OPN-4", lambda o: inputs(1, commitment=o["inputs"][2]["commitment"])(o)),
    ("with a commitment that is no point", "OPN-4", inputs(1, commitment=b"\xff" * 32)),
    ("with a number added and a commitment to fit it", "OPN-5", added),
    ("with another hash of an input", "OPN-5", inputs(1, digest=H("x"))),
    ("with another signature of an input, whose signature was verified before: accepted", None,
     inputs(1, signature=bytes(64))),
    ("with two inputs in each other's place", "OPN-5", lambda o: {**o, "inputs": swapped(o["inputs"], 1, 2)}),
    ("with another input of its reader", "OPN-5", inputs(0, digest=H("x"))),
    ("with another self-mask", "OPN-3", lambda o: {**o, "seeds": [H("x")[:31] + b"\0", *o["seeds"][1:]]}),
    ("with a self-mask that is no scalar", "OPN-3", lambda o: {**o, "seeds": [b"\xff" * 32, *o["seeds"][1:]]}),
    ("with two self-masks in each other's place", "OPN-3", lambda o: {**o, "seeds": swapped(o["seeds"], 1, 2)}),
    ("with a commitment of a member too many", "OPN-3", lambda o: {**o, "others": [*o["others"], H("x")]}),
    ("without its last survivor", "OPN-2", lambda o: only(range(len(o["alive"]) - 1))(o)),
    ("without its reader", "OPN-2", lambda o: only(range(1, len(o["alive"])))(o)),
    ("over nobody", "OPN-2", only([])),
    ("with a survivor twice", "OPN-2", lambda o: {**o, "alive": [0, 2, 2, *o["alive"][3:]]}),
    ("out of order", "OPN-2", lambda o: {**o, "alive": swapped(o["alive"], 1, 2)}),
    ("with a survivor that was not asked", "OPN-2", lambda o: {**o, "alive": [*o["alive"][:-1], 9]}),
    ("with a word too few", "OPN-2", lambda o: {**o, "low": o["low"][1:]}),
    ("with a carry too few", "OPN-2", lambda o: {**o, "high": o["high"][1:]}),
    ("with an input too few", "OPN-2", lambda o: {**o, "inputs": o["inputs"][1:]}),
    ("with a self-mask too many", "OPN-2", lambda o: {**o, "seeds": [*o["seeds"], bytes(32)]}),
]


def agreed(edit):
    return lambda o: {**o, "agreed": edit(o["agreed"])}


WITH_EVERYBODY = [
    ("with nobody's agreement", "OPN-2", agreed(lambda a: [])),
    ("with an agreement too few", "OPN-2", agreed(lambda a: a[1:])),
    ("with an agreement twice", "OPN-2", agreed(lambda a: [a[0], *a[:-1]])),
    ("with an agreement of a stranger", "OPN-2", agreed(lambda a: [*a[:-1], {**a[-1], "site": 9}])),
    ("with another's agreement", "OPN-6", agreed(lambda a: replaced(a, 1, proof=a[0]["proof"]))),
]


def seeds(edit):
    return lambda o: {**o, "checks": replaced(o["checks"], 1, seeds=edit(o["checks"][1]["seeds"]))}


WITH_A_MISSING_SITE = [
    ("with another seed", "OPN-6", seeds(lambda s: [H("x"), *s[1:]])),
    ("with two checks in each other's place", "OPN-6", lambda o: {**o, "checks": swapped(o["checks"], 1, 2)}),
    ("with an agreement beside the checks", "OPN-2", agreed(lambda a: [
        {"site": 0, "proof": {"rest": H("x"), "signature": bytes(64)}}])),
    ("with another signature of a check, whose signature was verified before: accepted", None, lambda o: {
        **o, "checks": replaced(o["checks"], 2, signature=o["checks"][1]["signature"])}),
    ("without seeds", "OPN-2", lambda o: {**o, "checks": []}),
    ("with a seed too many", "OPN-2", seeds(lambda s: [*s, H("x")])),
    ("with another commitment of the missing site", "OPN-3", lambda o: {**o, "others": [H("x"), *o["others"][1:]]}),
    ("without the commitment of the missing site", "OPN-3", lambda o: {**o, "others": []}),
]  # fmt: skip


def bad_openings(drivers, written):
    c, p, name, hub = Cases(drivers, written), drivers["session_5"], "session_5", "aggregator"
    world = p.world

    # nobody missing; then the round without site 4
    for nth, who, lies in [(0, "", LIES + WITH_EVERYBODY), (2, ", a site missing,", LIES + WITH_A_MISSING_SITE)]:
        at = p.find(0, "Opening", nth)
        for why, rule, edit in lies:
            c.change(f"an opening{who} {why}", rule or "OPN-5", name, at, edit, sound=rule is None)
    # the last round of seven sites, where two were missing in turn
    q = drivers["session_7"]
    at = q.find(0, "Opening")
    c.change("an opening, two sites missing, with their seeds in each other's place", "OPN-6", "session_7", at,
             seeds(lambda s: s[::-1]))  # fmt: skip
    c.change("an opening, two sites missing, with their commitments in each other's place", "OPN-3", "session_7", at,
             lambda o: {**o, "others": o["others"][::-1]})  # fmt: skip
    c.change("an opening, two sites missing, as if one of them were not", "OPN-2", "session_7", at,
             lambda o: {**o, "alive": [*o["alive"], 5]})  # fmt: skip

    # which, when and how often
    first, second = p.find(0, "Opening"), p.find(0, "Ask", 1)
    opened, asked = (0, "frame", p.frame(first)), (0, "frame", p.frame(second))
    c.add("a question without the opening of the round before", "OPN-7", name, first, asked)
    c.add("an opening, the same again, the question", "OPN-8", name, first, opened, opened, asked, sound=True)
    other = 0, "frame", resigned(p, first, added, 0)
    c.add("two openings of one round", "OPN-8", name, first, opened, other)
    c.add("a refused opening, and the question", "OPN-7", name, first, other, asked)
    directory = p.before[second].sites[0].decks[0].hash
    for rule, field in [("OPN-7", "previous_total"), ("RND-6", "previous_context")]:
        c.change(f"a question with another {field}", rule, name, second, lambda a: {**a, field: H("x")},
                 context=lambda session, a: frames.round_context(session, directory, a))  # fmt: skip
    c.change("an opening of another round", "FRM-7", name, first, None, context=H("x"))
    contribute = next(i for i, s in enumerate(p.steps) if s["at"] == 0 and "contribute" in s["in"])
    c.add("an opening before this site's answer", "FRM-7", name, contribute, opened)
    c.change("an opening with a byte left over", "ENC-1", name, first, lambda o: frames.message("Opening", o) + b"\0")
    c.change("an opening signed by a site", "FRM-4", name, first, None, signer=3)
    c.add("the opening of the round before, again, in the next round", "OPN-8", name, second + 1, opened, sound=True)
    unasked = drivers["session_counted"]
    at = unasked.find(0, "Ask", 1)
    ctx = unasked.frame(unasked.find(0, "Ask"))[8:40]
    message = frames.message("Opening", frames.read("Opening", p.frame(first)[40:-64]))
    forged = frames.make(unasked.world.hub, unasked.world.session, "Opening", ctx, message)
    c.add("an opening by the intermediary", "OPN-2", "session_counted", at, (0, "frame", forged))

    # at the aggregator: what is committed to
    late = p.find(hub, "MaskedInput", sender=1)
    rest = {s: (hub, "frame", s, p.frame(p.find(hub, "MaskedInput", sender=s))) for s in range(5)}

    def liar(site, edit):
        return hub, "frame", site, frames.make(
            world.identities[site + 2], world.session, "MaskedInput", p.frame(late)[8:40], edit(rest[site][3][40:-64])
        )

    start = p.find(hub, "MaskedInput", sender=0)
    word = liar(1, lambda y: y[:32] + bytes(8) + y[40:])
    c.add("another vector than committed to: the total is of the others", "INP-4", name, start,
          rest[0], word, rest[2], rest[3], rest[4])  # fmt: skip
    point = liar(1, lambda y: b"\xff" * 32 + y[32:])
    c.add("a commitment that is no point", "INP-4", name, start, rest[0], point, rest[2], rest[3], rest[4])
    none = liar(1, lambda y: commit.NONE + y[32:])
    c.add("no commitment", "INP-4", name, start, rest[0], none, rest[2], rest[3], rest[4])
    two = liar(3, lambda y: y[:32] + bytes(8) + y[40:])
    c.add("two sites that sent others, which would leave too few", "INP-4", name, start,
          rest[0], word, rest[2], two, rest[4])  # fmt: skip
    shifts = [shifted(rest[site][3][40:72], times) for site, times in ((1, 1), (2, ORDER - 1))]
    pair = [liar(s, lambda y: c_ + y[32:]) for s, c_ in zip((1, 2), shifts)]
    c.add("two commitments that are off by what cancels out: the sum is the right one", "INP-4", name, start,
          rest[0], *pair, rest[3], rest[4])  # fmt: skip
    late = unasked.find(hub, "MaskedInput", sender=1)
    c.change("a commitment for the intermediary", "INP-4", "session_counted", late,
             lambda y: commit.commit([1, 2]) + y[32:], signer=3)  # fmt: skip
    return c.cases
