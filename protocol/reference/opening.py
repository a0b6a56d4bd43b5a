"""What an aggregator opens of a round, and how a site recomputes the total from it (spec section 9.8)."""

import frames
import masks
import shamir
from codec import HASH, List, Refused, encode
from commit import are_sums
from deck import commitment, slot_commitments
from suite import H



def name(ctx, message):
    """[OPN-7]: what the next question calls an opening, the bytes of whose message these are."""
    return H("opening", ctx, message)


def make(round, seeds):
    """[OPN-2]; the aggregator's round with its total, and the survivors' self-mask seeds."""
    alive, deck, sums = round.alive, round.deck, [0] * round.words
    for s in alive:
        sums = [a + b for a, b in zip(sums, round.inputs[s][1])]
    missing = [w for w in round.cohort if w not in alive]
    inputs = [{**round.opened[s], "signature": round.inputs[s][0]["signature"]} for s in alive]
    checks = [
        {"seeds": [round.seeds[s, w] for w in missing], "signature": round.signed[s]["signature"]}
        for s in (alive if missing else [])
    ]
    agreed = [{"site": s, "proof": round.agreed[s]} for s in sorted(round.agreed)[: 0 if missing else deck.threshold]]
    return {
        "alive": alive, "inputs": inputs, "seeds": [shamir.to_bytes(seeds[s]) for s in alive],
        "others": [deck.commitments[m][round.slot] for m in deck.members if m not in alive], "checks": checks,
        "agreed": agreed,
        "low": [s % masks.WRAP for s in sums], "high": [s // masks.WRAP for s in sums],
    }  # fmt: skip


def total(round, opening):
    """[OPN-2] to [OPN-6], in this order: the words. `round` is a site's."""
    env, alive = round.env, opening["alive"]
    missing = whole(round, opening)
    seeds = self_masks(round, opening)
    if env.me in alive and round.sent is not None and opening["inputs"][alive.index(env.me)]["digest"] != round.sent:
        raise Refused("OPN-5", "another input of this site than it sent")
    sums = [low + high * masks.WRAP for low, high in zip(opening["low"], opening["high"])]
    if not are_sums(sums, [i["commitment"] for i in opening["inputs"]]):
        raise Refused("OPN-4", "sums that are not those of the inputs")
    rests = [frames.opened_rest(i) for i in opening["inputs"]]
    for site, rest, shown in zip(alive, rests, opening["inputs"]):
        if not round.inputs:
            signed(round, site, "MaskedInput", round.ctx, rest, shown, "OPN-5")
        elif round.inputs[site] != rest:
            raise Refused("OPN-5", f"another input of site {site} than it had signed when it was named")
    context = frames.survivors_context(round.ctx, alive, frames.inputs_hash(rests))
    for one in opening["agreed"]:
        signed(round, one["site"], "Unmask", context, one["proof"]["rest"], one["proof"], "OPN-6")
    for site, shown in zip(alive, opening["checks"]):
        each = [{"missing": w, "seed": s} for w, s in zip(missing, shown["seeds"])]
        rest = frames.rest_hash(frames.message("ConsistencyCheck", {"round": round.ctx, "seeds": each}))
        if round.certified.get(site) != rest:
            signed(round, site, "ConsistencyCheck", context, rest, shown, "OPN-6")
    words = [s % masks.WRAP for s in sums]
    for at, site in enumerate(alive):
        words = masks.apply(words, masks.self_mask_key(seeds[site], round.ctx), -1)
        for w, seed in zip(missing, opening["checks"][at]["seeds"] if missing else []):
            words = masks.apply(words, seed, -1 if site < w else 1)
    return words


def whole(round, opening):
    """[OPN-2]: who is missing."""
    alive, words = opening["alive"], round.words
    if alive != sorted(set(alive)) or not set(alive) <= set(round.cohort):
        raise Refused("OPN-2", "a total over sites that were not asked")
    missing = [w for w in round.cohort if w not in alive]
    sizes = [len(opening[k]) for k in ("inputs", "seeds", "checks", "low", "high")]
    expected = [len(alive), len(alive), len(alive) if missing else 0, words, words]
    if sizes != expected or any(len(c["seeds"]) != len(missing) for c in opening["checks"]):
        raise Refused("OPN-2", "not everything, once for each survivor")
    agreed = [one["site"] for one in opening["agreed"]]
    if (agreed and missing) or agreed != sorted(set(agreed)) or not set(agreed) <= set(alive):
        raise Refused("OPN-2", "agreements that are not distinct survivors', or beside checks")
    if not missing and len(agreed) < round.deck.threshold:
        raise Refused("OPN-2", "too few sites agreed to the inputs")
    if any(high >= len(alive) for high in opening["high"]):
        raise Refused("OPN-2", "more carries than inputs")
    released = round.stage == "released"
    if (alive != round.alive) if released else not set(alive) <= set(round.remaining()):
        raise Refused("OPN-2", "other sites than this site knows to be in the round")
    if len(alive) < round.least():
        raise Refused("OPN-2", "fewer sites than the floor")
    return missing


def self_masks(round, opening):
    """[OPN-3]: the survivors' seeds, which are those that all members committed to."""
    deck, each, others = round.deck, [], list(opening["others"])
    seeds = dict(zip(opening["alive"], (shamir.from_bytes(s, "OPN-3") for s in opening["seeds"])))
    for m in deck.members:
        if m in seeds:
            each.append(commitment(deck.id, m, round.slot, seeds[m]))
        elif others:
            each.append(others.pop(0))
        else:
            raise Refused("OPN-3", "a commitment too few")
    if others or slot_commitments([[c] for c in each])[0] != deck.slot_commitments[round.slot]:
        raise Refused("OPN-3", "a self-mask that no site committed to")
    return seeds


def signed(round, site, kind, context, rest, shown, rule):
    proof = {"rest": rest, "signature": shown["signature"]}
    if not frames.proves(proof, round.env.key_of(site), round.env.session, kind, context):
        raise Refused(rule, f"a {kind} that site {site} did not sign")
