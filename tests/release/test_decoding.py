"""Whole releases of money: tails are kept, and tables of means reckon with what is drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dpsynth

pytestmark = pytest.mark.usefixtures("seeded_noise")
ROWS = 20_000


def amounts() -> np.ndarray:
    """A quarter of nothing, the rest log-normal; the largest is far below what is declared."""
    rng = np.random.default_rng(5)
    spent = np.exp(rng.normal(3.5, 1.4, ROWS))
    return np.round(np.where(rng.random(ROWS) < 0.25, 0.0, np.minimum(spent, 99_999)), 2)


def made(folder: Path, **declared: object) -> dpsynth.Release:
    """A release of the amounts and a group that has nothing to do with them."""
    spent, group = amounts(), np.random.default_rng(6).integers(0, 3, ROWS)
    table = folder / "t.csv"
    table.write_text("spent,group\n" + "\n".join(f"{s:.2f},{g}" for s, g in zip(spent, group, strict=True)))
    money: dict[str, object] = {
        "type": "number",
        "bins": [0, 0.01, 1, 3.6, 13, 46, 170, 600, 2200, 7700, 28000, 100000, 100000],
        "decimals": 2,
        "missing": False,
    }
    config = {
        "release": "r",
        "source": {"path": str(table)},
        "privacy": {"epsilon": 2, "delta": 1e-6},
        "ledger": {"url": f"sqlite:///{folder / 'ledger.db'}", "cap": {"epsilon": 100, "delta": 0.1}},
        "columns": {"spent": {**money, **declared}, "group": {"type": "integer", "min": 0, "max": 2}},
        "publish": {"statistics": [{"mean": "spent"}]},
    }
    path = folder / "c.yaml"
    path.write_text(json.dumps(config))
    return dpsynth.release(dpsynth.load(path), outputs=folder / "out")


def figures(release: dpsynth.Release) -> np.ndarray:
    values = release.table.column("spent").to_numpy()
    return np.quantile(values, [0.5, 0.9, 0.99])


def test_percentiles_of_money_are_nearer_when_a_bin_follows_its_neighbours(tmp_path: Path) -> None:
    """`within: uniform` is the planted fault: it misses by more than is allowed."""
    real = np.quantile(amounts(), [0.5, 0.9, 0.99])
    off = {
        way: np.abs(figures(made(tmp_path, within=way)) / real - 1).mean() for way in ("linear", "uniform")
    }
    assert off["linear"] < 0.12 < off["uniform"]


@pytest.mark.parametrize("way", ["linear", "uniform"])
def test_the_table_of_means_reckons_with_what_is_drawn_in_the_synthetic_table(
    tmp_path: Path, way: str
) -> None:
    release = made(tmp_path, within=way)
    values = release.table.column("spent").to_numpy()
    (mean,) = release.tables["mean of spent"].table.to_pylist()
    # The synthetic table is drawn from the model, the mean is of the answers: noise and draws lie between.
    assert abs(values.mean() - mean["estimate"]) < 4 * mean["standard_error"] + 5 * values.std() / ROWS**0.5
    assert abs(amounts().mean() - mean["estimate"]) < 4 * mean["standard_error"] + mean["grouping_error"]


def test_the_public_schema_does_not_depend_on_the_slopes(tmp_path: Path) -> None:
    schemas = set()
    for _ in range(2):
        manifest = json.loads((made(tmp_path).folder / "public" / "manifest.json").read_text())
        schemas.add(json.dumps(manifest["columns"], sort_keys=True))
    assert len(schemas) == 1
