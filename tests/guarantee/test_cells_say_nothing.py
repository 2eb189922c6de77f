"""No cell of any source changes an exit code, a message or a warning: its table ends as one without it.

Exit codes, what is written to both streams, and Python's warnings are compared. The warnings of a release
follow from noisy answers; hard cells are so few here, and the budget so large, that none is due.
"""

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import wraps
from inspect import isgeneratorfunction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.cli import app
from dpsynth.columns.sums import Steps
from dpsynth.config import Spec
from dpsynth.config.files import opening
from dpsynth.curator import MemoryTable
from dpsynth.curator.loaded_rows import LoadedRows
from dpsynth.curator.rows import database_table as database_readers
from dpsynth.curator.table import PrivateTable
from dpsynth.errors import DpsynthError
from tests.databases import Postgres
from tests.guarantee.hard_cells import DECLARED, KINDS, POSTGRESQL, Cells, Kind, Source, in_postgresql

PLAIN = 120
Said = tuple[object, str, str, list[str]]
"""An exit code, both streams, and Python's warnings."""


class Runs:
    """Releases in this process, and all that is heard of them."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._monkeypatch, self._capfd, self._runs = folder, monkeypatch, capfd, 0
        monkeypatch.chdir(folder)

    def said(self, source: Source, columns: Sequence[str], verb: str = "run", **more: object) -> Said:
        """What a release, or another verb, says of a source; columns are measured, and the number summed."""
        self._runs += 1
        asked = [{"mean": "number"}, {"quantiles": "number", "at": [0.5]}] if "number" in columns else []
        config = {
            "release": "hard",
            # The number of rows is public, and said.
            "privacy": {"epsilon": 9, "delta": 1e-6, "neighbours": "replace_one"},
            "ledger": {"url": f"sqlite:///{self.folder}/{self._runs}.db", "dataset": "hard"},
            "columns": {name: DECLARED[name] for name in columns},
            "structure": {"method": "independent"},
            "publish": {"statistics": asked, "formats": ["csv"]},
            **more,
        }  # fmt: skip
        self._capfd.readouterr()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            if "table" in source:
                code: object = self._released(config, source["table"])
            else:
                code = self._run({**config, "source": source}, verb)
        out, err = self._capfd.readouterr()
        # Verdicts are of the exam's noisy answers, which each release draws anew.
        shown = re.sub("Verdict: .*\n", "", out).replace(f"out{self._runs}", "OUT")
        return code, re.sub("OUT/hard/.*", "BUNDLE", shown), err, [str(w.message) for w in heard]

    def _released(self, config: dict[str, object], table: object) -> object:
        try:
            dpsynth.release(table, Spec.from_dict(config))
        except DpsynthError as error:
            return type(error).__name__, str(error)
        return 0

    def _run(self, config: dict[str, object], verb: str) -> object:
        (self.folder / "config.yaml").write_text(json.dumps(config))
        out = ["--plain", "--out", f"out{self._runs}"] if verb == "run" else []
        self._monkeypatch.setattr(sys, "argv", ["dpsynth", verb, "config.yaml", *out])
        with pytest.raises(SystemExit) as stopped:
            app.main()
        return stopped.value.code


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, monkeypatch, capfd)


def neighbours(kind: Kind) -> tuple[Cells, Cells]:
    """A table with all hard cells of a kind, and one with harmless rows in their place."""
    return kind.rows(PLAIN, kind.hard), kind.rows(PLAIN + len(kind.hard), [])


QUICK = ("csv", "parquet-dictionary", "objects", "xlsx", "sqlite", "duckdb")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KINDS]
)
def test_a_table_with_hard_cells_ends_as_one_without_them(name: str, runs: Runs) -> None:
    kind = KINDS[name]
    with_them, without = neighbours(kind)
    found = runs.said(kind.write(runs.folder, with_them), [*kind.columns])
    assert found == runs.said(kind.write(runs.folder, without), [*kind.columns])
    assert found[0] == 0 and not found[3]


def test_hard_cells_of_postgresql_end_as_a_table_without_them(runs: Runs, postgres: Postgres) -> None:
    url = postgres.make()
    with_them, without = neighbours(POSTGRESQL)
    found = runs.said(in_postgresql(postgres, url, with_them), [*POSTGRESQL.columns])
    assert found == runs.said(in_postgresql(postgres, url, without), [*POSTGRESQL.columns])
    assert found[0] == 0 and not found[3]
    postgres.empty(url)


def test_an_exchanged_row_of_a_sheet_may_be_empty(runs: Runs) -> None:
    """The number of rows is said where it is public, and is that of the neighbour."""
    kind = replace(KINDS["xlsx"], columns={"number": KINDS["xlsx"].columns["number"]})
    full, empty = kind.rows(PLAIN, []), kind.rows(PLAIN - 1, [("number", "<v></v>")])
    found = runs.said(kind.write(runs.folder, full), ["number"])
    assert f"{PLAIN} synthetic rows" in found[1]
    assert runs.said(kind.write(runs.folder, empty), ["number"]) == found


@pytest.mark.parametrize("name", ["csv", "xlsx", "sqlite", "parquet-dictionary"])
def test_the_owner_checks_a_table_with_hard_cells_to_its_end(name: str, runs: Runs) -> None:
    """What a check says is private; how it ends, and Python's warnings, say nothing."""
    kind = KINDS[name]
    code, _, err, words = runs.said(kind.write(runs.folder, neighbours(kind)[0]), [*kind.columns], "check")
    assert (code, err, words) == (0, "", [])


def sums_that_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: numbers that are scaled before they are clipped."""
    sound = Steps.of

    def scaled(self, texts):
        np.multiply(self.form.read(texts), 10.0**10)
        return sound(self, texts)

    monkeypatch.setattr(Steps, "of", scaled)


def heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: warnings that are shown."""
    monkeypatch.setattr(opening, "warnings", SimpleNamespace(catch_warnings=lambda action: nullcontext()))
    monkeypatch.setattr(opening, "np", SimpleNamespace(errstate=lambda all: nullcontext()))


def differs(runs: Runs, kind: Kind) -> bool:
    """True if a table of hard numbers and its neighbour don't end alike."""
    numbers = replace(kind, columns={"number": kind.columns["number"]})
    some = [runs.said(kind.write(runs.folder, cells), ["number"]) for cells in neighbours(numbers)]
    return some[0] != some[1]


def test_numbers_that_overflow_are_neither_scaled_nor_heard(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either measure is enough by itself; without both of them the comparison fails."""
    with monkeypatch.context() as planted:
        heard(planted)
        assert not differs(runs, KINDS["csv"])
        sums_that_warn(planted)
        assert differs(runs, KINDS["csv"])
    sums_that_warn(monkeypatch)
    assert not differs(runs, KINDS["csv"])


def test_a_driver_that_stops_at_a_cell_would_be_seen(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: texts of SQLite that its driver decodes."""
    monkeypatch.setattr(database_readers, "bytes", str, raising=False)
    assert differs(runs, KINDS["sqlite"])


@pytest.mark.parametrize("unit", ["row", "person"])
def test_nothing_that_touches_rows_is_heard(unit: str, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each method of the engines warns, and so does the reader; every kind of question is asked."""
    called: set[str] = set()
    for kind in (PrivateTable, LoadedRows, MemoryTable):
        for name, method in [*vars(kind).items()]:
            if name in _ASKED[kind]:
                wrapped = _warnings if isgeneratorfunction(method) else _warning
                monkeypatch.setattr(kind, name, wrapped(method, called))
    person = {"unit": {"column": "who", "max_rows": "private", "at_most": 4}}
    frame = pd.DataFrame(
        {"who": range(200), "number": [1.5, 5.5] * 100, "whole": range(200), "text": "a", "open": "x"}
    )
    config = {
        "privacy": {"epsilon": 9, "delta": 1e-6, **(person if unit == "person" else {})},
        "ledger": {"url": f"sqlite:///{runs.folder}/1.db", "dataset": "d"},
        "columns": {
            "number": {**DECLARED["number"], "decimals": 2},
            "whole": {"type": "integer", "bounds": "private"},
            "text": DECLARED["text"],
            "open": {"type": "category", "open": True},
        },
        "publish": {"statistics": [{"mean": "number", "by": "text"}, {"quantiles": "number", "at": [0.5]}]},
        "structure": {"method": "mst"},
    }
    with warnings.catch_warnings(record=True) as words:
        warnings.simplefilter("always")
        dpsynth.release(frame, Spec.from_dict(config))
    assert not [str(word.message) for word in words if "planted" in str(word.message)]
    wanted = set().union(*_ASKED.values()) - ({"rows_of_units"} if unit == "row" else set())
    assert called == wanted


_ASKED = {
    PrivateTable: {"counts_of", "sums", "finer_counts", "texts_of", "coded", "recoded"},
    LoadedRows: {"rows_of_units", "bounded"},
    MemoryTable: {"batches"},
}
"""The methods by which cells and exact figures come."""


def _warning(method: Callable[..., object], called: set[str]) -> Callable[..., object]:
    @wraps(method)
    def warned(*args: object, **kwargs: object) -> object:
        called.add(method.__name__)
        warnings.warn("planted", stacklevel=1)
        np.float64(1e308) * np.float64(1e308)
        return method(*args, **kwargs)

    return warned


def _warnings(method: Callable[..., Iterator[object]], called: set[str]) -> Callable[..., Iterator[object]]:
    def warned(*args: object) -> Iterator[object]:
        yield from _warning(method, called)(*args)

    return warned


def test_blocks_that_overlap_are_silent_until_the_last_ends() -> None:
    """In any order, in one thread or in two; afterwards warnings are shown as before."""
    with warnings.catch_warnings(record=True) as words:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        first, second = opening.unheard(), opening.unheard()
        with ThreadPoolExecutor(1) as other:
            first.__enter__()
            other.submit(second.__enter__).result()
            first.__exit__(None, None, None)
            warnings.warn("a cell", stacklevel=1)
            other.submit(second.__exit__, None, None, None).result()
        assert not words and list(warnings.filters) == before
        warnings.warn("not a cell", stacklevel=1)
        assert len(words) == 1
