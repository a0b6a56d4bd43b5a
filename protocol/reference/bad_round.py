"""What must be refused in a round (spec section 9)."""

import frames
from deviations import Cases, replaced, resigned
from layers import flip
from masks import words_of
from shamir import from_bytes, to_bytes
from suite import ORDER, H


def bad_rounds(drivers, written):
    c, p, name, hub = Cases(drivers, written), drivers["session_5"], "session_5", "aggregator"
    world = p.world
    ask, second = p.find(0, "Ask"), p.find(0, "Ask", 1)
    directory = p.before[ask].sites[0].decks[0].hash

    def context(session, value):
        return frames.round_context(session, directory, value)

    # the question
    for why, rule, edit in [
        ("in a context of another question", "RND-1", None),
        ("in a slot the deck does not have", "RND-2", lambda a: {**a, "slot": 8}),
        ("in a deck that is not there", "FRM-7", lambda a: {**a, "deck": 1}),
        ("for no words", "RND-4", lambda a: {**a, "words": 0}),
        ("for too many words", "RND-4", lambda a: {**a, "words": 2**20 + 1}),
        ("without the site", "RND-4", lambda a: {**a, "cohort": [1, 2, 3, 4]}),
        ("of a cohort out of order", "RND-4", lambda a: {**a, "cohort": [0, 2, 1, 3, 4]}),
        ("of a site that is no member", "RND-4", lambda a: {**a, "cohort": [0, 1, 2, 3, 5]}),
        ("of fewer than t", "POL-1", lambda a: {**a, "cohort": [0, 1, 2]}),
        ("with a history", "RND-6", lambda a: {**a, "previous_context": H("x")}),
    ]:
        c.change(f"a question {why}", rule, name, ask, edit, context=context if edit else H("other"))
    c.change("another query under the context of the question", "RND-1", name, ask, lambda a: {**a, "query": b"x"})
    used = frames.read("Ask", p.frame(ask)[40:-64])
    c.change("a slot again, for another query", "RND-2", name, second, lambda a: {**a, "slot": 0}, context=context)
    c.change("the round before left out", "RND-6", name, second,
             lambda a: {**a, "previous_context": used["previous_context"]}, context=context)  # fmt: skip
    fourth = p.find(0, "Ask", 3)
    c.change(
        "a site back that had left", "RND-5", name, fourth, lambda a: {**a, "cohort": [0, 1, 2, 3, 4]}, context=context
    )
    c.add("a question replayed from a round before", "RND-2", name, fourth, (0, "frame", p.frame(ask)))

    # survivors, nobody missing
    alive = p.find(0, "Survivors")
    contribute = next(i for i, s in enumerate(p.steps) if s["at"] == 0 and "contribute" in s["in"])
    c.add("survivors before this site's answer", "SUR-2", name, contribute, (0, "frame", p.frame(alive)))
    cut = {
        "out of order": ("SUR-2", lambda v: {k: [v[k][1], v[k][0], *v[k][2:]] for k in v}),
        "of a site outside the cohort": ("SUR-2", lambda v: {**v, "alive": [0, 1, 2, 3, 9]}),
        "without the site": ("SUR-2", lambda v: {k: v[k][1:] for k in v}),
        "of fewer than t": ("SUR-3", lambda v: {k: v[k][:3] for k in v}),
        "with a proof too few": ("SUR-5", lambda v: {**v, "inputs": v["inputs"][:4]}),
        "with another's proof": ("SUR-5", lambda v: {**v, "inputs": [*v["inputs"][:4], v["inputs"][3]]}),
    }
    for why, (rule, edit) in cut.items():
        c.change(f"survivors {why}", rule, name, alive, edit)
    c.change("survivors of another round", "FRM-7", name, alive, None, context=H("other"))
    c.add("survivors of the round before", "FRM-7", name, p.find(0, "Survivors", 1), (0, "frame", p.frame(alive)))
    fewer = resigned(p, alive, lambda v: {k: v[k][:4] for k in v}, 0)
    c.add("a smaller set after the release", "SUR-4", name, alive + 1, (0, "frame", fewer))
    shown = frames.read("Survivors", p.frame(alive)[40:-64])
    early = frames.message("Certificate", {"alive": shown["alive"], "inputs": H("x"), "signers": [], "proofs": []})
    early = frames.make(world.identities[0], world.session, "Certificate", p.frame(alive)[8:40], early)
    c.add("a certificate where nothing was signed", "UNM-2", name, alive, (0, "frame", early))

    # two steps: after survivors without site 4 were signed
    third, cert = p.find(0, "Survivors", 2), p.find(0, "Certificate")
    c.add("the whole cohort after a smaller set was signed", "SUR-2", name, alive,
          (0, "frame", fewer), (0, "frame", p.frame(alive)))  # fmt: skip
    signed = {
        "for the cohort": lambda v: {**v, "alive": [0, 1, 2, 3, 4]},
        "with a signature too few": lambda v: {**v, "signers": v["signers"][:3], "proofs": v["proofs"][:3]},
        "with one signer twice": lambda v: {**v, "signers": [0, 1, 2, 2], "proofs": [*v["proofs"][:3], v["proofs"][2]]},
        "with a signer who is missing": lambda v: {**v, "signers": [0, 1, 2, 4]},
        "with a proof too few": lambda v: {**v, "proofs": v["proofs"][:3]},
        "with another's proof": lambda v: {**v, "proofs": [*v["proofs"][:3], v["proofs"][2]]},
    }
    for why, edit in signed.items():
        c.change(f"a certificate {why}", "UNM-2", name, cert, edit)
    c.add("a certificate before this site signed", "UNM-2", name, third, (0, "frame", p.frame(cert)))
    q = drivers["session_7"]
    smaller = q.find(0, "Survivors", 1) + 1
    stale = 0, "frame", stale_certificate(q)
    c.add("a certificate for a larger set than this site signed last", "UNM-2", "session_7", smaller, stale)

    over_all_of_them(c, drivers["session_same"])
    towards_the_intermediary(c, drivers["session_counted"])

    # at the aggregator
    first, late = p.find(hub, "MaskedInput", sender=0), p.find(hub, "MaskedInput", sender=1)
    copied = p.frame(first)[40:-64]
    c.change("a copy of another site's input", "INP-3", name, late, lambda _: copied, signer=3)
    c.change("an input a word too long", "INP-1", name, late, lambda y: y + bytes(8), signer=3)
    c.change("a copy of another site's words, committed to otherwise", "INP-3", name, late,
             lambda _: H("x") + copied[32:], signer=3)  # fmt: skip
    c.change("an input without a commitment", "INP-1", name, late, lambda y: y[32:], signer=3)
    c.change("an input shorter than a commitment", "INP-1", name, late, lambda y: y[:31], signer=3)
    c.change("an input with a byte left over", "INP-1", name, late, lambda y: y + b"\0", signer=3)
    two = frames.make(world.identities[3], world.session, "MaskedInput", p.frame(late)[8:40], bytes(32))
    c.add("two inputs of one site", "INP-2", name, late + 1, (hub, "frame", 1, two))
    flipped = flip(p.frame(late), 8 * 50)
    c.add("a bit of an input", "FRM-4", name, late, (hub, "frame", 1, flipped))
    check = p.find(hub, "ConsistencyCheck", sender=1)
    for why, rule, edit in [
        ("without a seed", "CON-3", lambda v: {**v, "seeds": []}),
        ("with a seed towards a survivor", "CON-3", lambda v: {**v, "seeds": [{**v["seeds"][0], "missing": 2}]}),
        ("that names another round", "CON-2", lambda v: {**v, "round": H("x")}),
    ]:
        c.change(f"a consistency check {why}", rule, name, check, edit, signer=3)
    unmask = p.find(hub, "Unmask", sender=1)
    for why, edit in [
        ("a share too few", lambda v: {"shares": v["shares"][1:]}),
        ("something that is no share", lambda v: {"shares": [to_bytes(ORDER), *v["shares"][1:]]}),
    ]:
        c.change(f"an answer with {why}", "UNM-3", name, unmask, edit, signer=3)

    # wrong shares: all five answer, site 1 with a wrong share of site 2's self-mask
    def wrong(site):
        i = p.find(hub, "Unmask", sender=site)

        def edit(v):
            s = (from_bytes(v["shares"][2]) + 1) % ORDER
            return {"shares": [*v["shares"][:2], to_bytes(s), *v["shares"][3:]]}

        return hub, "frame", site, resigned(p, i, edit, site + 2)

    right = {s: (hub, "frame", s, p.frame(p.find(hub, "Unmask", sender=s))) for s in range(5)}
    start = p.find(hub, "Unmask", sender=0)
    c.add("a wrong share, corrected and named with its giver and owner", "UNM-6", name, start,
          right[0], wrong(1), right[2], right[3], right[4], sound=True)  # fmt: skip
    c.add("two wrong shares where one can be corrected: no total", "UNM-6", name, start,
          right[0], wrong(1), wrong(3), right[2], right[4])  # fmt: skip
    inputs = {s: (hub, "frame", s, p.frame(p.find(hub, "MaskedInput", sender=s))) for s in (2, 3, 4)}
    c.add("two sites gone before their inputs: fewer than t", "SUR-3",
          name, first, *((hub, "gone", s) for s in (0, 1)), *inputs.values())  # fmt: skip
    c.add("two sites gone before their shares: no total", "UNM-5", name, start,
          right[0], right[2], *((hub, "gone", s) for s in (1, 3, 4)))  # fmt: skip
    asked = frames.make(world.identities[3], world.session, "Refusal", p.frame(first)[8:40],
                        frames.message("Refusal", {"rule": "POL-3"}))  # fmt: skip
    for kind, i in [("question", ask), ("survivors", alive), ("smaller survivors", third), ("certificate", cert)]:
        steps = [(0, "frame", p.frame(i))] * 2
        if kind == "question":
            steps[1:] = [steps[0], (0, "contribute", words_of(p.steps[contribute]["in"]["contribute"])), steps[0]]
        c.add(
            f"the same {kind} again: the same bytes, or none while the answer is not there",
            "RND-7",
            name,
            i,
            *steps,
            sound=True,
        )
    c.add(
        "the application says no",
        "POL-3",
        name,
        contribute,
        (0, "refuse", "POL-3"),
        (0, "frame", p.frame(ask)),
        sound=True,
    )
    c.add("an input of a site that is gone: dropped unread", "RND-10", name, late,
          (hub, "gone", 1), (hub, "frame", 1, p.frame(late)), sound=True)  # fmt: skip
    old = p.frame(p.find(hub, "Unmask", sender=4))
    c.add("shares for a round that is over: ignored", "RND-10", name, p.find(hub, "MaskedInput", 1, sender=4),
          (hub, "frame", 4, old), sound=True)  # fmt: skip
    c.add("a refusal: the site is out", "POL-3", name, late, (hub, "frame", 1, asked), sound=True)

    # a site checks all proofs, its own too
    q = drivers["session_10"]
    named_all = q.find(0, "Survivors")
    for i in range(10):
        c.change(f"another's proof (site {i})", "SUR-5", "session_10", named_all,
                 lambda v: {**v, "inputs": replaced(v["inputs"], i, rest=H("x"))})  # fmt: skip
    return c.cases


def over_all_of_them(c, p):
    """[POL-1], [SUR-3]: a total over all sites of the roster alone."""
    name, hub = "session_same", "aggregator"
    ask, alive = p.find(0, "Ask"), p.find(0, "Survivors")
    directory = p.before[ask].sites[0].decks[0].hash
    c.change("a question to all but one, where a total is over all of them", "POL-1", name, ask,
             lambda a: {**a, "cohort": [0, 1, 2]},
             context=lambda session, a: frames.round_context(session, directory, a))  # fmt: skip
    c.change("survivors without one, where a total is over all of them", "SUR-3", name, alive,
             lambda v: {k: v[k][:3] for k in v})  # fmt: skip
    c.change("a directory without one, where a total is over all of them", "POL-1", name, p.find(0, "Directory"),
             lambda d: {**d, "entries": d["entries"][:3]})  # fmt: skip
    c.add("a site gone after its keys, where a total is over all of them", "POL-1", name,
          p.find(hub, "AcceptDirectory", sender=3), (hub, "gone", 3))  # fmt: skip


def towards_the_intermediary(c, p):
    """[UNM-1]."""
    name, ctx = "session_counted", p.frame(p.find(0, "Survivors"))[8:40]
    alive, cert = p.find(0, "Survivors"), p.find(0, "Certificate")
    c.add("the intermediary's certificate before its survivors", "UNM-2", name, alive, (0, "frame", p.frame(cert)))
    c.change("the intermediary's certificate with a signature too few", "UNM-2", name, cert,
             lambda v: {**v, "signers": v["signers"][:2], "proofs": v["proofs"][:2]}, signer=1)  # fmt: skip
    opened = frames.make(p.world.hub, p.world.session, "Opening", ctx, b"")
    c.add("a total opened by the intermediary", "OPN-2", name, p.find(0, "Ask", 1), (0, "frame", opened))


def stale_certificate(p):
    """Site 6 is missing and everybody signed so; the signatures are shown after site 5 was named missing too."""
    checks = [p.frame(p.find("aggregator", "ConsistencyCheck", sender=s)) for s in range(5)]
    proofs = [{"rest": frames.rest_hash(f[40:-64]), "signature": f[-64:]} for f in checks]
    inputs = frames.read("Survivors", p.frame(p.find(0, "Survivors"))[40:-64])["inputs"]
    inputs = frames.inputs_hash([proof["rest"] for proof in inputs])
    value = {"alive": [0, 1, 2, 3, 4, 5], "inputs": inputs, "signers": [0, 1, 2, 3, 4], "proofs": proofs}
    ctx = p.frame(p.find(0, "Survivors"))[8:40]
    hub = p.world.identities[0]
    return frames.make(hub, p.world.session, "Certificate", ctx, frames.message("Certificate", value))
