"""Families of questions for which a site iterates on its own rows first (spec section 13.5)."""

import math

from domain import refuse
from distances import add_to, columns_fit, fuzzifier_fits, memberships, nearest, square
from draws import uniform_centres

CLEAR = 1e-250


def steps_fit(local):
    if not 1 <= local["most"] <= 1000 or not (math.isfinite(local["epsilon"]) and local["epsilon"] >= 0):
        refuse("the steps of a site's own iteration")


def near_reach(centres, domain):
    near = min(domain.reach(c) for c in centres)
    return near * near


def joined(weights, sums, distance=None):
    """The vector: weights (K), sums (K lists of d), and where there is any, a distance."""
    return weights + [x for v in sums for x in v] + ([] if distance is None else [distance])


def check_local_fuzzy(q, domain):
    fuzzifier_fits(q["m"])
    columns_fit(q["centres"], domain)
    steps_fit(q["local"])


def local_fuzzy_blocks(q, domain):
    k, d, largest = len(q["centres"]), domain.columns, domain.largest_of_all()
    if q["pull"][0] != "nearest":
        return [("weights", k, 1.0, "row"), ("sums", k * d, largest, "row")]
    distance = float(k) * near_reach(q["centres"], domain)
    return [
        ("weights", k, float(k), "site"),
        ("sums", k * d, float(k) * largest, "site"),
        ("distances", 1, distance, "site"),
    ]


def fuzzy_step(rows, centres, m):
    """Weights and weighted sums of the memberships in `centres`."""
    weights, sums = [[] for _ in centres], [[[] for _ in c] for c in centres]
    for x in rows:
        for i, u in enumerate(memberships(x, centres, m)):
            weights[i].append(u**m)
            add_to(sums[i], 0, [u**m * v for v in x])
    return [math.fsum(w) for w in weights], [[math.fsum(v) for v in s] for s in sums]


def local_fuzzy_steps(q, rows):
    """Local centres, and the weights and weighted sums that gave them."""
    centres, m, local = q["centres"], q["m"], q["local"]
    for step in range(1, local["most"] + 1):
        weights, sums = fuzzy_step(rows, centres, m)
        after = list(centres)
        for i, w in enumerate(weights):
            if w > CLEAR:
                after[i] = [s / w for s in sums[i]]
            else:
                weights[i], sums[i] = 0.0, [0.0] * len(sums[i])
        before, centres = centres, after
        if after == before:
            break
        if local["epsilon"] > 0:
            pairs = [(memberships(x, before, m), memberships(x, after, m)) for x in rows]
            if math.sqrt(math.fsum(square(a, b) for a, b in pairs)) < local["epsilon"]:
                break
    return centres, weights, sums


def local_fuzzy(q, domain, rows):
    k, d, pull = len(q["centres"]), domain.columns, q["pull"][0]
    weights, sums, distance = [0.0] * k, [[0.0] * d for _ in range(k)], 0.0
    if len(rows) >= (k if q["local"]["most"] > 1 else 1):
        centres, powers, power_sums = local_fuzzy_steps(q, rows)
        if pull == "powers":
            weights, sums = powers, power_sums
        else:
            us = [memberships(x, centres, q["m"]) for x in rows]
            for i in (i for i in range(k) if powers[i] > 0):
                at, apart = nearest(centres[i], q["centres"])
                if pull == "memberships":
                    at, weight = i, math.fsum(u[i] for u in us)
                else:
                    weight, distance = 1.0, distance + apart
                weights[at] += weight
                sums[at] = [s + weight * x for s, x in zip(sums[at], centres[i])]
    return joined(weights, sums, distance if pull == "nearest" else None)


def check_local_means(q, domain):
    columns_fit(q["centres"], domain)
    steps_fit(q["local"])
    if q["min_rows"] == 0:
        refuse("a group of no rows")


def local_means_blocks(q, domain):
    distance = near_reach(q["centres"], domain)
    if q["local"]["most"] > 1:
        distance = max(distance, domain.diameter() * domain.diameter())
    k, d = len(q["centres"]), domain.columns
    return [("rows", k, 1.0, "row"), ("sums", k * d, domain.largest_of_all(), "row"), ("distances", 1, distance, "row")]


def groups_of(rows, centres):
    """For every centre its rows and the sum of their squared distances to it."""
    groups, squares = [[] for _ in centres], [[] for _ in centres]
    for x in rows:
        at, apart = nearest(x, centres)
        groups[at].append(x)
        squares[at].append(apart)
    return groups, [math.fsum(s) for s in squares]


def total(group, d):
    return [math.fsum(x[j] for x in group) for j in range(d)]


def local_means_steps(q, rows, d):
    centres, local = q["centres"], q["local"]
    groups, squares = groups_of(rows, centres)
    for step in range(1, local["most"]):
        kept = [i for i in range(len(centres)) if groups[i] or not (q["nearest"] and step == 1)]
        after = [[s / len(groups[i]) for s in total(groups[i], d)] if groups[i] else centres[i] for i in kept]
        moved = math.sqrt(math.fsum(square(a, centres[i]) for a, i in zip(after, kept)))
        if moved == 0 or moved < local["epsilon"]:
            break
        centres = after
        groups, squares = groups_of(rows, centres)
    return groups, squares


def lloyd(q, domain, rows):
    """A step of exact Lloyd: the list of what the rows add to each entry."""
    groups, _ = groups_of(rows, q["centres"])
    sums = [[[x[j] for x in group] for j in range(domain.columns)] for group in groups]
    apart = [nearest(x, q["centres"])[1] for x in rows]
    counts = [float(len(group)) for group in groups]
    return joined(counts, sums, apart)


def local_means(q, domain, rows):
    if q["local"]["most"] == 1 and q["min_rows"] == 1 and not q["nearest"]:
        return lloyd(q, domain, rows)
    k, d = len(q["centres"]), domain.columns
    weights, sums, distance = [0.0] * k, [[0.0] * d for _ in range(k)], 0.0
    for i, (group, apart) in enumerate(zip(*local_means_steps(q, rows, d))):
        if group and len(group) >= q["min_rows"]:
            own = total(group, d)
            at = nearest([s / len(group) for s in own], q["centres"])[0] if q["nearest"] else i
            weights[at] += len(group)
            sums[at] = [s + x for s, x in zip(sums[at], own)]
            distance += apart
    return joined(weights, sums, distance)


def check_local_choice(q, domain):
    fuzzifier_fits(q["m"])
    steps_fit(q["local"])
    if not 2 <= q["min"] <= q["most"] <= 64 or not 1 <= q["starts"] <= 16:
        refuse("the range of K, or the starts")


def index_of(q, domain, rows, k):
    """The fuzzy Davies-Bouldin index of the start with the smallest objective."""
    best = (math.inf, math.inf)
    for start in range(q["starts"]):
        centres = uniform_centres(domain, k, (q["seed"] + start) % 2**64)
        for _ in range(q["local"]["most"]):
            weights, sums = fuzzy_step(rows, centres, q["m"])
            after = [[v / w for v in s] if w > 0 else c for w, s, c in zip(weights, sums, centres)]
            moved = math.sqrt(math.fsum(square(a, c) for a, c in zip(after, centres)))
            centres = after
            if moved < q["local"]["epsilon"] or moved == 0:
                break
        us = [memberships(x, centres, q["m"]) for x in rows]
        objective = math.fsum(u ** q["m"] * square(x, c) for x, us in zip(rows, us) for u, c in zip(us, centres))
        if objective < best[0]:
            n, spread = len(rows), []
            for i, c in enumerate(centres):
                far = math.fsum(math.sqrt(square(x, c)) for x in rows)
                spread.append(math.fsum(u[i] for u in us) / n * (far / n))
            best = (objective, davies_bouldin(centres, spread))
    return best[1]


def davies_bouldin(centres, spread):
    worst = []
    for i, a in enumerate(centres):
        apart = [(j, math.sqrt(square(a, b))) for j, b in enumerate(centres) if j != i]
        if any(x == 0 for _, x in apart):
            return math.inf
        worst.append(max((spread[i] + spread[j]) / x for j, x in apart))
    return math.fsum(worst) / len(worst)


def local_choice(q, domain, rows):
    votes, tried = [0.0] * (q["most"] - q["min"] + 1), []
    for k in range(q["min"], q["most"] + 1):
        if k < len(rows):
            tried.append((index_of(q, domain, rows, k), k))
    tried = [(index, k) for index, k in tried if math.isfinite(index)]
    if tried:
        votes[elbow_alone(tried) - q["min"]] = 1.0
    return votes


def elbow_alone(tried):
    (start, first), (end, last) = tried[0], tried[-1]
    if min(tried)[1] == first:
        return first
    slope = (end - start) / (last - first)
    depths = [(-(start + slope * (k - first) - index), k) for index, k in tried if first < k < last]
    depth, k = min(depths, default=(0.0, 0))
    return k if depth < 0.0 else min(tried)[1]


LOCAL_FUZZY = (check_local_fuzzy, local_fuzzy_blocks, local_fuzzy)
LOCAL_MEANS = (check_local_means, local_means_blocks, local_means)
LOCAL_CHOICE = (
    check_local_choice,
    lambda q, domain: [("sites", q["most"] - q["min"] + 1, 1.0, "site")],
    local_choice,
)
