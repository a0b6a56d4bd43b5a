"""Makes tests/near_one.json: fuzzy c-means with fuzzifiers near 1, from plain numpy. Not needed to run the tests, which read the JSON.
`python3 near_one.py > near_one.json`.
"""

import json

import numpy


def fcm(x, centres, m, rounds):
    """The classical iteration (Bezdek 1981); memberships by ratios to the nearest centre, whose powers cannot overflow."""
    for step in range(rounds + 1):
        squares = ((x[:, None, :] - centres) ** 2).sum(2)
        ratios = (squares.min(1, keepdims=True) / squares) ** (1 / (m - 1))
        u = (ratios / ratios.sum(1, keepdims=True)) ** m
        if step < rounds:
            centres = u.T @ x / u.sum(0)[:, None]
    return centres, (u * squares).sum(), u.sum(0) / u.sum()


draw = numpy.random.default_rng(20261126)
places = numpy.array([[0.2, 0.3], [0.7, 0.25], [0.5, 0.75], [0.85, 0.8]])
x = numpy.clip(numpy.concatenate([draw.normal(place, 0.08, (15, 2)) for place in places]), 0, 1).round(3)
start = numpy.array([[0.1, 0.1], [0.9, 0.1], [0.4, 0.9], [0.95, 0.95]])
cases = []
for m in (1.05, 1.1):
    for first in (start, start + [[0.9, 0.9], [0, 0], [0, 0], [-0.9, -0.4]]):
        for rounds in (1, 12):
            centres, objective, shares = fcm(x, first, m, rounds)
            assert shares.min() > 1e-6, "a centre that a run on totals would leave where it is"
            cases.append(
                dict(m=m, start=first.ravel().round(6).tolist(), rounds=rounds, centres=centres.ravel().tolist(), objective=objective)
            )
print(json.dumps(dict(rows=x.ravel().tolist(), cases=cases)))
