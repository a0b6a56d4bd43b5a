"""What the totals at the anchors of `ffcf` lead to: feature vectors that are merged and clustered by weighted fuzzy c-means."""

import math

from codec import Refused
from distances import memberships, square
from draws import Stream
from features import Feature, merge
from steps import some

STARTS, EPSILON, SETTLED, MOST = b"veilsum ffcf starts v1  ", 1e-6, 1e-13, 1000
RESTARTS = 10


def features_of(blocks):
    """One for each anchor that any feature vector counts at."""
    m, d = blocks["M"], len(blocks["LS"]) // len(blocks["M"])
    out = []
    for i, mass in enumerate(m):
        if some(mass):
            ls = blocks["LS"][i * d : i * d + d]
            out.append(Feature(ls, max(blocks["Q"][i] - sum(x * (x / mass) for x in ls), 0.0), mass, mass))
    return out


def merged(held, tau, fewest):
    """Passes until nothing is similar any more, or so few are left."""
    held = sorted(held, key=Feature.centre)
    while True:
        pairs = []
        for i, a in enumerate(held):
            for j in range(i + 1, len(held)):
                apart = math.sqrt(square(a.centre(), held[j].centre()))
                radii = math.sqrt(max(a.ss, 0.0) / a.m) + math.sqrt(max(held[j].ss, 0.0) / held[j].m)
                similarity = radii / apart if apart else math.inf
                if similarity >= tau:
                    pairs.append((-similarity, i, j))
        gone, new = set(), []
        for _, i, j in sorted(pairs):
            if len(held) - len(new) <= fewest:
                break
            if i not in gone and j not in gone:
                gone |= {i, j}
                new.append(merge(held[i], held[j]))
        if not new:
            return held
        held = [f for i, f in enumerate(held) if i not in gone] + new


def plus_plus(points, weights, k, stream):
    """Greedy k-means++: each next one is the best of 2 + floor(ln K) candidates."""
    squares, taken, centres = [1.0] * len(points), [], []
    for turn in range(k):
        masses, best = [w * s for w, s in zip(weights, squares)], None
        total = math.fsum(masses)
        for _ in range((2 + int(math.log(k)) if turn else 1) if total > 0 else 0):
            threshold, run, at = stream.unit() * total, 0.0, 0
            for i, mass in enumerate(masses):
                if mass > 0:
                    run, at = run + mass, i
                    if run > threshold:
                        break
            left = [square(p, points[at]) for p in points]
            left = [min(a, b) for a, b in zip(left, squares)] if turn else left
            potential = math.fsum(w * s for w, s in zip(weights, left))
            if best is None or potential < best[0]:
                best = potential, at, left
        if best is None:
            free = [i for i in range(len(points)) if i not in taken]
            at = next((i for i in free if weights[i] > 0), free[0] if free else turn % len(points))
            best = 0.0, at, [0.0] * len(points)
        taken.append(best[1])
        centres.append(points[best[1]])
        squares = best[2]
    return centres


def weighted(points, weights, centres, m, epsilon):
    """Weighted fuzzy c-means: the centres, and the objective at them."""
    for _ in range(MOST):
        us, after = [memberships(p, centres, m) for p in points], []
        for i, centre in enumerate(centres):
            shares = [w * u[i] ** m for w, u in zip(weights, us)]
            mass = math.fsum(shares)
            after.append([math.fsum(s * p[j] for s, p in zip(shares, points)) / mass for j in range(len(centre))] if mass > 0 else centre)
        moved = math.sqrt(math.fsum(square(a, b) for a, b in zip(after, centres)))
        centres = after
        if moved < epsilon or moved == 0:
            break
    us = [memberships(p, centres, m) for p in points]
    each = [w * u**m * square(p, c) for p, w, row in zip(points, weights, us) for u, c in zip(row, centres)]
    return centres, math.fsum(each)


def clustered(held, k, spec, seed):
    """The centres of K clusters of these feature vectors."""
    if len(held) < k:
        raise Refused("RES-8", "fewer open anchors than clusters")
    if spec["merge"]:
        held = merged(held, spec["features"]["tau"], k)
    points, weights, stream = [f.centre() for f in held], [f.m for f in held], Stream(seed, STARTS)
    fits = [weighted(points, weights, plus_plus(points, weights, k, stream), spec["m"], EPSILON) for _ in range(RESTARTS)]
    least = min(objective for _, objective in fits)
    best = next(centres for centres, objective in fits if objective <= least + 1e-9 * abs(least))
    return weighted(points, weights, best, spec["m"], SETTLED)[0]
