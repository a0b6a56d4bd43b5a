"""One round of fuzzy c-means (or of Lloyd's k-means) over the rows of one place: this project's kernel and other programs, on the same rows, in turns,
in one process, on one thread.

    python sums.py [ROWS] [COLUMNS] [CLUSTERS] [TURNS] [PROGRAM ...]

Prints one line of JSON a program: seconds of a round, one number a turn. A round is what a program's own loop does in one: the time of a fit of few
rounds is taken from that of many, so that starts and checks of the input do not count.
"""

import json
import os
import sys
import time
import warnings

# Before anything that starts threads is imported.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

import veilsum  # noqa: E402
from veilsum import _core, questions  # noqa: E402

N, D, K, TURNS = (int(word) for word in (sys.argv[1:5] + ["1000000", "16", "10", "5"][len(sys.argv[1:5]) :]))
ONLY = sys.argv[5:]
warnings.simplefilter("ignore")
random = np.random.default_rng(1)
groups = random.random((K, D))
x = np.clip(groups[random.integers(K, size=N)] + random.normal(0, 0.15, (N, D)), 0, 1)
centres = x[random.choice(N, K, replace=False)].copy()
M = 2.0

federation = veilsum.Federation.of(
    {f"x{j}": (0.0, 1.0) for j in range(D)}, sites=["a", "b", "c"], k=K, max_rows=max(N, 100), min_total_rows=100
)


QUESTION = questions.fuzzy_sums(centres, m=M)
ASKED = json.dumps(QUESTION), json.dumps(questions.layout(federation, QUESTION))


def answer():
    """A whole answer of a site from an array: rows are checked, packed and summed up in whole steps."""
    return _core.answer(*ASKED, x)[0]


def fcm(m):
    """The estimator of this project, whose rounds are the kernel's; rows are packed once."""
    return lambda rounds: veilsum.FuzzyCMeans(K, m=m, init=centres, max_iter=rounds, tol=0.0).fit(x)


def of_rounds(fit, few=2, many=12):
    """Seconds of one round, from two fits."""

    def seconds():
        begun = time.perf_counter()
        fit(few)
        between = time.perf_counter()
        fit(many)
        return (time.perf_counter() - between - (between - begun)) / (many - few)

    return seconds


def once(work):
    def seconds():
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    return seconds


def numpy_sums():
    """As one writes it with NumPy, in stretches of rows that fit into the cache."""
    sums, weights = np.zeros((K, D)), np.zeros(K)
    for first in range(0, N, 4096):
        part = x[first : first + 4096]
        squares = (part * part).sum(1)[:, None] - 2 * part @ centres.T + (centres * centres).sum(1)
        inverse = 1 / np.maximum(squares, 1e-300)
        w = (inverse / inverse.sum(1, keepdims=True)) ** 2
        sums += w.T @ part
        weights += w.sum(0)
    return sums, weights


def numba_sums():
    """One loop over the rows, compiled, with reassociation and fused operations allowed."""
    import numba

    @numba.njit(fastmath=True)
    def loop(x, centres):
        n, d = x.shape
        k = centres.shape[0]
        sums, weights, inverse = np.zeros((k, d)), np.zeros(k), np.zeros(k)
        for i in range(n):
            total = 0.0
            for c in range(k):
                square = 0.0
                for j in range(d):
                    square += (x[i, j] - centres[c, j]) ** 2
                inverse[c] = 1.0 / max(square, 1e-300)
                total += inverse[c]
            for c in range(k):
                w = (inverse[c] / total) ** 2
                weights[c] += w
                for j in range(d):
                    sums[c, j] += w * x[i, j]
        return sums, weights

    return lambda: loop(x, centres)


def scikit_fuzzy():
    import skfuzzy

    square = ((x[:, None, :] - centres) ** 2).sum(2) if N * K * D < 5e8 else np.stack([((x - c) ** 2).sum(1) for c in centres], 1)
    inverse = 1 / np.maximum(square, 1e-300)
    u = np.ascontiguousarray((inverse / inverse.sum(1, keepdims=True)).T)
    columns = x.T
    return lambda rounds: skfuzzy.cmeans(columns, K, M, error=0.0, maxiter=rounds, init=u)


def fuzzy_c_means():
    from fcmeans import FCM

    def fit(rounds):
        model = FCM(n_clusters=K, m=M, max_iter=rounds, error=1e-9, random_state=1)
        model.fit(x)

    return fit


def scikit_learn():
    from sklearn.cluster import KMeans

    return lambda rounds: KMeans(K, init=centres, n_init=1, max_iter=rounds, tol=0.0, algorithm="lloyd").fit(x)


def faiss_kmeans():
    import faiss

    faiss.omp_set_num_threads(1)
    single = np.ascontiguousarray(x, np.float32)

    def fit(rounds):
        means = faiss.Kmeans(D, K, niter=rounds, seed=1, max_points_per_centroid=N)
        means.train(single, init_centroids=centres.astype(np.float32))

    return fit


def measured():
    """Name, what it does in a round, and how to time one."""
    ours = [
        ("veilsum", "fuzzy", of_rounds(fcm(2.0))),
        ("veilsum, m = 1.5", "fuzzy", of_rounds(fcm(1.5))),
        ("veilsum, an answer in whole steps from an array", "fuzzy", once(answer)),
    ]
    for one in ours:
        one[2]()
        yield one
    peers = [
        ("NumPy in blocks", "fuzzy", lambda: once(numpy_sums)),
        ("numba, one loop", "fuzzy", lambda: once(numba_sums())),
        ("scikit-fuzzy", "fuzzy", lambda: of_rounds(scikit_fuzzy())),
        ("fuzzy-c-means", "fuzzy", lambda: of_rounds(fuzzy_c_means())),
        ("scikit-learn, Lloyd", "hard", lambda: of_rounds(scikit_learn())),
        ("faiss, single precision", "hard", lambda: of_rounds(faiss_kmeans())),
    ]
    for name, kind, begin in peers:
        if ONLY and name not in ONLY:
            continue
        try:
            seconds = begin()
            seconds()
        except Exception as e:  # Whatever keeps another program from running is said, and keeps nobody else from it.
            print(json.dumps({"program": name, "skipped": f"{type(e).__name__}: {e}".splitlines()[0][:120]}), flush=True)
        else:
            yield name, kind, seconds


def same():
    """The kernel's sums are those of NumPy, before anything is timed."""
    words, blocks = np.asarray(answer()), LAYOUT["blocks"]
    parts = np.split(words, [K * D])
    values = np.concatenate([part * 2.0 ** -block["fraction_bits"] for part, block in zip(parts, blocks)])
    sums, weights = numpy_sums()
    assert np.allclose(values, np.concatenate([sums.ravel(), weights]), rtol=1e-6), "other sums than NumPy's"


same()
programs = list(measured())
times = {name: [] for name, *_ in programs}
for _ in range(TURNS):
    for name, _, seconds in programs:
        times[name].append(seconds())
for name, kind, _ in programs:
    versions = {"numpy": np.__version__, "python": sys.version.split()[0]}
    print(json.dumps({"program": name, "kind": kind, **versions, "rows": N, "columns": D, "clusters": K, "seconds": times[name]}), flush=True)
