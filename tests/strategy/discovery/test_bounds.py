"""Ends hold the numbers that there are, and noise alone makes none."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from dpsynth.strategy import discovery as bounds
from dpsynth.strategy.discovery import UNKNOWN, deviations, private_bounds
from dpsynth.testing import FakeDoor
from tests.examples import cases
from tests.strategy.discovery.real_columns import COLUMNS, DECIMALS
from tests.strategy.discovery.searched import number_search, sought
from tests.thinned import some

TABLES = cases(1000, part=3)
PRICE = Fraction(1, 5000)  # with three questions the noise of each is 87 rows


def found(values, edges="equal", decimals=0, seed=0, price=PRICE, **more):
    search = number_search(edges, decimals=decimals)
    door = FakeDoor.of_column(np.asarray(values, float), np.random.default_rng(seed), **more)
    (low, high), _ = private_bounds(door, sought(search), search, price)
    return low / 10**decimals, high / 10**decimals


@pytest.mark.parametrize(
    ("values", "decimals", "ends"),
    [
        ([17, 40, 90], 0, (17, 90)),
        ([0, 0, 0], 0, (0, 1)),
        ([7], 0, (7, 8)),
        ([-3], 0, (-3, -2)),
        ([1990, 2024], 0, (1980, 2030)),
        ([0.01, 99.99], 2, (0.01, 100)),
        ([-250.5, 3.25], 2, (-260, 10)),
        ([10**15], 0, (10**15 - 1e13, 10**15)),
        ([-(10**18), 10**18], 0, (-(10**15), 10**15)),
        ([np.inf], 0, (10**15 - 1e14, 10**15)),
    ],
)
def test_without_noise_the_ends_are_close_around_the_numbers(values, decimals, ends):
    low, high = found(np.repeat(values, 10), decimals=decimals, exact=True)
    assert low >= ends[0] - 1e-9 and high <= ends[1] + 1e-9 and high > low
    clipped = np.clip(values, -(10**15), 10**15)
    assert low <= clipped.min() and high >= clipped.max()


@pytest.mark.parametrize("edges", ["equal", "tree"])
@pytest.mark.parametrize("name", COLUMNS)
def test_with_noise_nine_in_ten_rows_are_inside_and_the_range_is_not_far_too_wide(name, edges):
    values = COLUMNS[name](np.random.default_rng(1))
    bulk = np.quantile(values, [0.001, 0.999])
    for seed in range(cases(20)):
        low, high = found(values, edges, DECIMALS.get(name, 0), seed)
        assert ((values >= low) & (values <= high)).mean() > 0.9
        assert max(abs(low), abs(high)) <= 5 * np.abs(bulk).max() + 10


def share_of_close_ranges():
    values = COLUMNS["years"](np.random.default_rng(1))
    ends = np.array([found(values, "equal", seed=seed) for seed in range(40)])
    return ((ends[:, 0] >= 1900) & (ends[:, 1] <= 2020)).mean()


def test_a_narrow_range_far_from_zero_is_found_as_such():
    assert share_of_close_ranges() >= 0.9


def test_ends_by_magnitudes_alone_are_caught(monkeypatch):
    monkeypatch.setattr(bounds, "BOUND_QUESTIONS", 1)
    assert share_of_close_ranges() == 0


def share_of_empty_tables_with_ends(noise):
    empty = np.zeros(0)
    ends = [found(empty, "tree", seed=seed, noise=noise) for seed in range(TABLES)]
    return np.mean([e != UNKNOWN for e in ends])


@pytest.mark.parametrize("noise", some(["gaussian", "laplace"], 1))
def test_noise_alone_makes_ends_in_few_tables(noise):
    # Each end may be made with a chance of FAR_OFF.
    assert share_of_empty_tables_with_ends(noise) <= 2 * bounds.FAR_OFF + 4 * sqrt(
        2 * bounds.FAR_OFF / TABLES
    )


def test_a_threshold_that_forgets_how_many_magnitudes_there_are_is_caught(monkeypatch):
    monkeypatch.setattr(bounds, "deviations", lambda cells, noise, chance: deviations(1, noise, chance))
    assert share_of_empty_tables_with_ends("gaussian") > 0.03


def test_gaussian_thresholds_for_laplace_noise_are_caught(monkeypatch):
    monkeypatch.setattr(bounds, "deviations", lambda cells, _, chance: deviations(cells, "gaussian", chance))
    assert share_of_empty_tables_with_ends("laplace") > 0.03


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("chance", [0.5, 0.01])
def test_noises_stay_below_their_deviations_but_for_the_chance(noise, chance):
    rng = np.random.default_rng(0)
    draw = rng.normal if noise == "gaussian" else lambda size: rng.laplace(size=size) / sqrt(2)
    above = (draw(size=(20_000, 30)) > deviations(30, noise, chance)).any(axis=1).mean()
    assert chance / 1.4 - 0.003 < above < chance + 0.003


def test_a_thin_tail_is_told_by_several_magnitudes_together(monkeypatch):
    tail = np.concatenate((np.full(20_000, 30.0), np.geomspace(100, 4000, 1200)))
    ends = [found(tail, "tree", seed=seed)[1] for seed in range(30)]
    assert np.mean(np.array(ends) >= 1000) > 0.9
    monkeypatch.setattr(bounds, "NEXT", 0)
    alone = [found(tail, "tree", seed=seed)[1] for seed in range(30)]
    assert np.mean(alone) < np.mean(ends)
