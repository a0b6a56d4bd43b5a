"""Fixed point: which scale is safe, and entries as ring elements (spec section 7)."""

from fractions import Fraction

from codec import Refused

MIN_PRECISION_BITS, MAX_STEP_BITS, MAX_WORDS = 20, 50, 1 << 20


def scale(sites, max_rows, bound_exp, step_bits=None):
    """[FIX-1], [FIX-2], [FIX-4]: the fractional bits of a block, the largest absolute value of one site's integer, and how many bits
    finer the rows are added up."""
    fitting = [s for s in range(MAX_STEP_BITS + 1) if sites * (max_rows + 1) * 2**s < 2**63]
    if not fitting or max(fitting) < MIN_PRECISION_BITS:
        raise Refused("FIX-2", "the sum could overflow or lose precision")
    s = max(fitting) if step_bits is None else min(max(fitting), step_bits)
    return s - bound_exp, (max_rows + 1) * 2**s, max(fitting) - s


def words(layout):
    """[FIX-3]: words of a list of (len, bound_exp)."""
    n = sum(length for length, _ in layout)
    if not 1 <= n <= MAX_WORDS:
        raise Refused("FIX-3", f"{n} words")
    return n


def carry(x, fraction_bits, limit, finer):
    """[SUM-1]: an entry as a ring element. The contributions of the rows, or what a site adds as a whole, times 2^f to the nearest
    integer in the finest steps, ties to even, and the sum of these, again to the nearest; never clipped."""
    fine = Fraction(2) ** (fraction_bits + finer)
    v = round(Fraction(sum(round(Fraction(c) * fine) for c in (x if isinstance(x, list) else [x])), 2**finer))
    if abs(v) > limit:
        raise ValueError("over the limit of one site: that site's error")
    return v % 2**64


def signed(word):
    return word - 2**64 if word >= 2**63 else word
