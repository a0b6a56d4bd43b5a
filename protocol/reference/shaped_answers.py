"""Second moments of clusters that have covariances: `ShapedSums`, `ShapedShifts` (spec sections 13.3 to 13.5).

Matrices are lower triangles, row by row. What a plain implementation would take from a library is written out: the factor L
with L Lᵀ = C, whose squares of the inverse add up to the trace of C's inverse.
"""

import math

from distances import columns_fit, fuzzifier_fits
from domain import refuse

MAX_COLUMNS, MAX_NUMBERS, LEAST_FLOOR, MOST_COVARIANCE, HAIR = 64, 1 << 20, 1e-9, 4.0, 1e-3
LEAST_LOG_LIKELIHOOD, FAR, LOG_TAU = -8192.0, 1.0 + 2.0 * 1e-6, math.log(2 * math.pi)


def triangle(d):
    return d * (d + 1) // 2


def matrices(q):
    t = triangle(len(q["centres"][0]))
    return [q["covariances"][i * t : (i + 1) * t] for i in range(len(q["centres"]))]


class Factor:
    """Of a matrix that is positive definite, else a refusal."""

    def __init__(self, matrix, d):
        self.lower, self.log_det = [[0.0] * d for _ in range(d)], 0.0
        for i in range(d):
            for j in range(i + 1):
                known = 0.0
                for k in range(j):
                    known += self.lower[i][k] * self.lower[j][k]
                rest = matrix[triangle(i) + j] - known
                if i != j:
                    self.lower[i][j] = rest / self.lower[j][j]
                    continue
                if not 0 < rest < math.inf:
                    refuse("a covariance that is not positive definite")
                self.lower[i][i] = math.sqrt(rest)
                self.log_det += math.log(rest)
        self.trace = 0.0
        for column in range(d):
            self.trace += self.distance([float(i == column) for i in range(d)])

    def distance(self, z):
        """zᵀ C⁻¹ z, by forward substitution."""
        y, total = [], 0.0
        for i, value in enumerate(z):
            known = 0.0
            for k in range(i):
                known += self.lower[i][k] * y[k]
            y.append((value - known) / self.lower[i][i])
            total += y[i] * y[i]
        return total


def check(q, domain):
    columns_fit(q["centres"], domain)
    k, d = len(q["centres"]), domain.columns
    if d > MAX_COLUMNS or k > MAX_NUMBERS // (triangle(d) + d + 1) or len(q["covariances"]) != k * triangle(d):
        refuse("too many columns or clusters, or not one covariance for each")
    if not LEAST_FLOOR <= q["floor"] <= 1:
        refuse("the smallest variance")
    for j, (low, high) in enumerate(map(domain.interval, range(d))):
        hair = 1e-6 * (high - low)
        if not all(low - hair <= c[j] <= high + hair for c in q["centres"]):
            refuse("a centre outside the box")
    kind, model = q["model"]
    if kind == "mixture":
        weights = model["weights"]
        if len(weights) != k or not all(0 <= w <= 1 + 1e-6 for w in weights) or abs(sum(weights) - 1) > 1e-6:
            refuse("the weights of the mixture")
    else:
        fuzzifier_fits(model["m"])
    most = d / q["floor"] * (1 + HAIR)
    for matrix in matrices(q):
        if not all(abs(x) <= MOST_COVARIANCE for x in matrix) or not Factor(matrix, d).trace <= most:
            refuse("a covariance wider than the box, or below the smallest variance")


def blocks(q, domain):
    k, d = len(q["centres"]), domain.columns
    bound = -LEAST_LOG_LIKELIHOOD
    if q["model"][0] != "mixture":
        factors = [Factor(matrix, d) for matrix in matrices(q)]
        bound = min(math.exp(f.log_det / d) * f.trace * d * FAR * FAR for f in factors)
    return [
        ("weights", k, 1.0, "row"),
        ("sums", k * d, domain.largest_of_all(), "row"),
        ("scatter", k * triangle(d), FAR * FAR, "row"),
        ("fit", 1, bound, "row"),
    ]


def weights_of(q, factors, zs):
    """A row's weights, and its part of the fit."""
    kind, model = q["model"]
    d, squares = len(zs[0]), [f.distance(z) for f, z in zip(factors, zs)]
    if kind == "mixture":
        logs = [
            math.log(p) - 0.5 * (f.log_det + d * LOG_TAU + s) if p > 0 else -math.inf
            for p, f, s in zip(model["weights"], factors, squares)
        ]
        most = max(logs)
        parts = [math.exp(x - most) for x in logs]
        total = math.fsum(parts)
        return [p / total for p in parts], max(most + math.log(total), LEAST_LOG_LIKELIHOOD)
    squares = [math.exp(f.log_det / d) * s for f, s in zip(factors, squares)]
    least = min(squares)
    if least == 0:
        ratios = [float(s == 0) for s in squares]
    else:
        ratios = [(least / s) ** (1 / (model["m"] - 1)) for s in squares]
    total = math.fsum(ratios)
    powers = [(r / total) ** model["m"] for r in ratios]
    return powers, math.fsum(p * s for p, s in zip(powers, squares))


def answer(q, domain, rows):
    k, d = len(q["centres"]), domain.columns
    factors, extents = [Factor(m, d) for m in matrices(q)], [b - a for a, b in map(domain.interval, range(d))]
    weights, fit = [[] for _ in range(k)], []
    sums, scatter = [[[] for _ in range(d)] for _ in range(k)], [[[] for _ in range(triangle(d))] for _ in range(k)]
    for x in rows:
        zs = [[(v - c) / e for v, c, e in zip(x, centre, extents)] for centre in q["centres"]]
        own, part = weights_of(q, factors, zs)
        fit.append(part)
        for i, w in enumerate(own):
            weights[i].append(w)
            for j in range(d):
                sums[i][j].append(w * x[j])
                for i2 in range(j + 1):
                    scatter[i][triangle(j) + i2].append(w * zs[i][j] * zs[i][i2])
    return weights + [x for one in sums for x in one] + [x for one in scatter for x in one] + [fit]


def check_shifts(q, domain):
    check(q["clusters"], domain)
    if not 0 < q["clip"] < math.inf:
        refuse("how far a row pulls")


def shifts_blocks(q, domain):
    k, d, clip = len(q["clusters"]["centres"]), domain.columns, q["clip"]
    return [
        ("weights", k, 1.0, "row"),
        ("shifts", k * d, clip, "row"),
        ("scatter", k * triangle(d), clip * clip, "row"),
    ]


def shifts(q, domain, rows):
    clusters, clip, d = q["clusters"], q["clip"], domain.columns
    k, factors = len(clusters["centres"]), [Factor(m, d) for m in matrices(clusters)]
    extents = [b - a for a, b in map(domain.interval, range(d))]
    weights, sums = [[] for _ in range(k)], [[[] for _ in range(d)] for _ in range(k)]
    scatter = [[[] for _ in range(triangle(d))] for _ in range(k)]
    for x in rows:
        zs = [[(v - c) / e for v, c, e in zip(x, centre, extents)] for centre in clusters["centres"]]
        for i, (w, z) in enumerate(zip(weights_of(clusters, factors, zs)[0], zs)):
            shorter = min(1.0, clip / max(math.hypot(*z), 1e-300))
            y = [shorter * part for part in z]
            weights[i].append(w)
            for j in range(d):
                sums[i][j].append(w * y[j])
                for j2 in range(j + 1):
                    scatter[i][triangle(j) + j2].append(w * y[j] * y[j2])
    return weights + [x for one in sums for x in one] + [x for one in scatter for x in one]


SHAPED_SUMS = (check, blocks, answer)
SHAPED_SHIFTS = (check_shifts, shifts_blocks, shifts)
