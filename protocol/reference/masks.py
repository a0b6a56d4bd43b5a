"""Masks of a round (spec section 9.4) and taking them off (9.7). Vectors are lists of integers modulo 2^64."""

from shamir import to_bytes
from suite import derive, expand, stream

WRAP = 2**64


def raw(words):
    """[ENC-4]."""
    return b"".join(w.to_bytes(8, "little") for w in words)


def words_of(data):
    return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]


def next_slot(secret):
    """[MSK-1]: from a pair secret of one slot that of the next."""
    return expand(secret, "next slot")


def round_seed(pair, ctx):
    """k(u, v) of [MSK-1], from the pair secret of the slot."""
    return expand(pair, "round seed", ctx)


def self_mask_key(seed, ctx):
    """s(u) of [MSK-1], from b_r as an integer."""
    return derive(to_bytes(seed), "self-mask", ctx)


def apply(words, key, sign):
    return [(w + sign * m) % WRAP for w, m in zip(words, stream(key, len(words)))]


def mask(words, me, self_key, seeds):
    """[MSK-3]; `seeds` maps every other site of the cohort to the round seed shared with it."""
    out = apply(words, self_key, 1)
    for other in sorted(seeds):
        out = apply(out, seeds[other], 1 if me < other else -1)
    return out


def unmask(inputs, self_keys, seeds):
    """The total of section 9.7. `inputs` and `self_keys` by survivor; `seeds` by (survivor, missing)."""
    total = [0] * len(next(iter(inputs.values())))
    for site, y in inputs.items():
        total = [(a + b) % WRAP for a, b in zip(total, y)]
        total = apply(total, self_keys[site], -1)
    for (site, missing), seed in seeds.items():
        if site in inputs:
            total = apply(total, seed, -1 if site < missing else 1)
    return total
