"""The notebook runs from its first cell to its last, and what is stored of it is what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the notebook is read with a package of the lock file")
nbclient = pytest.importorskip("nbclient", reason="the notebook is run with a package of the lock file")
pytest.importorskip("ipykernel", reason="the notebook runs in a kernel of Jupyter")

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "first_release.ipynb"


def printed(notebook) -> list[list[str]]:
    """The first word that each cell of code printed, if it printed any."""
    texts = ["".join(output.get("text", "") for output in c.get("outputs", [])) for c in notebook.cells]
    return [text.split()[:1] for text in texts]


def test_every_cell_of_the_notebook_runs_and_prints_what_is_stored(tmp_path: Path) -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(run, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert printed(run) == printed(stored)
    assert sum(bool(words) for words in printed(stored)) >= 8
    (bundle,) = (tmp_path / "outputs" / "clinic").iterdir()
    assert (bundle / "public" / "report.html").is_file()


def test_what_is_stored_is_text_and_tells_nothing_of_the_machine() -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    outputs = [output for cell in stored.cells for output in cell.get("outputs", [])]
    assert {output.output_type for output in outputs} <= {"stream"}
    text = "".join(output.text for output in outputs)
    assert str(Path.home()) not in text and "/tmp" not in text and "\x1b" not in text
    assert len(text) < 20_000
