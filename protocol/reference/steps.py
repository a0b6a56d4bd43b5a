"""What the total of a question leads to, method by method (spec sections 13.3 and 13.8): the step of a round, from its blocks.

Where a cluster stands is a list of numbers: its centre, and behind it, where the method has them, the lower triangle of its covariance
and its weight in the mixture.
"""

import math

from codec import Refused
from shaped_answers import HAIR, MOST_COVARIANCE, Factor, matrices, triangle

MEANS = {"fuzzy_sums", "typical_sums", "local_fuzzy", "local_means"}
# Of all clusters together: a weight below this share cannot be told from the rounding of totals.
CLEAR_SHARE, MOST_LIFTS = 1e-9, 20


class Step:
    """From where clusters were `asked` about to where their total leads. `closing` steps may be the last one's, which nobody takes."""

    def __init__(self, asked, after, closing=False):
        self.asked, self.after, self.closing, self.gone_on = asked, after, closing, False


def named(blocks, values):
    """The values of an answer by the names of its blocks."""
    out, at = {}, 0
    for name, length, *_ in blocks:
        out.setdefault(name, []).extend(values[at : at + length])
        at += length
    return out


def allows(rule, rows, sites):
    return rows > rule["min_rows"] - 0.5 and sites > rule["min_sites"] - 0.5


def clear(weights):
    least = CLEAR_SHARE * sum(weights)
    return [w if w > least else 0.0 for w in weights]


class Steps:
    """The steps of a plan's method, of which the second half of one needs the counts of the first."""

    def __init__(self, recipe):
        self.rule, self.counts = recipe["rule"], {}
        # Columns are whitened, too, by the second moments of one cluster.
        self.has_shapes = recipe["algorithm"][0] in ("gmm", "gk")

    def stands(self, name, q):
        """Where a question asks about its clusters; nothing for a question that is none of a round."""
        if name in MEANS:
            return q["centres"]
        if name == "shaped_sums" and self.has_shapes:
            kind, model = q["model"]
            shares = [[w] for w in model["weights"]] if kind == "mixture" else [[] for _ in q["centres"]]
            return [[*c, *f, *w] for c, f, w in zip(q["centres"], matrices(q), shares)]
        return None

    def of(self, name, q, blocks, box):
        """The step that an answer to this question is, `box` its domain in the units of the question."""
        if name == "shaped_sums":
            return self.shaped(q, blocks, box)
        return self.means(name, q, blocks, box)

    def listed(self, q, k):
        """The clusters whose sums are in the answer."""
        part, places = q.get("part", ("both", None))
        return {"both": range(k), "sums": places}.get(part, [])

    def means(self, name, q, blocks, box):
        k, d = len(q["centres"]), box.columns
        weights = blocks.get("weights") or blocks["rows"]
        sums, sites = blocks.get("sums") or blocks.get("weighted_sums"), blocks.get("sites", [math.inf] * k)
        after = list(q["centres"])
        for at, (i, w) in enumerate(zip(self.listed(q, k), self.heavy(name, q, weights, sites))):
            if w > 0:
                after[i] = confined([s / w for s in sums[d * at : d * at + d]], box)
        return Step(q["centres"], after)

    def heavy(self, name, q, weights, sites):
        """The weights that move a centre."""
        if name in ("fuzzy_sums", "typical_sums"):
            return clear(weights)
        rule = self.rule
        if name == "local_fuzzy":
            rule = {**rule, "min_rows": 1}
        return [w if allows(rule, w, s) else 0.0 for w, s in zip(weights, sites)]

    def shaped(self, q, blocks, box):
        """Weights, centres and covariances of a mixture, or of Gustafson and Kessel."""
        asked, k, d = self.stands("shaped_sums", q), len(q["centres"]), box.columns
        mixture, (part, places), t = q["model"][0] == "mixture", q["part"], triangle(d)
        key = repr(asked)
        if part == "counts":
            self.counts[key] = blocks["weights"]
            return Step(asked, asked, closing=True)
        everybody = blocks["weights"] if part == "both" else self.counts[key]
        sites = blocks.get("sites", [math.inf] * k)
        open_ = self.listed(q, k)
        weights = clear(blocks["weights"]) if part == "both" else blocks["weights"]
        by = [high - low for low, high in map(box.interval, range(d))]
        after = [a[: d + t] for a in asked]
        for at, (i, w) in enumerate(zip(open_, weights)):
            if not self.moves(w, sites[at], mixture):
                continue
            old = q["centres"][i]
            new = confined([s / w for s in blocks["sums"][d * at : d * at + d]], box)
            delta = [(a - b) / e for a, b, e in zip(new, old, by)]
            scatter = [s / w for s in blocks["scatter"][t * at : t * at + t]]
            around = [s - delta[a] * delta[b] for s, (a, b) in zip(scatter, pairs(d))]
            after[i] = new + lifted(around, d, q["floor"])
        if mixture:
            total = sum(everybody)
            after = [a + [w / total] for a, w in zip(after, everybody)]
        return Step(asked, after, closing=True)

    def moves(self, weight, sites, mixture):
        rows, behind = self.rule["min_rows"], self.rule["min_sites"]
        least = rows - 0.5 if rows > 1 else float(mixture)
        return weight > 0 and weight >= least and (behind == 1 or sites > behind - 0.5)


def pairs(d):
    return [(i, j) for i in range(d) for j in range(i + 1)]


def confined(centre, box):
    return [min(max(x, low), high) for x, (low, high) in zip(centre, map(box.interval, range(box.columns)))]


def lifted(matrix, d, floor):
    """With the floor on its diagonal, and more where coarse totals leave it below."""
    more = floor
    for _ in range(MOST_LIFTS):
        matrix = [x + (more if i == j else 0.0) for x, (i, j) in zip(matrix, pairs(d))]
        if wide(matrix, d, floor):
            return matrix
        more *= 2
    raise Refused("RES-8", "second moments of no rows")


def wide(matrix, d, floor):
    try:
        return all(abs(x) <= MOST_COVARIANCE for x in matrix) and Factor(matrix, d).trace <= d / floor * (1 + HAIR)
    except Refused:
        return False
