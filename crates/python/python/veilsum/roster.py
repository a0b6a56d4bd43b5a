"""Rosters: who takes part, each with a key."""

from __future__ import annotations

from typing import Any

from ._commands import call

__all__ = ["agree", "verify"]


def verify(roster: Any = "roster.toml") -> dict[str, Any]:
    """Checks contents and signature, and returns the fingerprint that operators compare by telephone."""
    return call("verify", others=[roster])


def agree(key: Any, fingerprint: str, roster: Any = "roster.toml") -> Any:
    """Agrees to a roster with this party's key: with the fingerprint that another member read out."""
    return call("agree", others=[roster], key=key, fingerprint=fingerprint)
