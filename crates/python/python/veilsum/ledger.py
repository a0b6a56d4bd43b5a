"""A site's ledger: what it has given away, for the life of its rows."""

from __future__ import annotations

from typing import Any

from ._commands import call

__all__ = ["show", "verify"]


def show(**options: Any) -> Any:
    """What the ledger of ``key=FILE`` holds."""
    return call("ledger", "show", **options)


def verify(ledger: Any, **options: Any) -> Any:
    """Whether this file of a ledger is whole, and which keys signed it."""
    return call("verify", others=[ledger], **options)
