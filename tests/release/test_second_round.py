"""A release with pairs beside its tree: its rows are near to them, and so are tables by the model."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.spine import run
from tests.guarantee.test_second_round_by_replay import CELLS, COLUMNS, rows_of
from tests.guarantee.wild_tables import privacy_of, spec_for, write


@pytest.mark.usefixtures("seeded_noise")
def test_rows_and_tables_by_the_model_show_a_pair_that_the_tree_does_not_hold(tmp_path: Path) -> None:
    rows = rows_of(random.Random(1)) * 4
    privacy = privacy_of("add_remove", "row", "gaussian", epsilon=9)
    spec = spec_for(write(tmp_path / "x.csv", rows), privacy, "auto", columns=COLUMNS)
    # Without triples in the workload none is measured, so the crosstab comes from the refined table.
    told = {"method": "auto", "max_model_mb": CELLS * 8 / 1e6, "workload": {"ways": 2}}
    structure = type(spec.structure).model_validate(told)
    crosstab = {"statistics": [{"crosstab": ["age", "pay", "city"]}]}
    publish = type(spec.publish).model_validate(crosstab)
    release = run(
        spec.model_copy(update={"structure": structure, "publish": publish}), Request(tmp_path / "out")
    )
    made = release.synthetic
    real = Counter((int(age) // 10, int(float(pay)) // 10) for _, age, pay, *_ in rows)
    found = Counter(
        zip(made["age"].astype(int) // 10, made["pay"].astype(float).astype(int) // 10, strict=True)
    )
    cells = set(real) | set(found)
    assert sum(abs(real[c] / len(rows) - found[c] / len(made)) for c in cells) / 2 < 0.05
    table = next(t for t in release.tables.values() if len(t.columns) == 3)
    estimates = np.array(table.table["estimate"].to_pylist(), dtype=np.float64)
    assert not table.measured and abs(estimates.sum() - len(rows)) < 0.02 * len(rows)
    by_pair = estimates.reshape(8, 8, 8).sum(axis=2)
    exact = np.array([[real[a, p] for p in range(8)] for a in range(8)])
    assert np.abs(by_pair - exact).sum() / 2 / len(rows) < 0.05
