"""Levels: what lasts in a unit is told by rows far from each other, and rows that are drawn have it."""

import numpy as np
import pytest

from dpsynth.columns.measurement import Measurement
from dpsynth.wings.histories.levels import by_line, factor, levelled
from dpsynth.wings.histories.links import FirstRows, parts_of

PLACES, UNITS, MOST = 4, 30_000, 6
LENGTHS = np.r_[np.zeros(MOST - 1), float(UNITS)]


def drawn(lasts: float, seed: int = 0):
    """Rows of units, [units, rows]: each stays, or comes from the unit's own place or from any."""
    rng = np.random.default_rng(seed)
    trait = rng.integers(0, PLACES, UNITS)
    found = np.empty((UNITS, MOST), np.int64)
    for row in range(MOST):
        fresh = np.where(rng.random(UNITS) < lasts, trait, rng.integers(0, PLACES, UNITS))
        found[:, row] = np.where((rng.random(UNITS) < 0.4) & (row > 0), found[:, row - 1], fresh)
    return found


def pairs(one, other):
    counts = np.zeros((PLACES, PLACES))
    np.add.at(counts, (one.ravel(), other.ravel()), 1)
    return counts


def asked(rows, noise=0.0):
    """Rows by the row before, and beside first ones, as they are counted."""
    steps = np.vstack([pairs(rows[:, :-1], rows[:, 1:]), np.bincount(rows[:, 0], minlength=PLACES)])
    far = pairs(rows[:, 2:], np.repeat(rows[:, :1], MOST - 2, axis=1))
    near = np.bincount(rows[:, :2].ravel(), minlength=PLACES)
    counts = np.column_stack([far, near]) + np.random.default_rng(1).normal(0, noise, (PLACES, PLACES + 1))
    answer = Measurement(
        ("x", "x (first row)"), np.rint(counts).astype(np.int64), "gaussian", max(noise, 1.0)
    )
    return steps, FirstRows(np.arange(PLACES), answer)


def fitted(rows, noise=0.0, weighted=False):
    steps, firsts = asked(rows, noise)
    wanted = np.bincount(rows.ravel(), minlength=PLACES).astype(float)
    return levelled(steps, wanted, firsts, LENGTHS, weighted)


def walked(levels, seed=2):
    rng = np.random.default_rng(seed)

    def picked(shares):
        return (np.cumsum(shares, axis=1) < rng.random(len(shares))[:, None]).sum(axis=1)

    found = np.empty((UNITS, MOST), np.int64)
    found[:, 0] = picked(np.broadcast_to(levels.ways[0, -1], (UNITS, PLACES)))
    level = picked(levels.shares[found[:, 0]])
    for row in range(1, MOST):
        found[:, row] = picked(levels.ways[level, found[:, row - 1]])
    return found


def apart(one, other):
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


@pytest.mark.parametrize("noise", [0.0, 150.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_far_rows_of_a_unit_resemble_each_other_as_they_do_and_near_rows_and_single_ones_still_do(
    noise, weighted
):
    rows = drawn(0.6)
    levels = fitted(rows, noise, weighted)
    assert levels is not None
    made = walked(levels)
    for back in (1, 3, 5):
        real, ours = pairs(rows[:, :-back], rows[:, back:]), pairs(made[:, :-back], made[:, back:])
        # Without levels, rows five apart are independent: 0.27 off.
        assert apart(real, ours) < (0.02 if back == 1 else 0.07)
    assert apart(np.bincount(rows.ravel()), np.bincount(made.ravel())) < 0.01
    assert apart(levels.counts[:-1], pairs(made[:, :-1], made[:, 1:])) < 0.01


def test_units_of_which_nothing_lasts_have_no_levels():
    assert fitted(drawn(0.0), 150.0) is None


def test_a_factor_of_noise_alone_has_hardly_ever_levels_apart():
    apart = 0
    for seed in range(100):
        usual, weights = factor(np.random.default_rng(seed).normal(1000, 300, (6, 6)), 300.0)
        assert usual.shape == (6, 6) and weights.sum() == pytest.approx(1)
        apart += np.abs(by_line(usual * weights) - weights).max() > 0.02
    assert apart <= 3


def test_a_factor_times_itself_is_what_was_counted():
    rows = drawn(0.8)
    far = pairs(rows[:, 0], rows[:, 5])
    usual, weights = factor(far, 1.0)
    assert apart(far, (usual * weights) @ usual.T * np.outer(weights, weights)) < 0.02


def test_parts_are_runs_of_groups_of_about_as_many_rows_and_no_number_shares_one_with_another_value():
    groups = np.array([0, 0, 1, 2, 3, 3, 4, 5])
    parts = parts_of(groups, 6, np.array([1, 1, 2, 2, 1, 1, 9, 9.0]), 2)
    assert parts.tolist() == [0, 0, 0, 1, 1, 1, 2, 3]
    assert parts_of(groups, 0, np.ones(8), 2).tolist() == groups.tolist()
