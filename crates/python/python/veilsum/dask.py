"""Dask: the kernel in the workers, by ``map_partitions``.

>>> parts = ddf.map_partitions(veilsum.dask.partial(question, layout), meta={"i": "int64", "v": "int64"})
>>> sums = parts.groupby("i").v.sum().compute()
>>> words = veilsum.dask.words(ddf, question, layout)
"""

from __future__ import annotations

import json
from typing import Any, Callable, Iterator

import numpy as np

from . import questions, spark
from .errors import InputError, UsageError
from .spark import BAD, ROWS

__all__ = ["ROWS", "BAD", "Parts", "partial", "words"]


class _Partial:
    """What the workers call."""

    def __init__(self, question: str, layout: str) -> None:
        self.question, self.layout = question, layout

    def __call__(self, part: Any) -> Any:
        words, rows, bad = questions.counted(self.question, self.layout, part)
        places = np.concatenate([[BAD, ROWS], np.arange(len(words))])
        return type(part)({"i": places, "v": np.concatenate([[bad, rows], words])})


def partial(question: Any, layout: Any) -> Callable[[Any], Any]:
    """The function for ``DataFrame.map_partitions``: of every partition its words by place, as :func:`veilsum.spark.partial`."""
    question, layout = spark._texts(question, layout)
    if questions.parts(question, layout) != "sum":
        raise UsageError("not all words of this question add up", "use veilsum.dask.words, which puts parts together as they need it")
    return _Partial(question, layout)


def words(ddf: Any, question: Any, layout: Any) -> np.ndarray:
    """The words of all rows of a Dask frame, for every question whose answer comes in parts. Errors are those of Spark's."""
    question, layout = spark._texts(question, layout)
    length = sum(block["len"] for block in json.loads(layout)["blocks"])
    meta = {"i": "int64", "v": "int64"}
    values = ddf.map_partitions(_Partial(question, layout), meta=meta).v.compute().to_numpy().reshape(-1, length + 2)
    questions.refuse(layout, int(values[:, 0].sum()))
    total = np.zeros(length, np.int64)
    for number, part in enumerate(values[:, 2:]):
        total = part if number == 0 else questions.merge(question, layout, total, part)
    return total


class Parts:
    """The partitions of a Dask frame for :class:`veilsum.engines.InParts`: an answerer whose kernel runs in the workers."""

    def __init__(self, ddf: Any) -> None:
        self._ddf = ddf

    def __call__(self, columns: list[str], function: Callable[[Iterator[Any]], Any]) -> list[Any]:
        import dask

        lacking = [name for name in columns if name not in self._ddf.columns]
        if lacking:
            raise InputError(f"the table has no column {', '.join(map(repr, lacking))}", "rename its columns as the plan has them")
        of_one = dask.delayed(_of_one)
        return list(dask.compute(*[of_one(function, part) for part in self._ddf[columns].to_delayed()]))


def _of_one(function: Callable[[Iterator[Any]], Any], part: Any) -> Any:
    return function(iter([part]))
