"""Rosters: who takes part, each with a key. Options are those of ``veilsum keygen`` and ``veilsum roster``, as keywords."""

from __future__ import annotations

from typing import Any, Sequence

from ._commands import call

__all__ = ["accept", "agreed", "keygen", "make", "verify"]


def keygen(name: str, out: Any = ".", **options: Any) -> dict[str, Any]:
    """Makes a party's secret key ``NAME.key`` and its public card ``NAME.card`` in the folder ``out``.

    A coordinator and an intermediary have an ``address`` as well, ``"host:port"``.
    """
    return call("keygen", name=name, out=out, **options)


def make(*, name: str, coordinator: Any, intermediary: Any, site: Sequence[Any], key: Any, out: Any = "roster.toml") -> dict[str, Any]:
    """Makes a roster from cards, three sites at least, and signs it with the coordinator's key."""
    return call("roster", "make", name=name, coordinator=coordinator, intermediary=intermediary, site=list(site), key=key, out=out)


def verify(roster: Any = "roster.toml") -> dict[str, Any]:
    """Checks contents and signature, and returns the fingerprint that operators compare by telephone."""
    return call("verify", others=[roster])


def accept(key: Any, fingerprint: str, roster: Any = "roster.toml", **options: Any) -> Any:
    """Agrees to a roster with this party's key: with the fingerprint that another member read out."""
    return call("roster", "accept", key=key, fingerprint=fingerprint, roster=roster, **options)


def agreed(key: Any) -> Any:
    """Every roster that was agreed to with a key."""
    return call("roster", "agreed", key=key)
