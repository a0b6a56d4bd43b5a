"""Answerers for rows that are in an engine: a database, Spark, Dask.

A subclass of :class:`Engine` says what the rows are and computes words; the rest of the contract (the page "Answerers" of the book) is done
here. :class:`InParts` is one for engines that can call a function on every part of their rows: the kernel goes to where the rows are.

>>> veilsum.answerer.serve(veilsum.engines.InParts(veilsum.spark.Parts(df)))

Programs are in ``examples/answerers``.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from . import _core, questions
from ._rows import has_direction, of_plan
from .answerer import EXACT, PROTOCOL, Answerer, _hashed, _printed, _Refusal
from .errors import InputError, VeilsumError

__all__ = ["Engine", "InParts", "Opened", "Part", "Refused"]

#: Why there is no answer: ``Refused(code, message, next_step)`` with a code of the contract, and without a value of a row.
Refused = _Refusal
#: Questions whose answers for parts of the rows make the answer for all of them.
IN_PARTS = [
    "fuzzy_sums", "fuzzy_validation", "local_means", "moments", "histogram", "margins", "validation", "shifts",
    "shaped_sums", "typical_sums", "shaped_shifts",
]  # fmt: skip


class Opened(NamedTuple):
    """What rows are known by.

    Attributes
    ----------
    rows : int
    bad : mapping of str to int
        Rows that cannot be used, by reason: no answer has them. A site begins with them under noise alone.
    fingerprint : str
        Of all rows, 16 to 128 hexadecimal digits: the same in any order of rows, columns and categories and for any bounds, another one when a
        value changes or a row is added, be it one of zeros.
    columns : list of str
        The same of every column by itself.
    """

    rows: int
    bad: Mapping[str, int]
    fingerprint: str
    columns: Sequence[str]


class Engine(Answerer):
    """An answerer whose rows are in an engine. Columns of numbers come before those of categories everywhere."""

    #: Kinds of questions that it answers.
    kinds: Sequence[str] = ()
    version = "1"

    def __init__(self, name: str) -> None:
        super().__init__(None, name)

    def open(self, hello: Mapping[str, Any]) -> Opened:
        """Finds the columns of ``hello``, and keeps the rows as they are now.

        Raises
        ------
        Refused
        """
        raise NotImplementedError

    def words(self, question: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> Iterable[int]:
        """The words of all rows, block by block. The question is of these ``kinds``, and fits the box.

        Raises
        ------
        Refused
        """
        raise NotImplementedError

    def _begin(self, hello: dict[str, Any]) -> dict[str, Any]:
        if hello.get("protocol") != PROTOCOL:
            raise Refused("version", f"this answerer speaks version {PROTOCOL} of the contract", "use the same release on both sides")
        if self._hello is not None:
            raise Refused("protocol", "`hello` comes once", "start another process")
        try:
            self._box = {key: hello[key] for key in ("columns", "categorical", "scaling", "out_of_box")}
            self._box["noise"] = questions.noise(hello)
            self._widths = [1] * len(hello["columns"]) + [len(c["categories"]) for c in hello["categorical"]]
        except (KeyError, TypeError):
            raise Refused("protocol", "hello lacks something", "send lines of the contract") from None
        opened = self.open(hello)
        self._hello, self._opened = hello, opened
        return {
            "type": "ready", "protocol": PROTOCOL, "name": self._name, "version": self.version, "rows": opened.rows,
            "bad": dict(opened.bad), "fingerprint": {"rows": opened.fingerprint, "columns": list(opened.columns)},
            "kinds": list(self.kinds),
        }  # fmt: skip

    def _answer(self, ask: dict[str, Any]) -> dict[str, Any]:
        try:
            question, blocks, number = ask["question"], ask["blocks"], ask["id"]
            # The words of no rows: whether this is a question at all, about this box, with these blocks.
            nothing = np.zeros((0, sum(self._widths)))
            none = questions.computed(question, {**self._box, "blocks": blocks}, nothing)[0]
            others = sorted({_kind_of(query) for query in question["queries"]} - set(self.kinds))
        except (VeilsumError, KeyError, TypeError, ValueError, AttributeError):
            raise Refused("protocol", "the question, or its blocks, cannot be read", "ask a question that fits the box") from None
        if others:
            raise Refused("kind", f"questions of the kind {', '.join(others)} are not answered here", "ask only what `ready` lists")
        words = [int(word) for word in self.words(question, blocks)]
        if len(words) != len(none):
            raise Refused("internal", "an answer has another length than its question", "tell this answerer's author")
        opened = self._opened
        return {
            "type": "answer", "id": number, "rows": opened.rows, "bad": sum(opened.bad.values()), "fingerprint": opened.fingerprint,
            "words": [word if abs(word) <= EXACT else str(word) for word in words],
        }  # fmt: skip


def _kind_of(query: Mapping[str, Any]) -> str:
    """Its family; several local steps of Lloyd, or groups that are left out, are a kind of their own."""
    ((kind, of),) = query.items()
    several = kind == "local_means" and (of["local"]["most"] > 1 or of["min_rows"] > 1 or of["nearest"])
    return "local_means_steps" if several else kind


# ---- Rows in parts --------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """What one part of the rows says of itself."""

    rows: int
    bad: int
    #: Sums of two hashes, modulo 2^64 (c + 1, 2): of every column by itself, and of all together.
    hashes: np.ndarray
    words: np.ndarray | None


class _OfPart:
    """Looks at the rows of one part, and computes their words where there is a question. Runs where the rows are; sent by its name."""

    def __init__(self, box: dict[str, Any], question: str | None, layout: str) -> None:
        self.box, self.question, self.layout = box, question, layout

    def __call__(self, batches: Iterable[Any]) -> Part:
        names = [column["name"] for column in self.box["columns"]]
        categorical = [(column["column"], column["categories"]) for column in self.box["categorical"]]
        low = np.array([column["lower"] for column in self.box["columns"]])
        high = np.array([column["upper"] for column in self.box["columns"]])
        rows = bad = 0
        hashes = np.zeros((len(names) + len(categorical) + 1, 2), np.uint64)
        words: np.ndarray | None = None
        for batch in batches:
            x = of_plan(batch, names, categorical, finite=False, noise=self.box["noise"])
            fine = np.isfinite(x).all(axis=1)
            if self.box["out_of_box"] == "refuse":
                own = x[:, : len(names)]
                fine &= ((own >= low) & (own <= high)).all(axis=1)
            if self.box["scaling"] == "direction":
                fine &= has_direction(x, low, high)
            if not fine.all():
                bad += int(len(x) - fine.sum())
                x = np.ascontiguousarray(x[fine])
            rows += len(x)
            hashes += _hashed(x, names, categorical)
            if self.question is not None:
                more = _core.answer(self.question, self.layout, x)[0]
                words = more if words is None else questions.merge(self.question, self.layout, words, more)
        return Part(rows, bad, hashes, words)


class InParts(Engine):
    """Rows that an engine has in parts: the kernel goes to where they are, and words come back.

    Every answer is checked against the fingerprint of the rows that it was made of, so rows that change in mid-run are an error. Let the engine keep
    the rows in its memory (``df.cache()``, ``ddf.persist()``): every question is a pass over them.

    Parameters
    ----------
    parts : callable
        ``parts(columns, function)`` calls ``function(batches)`` for every part of the rows, wherever it is, with tables that have these columns,
        and returns the results: :class:`veilsum.spark.Parts`, :class:`veilsum.dask.Parts`, or one of yours.
    name : str
        What the site calls it.
    """

    kinds = IN_PARTS

    def __init__(self, parts: Callable[[list[str], Callable[[Iterator[Any]], Part]], Iterable[Part]], name: str = "veilsum-parts") -> None:
        super().__init__(name)
        self._parts = parts

    def _ask(self, question: str | None, layout: str) -> Part:
        names = [c["name"] for c in self._box["columns"]] + [c["column"] for c in self._box["categorical"]]
        try:
            found = list(self._parts(names, _OfPart(self._box, question, layout)))
        except InputError as why:
            raise Refused("columns", why.message, why.next_step) from None
        except VeilsumError as why:
            raise Refused("connection", why.message, why.next_step) from None
        hashes = np.zeros((len(names) + 1, 2), np.uint64)
        words: np.ndarray | None = None
        for part in found:
            hashes += part.hashes
            if part.words is not None:
                words = part.words if words is None else questions.merge(question, layout, words, part.words)
        return Part(sum(part.rows for part in found), sum(part.bad for part in found), hashes, words)

    def open(self, hello: Mapping[str, Any]) -> Opened:
        """Counts and fingerprints, in one pass."""
        seen = self._ask(None, "")
        *columns, rows = _printed(seen.rows, seen.hashes)
        bad = {"a value that is missing, no finite number, outside the plan's public box, or no category of it": seen.bad} if seen.bad else {}
        return Opened(seen.rows, bad, rows, columns)

    def words(self, question: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> Iterable[int]:
        """The words, in one pass."""
        texts = json.dumps(question), json.dumps({**self._box, "blocks": blocks})
        seen = self._ask(*texts)
        if seen.bad != sum(self._opened.bad.values()) or _printed(seen.rows, seen.hashes)[-1] != self._opened.fingerprint:
            raise Refused("changed", "the rows are others than before", "let it read rows that stay as they are, such as a snapshot")
        return (seen.words if seen.words is not None else np.zeros(sum(b["len"] for b in blocks), np.int64)).tolist()
