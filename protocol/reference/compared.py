"""How far a result is from what the totals lead to (spec section 22). What was recomputed has a result's form, but in place of every
measured number a pair: the number, and what counts as one of it.
"""

import math


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
    """Clusters that a run may have ended with, as a result has them: centres in units of each column's range."""
    return {"centres": [list(zip(c, spans(domain))) for c in original(end, domain, t)]}
