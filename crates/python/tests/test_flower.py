"""The example in which Flower carries the frames."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "python" / "flower" / "run.py"


def test_flower_carries_the_frames():
    pytest.importorskip("flwr.simulation", reason="SKIPPED: flwr is not installed")
    pytest.importorskip("ray", reason="SKIPPED: ray is not installed, on which Flower simulates")
    ended = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-3_000:]
    assert "messages of Flower" in ended.stdout, ended.stdout[-3_000:]
