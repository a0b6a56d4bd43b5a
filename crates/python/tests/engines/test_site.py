"""A site whose rows are in Spark and one that holds a table in memory stand by on the network, and a whole run with them gives the result of the
same run in one process, bit for bit, though an executor is killed. Everything else of the federation is processes of the program."""

import json
import re
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import world
from test_engines import killed

import veilsum
from veilsum import errors
from veilsum.spark import Frame

SITES, ROWS = world.SITES, 1_500
OPTIONS = dict(k=3, seed=5, exact=True, init="uniform", max_rows=4_096, min_total_rows=1_000, max_rounds=12, epsilon=1e-5)
LIMIT = 300


def program(folder, *words):
    """Starts the program in this folder, whose screen goes to a file."""
    folder.mkdir(exist_ok=True)
    log = open(folder / f"{words[0]}.log", "ab")
    return subprocess.Popen([sys.executable, "-m", "veilsum", *words], cwd=folder, stdout=log, stderr=log)


def done(folder, *words):
    """What the program prints in this folder."""
    said = subprocess.run([sys.executable, "-m", "veilsum", *words], cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    assert said.returncode == 0, (words, said.stdout, said.stderr)
    return said.stdout


def heard(folder, command, what):
    """Waits until it stands on the screen of a command."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = re.search(what, (folder / f"{command}.log").read_text(), re.DOTALL)
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError((folder / f"{command}.log").read_text())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def set_up(folder, running, **options):
    """A federation whose members have joined with a line each, with its plan."""
    parties = {name: folder / name for name in ["hub", "counter", *SITES]}
    parties["hub"].mkdir()
    create = ["federation", "create", "engines", "--listen", f"127.0.0.1:{free_port()}", "--site", *SITES, "--intermediary", "counter", "--json"]
    lines = {one["party"]: one["line"] for one in json.loads(done(parties["hub"], *create))["invitations"]}
    running.append(program(parties["hub"], "run"))
    heard(parties["hub"], "run", "is open")
    columns = [f"{name}={low}:{high}" for name, (low, high) in world.COLUMNS.items()]
    sets = [f"--set={name}={json.dumps(value)}" for name, value in options.items() if name not in ("k", "seed", "exact", "init")]
    joining = {}
    for name, line in lines.items():
        joining[name] = program(parties[name], "join", line, *(["--address", f"127.0.0.1:{free_port()}"] if name == "counter" else []))
    digits = {name: heard(parties[name], "join", r"Your digits are\s+(\S+)")[1] for name in lines}
    done(parties["hub"], "federation", "approve", *(f"{name}={of}" for name, of in digits.items()))
    done(parties["hub"], "plan", "new", f"--k={options['k']}", f"--seed={options['seed']}", "--exact", "--set", 'init="uniform"', *sets, "--column", *columns)
    for name, process in joining.items():
        assert process.wait(LIMIT) == 0, name
    return parties


def test_a_run_with_rows_in_spark_finds_what_one_with_rows_in_memory_finds(spark, tmp_path, monkeypatch):
    rows = [world.rows(ROWS, world.SEED + 1 + i) for i in range(3)]
    in_memory = veilsum.Federation.of(world.COLUMNS, sites=SITES, **OPTIONS).simulate(rows)
    running = []
    try:
        parties = set_up(tmp_path, running, **OPTIONS)
        words = json.loads(done(parties["north"], "verify", "roster.toml", "--json"))["fingerprint"]
        for name in ["counter", *SITES]:
            done(parties[name], "agree", "--fingerprint", words)
        for name in SITES:
            read = json.loads(done(parties[name], "plan", "check", "--json"))["fingerprint"]
            done(parties[name], "agree", "plan.toml", "--fingerprint", read)
        running.append(program(parties["counter"], "run", "--once"))
        header = ",".join('"' + name.replace('"', '""') + '"' for name in world.COLUMNS)
        (parties["west"] / "rows.csv").write_text("\n".join([header, *(",".join(map(repr, row)) for row in rows[2].tolist())]) + "\n")
        running.append(program(parties["west"], "run", "--data", "rows.csv", "--once"))
        # An executor is killed before the fourth question of the run.
        asked, ask = [], Frame.words

        def counted(frame, *question):
            asked.append(question)
            if len(asked) == 4:
                killed(spark)
            return ask(frame, *question)

        monkeypatch.setattr(Frame, "words", counted)
        schema = ", ".join(f"`{name}` double" for name in world.COLUMNS)
        df = spark.createDataFrame(rows[0].tolist(), schema).repartition(4)
        table = {name: rows[1][:, place] for place, name in reversed(list(enumerate(world.COLUMNS)))}
        failed, threads = [], []

        def stands_by(site):
            try:
                site.run(once=True)
            except BaseException as e:
                failed.append(e)

        for name, held in [("north", df), ("east", table)]:
            own = parties[name]
            site = veilsum.Site(own / f"{name}.key", own / "roster.toml", rows=held, out=own / "results")
            with pytest.raises(errors.UsageError, match="without a plan"):
                site.start()
            threads.append(threading.Thread(target=stands_by, args=[site], daemon=True))
            threads[-1].start()
        done(parties["hub"], "plan", "propose", "--start", "--wait", str(LIMIT))
        heard(parties["hub"], "run", "3 centres were computed among 4500 rows of 3 sites")
        for thread in threads:
            thread.join(LIMIT)
            assert not thread.is_alive() and not failed, failed
        for process in running[1:]:
            assert process.wait(LIMIT) == 0
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert len(asked) > 4
    (result,) = (parties["hub"] / "results").glob("001-*/result.json")
    result = json.loads(result.read_text())
    assert np.isfinite(np.array(result["centres"])).all()
    for field in ["centres", "converged", "iterations", "indices", "n_total"]:
        assert result.get(field) == in_memory.report.get(field), field
    for name in SITES:
        (own,) = (parties[name] / "results").glob("001-*/model.json")
        assert json.loads(own.read_text())["centres"] == result["centres"], name


REFUSED = {
    "ffcm-avg1": {}, "fedfcm": {}, "fkm": {}, "ffcf": {}, "local_k": {"method": "fcm", "k": (2, 4), "local_k": 4},
    "persons": {"method": "fcm", "exact": False, "rho": 1.0, "expected_rows": 6_000, "rows_per_person": 1},
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_sum_of_parts_is_refused_in_one_sentence(spark, tmp_path, what):
    """By a site whose frames somebody else carries, too, before anything is asked of Spark."""
    options = {"k": 3, "exact": True, "method": what, "max_rows": 4_096, "min_total_rows": 1_000, **REFUSED[what]}
    veilsum.Federation.create(tmp_path, world.COLUMNS, sites=SITES, **options)
    schema = ", ".join(f"`{name}` double" for name in world.COLUMNS)
    df = spark.createDataFrame(world.X[:10].tolist(), schema)
    with pytest.raises(errors.InputError, match="no sum over parts of the rows .*rows in Spark are answered from in parts") as error:
        veilsum.Site(tmp_path / "north.key", tmp_path / "roster.toml", tmp_path / "plan.toml", rows=df)
    assert "df.toPandas()" in error.value.next_step and "\n" not in error.value.message
