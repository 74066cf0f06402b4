"""The notebooks of the documentation run from top to bottom, and are stored without their outputs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parents[2] / "docs"
FIGURES = {"python.ipynb": 4, "own-model.ipynb": 3}


def read_notebook(name: str) -> Any:
    return nbformat.reads((DOCS / name).read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("name", FIGURES)
def test_the_notebook_is_stored_without_outputs(name: str) -> None:
    cells = [cell for cell in read_notebook(name).cells if cell.cell_type == "code"]
    assert cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own libraries
@pytest.mark.parametrize("name", FIGURES)
def test_the_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*sys.path, str(DOCS)]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = read_notebook(name)
    NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    shown = [key for output in outputs for key in output.get("data", {})]
    assert shown.count("image/png") == FIGURES[name]
    assert "text/html" in shown or name != "python.ipynb"
