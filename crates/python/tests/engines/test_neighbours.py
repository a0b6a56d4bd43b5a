"""One row moves the words by no more than its sensitivity (specification, section 17.4), wherever the rows are, and no row stops them under
noise ([NOI-8]). ``VEILSUM_NEIGHBOURS=100000`` tries as many neighbours in memory, and a part of that in every engine."""

import importlib.util
import json
import math
import os

import numpy as np
import pytest
import world
from world import COLUMNS, FEDERATION, held

from veilsum import answerer, questions
from veilsum.engines import InParts

TRIES = int(os.environ.get("VEILSUM_NEIGHBOURS", "200"))
D = len(COLUMNS)
#: The diagonal of the box in working units, and how long a row is at most.
FAR = math.sqrt(D)
HAIR = 1 + 1e-9
LOW, HIGH = np.array(list(COLUMNS.values())).T


def asked(source):
    """Centres, also in one corner or next to each other, and what is asked about them: query and the sensitivity of each block."""
    k = int(source.integers(1, 5))
    first = source.integers(0, 2, D).astype(float) if source.integers(3) == 0 else source.random(D)
    centres = first + source.choice([0.0, 1e-9, 1e-3, 1.0]) * (source.random((k, D)) - first)
    m = float(source.choice([1 + 1e-9, 1.1, 2.0, 3.0]))
    around, clip = source.random(D), float(source.choice([0.1, FAR / 2 * (1 + 1e-5)]))
    about, root = {"centres": held(centres)}, math.sqrt(k)
    local = {"local": {"most": 1, "epsilon": 0.0}, "min_rows": 1, "nearest": False}
    shifts = {**about, "m": m, "typical": None, "middle": bool(source.integers(2)), "clip": clip, "round": 0}
    possible = {**shifts, "typical": {"distance": 0.3, "typicality": "possibilistic"}}
    brackets = [{"column": column, "lower": 0.0, "upper": 1.0} for column in range(D)]
    asked = [
        ({"fuzzy_sums": {**about, "m": m}}, [FAR, 1]),
        ({"local_means": {**about, **local}}, [1, FAR, FAR**2]),
        ({"moments": {"around": None}}, [1] * (D + 1)),
        ({"moments": {"around": around.tolist()}}, [1, *np.maximum(around, 1 - around) ** 2]),
        ({"fuzzy_validation": {**about, "m": m}}, [root * FAR, 1, FAR**2 * k ** (1 - m)]),
        ({"margins": {"bins": 16}}, [math.sqrt(D)]),
        ({"histogram": {"brackets": brackets, "bins": 4}}, [math.sqrt(D)]),
        ({"shifts": shifts}, [1, clip, clip**2]),
        ({"shifts": possible}, [root, root * clip, k * clip**2]),
        ({"typical_sums": {**about, "m": m, "distance": 0.3, "typicality": "possibilistic"}}, [root * FAR, root]),
    ]
    return centres, asked


def rows(source, centres, n):
    """Rows of the box and beyond it, at a centre, in a corner; and such as cannot be used."""
    x = source.random((n, D))
    for row in x:
        kind = source.integers(6)
        if kind == 0:
            row[:] = centres[source.integers(len(centres))]
        elif kind == 1:
            row[:] = source.integers(0, 2, D)
        elif kind == 2:
            row[:] = np.where(centres[0] > 0.5, 0.0, 1.0)
    x = LOW + x * (HIGH - LOW)
    for row in x:
        if source.integers(6) == 0:
            row[source.integers(D)] = source.choice([np.nan, np.inf, -np.inf, 1e300, -1e300])
    return x


def check(words_of, source, tries, only=None):
    """``words_of(question, layout, rows)`` of so many neighbours."""
    largest = {}
    for _ in range(tries):
        centres, all_asked = asked(source)
        wanted = [(query, bounds) for query, bounds in all_asked if only is None or set(query) <= only]
        question = {"transform": None, "queries": [query for query, _ in wanted]}
        layout = {**questions.layout(FEDERATION, question), "out_of_box": "clip", "noise": True}
        before, more = rows(source, centres, int(source.integers(5))), rows(source, centres, 1)
        after = np.insert(before, source.integers(len(before) + 1), more, axis=0)
        of = [np.array(words_of(question, layout, x)) for x in (before, after, more)]
        change, rest = of[1] - of[0], iter(layout["blocks"])
        assert change.tolist() == of[2].tolist(), "other rows moved"
        if not np.isfinite(more).all():
            assert not change.any(), "a row that cannot be used counts"
        at = 0
        for query, bounds in wanted:
            for bound in bounds:
                block = next(rest)
                own = change[at : at + block["len"]].astype(float)
                at += block["len"]
                most = bound * HAIR * (1 + 1e-5) * 2.0 ** block["fraction_bits"] + math.sqrt(block["len"]) / 2
                moved = math.sqrt((own**2).sum())
                assert moved <= most, (query, block, moved / most)
                key = (next(iter(query)), block["name"])
                largest[key] = max(largest.get(key, 0), moved / most)
        assert at == len(change) and next(rest, None) is None
    return largest


def table(x):
    return {name: x[:, j] for j, name in enumerate(COLUMNS)}


def said(lines, question, layout):
    """The words of an answerer."""
    hello = {"type": "hello", "protocol": 1, **{key: layout[key] for key in layout if key != "blocks"}}
    ready = lines(json.dumps(hello))
    assert ready["type"] == "ready", ready
    blocks = [{**block, "limit": 2**63 - 1} for block in layout["blocks"]]
    answer = lines(json.dumps({"type": "ask", "id": 1, "question": question, "blocks": blocks}))
    assert answer["type"] == "answer", answer
    assert (answer["rows"], answer["bad"]) == (ready["rows"], sum(ready["bad"].values()))
    return [int(word) for word in answer["words"]]


def test_in_memory():
    largest = check(lambda q, layout, x: questions.answer(q, layout, table(x)), np.random.default_rng(41), TRIES)
    # A halved sensitivity would be found in every block but those whose parts are not largest together.
    loose = {("typical_sums", "weights"), ("typical_sums", "weighted_sums"), ("shifts", "shifts"), ("shifts", "squares")}
    assert min(part for key, part in largest.items() if key not in loose) > 0.6, largest


def test_of_a_frame():
    pandas = pytest.importorskip("pandas", reason="SKIPPED: pandas is not installed")
    source = np.random.default_rng(42)
    check(lambda q, layout, x: questions.answer(q, layout, pandas.DataFrame(table(x))), source, TRIES // 4)


def test_of_an_answerer():
    check(lambda q, layout, x: said(answerer.Answerer(table(x)).line, q, layout), np.random.default_rng(43), TRIES)


def test_of_an_answerer_in_parts():
    source = np.random.default_rng(44)

    def words(question, layout, x):
        parts = [table(part) for part in np.array_split(x, source.integers(1, 4))]
        return said(InParts(lambda columns, function: [function([part]) for part in parts]).line, question, layout)

    check(words, source, TRIES)


def test_in_duckdb(examples):
    duckdb = pytest.importorskip("duckdb", reason="SKIPPED: duckdb is not installed")
    spec = importlib.util.spec_from_file_location("duckdb_answerer", examples / "duckdb_answerer.py")
    of = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(of)
    columns = ", ".join(f"{of.quoted(name)} DOUBLE" for name in COLUMNS)

    def words(question, layout, x):
        engine = of.DuckDB(":memory:", "own")
        engine.db.execute(f"CREATE TABLE own ({columns})")
        for row in x.tolist():
            # No value is no number.
            engine.db.execute(f"INSERT INTO own VALUES ({', '.join('?' * D)})", [None if value != value else value for value in row])
        return said(engine.line, question, layout)

    assert duckdb.__version__
    check(words, np.random.default_rng(45), TRIES // 4, set(of.DuckDB.kinds))


def test_in_spark(spark):
    pandas = pytest.importorskip("pandas", reason="SKIPPED: pandas is not installed")
    import veilsum.spark as of

    source = np.random.default_rng(46)
    schema = ", ".join(f"`{name}` double" for name in COLUMNS)

    def words(question, layout, x):
        frame = pandas.DataFrame(table(x)).to_numpy().tolist()
        df = spark.createDataFrame(frame, schema).repartition(int(source.integers(1, 4)))
        return of.words(of.packed(df, layout) if source.integers(2) else df, question, layout)

    check(words, source, max(4, TRIES // 20))


def test_in_dask():
    dask = pytest.importorskip("dask.dataframe", reason="SKIPPED: dask is not installed")
    import pandas

    import veilsum.dask as of

    source = np.random.default_rng(47)

    def words(question, layout, x):
        if len(x) == 0:
            return questions.answer(question, layout, table(x))
        frame = dask.from_pandas(pandas.DataFrame(table(x)), npartitions=int(source.integers(1, 4)))
        return of.words(frame, question, layout)

    check(words, source, TRIES // 10)


@pytest.mark.parametrize("noise", [False, True])
def test_a_word_that_is_not_listed_is_other_under_noise_alone(noise):
    words = np.array(["a", "b", "c", "", "b"], object)
    layout = {
        "columns": [], "categorical": [{"column": "w", "categories": ["a", "other"], "one": 0.5}], "scaling": "box", "out_of_box": "clip",
        "noise": noise, "blocks": [{"len": 1, "fraction_bits": 4}] * 3,
    }  # fmt: skip
    found, rows, bad = questions.counted({"transform": None, "queries": [{"moments": {"around": None}}]}, layout, {"w": words})
    assert (found.tolist(), rows, bad) == (([64, 8, 24], 4, 1) if noise else ([16, 8, 0], 1, 4))
