"""Makes tests/models.json: what independent implementations give for Gaussian mixtures, Gustafson-Kessel, the noise cluster and
possibilistic c-means.

`gmm` is scikit-learn's GaussianMixture (`pip install scikit-learn`), the others the plain numpy below. Neither is needed to run
the tests, which read the JSON. From this folder: `python3 models.py > models.json`.
"""

import json

import numpy
from sklearn.mixture import GaussianMixture

FLOOR = 1e-6


def rows(seed, groups):
    """Rows in the unit box, in ten-thousandths."""
    draw = numpy.random.default_rng(seed)
    parts = [draw.multivariate_normal(mean, cov, size) for mean, cov, size in groups]
    return numpy.clip(numpy.round(numpy.concatenate(parts), 4), 0, 1)


THIN = [[0.02, 0.018], [0.018, 0.02]]
ROUND = [[0.002, 0.0], [0.0, 0.002]]
DATA = {
    "a needle across two balls": rows(1, [([0.5, 0.5], THIN, 120), ([0.2, 0.8], ROUND, 60), ([0.8, 0.25], ROUND, 50)]),
    "three columns": rows(
        2,
        [
            ([0.3, 0.3, 0.6], [[0.01, 0.006, 0], [0.006, 0.008, 0], [0, 0, 0.02]], 90),
            ([0.7, 0.6, 0.4], [[0.012, -0.004, 0.003], [-0.004, 0.01, 0], [0.003, 0, 0.006]], 110),
        ],
    ),
}
STARTS = {
    "a needle across two balls": [[0.4, 0.6], [0.3, 0.7], [0.6, 0.3]],
    "three columns": [[0.4, 0.4, 0.5], [0.6, 0.5, 0.5]],
}


def first_variance(k, d):
    return k ** (-2 / d) / 12 + FLOOR


def triangles(matrices):
    return [[float(matrix[i, j]) for i in range(len(matrix)) for j in range(i + 1)] for matrix in matrices]


def gmm(x, start, tolerance):
    k, d = start.shape
    precision = numpy.eye(d) / first_variance(k, d)
    fit = GaussianMixture(
        k, tol=tolerance, reg_covar=FLOOR, max_iter=500, means_init=start, weights_init=numpy.full(k, 1 / k),
        precisions_init=[precision] * k, random_state=0,
    ).fit(x)  # fmt: skip
    return {
        "epsilon": tolerance, "rounds": int(fit.n_iter_), "converged": bool(fit.converged_), "centres": fit.means_.tolist(),
        "weights": fit.weights_.tolist(), "covariances": triangles(fit.covariances_),
        "log_likelihood": float(fit.score(x) * len(x)), "bic": float(fit.bic(x)),
    }  # fmt: skip


def gk(x, start, m, epsilon):
    """Gustafson & Kessel (1979), with determinants and inverses as they are written."""
    k, d = start.shape
    centres, shapes, done = start.copy(), [numpy.eye(d) * first_variance(k, d)] * k, 0

    def distances():
        out = []
        for centre, shape in zip(centres, shapes):
            norm = numpy.linalg.det(shape) ** (1 / d) * numpy.linalg.inv(shape)
            out.append(numpy.einsum("ni,ij,nj->n", x - centre, norm, x - centre))
        return numpy.array(out)

    def powers():
        inverse = distances() ** (-1 / (m - 1))
        return (inverse / inverse.sum(axis=0)) ** m

    while True:
        w = powers()
        new = w @ x / w.sum(axis=1)[:, None]
        shapes = [
            numpy.einsum("n,ni,nj->ij", v, x - c, x - c) / v.sum() + FLOOR * numpy.eye(d) for v, c in zip(w, new)
        ]
        shift, centres, done = numpy.linalg.norm(new - centres), new, done + 1
        if shift < epsilon or done == 500:
            break
    return {
        "m": m, "epsilon": epsilon, "rounds": done, "converged": bool(shift < epsilon), "centres": centres.tolist(),
        "covariances": triangles(shapes), "objective": float((powers() * distances()).sum()),
    }  # fmt: skip


def typical(x, start, m, epsilon, delta, noise):
    """Davé (1991), or Krishnapuram & Keller (1993) with the same scale delta squared for every cluster."""
    centres, done = start.copy(), 0
    while True:
        squares = ((x[None] - centres[:, None]) ** 2).sum(axis=2)
        if noise:
            inverse = squares ** (-1 / (m - 1))
            u = inverse / (inverse.sum(axis=0) + (delta**2) ** (-1 / (m - 1)))
        else:
            u = 1 / (1 + (squares / delta**2) ** (1 / (m - 1)))
        w = u**m
        new = w @ x / w.sum(axis=1)[:, None]
        shift, centres, done = numpy.linalg.norm(new - centres), new, done + 1
        if shift < epsilon or done == 500:
            break
    return {
        "m": m, "epsilon": epsilon, "distance": delta, "rounds": done, "converged": bool(shift < epsilon),
        "centres": centres.tolist(), "weights": w.sum(axis=1).tolist(),
    }  # fmt: skip


cases = []
for name, x in DATA.items():
    start = numpy.array(STARTS[name])
    cases.append({
        "name": name, "rows": x.tolist(), "start": start.tolist(), "floor": FLOOR,
        "gmm": [gmm(x, start, tolerance) for tolerance in (1e-3, 1e-5, 1e-8)],
        "noise": [typical(x, start, m, 1e-6, delta, True) for m in (2.0, 1.5) for delta in (0.1, 0.3)],
        "possibilistic": [typical(x, start, m, 1e-6, delta, False) for m in (2.0, 1.5) for delta in (0.1, 0.2)],
        "gk": [gk(x, start, m, 1e-6) for m in (2.0, 1.5)],
    })  # fmt: skip
print(json.dumps(cases))
