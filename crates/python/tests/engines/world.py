"""One data set, its plan, the questions asked of it, and the definition of a sum (specification, section 21) once more, in NumPy."""

import math

import numpy as np

import veilsum
from veilsum import questions

SEED = 16
N = 30_000
SITES = ["north", "east", "west"]
COLUMNS = {
    "age": (0.0, 120.0),
    "bmi": (10.0, 60.0),
    "sugar": (-5.0, 5.0),
    "share": (0.0, 1.0),
    "Income \"gross\"": (0.0, 250_000.0),
    "score": (-1.0, 3.0),
}
FEDERATION = veilsum.Federation.of(
    COLUMNS, sites=SITES, k=4, seed=1, exact=True, max_rows=N, min_total_rows=100
)


def rows(n=N, seed=SEED):
    """Three groups of rows; every value of ``share`` lies in the middle between two steps of the plan, so that every rounding of it
    ties, and every tenth row lies on a centre."""
    source = np.random.default_rng(seed)
    group = source.integers(3, size=n)
    x = np.column_stack([
        np.clip(30 + 25 * group + source.normal(0, 8, n), 0, 120).round(),
        np.clip(22 + 6 * group + source.normal(0, 2, n), 10, 60),
        source.uniform(-5, 5, n),
        (2 * source.integers(0, 2**BITS, n) + 1) * 2.0 ** -(BITS + 1),
        np.clip(source.lognormal(10, 0.6, n), 0, 250_000).round(2),
        source.integers(-8, 25, n) / 8,
    ])
    x[::10] = x[ON]
    return x


#: Rows that centres lie on.
ON = 7


def working(x):
    low, high = np.array(list(COLUMNS.values())).T
    return (x - low) / (high - low)


def _bits():
    around = {"transform": None, "queries": [{"moments": {"around": None}}]}
    return questions.layout(FEDERATION, around)["steps"]["exact"][1]["fraction_bits"]


#: Fraction bits of a block of coordinates under the plan.
BITS = _bits()
X = rows()
W = working(X)


def held(centres):
    return {"k": len(centres), "columns": centres.shape[1], "values": centres.ravel().tolist()}


#: One on many rows, one on a single row, two that are the same and lie on a row, and two elsewhere.
CENTRES = np.vstack([W[ON], W[11], W[12], W[12], np.full(6, 0.3), np.full(6, 0.7)])


def _asked(**query):
    return {"transform": None, "queries": [query]}


#: By name: the question.
QUESTIONS = {
    "fuzzy": questions.fuzzy_sums(CENTRES),
    "fuzzy elsewhere": questions.fuzzy_sums(np.array([[0.21] * 6, [0.5] * 6, [0.83] * 6])),
    "fuzzy, m = 1.7": questions.fuzzy_sums(CENTRES, 1.7),
    "hard": _asked(
        local_means={"centres": held(CENTRES), "local": {"most": 1, "epsilon": 0.0}, "min_rows": 1, "nearest": False}
    ),
    "moments": _asked(moments={"around": None}),
    "moments around": _asked(moments={"around": [0.5, 0.25, 0.1, 0.5, 0.3, 0.9]}),
}
LAYOUTS = {name: questions.layout(FEDERATION, question) for name, question in QUESTIONS.items()}


def squares(w, centres):
    q = np.zeros((len(w), len(centres)))
    for j in range(w.shape[1]):
        q = q + (w[:, j : j + 1] - centres[:, j]) * (w[:, j : j + 1] - centres[:, j]) if j else (w[:, :1] - centres[:, 0]) ** 2
    return q


def _added(columns):
    total = columns[:, 0]
    for k in range(1, columns.shape[1]):
        total = total + columns[:, k]
    return total


OF_LOG = [2 * math.log2(math.e) / (2 * i + 1) for i in range(11)]
OF_EXP = [1.0]
for _i in range(1, 14):
    OF_EXP.append(OF_EXP[-1] * math.log(2) / _i)


def _polynomial(x, coefficients):
    value = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


def _log2(x):
    mantissa, whole = np.frexp(x)
    low = mantissa < math.sqrt(0.5)
    mantissa, whole = np.where(low, mantissa * 2, mantissa), whole - low
    z = (mantissa - 1) / (mantissa + 1)
    return whole + z * _polynomial(z * z, OF_LOG)


def _exp2(x):
    x = np.maximum(x, -1022.0)
    whole = np.rint(x)
    return np.ldexp(1.0, np.nan_to_num(whole).astype(int)) * _polynomial(x - whole, OF_EXP)


def definition(name):
    """[SUM-1] and [SUM-2], operation by operation; ``None`` where they do not prescribe all of them."""
    query, = QUESTIONS[name]["queries"]
    (kind, of), = query.items()
    if kind == "moments":
        around = of["around"]
        values = W if around is None else (W - around) * (W - around)
        gs = [np.ones((len(W), 1)), *np.hsplit(values, values.shape[1])]
    elif kind == "fuzzy_sums":
        q = squares(W, np.array(of["centres"]["values"]).reshape(of["centres"]["k"], -1))
        on = (q == 0).sum(1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            if of["m"] == 2.0:
                i = 1 / q
                u = i * (1 / _added(i))[:, None]
                w = u * u
            else:
                r = q.min(1, keepdims=True) / q
                p = _exp2(_log2(r) * (1 / (of["m"] - 1)))
                w = p * r * _exp2(_log2(_added(p)) * -of["m"])[:, None]
        w = np.where(on > 0, np.where(q == 0, (1 / np.maximum(on, 1)) ** of["m"], 0.0), w)
        gs = [(w[:, :, None] * W[:, None, :]).reshape(len(W), -1), w]
    elif kind == "local_means":
        q = squares(W, CENTRES)
        own = np.eye(len(CENTRES))[q.argmin(1)]
        sums = np.where(own[:, :, None] == 1, W[:, None, :], 0.0).reshape(len(W), -1)
        gs = [own, sums, q.min(1, keepdims=True)]
    else:
        return None
    words = []
    for g, block in zip(gs, LAYOUTS[name]["steps"]["exact"]):
        step = 2.0 ** block["fraction_bits"]
        words.append(np.rint(g * step).astype(np.int64).sum(0))
    return np.concatenate(words)
