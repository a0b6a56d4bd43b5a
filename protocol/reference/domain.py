"""The domain of the rows (the box of the spec): working units, transforms, scales of blocks (sections 7, 13.2 to 13.4)."""

import math

import fixed
from codec import Refused

MAX_BOUND, MAX_FACTOR, BEYOND = 1e150, 1e12, 2e-6


def refuse(why):
    raise Refused("APP-4", why)


class Domain:
    def __init__(self, lower, upper, scaling, indicators=()):
        """Columns of numbers, and behind them one indicator for each of `indicators`, what its one is in working units."""
        self.numbers, self.indicators = len(lower), list(indicators)
        self.lower, self.upper = [*lower, *(0.0 for _ in indicators)], [*upper, *(1.0 for _ in indicators)]
        self.scaling, self.columns = scaling, len(self.lower)

    @classmethod
    def of(cls, work):
        """The box of a plan."""
        lower, upper = ([c[end] for c in work["columns"]] for end in ("lower", "upper"))
        ones = [math.sqrt(c["weight"] / 2) for c in work["categorical"] for _ in c["categories"]]
        return cls(lower, upper, work["scaling"][0], ones)

    def interval(self, j):
        """The interval of column j in working units."""
        if j >= self.numbers:
            return (0.0, self.indicators[j - self.numbers])
        return (0.0, 1.0) if self.scaling == "box" else (self.lower[j], self.upper[j])

    def units(self):
        """[OPN-9]: what counts as one of every column in a question."""
        reach = (high - low for low, high in map(self.interval, range(self.columns)))
        return [min(1.0, one) for one in reach] if self.scaling == "none" else [1.0] * self.columns

    def largest(self, j):
        low, high = self.interval(j)
        return max(abs(low), abs(high))

    def largest_of_all(self):
        return max(self.largest(j) for j in range(self.columns))

    def reach(self, point):
        """The largest distance from `point` to a point of the box. The squares are added up in the order of the columns,
        because a bound at a power of two must come out the same everywhere."""
        total = 0.0
        for j, x in enumerate(point):
            low, high = self.interval(j)
            far = max(abs(x - low), abs(high - x))
            total += far * far
        return math.sqrt(total)

    def diameter(self):
        return self.reach([self.interval(j)[0] for j in range(self.columns)])

    def working(self, rows, out_of_box="refuse"):
        """[QRY-1]: converts rows from original units to working units."""
        out = []
        for row in rows:
            inside = all(low <= x <= high for x, low, high in zip(row, self.lower, self.upper))
            if not inside and out_of_box == "refuse":
                raise ValueError("a row outside the box")
            row = [min(max(x, low), high) for x, low, high in zip(row, self.lower, self.upper)]
            scaled = [x * one for x, one in zip(row[self.numbers :], self.indicators)]
            row = row[: self.numbers]
            if self.scaling == "box":
                row = [(x - low) / (high - low) for x, low, high in zip(row, self.lower, self.upper)]
            out.append(row + scaled)
        return out

    def moved(self, t):
        """[QRY-2]: the box in the units of a transform, which is refused where it does not fit."""
        if t is None:
            return self
        lists = [t[name] for name in ("lower", "upper", "shift", "factor")]
        if any(len(x) != self.columns for x in lists):
            refuse("a transform of other columns")
        lower, upper = [], []
        for j, (low, high, shift, factor) in enumerate(zip(*lists)):
            first, last = self.interval(j)
            shifts = (shift == 0 and factor == 1) or first <= shift <= last
            scales = 0 < factor <= MAX_FACTOR / max(last - first, 1.0)
            if not (first <= low < high <= last and shifts and scales):
                refuse(f"the transform of column {j}")
            lower.append((low - shift) * factor)
            upper.append((high - shift) * factor)
        if any(not (abs(a) <= MAX_BOUND and abs(b) <= MAX_BOUND and a < b) for a, b in zip(lower, upper)):
            refuse("a transform that leaves no box")
        return Domain(lower, upper, "none")


def moved_rows(rows, t):
    if t is None:
        return rows
    columns = list(zip(t["lower"], t["upper"], t["shift"], t["factor"]))
    return [[(min(max(x, low), high) - s) * f for x, (low, high, s, f) in zip(row, columns)] for row in rows]


def exponent(bound):
    """[QRY-4]: the smallest e with bound <= 2^e, from -512 to 1000."""
    if bound <= 0:
        return -512
    mantissa, e = math.frexp(bound)  # bound = mantissa * 2^e, mantissa in [1/2, 1)
    return min(max(e - 1 if mantissa == 0.5 else e, -512), 1000)


def scaled(blocks, sites, max_rows, step_bits=None):
    """Name, length, exponent, fractional bits and limit of every block, and how many bits finer rows are added up."""
    out = []
    for name, length, bound, per in blocks:
        e = exponent(bound)
        out.append((name, length, e, *fixed.scale(sites, 1 if per == "site" else max_rows, e, step_bits)))
    fixed.words([(length, e) for _, length, e, *_ in out])
    return out


def carried(values, scales):
    """Encodes an answer as its words."""
    at, words = 0, []
    for _, length, _, *scale in scales:
        words += [fixed.carry(x, *scale) for x in values[at : at + length]]
        at += length
    assert at == len(values)
    return words
