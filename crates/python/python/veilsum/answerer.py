"""An answerer: a process that has a site's rows and computes the words of its answers, one JSON object a line.

The site's own process keeps keys, policy and ledger, and checks every answer. Rows come from wherever Python finds them:

>>> import duckdb, veilsum.answerer
>>> veilsum.answerer.serve(duckdb.sql("SELECT age, bmi, ward FROM patients"))

``python -m veilsum.answerer rows.csv`` serves a CSV file. The contract is in the book.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
from typing import Any, Iterable, Sequence, TextIO

import numpy as np

from . import _rows, questions
from .errors import VeilsumError

__all__ = ["Answerer", "serve"]

PROTOCOL = 1
#: Every kind of question.
KINDS = [
    "fuzzy_sums", "fuzzy_validation", "local_fuzzy", "local_means", "local_means_steps", "features", "moments", "histogram",
    "local_choice", "margins", "validation", "shifts", "shaped_sums", "typical_sums",
    "shaped_shifts",
]  # fmt: skip
#: Different values of a column are counted up to this number.
#: Whole numbers up to this are exact in every reader of JSON.
EXACT = 2**53 - 1


def _mixed(values: np.ndarray, salt: int) -> np.ndarray:
    """64 bits that every bit of a value changes (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        x = values.view(np.uint64) + np.uint64((salt * 0x9E3779B97F4A7C15) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _bits(words: Sequence[str]) -> np.ndarray:
    """64 bits that stand for a word."""
    digests = [hashlib.sha256(word.encode(errors="surrogatepass")).digest() for word in words]
    return np.array([int.from_bytes(digest[:8], "little") for digest in digests], np.uint64)


def _hashed(rows: np.ndarray, names: Sequence[str], categorical: Sequence[tuple[str, list[str]]]) -> np.ndarray:
    """Sums of two hashes of rows, modulo 2^64 (c + 1, 2): of every column by itself, and of all columns together.

    ``rows`` (n x d) are usable, in original units, with indicators of categories behind the numbers. A column of categories is one column, and
    counts by its texts. Columns are taken by name, so that neither their order nor that of categories counts; a zero is hashed like any other
    value, and both zeros are one.
    """
    all_names, first = [*names, *(name for name, _ in categorical)], len(names)
    places = np.cumsum([first, *(len(categories) for _, categories in categorical)])
    salts = _bits(all_names) | np.uint64(1)
    sums = np.zeros((len(all_names) + 1, 2), np.uint64)
    whole = np.zeros(len(rows), np.uint64)
    for column in sorted(range(len(all_names)), key=all_names.__getitem__):
        if column < first:
            value = rows[:, column] + 0.0
        else:
            of = column - first
            value = _bits(categorical[of][1])[rows[:, places[of] : places[of + 1]].argmax(axis=1)]
        h = _mixed(value, int(salts[column]))
        whole = _mixed(whole ^ h, 2)
        sums[column] = h.sum(dtype=np.uint64), _mixed(h, 3).sum(dtype=np.uint64)
    sums[-1] = whole.sum(dtype=np.uint64), _mixed(whole, 3).sum(dtype=np.uint64)
    return sums


def _printed(rows: int, sums: np.ndarray) -> list[str]:
    """Fingerprints of 48 digits, each of which begins with the number of rows: of every column, then of all together."""
    return [f"{rows:016x}{a:016x}{b:016x}" for a, b in sums.tolist()]


class _Refusal(Exception):
    def __init__(self, code: str, message: str, next_step: str) -> None:
        super().__init__(message)
        self.document = {"type": "error", "code": code, "message": message[:2000], "next": next_step}


class Answerer:
    """The lines of one conversation.

    Parameters
    ----------
    table : table
        Rows with names, in original units: as :func:`veilsum.answer` takes them.
    name : str
        What this answerer is called.
    """

    def __init__(self, table: Any, name: str = "veilsum-python") -> None:
        self._table, self._name = table, name
        self._hello: dict[str, Any] | None = None

    def line(self, text: str) -> dict[str, Any] | None:
        """The answer to a line; ``None`` where the conversation is over."""
        said: Any = None
        try:
            try:
                said = json.loads(text)
                kind = said["type"]
            except (ValueError, TypeError, KeyError) as e:
                raise _Refusal("protocol", f"this line cannot be read: {type(e).__name__}", "send lines of the contract") from None
            if kind == "end":
                return None
            if kind == "hello":
                return self._begin(said)
            if kind == "ask" and self._hello is not None:
                return self._answer(said)
            raise _Refusal("protocol", f"a line {str(kind)[:40]!r} has no place here", "send lines of the contract, hello first")
        except _Refusal as refusal:
            number = said.get("id") if isinstance(said, dict) else None
            return {**refusal.document, **({"id": number} if isinstance(number, int) else {})}

    def _begin(self, hello: dict[str, Any]) -> dict[str, Any]:
        if hello.get("protocol") != PROTOCOL:
            raise _Refusal("version", f"this answerer speaks version {PROTOCOL} of the contract", "use the same release on both sides")
        try:
            numbers = [column["name"] for column in hello["columns"]]
            named = [(column["column"], column["categories"]) for column in hello["categorical"]]
            low, high = (np.array([column[end] for column in hello["columns"]], float) for end in ("lower", "upper"))
            clips = hello["out_of_box"] == "clip"
        except (KeyError, TypeError, ValueError):
            raise _Refusal("protocol", "hello lacks something", "send lines of the contract") from None
        try:
            rows = _rows.of_plan(self._table, numbers, named, finite=False, noise=questions.noise(hello))
        except (VeilsumError, TypeError, ValueError) as e:
            raise _Refusal("columns", getattr(e, "message", str(e)), getattr(e, "next_step", "") or "look at the table") from None
        finite = np.isfinite(rows).all(axis=1)
        with np.errstate(invalid="ignore"):
            own = rows[:, : len(numbers)]
            inside = np.ones(len(rows), bool) if clips else ((own >= low) & (own <= high)).all(axis=1)
            whole = np.ones(len(rows), bool) if hello.get("scaling") != "direction" else _rows.has_direction(rows, low, high)
        bad = {
            "missing, or not a number or a category": int((~finite).sum()), "outside the box": int((finite & ~inside).sum()),
            "nothing but zeros, which have no direction": int((finite & inside & ~whole).sum()),
        }  # fmt: skip
        inside &= whole
        self._rows = np.ascontiguousarray(rows[finite & inside])
        self._bad = sum(bad.values())
        *prints, self._print = _printed(len(self._rows), _hashed(self._rows, numbers, named))
        self._hello = hello
        from . import __version__

        return {
            "type": "ready", "protocol": PROTOCOL, "name": self._name, "version": __version__, "rows": len(self._rows),
            "bad": {reason: number for reason, number in bad.items() if number},
            "fingerprint": {"rows": self._print, "columns": prints},
            "kinds": KINDS,
        }  # fmt: skip

    def _answer(self, ask: dict[str, Any]) -> dict[str, Any]:
        try:
            layout = {**self._hello, "blocks": ask["blocks"]}  # type: ignore[dict-item]
            words, rows, bad = questions.computed(ask["question"], layout, self._rows)
            number = ask["id"]
        except (VeilsumError, KeyError, TypeError, ValueError) as e:
            raise _Refusal("protocol", getattr(e, "message", str(e)), "ask a question that fits the box") from None
        if bad:
            raise _Refusal("internal", "rows that were usable are not any more", "this is a defect, please report it")
        return {
            "type": "answer", "id": number, "rows": rows, "bad": self._bad, "fingerprint": self._print,
            "words": [word if abs(word) <= EXACT else str(word) for word in words.tolist()],
        }  # fmt: skip


def serve(table: Any, *, lines: Iterable[str] | None = None, out: TextIO | None = None, name: str = "veilsum-python") -> None:
    """Answers the lines of standard input on standard output until the site says ``end``, or hangs up.

    Parameters
    ----------
    table : table
        Rows with names, in original units; a frame, an Arrow stream, a relation of DuckDB, or a dict of columns. Or an
        :class:`Answerer` that knows them, such as one of :mod:`veilsum.engines`.
    """
    answerer = table if isinstance(table, Answerer) else Answerer(table, name)
    if out is None:
        # Standard output is the conversation's alone: what a library prints would break it, and goes to standard error.
        sys.stdout.flush()
        out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
    for text in lines if lines is not None else (line.decode(errors="replace") for line in sys.stdin.buffer):
        said = answerer.line(text)
        if said is None:
            return
        out.write(json.dumps(said) + "\n")
        out.flush()


def _of_csv(path: str) -> dict[str, np.ndarray]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        header, *rows = list(csv.reader(file))
    return {name: np.array([row[place] for row in rows], object) for place, name in enumerate(header)}


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: python -m veilsum.answerer ROWS.csv", file=sys.stderr)
        return 2
    serve(_of_csv(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
