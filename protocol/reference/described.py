"""What the totals of `describe` say of every column (spec section 13.8), in the form of a result's `description`, with units (`compared.py`)."""

import math

from compared import original, spans
from steps import confined

MISSING = "rows that sites read and that have no value in a column, counted before any row is left out"


def bins_of(lower, upper, counts):
    """Bins of equal width, with their rows."""
    n = len(counts)

    def edge(i):
        return upper if i == n else lower + (upper - lower) * (i / n)

    return [(edge(i), edge(i + 1), rows) for i, rows in enumerate(counts)]


def describe(told, work, domain):
    """The description of these answers, each a name, its question and its blocks."""
    d, n = domain.columns, domain.numbers
    counts, spread_rows, histogram_rows = [], None, None
    for name, q, blocks in told:
        if name == "missing":
            missing = [max(round(x), 0) for x in blocks["missing"]]
        elif name == "histogram":
            each = q["bins"] + 1
            histogram_rows = sum(blocks["rows"][:each])
            counts = [[max(round(x), 0) for x in blocks["rows"][i + 1 : i + each]] for i in range(0, len(blocks["rows"]), each)]
        elif name == "moments" and q["around"] is None:
            rows = blocks["rows"][0]
            mean = confined([s / rows for s in blocks["sums"]], domain)
        elif name == "moments":
            spread_rows = blocks["rows"][0]
            variances = [max(s / spread_rows, 0.0) for s in blocks["squares"]]
    (mean,), numbers = original([mean], domain, None), []
    for i, (column, span) in enumerate(zip(work["columns"], spans(domain))):
        bins = bins_of(column["lower"], column["upper"], counts[i])
        numbers.append(
            {
                "column": column["name"],
                "missing": missing[i],
                "mean": (mean[i], span),
                "deviation": (math.sqrt(variances[i]) * (span if domain.scaling == "box" else 1.0), span),
                "histogram": [{"from": (low, span), "to": (high, span), "rows": inside} for low, high, inside in bins],
            }
        )
    at, categories = n, []
    for of in work["categorical"]:
        shares = [min(max(x, 0.0), 1.0) for x in mean[at : at + len(of["categories"])]]
        each = [{"category": c, "rows": round(s * round(rows)), "share": (s, 1.0)} for c, s in zip(of["categories"], shares)]
        categories.append({"column": of["column"], "missing": missing[at], "counts": each})
        at += len(shares)
    out = {"rows": round(rows), "missing": MISSING, "numbers": numbers, "categories": categories}
    for key, over in (("spread_rows", spread_rows), ("histogram_rows", histogram_rows)):
        if over is not None and round(over) != out["rows"]:
            out[key] = round(over)
    return out
