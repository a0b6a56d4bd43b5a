"""One row moves the words by at most 2^24 ([NOI-3]), wherever the rows are, and no row stops them under noise ([NOI-8]). ``VEILSUM_NEIGHBOURS=100000`` tries as many neighbours in memory, and a part of that in Spark."""

import json
import math
import os
import warnings

import numpy as np
import pytest
import world
from world import COLUMNS, held

import veilsum
from veilsum import questions
from veilsum._rows import of_plan
from veilsum.spark import Frame

TRIES = int(os.environ.get("VEILSUM_NEIGHBOURS", "200"))
D = len(COLUMNS)
#: How far a row moves the words.
REACH = 2.0**24
LOW, HIGH = np.array(list(COLUMNS.values())).T
#: Its plan asks every kind of question.
NOISY = veilsum.Federation.of(COLUMNS, sites=world.SITES, k=2, rho=1.0, expected_rows=6_000, standardise="standard")


def asked(source):
    """Centres, also in one corner or next to each other, and what is asked about them."""
    k = int(source.integers(1, 5))
    first = source.integers(0, 2, D).astype(float) if source.integers(3) == 0 else source.random(D)
    centres = first + source.choice([0.0, 1e-9, 1e-3, 1.0]) * (source.random((k, D)) - first)
    m = float(source.choice([1 + 1e-9, 1.1, 1.5, 2.0, 3.0]))
    clip = float(source.choice([0.1, math.sqrt(D) / 2 * (1 + 1e-5)]))
    about = {"centres": held(centres)}
    brackets = [{"column": column, "lower": 0.0, "upper": 1.0} for column in range(D)]
    return centres, [
        {"moments": {"around": None}},
        {"moments": {"around": source.random(D).tolist()}},
        {"fuzzy_validation": {**about, "m": m}},
        {"validation": {**about, "m": m, "vectors": bool(source.integers(2))}},
        {"margins": {"bins": 16}},
        {"histogram": {"brackets": brackets, "bins": 4}},
        {"shifts": {**about, "m": m, "middle": bool(source.integers(2)), "clip": clip, "round": 0}},
        {"shifts": {**about, "m": None, "middle": False, "clip": clip, "round": 0}},
    ]


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


def check(words_of, source, tries):
    """``words_of(question, layout, rows)`` of so many neighbours: the largest change by kind, as a part of what is allowed."""
    largest = {}
    for _ in range(tries):
        centres, queries = asked(source)
        before, more = rows(source, centres, int(source.integers(5))), rows(source, centres, 1)
        after = np.insert(before, source.integers(len(before) + 1), more, axis=0)
        for query in queries:
            question = {"transform": None, "queries": [query]}
            layout = questions.layout(NOISY, question)
            of = [np.array(words_of(question, layout, x)) for x in (before, after, more)]
            change = of[1] - of[0]
            assert change.tolist() == of[2].tolist(), "other rows moved"
            if not np.isfinite(more).all():
                assert not change.any(), "a row that cannot be used counts"
            moved = math.sqrt((change.astype(float) ** 2).sum()) / REACH
            assert moved <= 1, (query, moved)
            kind = next(iter(query))
            largest[kind] = max(largest.get(kind, 0), moved)
    return largest


def table(x):
    return {name: x[:, j] for j, name in enumerate(COLUMNS)}


def test_in_memory():
    largest = check(lambda q, layout, x: questions.answer(q, layout, table(x)), np.random.default_rng(41), TRIES)
    # Twice as far would be found, but where the parts of a vector are not largest together.
    assert min(part for kind, part in largest.items() if kind != "validation") > 0.6, largest


def test_of_a_frame():
    pandas = pytest.importorskip("pandas", reason="SKIPPED: pandas is not installed")
    source = np.random.default_rng(42)
    check(lambda q, layout, x: questions.answer(q, layout, pandas.DataFrame(table(x))), source, TRIES // 4)


def test_in_spark(spark):
    source = np.random.default_rng(46)
    schema = ", ".join(f"`{name}` double" for name in COLUMNS)

    def words(question, layout, x):
        df = spark.createDataFrame(x.tolist(), schema).repartition(int(source.integers(1, 4)))
        frame = Frame(df, NOISY._planned)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame.open()
        return frame.words(json.dumps(question), json.dumps(layout))

    check(words, source, max(4, TRIES // 20))


@pytest.mark.parametrize("noise", [False, True])
def test_a_word_that_is_not_listed_is_other_under_noise_alone(noise):
    words = np.array(["a", "b", "c", "", "b"], object)
    rows = of_plan({"w": words}, [], [("w", ["a", "other"])], finite=False, noise=noise)
    usable = np.isfinite(rows).all(axis=1)
    assert rows[usable].sum(axis=0).tolist() == ([1, 3] if noise else [1, 0])
    assert (~usable).sum() == (1 if noise else 4)
