"""Families of questions behind the validity indices (spec section 13.5)."""

import math

from domain import refuse
from distances import add_to, check_fuzzy, columns_fit, memberships, nearest, square

MAX_ENTRIES, MAX_CLASSES = 1 << 24, 4096


def validation_blocks(q, domain):
    k, reaches, every, every_square = len(q["centres"]), [domain.reach(c) for c in q["centres"]], 0.0, 0.0
    for r in reaches:
        every, every_square = every + r, every_square + r * r
    near, far = min(reaches), max(reaches)
    blocks = [
        ("cluster_rows", k, 1.0), ("own_squares", k, near * near), ("own_distances", k, near), ("distances", k, far),
        ("memberships", k, 1.0), ("powers", k, 1.0), ("objectives", k, near * near), ("partition", 1, 1.0),
        ("entropy", 1, max(math.log(k), 1.0)), ("other_distances", 1, every), ("other_squares", 1, every_square),
        ("simplified_silhouette", 1, 1.0),
    ]  # fmt: skip
    if q["vectors"]:
        blocks.append(("cluster_sums", k * domain.columns, domain.largest_of_all()))
        for j in range(domain.columns):
            (low, high), column = domain.interval(j), [c[j] for c in q["centres"]]
            far = max(max(abs(x - low), abs(high - x)) for x in column)
            blocks.append(("cluster_squares", k, far * far))
    return [(*block, "row") for block in blocks]


def validation(q, domain, rows, labels):
    k, d, m = len(q["centres"]), domain.columns, q["m"]
    entries = [[] for _ in range(7 * k + 5 + (2 * k * d if q["vectors"] else 0))]
    for x in rows:
        squares, us = [square(x, c) for c in q["centres"]], memberships(x, q["centres"], m)
        far, own = [math.sqrt(s) for s in squares], nearest(x, q["centres"])[0]
        others = [i for i in range(k) if i != own]
        second = min((far[i] for i in others), default=math.inf)
        for block, value in enumerate([1.0, squares[own], far[own]]):
            add_to(entries, block * k + own, [value])
        for block, values in enumerate([far, us, [u**m for u in us], [u**m * s for u, s in zip(us, squares)]], 3):
            add_to(entries, block * k, values)
        entropy = -math.fsum(u * math.log(u) for u in us if u > 0)
        silhouette = (second - far[own]) / second if 0 < second < math.inf else 0.0
        sums = [math.fsum(u * u for u in us), entropy, *(math.fsum(v[i] for i in others) for v in (far, squares))]
        add_to(entries, 7 * k, [*sums, silhouette])
        if q["vectors"]:
            add_to(entries, 7 * k + 5 + own * d, x)
            for j, (a, b) in enumerate(zip(x, q["centres"][own])):
                add_to(entries, 7 * k + 5 + k * d + j * k + own, [(a - b) * (a - b)])
    return entries


def check_silhouette(q, domain):
    columns_fit(q["centres"], domain)
    columns_fit(q["means"], domain)
    if any(len(q[name]) != len(q["centres"]) for name in ("means", "rows", "scatter")):
        refuse("not one mean, size and scatter for every centre")
    if not all(math.isfinite(x) and x >= 0 for x in q["rows"] + q["scatter"]):
        refuse("a size or scatter that is negative or no number")


def silhouette_blocks(q, domain):
    return [("simplified_silhouette_means", 1, 1.0, "row"), ("silhouette", 1, 1.0, "row")]


def silhouette(q, domain, rows, labels):
    sums = [[], []]
    for x in rows:
        own, sizes = nearest(x, q["centres"])[0], q["rows"]
        if sizes[own] < 1.5:
            continue
        squares = [square(x, mean) for mean in q["means"]]
        within = [w / n if n > 0.5 else 0.0 for w, n in zip(q["scatter"], sizes)]
        others = [i for i in range(len(sizes)) if i != own and sizes[i] > 0.5]
        n, near = sizes[own], min((squares[i] for i in others), default=math.inf)
        around = min((squares[i] + within[i] for i in others), default=math.inf)
        pairs = [(math.sqrt(squares[own]), math.sqrt(near)), ((squares[own] + within[own]) * n / (n - 1), around)]
        for total, (a, b) in zip(sums, pairs):
            total.append((b - a) / max(a, b) if 0 < max(a, b) < math.inf else 0.0)
    return sums


def check_contingency(q, domain):
    if not 1 <= q["classes"] <= MAX_CLASSES or len(q["centres"]) > MAX_ENTRIES // q["classes"]:
        refuse("the number of labels")
    columns_fit(q["centres"], domain)


def contingency(q, domain, rows, labels):
    counts = [0.0] * (len(q["centres"]) * q["classes"])
    for x, label in zip(rows, labels or [], strict=True):
        if label >= q["classes"]:
            raise ValueError("a label that the plan does not list")
        counts[nearest(x, q["centres"])[0] * q["classes"] + label] += 1
    return counts


VALIDATION = (check_fuzzy, validation_blocks, validation)
SILHOUETTE = (check_silhouette, silhouette_blocks, silhouette)
CONTINGENCY = (
    check_contingency,
    lambda q, domain: [("counts", len(q["centres"]) * q["classes"], 1.0, "row")],
    contingency,
)
