"""A model of weights as one of rows: raked to counts of single columns, which are shrunk to it."""

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import counts_of_rows, estimate, of_rows, row_counts

DOMAIN = Domain({"a": 3, "b": 4})
RNG = np.random.default_rng(1)
WEIGHTS = RNG.integers(200, 2000, (3, 4))
FACTORS = np.outer([0.5, 1, 3], [1, 2, 1, 4])


def model_of(counts):
    exact = Measurement(("a", "b"), np.rint(counts).astype(np.int64), "gaussian", 0.01)
    return estimate(DOMAIN, [exact]).model


def single(column, counts, scale):
    return Measurement((column,), np.rint(counts).astype(np.int64), "gaussian", scale)


def test_rows_that_are_a_product_of_factors_of_the_columns_follow_exactly_from_weights_and_single_columns():
    rows = WEIGHTS * FACTORS
    found = of_rows(model_of(WEIGHTS), {("a",): rows.sum(1), ("b",): rows.sum(0)}, float(rows.sum()))
    assert found.total == rows.sum()
    np.testing.assert_allclose(found.marginal(("a", "b")), rows, rtol=2e-3)


def test_targets_by_weights_become_targets_of_rows_with_the_columns_of_the_model():
    rows = WEIGHTS * FACTORS
    weighted, model = model_of(WEIGHTS), model_of(rows)
    found = counts_of_rows({("a", "b"): WEIGHTS.astype(float)}, weighted, model)["a", "b"]
    np.testing.assert_allclose(found, rows, rtol=1e-2)
    off = counts_of_rows({("a", "b"): WEIGHTS + 50.0}, weighted, model)["a", "b"]
    np.testing.assert_allclose(off.sum(1), rows.sum(1), rtol=1e-2)
    np.testing.assert_allclose(off.sum(0), rows.sum(0), rtol=1e-2)


@pytest.mark.parametrize("scale", [1.0, 30.0, 3000.0])
def test_a_count_of_rows_counts_for_more_the_less_noise_it_has(scale):
    rows, model = 2.0 * WEIGHTS.sum(1), model_of(WEIGHTS)
    other = np.array([1.4, 1.0, 0.6]) * rows
    other *= rows.sum() / other.sum()
    found = row_counts([single("a", other, scale)], model, rows.sum())["a",]
    kept = np.abs(found - rows).sum() / np.abs(other - rows).sum()
    assert kept > 0.95 if scale <= 30 else kept < 0.5
    assert (found >= 0).all()


def test_columns_that_agree_with_the_weights_let_noise_in_another_one_count_for_little():
    model, noise = model_of(WEIGHTS), 400.0
    rng = np.random.default_rng(3)
    worse, better = [], []
    for _ in range(50):
        counted = [
            single(c, model.marginal((c,)) + rng.normal(0, noise, DOMAIN.sizes[c]), noise) for c in "ab"
        ]
        found = row_counts(counted, model, model.total)
        worse.append(np.abs(counted[1].values - model.marginal(("b",))).sum())
        better.append(np.abs(found["b",] - model.marginal(("b",))).sum())
    assert np.mean(better) < 0.6 * np.mean(worse)


def test_answers_about_no_column_or_several_are_left_out():
    total = Measurement((), np.array(9), "gaussian", 1.0)
    both = Measurement(("a", "b"), WEIGHTS, "gaussian", 1.0)
    assert row_counts([total, both], model_of(WEIGHTS), 100.0) == {}
