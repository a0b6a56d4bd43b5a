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

    whole_blocks(c, drivers["session_blocks"])
    burned_slots(c, drivers["session_burned"])
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
    promises = {
        s: (hub, "frame", s, frames.make(world.identities[s + 2], world.session, "Burned", p.frame(first)[8:40], b""))
        for s in inputs
    }
    c.add("two sites gone before their inputs: fewer than t, so the slot is burned and asked anew in another deck", "SUR-3",
          name, first, *((hub, "gone", s) for s in (0, 1)), *inputs.values(), *promises.values(), sound=True)  # fmt: skip
    c.add("three sites gone before their inputs: fewer than t, and too few to burn the slot", "SUR-3", name, first,
          *((hub, "gone", s) for s in (0, 1, 4)), inputs[2], inputs[3], promises[2], promises[3])  # fmt: skip
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


def whole_blocks(c, p):
    """[REL-4], and the certificate that undoes what a site sent ([REL-6])."""
    name = "session_blocks"
    ask = p.find(0, "Ask")
    directory = p.before[ask].sites[0].decks[0].hash
    for why, cohort in [("its reader's block", [0, 1, 3, 4, 5, 6, 7, 8]), ("another block", [0, 1, 2, 3, 4, 5, 6, 7])]:
        c.change(f"a question to a cohort that cuts {why}", "REL-4", name, ask, lambda a: {**a, "cohort": cohort},
                 context=lambda session, a: frames.round_context(session, directory, a))  # fmt: skip
    alive = p.find(0, "Survivors")
    for why, gone in [("its reader's block", 2), ("another block", 8)]:
        c.change(f"survivors that cut {why}", "REL-4", name, alive, lambda v: {
            k: [x for s, x in zip(v["alive"], v[k]) if s != gone] for k in v})  # fmt: skip
    shown = p.find(3, "Certificate")
    for why, edit in [
        ("with a signature too few", lambda v: {**v, "signers": v["signers"][:5], "proofs": v["proofs"][:5]}),
        ("with another's proof", lambda v: {**v, "proofs": [v["proofs"][1], *v["proofs"][1:]]}),
        ("with a signer who is not in it", lambda v: {**v, "signers": [0, 1, 2, 3, 7, 8]}),
        ("with its reader in it", lambda v: {**v, "alive": [0, 1, 2, 3, 6, 7, 8]}),
        ("out of order", lambda v: {**v, "alive": [1, 0, 2, 6, 7, 8]}),
        ("of a site that was not asked", lambda v: {**v, "alive": [0, 1, 2, 6, 7, 8, 9]}),
    ]:
        c.change(f"a certificate for those who are left out, {why}", "UNM-2", name, shown, edit)
    c.change("a certificate of another round that leaves its reader out: ignored", "FRM-7", name, shown, None,
             context=H("x"), sound=True)  # fmt: skip
    c.change("a certificate of another round with its reader in it", "FRM-7", name, shown,
             lambda v: {**v, "alive": [0, 1, 2, 3, 6, 7, 8]}, context=H("x"))  # fmt: skip
    undoes, third = (3, "frame", p.frame(shown)), (3, "frame", p.frame(p.find(0, "Survivors", 1)))
    c.add("a certificate that leaves its reader out, twice: told once, and no survivors after it", "REL-6", name, shown,
          undoes, undoes, third)  # fmt: skip


def burned_slots(c, p):
    """[REL-6]."""
    name, hub = "session_burned", "aggregator"
    burn, certificate = p.find(0, "Burn"), p.find(0, "BurnCertificate")
    ctx, world = p.frame(burn)[8:40], p.world
    c.change("a request to burn a slot that says something", "ENC-1", name, burn, lambda _: b"\0")
    c.change("a request to burn a slot of another round", "FRM-7", name, burn, None, context=H("x"))
    asked, burns = (0, "frame", p.frame(p.find(0, "Ask"))), (0, "frame", p.frame(burn))
    c.add("a request to burn a slot again: the same bytes", "RND-7", name, burn, burns, burns, sound=True)
    contribute = next(i for i, s in enumerate(p.steps) if s["at"] == 0 and "contribute" in s["in"])
    words = words_of(p.steps[contribute]["in"]["contribute"])
    c.add("a slot burned before the answer, which then stays here", "REL-6", name, contribute,
          burns, (0, "contribute", words), asked, sound=True)  # fmt: skip
    survivors = frames.message("Survivors", {"alive": [0, 1, 2, 3, 4], "inputs": []})
    survivors = 0, "frame", frames.make(world.hub, world.session, "Survivors", ctx, survivors)
    c.add("survivors of a burned slot", "REL-6", name, burn + 1, survivors)
    for why, edit in [
        ("with a promise too few", lambda v: {k: v[k][:2] for k in v}),
        ("with a promise twice", lambda v: {k: [v[k][0], *v[k][:3]] for k in v}),
        ("with another's promise", lambda v: {**v, "proofs": [v["proofs"][1], *v["proofs"][1:]]}),
        ("with a proof too few", lambda v: {**v, "proofs": v["proofs"][:3]}),
        ("with the promise of a stranger", lambda v: {**v, "signers": [0, 1, 2, 9]}),
        ("of nobody", lambda v: {"signers": [], "proofs": []}),
    ]:
        c.change(f"a certificate of a burned slot {why}", "REL-6", name, certificate, edit)
    c.change("a certificate of a burned slot with as many promises as it needs", "REL-6", name, certificate,
             lambda v: {k: v[k][:3] for k in v}, sound=True)  # fmt: skip
    c.change("a certificate of a burned slot of another round: ignored", "REL-6", name, certificate, None,
             context=H("x"), sound=True)  # fmt: skip
    shown = 0, "frame", p.frame(certificate)
    c.add("a certificate of a burned slot twice: told once", "REL-6", name, certificate, shown, shown, sound=True)
    c.add("a certificate of a burned slot before this site was asked to", "REL-6", name, burn, shown, burns, sound=True)
    released = p.find(0, "Survivors")
    late = frames.make(world.hub, world.session, "Burn", p.frame(released)[8:40], b"")
    c.add("a slot to be burned after the release", "REL-6", name, released + 1, (0, "frame", late))
    promise = p.find(hub, "Burned", sender=0)
    c.change("a promise that says something", "ENC-1", name, promise, lambda _: b"\0", signer=2)
    c.add("two sites gone before they promised: too few, and the run ends", "REL-4", name, promise,
          (hub, "gone", 0), (hub, "gone", 1),
          *((hub, "frame", s, p.frame(p.find(hub, "Burned", sender=s))) for s in (2, 3)))  # fmt: skip


def towards_the_intermediary(c, p):
    """[REL-8]."""
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
