"""Federated fuzzy clustering: only totals over all sites become readable.

>>> import veilsum
>>> model = veilsum.FuzzyCMeans(n_clusters=3, random_state=0)          # local, as in scikit-learn
>>> federation = veilsum.Federation.of({"age": (0, 120), "bmi": (10, 60)}, k=3, expected_rows=3000)

See the page "Python" of the book.
"""

from __future__ import annotations

from . import errors
from ._commands import check
from .cluster import FuzzyCMeans, KMeans
from .errors import VeilsumError
from .federation import Coordinator, Federation, Frame, Intermediary, Result, Site

__all__ = [
    "Coordinator",
    "Federation",
    "Frame",
    "FuzzyCMeans",
    "Intermediary",
    "KMeans",
    "Result",
    "Site",
    "VeilsumError",
    "check",
    "errors",
]

__version__ = "0.1.0"

_MODULES = ("ledger", "plan", "questions", "report", "roster", "spark")


def __getattr__(name: str):
    """The other modules, when they are wanted: ``veilsum.plan.check`` needs no import of its own."""
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
