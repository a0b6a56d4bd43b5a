"""Questions, and one part of their answer: for engines that have the rows where they are.

A *question* is what a method asks (``{"transform": ..., "queries": [...]}``), a *layout* says what it is about and how its answer is
written: columns with their public box, and blocks of words with their steps. Both are plain documents, those of the contract of
answerers, and may be sent to wherever the rows are.
"""

from __future__ import annotations

import json
import os
from typing import Any, Mapping

import numpy as np

from . import _core
from ._rows import of_plan
from .errors import InputError

__all__ = ["answer", "fuzzy_sums", "layout", "merge", "of_file", "parts"]


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


def _texts(question: Any, layout: Any) -> tuple[str, str]:
    return tuple(text if isinstance(text, str) else json.dumps(text) for text in (question, layout))  # type: ignore[return-value]


def parts(question: Any, layout: Any) -> str:
    """How answers of parts of the rows make that of all: ``"sum"`` word by word, ``"merge"`` by :func:`merge`, ``"whole"`` not at all."""
    return _core.parts(*_texts(question, layout))


def counted(question: Any, layout: Any, batch: Any) -> tuple[np.ndarray, int, int]:
    """As :func:`answer`, and beside the words the rows that they are of, and those that could not be used."""
    question, layout = _texts(question, layout)
    of = json.loads(layout)
    columns = [column["name"] for column in of["columns"]]
    categorical = [(column["column"], column["categories"]) for column in of.get("categorical", [])]
    return computed(question, layout, of_plan(batch, columns, categorical, finite=False, noise=noise(of)))


def computed(question: Any, layout: Any, rows: np.ndarray) -> tuple[np.ndarray, int, int]:
    """As :func:`counted`, of rows in the layout's own columns, indicators behind the numbers."""
    return _core.answer(*_texts(question, layout), rows)


def answer(question: Any, layout: Any, batch: Any) -> np.ndarray:
    """The words of some of a site's rows: integers that add up to the same total in any order, in any parts, on any machine.

    Parameters
    ----------
    question, layout : dict, or the same as JSON
        What is asked, and how the answer is written.
    batch : table or array
        Rows in original units. A table has its columns found by name.

    Returns
    -------
    words : int64 array
        One for every entry of the layout. The interpreter's lock is released while they are computed.

    Raises
    ------
    InputError
        Also where a row cannot be used and the plan has no noise; how many, it says. Under noise such a row counts for nothing.
    """
    words, _, bad = counted(question, layout, batch)
    refuse(layout, bad)
    return words


def of_file(federation: Any, question: Any, data: Any, *, memory: int | None = None) -> np.ndarray:
    """The words with which a site of this federation answers whose rows are in a file, as ``veilsum run --data`` reads it.

    Parameters
    ----------
    data : path
        A file, a folder or a pattern, in any form that a site can have.
    memory : int, optional
        Bytes that the rows may take; more rows than fit are streamed, once a question.
    """
    return _core.of_file(federation._planned, _texts(question, None)[0], os.fspath(data), memory)


def noise(layout: Mapping[str, Any]) -> bool:
    """Whether the plan has noise: no row stops an answer then."""
    return bool(layout.get("noise"))


def refuse(layout: Any, bad: int) -> None:
    """Rows that cannot be used are an error where the plan has no noise."""
    if bad and not noise(json.loads(layout) if isinstance(layout, str) else layout):
        raise InputError(
            f"{bad} rows have a value that is no finite number, or outside the plan's public box",
            "correct the rows, or agree on a new plan with a wider box",
        )


def merge(question: Any, layout: Any, words: Any, more: Any) -> np.ndarray:
    """The words of two parts of a site's rows together."""
    array = np.ascontiguousarray
    return _core.merge(*_texts(question, layout), array(words, dtype=np.int64), array(more, dtype=np.int64))
