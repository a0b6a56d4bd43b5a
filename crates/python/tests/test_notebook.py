"""The notebook runs from its first cell to its last."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NOTEBOOK = EXAMPLES / "python" / "notebook.ipynb"


def test_the_notebook_runs(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed, so the notebook is not run")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed, so the notebook is not run")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed, so the notebook is not run")
    monkeypatch.setenv("VEILSUM_EXAMPLES", str(EXAMPLES))
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    # The kernel is this Python, whatever kernels a user has.
    kernel = tmp_path / "kernels" / "here"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text('{"argv": %s, "display_name": "here", "language": "python"}' % str(argv).replace("'", '"'))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="here", resources={"metadata": {"path": str(tmp_path)}}).execute()
    text = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "largest difference" in text and "mass" in text


def test_the_notebook_is_what_its_source_says(tmp_path):
    source = EXAMPLES / "python" / "make_notebook.py"
    copy = tmp_path / source.name
    copy.write_bytes(source.read_bytes())
    subprocess.run([sys.executable, str(copy)], check=True, env=os.environ)
    assert (tmp_path / "notebook.ipynb").read_text() == NOTEBOOK.read_text()
