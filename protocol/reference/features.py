"""Fuzzy feature vectors of one site (spec section 13.5, `features`)."""

import math

from domain import refuse
from distances import columns_fit, fuzzifier_fits, memberships, nearest, square


class Feature:
    def __init__(self, ls, ss=0.0, n=1, m=1.0):
        self.ls, self.ss, self.n, self.m = list(ls), ss, n, m

    def centre(self):
        return [s / self.m for s in self.ls]

    def radius(self):
        return math.sqrt(max(self.ss, 0.0) / self.n)


def merge(a, b):
    between = a.m * b.m / (a.m + b.m) * square(a.centre(), b.centre())
    return Feature([x + y for x, y in zip(a.ls, b.ls)], a.ss + b.ss + between, a.n + b.n, a.m + b.m)


def make_room(held):
    """The closest two become one, in the place of the first."""
    pairs = [(square(a.centre(), held[j].centre()), i, j) for i, a in enumerate(held) for j in range(i + 1, len(held))]
    _, i, j = min(pairs)
    second = held.pop(j)
    held[i] = merge(held[i], second)


def merge_similar(held, tau):
    """One pass: what is left keeps its order, what was merged follows, the most similar first."""
    pairs = []
    for i, a in enumerate(held):
        for j in range(i + 1, len(held)):
            apart = math.sqrt(square(a.centre(), held[j].centre()))
            similarity = (a.radius() + held[j].radius()) / apart if apart else math.inf
            if similarity >= tau:
                pairs.append((-similarity, i, j))
    gone, merged = set(), []
    for _, i, j in sorted(pairs):
        if len(held) - len(merged) <= 1:
            break
        if i not in gone and j not in gone:
            gone |= {i, j}
            merged.append(merge(held[i], held[j]))
    return [f for i, f in enumerate(held) if i not in gone] + merged


def feature_vectors(rows, p):
    held = []
    for x in rows:
        if len(held) < p["min"]:
            held.append(Feature(x))
            continue
        centres = [f.centre() for f in held]
        far = [math.sqrt(square(x, c)) for c in centres]

        def radius(i):
            others = [math.sqrt(square(c, centres[i])) for j, c in enumerate(centres) if j != i]
            return held[i].radius() or min(others, default=0.0)

        if any(far[i] <= radius(i) for i in range(len(held))):
            for f, u, apart in zip(held, memberships(x, centres, p["m"]), far):
                f.ls = [s + u * v for s, v in zip(f.ls, x)]
                f.ss, f.m, f.n = f.ss + u * apart * apart, f.m + u, f.n + 1
        else:
            if len(held) >= p["max"]:
                make_room(held)
            held.append(Feature(x))
        held = merge_similar(held, p["tau"])
    while len(held) > p["max"]:
        make_room(held)
    return held


def check(q, domain):
    p = q["params"]
    columns_fit(q["anchors"], domain)
    if not 2 <= p["min"] <= p["max"] <= 1000 or not (math.isfinite(p["tau"]) and p["tau"] > 0):
        refuse("the parameters of feature vectors")
    fuzzifier_fits(p["m"])


def blocks(q, domain):
    b, d = len(q["anchors"]), domain.columns
    longest, across = domain.reach([0.0] * d), domain.diameter()
    square_bound = longest * longest + across * across / 2.0
    return [("LS", b * d, domain.largest_of_all(), "row"), ("M", b, 1.0, "row"), ("Q", b, square_bound, "row")]


def answer(q, domain, rows):
    b, d = len(q["anchors"]), domain.columns
    ls, m, quad = [[0.0] * d for _ in range(b)], [0.0] * b, [0.0] * b
    for f in feature_vectors(rows, q["params"]):
        at = nearest(f.centre(), q["anchors"])[0]
        ls[at] = [s + x for s, x in zip(ls[at], f.ls)]
        m[at] += f.m
        quad[at] += f.ss + math.fsum(x * x for x in f.ls) / f.m
    return [x for v in ls for x in v] + m + quad


FEATURES = (check, blocks, answer)
