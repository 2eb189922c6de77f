"""Each notebook runs from its first cell to its last, and what is stored of it is what it prints."""

from importlib.util import find_spec
from pathlib import Path

import pytest

LACKING = [name for name in ("nbformat", "nbclient", "ipykernel") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(LACKING), reason=f"a notebook is run with packages of the lock file: {LACKING}"
)
NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
NAMES = ("first_release", "release_a_dataframe")


def read(name: str):
    import nbformat

    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def printed(notebook) -> list[list[str]]:
    """The first word that each cell of code printed, if it printed any."""
    texts = ["".join(output.get("text", "") for output in c.get("outputs", [])) for c in notebook.cells]
    return [text.split()[:1] for text in texts]


def shown(notebook) -> list[list[str]]:
    """The kinds of output that each cell shows by itself; the page of a report is not stored."""
    return [
        [
            "text/html"
            for o in c.get("outputs", [])
            if "<iframe" not in o.get("data", {}).get("text/html", "<iframe")
        ]
        for c in notebook.cells
    ]


def test_every_notebook_is_run() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(NAMES)


def test_the_cells_of_the_first_one_print_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As below, without a kernel."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    stored = read(NAMES[0])
    for cell, words in zip(stored.cells, printed(stored), strict=True):
        if cell.cell_type == "code":
            exec(cell.source, names)
            assert capsys.readouterr().out.split()[:1] == words, cell.source
    assert sum(bool(words) for words in printed(stored)) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_cell_of_a_notebook_runs_and_prints_what_is_stored(name: str, tmp_path: Path) -> None:
    import nbclient

    stored, run = read(name), read(name)
    nbclient.NotebookClient(run, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert printed(run) == printed(stored) and shown(run) == shown(stored)
    assert sum(bool(words) for words in printed(stored)) >= 8
    bundles = [place for place in (tmp_path / "outputs" / "clinic").iterdir() if place.is_dir()]
    assert bundles and all((bundle / "public" / "report.html").is_file() for bundle in bundles)


def test_the_report_is_shown_in_place_and_no_private_table_is_written() -> None:
    pages = [c for c in read("release_a_dataframe").cells if "report(" in c.source]
    assert len(pages) == 1 and pages[0].outputs[0].output_type == "execute_result"
    stored = read("release_a_dataframe")
    assert not any("to_csv" in c.source or "to_parquet" in c.source for c in stored.cells)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_text_and_tells_nothing_of_the_machine(name: str) -> None:
    outputs = [output for cell in read(name).cells for output in cell.get("outputs", [])]
    assert {output.output_type for output in outputs} <= {"stream", "execute_result"}
    data = [text for output in outputs for text in output.get("data", {}).values()]
    text = "".join([*(output.get("text", "") for output in outputs), *data])
    assert str(Path.home()) not in text and "/tmp" not in text and "\x1b" not in text
    assert len(text) < 20_000
