"""Commands of the program ``veilsum`` in this process: Python arguments in, the document of ``--json`` out."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Mapping

from . import _core
from .errors import UsageError



def _word(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, float):
        return repr(value)
    return str(value)


def options(named: Mapping[str, Any]) -> list[str]:
    """``phase_timeout=10`` becomes ``--phase-timeout=10``; ``True`` an option without a value; a list the option several times.

    Two names are Python's own: ``columns={"age": (0, 120)}`` stands for ``--column age=0:120``, and
    ``categories={"ward": ["north", "south"]}`` for ``--column ward=north,south``.
    """
    words: list[str] = []
    for name, value in named.items():
        if name == "columns":
            for column, box in value.items():
                words.append(f"--column={column}" + ("" if box is None else f"={_word(float(box[0]))}:{_word(float(box[1]))}"))
            continue
        if name == "categories":
            for column, listed in value.items():
                if any("," in category for category in listed or ()):
                    raise UsageError(
                        f"column {column!r}: a category has a comma, which divides categories on a command line",
                        "write another name for it, and say in site.toml which value it stands for",
                    )
            words += [f"--column={column}" + ("" if listed is None else f"={','.join(listed)}") for column, listed in value.items()]
            continue
        if name == "k" and isinstance(value, (tuple, range)):
            value = f"{min(value)}..{max(value)}"
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={_word(one)}" for one in value]
        else:
            words.append(f"{option}={_word(value)}")
    return words


#: Options of ``veilsum plan new``; whatever else is said of a plan is a setting.
_OF_PLANS = ("roster", "key", "out", "method", "k", "exact", "rho", "expected_rows", "seed", "columns", "categories")


def settings(named: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a plan, with those that are settings as ``--set NAME=VALUE``."""
    own = {name: value for name, value in named.items() if name in _OF_PLANS}
    others = {name: value for name, value in named.items() if name not in _OF_PLANS and value is not None}
    text = {name: _word(value) if isinstance(value, os.PathLike) else value for name, value in others.items()}
    return {**own, "set": [f"{name}={_toml(value)}" for name, value in text.items()]}


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value) if isinstance(value, (bool, str)) else _word(value)


def call(*words: Any, others: Iterable[Any] = (), **named: Any) -> Any:
    """Runs a command and returns its document.

    Raises
    ------
    VeilsumError
        That of the command, with its code, its culprit and the next step.
    """
    return json.loads(_core.call([*map(_word, words), *options(named), *(["--"] if others else []), *map(_word, others)]))


def check(*, offline: bool = True, **options: Any) -> dict[str, Any]:
    """Whether a party is ready: its files, its rows, what would leave of them, what its account has, and whether its policy lets it.

    Options are those of ``veilsum check``: ``key``, ``plan``, ``roster``, ``data``, ``policy``. The way to the others is left
    out unless ``offline=False``.

    Raises
    ------
    VeilsumError
        That of the first thing that is in the way.
    """
    return call("check", offline=offline, **options)
