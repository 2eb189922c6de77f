"""Misreads that cost more than a tenth of a column are warned of, and healthy columns are not.

The config is that of ``dpsynth init --look``, every guess accepted, or one by hand that expects nothing. The
releases are real ones, at epsilon 1 and 10 000 rows, up to their warnings. Limits of shares are wrong in one
release of 10 000 at most; each misread here exceeds them by several standard deviations of the noise.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.config import Spec, from_mapping
from dpsynth.errors import Interrupted
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.statistics.single_columns import DataWarning, warnings_of
from dpsynth.wings.owner.assess.profiling import look_at
from dpsynth.wings.owner.starter import draft_of, guessed, starter_text
from tests.thinned import some
from tests.wings.owner.starter.reviewing import without_list

ROWS = 10_000
Table = dict[str, list[str]]


def table() -> Table:
    """A healthy table: each column is read as it is declared."""
    rng = np.random.default_rng(5)
    days = np.datetime64("2024-01-01") + rng.integers(0, 366, ROWS)
    dates = [str(day) for day in days]
    town = rng.choice(["Zürich", "Genève", "Bern", "Basel", "Chur"], ROWS, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    degree = rng.choice(["none", "school", "college", ""], ROWS, p=[0.3, 0.3, 0.2, 0.2])
    income = np.minimum(rng.lognormal(8.5, 0.6, ROWS), 49_000).round().astype(int)
    return {
        "sex": rng.choice(["F", "M"], ROWS).tolist(),
        "town": [*town.tolist()[:-8], *(f"village {i}" for i in range(8))],
        "degree": degree.tolist(),
        "smokes": rng.choice(["no", "yes"], ROWS, p=[0.8, 0.2]).tolist(),
        "flag": rng.choice(["0", "1"], ROWS, p=[0.999, 0.001]).tolist(),
        "income": [str(x) for x in income],
        "weight": [f"{x:.1f}" for x in rng.normal(75, 12, ROWS)],
        "age": [str(x) for x in rng.integers(18, 91, ROWS)],
        "seen": dates,
        "entered": [f"{d[8:]}.{d[5:7]}.{d[:4]}" for d in dates],
        "began": ["2024-01-01"] * ROWS,
        "ended": [d if x < 0.05 else "" for d, x in zip(dates, rng.random(ROWS), strict=True)],
    }


Spoil = Callable[[str, int], str]
"""What becomes of a cell, in a row of a number."""


def share_of(share: float, spoil: Callable[[str], str]) -> Spoil:
    """A share of the rows spoilt."""
    return lambda cell, row: spoil(cell) if row % 100 < 100 * share else cell


@dataclass(frozen=True)
class Misread:
    """A column of the table that is written otherwise.

    Attributes:
        column: the column.
        spoil: how it is written.
        by_hand: True if it is found too where a config by hand expects nothing.
    """

    column: str
    spoil: Spoil
    by_hand: bool = True


MISREADS: Mapping[str, Misread] = {
    "a third spelt otherwise, nothing missing": Misread(
        "sex", share_of(1 / 3, lambda x: {"F": "female", "M": "male"}[x]), by_hand=False
    ),
    "another case": Misread("sex", share_of(1, str.lower)),
    "a third spelt otherwise, missing allowed": Misread("degree", share_of(1 / 3, str.title)),
    "a third spelt otherwise, with other": Misread("town", share_of(1 / 3, lambda x: f"{x} (CH)")),
    "another encoding": Misread("town", share_of(1, lambda x: x.replace("ü", "\ufffd"))),
    "American dates": Misread("entered", share_of(1, lambda x: f"{x[3:5]}.{x[:2]}.{x[6:]}")),
    "a fifth of the dates in another format": Misread("seen", share_of(0.2, lambda x: x.replace("-", "/"))),
    "half of the numbers above max": Misread("income", share_of(0.49, lambda x: str(int(x) + 90_000))),
    "a fifth of the numbers below min": Misread("age", share_of(0.2, lambda x: str(-int(x))), by_hand=False),
    "another unit": Misread("income", share_of(1, lambda x: f"{int(x) * 1000}")),
    "decimal commas in a third": Misread("weight", share_of(1 / 3, lambda x: x.replace(".", ","))),
    "thousands separators": Misread("income", share_of(1, lambda x: f"{int(x):,}")),
    "an undeclared marker of missing": Misread("age", share_of(0.2, lambda x: "-9"), by_hand=False),
    "truth values in other words": Misread("smokes", share_of(1, lambda x: {"no": "nein", "yes": "ja"}[x])),
}
"""More than twelve kinds of misreads, each of one column."""

BY_HAND: Mapping[str, Mapping[str, object]] = {
    "sex": {"type": "category", "values": ["F", "M"], "missing": False},
    "town": {"type": "category", "values": ["Zürich", "Genève", "Bern", "Basel", "Chur"], "other": "else"},
    "degree": {
        "type": "ordered",
        "values": ["none", "school", "college"],
        "expected": {"missing": Decimal("0.2")},
    },
    "smokes": {"type": "boolean", "values": ["no", "yes"]},
    "income": {"type": "number", "min": 0, "max": 60_000, "bins": 30},
    "weight": {"type": "number", "min": 20, "max": 200, "decimals": 1},
    "age": {"type": "integer", "min": 0, "max": 110},
    "seen": {"type": "date", "min": "2024-01-01", "max": "2024-12-31"},
    "entered": {"type": "date", "min": "2024-01-01", "max": "2024-12-31", "format": "%d.%m.%Y"},
}


def written(folder: Path, cells: Mapping[str, Sequence[str]]) -> Path:
    path = folder / "t.csv"
    pd.DataFrame(cells).to_csv(path, index=False)
    return path


def looked(path: Path) -> Spec:
    """The config of ``dpsynth init --look``, every guess accepted."""
    draft = draft_of(path)
    found = guessed(draft, look_at(draft.table, draft.form, draft.to_look_at, draft.person))
    config = path.with_suffix(".yaml")
    config.write_text(without_list(starter_text(found, "t", None, "dpsynth init")))
    return dpsynth.load(config)


def by_hand(path: Path) -> Spec:
    return from_mapping(
        {
            "source": {"path": str(path)},
            "privacy": {"epsilon": 1, "delta": 1e-6},
            "ledger": {"dataset": "t", "cap": {"epsilon": 10, "delta": 1e-3}},
            "columns": {name: dict(declared) for name, declared in BY_HAND.items()},
        }
    )


class Stopped(BaseException):
    """The end of a release that was only asked for its warnings."""


@pytest.fixture
def warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Spec], list[DataWarning]]:
    """The warnings and questions of a real release."""
    monkeypatch.chdir(tmp_path)
    said: list[DataWarning] = []

    def heed(inputs, stage, run, answers, tell):
        found = {search.column for search in stage.plan.first.searches}
        said.extend(warnings_of(stage.layout.columns, answers.first, found, None, inputs.spec.expected))
        raise Stopped

    monkeypatch.setattr(pipeline, "heed_warnings", heed)

    def of(spec: Spec) -> list[DataWarning]:
        said.clear()
        spec = spec.model_copy(
            update={"ledger": spec.ledger.model_copy(update={"url": f"sqlite:///{tmp_path / 'l.db'}"})}
        )
        with pytest.raises((Stopped, Interrupted)):
            pipeline.run(spec, Request(outputs=tmp_path / "out"))
        return list(said)

    return of


def rounds(kinds: Sequence[str]) -> list[list[str]]:
    """The misreads in rounds with one of each column at most."""
    found: list[list[str]] = []
    for kind in kinds:
        column = MISREADS[kind].column
        free = next((r for r in found if column not in {MISREADS[k].column for k in r}), None)
        if free is None:
            found.append([kind])
        else:
            free.append(kind)
    return found


def spoilt(kinds: Sequence[str]) -> Table:
    cells = table()
    for misread in map(MISREADS.__getitem__, kinds):
        cells[misread.column] = [misread.spoil(x, row) for row, x in enumerate(cells[misread.column])]
    return cells


@pytest.mark.parametrize("kinds", some(rounds(list(MISREADS)), 1))
def test_misreads_are_warned_of_by_a_config_that_knew_the_table(tmp_path, warnings, kinds) -> None:
    spec = looked(written(tmp_path, table()))
    written(tmp_path, spoilt(kinds))
    assert {w.column for w in warnings(spec)} == {MISREADS[kind].column for kind in kinds}


@pytest.mark.parametrize(
    "kinds", some(rounds([kind for kind, misread in MISREADS.items() if misread.by_hand]), 1)
)
def test_misreads_are_warned_of_by_a_config_by_hand(tmp_path, warnings, kinds) -> None:
    spec = by_hand(written(tmp_path, spoilt(kinds)))
    assert {w.column for w in warnings(spec)} == {MISREADS[kind].column for kind in kinds}


def test_a_table_that_is_read_as_declared_gives_no_warning_and_no_question(tmp_path, warnings) -> None:
    path = written(tmp_path, table())
    spec = looked(path)
    assert spec.expected["ended"] == {"missing": Decimal("0.95")} and "default" in spec.expected["sex"]
    assert warnings(spec) == []
    assert warnings(by_hand(path)) == []


def test_a_look_that_expects_nothing_would_be_noticed(tmp_path, warnings, monkeypatch) -> None:
    """The planted fault: columns that are empty or constant stop the release."""
    monkeypatch.setattr("dpsynth.wings.owner.assess.column_guesses._Tally.shares", lambda self, column: {})
    said = warnings(looked(written(tmp_path, table())))
    assert {w.column for w in said if w.serious} >= {"began", "ended"}


def public_tables() -> dict[str, Callable[[], pd.DataFrame]]:
    """Tables that come with statsmodels, and those of a folder of real tables if there is one."""
    from statsmodels import datasets

    found = {name: partial(_example, getattr(datasets, name)) for name in ("randhie", "fair", "anes96")}
    folder = Path(os.environ.get("DPSYNTH_DATA", ""))
    real = ("adult.csv", "adult-coded.csv", "flights.csv.gz", "loans.csv.gz", "nlswork.csv.gz")
    return found | {name: partial(_first, folder / name) for name in real if (folder / name).is_file()}


def _example(dataset: Any) -> pd.DataFrame:
    return dataset.load_pandas().data.head(ROWS)


def _first(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, nrows=ROWS, dtype=str, keep_default_na=False)


@pytest.mark.parametrize("name", some(public_tables(), 3))
def test_healthy_columns_of_public_tables_give_no_warning_and_no_question(tmp_path, warnings, name) -> None:
    frame = public_tables()[name]()
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert warnings(looked(tmp_path / "t.csv")) == []


def test_healthy_coded_columns_of_a_domain_without_a_look_give_no_warning(tmp_path, warnings) -> None:
    """Flags of which 99.9 % are one code, at the first and at the last one, and one in the middle."""
    rng = np.random.default_rng(3)
    codes = {"low": rng.random(ROWS) < 0.001, "high": rng.random(ROWS) < 0.999, "few": np.full(ROWS, 2)}
    path = written(tmp_path, {name: code.astype(int).astype(str).tolist() for name, code in codes.items()})
    (tmp_path / "domain.json").write_text('{"low": 2, "high": 2, "few": 4}')
    (tmp_path / "t.yaml").write_text(
        without_list(starter_text(draft_of(tmp_path / "domain.json", table=path), "t", None, "dpsynth init"))
    )
    assert warnings(dpsynth.load(tmp_path / "t.yaml")) == []
