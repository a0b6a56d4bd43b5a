"""Parts of an answer: integers that are the same whatever the parts, here and on engines."""

import json
import subprocess
import sys

import numpy as np
import pytest

import veilsum
from veilsum import errors, questions, spark

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
    bits = [block["fraction_bits"] for block in layout["blocks"] for _ in range(block["len"])]
    expected = [int(np.rint(g * 2.0**f).astype(np.int64).sum()) for g, f in zip(entries, bits)]
    assert veilsum.answer(question, layout, rows).tolist() == expected


def test_words_add_up_in_any_parts_and_order(asked):
    question, layout, rows = asked
    assert questions.parts(question, layout) == "sum"
    whole = veilsum.answer(question, layout, rows)
    dice = np.random.default_rng(4)
    for parts in [1, 3, 8, 1000]:
        order = dice.permutation(1000)
        words = [veilsum.answer(question, layout, take(rows, part)) for part in np.array_split(order, parts)]
        assert (sum(words) == whole).all(), parts
    merged = veilsum.answer(question, layout, take(rows, np.arange(10)))
    merged = questions.merge(question, layout, merged, veilsum.answer(question, layout, take(rows, np.arange(10, 1000))))
    assert (merged == whole).all() and whole.dtype == np.int64
    assert (veilsum.answer(json.dumps(question), json.dumps(layout), rows) == whole).all()


def test_tables_of_every_kind_have_the_same_words(asked):
    question, layout, rows = asked
    whole = veilsum.answer(question, layout, rows)
    for name in ["pandas", "polars"]:
        library = pytest.importorskip(name)
        assert (veilsum.answer(question, layout, library.DataFrame(rows)) == whole).all(), name
    arrow = pytest.importorskip("pyarrow")
    assert (veilsum.answer(question, layout, arrow.table(rows)) == whole).all()
    assert (veilsum.answer(question, layout, arrow.table(rows).to_batches()[0]) == whole).all()


def test_rows_that_cannot_be_used_are_counted(asked):
    question, layout, rows = asked
    bad = {name: column.copy() for name, column in rows.items()}
    bad["bmi"][3], bad["bmi"][7], bad["ward"][9] = np.nan, 61.0, "west"
    with pytest.raises(errors.InputError, match="3 rows"):
        veilsum.answer(question, layout, bad)
    words, used, left = questions.counted(question, layout, bad)
    kept = [place for place in range(1000) if place not in (3, 7, 9)]
    assert (used, left) == (997, 3) and (words == veilsum.answer(question, layout, take(rows, kept))).all()


def test_questions_and_layouts_that_do_not_fit(asked):
    question, layout, rows = asked
    for broken in [{}, {"transform": None, "queries": []}, {"transform": None, "queries": [{"nothing": {}}]}]:
        with pytest.raises(ValueError):
            veilsum.answer(broken, layout, rows)
    with pytest.raises(ValueError):
        veilsum.answer(question, {**layout, "blocks": layout["blocks"][:1]}, rows)
    with pytest.raises(ValueError):
        veilsum.answer(questions.fuzzy_sums(np.zeros((2, 3))), layout, rows)
    with pytest.raises(errors.InputError, match="no column 'ward'"):
        veilsum.answer(question, layout, {"age": rows["age"], "bmi": rows["bmi"]})


def test_the_function_for_spark_gives_the_words_by_place(asked):
    arrow = pytest.importorskip("pyarrow")
    question, layout, rows = asked
    function = spark.partial(question, layout)
    table = arrow.table(rows)
    whole = veilsum.answer(question, layout, rows)
    totals = np.zeros(len(whole) + 2, np.int64)
    for first in range(0, 1000, 250):
        batches = table.slice(first, 250).to_batches(max_chunksize=100)
        (out,) = function(iter(batches))
        np.add.at(totals, out.column("i").to_numpy() + 2, out.column("v").to_numpy())
    (nothing,) = function(iter([]))
    assert (totals[2:] == whole).all() and totals[1] == 1000 and totals[0] == 0
    assert not nothing.column("v").to_numpy().any()
    # What goes to an executor names this module and nothing of ours in memory.
    import pickle

    assert len(pickle.dumps(function)) < 10_000


def test_dask(asked):
    pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    import dask.dataframe as dd

    import veilsum.dask

    question, layout, rows = asked
    whole = veilsum.answer(question, layout, rows)
    frame = pandas.DataFrame(rows)
    for parts in [1, 3, 8]:
        ddf = dd.from_pandas(frame, npartitions=parts)
        assert (veilsum.dask.words(ddf, question, layout) == whole).all()
    by_place = ddf.map_partitions(veilsum.dask.partial(question, layout), meta={"i": "int64", "v": "int64"})
    sums = by_place.groupby("i").v.sum().compute().sort_index()
    assert (sums.loc[0:].to_numpy() == whole).all() and sums[spark.ROWS] == 1000 and sums[spark.BAD] == 0


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


def test_an_answerer_keeps_to_its_contract(asked, tmp_path):
    from veilsum.answerer import Answerer

    question, layout, rows = asked
    whole = veilsum.answer(question, layout, rows).tolist()
    hello = {"type": "hello", "protocol": 1, **{key: layout[key] for key in layout if key != "blocks"}}
    ask = {"type": "ask", "id": 7, "question": question, "blocks": [{**block, "limit": 2**62} for block in layout["blocks"]]}

    def conversation(table):
        answerer = Answerer(table)
        return [answerer.line(json.dumps(line)) for line in (hello, ask, {"type": "end"})]

    ready, answer, ended = conversation(rows)
    assert ended is None and [int(word) for word in answer["words"]] == whole
    assert (ready["rows"], ready["bad"], answer["id"]) == (1000, {}, 7)
    assert all(isinstance(word, str) == (abs(int(word)) >= 2**53) for word in answer["words"])
    # The same rows in another order are known again; one other value is not.
    mixed = take(rows, np.random.default_rng(5).permutation(1000))
    again = conversation(mixed)
    assert again[0]["fingerprint"] == ready["fingerprint"] and again[1]["words"] == answer["words"]
    mixed["age"] = mixed["age"].copy()
    mixed["age"][0] += 1 if mixed["age"][0] < 100 else -1
    other = conversation(mixed)[0]["fingerprint"]
    assert other["rows"] != ready["fingerprint"]["rows"] and other["columns"][1:] == ready["fingerprint"]["columns"][1:]
    # As a process, from a file.
    with open(tmp_path / "rows.csv", "w") as file:
        file.write("age,bmi,ward\n")
        file.writelines(f"{a},{b!r},{w}\n" for a, b, w in zip(rows["age"], rows["bmi"].tolist(), rows["ward"]))
    command = [sys.executable, "-m", "veilsum.answerer", str(tmp_path / "rows.csv")]
    text = "".join(json.dumps(line) + "\n" for line in (hello, ask, {"type": "end"}))
    out = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert json.loads(out[0])["fingerprint"] == ready["fingerprint"] and json.loads(out[1])["words"] == answer["words"]


class InMemory:
    """An engine that has the rows in parts of two."""

    def __init__(self, table):
        self.table = table

    def __call__(self, columns, function):
        for at in range(0, len(self.table["flag"]), 2):
            yield function([take(self.table, slice(at, at + 2))])


@pytest.mark.parametrize("engine", [False, True])
def test_zeros_count_in_a_fingerprint_and_the_order_in_a_plan_does_not(engine):
    from veilsum.answerer import Answerer
    from veilsum.engines import InParts

    bounds = {"flag": (0.0, 1.0), "other": (0.0, 1.0), "dose": (0.0, 9.0)}

    def ready(rows, names=tuple(bounds), wards=("north", "south"), clip=None):
        flag, other, dose, ward = zip(*rows)
        table = {"flag": np.array(flag, float), "other": np.array(other, float), "dose": np.array(dose, float), "ward": np.array(ward, object)}
        box = {**bounds, **({"dose": clip} if clip else {})}
        hello = {
            "type": "hello", "protocol": 1, "columns": [{"name": n, "lower": box[n][0], "upper": box[n][1]} for n in names],
            "categorical": [{"column": "ward", "categories": list(wards), "one": 0.5}], "scaling": "none",
            "out_of_box": "clip" if clip else "refuse",
        }  # fmt: skip
        answerer = InParts(InMemory(table)) if engine else Answerer(table)
        said = answerer.line(json.dumps(hello))
        assert said["type"] == "ready" and not said["bad"], said
        return said

    rows = [(1, 0, 5, "north"), (0, 1, 7, "south"), (0, 0, 8.5, "north")]
    known = ready(rows)["fingerprint"]
    other = ready(rows[::-1], ("dose", "flag", "other"), ("south", "north"))["fingerprint"]
    assert other["rows"] == known["rows"] and other["columns"] == [known["columns"][at] for at in (2, 0, 1, 3)]
    assert ready([(1, -0.0, 5, "north"), *rows[1:]])["fingerprint"] == known
    # Flags, or wards, of two rows change places: no column is another one, and the rows are.
    for two in [
        [(0, 1, 5, "north"), (1, 0, 7, "south")], [(0, 0, 5, "north"), (1, 1, 7, "south")], [(1, 0, 5, "south"), (0, 1, 7, "north")],
    ]:  # fmt: skip
        changed = ready([*two, rows[2]])["fingerprint"]
        assert changed["columns"] == known["columns"] and changed["rows"] != known["rows"]
    more = ready([*rows, (0, 0, 0, "north")])["fingerprint"]
    assert more["rows"] != known["rows"] and all(a != b for a, b in zip(more["columns"], known["columns"]))
    # The rows are known in any box.
    assert ready(rows, clip=(3.0, 4.0))["fingerprint"] == known


def test_an_answerer_refuses_what_the_contract_does_not_have(asked):
    from veilsum.answerer import Answerer

    question, layout, rows = asked
    hello = {"type": "hello", "protocol": 1, **{key: layout[key] for key in layout if key != "blocks"}}
    answerer = Answerer(rows)
    ask = {"type": "ask", "id": 1, "question": question, "blocks": layout["blocks"]}
    for line, code in [
        ("not json", "protocol"), ("[]", "protocol"), ("{}", "protocol"), (json.dumps(ask), "protocol"),
        (json.dumps({**hello, "protocol": 2}), "version"), ('{"type": "hello", "protocol": 1}', "protocol"),
        (json.dumps({**hello, "columns": [{"name": "iron", "lower": 0, "upper": 1}]}), "columns"),
    ]:  # fmt: skip
        said = answerer.line(line)
        assert (said["type"], said["code"]) == ("error", code) and said["next"], line
    answerer.line(json.dumps(hello))
    assert answerer.line(json.dumps({**ask, "blocks": []}))["id"] == 1
    bad = {**rows, "bmi": rows["bmi"] + 20}
    ready = Answerer(bad).line(json.dumps(hello))
    assert ready["bad"] == {"outside the box": int((bad["bmi"] > 60).sum())}
