"""Fuzzy c-means and k-means once more, in plain numpy: what tests/mixed.py compares with.

Reads {"method", "rows", "start", "m", "epsilon", "rounds"} from standard input, all in the units of the questions, and writes
{"centres", "rounds"}: a run stops where the centres move by less than epsilon (k-means: not at all), or after these rounds.
"""

import json
import sys

import numpy


def squares(rows, centres):
    """Squared distances, n x K."""
    return ((rows[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)


def memberships(rows, centres, m):
    """Bezdek (1981): a row on a centre belongs to it alone."""
    d2 = squares(rows, centres)
    on = d2 == 0
    d2[on.any(axis=1)] = numpy.where(on[on.any(axis=1)], 1.0, numpy.inf)
    inverse = d2 ** (-1 / (m - 1))
    return inverse / inverse.sum(axis=1, keepdims=True)


def step(method, rows, centres, m):
    """The next centres; a cluster of k-means without rows keeps its own."""
    if method == "fcm":
        weight = memberships(rows, centres, m) ** m
    else:
        weight = numpy.eye(len(centres))[squares(rows, centres).argmin(axis=1)]
    sizes = weight.sum(axis=0)[:, None]
    return numpy.where(sizes > 0, weight.T @ rows / numpy.where(sizes > 0, sizes, 1), centres)


def run(method, rows, start, m, epsilon, rounds):
    centres = start
    for done in range(1, rounds + 1):
        before, centres = centres, step(method, rows, centres, m)
        moved = numpy.linalg.norm(centres - before)
        if moved < epsilon or moved == 0:
            break
    return centres, done


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    rows, start = numpy.array(asked["rows"]), numpy.array(asked["start"])
    centres, done = run(asked["method"], rows, start, asked["m"], asked["epsilon"], asked["rounds"])
    json.dump({"centres": centres.tolist(), "rounds": done}, sys.stdout)
