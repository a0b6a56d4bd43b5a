"""What has to hold where NumPy is all there is. Run by `.ci/python` in an environment of its own."""

import os
import resource
import subprocess
import sys

import numpy as np

#: Milliseconds that the import may take, NumPy's part among them.
MOST = 200.0


def spent(program: str) -> float:
    """Milliseconds of the processor: what a start takes on a machine that does nothing else, and about the same on one that does."""

    def so_far() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    begun = so_far()
    # One thread for libraries that would start one for every core.
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    return 1e3 * (so_far() - begun)


for absent in ["sklearn", "scipy", "pandas", "pyarrow", "polars"]:
    try:
        __import__(absent)
    except ImportError:
        continue
    sys.exit(f"{absent} is installed here, so this shows nothing")

# Of several starts the quickest: others use the machine too.
empty, numpy, all_of_it = (min(spent(p) for _ in range(7)) for p in ["pass", "import numpy", "import veilsum"])
print(f"import veilsum: {all_of_it - empty:.0f} ms, {numpy - empty:.0f} ms of them NumPy's")
if all_of_it - empty >= MOST:
    sys.exit(f"the import takes more than {MOST:.0f} ms")

import veilsum  # noqa: E402

rows = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0, 0], [9, 9], [0, 9]], 100, axis=0)
model = veilsum.FuzzyCMeans(3, random_state=0).fit(rows)
assert model.predict_proba(rows).shape == (300, 3) and model.transform(rows).shape == (300, 3)
assert repr(model) == "FuzzyCMeans(n_clusters=3, random_state=0)", repr(model)
assert model.get_params()["n_clusters"] == 3 and veilsum.FuzzyCMeans(2).set_params(m=1.5).m == 1.5
for bad in [lambda: veilsum.FuzzyCMeans().predict(rows), lambda: model.set_params(nothing=1), lambda: model.predict(rows[0])]:
    try:
        bad()
    except ValueError:
        continue
    sys.exit("what is wrong was taken")
result = veilsum.Federation.of({"x": (-5, 15), "y": (-5, 15)}, k=3, seed=3, exact=True).simulate([rows[0::3], rows[1::3], rows[2::3]])
assert result.n_total == 300, result
assert subprocess.run([sys.executable, "-m", "veilsum", "--version"], capture_output=True, text=True).stdout.startswith("veilsum ")
assert "sklearn" not in sys.modules and "scipy" not in sys.modules
print("NumPy alone is enough")
