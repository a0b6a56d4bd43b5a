"""Makes tests/mixed.json: rows with two columns of numbers and one of categories, and what numpy's k-means and fuzzy c-means on
weighted indicators give for them from one start. From this folder: `python3 mixed.py > mixed.json`."""

import json
import sys

import numpy

sys.path.insert(0, "../crates/lab")
import reference  # noqa: E402

CATEGORIES = ["never", "former", "current"]
GROUPS = [((30, 2.0), 40, (0.8, 0.1, 0.1)), ((55, 5.0), 40, (0.1, 0.8, 0.1)), ((50, 2.5), 40, (0.1, 0.1, 0.8))]

draw = numpy.random.default_rng(7)
numbers, codes = [], []
for (age, income), size, shares in GROUPS:
    numbers += numpy.round(draw.normal((age, income), (7, 0.8), (size, 2)), 2).tolist()
    codes += draw.choice(3, size, p=shares).tolist()
numbers, ones = numpy.array(numbers), numpy.eye(3)[codes]
low, high = numbers.min(axis=0), numbers.max(axis=0)
# In parts of the box: the first two are numbers, the others shares.
start = numpy.array([[0.2, 0.3, 0.5, 0.25, 0.25], [0.8, 0.8, 0.25, 0.5, 0.25], [0.6, 0.2, 0.25, 0.25, 0.5]])
cases = []
for weight in [0.5, 0.125, 3.0]:
    one = (weight / 2) ** 0.5
    unit = numpy.array([1, 1, one, one, one])
    rows = numpy.hstack([(numbers - low) / (high - low), ones]) * unit
    differ = ((rows[:, None, 2:] - rows[None, :, 2:]) ** 2).sum(axis=2)
    assert all(abs(value) < 1e-12 or abs(value - weight) < 1e-12 for value in differ.flatten())
    for method, epsilon in [("kmeans", 0.0), ("fcm", 1e-6)]:
        centres, rounds = reference.run(method, rows, start * unit, 2.0, epsilon, 200)
        assert rounds < 200
        parts = centres / unit
        original = numpy.hstack([low + parts[:, :2] * (high - low), parts[:, 2:]])
        assert abs(original[:, 2:].sum(axis=1) - 1).max() < 1e-12
        modes = [CATEGORIES[i] for i in original[:, 2:].argmax(axis=1)]
        cases.append({"method": method, "weight": weight, "epsilon": epsilon, "rounds": rounds, "modes": modes,
                      "centres": original.tolist()})  # fmt: skip
rows = [[*row, CATEGORIES[code]] for row, code in zip(numbers.tolist(), codes)]
json.dump({"categories": CATEGORIES, "rows": rows, "start": start.tolist(), "cases": cases}, sys.stdout, indent=1)
print()
