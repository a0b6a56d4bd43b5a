"""How fast is `FuzzyCMeans.fit`, beside the kernel that it calls and beside scikit-fuzzy? All of them on the same rows, in turns, in one process.

    python benches/python/fit.py [rows] [columns] [clusters]

Needs a wheel of the profile `dist` (`VEILSUM_WHEEL=dist .ci/python` builds one), and scikit-fuzzy for the second ratio.
"""

import json
import sys
import time

import numpy as np

import veilsum
from veilsum import _core

n, d, k = (int(word) for word in (sys.argv[1:] + ["1000000", "16", "10"][len(sys.argv) - 1 :])[:3])
random = np.random.default_rng(1)
centres = random.random((k, d))
rows = np.clip(centres[random.integers(k, size=n)] + random.normal(0, 0.15, (n, d)), 0, 1)
start = rows[random.choice(n, k, replace=False)]
VALIDITY = json.dumps({"full": False, "vectors": False, "judge_m": 2.0})
ROUNDS = 30


def spent(work):
    begun = time.perf_counter()
    done = work()
    return time.perf_counter() - begun, done


def fit():
    return veilsum.FuzzyCMeans(k, init=start, max_iter=ROUNDS, tol=0).fit(rows)


def kernel():
    """What the fit asks of the compiled part, packing, validity totals and labels included, and nothing around it."""
    algorithm = json.dumps({"fcm": {"m": 2.0, "epsilon": 0.0, "max_rounds": ROUNDS}})
    return _core.fit(rows, algorithm, VALIDITY, start[None])


def scikit_fuzzy():
    import skfuzzy

    u = _core.memberships(rows, start, 2.0).T
    return skfuzzy.cmeans(rows.T, k, 2.0, error=0.0, maxiter=3, init=np.ascontiguousarray(u))


print(f"n = {n}, d = {d}, K = {k}, m = 2, {ROUNDS} rounds")
best = {fit: np.inf, kernel: np.inf}
for _ in range(5):
    for work in best:
        best[work] = min(best[work], spent(work)[0])
print(f"kernel {best[kernel]:.3f} s, fit {best[fit]:.3f} s: {best[fit] / best[kernel]:.3f} times")
try:
    import skfuzzy  # noqa: F401
except ImportError:
    print("SKIPPED: scikit-fuzzy is not installed")
else:
    theirs = min(spent(scikit_fuzzy)[0] for _ in range(2)) / 3
    ours = best[fit] / ROUNDS
    print(f"a round: scikit-fuzzy {theirs * 1e3:.0f} ms, fit {ours * 1e3:.0f} ms, all of it counted: {theirs / ours:.0f} times")
