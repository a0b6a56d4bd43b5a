"""Rows in Spark: the site is the driver, each executor sums its own rows by this package's compiled code, and the driver adds integers.

>>> veilsum.Site("a.key", "roster.toml", rows=df).run()

Executors need this package and nothing else beside Spark's own.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any, Iterator

import numpy as np

from . import _core
from ._rows import of_plan
from .errors import InputError, UsageError

#: Bytes of rows that are packed together. Spark copies them more than once on their way, and larger ones not from cache to cache.
_TOGETHER = 1 << 18


class _Pack:
    """Rows of a plan's columns as bytes, many in one: what the executors call first. Spark hands bytes to Python six times as fast as numbers.

    A class of this module, so that it is sent by its name; as is the other.
    """

    def __init__(self, columns: list[str], categorical: list[tuple[str, list[str]]], noise: bool) -> None:
        self.columns, self.categorical, self.noise = columns, categorical, noise

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            rows = of_plan(batch, self.columns, self.categorical, finite=False, noise=self.noise)
            step = max(1, _TOGETHER // (8 * rows.shape[1]))
            parts = [rows[at : at + step].tobytes() for at in range(0, len(rows), step)]
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array(parts, pyarrow.binary())], names=["rows"])


class _Sum:
    """Of packed rows the words of a question, if there is one; how many rows they are, how many have holes, by column, and their digest."""

    schema = "rows long, bad long, digest binary, holes binary, words binary"

    def __init__(self, question: str | None, layout: str, width: int) -> None:
        self.question, self.layout, self.width = question, layout, width

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        # As many threads as the task was given cores: Spark runs other tasks on the others. Counts where the kernel was not used before.
        pyspark = sys.modules.get("pyspark")
        task = pyspark.TaskContext.get() if pyspark is not None else None
        os.environ.setdefault("RAYON_NUM_THREADS", str(task.cpus() if task is not None else 1))
        rows, bad, digest, holes = 0, 0, 0, np.zeros(self.width, np.int64)
        words = np.zeros(_width(self.layout), np.int64)
        for batch in batches:
            for part in batch.column(0):
                x = np.frombuffer(part.as_buffer(), np.float64).reshape(-1, self.width)
                more, used, left, print_ = _core.answer(self.question, self.layout, x)
                rows, bad, digest, words = rows + used, bad + left, _added(digest, print_), words + more
                if left:
                    holes += (~np.isfinite(x)).sum(axis=0)
        binary = [pyarrow.array([of], pyarrow.binary()) for of in (digest.to_bytes(16, "little"), holes.tobytes(), words.tobytes())]
        found = [pyarrow.array([rows]), pyarrow.array([bad]), *binary]
        yield pyarrow.RecordBatch.from_arrays(found, names=["rows", "bad", "digest", "holes", "words"])


def _width(layout: str) -> int:
    """Words of an answer."""
    steps = json.loads(layout)["steps"]
    return len(steps["guarded"]) if "guarded" in steps else sum(step["len"] for step in steps["exact"])


def _added(digest: int, more: int) -> int:
    return (digest + more) % 2**128


class Frame:
    """The rows of a Spark ``DataFrame`` under a plan, packed in the executors' memory, or on their disks, as long as this object is there."""

    def __init__(self, df: Any, planned: Any) -> None:
        self._df, self._planned, self._rows = df, planned, None

    def __del__(self) -> None:
        if self._rows is not None:
            try:
                self._rows.unpersist()
            except Exception:  # Spark is gone already.
                pass

    def open(self) -> tuple[int, int]:
        """How many rows can be used, and their digest.

        Raises
        ------
        InputError
            Where the frame lacks a column of the plan, or a row has no value and the plan no noise.
        """
        of = self._planned
        names = [*of.columns, *(name for name, _ in of.categorical)]
        have = {_core.normal(name): name for name in self._df.columns}
        lacking = [name for name in names if _core.normal(name) not in have]
        if lacking:
            raise InputError(
                f"the Spark frame that this site hands over has no column {', '.join(map(repr, lacking))}, which the plan has",
                "rename its columns as the plan has them (df.withColumnRenamed), and start this site again",
            )
        chosen = self._df.select(*["`" + have[_core.normal(name)].replace("`", "``") + "`" for name in names])
        self._width = len(of.columns) + sum(len(categories) for _, categories in of.categorical)
        self._rows = chosen.mapInArrow(_Pack(of.columns, of.categorical, of.noise), "rows binary").persist()
        found, holes, _ = self._summed(None, json.dumps({"work": json.loads(of.work), "steps": {"exact": []}}))
        self._opened = found
        rows, bad, digest = found
        # [NOI-8]: under noise they count for nothing, and nobody is told before the last answer.
        if bad and not of.noise:
            starts = np.cumsum([len(of.columns), *(len(categories) for _, categories in of.categorical)])[:-1]
            by_column = dict(zip(names, [*holes[: len(of.columns)], *holes[starts]]))
            where = ", ".join(f"{name!r} ({count})" for name, count in by_column.items() if count)
            what = f"{bad} of {rows + bad} rows of the Spark frame that this site hands over cannot be used: "
            what += f"NULL, no finite number or no category of the plan in {where}" if where else "outside the plan's public box"
            raise InputError(what, "leave these rows out (df.dropna(), df.filter()), or correct them, and start this site again; the plan is not at fault")
        return rows, digest

    def words(self, question: str, layout: str) -> np.ndarray:
        """The words of all rows: the sum of those of the parts, in whatever parts and order they come.

        Raises
        ------
        InputError
            If the plan has no noise, and the rows are others than when they were opened.
        """
        found, _, words = self._summed(question, layout)
        # [NOI-8]: under noise no row decides whether this site answers.
        if found != self._opened and not self._planned.noise:
            raise InputError(
                "the rows in Spark are others than when this site opened them, so that totals would not be of one set of rows",
                "hand over rows that stay as they are in a run, such as a version of the table or a copy of it, and start this site again",
            )
        return words

    def _summed(self, question: str | None, layout: str) -> tuple[tuple[int, int, int], np.ndarray, np.ndarray]:
        rows = bad = digest = 0
        holes, words = np.zeros(self._width, np.int64), np.zeros(_width(layout), np.int64)
        for part in _collected(self._rows.mapInArrow(_Sum(question, layout, self._width), _Sum.schema)):
            rows, bad, digest = rows + part["rows"], bad + part["bad"], _added(digest, int.from_bytes(part["digest"], "little"))
            holes, words = holes + np.frombuffer(part["holes"], np.int64), words + np.frombuffer(part["words"], np.int64)
        return (rows, bad, digest), holes, words


def _collected(df: Any) -> list[Any]:
    try:
        return df.collect()
    except Exception as e:
        # An error of this package in an executor comes as a text about it.
        said = re.search(r"veilsum\.errors\.InputError: (.*)\n(?:.*?)next: (.*)", str(e))
        if said:
            raise InputError(said[1], said[2]) from None
        if "No module named 'veilsum'" not in str(e):
            raise
    raise UsageError(
        "Spark's executors do not have the Python package veilsum",
        "install the same wheel, with NumPy and pyarrow, into the Python of every executor (spark.pyspark.python), or send an environment along: "
        "venv-pack -o env.tar.gz; spark-submit --archives env.tar.gz#env --conf spark.pyspark.python=./env/bin/python",
    )
