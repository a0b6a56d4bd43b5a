"""What a site answers: whether it may, the blocks of its answer, and its entries (spec sections 13.3 to 13.5).

Every family is a triple of functions. A block is its name, its length, its bound, and whether that bounds what one
`row` or what a whole `site` adds to an entry. Rows and points are in the units of the question.
"""

import math

from domain import BEYOND, MAX_BOUND, moved_rows, refuse
from distances import add_to, check_fuzzy, columns_fit, fuzzifier_fits, general_weights, memberships, nearest, quadratic_weights, square
from features import FEATURES
from local_answers import LOCAL_CHOICE, LOCAL_FUZZY, LOCAL_MEANS
from validity_answers import VALIDATION

MAX_BATCH, MAX_ENTRIES, MAX_BINS = 4096, 1 << 24, 1024


def fuzzy_sums_blocks(q, domain):
    k = len(q["centres"])
    return [("weighted_sums", k * domain.columns, domain.largest_of_all(), "row"), ("weights", k, 1.0, "row")]


def fuzzy_sums(q, domain, rows):
    k, d = len(q["centres"]), domain.columns
    sums, weights = [[] for _ in range(k * d)], [[] for _ in range(k)]
    for x in rows:
        if q["m"] == 2:
            powers = quadratic_weights(x, q["centres"])
        else:
            powers = general_weights(x, q["centres"], q["m"])
        for i, w in enumerate(powers):
            add_to(sums, i * d, [w * v for v in x])
            add_to(weights, i, [w])
    return sums + weights


def fuzzy_validation_blocks(q, domain):
    k, reaches = len(q["centres"]), [domain.reach(c) for c in q["centres"]]
    near = min(reaches)
    return [("distances", k, max(reaches), "row"), ("memberships", k, 1.0, "row"), ("objective", 1, near * near, "row")]


def fuzzy_validation(q, domain, rows):
    k = len(q["centres"])
    entries = [[] for _ in range(2 * k + 1)]
    for x in rows:
        squares, us = [square(x, c) for c in q["centres"]], memberships(x, q["centres"], q["m"])
        add_to(entries, 0, [math.sqrt(s) for s in squares])
        add_to(entries, k, us)
        add_to(entries, 2 * k, [math.fsum(u ** q["m"] * s for u, s in zip(us, squares))])
    return entries


def check_moments(q, domain):
    if q["around"] is not None:
        columns_fit([q["around"]], domain)
        if not all(low <= x <= high for j, x in enumerate(q["around"]) for low, high in [domain.interval(j)]):
            refuse("squares around a point outside the box")


def moments_blocks(q, domain):
    blocks = [("rows", 1, 1.0, "row")]
    for j in range(domain.columns):
        low, high = domain.interval(j)
        if q["around"] is None:
            blocks.append(("sums", 1, domain.largest(j), "row"))
        else:
            far = max(q["around"][j] - low, high - q["around"][j])
            blocks.append(("squares", 1, far * far, "row"))
    return blocks


def moments(q, domain, rows):
    columns = [[x[j] for x in rows] for j in range(domain.columns)]
    if q["around"] is not None:
        columns = [[(x - a) * (x - a) for x in column] for column, a in zip(columns, q["around"])]
    return [float(len(rows))] + columns


def check_histogram(q, domain):
    if not 2 <= q["bins"] <= MAX_BINS or not 1 <= len(q["brackets"]) <= MAX_ENTRIES // (q["bins"] + 1):
        refuse("the number of bins or brackets")
    for b in q["brackets"]:
        if b["column"] >= domain.columns:
            refuse("a bracket of no column")
        low, high = domain.interval(b["column"])
        if not low <= b["lower"] < b["upper"] <= high:
            refuse("a bracket that is empty or leaves the box")


def edge(b, i, bins):
    """Everybody computes an edge by this expression, in doubles."""
    return b["upper"] if i >= bins else min(b["lower"] + (b["upper"] - b["lower"]) * (i / bins), b["upper"])


def histogram(q, domain, rows):
    counts = []
    for b in q["brackets"]:
        edges, own = [edge(b, i, q["bins"]) for i in range(q["bins"] + 1)], [0.0] * (q["bins"] + 1)
        for x in (row[b["column"]] for row in rows):
            if x < b["lower"]:
                own[0] += 1
            elif x <= b["upper"]:
                # The last bin whose lower edge is not above the value: the last of all holds the upper end too.
                own[1 + max(i for i in range(q["bins"]) if edges[i] <= x)] += 1
        counts += own
    return counts


def whole(q, domain):
    """What `Margins` is short for: one bracket a column."""
    ends = (domain.interval(column) for column in range(domain.columns))
    return {"brackets": [dict(zip(("column", "lower", "upper"), (c, *e))) for c, e in enumerate(ends)], "bins": q["bins"]}


def check_margins(q, domain):
    check_histogram(whole(q, domain), domain)


def margins(q, domain, rows):
    return histogram(whole(q, domain), domain, rows)


def check_shifts(q, domain):
    columns_fit(q["centres"], domain)
    if q["m"] is not None:
        fuzzifier_fits(q["m"])
    if not (math.isfinite(q["clip"]) and q["clip"] > 0) or len(q["centres"]) >= MAX_ENTRIES // (domain.columns + 1):
        refuse("how far rows pull, or the number of centres")


def shifts_blocks(q, domain):
    k = len(q["centres"])
    return [("weights", k, 1.0, "row"), ("shifts", k * domain.columns, q["clip"], "row"), ("squares", 1, q["clip"] * q["clip"], "row")]


def shifts(q, domain, rows):
    k, d, m = len(q["centres"]), domain.columns, q["m"]
    middle = [low + (high - low) / 2 for low, high in map(domain.interval, range(d))]
    entries = [[] for _ in range(k + k * d + 1)]
    for x in rows:
        if m is None:
            own = [float(i == nearest(x, q["centres"])[0]) for i in range(k)]
        else:
            own = [u**m for u in memberships(x, q["centres"], m)]
        add_to(entries, 0, own)
        squares = []
        for i, u in enumerate(own):
            reference = middle if q["middle"] else q["centres"][i]
            far = square(x, reference)
            long = math.sqrt(far)
            factor = u * min(1.0, q["clip"] / long) if long > 0 else u
            add_to(entries, k + i * d, [factor * (v - r) for v, r in zip(x, reference)])
            squares.append(u * min(far, q["clip"] * q["clip"]))
        add_to(entries, k + k * d, [math.fsum(squares)])
    return entries


FAMILIES = {
    "fuzzy_sums": (check_fuzzy, fuzzy_sums_blocks, fuzzy_sums),
    "fuzzy_validation": (check_fuzzy, fuzzy_validation_blocks, fuzzy_validation),
    "local_fuzzy": LOCAL_FUZZY,
    "local_means": LOCAL_MEANS,
    "features": FEATURES,
    "moments": (check_moments, moments_blocks, moments),
    "histogram": (
        check_histogram,
        lambda q, domain: [("rows", len(q["brackets"]) * (q["bins"] + 1), 1.0, "row")],
        histogram,
    ),
    "local_choice": LOCAL_CHOICE,
    "margins": (check_margins, lambda q, domain: [("rows", domain.columns * (q["bins"] + 1), 1.0, "row")], margins),
    "validation": VALIDATION,
    "shifts": (check_shifts, shifts_blocks, shifts),
    "missing": (
        lambda q, domain: None,
        lambda q, domain: [("missing", domain.columns, 1.0, "row")],
        # The rows of the vectors lack nothing.
        lambda q, domain, rows: [[] for _ in range(domain.columns)],
    ),
}


def check_batch(batch, domain):
    """[QRY-3]: the box in the units of the questions."""
    if not 1 <= len(batch["queries"]) <= MAX_BATCH:
        refuse("no query, or too many")
    inner = domain.moved(batch["transform"])
    for name, q in batch["queries"]:
        FAMILIES[name][0](q, inner)
    return inner


def layout(question, domain):
    """The blocks of a question's answer."""
    name, q = question
    if name == "CountRows":
        return [("rows", 1, 1.0, "row")]
    batch = q["batch"] if name == "Drawn" else q
    inner = check_batch(batch, domain)
    return [block for kind, query in batch["queries"] for block in FAMILIES[kind][1](query, inner)]


def judged_layout(batch, domain):
    """[APP-5]: the blocks with every centre just beyond the lower corner of the box."""
    inner = check_batch(batch, domain)
    corner = [low - BEYOND * (high - low) for low, high in map(inner.interval, range(domain.columns))]
    if any(name not in ("fuzzy_validation", "validation") for name, _ in batch["queries"]):
        refuse("only validation is judged")
    queries = [(name, {**q, "centres": [corner] * len(q["centres"])}) for name, q in batch["queries"]]
    return layout(("Cluster", {**batch, "queries": queries}), domain)


def answer(question, domain, rows):
    """The entries of one site's answer, rows in working units: what the site adds as a whole, or the list of what its rows add."""
    name, q = question
    if name == "CountRows":
        return [float(len(rows))]
    batch = q["batch"] if name == "Drawn" else q
    inner, moved, values = check_batch(batch, domain), moved_rows(rows, batch["transform"]), []
    for kind, query in batch["queries"]:
        values += FAMILIES[kind][2](query, inner, moved)
    return values
