"""The program ``veilsum``: ``python -m veilsum COMMAND``."""

from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    # The program has its own manners on Ctrl-C where no Python runs beside it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.run(["veilsum", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
