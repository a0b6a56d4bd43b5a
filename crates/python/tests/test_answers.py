"""Parts of an answer: integers that are the same whatever the parts."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import veilsum
from veilsum import _core, errors, questions, spark

COLUMNS = {"age": (0.0, 120.0), "bmi": (10.0, 60.0)}


@pytest.fixture
def asked():
    federation = veilsum.Federation.of(COLUMNS, categories={"ward": ["north", "south"]}, sites=["a", "b", "c"], k=3, exact=True)
    question = questions.fuzzy_sums(np.random.default_rng(1).random((3, 4)), 2.0)
    source = np.random.default_rng(2)
    rows = {
        "bmi": source.uniform(10, 60, 1000),
        "age": source.integers(0, 120, 1000),
        "ward": np.array(["south", "north"], object)[source.integers(2, size=1000)],
    }
    return question, questions.layout(federation, question), rows


def take(rows, places):
    return {name: column[places] for name, column in rows.items()}


def test_words_are_those_of_the_definition():
    federation = veilsum.Federation.of(COLUMNS, sites=["a", "b", "c"], k=2, exact=True)
    centres = np.array([[0.25, 0.5], [0.75, 0.125]])
    question = questions.fuzzy_sums(centres)
    layout = questions.layout(federation, question)
    rows = np.random.default_rng(3).uniform([0, 10], [120, 60], (500, 2))
    rows[0] = [30, 35]  # on the first centre
    w = (rows - [0, 10]) / [120, 50]
    q = (w[:, None, 0] - centres[:, 0]) * (w[:, None, 0] - centres[:, 0])
    q = q + (w[:, None, 1] - centres[:, 1]) * (w[:, None, 1] - centres[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        i = 1 / q
        u = i * (1 / (i[:, 0] + i[:, 1]))[:, None]
    u[0] = [1, 0]
    weights = u * u
    entries = [weights[:, k] * w[:, j] for k in range(2) for j in range(2)] + [weights[:, k] for k in range(2)]
    bits = [block["fraction_bits"] for block in layout["steps"]["exact"] for _ in range(block["len"])]
    expected = [int(np.rint(g * 2.0**f).astype(np.int64).sum()) for g, f in zip(entries, bits)]
    assert questions.answer(question, layout, rows).tolist() == expected


def test_words_add_up_in_any_parts_and_order(asked):
    question, layout, rows = asked
    whole = questions.answer(question, layout, rows)
    dice = np.random.default_rng(4)
    for parts in [1, 3, 8, 1000]:
        order = dice.permutation(1000)
        words = [questions.answer(question, layout, take(rows, part)) for part in np.array_split(order, parts)]
        assert (sum(words) == whole).all(), parts
    assert whole.dtype == np.int64


def test_tables_of_every_kind_have_the_same_words(asked):
    question, layout, rows = asked
    whole = questions.answer(question, layout, rows)
    for name in ["pandas", "polars"]:
        library = pytest.importorskip(name)
        assert (questions.answer(question, layout, library.DataFrame(rows)) == whole).all(), name
    arrow = pytest.importorskip("pyarrow")
    assert (questions.answer(question, layout, arrow.table(rows)) == whole).all()
    assert (questions.answer(question, layout, arrow.table(rows).to_batches()[0]) == whole).all()


def test_rows_that_cannot_be_used_are_counted(asked):
    question, layout, rows = asked
    bad = {name: column.copy() for name, column in rows.items()}
    bad["bmi"][3], bad["bmi"][7], bad["ward"][9] = np.nan, 61.0, "west"
    with pytest.raises(errors.InputError, match="3 rows"):
        questions.answer(question, layout, bad)
    words, used, left = questions.counted(question, layout, bad)
    kept = [place for place in range(1000) if place not in (3, 7, 9)]
    assert (used, left) == (997, 3) and (words == questions.answer(question, layout, take(rows, kept))).all()


def test_questions_and_layouts_that_do_not_fit(asked):
    question, layout, rows = asked
    for broken in [{}, {"transform": None, "queries": []}, {"transform": None, "queries": [{"nothing": {}}]}]:
        with pytest.raises(ValueError):
            questions.answer(broken, layout, rows)
    with pytest.raises(ValueError):
        questions.answer(question, {**layout, "steps": {"exact": layout["steps"]["exact"][:1]}}, rows)
    with pytest.raises(ValueError):
        questions.answer(questions.fuzzy_sums(np.zeros((2, 3))), layout, rows)
    with pytest.raises(errors.InputError, match="no column 'ward'"):
        questions.answer(question, layout, {"age": rows["age"], "bmi": rows["bmi"]})


def test_what_executors_call_gives_words_that_add_up(asked):
    arrow = pytest.importorskip("pyarrow")
    question, layout, rows = asked
    texts = json.dumps(question), json.dumps(layout)
    pack, total = spark._Pack(["age", "bmi"], [("ward", ["north", "south"])], False), spark._Sum(*texts, 4)

    def part(first, rows):
        batches = arrow.table(rows).slice(first, 250).to_batches(max_chunksize=100)
        (out,) = total(pack(iter(batches)))
        return out.to_pylist()[0]

    def of(rows):
        found = [part(first, rows) for first in range(0, 1000, 250)]
        digest = sum(int.from_bytes(one["digest"], "little") for one in found) % 2**128
        return sum(np.frombuffer(one["words"], np.int64) for one in found), sum(one["rows"] for one in found), digest

    words, used, digest = of(rows)
    assert (words == questions.answer(question, layout, rows)).all() and used == 1000
    # The same rows in another order are known again; two that exchange a value are not.
    mixed = take(rows, np.random.default_rng(5).permutation(1000))
    assert of(mixed)[1:] == (1000, digest)
    mixed["age"][[0, 1]] = mixed["age"][[1, 0]] if mixed["age"][0] != mixed["age"][1] else [0, 119]
    assert of(mixed)[2] != digest
    (nothing,) = total(iter([]))
    assert not np.frombuffer(nothing.to_pylist()[0]["words"], np.int64).any()
    # What goes to an executor names this module and nothing of ours in memory.
    assert all(len(pickle.dumps(function)) < 10_000 for function in (pack, total))


def test_the_digest_goes_by_names_and_rows(asked):
    def digest(columns, rows):
        federation = veilsum.Federation.of({name: (-9.0, 9.0) for name in columns}, sites=["a", "b", "c"], k=2, exact=True)
        layout = questions.layout(federation, questions.fuzzy_sums(np.zeros((2, len(columns)))))
        return _core.answer(None, json.dumps({**layout, "steps": {"exact": []}}), np.array(rows, float))[3]

    rows = [[1, 0, 5], [0, 1, 7], [0, 0, 8.5]]
    known = digest("xyz", rows)
    assert digest("zxy", [[5, 1, 0], [8.5, 0, 0], [7, 0, 1]]) == known == digest("xyz", [[1, -0.0, 5], *rows[1:]])
    assert digest("xyz", [[0, 1, 5], [1, 0, 7], rows[2]]) != known != digest("xyz", [*rows, [0, 0, 0]])


def test_other_threads_run_while_words_are_computed(asked):
    program = """
import json, sys, threading, time, numpy as np, veilsum
from veilsum import _core, questions
sys.setswitchinterval(60)  # nobody is interrupted: whoever runs meanwhile was let run
federation = veilsum.Federation.of({f"x{i}": (0, 1) for i in range(16)}, sites=["a", "b", "c"], k=2, exact=True)
question = questions.fuzzy_sums(np.random.default_rng(0).random((10, 16)))
layout = json.dumps(questions.layout(federation, question))
question, rows = json.dumps(question), np.random.default_rng(1).random((400_000, 16))
ran, go = [], threading.Event()
def other():
    go.wait()
    ran.append(time.perf_counter())
thread = threading.Thread(target=other)
thread.start()
time.sleep(0.2)
go.set()
_core.answer(question, layout, rows)
ended = time.perf_counter()
thread.join()
assert ran[0] < ended, (ran, ended)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
