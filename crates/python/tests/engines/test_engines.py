"""One data set gives the same integers, word for word, wherever it is and whoever adds it up."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import world
from world import LAYOUTS, QUESTIONS, X

import veilsum
from veilsum import questions
from veilsum.engines import InParts

EXPECTED = {name: veilsum.answer(question, LAYOUTS[name], X) for name, question in QUESTIONS.items()}


def test_the_words_in_memory_are_those_of_the_definition():
    prescribed = 0
    for name in QUESTIONS:
        words = world.definition(name)
        if words is not None:
            assert words.tolist() == EXPECTED[name].tolist(), name
            prescribed += len(words)
    assert prescribed > 100
    # The rows are such that it matters: ties that a database's ROUND would take away from zero, and rows on centres.
    ties = world.W[:, 3] * 2.0**world.BITS
    assert (ties - np.floor(ties) == 0.5).all() and np.rint(ties).sum() != np.floor(ties + 0.5).sum()
    assert ((world.squares(world.W, world.CENTRES) == 0).sum(1) >= 1).sum() > 3_000


# ---- Every place that the rows can be ----------------------------------------------------------------------------------


def python(get):
    yield "a table of Arrow", lambda q, layout: veilsum.answer(q, layout, get("table"))
    mixed = np.random.default_rng(4).permutation(X)
    yield "another order", lambda q, layout: veilsum.answer(q, layout, mixed)

    def in_parts(question, layout):
        total = None
        for part in np.array_split(mixed, [1, 2, 2, 999, 20_000]):
            words = veilsum.answer(question, layout, part)
            total = words if total is None else questions.merge(question, layout, total, words)
        return total

    yield "parts of 0 to 19,001 rows", in_parts


def threads(get):
    program = """
import json, sys
import world, veilsum
print(json.dumps({name: veilsum.answer(q, world.LAYOUTS[name], world.X).tolist() for name, q in world.QUESTIONS.items()}))
"""
    for number in (1, 2, 4):
        env = {**os.environ, "RAYON_NUM_THREADS": str(number), "PYTHONPATH": os.pathsep.join(sys.path)}
        said = subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True).stdout
        found = {json.dumps(QUESTIONS[name]): words for name, words in json.loads(said).items()}
        yield f"{number} threads", lambda q, layout: np.array(found[json.dumps(q)])


def spark(get):
    import veilsum.spark as of

    df = get("spark").read.parquet(str(get("files") / "rows.parquet"))
    for number in (1, 3, 8):
        own = df.repartition(number).cache()
        assert own.rdd.getNumPartitions() == number
        yield f"{number} partitions", lambda q, layout: of.words(own, q, layout)
        if number == 3:

            def by_hand(question, layout):
                if questions.parts(question, layout) != "sum":
                    return None
                sums = own.mapInArrow(of.partial(question, layout), of.SCHEMA).groupBy("i").sum("v").collect()
                sums = {row[0]: row[1] for row in sums}
                assert sums.pop(of.ROWS) == len(X) and sums.pop(of.BAD) == 0
                return np.array([sums[place] for place in range(len(sums))])

            yield "3 partitions, summed by Spark", by_hand
            yield "3 partitions, packed", lambda q, layout: of.words(of.packed(own, layout), q, layout)
        own.unpersist()


def dask(get):
    frame = pytest.importorskip("dask.dataframe", reason="SKIPPED: dask is not installed")
    import pandas

    import veilsum.dask as of

    rows = pandas.DataFrame(X, columns=list(world.COLUMNS))
    for number in (1, 5):
        own = frame.from_pandas(rows, npartitions=number)
        assert own.npartitions == number
        yield f"{number} partitions", lambda q, layout: of.words(own, q, layout)


def conversation(command):
    answerer = world.Answerer(command, {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        assert answerer.ready["type"] == "ready" and answerer.ready["rows"] == len(X), answerer.ready
        kinds = set(answerer.ready["kinds"])

        def words(question, layout):
            asked = {kind for query in question["queries"] for kind in query}
            return answerer.words(question, layout) if asked <= kinds else None

        yield words
        assert answerer.end() == 0
    finally:
        answerer.process.kill()


def answerer_of_duckdb(get):
    pytest.importorskip("duckdb", reason="SKIPPED: duckdb is not installed")
    program = str(get("examples") / "duckdb_answerer.py")
    for words in conversation([sys.executable, program, ":memory:", f"'{get('files') / 'rows.parquet'}'"]):
        yield "SQL", words


def answerer_of_dask(get):
    pytest.importorskip("dask.dataframe", reason="SKIPPED: dask is not installed")
    program = str(get("examples") / "dask_answerer.py")
    for words in conversation([sys.executable, program, str(get("files") / "rows.parquet")]):
        yield "threads", words


def files_of_a_site(get):
    if not hasattr(questions, "of_file"):
        pytest.skip("SKIPPED: this package reads no file as a site does")
    for form in ("csv", "parquet", "arrow"):
        path = str(get("files") / f"rows.{form}")
        yield form, lambda q, layout: questions.of_file(world.FEDERATION, q, path)
        yield f"{form}, streamed", lambda q, layout: questions.of_file(world.FEDERATION, q, path, memory=0)


PLACES = [python, threads, files_of_a_site, spark, dask, answerer_of_duckdb, answerer_of_dask]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_one_data_set_gives_the_same_integers_everywhere(place, request, capsys):
    def get(what):
        if what == "table":
            import pyarrow as pa

            return pa.table({name: X[:, j] for j, name in enumerate(world.COLUMNS)})
        return request.getfixturevalue(what)

    for name, words_of in place(get):
        compared = 0
        for asked, question in QUESTIONS.items():
            words = words_of(question, LAYOUTS[asked])
            if words is None:
                continue
            assert words.tolist() == EXPECTED[asked].tolist(), (name, asked)
            compared += len(words)
        assert compared >= 70, name
        with capsys.disabled():
            print(f"\n  {place.__name__}, {name}: {compared} words, all the same", end="")


# ---- Trouble -----------------------------------------------------------------------------------------------------------


def test_a_spark_executor_that_is_killed_in_mid_stage_changes_no_word(spark, files, tmp_path):
    import veilsum.spark as of

    mark = str(tmp_path / "killed")
    partial = of.partial(QUESTIONS["fuzzy"], LAYOUTS["fuzzy"])

    def once(batches):
        """The kernel, and after the second batch of one task the end of the process that the task runs in."""
        import os
        import signal

        def seen():
            for number, batch in enumerate(batches):
                yield batch
                if number == 1:
                    try:
                        out = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                    except FileExistsError:
                        continue
                    # This worker's parent is Spark's daemon of workers, whose parent is the executor.
                    with open(f"/proc/{os.getppid()}/stat") as stat:
                        executor = int(stat.read().rsplit(")", 1)[1].split()[1])
                    os.write(out, str(executor).encode())
                    os.close(out)
                    os.kill(executor, signal.SIGKILL)

        yield from partial(seen())

    df = spark.read.parquet(str(files / "rows.parquet")).repartition(4)
    sums = {row[0]: row[1] for row in df.mapInArrow(once, of.SCHEMA).groupBy("i").sum("v").collect()}
    executor = int(open(mark).read())
    assert not os.path.exists(f"/proc/{executor}"), "the executor was not killed"
    assert sums.pop(of.ROWS) == len(X) and sums.pop(of.BAD) == 0
    assert [sums[place] for place in range(len(sums))] == EXPECTED["fuzzy"].tolist()


def test_a_spark_without_the_wheel_on_its_executors_says_what_to_install(files):
    pytest.importorskip("pyspark.sql", reason="SKIPPED: pyspark is not installed")
    folder = os.path.dirname(os.path.dirname(veilsum.__file__))
    if any(folder == os.path.abspath(place) for place in __import__("site").getsitepackages()):
        pytest.skip("SKIPPED: veilsum is installed into this Python itself, which the executors use: install it with --target, as .ci/engines does")
    program = f"""
import sys
sys.path.insert(0, {folder!r})
import world, veilsum.spark
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false").config("spark.task.maxFailures", "1").getOrCreate()
try:
    veilsum.spark.words(spark.read.parquet({str(files / "rows.parquet")!r}), world.QUESTIONS["fuzzy"], world.LAYOUTS["fuzzy"])
except veilsum.errors.UsageError as e:
    print("SAID", e.message, "/", e.next_step)
finally:
    spark.stop()
"""
    # The executors have the environment's path, and the driver has one more.
    env = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    said = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=600)
    assert "SAID Spark's executors do not have the Python package veilsum / install the same wheel" in said.stdout, said.stderr[-2000:]


def test_rows_that_cannot_be_used_are_counted_wherever_they_are(spark):
    import pandas

    import veilsum.spark as of

    bad = X[:100].copy()
    bad[3, 0], bad[4, 1], bad[90, 2] = np.nan, 61.0, np.inf
    rows = pandas.DataFrame(bad, columns=list(world.COLUMNS))
    question, layout = QUESTIONS["fuzzy"], LAYOUTS["fuzzy"]
    with pytest.raises(veilsum.errors.InputError, match="3 rows"):
        of.words(spark.createDataFrame(rows).repartition(3), question, layout)
    hello = {"type": "hello", "protocol": 1, **{key: layout[key] for key in layout if key != "blocks"}}
    ready = InParts(of.Parts(spark.createDataFrame(rows).repartition(3))).line(json.dumps(hello))
    assert ready["rows"] == 97 and sum(ready["bad"].values()) == 3
    with pytest.raises(veilsum.errors.InputError, match="no column 'age'"):
        of.words(spark.createDataFrame(rows.drop(columns="age")), question, layout)


def test_rows_that_change_between_two_questions_are_an_error():
    question, layout = QUESTIONS["fuzzy"], LAYOUTS["fuzzy"]
    held = [X[:50].copy(), X[50:100].copy()]
    answerer = InParts(lambda columns, function: [function([part]) for part in held])
    hello = {"type": "hello", "protocol": 1, **{key: layout[key] for key in layout if key != "blocks"}}
    ready = answerer.line(json.dumps(hello))
    ask = json.dumps({"type": "ask", "id": 1, "question": question, "blocks": layout["blocks"]})
    first = answerer.line(ask)
    assert first["words"] == veilsum.answer(question, layout, X[:100]).tolist()
    # Another order and other parts are the same rows.
    held[:] = [np.ascontiguousarray(X[:100][::-1])]
    assert answerer.line(ask) == first and first["fingerprint"] == ready["fingerprint"]["rows"]
    # A value that two rows exchange: every column is as before.
    held[0][[0, 1], 2] = held[0][[1, 0], 2]
    said = answerer.line(ask)
    assert (said["type"], said["code"]) == ("error", "changed") and said["next"]
