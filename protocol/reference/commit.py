"""Commitments to masked vectors that add up like the vectors themselves (spec section 9.8)."""

import ristretto
from suite import H, le64

NONE = bytes(32)  # where the plan opens nothing
WORDS_PER_SCALAR, SPACING = 3, 80
KNOWN = []  # the generators made so far


def generator(index):
    """[OPN-1]."""
    return ristretto.from_uniform(b"".join(H("generator", le64(index), bytes([half])) for half in (0, 1)))


def scalars(words):
    """Three words in one scalar, 80 bits apart."""
    groups = [words[i : i + WORDS_PER_SCALAR] for i in range(0, len(words), WORDS_PER_SCALAR)]
    return [sum(w << SPACING * i for i, w in enumerate(group)) for group in groups]


def point(words):
    """The commitment to integers below 2^80, as a point: all bits of one weight at a time."""
    each, total = scalars(words), ristretto.IDENTITY
    while len(KNOWN) < len(each):
        KNOWN.append(generator(len(KNOWN)))
    for bit in reversed(range(WORDS_PER_SCALAR * SPACING)):
        total = ristretto.add(total, total)
        for scalar, g in zip(each, KNOWN):
            if scalar >> bit & 1:
                total = ristretto.add(total, g)
    return total


def commit(words):
    """[OPN-1]: 32 bytes."""
    return ristretto.encode(point(words))


def are_sums(words, commitments):
    """Whether these integers are the sums of what was committed to ([INP-4], [OPN-4])."""
    total = ristretto.IDENTITY
    for c in commitments:
        p = ristretto.decode(c)
        if p is None:
            return False
        total = ristretto.add(total, p)
    return ristretto.encode(total) == ristretto.encode(point(words))
