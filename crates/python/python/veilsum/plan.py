"""Plans: what is computed, on which columns, under which terms. Options are those of ``veilsum plan``, as keywords."""

from __future__ import annotations

from typing import Any

from ._commands import call, settings

__all__ = ["agree", "check", "new", "privacy"]


def new(**options: Any) -> dict[str, Any]:
    """Makes a plan and signs it with the coordinator's key; returns what it means.

    ``plan.new(roster="roster.toml", key="hub.key", k=3, columns={"age": (0, 110), "bmi": (12, 60)}, out="plan.toml")``.
    ``k=(2, 9)`` lets the run choose. All options and settings: ``veilsum plan new --help-all``.
    """
    return call("plan", "new", **settings(options))


def check(plan: Any = "plan.toml", roster: Any = "roster.toml", **options: Any) -> dict[str, Any]:
    """What a verified plan means: thresholds, precision, bytes, warnings; ``sign=True`` signs a
    plan that its coordinator changed by hand."""
    return call("plan", "check", plan=plan, roster=roster, **options)


def agree(plan: Any = "plan.toml", **options: Any) -> dict[str, Any]:
    """Agrees, for a site, to a plan that was read and waits for it: ``roster``, ``key``, ``data`` and the plan's ``fingerprint``."""
    return call("agree", others=[plan], **options)


def privacy(**options: Any) -> Any:
    """A privacy report for assessors: its ``report`` is Markdown."""
    return call("plan", "privacy", **options)
