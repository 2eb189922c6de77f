"""Progress: shares for whoever watches, amounts on a terminal, nothing else anywhere."""

import gzip
import io
import itertools
import zipfile
from contextlib import suppress
from functools import partialmethod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from rich.progress import Progress

from dpsynth.columns.domain import Domain
from dpsynth.config.files.form import FileForm
from dpsynth.curator.rows.files import read_cells
from dpsynth.curator.rows.memory_table import MemoryTable
from dpsynth.curator.table import MOST_BLOCK, counted
from dpsynth.pipeline import steps as progress
from dpsynth.pipeline.steps import EVERY, StepWatcher, in_words, lines_for_steps, showing, watched
from dpsynth.work_shares import as_part, heard_by, telling


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass: one between any two looks."""
    ticks = itertools.count()
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
def test_a_watcher_gets_every_step_and_shares_of_long_ones_alone_and_seldom() -> None:
    heard: list[tuple[str, float]] = []
    passed: list[str] = []

    class Watcher(StepWatcher):
        def begun(self, step: str) -> None:
            passed.append(f"begin {step}")

        def advanced(self, step: str, share: float) -> None:
            heard.append((step, share))

        def ended(self, step: str) -> None:
            passed.append(f"end {step}")

    with watched(StepWatcher()), watched(Watcher()):
        with showing("sample rows", "rows") as advance:
            for done in range(1, 11):
                advance(1000 * done, 10_000)
        with showing("a short one") as advance:
            advance(1, 1)
        with suppress(ValueError), showing("one that fails"):
            raise ValueError
    assert {step for step, _ in heard} == {"sample rows"}
    assert len(heard) == 10 // EVERY and all(0 < share <= 1 for _, share in heard)
    with showing("unwatched") as advance:
        advance(1, 1)
    assert passed == [
        "begin sample rows",
        "end sample rows",
        "begin a short one",
        "end a short one",
        "begin one that fails",
    ]


def test_without_a_terminal_a_step_is_a_line_without_numbers_or_nothing(capsys) -> None:
    for lines in (True, False):
        around = lines_for_steps() if lines else watched(StepWatcher())
        with around, showing("sample rows", "rows") as advance:
            advance(5, 10)
        assert capsys.readouterr().err == ("Step: sample rows\n" if lines else "")


def test_rate_and_time_left_follow_from_what_is_done() -> None:
    assert in_words(2_000_000, 8_000_000, 4.0, "rows").endswith("500,000 rows/s, 0:00:12 left")
    assert "left" not in in_words(8, 8, 4.0, "rows") and in_words(0, None, 1.0, "rows") == ""


def heard_of_reading(table: pa.Table, folder: Path) -> dict[str, list[float]]:
    """The shares of reading a table from each kind of source, in the order in which they are told."""
    csv.write_csv(table, folder / "t.csv")
    packed = gzip.compress((folder / "t.csv").read_bytes(), 1)
    (folder / "t.csv.gz").write_bytes(packed)
    with zipfile.ZipFile(folder / "t.csv.zip", "w") as archive:
        archive.write(folder / "t.csv", "t.csv")
    (folder / "parts").mkdir()
    for part in range(2):
        parquet.write_table(table, folder / "parts" / f"{part}.parquet")
    forms = {
        "t.csv": FileForm("csv"),
        "t.csv.gz": FileForm("csv", compression="gz"),
        "t.csv.zip": FileForm("csv", compression="zip"),
        "parts": FileForm("parquet"),
    }
    batches = {n: read_cells(folder / n, ["a"], form, keep_broken=True) for n, form in forms.items()}
    batches["memory"] = MemoryTable(table).batches(["a"])
    found: dict[str, list[float]] = {}
    for name, source in batches.items():
        shares = found.setdefault(name, [])
        with heard_by(lambda work, share, shares=shares: shares.append(share)):
            assert sum(len(batch["a"]) for batch in source) == table.num_rows * (1 + (name == "parts"))
    return found


def test_a_terminal_hears_of_all_that_is_read_from_whatever_source(tmp_path: Path) -> None:
    for name, shares in heard_of_reading(pa.table({"a": range(3000)}), tmp_path).items():
        assert shares == sorted(shares) and shares[-1] > 0.99, name


def test_a_terminal_hears_of_all_that_is_counted_by_any_thread() -> None:
    codes, shares = np.zeros(5 * MOST_BLOCK, dtype=np.uint8), []
    with heard_by(lambda work, share: shares.append((work, share))):
        for begin in (0.0, 0.5):
            with as_part(begin, begin + 0.5):
                counted(lambda _, rows: codes[rows], Domain({"a": 1, "b": 1}), len(codes), [("a",), ("b",)])
    assert {work for work, _ in shares} == {"counting"} and max(share for _, share in shares) == 1.0
    assert len(shares) > 6 and sum(share > 0.5 for _, share in shares) == len(shares) // 2 - 1


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_shares_of_private_work_are_shown_on_a_terminal_and_told_to_nobody_else(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    told: list[float] = []

    class Watcher(StepWatcher):
        def advanced(self, step: str, share: float) -> None:
            told.append(share)

    monkeypatch.setattr(progress, "EVERY", 0.0)
    # Drawn at each change: otherwise a display of its own draws what is there ten times a second.
    monkeypatch.setattr(Progress, "update", partialmethod(Progress.update, refresh=True))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    shown = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    with lines_for_steps(), watched(Watcher()), showing("open the table") as advance:
        tell = telling("reading", 37)
        tell(15)
        assert told == [], "a watcher would pass it on: to a log, or to Prefect's database"
        advance(1, 4)
    assert told == [0.25], "public shares are told"
    tell(15)
    words = shown.getvalue()
    assert ("reading 41 %, 0:0" in words) == terminal and "81 %" not in words and "15" not in words
    assert terminal or words == "Step: open the table\n"
