"""Families of questions behind the validity indices (spec section 13.5)."""

import math

from distances import add_to, check_fuzzy, memberships, nearest, square


def validation_blocks(q, domain):
    k, reaches, every, every_square = len(q["centres"]), [domain.reach(c) for c in q["centres"]], 0.0, 0.0
    for r in reaches:
        every, every_square = every + r, every_square + r * r
    near, far = min(reaches), max(reaches)
    blocks = [
        ("cluster_rows", k, 1.0), ("own_squares", k, near * near), ("own_distances", k, near), ("distances", k, far),
        ("memberships", k, 1.0), ("powers", k, 1.0), ("objectives", k, near * near), ("partition", 1, 1.0),
        ("entropy", 1, max(math.log(k), 1.0)), ("other_distances", 1, every), ("other_squares", 1, every_square),
    ]  # fmt: skip
    if q["vectors"]:
        blocks.append(("cluster_sums", k * domain.columns, domain.largest_of_all()))
        for j in range(domain.columns):
            (low, high), column = domain.interval(j), [c[j] for c in q["centres"]]
            far = max(max(abs(x - low), abs(high - x)) for x in column)
            blocks.append(("cluster_squares", k, far * far))
    return [(*block, "row") for block in blocks]


def validation(q, domain, rows):
    k, d, m = len(q["centres"]), domain.columns, q["m"]
    entries = [[] for _ in range(7 * k + 4 + (2 * k * d if q["vectors"] else 0))]
    for x in rows:
        squares, us = [square(x, c) for c in q["centres"]], memberships(x, q["centres"], m)
        far, own = [math.sqrt(s) for s in squares], nearest(x, q["centres"])[0]
        others = [i for i in range(k) if i != own]
        for block, value in enumerate([1.0, squares[own], far[own]]):
            add_to(entries, block * k + own, [value])
        for block, values in enumerate([far, us, [u**m for u in us], [u**m * s for u, s in zip(us, squares)]], 3):
            add_to(entries, block * k, values)
        entropy = -math.fsum(u * math.log(u) for u in us if u > 0)
        sums = [math.fsum(u * u for u in us), entropy, *(math.fsum(v[i] for i in others) for v in (far, squares))]
        add_to(entries, 7 * k, sums)
        if q["vectors"]:
            add_to(entries, 7 * k + 4 + own * d, x)
            for j, (a, b) in enumerate(zip(x, q["centres"][own])):
                add_to(entries, 7 * k + 4 + k * d + j * k + own, [(a - b) * (a - b)])
    return entries


VALIDATION = (check_fuzzy, validation_blocks, validation)
