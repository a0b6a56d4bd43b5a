"""Questions, and one part of their answer.

A *question* is what a method asks (``{"transform": ..., "queries": [...]}``), a *layout* says under which plan and how its answer is
written: the plan's method part, and the steps of blocks of words, or under noise a factor for each word. Both are plain documents.
"""

from __future__ import annotations

import json
import os
from typing import Any, Mapping

import numpy as np

from . import _core
from ._rows import of_plan
from .errors import InputError

__all__ = ["answer", "fuzzy_sums", "layout", "of_file"]


def fuzzy_sums(centres: Any, m: float = 2.0) -> dict[str, Any]:
    """The question of a round of fuzzy c-means about ``centres`` (K x d, working units): sums and weights by cluster."""
    centres = np.ascontiguousarray(centres, dtype=np.float64)
    k, d = centres.shape
    held = {"k": k, "columns": d, "values": centres.ravel().tolist()}
    return {"transform": None, "queries": [{"fuzzy_sums": {"centres": held, "m": float(m)}}]}


def layout(federation: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    """The layout of a question under the plan of a :class:`veilsum.Federation`."""
    planned = federation._planned
    if planned is None:
        raise InputError("how many sites there are is not known yet", "say sites=[...] where the federation is made")
    return json.loads(_core.layout(planned, json.dumps(question)))


def _noisy(work: Mapping[str, Any]) -> bool:
    return work["recipe"].get("noise") is not None


def counted(question: Any, layout: Mapping[str, Any], batch: Any) -> tuple[np.ndarray, int, int]:
    """As :func:`answer`, and beside the words the rows that they are of, and those that could not be used."""
    work = layout["work"]
    columns = [column["name"] for column in work["columns"]]
    categorical = [(column["column"], column["categories"]) for column in work["categorical"]]
    rows = of_plan(batch, columns, categorical, finite=False, noise=_noisy(work))
    return _core.answer(json.dumps(question), json.dumps(layout), rows)[:3]


def answer(question: Any, layout: Mapping[str, Any], batch: Any) -> np.ndarray:
    """The words of some of a site's rows: integers that add up to the same total in any order, in any parts, on any machine.

    Parameters
    ----------
    question, layout : dict
        What is asked, and how the answer is written.
    batch : table or array
        Rows in original units. A table has its columns found by name.

    Raises
    ------
    InputError
        Also where a row cannot be used and the plan has no noise; how many, it says. Under noise such a row counts for nothing.
    """
    words, _, bad = counted(question, layout, batch)
    if bad and not _noisy(layout["work"]):
        raise InputError(
            f"{bad} rows have a value that is no finite number, or outside the plan's public box",
            "correct the rows, or agree on a new plan with a wider box",
        )
    return words


def of_file(federation: Any, question: Any, data: Any) -> np.ndarray:
    """The words with which a site of this federation answers whose rows are in a file, as ``veilsum run --data`` reads it.

    Parameters
    ----------
    data : path
        A file, a folder or a pattern, in any form that a site can have.
    """
    return _core.of_file(federation._planned, json.dumps(question), os.fspath(data))
