"""The synthetic rows of one row above are as many as the real ones, whatever their numbers look like."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth
from tests.release.test_merged_values import metadata
from tests.seeded_noise import seed_noise
from tests.thinned import some

ROOTS, MOST = 2_000, 9
NUMBERS = {
    "skewed": lambda rng: rng.geometric(0.25, ROOTS).clip(max=MOST),
    "alike": lambda rng: np.full(ROOTS, 4),
    "mostly none": lambda rng: rng.integers(1, MOST, ROOTS) * (rng.random(ROOTS) < 0.2),
}


def made(shape: str) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(4)
    numbers = NUMBERS[shape](rng)
    whose = np.repeat(np.arange(ROOTS), numbers)
    wage = rng.normal(20, 6, ROOTS)[whose] + rng.normal(0, 3, len(whose))
    place = np.arange(len(whose)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    # A wage that isn't known is no row that isn't there.
    texts = pd.Series(wage.clip(0, 59).round().astype(int).astype(str)).where(rng.random(len(whose)) > 0.05)
    years = {
        "woman": whose,
        "year": 70 + rng.integers(0, 10, ROOTS)[whose] + place,
        "wage": texts,
        "hours": (wage + place).clip(0, 79).astype(int),
    }
    women = pd.DataFrame({"woman": np.arange(ROOTS), "race": rng.integers(0, 3, ROOTS).astype(str)})
    return {"women": women, "years": pd.DataFrame(years)}


TABLES = {
    "women": {
        "key": "woman",
        "columns": {"race": {"type": "category", "values": list("012"), "missing": False}},
    },
    "years": {
        "parent": {"table": "women", "key": "woman", "max_children": MOST, "roles": 4},
        "order_by": "year",
        "columns": {
            "year": {"type": "integer", "min": 70, "max": 89, "missing": False},
            "wage": {"type": "integer", "min": 0, "max": 59},
            "hours": {"type": "integer", "min": 0, "max": 79},
        },
    },
}


# For each epsilon, how far shares and the number of rows may be off.
OFF = {3.0: 0.03, 1.0: 0.08, 0.3: 0.2}


@pytest.mark.parametrize(("shape", "epsilon"), some([*product(NUMBERS, OFF)][::-1], 1))
def test_numbers_of_rows_come_out_as_they_are(
    shape: str, epsilon: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch, 2)
    off = OFF[epsilon]
    real, places = made(shape), {"ledger": tmp_path / "l.db", "outputs": tmp_path / "out"}
    done = dpsynth.release(real, tables=TABLES, epsilon=epsilon, dataset="x", **places)
    tables = done.bundle.tables
    mine, theirs = (
        np.bincount(f["women"].woman.map(f["years"].woman.value_counts()).fillna(0).astype(int), minlength=10)
        for f in (real, tables)
    )
    assert np.abs(mine / mine.sum() - theirs / theirs.sum()).sum() / 2 < off
    assert abs(len(tables["years"]) / len(real["years"]) - 1) < off
    merged = metadata(done.handed_over)["groups"]
    for column, groups in merged.items():  # type: ignore[attr-defined]
        # No group holds cells that are there and cells that are not.
        apart = range(1, 5) if column == "years" else [len(groups) - 1] * (column != "race")
        assert not any(groups[i] in groups[:i] for i in apart), column


def test_rows_that_differ_in_their_order_do_so_in_the_synthetic_table(tmp_path: Path) -> None:
    places = {"ledger": tmp_path / "l.db", "outputs": tmp_path / "out"}
    below = TABLES["years"]
    two_a_cell = {"year": {**below["columns"]["year"], "bins": 10}}
    tables = TABLES | {"years": below | {"distinct": True, "columns": below["columns"] | two_a_cell}}
    done = dpsynth.release(made("skewed"), tables=tables, epsilon=0.3, dataset="x", **places)
    years = done.bundle.tables["years"]
    assert len(years) > ROOTS and (years.groupby("woman").year.diff().dropna() > 0).all()


def test_cells_that_may_be_missing_make_no_rows_that_nobody_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        numbers = np.minimum(rng.poisson(1.2, 500), 3)
        whose, kinds = np.repeat(np.arange(500), numbers), {"ward": "abcd", "kind": "xyz", "ill": "ny"}
        cells = {c: rng.choice(list(values), len(whose)) for c, values in kinds.items()}
        real = {
            "patients": pd.DataFrame({"id": np.arange(500), "sex": rng.choice(["F", "M"], 500)}),
            "visits": pd.DataFrame({"id": whose, **cells}),
        }
        tables = {
            "patients": {"key": "id", "columns": {"sex": {"type": "category", "values": ["F", "M"]}}},
            "visits": {
                "parent": {"table": "patients", "key": "id", "max_children": 3},
                "columns": {c: {"type": "category", "values": list(values)} for c, values in kinds.items()},
            },
        }
        seed_noise(monkeypatch, seed)
        places = {"ledger": tmp_path / f"{seed}.db", "outputs": tmp_path / f"{seed}"}
        made = dpsynth.release(real, tables=tables, epsilon=0.5, dataset="x", **places).bundle.tables
        ratios.append(len(made["visits"]) / len(made["patients"]) / (len(whose) / 500))
    assert abs(np.mean(ratios) - 1) < 0.08, ratios
