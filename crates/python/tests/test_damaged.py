"""Tables as people have them, damaged at random: where pandas, polars and DuckDB read the same numbers, Veilsum reads these numbers or refuses.

``VEILSUM_DAMAGED`` says how many tables (200), ``VEILSUM_SEED`` which ones. What fails is named by its seed, and its text is shown: the rows
are made here and nobody's.
"""

import os
import random
from collections import Counter

import numpy as np
import pytest

import veilsum
from veilsum import errors, questions

TABLES = int(os.environ.get("VEILSUM_DAMAGED", "200"))
SEED = int(os.environ.get("VEILSUM_SEED", str(random.SystemRandom().randrange(2**32))))
COLUMNS = {"age": (0.0, 1e6), "bmi": (-1e6, 1e6)}
MARKS = ["", "NA", "N/A", "null", "NULL", "None", "nan", "NaN", "inf", "-", "?", ".", "#N/A", "missing", "-99", "n.a."]
NOTES = ["ok", "a, b", 'said "no"', "first\nsecond", "line\r\nline", "é", "", "x;y", "tab\there", "'", "1,5", " padded "]


def table(dice):
    """A table of numbers and a note, as bytes: the way some program exports it."""
    separator, end = dice.choice([","] * 8 + [";", "\t"]), dice.choice(["\n", "\n", "\r\n"])
    notes = dice.random() < 0.5
    places, odd = dice.choice([0, 1, 2, 6]), dice.random() < 0.15

    def number(low, high):
        x = dice.uniform(low, high)
        plain = f"{x:.{places}f}"
        return dice.choice([plain] * 4 + [f"{x:e}", f"{x:+.2f}", repr(x), f"{x:08.2f}"]) if odd else plain

    rows = [["age", "bmi", *(["note"] if notes else [])]]
    for _ in range(dice.choice([1, 3, 12, 60, 200])):
        rows.append([number(0, 100), number(-50, 60), *([dice.choice(NOTES)] if notes else [])])
    quoted = dice.choice(["needed", "needed", "all", "some"])

    def cell(text):
        needs = any(c in text for c in (separator, '"', "\n", "\r"))
        if needs or quoted == "all" or (quoted == "some" and dice.random() < 0.3):
            return '"' + text.replace('"', '""') + '"'
        return text

    return rows, lambda rows: end.join(separator.join(map(cell, row)) for row in rows) + end * dice.choice([1, 1, 0]), separator


def in_cell(change):
    def damage(dice, rows):
        row = dice.randrange(1, len(rows))
        column = dice.randrange(2)
        rows[row][column] = change(dice, rows[row][column])

    return damage


def in_rows(change):
    def damage(dice, rows):
        for row in rows[1:]:
            for column in range(2):
                row[column] = change(dice, row[column])

    return damage


def some_line(dice, rows):
    return dice.randrange(1, len(rows) + 1)


CELLS = [
    lambda dice, text: dice.choice(MARKS),
    lambda dice, text: text.replace(".", ","),
    lambda dice, text: f" {text}",
    lambda dice, text: f"{text} ",
    lambda dice, text: f"\u00a0{text}",
    lambda dice, text: text.replace("-", "\u2212"),
    lambda dice, text: f"1,{text}",
    lambda dice, text: f"1'{text}",
    lambda dice, text: f"1_{text}",
    lambda dice, text: f"1 {text}",
    lambda dice, text: "0x1F",
    lambda dice, text: dice.choice(["true", "FALSE", "T", "yes"]),
    lambda dice, text: dice.choice(["1e400", "1e-400", "1E5", ".5", "5.", "1e", "--1", "+-1", "1d3", "٣", "½", "1%", "$1"]),
    lambda dice, text: text[:-1],
    lambda dice, text: text + dice.choice(["kg", "*", "<", "\x00", "\t"]),
    lambda dice, text: dice.choice(["2020-01-02", "12:30", "01/02/2020"]),
]
ROWS = [in_cell(change) for change in CELLS] + [
    in_rows(lambda dice, text: text.replace(".", ",")),
    in_rows(lambda dice, text: f" {text} "),
    in_rows(lambda dice, text: text.split(".")[0]),
    in_rows(lambda dice, text: dice.choice(MARKS) if dice.random() < 0.2 else text),
    lambda dice, rows: rows.insert(some_line(dice, rows), list(rows[dice.randrange(1, len(rows))])),
    lambda dice, rows: rows.insert(some_line(dice, rows), list(rows[0])),
    lambda dice, rows: rows.insert(some_line(dice, rows), ["total", "", *rows[0][2:]]),
    lambda dice, rows: rows.insert(some_line(dice, rows), ["# a remark"]),
    lambda dice, rows: rows.insert(some_line(dice, rows), []),
    lambda dice, rows: rows.insert(0, ["an export of the ward"]),
    lambda dice, rows: rows[dice.randrange(1, len(rows))].append(dice.choice(["", "7"])),
    lambda dice, rows: rows[dice.randrange(1, len(rows))].pop(),
    lambda dice, rows: [row.append("") for row in rows],
    lambda dice, rows: [row.append("") for row in rows[1:]],
    lambda dice, rows: [row.insert(0, str(i) if i else dice.choice(["", "id", "age"])) for i, row in enumerate(rows)],
    lambda dice, rows: rows[0].__setitem__(0, dice.choice([" age", "age ", "AGE", '"age"', "", "bmi", "1"])),
    lambda dice, rows: rows.pop(0),
    lambda dice, rows: [row.reverse() for row in rows],
]


def cut(dice, data):
    return data[: dice.randrange(len(data))]


def put(*what):
    def damage(dice, data):
        at = dice.randrange(len(data) + 1)
        return data[:at] + dice.choice(what) + data[at:]

    return damage


def encoded(dice, data):
    text = data.decode("utf-8", "replace")
    return text.encode(dice.choice(["utf-16", "utf-16-le", "latin-1", "cp1252", "utf-8-sig"]), "replace")


TEXT = [
    cut,
    cut,
    put(b'"', b'""', b"'"),
    put(b"\n", b"\r", b"\r\n", b"\n\n\n"),
    put(b",", b";", b"\t", b" "),
    put(b"\x00", b"\xff", b"\xe9", b"\x1a"),
    encoded,
    lambda dice, data: b"sep=;\n" + data,
    lambda dice, data: b"\n\n" + data,
    lambda dice, data: b" " + data,
    lambda dice, data: data.replace(b"\n", b"\r"),
    lambda dice, data: data.replace(b"\n", b"\r\n", max(1, data.count(b"\n") // 2)),
    lambda dice, data: data.replace(b",", dice.choice([b";", b"\t", b"|", b", ", b":"])),
    lambda dice, data: data.replace(b'"', b""),
    lambda dice, data: data.replace(b'"', b"'"),
    lambda dice, data: data + dice.choice([b"\n\n", b" \n", b",,\n", b"\x1a", b"3 rows\n"]),
    lambda dice, data: data + data,
]


def damaged(seed):
    """The bytes of one table."""
    dice = random.Random(seed)
    rows, written, _ = table(dice)
    for _ in range(dice.choice([0, 0, 1, 1, 1, 2])):
        try:
            dice.choice(ROWS)(dice, rows)
        except (IndexError, ValueError):
            pass  # nothing is left to damage
    data = written(rows).encode()
    for _ in range(dice.choice([0, 0, 0, 1, 1])):
        data = dice.choice(TEXT)(dice, data)
    return data


def numbers(frame):
    """The two columns as doubles; None where one of them is none of numbers."""
    out = []
    for name in COLUMNS:
        column = np.asarray(frame[name])
        if column.dtype.kind not in "iuf":
            return None
        out.append(column.astype(np.float64))
    return np.stack(out, 1)


def readers():
    pandas = pytest.importorskip("pandas", reason="SKIPPED: pandas is not installed")
    polars = pytest.importorskip("polars", reason="SKIPPED: polars is not installed")
    duckdb = pytest.importorskip("duckdb", reason="SKIPPED: duckdb is not installed")

    def with_duckdb(path):
        found = duckdb.connect().read_csv(str(path)).fetchnumpy()
        return {name: np.ma.filled(column.astype(np.float64), np.nan) if column.dtype.kind in "iuf" else column for name, column in found.items()}

    return [lambda path: pandas.read_csv(path), lambda path: polars.read_csv(path), with_duckdb]


def agreed(all_readers, path):
    """What all of them read; None where they differ, or one of them refuses."""
    known = None
    for read in all_readers:
        try:
            found = numbers(read(path))
        except Exception:
            return None
        if found is None or (known is not None and not np.array_equal(found, known, equal_nan=True)):
            return None
        known = found
    return known


def test_no_number_is_read_otherwise_in_silence(tmp_path):
    all_readers = readers()
    federation = veilsum.Federation.of(COLUMNS, sites=["a", "b", "c"], k=3, exact=True)
    question = questions.fuzzy_sums(np.array([[0.0001, 0.49], [0.3, 0.5], [0.00005, 0.50001]]))
    layout = questions.layout(federation, question)
    print(f"VEILSUM_SEED={SEED}, {TABLES} tables")
    path, came, wrong = tmp_path / "rows.csv", Counter(), []
    for i in range(TABLES):
        seed = SEED + i
        path.write_bytes(data := damaged(seed))
        try:
            words = questions.of_file(federation, question, path)
        except errors.VeilsumError as refusal:
            assert refusal.next_step, f"seed {seed}: {refusal} says nothing of what to do"
            words = None
        known = agreed(all_readers, path)
        if known is None:
            came["no two alike"] += 1
        elif words is None:
            came["refused"] += 1
        elif not np.isnan(known).any() and len(known) and (questions.answer(question, layout, known) == words).all():
            came["the same"] += 1
        else:
            wrong.append(f"seed {seed}: {len(known)} rows; {data[:400]!r}")
    print(dict(came))
    assert not wrong, f"{len(wrong)} of {TABLES} tables are read otherwise, and nothing is said:\n" + "\n".join(wrong)
    assert TABLES < 100 or came["the same"] > TABLES // 20, f"hardly anything was compared: {came}"
