"""One data set gives the same integers, word for word, wherever it is and whoever adds it up."""

import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import world
from world import LAYOUTS, QUESTIONS, X

import veilsum
from veilsum import questions
from veilsum._rows import handed
from veilsum.spark import Frame

EXPECTED = {name: questions.answer(question, LAYOUTS[name], X) for name, question in QUESTIONS.items()}


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
    yield "a table of Arrow", lambda q, layout: questions.answer(q, layout, get("table"))
    mixed = np.random.default_rng(4).permutation(X)
    yield "another order", lambda q, layout: questions.answer(q, layout, mixed)

    def in_parts(question, layout):
        total = None
        for part in np.array_split(mixed, [1, 2, 2, 999, 20_000]):
            words = questions.answer(question, layout, part)
            total = words if total is None else total + words
        return total

    yield "parts of 0 to 19,001 rows", in_parts


def threads(get):
    program = """
import json, sys
import world
from veilsum import questions
print(json.dumps({name: questions.answer(q, world.LAYOUTS[name], world.X).tolist() for name, q in world.QUESTIONS.items()}))
"""
    for number in (1, 2, 4):
        env = {**os.environ, "RAYON_NUM_THREADS": str(number), "PYTHONPATH": os.pathsep.join(sys.path)}
        said = subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True).stdout
        found = {json.dumps(QUESTIONS[name]): words for name, words in json.loads(said).items()}
        yield f"{number} threads", lambda q, layout: np.array(found[json.dumps(q)])


def words_of(frame):
    """What a site asks of rows in Spark."""
    assert frame.open()[0] == len(X)
    return lambda q, layout: frame.words(json.dumps(q), json.dumps(layout))


def spark(get):
    df = get("spark").read.parquet(str(get("files") / "rows.parquet"))
    for number in (1, 3, 8):
        own = df.repartition(number)
        assert own.rdd.getNumPartitions() == number
        yield f"{number} partitions", words_of(Frame(own, world.FEDERATION._planned))


def in_memory(get):
    """Frames and streams that a site takes into memory, as often as a plan comes."""

    def of(rows):
        under = handed(rows)
        assert np.array_equal(under(world.FEDERATION._planned), under(world.FEDERATION._planned))
        return lambda q, layout: questions.answer(q, layout, under(world.FEDERATION._planned))

    for name, make in STREAMS.items():
        library = pytest.importorskip(name, reason=f"SKIPPED: {name} is not installed")
        yield name, of(make(library, get("table"), str(get("files") / "rows.parquet")))


#: What a stream comes from has to be there as long as it.
OPEN = []


def _adbc(dbapi, table, file):
    cursor = dbapi.connect().cursor()
    OPEN.append(cursor)
    cursor.adbc_ingest("own", table)
    return cursor.execute("SELECT * FROM own").fetch_record_batch()


STREAMS = {
    "pandas": lambda pandas, table, file: pandas.read_parquet(file),
    "polars": lambda polars, table, file: polars.read_parquet(file),
    "pyarrow": lambda pyarrow, table, file: table.to_reader(),
    "duckdb": lambda duckdb, table, file: duckdb.sql(f"SELECT * FROM '{file}'"),
    "dask.dataframe": lambda dask, table, file: dask.read_parquet(file),
    "adbc_driver_sqlite.dbapi": _adbc,
}


def files_of_a_site(get):
    for form in ("csv", "parquet", "arrow"):
        path = str(get("files") / f"rows.{form}")
        yield form, lambda q, layout: questions.of_file(world.FEDERATION, q, path)


PLACES = [python, threads, files_of_a_site, in_memory, spark]


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
            assert words.tolist() == EXPECTED[asked].tolist(), (name, asked)
            compared += len(words)
        with capsys.disabled():
            print(f"\n  {place.__name__}, {name}: {compared} words, all the same", end="")


# ---- Trouble -----------------------------------------------------------------------------------------------------------


def killed(spark):
    """The process of one executor, which is killed: the rows that it held are gone with it."""
    for folder in os.listdir("/proc"):
        try:
            with open(f"/proc/{folder}/cmdline", "rb") as file:
                words = file.read()
            if b"CoarseGrainedExecutorBackend" in words and spark.sparkContext.applicationId.encode() in words:
                os.kill(int(folder), signal.SIGKILL)
                return int(folder)
        except (OSError, ValueError):
            continue
    raise AssertionError("Spark has no executor")


def test_a_worker_that_is_killed_as_rows_are_packed_changes_no_word(spark, files, tmp_path):
    mark = str(tmp_path / "killed")

    def once(batches):
        """The rows, and after the second batch of one task the end of the process that the task runs in."""
        for number, batch in enumerate(batches):
            yield batch
            if number == 1:
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)

    df = spark.read.parquet(str(files / "rows.parquet")).repartition(4)
    words = words_of(Frame(df.mapInArrow(once, df.schema), world.FEDERATION._planned))
    assert os.path.exists(mark), "no worker was killed"
    assert words(QUESTIONS["fuzzy"], LAYOUTS["fuzzy"]).tolist() == EXPECTED["fuzzy"].tolist()


def test_an_executor_that_is_killed_between_two_questions_changes_no_word(spark, files):
    words = words_of(Frame(spark.read.parquet(str(files / "rows.parquet")).repartition(4), world.FEDERATION._planned))
    for name in QUESTIONS:
        if name in ("fuzzy", "hard"):
            killed(spark)
        assert words(QUESTIONS[name], LAYOUTS[name]).tolist() == EXPECTED[name].tolist(), name


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
    veilsum.spark.Frame(spark.read.parquet({str(files / "rows.parquet")!r}), world.FEDERATION._planned).open()
except veilsum.errors.UsageError as e:
    print("SAID", e.message, "/", e.next_step)
finally:
    spark.stop()
"""
    # The executors have the environment's path, and the driver has one more.
    env = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    said = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=600)
    assert "SAID Spark's executors do not have the Python package veilsum / install the same wheel" in said.stdout, said.stderr[-2000:]


def frame_of(spark, rows, **options):
    federation = veilsum.Federation.of({**world.COLUMNS}, sites=world.SITES, k=2, **options)
    columns = [name for name in world.COLUMNS if name in rows]
    schema = ", ".join(f"`{name}` {'string' if rows[name].dtype == object else 'double'}" for name in columns)
    cells = [[None if value != value else value for value in row] for row in zip(*(rows[name].tolist() for name in columns))]
    return Frame(spark.createDataFrame(cells, schema).repartition(3), federation._planned)


def test_a_frame_that_does_not_fit_says_whose_fault_it_is_and_what_to_do(spark):
    good = {name: X[:100, j].copy() for j, name in enumerate(world.COLUMNS)}
    exact = {"exact": True, "max_rows": 100, "min_total_rows": 100}

    def said(rows, **options):
        with pytest.raises(veilsum.errors.InputError) as error:
            frame_of(spark, rows, **{**exact, **options}).open()
        assert error.value.culprit == "caller" and error.value.next_step
        return error.value.message

    assert frame_of(spark, good, **exact).open()[0] == 100
    lacks = {name: column for name, column in good.items() if name not in ("age", "bmi")}
    assert "that this site hands over has no column 'age', 'bmi', which the plan has" in said(lacks)
    bad = {**good, "age": good["age"].copy(), "bmi": good["bmi"].copy()}
    bad["age"][3], bad["age"][4], bad["bmi"][90] = np.nan, np.inf, np.nan
    assert "3 of 100 rows" in said(bad) and "'age' (2), 'bmi' (1)" in said(bad)
    assert "3 of 100 rows" in said(bad, out_of_box="clip")
    far = {**good, "bmi": good["bmi"] + 60}
    assert "100 of 100 rows" in said(far) and "outside the plan's public box" in said(far)
    assert "column 'bmi'" in said({**good, "bmi": np.array(["much"] * 100, object)})
    # [NOI-8]: under noise they count for nothing, and nobody is told before the last answer.
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert frame_of(spark, bad, rho=1.0, expected_rows=6_000).open()[0] == 97


def test_rows_that_change_between_two_questions_are_an_error_and_under_noise_none(spark, tmp_path):
    import pandas

    noisy = veilsum.Federation.of({**world.COLUMNS}, sites=world.SITES, k=2, rho=1.0, expected_rows=6_000, standardise="standard")
    moments = {"transform": None, "queries": [{"moments": {"around": None}}]}
    under_noise = questions.layout(noisy, moments)

    where, kept = str(tmp_path / "rows.parquet"), pandas.DataFrame(X[:100], columns=list(world.COLUMNS))
    kept.to_parquet(where)
    frame = Frame(spark.read.parquet(where), world.FEDERATION._planned)
    frame.open()
    asked = json.dumps(QUESTIONS["fuzzy"]), json.dumps(LAYOUTS["fuzzy"])
    expected = questions.answer(QUESTIONS["fuzzy"], LAYOUTS["fuzzy"], X[:100]).tolist()
    assert frame.words(*asked).tolist() == expected
    other = Frame(spark.read.parquet(where), noisy._planned)
    other.open()
    other._rows.unpersist(True)
    # The copy in Spark is gone, and the file is another: two rows exchange a value, so that every column is as before.
    frame._rows.unpersist(True)
    kept.loc[[0, 1], "sugar"] = kept.loc[[1, 0], "sugar"].to_numpy()
    kept.to_parquet(where)
    with pytest.raises(veilsum.errors.InputError, match="others than when this site opened them"):
        frame.words(*asked)
    # [NOI-8]: no row decides whether a site answers.
    answered = other.words(json.dumps(moments), json.dumps(under_noise)).tolist()
    assert answered == questions.answer(moments, under_noise, kept.to_numpy()).tolist()
