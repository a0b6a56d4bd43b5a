"""Noise: exact discrete Gaussian draws, and what a budget means (spec section 18).

The account of the product minimises over the order of a divergence by golden section in doubles; here it is a search of
ever finer grids in decimal arithmetic.
"""

from decimal import Decimal, getcontext
from fractions import Fraction

from codec import U16, List, encode
from suite import H, derive, stream

getcontext().prec = 50
MAX_SIGMA = 1 << 40


class Words:
    """Words of the stream of one key."""

    def __init__(self, key):
        self.key, self.words, self.at = key, [], 0

    def word(self):
        if self.at == len(self.words):
            self.words = stream(self.key, 2 * len(self.words) or 256)
        self.at += 1
        return self.words[self.at - 1]

    def below(self, n):
        bits = (n - 1).bit_length()
        while True:
            draw = 0
            for i in range((bits + 63) // 64):
                draw |= self.word() << (64 * i)
            draw &= (1 << bits) - 1
            if draw < n:
                return draw


def key(seed, plan, aggregator, query, cohort, rows):
    """[NOI-2]."""
    return derive(seed, "noise", plan, aggregator, query, encode(List(U16), cohort), rows)


def exp_below_one(words, x):
    """True with probability exp(-x) for a fraction x of 0 to 1, given as numerator and denominator."""
    p, q = x
    k = 1
    while words.below(q * k) < p:
        k += 1
    return k % 2 == 1


def exponential(words, p, q):
    while p > q:
        if not exp_below_one(words, (1, 1)):
            return False
        p -= q
    return exp_below_one(words, (p, q))


def laplace(words, t):
    while True:
        low = words.below(t)
        if not exp_below_one(words, (low, t)):
            continue
        high = 0
        while exp_below_one(words, (1, 1)):
            high += 1
        negative = words.below(2) == 1
        size = high * t + low
        if not (negative and size == 0):
            return -size if negative else size


def gaussian(words, sigma):
    """[NOI-1]."""
    assert 1 <= sigma <= MAX_SIGMA
    while True:
        y = laplace(words, sigma)
        if exponential(words, (abs(y) - sigma) ** 2, 2 * sigma * sigma):
            return y


def epsilon(rho, delta):
    """[NOI-6]: the least epsilon at delta, by four grids of orders, each around the best point of the one before."""
    rho, delta = Decimal(rho), Decimal(delta)

    def at(x):
        above = Decimal(10) ** x
        a = 1 + above
        return rho * a + above.ln() - a.ln() - (delta.ln() + a.ln()) / above

    low, high = Decimal(-6), Decimal(12)
    for _ in range(4):
        step = (high - low) / 60
        points = [low + step * i for i in range(61)]
        best = min(points, key=at)
        low, high = best - step, best + step
    return max(Decimal(0), at(best))


def noise_cases():
    cases = []
    for sigma in (1, 4, 37, 12_345, MAX_SIGMA):
        k = H("noise vectors", sigma.to_bytes(8, "little"))
        words = Words(k)
        draws = [gaussian(words, sigma) for _ in range(24)]
        cases.append({"function": "gaussian", "key": k, "sigma": sigma, "draws": draws})
    purpose = {
        "seed": H("seed"), "plan": H("a plan"), "aggregator": b"\0" * 4, "query": b"a question", "cohort": [0, 2, 7],
        "rows": H("rows"),
    }  # fmt: skip
    k = key(**purpose)
    words = Words(k)
    cases.append({"function": "stream", **purpose, "key": k, "words": [words.word() for _ in range(4)]})
    for delta in ("1e-5", "1e-6", "1e-9"):
        for rho in ("0.00001", "0.00032", "0.0025", "0.0244", "0.1", "0.311", "1.052", "5", "40"):
            exact = float(round(epsilon(rho, delta), 15))
            cases.append({"function": "epsilon", "rho": float(Fraction(rho)), "delta": float(delta), "epsilon": exact})
    return "Noise (section 18): draws from a key, the key of an answer, and epsilon of a budget.", cases
