"""Boxes, rows and questions that the vectors of section 13 are made of."""

from domain import Domain
from draws import Stream

BOXES = {
    "scaled": Domain([-1.0, 10.0], [3.0, 30.0], "box"),
    "raw": Domain([-1.0, 10.0], [3.0, 30.0], "none"),
    "mixed": Domain([-1.0], [3.0], "none", [0.25, 0.25]),
    "unit": Domain([0.0, 0.0], [1.0, 1.0], "none"),
}


def some_rows(seed, n, middles):
    """Rows around points of the scaled box, in thousandths of its extent."""
    stream, out = Stream(seed, b"veilsum question vectors"), []
    for i in range(n):
        x, y = (min(max(c + 0.3 * (stream.unit() - 0.5), 0), 1) for c in middles[i % len(middles)])
        out.append([round(-1 + 4 * x, 3), round(10 + 20 * y, 2)])
    return out


def grid():
    """Rows that coincide with centres, lie half-way between them, and on edges of bins."""
    return [[-1.0 + i, 10.0 + 5 * j] for i in range(5) for j in range(5)] + [[0.0, 15.0]] * 3


ROWS = {
    "three clumps": some_rows(1, 45, [(0.2, 0.2), (0.8, 0.3), (0.4, 0.8)]),
    "one clump": some_rows(2, 12, [(0.75, 0.25)]),
    "grid": grid(),
    "one row": [[0.5, 17.25]],
    "none": [],
}
THREE = [[0.25, 0.25], [0.75, 0.25], [0.5, 0.75]]
RAW = [[0.0, 15.0], [2.0, 15.0], [1.0, 25.0]]
TIED = [[0.25, 0.25], [0.25, 0.25], [0.75, 0.75], [2.0, -1.0]]


def steps(most, epsilon=0.0):
    return {"most": most, "epsilon": epsilon}


def local_fuzzy(pull, centres=THREE, most=4, epsilon=0.0, m=2.0):
    local = steps(most, epsilon)
    return "local_fuzzy", {"centres": centres, "m": m, "local": local, "pull": (pull, {})}


def local_means(centres=THREE, most=1, epsilon=0.0, min_rows=1, nearest=False):
    return "local_means", {"centres": centres, "local": steps(most, epsilon), "min_rows": min_rows, "nearest": nearest}


def features(anchors=THREE, low=3, high=6, tau=1.0):
    return "features", {"anchors": anchors, "params": {"min": low, "max": high, "tau": tau, "m": 2.0}}


def moments(around=None):
    return "moments", {"around": around}


def histogram(bins, *brackets):
    names = ("column", "lower", "upper")
    return "histogram", {"brackets": [dict(zip(names, b)) for b in brackets], "bins": bins}


def local_choice(low, most, m=2.0, local=None, starts=2):
    local = local or steps(60, 1e-6)
    return "local_choice", {"min": low, "most": most, "m": m, "local": local, "seed": 2**64 - 1, "starts": starts}


def margins(bins):
    return "margins", {"bins": bins}


def validation(centres=THREE, m=2.0, vectors=True):
    return "validation", {"centres": centres, "m": m, "vectors": vectors}


def shifts(clip, m=2.0, middle=True, centres=THREE, round=0):
    return "shifts", {"centres": centres, "m": m, "middle": middle, "clip": clip, "round": round}


def fuzzy(name, centres=THREE, m=2.0):
    return name, {"centres": centres, "m": m}


STANDARD = {"lower": [0.1, 0.0], "upper": [0.9, 1.0], "shift": [0.5, 0.25], "factor": [4.0, 2.5]}
GOOD = {
    "fuzzy sums": [fuzzy("fuzzy_sums")],
    "fuzzy sums, m below 2": [fuzzy("fuzzy_sums", m=1.5)],
    "fuzzy sums, centres twice and outside": [fuzzy("fuzzy_sums", TIED)],
    "fuzzy validation": [fuzzy("fuzzy_validation")],
    "fuzzy validation, m = 3, centres twice": [fuzzy("fuzzy_validation", TIED, 3.0)],
    "avg1 of memberships": [local_fuzzy("memberships")],
    "avg1 of powers": [local_fuzzy("powers", m=1.5)],
    "avg1 of powers after one step": [local_fuzzy("powers", most=1)],
    "avg2": [local_fuzzy("nearest", TIED)],
    "avg1, stop by memberships": [local_fuzzy("powers", most=50, epsilon=1.0)],
    "avg1, centres that no row gives weight": [local_fuzzy("memberships", most=3, m=1.004)],
    "avg2, stop by memberships": [local_fuzzy("nearest", most=50, epsilon=0.01)],
    "one Lloyd step": [local_means()],
    "one Lloyd step, ties": [local_means(TIED)],
    "Lloyd steps, groups of five, aligned": [local_means(TIED, most=5, min_rows=5, nearest=True)],
    "Lloyd steps by index, stop by centres": [local_means(most=20, epsilon=0.05)],
    "Lloyd steps, stop by centres": [local_means([[0.0, 0.0], [0.15, 0.0], [0.0, 0.05]], most=9, epsilon=0.2)],
    "features": [features()],
    "moments": [moments()],
    "moments around a point": [moments([0.5, 0.375])],
    "histogram": [histogram(4, (0, 0.0, 1.0), (1, 0.25, 0.75), (1, 0.1, 0.2))],
    "local choice": [local_choice(2, 4)],
    "margins": [margins(16)],
    "validation": [validation()],
    "validation without vectors, m below 2": [validation(m=1.5, vectors=False)],
    "validation, centres twice": [validation(TIED)],
    "validation, one cluster": [validation([[0.5, 0.5]])],
    "shifts around the middle": [shifts(0.75)],
    "shifts around the centres": [shifts(0.2, 1.5, False, TIED, 7)],
    "shifts of hard groups": [shifts(0.3, None, False)],
    "missing values": [("missing", {})],
    "several": [fuzzy("fuzzy_sums"), fuzzy("fuzzy_sums", THREE[:2]), moments()],
}
UNITS = {
    "standardised": ("scaled", STANDARD, [fuzzy("fuzzy_sums"), validation(), moments([0.0, 0.0])]),
    "raw units": ("raw", None, [fuzzy("fuzzy_sums", RAW), fuzzy("fuzzy_validation", RAW), local_means(RAW)]),
    "raw units, moments": ("raw", None, [moments(), moments([1.0, 20.0]), histogram(5, (1, 12.5, 22.5))]),
    "raw units, features": ("raw", None, [features(RAW)]),
}
MIXED = [[0.0, 0.25, 0.0], [1.0, 0.0, 0.25]]
# Bounds at and beside powers of two, where both ends must come to the same exponent; nobody answers these.
BOUNDS = {
    "a bound of 2 by way of its root": ("unit", [fuzzy("fuzzy_validation", [[0.0, 0.0]])]),
    "a bound of 1": ("unit", [fuzzy("fuzzy_validation", [[0.0, 0.5], [0.5, 0.5]])]),
    "avg2 of five": ("raw", [local_fuzzy("nearest", RAW + RAW[:2])]),
    "Lloyd": ("raw", [local_means(RAW), local_means(RAW, most=2)]),
    "Lloyd, far": ("raw", [local_means([[9.0, 99.0]], most=2)]),
    "features": ("raw", [features(RAW)]),
    "categories": ("mixed", [fuzzy("fuzzy_sums", MIXED), fuzzy("fuzzy_validation", MIXED), moments([0.5, 0.25, 0.0])]),
    "many centres": ("scaled", [validation([[i / 16, 1 - i / 16] for i in range(17)])]),
}


def question_of(queries, transform=None):
    return "Cluster", {"transform": transform, "queries": queries}
