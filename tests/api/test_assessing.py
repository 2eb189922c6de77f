"""A check and an evaluation in Python are those of the command line, and leave no cell anywhere."""

import json
import traceback
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import dpsynth
from dpsynth.errors import ConfigError, DpsynthError, SourceError, StepFailed
from dpsynth.pipeline.result import Release
from tests.api.tables import COLUMNS, KEYS, frame

CANARY = "zanzibar"
CSV = {"index": False}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def odd() -> pd.DataFrame:
    """Rows with a cell that is clipped, one that is unknown and one that is missing."""
    rows = frame(200)
    rows.loc[0, "age"], rows.loc[1, "sex"], rows.loc[2, "cost"] = 120, CANARY, None
    return rows


def below(found: object) -> str:
    """What is shown below the first line, which names the source."""
    return str(found).partition("\n")[2]


def test_a_frame_is_checked_as_its_file_is_and_nothing_is_written(folder: Path) -> None:
    of_frame = dpsynth.check(odd(), columns=COLUMNS)
    assert list(folder.iterdir()) == []
    assert str(of_frame).startswith("PRIVATE: exact counts and cells of the table in memory, for its owner")
    assert CANARY in str(of_frame) and max(map(len, str(of_frame).splitlines())) <= 110
    odd().to_csv("visits.csv", **CSV)
    of_file = dpsynth.check("visits.csv", **KEYS)
    spec = dpsynth.Spec.from_dict(
        {
            "privacy": {"epsilon": 1},
            "ledger": {"dataset": "visits"},
            "columns": COLUMNS,
            "source": {"path": "visits.csv"},
        }
    )
    for other in (of_file, dpsynth.check(spec), dpsynth.check(odd(), spec)):
        assert below(other) == below(of_frame) and other.frame.equals(of_frame.frame)
    table = pa.Table.from_pandas(odd(), preserve_index=False)
    assert below(dpsynth.check(table, columns=COLUMNS)) == below(of_frame)
    cells = of_frame.frame.set_index("column")
    assert cells.loc["age", "above_max"] == 1 and cells.loc["sex", "other"] + cells.loc["sex", "unread"] == 1
    assert cells.loc["cost", "missing"] == 1 and set(cells.cells) == {200}


def test_the_words_are_those_of_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dpsynth.wings.owner.commands import check

    odd().to_csv("visits.csv", **CSV)
    values = {"source": {"path": "visits.csv"}, "privacy": {"epsilon": 1}, "columns": COLUMNS}
    (folder / "visits.yaml").write_text(json.dumps(values))
    check(folder / "visits.yaml", source=None, period=None, as_json=False)
    assert capsys.readouterr().out == f"{dpsynth.check(dpsynth.load('visits.yaml'))}\n"


def test_a_notebook_is_shown_the_words_once_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich takes a notebook for its own terminal, unless it is told not to."""
    found, shown = dpsynth.check(odd(), columns=COLUMNS), []
    whole = str(found)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *parts: shown.append(parts))
    assert str(found) == whole and "clipped" in whole and shown == []


def test_guesses_are_checked_before_they_are_reviewed_and_gaps_are_left_out() -> None:
    rows = odd().assign(note=[f"note {i}" for i in range(200)], empty=None)
    guess = dpsynth.describe(rows)
    with pytest.raises(ConfigError, match="Not reviewed yet"):
        dpsynth.release(rows, epsilon=1, dataset="visits", columns=guess.columns)
    found = dpsynth.check(rows, columns=guess.columns)
    assert {"age", "sex", "cost"} <= set(found.frame.column)
    assert set(found.frame.column) <= {n for n, d in guess.columns.items() if None not in d.values()}


def test_persons_are_counted_in_a_frame() -> None:
    rows = frame(200).assign(who=[i // 4 for i in range(200)])
    found = dpsynth.check(rows, columns=COLUMNS, unit={"column": "who", "max_rows": 2})
    assert found.persons is not None and (found.persons.number, found.persons.dropped) == (50, 100)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Release:
    place = tmp_path_factory.mktemp("evaluated")
    keys = {**KEYS, "unit": {"column": "who", "max_rows": 2}, "ledger": place / "l.db"}
    keys["privacy"] = {"on_empty": "go"}
    return dpsynth.release(of_persons(), **keys, outputs=place / "outputs")


def of_persons() -> pd.DataFrame:
    return frame(600).assign(who=[i // 3 for i in range(600)])


def test_a_frame_is_compared_as_its_file_is_and_the_page_stays_private(released, folder: Path) -> None:
    public = {p: p.read_bytes() for p in (released.folder / "public").rglob("*") if p.is_file()}
    found = dpsynth.evaluate(released, of_persons(), targets=["sex"])
    page = released.folder / "private" / "utility.html"
    assert str(found).startswith("PRIVATE, never to be shared") and len(str(found).splitlines()) <= 6
    assert found.report().path == page and "PRIVATE" in found.report()._repr_html_()
    assert {p: p.read_bytes() for p in (released.folder / "public").rglob("*") if p.is_file()} == public
    of_persons().to_csv("visits.csv", **CSV)
    again = dpsynth.evaluate(released.folder, "visits.csv", targets=["sex"])
    assert found.frame.equals(again.frame) and found.rows == again.rows == (400, found.rows[1])
    assert found.predictions == again.predictions and list(found.frame.column_2[:3]) == ["", "", ""]
    far = dpsynth.evaluate(released, of_persons().assign(sex="F")).frame
    # The two tables that it is compared with lie half of the rows apart, whatever the noise was.
    assert far.distance[1] + found.frame.distance[1] > 0.4


def test_a_mistake_is_one_sentence_in_the_words_of_python(released) -> None:
    for arguments, kind, words in (
        ((released,), ConfigError, "the argument against"),
        ((released, "table"), ConfigError, "the argument config"),
        ((released, of_persons().drop(columns="age")), SourceError, "has no column 'age'"),
        (("nowhere", of_persons()), ConfigError, "is no bundle"),
    ):
        with pytest.raises(kind) as refused:
            dpsynth.evaluate(*arguments)
        assert words in str(refused.value) and "--" not in str(refused.value)
    with pytest.raises(ConfigError, match=r"^targets: sax: the release has no such column"):
        dpsynth.evaluate(released, of_persons(), targets=["sax"])
    with pytest.raises(ConfigError, match=r"columns\.age\.max is missing"):
        dpsynth.check(frame(), columns={"age": {"type": "integer", "min": 0}})


@pytest.mark.parametrize("look", ["check", "evaluate"])
def test_an_error_while_a_frame_is_read_quotes_no_cell(released, monkeypatch, look: str) -> None:
    def quoting(*_: object) -> None:
        raise ValueError(f"could not convert {CANARY}")

    monkeypatch.setattr("dpsynth.curator.rows.memory_table.MemoryTable.batches", quoting)
    rows = of_persons().assign(sex=CANARY)
    with pytest.raises(DpsynthError) as failed:
        dpsynth.check(rows, columns=COLUMNS) if look == "check" else dpsynth.evaluate(released, rows)
    assert isinstance(failed.value, StepFailed) and CANARY not in str(failed.value)
    package = str(Path(dpsynth.__file__).parent)
    stack = traceback.TracebackException.from_exception(failed.value, capture_locals=True).stack
    shown = [str(entry.locals) for entry in stack if entry.filename.startswith(package)]
    assert shown and not any(CANARY in text for text in shown)
    assert failed.value.__cause__ is None and failed.value.__context__ is None
