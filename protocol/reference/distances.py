"""Distances, memberships and the nearest centre (spec section 13.4), for numbers that doubles can hold squared."""

import math

from domain import refuse


def square(a, b):
    """[SUM-2]: in the order of the columns, every operation rounded."""
    total = 0.0
    for x, y in zip(a, b):
        total += (x - y) * (x - y)
    return total


def quadratic_weights(x, centres):
    """[SUM-2]: the weights u_k^2 of fuzzy c-means for m = 2, in the order of the centres, every operation rounded."""
    squares = [square(x, c) for c in centres]
    if min(squares) == 0:
        return [u * u for u in memberships(x, centres, 2.0)]
    inverses, total = [1 / s for s in squares], 0.0
    for inverse in inverses:
        total += inverse
    scale = 1 / total
    return [(inverse * scale) * (inverse * scale) for inverse in inverses]


#: [SUM-2]: of log2((1 + z) / (1 - z)) in odd powers of z, and of 2^f.
OF_LOG = [2 * math.log2(math.e) / (2 * i + 1) for i in range(11)]
OF_EXP = [1.0]
for i in range(1, 14):
    OF_EXP.append(OF_EXP[-1] * math.log(2) / i)
ROOT_OF_HALF = math.sqrt(0.5)


def polynomial(x, coefficients):
    value = 0.0
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def log2(x):
    mantissa, whole = math.frexp(x)
    if mantissa < ROOT_OF_HALF:
        mantissa, whole = mantissa * 2, whole - 1
    z = (mantissa - 1) / (mantissa + 1)
    return whole + z * polynomial(z * z, OF_LOG)


def exp2(x):
    x = max(x, -1022.0)
    whole = round(x)
    return math.ldexp(1.0, whole) * polynomial(x - whole, OF_EXP)


def general_weights(x, centres, m):
    """[SUM-2]: the weights u_k^m of fuzzy c-means for another m, in the order of the centres, every operation rounded."""
    squares = [square(x, c) for c in centres]
    least = min(squares)
    if least == 0:
        return [u**m for u in memberships(x, centres, m)]
    ratios, total = [least / s for s in squares], 0.0
    powers = [exp2(log2(ratio) * (1 / (m - 1))) for ratio in ratios]
    for power in powers:
        total += power
    scale = exp2(log2(total) * -m)
    return [power * ratio * scale for power, ratio in zip(powers, ratios)]


def nearest(x, points):
    """Index and squared distance; among equals the lowest index."""
    squares = [square(x, p) for p in points]
    least = min(squares)
    return squares.index(least), least


def memberships(x, centres, m):
    """[QRY-5]."""
    squares = [square(x, c) for c in centres]
    least = min(squares)
    if least == 0:
        ties = squares.count(0)
        return [1 / ties if s == 0 else 0.0 for s in squares]
    ratios = [(least / s) ** (1 / (m - 1)) for s in squares]
    total = math.fsum(ratios)
    return [r / total for r in ratios]


def add_to(entries, at, values):
    for i, value in enumerate(values):
        entries[at + i].append(value)


def fuzzifier_fits(m):
    if not (math.isfinite(m) and m > 1):
        refuse("the fuzzifier")


def columns_fit(points, domain):
    if len(points[0]) != domain.columns:
        refuse("points of other columns")


def check_fuzzy(q, domain):
    fuzzifier_fits(q["m"])
    columns_fit(q["centres"], domain)
