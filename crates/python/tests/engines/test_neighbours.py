"""One row moves the words by no more than its sensitivity (specification, section 17.4), wherever the rows are, and no row stops them under
noise ([NOI-8]). ``VEILSUM_NEIGHBOURS=100000`` tries as many neighbours in memory, and a part of that in Spark."""

import json
import math
import os
import warnings

import numpy as np
import pytest
import world
from world import COLUMNS, FEDERATION, held

import veilsum
from veilsum import questions
from veilsum._rows import of_plan
from veilsum.spark import Frame

TRIES = int(os.environ.get("VEILSUM_NEIGHBOURS", "200"))
D = len(COLUMNS)
#: The diagonal of the box in working units, and how long a row is at most.
FAR = math.sqrt(D)
HAIR = 1 + 1e-9
LOW, HIGH = np.array(list(COLUMNS.values())).T
NOISY = veilsum.Federation.of(COLUMNS, sites=world.SITES, k=2, rho=1.0, expected_rows=6_000)
NOISE = NOISY.plan["recipe"]["noise"]


def asked(source):
    """Centres, also in one corner or next to each other, and what is asked about them: query and the sensitivity of each block."""
    k = int(source.integers(1, 5))
    first = source.integers(0, 2, D).astype(float) if source.integers(3) == 0 else source.random(D)
    centres = first + source.choice([0.0, 1e-9, 1e-3, 1.0]) * (source.random((k, D)) - first)
    m = float(source.choice([1 + 1e-9, 1.1, 2.0, 3.0]))
    around, clip = source.random(D), float(source.choice([0.1, FAR / 2 * (1 + 1e-5)]))
    about, root = {"centres": held(centres)}, math.sqrt(k)
    local = {"local": {"most": 1, "epsilon": 0.0}, "min_rows": 1, "nearest": False}
    shifts = {**about, "m": m, "middle": bool(source.integers(2)), "clip": clip, "round": 0}
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


def check(words_of, source, tries):
    """``words_of(question, layout, rows)`` of so many neighbours."""
    largest = {}
    for _ in range(tries):
        centres, wanted = asked(source)
        question = {"transform": None, "queries": [query for query, _ in wanted]}
        layout = questions.layout(FEDERATION, question)
        layout["work"] = {**layout["work"], "out_of_box": "clip", "recipe": {**layout["work"]["recipe"], "noise": NOISE}}
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


def test_in_memory():
    largest = check(lambda q, layout, x: questions.answer(q, layout, table(x)), np.random.default_rng(41), TRIES)
    # A halved sensitivity would be found in every block but those whose parts are not largest together.
    loose = {("shifts", "shifts"), ("shifts", "squares")}
    assert min(part for key, part in largest.items() if key not in loose) > 0.6, largest


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
    assert np.nansum(rows, axis=0).tolist() == ([1, 3] if noise else [1, 0])
    assert np.isnan(rows).all(axis=1).sum() == (1 if noise else 4)
