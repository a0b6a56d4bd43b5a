"""Spark: the kernel in the executors, by ``mapInArrow``. Executors need this package and nothing else beside Spark's own.

>>> sums = df.mapInArrow(veilsum.spark.partial(question, layout), veilsum.spark.SCHEMA).groupBy("i").sum("v")
>>> words = veilsum.spark.words(df, question, layout)
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from typing import Any, Callable, Iterator

import numpy as np

from . import questions
from ._rows import of_plan
from .errors import InputError, UsageError

__all__ = ["ROWS", "BAD", "SCHEMA", "Parts", "packed", "partial", "words"]

#: Of what ``partial`` yields: the place of a word in the answer, and the word.
SCHEMA = "i long, v long"
#: The place of the number of rows that the words are of.
ROWS = -1
#: The place of the number of rows that could not be used.
BAD = -2


#: Bytes of rows that are packed together. Spark copies them more than once on their way, and larger ones not from cache to cache.
_TOGETHER = 1 << 18


class _Pack:
    """Rows as bytes, many in one: what the executors call."""

    def __init__(self, names: list[str], categorical: list[tuple[str, list[str]]], noise: bool) -> None:
        self.names, self.categorical, self.noise = names, categorical, noise

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            rows = of_plan(batch, self.names, self.categorical, finite=False, noise=self.noise)
            step = max(1, _TOGETHER // max(1, rows.itemsize * rows.shape[1]))
            parts = [rows[at : at + step].tobytes() for at in range(0, len(rows), step)]
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array(parts, pyarrow.binary())], names=["rows"])


def _bytes(row: Any) -> bytes:
    return bytes(row[0])


def packed(df: Any, layout: Any) -> Any:
    """The same rows as an RDD of bytes, for :func:`words` with layouts of the same columns.

    Spark hands rows of numbers to Python one by one and plans every question about a frame anew, which takes longer than all sums; bytes
    it hands over as they are. Cache what this returns (``veilsum.spark.packed(df, layout).cache()``) where a run asks many questions.
    """
    of = json.loads(layout) if isinstance(layout, str) else layout
    names = [column["name"] for column in of["columns"]]
    categorical = [(column["column"], column["categories"]) for column in of.get("categorical", [])]
    wanted = names + [name for name, _ in categorical]
    return _chosen(df, wanted).mapInArrow(_Pack(names, categorical, questions.noise(of)), "rows binary").rdd.map(_bytes)


def _of_partition(question: str, layout: str, batches: Iterator[Any]) -> tuple[np.ndarray, int, int]:
    """The words of a partition, the rows that they are of, and those that could not be used."""
    of = json.loads(layout)
    length = sum(block["len"] for block in of["blocks"])
    columns = len(of["columns"]) + sum(len(column["categories"]) for column in of.get("categorical", []))
    total, rows, bad = None, 0, 0
    for batch in batches:
        if isinstance(batch, bytes):
            words, used, left = questions.computed(question, layout, np.frombuffer(batch, np.float64).reshape(-1, columns))
        else:
            words, used, left = questions.counted(question, layout, batch)
        rows, bad = rows + used, bad + left
        total = words if total is None else questions.merge(question, layout, total, words)
    return (np.zeros(length, np.int64) if total is None else total), rows, bad


def _one_task() -> None:
    """As many threads as the task was given cores: Spark runs other tasks on the others. Counts where the kernel was not used before."""
    pyspark = sys.modules.get("pyspark")  # Every executor has it loaded.
    task = pyspark.TaskContext.get() if pyspark is not None else None
    os.environ.setdefault("RAYON_NUM_THREADS", str(task.cpus() if task is not None else 1))


class _Partial:
    """What the executors call. A class of this module, so that it is sent by its name."""

    def __init__(self, question: str, layout: str, form: str) -> None:
        self.question, self.layout, self.form = question, layout, form

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        _one_task()
        words, rows, bad = _of_partition(self.question, self.layout, batches)
        if self.form == "row":
            yield {"n": rows, "bad": bad, "words": words.tobytes()}
            return
        import pyarrow

        if self.form == "whole":
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.array([rows]), pyarrow.array([bad]), pyarrow.array([words.tobytes()], pyarrow.binary())],
                names=["n", "bad", "words"],
            )
            return
        places = np.concatenate([[BAD, ROWS], np.arange(len(words))])
        values = np.concatenate([[bad, rows], words])
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array(places), pyarrow.array(values)], names=["i", "v"])


def _texts(question: Any, layout: Any) -> tuple[str, str]:
    question, layout = questions._texts(question, layout)
    if questions.parts(question, layout) == "whole":
        raise UsageError(
            "this question is about all rows together: its answer cannot be computed in parts",
            "agree on a plan whose questions come in parts, such as fcm, kmeans or describe",
        )
    return question, layout


def partial(question: Any, layout: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for ``DataFrame.mapInArrow`` with the schema :data:`SCHEMA`: of every partition its words, to be summed by place.

    The sum at the place :data:`ROWS` is the number of rows, at :data:`BAD` that of rows that could not be used: where it is not 0 and
    the plan has no noise the answer is none. The integers are the same for any number of partitions, any order and any retry.

    Raises
    ------
    UsageError
        Where parts of the answer do not simply add up: use :func:`words`.
    """
    question, layout = _texts(question, layout)
    if questions.parts(question, layout) != "sum":
        raise UsageError("not all words of this question add up", "use veilsum.spark.words, which puts parts together as they need it")
    return _Partial(question, layout, "places")


def words(df: Any, question: Any, layout: Any) -> np.ndarray:
    """The words of all rows of a Spark ``DataFrame``, or of what :func:`packed` made of one, for every question whose answer comes in parts.

    Raises
    ------
    InputError
        Where a row cannot be used and the plan has no noise.
    UsageError
        Where the question needs all rows together.
    """
    question, layout = _texts(question, layout)
    if hasattr(df, "mapInArrow"):
        wanted = [column["name"] for column in json.loads(layout)["columns"]]
        wanted += [column["column"] for column in json.loads(layout).get("categorical", [])]
        rows = _chosen(df, wanted).mapInArrow(_Partial(question, layout, "whole"), "n long, bad long, words binary")
    else:
        rows = df.mapPartitions(_Partial(question, layout, "row"))
    total, bad = None, 0
    for row in _collected(rows):
        bad += row["bad"]
        part = np.frombuffer(row["words"], np.int64)
        total = part if total is None else questions.merge(question, layout, total, part)
    questions.refuse(layout, bad)
    if total is None:
        total = np.zeros(sum(block["len"] for block in json.loads(layout)["blocks"]), np.int64)
    return total


def _chosen(df: Any, columns: list[str]) -> Any:
    """These columns, and no others: the engine then reads no others."""
    lacking = [name for name in columns if name not in df.columns]
    if lacking:
        raise InputError(f"the table has no column {', '.join(map(repr, lacking))}", "rename its columns as the plan has them")
    return df.select(*["`" + name.replace("`", "``") + "`" for name in columns])


def _collected(df: Any) -> list[Any]:
    try:
        return df.collect()
    except Exception as e:
        if "No module named 'veilsum'" not in str(e):
            raise
    raise UsageError(
        "Spark's executors do not have the Python package veilsum",
        "install the same wheel, with NumPy and pyarrow, into the Python of every executor (spark.pyspark.python), or send an environment along: "
        "venv-pack -o env.tar.gz; spark-submit --archives env.tar.gz#env --conf spark.pyspark.python=./env/bin/python",
    )


class Parts:
    """The partitions of a Spark ``DataFrame`` for :class:`veilsum.engines.InParts`: an answerer whose kernel runs in the executors."""

    def __init__(self, df: Any) -> None:
        self._df = df

    def __call__(self, columns: list[str], function: Callable[[Iterator[Any]], Any]) -> list[Any]:
        found = _chosen(self._df, columns).mapInArrow(_Pickled(function), "part binary")
        return [pickle.loads(bytes(row["part"])) for row in _collected(found)]


class _Pickled:
    """What a function makes of a partition, as bytes of one row."""

    def __init__(self, function: Callable[[Iterator[Any]], Any]) -> None:
        self.function = function

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        _one_task()
        part = pyarrow.array([pickle.dumps(self.function(batches))], pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([part], names=["part"])
