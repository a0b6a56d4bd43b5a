"""How far a result is from what the totals lead to (spec section 22). What was recomputed has a result's form, but in place of every
measured number a pair: the number, and what counts as one of it.
"""

import math

from shaped_answers import triangle
from steps import pairs


def apart(mine, theirs):
    """The largest difference, in these units; infinite where members, lengths, words or counts differ, or theirs is no number."""
    if isinstance(mine, tuple):
        value, unit = mine
        off = abs(value - theirs) / unit if type(theirs) in (int, float) else math.inf
        return off if off >= 0 else math.inf
    if type(mine) is not type(theirs):
        return math.inf
    if isinstance(mine, dict):
        return max((apart(mine[key], theirs[key]) for key in mine), default=0.0) if mine.keys() == theirs.keys() else math.inf
    if isinstance(mine, list):
        return max(map(apart, mine, theirs), default=0.0) if len(mine) == len(theirs) else math.inf
    return 0.0 if mine == theirs else math.inf


def spans(domain):
    return [high - low for low, high in zip(domain.lower, domain.upper)]


def original(centres, domain, t):
    """Centres of a question under the transform `t` in original units."""
    out = []
    for c in centres:
        if t is not None:
            c = [x / f + s for x, s, f in zip(c, t["shift"], t["factor"])]
        row = [x / one for x, one in zip(c[domain.numbers :], domain.indicators)]
        if domain.scaling == "box":
            c = [low + x * (high - low) for x, low, high in zip(c, domain.lower, domain.upper)]
        out.append(list(c[: domain.numbers]) + row)
    return out


def clusters(end, domain, t):
    """Clusters that a run may have ended with, as a result has them: centres in units of each column's range, covariances in units of
    the product of two deviations."""
    d, wide = domain.columns, spans(domain)
    out = {"centres": [list(zip(c, wide)) for c in original([one[:d] for one in end], domain, t)]}
    shapes = [(one[d:][: triangle(d)], one[d + triangle(d) :]) for one in end if len(one) > d]
    if shapes:
        stretch = wide if domain.scaling == "box" else [1.0] * d
        inside = [high - low for low, high in map(domain.moved(t).interval, range(d))]
        by = [s * i / f for s, i, f in zip(stretch, inside, t["factor"] if t else [1.0] * d)]
        own = [[x * by[i] * by[j] for x, (i, j) in zip(matrix, pairs(d))] for matrix, _ in shapes]
        out["covariances"] = [[(x, math.sqrt(c[triangle(i) + i] * c[triangle(j) + j])) for x, (i, j) in zip(c, pairs(d))] for c in own]
        if shapes[0][1]:
            out["weights"] = [(weight, 1.0) for _, (weight,) in shapes]
    return out


def shown(result):
    """The members of a result that `clusters` recomputes, and which it says it does not show."""
    shapes = result.get("shapes") or {}
    held = {"centres": result["centres"], **{key: shapes[key] for key in ("covariances", "weights") if key in shapes}}
    return held, {"weights"} if any(why.startswith("shapes.weights:") for why in result.get("not_shown") or []) else set()
