"""Shamir's secret sharing modulo l, with two ways around wrong shares (spec sections 8.3 and 9.7).

Shares are integers below l; site number i holds the polynomial's value at i + 1 ([SHA-2]).
"""

from codec import Refused
from suite import ORDER


def to_bytes(scalar):
    return scalar.to_bytes(32, "little")


def from_bytes(data, rule="SHA-2"):
    """[SHA-2]: canonical, or no share."""
    value = int.from_bytes(data, "little")
    if len(data) != 32 or value >= ORDER:
        raise Refused(rule, "not a share")
    return value


def evaluate(polynomial, x):
    out = 0
    for c in reversed(polynomial):
        out = (out * x + c) % ORDER
    return out


def split(secret, t, members, draws):
    """[SHR-1]. The coefficients above the constant are drawn in the order of their degrees."""
    polynomial = [secret] + [draws.scalar() for _ in range(t - 1)]
    return [evaluate(polynomial, m + 1) for m in members]


def recover(shares):
    """The secret from exactly t shares, a dict from site to value: Lagrange's interpolation at 0."""
    out = 0
    for i, y in shares.items():
        above = below = 1
        for j in shares:
            if j != i:
                above = above * (j + 1) % ORDER
                below = below * (j - i) % ORDER
        out = (out + y * above * pow(below, -1, ORDER)) % ORDER
    return out


def recover_checked(shares, t, fits):
    """t of the first t + 1 shares whose secret fits the commitment; with it, the givers whose shares are wrong."""
    sites = sorted(shares)
    if len(sites) <= t:
        return None
    for out in sites[:t]:
        chosen = [s for s in sites[: t + 1] if s != out]
        secret = recover({s: shares[s] for s in chosen})
        if fits(secret):
            base = chosen[:-1]
            same = {s: recover({b: shares[b] for b in [*base, s]}) == secret for s in sites if s not in chosen}
            return secret, [s for s, right in same.items() if not right]
    return None


def recover_robust(shares, t):
    """Berlekamp and Welch: right while at most floor((m - t)/2) of the m shares are wrong; else mostly nothing."""
    sites = sorted(shares)
    for errors in range((len(sites) - t) // 2 + 1):
        # Q of degree below t + errors and a monic E of degree `errors` with Q(x) = y E(x) at every share.
        rows = []
        for s in sites:
            x, y = s + 1, shares[s]
            q = [pow(x, k, ORDER) for k in range(t + errors)]
            e = [-y * pow(x, k, ORDER) % ORDER for k in range(errors)]
            rows.append(q + e + [y * pow(x, errors, ORDER) % ORDER])
        solution = solve(rows)
        if solution is None:
            continue
        polynomial = divide(solution[: t + errors], solution[t + errors :] + [1])
        if polynomial is None:
            continue
        wrong = [s for s in sites if evaluate(polynomial, s + 1) != shares[s]]
        if len(wrong) <= (len(sites) - t) // 2 and len(polynomial) <= t:
            return polynomial[0] if polynomial else 0, wrong
    return None


def solve(rows):
    """One solution of a linear system whose last column is the right-hand side; free unknowns are 0."""
    width, pivots, at = len(rows[0]) - 1, [], 0
    for column in range(width):
        found = next((i for i in range(at, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[at], rows[found] = rows[found], rows[at]
        inverse = pow(rows[at][column], -1, ORDER)
        rows[at] = [v * inverse % ORDER for v in rows[at]]
        for i, row in enumerate(rows):
            if i != at and row[column]:
                factor = row[column]
                rows[i] = [(v - factor * p) % ORDER for v, p in zip(row, rows[at])]
        pivots.append(column)
        at += 1
    if any(row[width] for row in rows[at:]):
        return None
    solution = [0] * width
    for row, column in zip(rows, pivots):
        solution[column] = row[width]
    return solution


def divide(q, e):
    """q / e for a monic e, lowest degree first, or nothing where a remainder is left."""
    rest, out = list(q), [0] * (len(q) - len(e) + 1)
    for k in reversed(range(len(out))):
        out[k] = rest[k + len(e) - 1]
        for j, c in enumerate(e):
            rest[k + j] = (rest[k + j] - out[k] * c) % ORDER
    return None if any(rest) else out
