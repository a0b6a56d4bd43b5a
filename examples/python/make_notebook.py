"""Writes `notebook.ipynb`, so that its text is read and changed here: python examples/python/make_notebook.py"""

import json
from pathlib import Path

WORDS, CODE = "markdown", "code"
CELLS = [
    (WORDS, """# From a CSV file to a federated result

Three hospitals have patients' ages, systolic blood pressures and body-mass indices. Nobody may see the others' rows. Here all of them are on one machine, so that we can compare."""),
    (CODE, """import csv, os
from pathlib import Path
import numpy as np
import veilsum

folder = Path(os.environ.get("VEILSUM_EXAMPLES", "..")) / "three-hospitals"

def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in ["age", "systolic", "bmi"]}

hospitals = {name: read(folder / name / "rows.csv") for name in ["hospital-a", "hospital-b", "hospital-c"]}
{name: len(rows["age"]) for name, rows in hospitals.items()}"""),
    (WORDS, """## Statistics before models

`describe` runs the real protocol, too: of every column its mean, deviation and quantiles over all hospitals, from masked sums alone. The box of every column is public and was agreed on before anybody looked at rows."""),
    (CODE, """box = {"age": (0, 110), "systolic": (70, 220), "bmi": (12, 60)}
described = veilsum.Federation.of(box, sites=list(hospitals), exact=True, method="describe").simulate(hospitals)
print(described.summary())"""),
    (WORDS, """## Clusters

Every role runs in this process, on real connections, with keys made for the occasion."""),
    (CODE, """federation = veilsum.Federation.of(box, sites=list(hospitals), k=3, seed=3, exact=True, max_rounds=60, epsilon=0.0005)
result = federation.simulate(hospitals)
print(result.policy)
result"""),
    (CODE, """for centre, mass in zip(result.centres, result["mass"]):
    print("  ".join(f"{name} {value:6.1f}" for name, value in zip(result.columns, centre)), f"  mass {mass:.0f}")
result.indices"""),
    (WORDS, """## What pooling would have found

`FuzzyCMeans` computes with the same kernel. From the federation's centres it moves no further than the steps of the totals. Distances are in parts of the box, as the plan has them."""),
    (CODE, """low, high = np.array(list(box.values()), float).T
pooled = np.concatenate([np.column_stack([rows[name] for name in box]) for rows in hospitals.values()])
scaled = (pooled - low) / (high - low)
model = veilsum.FuzzyCMeans(3, init=(result.centres - low) / (high - low), tol=1e-6).fit(scaled)
difference = np.abs(model.cluster_centers_ - (result.centres - low) / (high - low)).max()
print(f"largest difference: {difference:.1e} of a column's range")
assert difference < 0.005"""),
    (WORDS, """## Charts

Each hospital sees its own rows with the shared centres."""),
    (CODE, """try:
    import matplotlib.pyplot as plt
except ImportError:
    print("SKIPPED: matplotlib is not installed")
else:
    figure, panes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True)
    for pane, (name, rows) in zip(panes, hospitals.items()):
        own = (np.column_stack([rows[column] for column in box]) - low) / (high - low)
        pane.scatter(rows["age"], rows["bmi"], c=model.predict_proba(own), s=12)
        pane.scatter(result.centres[:, 0], result.centres[:, 2], marker="x", s=120, c="black")
        pane.set(title=name, xlabel="age", ylabel="bmi")
    plt.show()
    curve = veilsum.Federation.of(box, sites=list(hospitals), k=(2, 5), seed=3, exact=True, max_rounds=40).simulate(hospitals)
    plt.figure(figsize=(5, 3))
    plt.plot([point["k"] for point in curve["curve"]], [point["indices"]["fuzzy_davies_bouldin"] for point in curve["curve"]], "o-")
    plt.gca().set(xlabel="K", ylabel="fuzzy Davies-Bouldin index", title=f"the run chooses K = {curve['k']}")
    plt.show()"""),
    (WORDS, """## In earnest

Every hospital makes its key where it lives and runs `veilsum run`, or, inside another framework, `veilsum.Site(key, roster, plan, rows)`, whose frames that framework carries. The page *Python* of the book says how."""),
]


def cell(number, kind, text):
    base = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
    return base if kind == WORDS else {**base, "execution_count": None, "outputs": []}


notebook = {
    "cells": [cell(number, *one) for number, one in enumerate(CELLS)],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
Path(__file__).with_name("notebook.ipynb").write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
