"""What the total of a question leads to, method by method (spec sections 13.3 and 13.8): the step of a round, from its blocks.

Where a cluster stands is a list of numbers: its centre, and behind it, where the method has them, the lower triangle of its covariance
and its weight in the mixture.
"""

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


def some(weight):
    """Whether a whole number, up to the rounding of totals, is above 0."""
    return weight > 0.5


def clear(weights):
    least = CLEAR_SHARE * sum(weights)
    return [w if w > least else 0.0 for w in weights]


class Steps:
    """The steps of a plan's method."""

    def __init__(self, recipe):
        # Columns are whitened, too, by the second moments of one cluster.
        self.has_shapes = recipe["algorithm"][0] in ("gmm", "gk")
        self.most = recipe["clusters"]["max"]

    def stands(self, name, q):
        """Where a question asks about its clusters; nothing for a question that is none of a round, such as one about candidates for
        first centres, which are more than there are clusters."""
        if name in MEANS and len(q["centres"]) <= self.most:
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

    def means(self, name, q, blocks, box):
        d = box.columns
        weights = blocks.get("weights") or blocks["rows"]
        sums = blocks.get("sums") or blocks.get("weighted_sums")
        counted = name == "local_means" or (name == "local_fuzzy" and q["pull"][0] == "nearest")
        weights = [w if some(w) else 0.0 for w in weights] if counted else clear(weights)
        after = list(q["centres"])
        for i, w in enumerate(weights):
            if w > 0:
                after[i] = confined([s / w for s in sums[d * i : d * i + d]], box)
        return Step(q["centres"], after)

    def shaped(self, q, blocks, box):
        """Weights, centres and covariances of a mixture, or of Gustafson and Kessel."""
        asked, d = self.stands("shaped_sums", q), box.columns
        mixture, t = q["model"][0] == "mixture", triangle(d)
        by = [high - low for low, high in map(box.interval, range(d))]
        after = [a[: d + t] for a in asked]
        for i, w in enumerate(clear(blocks["weights"])):
            # A component of a mixture below one row stays.
            if not w > 0 or w < mixture:
                continue
            old = q["centres"][i]
            new = confined([s / w for s in blocks["sums"][d * i : d * i + d]], box)
            delta = [(a - b) / e for a, b, e in zip(new, old, by)]
            scatter = [s / w for s in blocks["scatter"][t * i : t * i + t]]
            around = [s - delta[a] * delta[b] for s, (a, b) in zip(scatter, pairs(d))]
            after[i] = new + lifted(around, d, q["floor"])
        if mixture:
            total = sum(blocks["weights"])
            after = [a + [w / total] for a, w in zip(after, blocks["weights"])]
        return Step(asked, after, closing=True)


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
