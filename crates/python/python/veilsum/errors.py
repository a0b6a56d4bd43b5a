"""What goes wrong, as exceptions: each says whose fault it is and what to do next.

Exit codes and names are those of the program: see the reference of commands in the book.
"""

from __future__ import annotations

__all__ = [
    "VeilsumError",
    "InternalError",
    "InputError",
    "UsageError",
    "NetworkError",
    "PeerError",
    "QuorumError",
    "PolicyError",
    "DeniedError",
    "EarlyError",
    "StorageError",
    "InterruptedRun",
    "NotFittedError",
]


class VeilsumError(Exception):
    """Something failed.

    Attributes
    ----------
    code : str
        What kind of failure it is, e.g. ``"policy"``.
    exit_code : int
        The exit code that the program ``veilsum`` ends with for it.
    culprit : str
        Whose doing it is: ``"caller"``, ``"own policy"``, ``"peer"``, ``"network"``, ``"federation"`` or ``"veilsum"``.
    message : str
        What happened. It never holds a value of a row, or a key.
    next_step : str
        What to do next; it may be empty.
    """

    code = "internal"
    exit_code = 1
    culprit = "veilsum"

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message if not next_step else f"{message}\nnext: {next_step}")
        self.message = message
        self.next_step = next_step

    def __reduce__(self):
        return type(self), (self.message, self.next_step)


class InternalError(VeilsumError):
    """Something that should not happen: a defect of ours, please report it."""


class UsageError(VeilsumError, ValueError):
    """An argument that does not exist, or a value that cannot be used, alone or beside the others."""

    code, exit_code, culprit = "usage", 2, "caller"


class InputError(VeilsumError, ValueError):
    """Rows, a roster, a plan or a key that cannot be used."""

    code, exit_code, culprit = "input", 3, "caller"


class NetworkError(VeilsumError):
    """A peer that cannot be reached."""

    code, exit_code, culprit = "network", 4, "network"


class PeerError(VeilsumError):
    """A peer broke a rule of the protocol; the message names it."""

    code, exit_code, culprit = "peer", 5, "peer"


class QuorumError(VeilsumError):
    """Too few sites are left; nothing was revealed beyond the totals of earlier rounds."""

    code, exit_code, culprit = "quorum", 6, "federation"


class PolicyError(VeilsumError):
    """The site's own policy refuses."""

    code, exit_code, culprit = "policy", 7, "own policy"


class DeniedError(VeilsumError):
    """The other side ended the run, or did not let us in."""

    code, exit_code, culprit = "denied", 8, "peer"


class EarlyError(VeilsumError):
    """The run ended early; the result that is out so far is there."""

    code, exit_code, culprit = "early", 9, "federation"


class StorageError(VeilsumError):
    """Nothing can be written here for now, such as on a full disk; the same call goes on once it can."""

    code, exit_code, culprit = "storage", 10, "caller"


class InterruptedRun(VeilsumError):
    """Interrupted, or told to stop."""

    code, exit_code, culprit = "interrupted", 130, "caller"


class NotFittedError(VeilsumError, ValueError, AttributeError):
    """An estimator was asked for something that only a fit gives. Where scikit-learn is loaded it is its error as well."""

    code, exit_code, culprit = "usage", 2, "caller"


_BY_EXIT_CODE = {
    error.exit_code: error
    for error in (
        InternalError,
        UsageError,
        InputError,
        NetworkError,
        PeerError,
        QuorumError,
        PolicyError,
        DeniedError,
        EarlyError,
        StorageError,
        InterruptedRun,
    )
}
_BY_EXIT_CODE[143] = InterruptedRun


def of_failure(exit_code: int, message: str, next_step: str) -> VeilsumError:
    """The exception for a failure of the program with this exit code."""
    return _BY_EXIT_CODE.get(exit_code, InternalError)(message, next_step)
