"""What a run leaves behind: its result, and who belongs where."""

from __future__ import annotations

import json
from typing import Any

from ._commands import call

__all__ = ["assign", "read", "verify"]


def read(path: Any = "veilsum-out/result.json") -> Any:
    """The result in this file, as a :class:`veilsum.Result`."""
    from .federation import Result

    with open(path, encoding="utf-8") as file:
        return Result(json.load(file))


def assign(model: Any, data: Any, **options: Any) -> Any:
    """Memberships of the rows of ``data`` under a model, written to ``out``."""
    return call("assign", model=model, data=data, **options)


def verify(path: Any, **options: Any) -> dict[str, Any]:
    """Who signed a result, and of a run's folder whether its totals lead to it."""
    return call("verify", others=[path], **options)
