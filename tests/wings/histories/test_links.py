"""Kinds of steps: which steps count together, and what is known of values by their counts."""

import numpy as np
import pytest

from dpsynth.columns.measurement import Measurement, UnitsByRows
from dpsynth.statistics.cut_off import Kept
from dpsynth.wings.histories.links import StepKinds, by_rows, staying

SIZE, NUMBERS, UNITS = 42, 40, 6000
GROUPS = np.append(np.arange(NUMBERS) // 10, [3, 4])


def walks(seed=0):
    """Values of rows that walk up and down by one place, or go missing, and those of the rows before them."""
    rng = np.random.default_rng(seed)
    here = [rng.integers(0, NUMBERS, UNITS)]
    before = [np.full(UNITS, SIZE)]
    for _ in range(3):
        moved = np.clip(here[-1] + rng.integers(-1, 2, UNITS), 0, NUMBERS - 1)
        before.append(here[-1])
        here.append(np.where(rng.random(UNITS) < 0.05, NUMBERS + 1, moved))
    return np.concatenate(here), np.concatenate(before)


def answered(kinds, noise, seed=1):
    here, before = walks()
    counts = np.bincount(kinds.cells[here, before], minlength=np.prod(kinds.shape)).reshape(kinds.shape)
    drawn = np.rint(counts + np.random.default_rng(seed).normal(0, noise, kinds.shape)).astype(np.int64)
    return Measurement(("x", "x (row before)"), drawn, "gaussian", max(noise, 0.5))


@pytest.fixture(scope="module")
def kinds():
    return StepKinds.of(GROUPS, NUMBERS, np.bincount(walks()[0], minlength=SIZE).astype(float), 3)


def test_near_steps_count_by_their_distance_and_far_ones_by_the_group_they_lead_to(kinds):
    assert kinds.near == (1, 2, 5, 10)
    of = kinds.kinds
    assert of[20, 20] == of[7, 7] == 0 and of[21, 20] == of[8, 7] != of[19, 20]
    assert of[23, 20] == of[25, 20] != of[26, 20] and of[30, 20] != of[31, 20] == of[35, 20] == of[39, 3]
    # Codes that are no numbers stand in no group of numbers, and are near nothing; nor is no row.
    assert len({int(of[code, 39]) for code in (30, NUMBERS, NUMBERS + 1)}) == 3
    assert of[5, SIZE] == of[9, SIZE] == of[5, NUMBERS] and of[NUMBERS, NUMBERS] >= 9
    assert set(kinds.parts[:NUMBERS]) == {0, 1, 2} and kinds.parts[NUMBERS] == 3 and kinds.parts[SIZE] == 4
    assert kinds.cells.max() == kinds.cells[-1, -1] == np.prod(kinds.shape) - 1


@pytest.mark.parametrize("noise", [0.0, 60.0])
def test_values_by_counts_of_steps_stay_as_near_as_they_do_whatever_the_width_of_groups(kinds, noise):
    here, before = walks()
    rows = np.bincount(here, minlength=SIZE).astype(float)
    counts, variance = kinds.spread(answered(kinds, noise), rows, 1 / 4)
    assert counts.shape == (SIZE, SIZE + 1) and (counts >= 0).all() and variance >= 0
    within = counts[:NUMBERS, :NUMBERS]
    apart = np.abs(np.subtract.outer(np.arange(NUMBERS), np.arange(NUMBERS)))
    numbers = (here < NUMBERS) & (before < NUMBERS)
    true = np.abs(here - before)[numbers].mean()
    # In groups of ten places, values of one group are 3.3 places apart.
    assert true < 0.7 and abs((within * apart).sum() / within.sum() - true) < 0.6
    exact = np.bincount(kinds.cells[here, before], minlength=np.prod(kinds.shape))
    found = np.bincount(kinds.cells.reshape(-1), counts.reshape(-1))
    assert np.abs(found - exact).sum() < (0.01 if not noise else 0.1) * len(here)


def test_answers_of_noise_alone_are_spread_as_rows_are(kinds):
    rows = np.bincount(walks()[0], minlength=SIZE).astype(float)
    silent = Measurement(("x", "x (row before)"), np.zeros(kinds.shape, np.int64), "gaussian", 50.0)
    counts, _ = kinds.spread(silent, rows, 1 / 4)
    assert np.isfinite(counts).all() and (counts >= 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_numbers_that_noise_can_have_made_are_no_units_and_tell_the_rows(seed):
    """2 000 units of up to five rows, where up to forty are counted, and the rows with the noise of forty."""
    rng, real = np.random.default_rng(seed), np.r_[700, 600, 400, 200, 100, np.zeros(55)]
    units = UnitsByRows(
        tuple(range(1, 61)), np.rint(real + rng.normal(0, 15, 60)).astype(int), "gaussian", 15.0
    )
    whole = float(real[:40] @ np.arange(1, 41))
    lengths, rows = by_rows(units, 40, Kept(whole + rng.normal(0, 600), "gaussian", 600.0))
    assert abs(rows / whole - 1) < 0.12 and abs(lengths.sum() / 2000 - 1) < 0.1
    assert lengths[8:].sum() == 0 and (lengths >= 0).all()


def test_rows_that_no_units_show_are_those_that_were_counted():
    """Units with many rows, of each number too few to be told from noise; and units of no number at all."""
    values = np.r_[700, 600, 400, 200, 100, np.full(35, 5), [0] * 20]
    for own, counted in ((values, 8_100.0), (values * 0, 1_000.0)):
        units = UnitsByRows(tuple(range(1, 61)), own, "gaussian", 15.0)
        assert by_rows(units, 40, Kept(counted, "gaussian", 600.0))[1] == counted


def test_rows_that_are_public_stay_as_they_are():
    units = UnitsByRows((1, 2, 3, 4), np.array([700, 600, 400, 3]), "gaussian", 15.0)
    assert by_rows(units, 3, Kept(3_100.0, "none", 0.0))[1] == 3_100.0


def test_empty_values_beyond_all_rows_widen_no_kind_of_steps():
    groups = np.r_[np.arange(20) // 2, np.full(200, 10)]
    kinds = StepKinds.of(groups, 220, np.r_[np.full(20, 100.0), np.zeros(200)], 3)
    assert kinds.near == (1, 2)


@pytest.mark.parametrize("correlation", [0.0, 0.7, 0.95])
@pytest.mark.parametrize("noise", [0.0, 60.0])
def test_far_steps_lead_to_values_as_near_as_they_are_within_wide_groups(correlation, noise):
    """Rows of a normal law; far steps are counted by thirds of the rows before, and groups of ten values."""
    rng = np.random.default_rng(3)
    before, other = rng.normal(0, 1, (2, 20_000))
    after = correlation * before + np.sqrt(1 - correlation**2) * other
    before, after = (np.clip(6 * x + NUMBERS / 2, 0, NUMBERS - 1).astype(np.int64) for x in (before, after))
    rows = np.bincount(after, minlength=SIZE).astype(float)
    kinds = StepKinds.of(GROUPS, NUMBERS, rows, 3)
    exact = np.bincount(kinds.cells[after, before], minlength=np.prod(kinds.shape)).reshape(kinds.shape)
    drawn = np.rint(exact + rng.normal(0, noise, kinds.shape)).astype(np.int64)
    answer = Measurement(("x", "x (row before)"), drawn, "gaussian", max(noise, 0.5))
    counts = kinds.spread(answer, rows, 0.0)[0][:NUMBERS, :NUMBERS]
    places = np.arange(NUMBERS)
    here, there = (counts.sum(axis=axis) @ places / counts.sum() for axis in (1, 0))
    spread = [counts.sum(axis=axis) @ places**2 / counts.sum() - m**2 for axis, m in ((1, here), (0, there))]
    found = (places @ counts @ places / counts.sum() - here * there) / np.sqrt(spread[0] * spread[1])
    assert abs(found - np.corrcoef(before, after)[0, 1]) < 0.05


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("noise", [0.0, 10.0])
def test_cells_tell_if_values_are_kept(kept, noise):
    """Values of a normal law in eight cells, of which some stay and the others move on by a copula."""
    rng = np.random.default_rng(6)
    before, other = rng.normal(0, 1, (2, 40_000))
    after = np.where(rng.random(before.size) < kept, before, 0.8 * before + 0.6 * other)
    cells = [np.searchsorted(np.linspace(-1.5, 1.5, 7), x) for x in (after, before)]
    counts = np.bincount(cells[0] * 8 + cells[1], minlength=64).reshape(8, 8).astype(float)
    noisy = np.maximum(counts + rng.normal(0, noise, counts.shape), 0)
    found = staying(noisy, max(noise, 0.5) ** 2, rising=False)
    stays = np.diag(counts) / counts.sum(axis=0)
    truly = [np.mean((after == before)[(cells[0] == cells[1]) & (cells[1] == c)]) for c in range(8)]
    assert np.average(np.abs(found - truly), weights=stays) < (0.12 if noise else 0.08)


def test_a_rising_column_goes_through_a_cell_as_fast_as_it_leaves_it():
    """Ages in cells of 5, 10 and 20 years, a year from row to row."""
    before = np.tile(np.arange(35), 100)
    cells = [np.digitize(x, [5, 15, 35]) for x in (before + 1, before)]
    counts = np.bincount(cells[0] * 4 + cells[1], minlength=16).reshape(4, 4).astype(float)
    found = staying(counts[:3, :3], 0.0, rising=True)
    assert found[:2] == pytest.approx([1 / 5, 1 / 10]) and 0 < found[2] < 1 / 5
    assert np.isfinite(staying(np.zeros((3, 3)), 1.0, rising=True)).all()


@pytest.mark.parametrize("seed", range(20))
def test_steps_that_noise_may_have_made_change_no_value(seed):
    """6 000 values that all stay in one of six cells, by counts with much noise, less what is below 0."""
    noisy = np.diag(np.full(6, 1000.0)) + np.random.default_rng(seed).normal(0, 60, (6, 6))
    found = staying(np.where(noisy > 120, noisy, 0), 60.0**2, rising=False)
    assert (found > 0.97).all()
