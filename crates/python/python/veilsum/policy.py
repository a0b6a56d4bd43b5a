"""A site's own policy: what it demands before it answers."""

from __future__ import annotations

from typing import Any

from ._commands import call

__all__ = ["check", "show"]


def show(**options: Any) -> dict[str, Any]:
    """The policy that is in force, of ``policy=FILE`` or beside ``key=FILE``; without both the strict default."""
    return call("policy", "show", **options)


def check(**options: Any) -> dict[str, Any]:
    """What this site's policy says to a plan: whether it answers, and what of its budget that uses.

    Options are those of ``veilsum policy check``: ``key``, ``plan``, ``roster``, ``data``, ``policy``, ``html``.
    """
    return call("policy", "check", **options)
