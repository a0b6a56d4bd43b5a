"""A whole federated run whose sites answer from Spark, Dask and DuckDB gives the result of the same run on rows in memory, bit for bit."""

import json
import os
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
import world

from veilsum import plan, roster

SITES = world.SITES
ROWS = 1_500
VEILSUM = os.environ.get("VEILSUM") or shutil.which("veilsum")


def program():
    """The program, where it knows answerers."""
    if VEILSUM is None:
        pytest.skip("SKIPPED: the program veilsum is not there: build it, and say where it is in VEILSUM")
    if subprocess.run([VEILSUM, "answerer", "--help"], capture_output=True).returncode != 0:
        pytest.skip("SKIPPED: this program veilsum takes no answerer")
    return VEILSUM


def free_ports(n):
    probes = [socket.socket() for _ in range(n)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def run(folder, sources, method):
    """The result of a run of real processes, each site with its own words for where its rows are."""
    folder.mkdir()
    at = lambda name: str(folder / name)  # noqa: E731
    ports = dict(zip(("coordinator", "intermediary"), free_ports(2)))
    for name in [*ports, *SITES]:
        roster.keygen(name, folder, address=f"127.0.0.1:{ports[name]}" if name in ports else None)
    roster.make(
        name="engines", coordinator=at("coordinator.card"), intermediary=at("intermediary.card"),
        site=[at(f"{name}.card") for name in SITES], key=at("coordinator.key"), out=at("roster.toml"),
    )  # fmt: skip
    plan.new(
        roster=at("roster.toml"), key=at("coordinator.key"), out=at("plan.toml"), columns=world.COLUMNS, method=method, k=3, seed=5, exact=True,
        init="uniform", max_rows=4_096, min_total_rows=1_000, max_rounds=12, epsilon=1e-5,
    )  # fmt: skip
    fingerprint = roster.verify(at("roster.toml"))["fingerprint"]
    for name in ["intermediary", *SITES]:
        roster.accept(at(f"{name}.key"), fingerprint, at("roster.toml"))
    documents = ["--roster", at("roster.toml"), "--plan", at("plan.toml")]
    read = plan.check(at("plan.toml"), at("roster.toml"))["fingerprint"]
    for name in SITES:
        plan.agree(roster=at("roster.toml"), plan=at("plan.toml"), key=at(f"{name}.key"), fingerprint=read)

    def start(name, *options):
        log = open(at(f"{name}.log"), "wb")
        return subprocess.Popen([program(), "run", "--key", at(f"{name}.key"), *documents, *options], stdout=log, stderr=log)

    running = {
        "coordinator": start("coordinator", "--out", at("out"), "--phase-timeout", "300"),
        "intermediary": start("intermediary", "--phase-timeout", "300"),
    }
    for name, source in zip(SITES, sources):
        running[name] = start(name, "--out", at(f"{name}-results"), "--join-timeout", "300", *source)
    try:
        for name, process in running.items():
            code = process.wait(600)
            assert code == 0, (name, code, (folder / f"{name}.log").read_text()[-3_000:])
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    return json.loads((folder / "out" / "result.json").read_text())


@pytest.fixture(scope="session")
def rows_of_sites(tmp_path_factory):
    """A Parquet and a CSV file for every site."""
    pa = pytest.importorskip("pyarrow", reason="SKIPPED: pyarrow is not installed")
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("sites")
    for number, name in enumerate(SITES):
        x = world.rows(ROWS, seed=100 + number)
        table = pa.table({column: x[:, j] for j, column in enumerate(world.COLUMNS)})
        pa.parquet.write_table(table, folder / f"{name}.parquet", row_group_size=400)
        header = ",".join('"' + column.replace('"', '""') + '"' for column in world.COLUMNS)
        (folder / f"{name}.csv").write_text("\n".join([header, *(",".join(map(repr, row)) for row in x.tolist())]) + "\n")
    return folder


def same(one, other):
    assert one["converged"] == other["converged"] and one["n_total"] == other["n_total"] == len(SITES) * ROWS
    assert one["centres"] == other["centres"] and one.get("indices") == other.get("indices")


def answerer(folder, name, *words):
    """A site whose rows another program has: its site.toml names it. The program sees Python's and Spark's part of this environment."""
    policy = folder / f"{name}.toml"
    policy.write_text(f"[rows]\nanswerer = {json.dumps([sys.executable, *map(str, words)])}\n")
    return ["--policy", str(policy)]


def test_sites_that_answer_from_engines_find_what_sites_with_files_find(rows_of_sites, examples, tmp_path, monkeypatch):
    program()
    pytest.importorskip("dask.dataframe", reason="SKIPPED: dask is not installed")
    pytest.importorskip("pyspark", reason="SKIPPED: pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("SKIPPED: there is no Java here, which Spark needs")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(place for place in sys.path if place))
    in_memory = run(tmp_path / "memory", [["--data", str(rows_of_sites / f"{name}.csv")] for name in SITES], "fcm")
    north, east, west = (rows_of_sites / f"{name}.parquet" for name in SITES)
    engines = [
        answerer(tmp_path, "north", examples / "spark_answerer.py", "local-cluster[2,1,1024]", f"parquet.`{north}`"),
        answerer(tmp_path, "east", examples / "dask_answerer.py", east),
        ["--data", str(west.with_suffix(".csv"))],
    ]
    result = run(tmp_path / "engines", engines, "fcm")
    same(result, in_memory)
    assert np.isfinite(np.array(result["centres"])).all()


def test_the_page_of_duckdb_keeps_to_the_contract(examples, tmp_path):
    pytest.importorskip("duckdb", reason="SKIPPED: duckdb is not installed")
    rows = tmp_path / "example.csv"
    subprocess.run([program(), "answerer", "--data", rows], check=True, capture_output=True)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
    check = [program(), "--json", "answerer", "--data", rows, "--", sys.executable, examples / "duckdb_answerer.py", ":memory:", f"'{rows}'"]
    said = subprocess.run(check, env=env, capture_output=True, text=True)
    tried = json.loads(said.stdout)["tried"]
    # That it does not take directions it says itself, which is no fault.
    assert len(tried) > 20 and not [one for one in tried if not one["ok"]], tried
    assert sum("words" in one["seen"] for one in tried) >= 8


def test_the_kernel_in_an_engine_keeps_to_the_contract(examples, tmp_path):
    pytest.importorskip("dask.dataframe", reason="SKIPPED: dask is not installed")
    rows = tmp_path / "example.csv"
    subprocess.run([program(), "answerer", "--rows", "300", "--data", rows], check=True, capture_output=True)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
    check = [program(), "--json", "answerer", "--data", rows, "--", sys.executable, examples / "dask_answerer.py", rows]
    said = subprocess.run(check, env=env, capture_output=True, text=True)
    tried = json.loads(said.stdout)["tried"]
    assert all(one["ok"] for one in tried), [one for one in tried if not one["ok"]]
