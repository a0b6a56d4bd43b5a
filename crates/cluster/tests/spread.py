"""Makes tests/spread.json: deviations of clusters and gap statistics, from plain numpy and
scikit-learn.

`kmeans` of the deviations is scikit-learn's. The references of the gap are drawn from ChaCha20 by the specification's rule for
streams (13.6), so that they are the same rows as in Rust; clustering them is numpy. Not needed to run the tests, which read the
JSON. `pip install scikit-learn cryptography`, and from this folder: `python3 spread.py > spread.json`.
"""

import json
import math

import numpy
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from sklearn.cluster import KMeans

BOX = numpy.array([[0.0, 40.0], [-1.0, 0.5], [100.0, 900.0]])
REFERENCES = 20


def units(seed, label, count):
    """The first numbers of a stream in [0, 1)."""
    flow = Cipher(algorithms.ChaCha20(seed.to_bytes(8, "little") + label, bytes(16)), mode=None).encryptor()
    words = numpy.frombuffer(flow.update(bytes(8 * count)), dtype="<u8")
    return (words >> 11).astype(float) * 2.0**-53


def groups(seed, sizes, deviation):
    draw = numpy.random.default_rng(seed)
    places = draw.uniform(0.15, 0.85, (len(sizes), 3))
    parts = [draw.normal(place, deviation, (size, 3)) for place, size in zip(places, sizes)]
    inside = numpy.clip(numpy.round(numpy.concatenate(parts), 4), 0, 1)
    return places, BOX[:, 0] + inside * (BOX[:, 1] - BOX[:, 0])


def deviations(x, start, standard):
    """k-means from `start` (parts of the box) in units of the box or of the columns' deviations; deviations in the columns' own."""
    shift, unit = (x.mean(axis=0), x.std(axis=0)) if standard else (BOX[:, 0], BOX[:, 1] - BOX[:, 0])
    first = (BOX[:, 0] + start * (BOX[:, 1] - BOX[:, 0]) - shift) / unit
    fit = KMeans(len(start), init=first, n_init=1, tol=0, max_iter=500).fit((x - shift) / unit)
    centres = shift + fit.cluster_centers_ * unit
    around = [numpy.sqrt(((x[fit.labels_ == c] - centre) ** 2).mean(axis=0)) for c, centre in enumerate(centres)]
    return {
        "standard": standard, "centres": centres.tolist(), "deviations": numpy.array(around).tolist(),
        "sizes": numpy.bincount(fit.labels_).tolist(),
    }  # fmt: skip


def squares(x, centres):
    return ((x[:, None] - centres[None]) ** 2).sum(axis=2)


def lloyd(x, centres, _):
    """Until nothing moves; an empty cluster stays. Inertia, which is also what it minimises."""
    while True:
        own = squares(x, centres).argmin(axis=1)
        new = numpy.array([x[own == c].mean(axis=0) if (own == c).any() else centres[c] for c in range(len(centres))])
        if (new == centres).all():
            return (squares(x, new).min(axis=1).sum(),) * 2
        centres = new


def fuzzy(x, centres, m):
    """30 steps of fuzzy c-means. J, and the inertia of the hard clusters."""
    for step in range(31):
        far = squares(x, centres)
        inverse = far ** (-1 / (m - 1))
        w = (inverse / inverse.sum(axis=1)[:, None]) ** m
        if step == 30:
            return (w * far).sum(), far.min(axis=1).sum()
        centres = w.T @ x / w.sum(axis=0)[:, None]


def log_inertia(x, k, fit, seed, restarts, m):
    starts = [units(seed + r, b"veilsum start uniform v1", k * 3).reshape(k, 3) for r in range(restarts)]
    return math.log(min(fit(x, start, m) for start in starts)[1])


def gap(x, ks, fit, seed, restarts, m):
    """Tibshirani, Walther & Hastie (2001) in the unit box, references uniform in it."""
    inside = (x - BOX[:, 0]) / (BOX[:, 1] - BOX[:, 0])
    draw = [units(seed + b, b"veilsum gap reference v1", x.size).reshape(x.shape) for b in range(REFERENCES)]
    gaps, errors = [], []
    for k in ks:
        logs = numpy.array([log_inertia(y, k, fit, seed, restarts, m) for y in draw])
        gaps.append(logs.mean() - log_inertia(inside, k, fit, seed, restarts, m))
        errors.append(logs.std() * math.sqrt(1 + 1 / REFERENCES))
    passed = [k for i, k in enumerate(ks[:-1]) if gaps[i] >= gaps[i + 1] - errors[i + 1]]
    return {
        "ks": ks, "seed": seed, "restarts": restarts, "method": fit.__name__, "m": m, "gap": gaps, "s": errors,
        "chosen": passed[0] if passed else None,
    }  # fmt: skip


start, wide = groups(5, (70, 50, 60), 0.06)
cloud = BOX[:, 0] + numpy.round(numpy.random.default_rng(8).uniform(0, 1, (150, 3)), 4) * (BOX[:, 1] - BOX[:, 0])
many = groups(12, (40, 50, 45, 35), 0.05)[1]
print(json.dumps({
    "lower": BOX[:, 0].tolist(), "upper": BOX[:, 1].tolist(),
    "rows": wide.tolist(), "start": start.tolist(),
    "deviations": [deviations(wide, start, standard) for standard in (False, True)],
    "gaps": [
        {"rows": x.tolist(), **gap(x, list(range(1, most + 1)), fit, seed, restarts, m)}
        for x, most, fit, seed, restarts, m in [
            (many, 6, lloyd, 3, 6, 2.0), (many, 3, lloyd, 9, 2, 2.0), (cloud, 6, lloyd, 40, 6, 2.0),
            (many, 6, fuzzy, 7, 3, 1.5), (cloud, 6, fuzzy, 1, 2, 2.0),
        ]
    ],
}))  # fmt: skip
