"""Trees tell spikes, gaps and tails; several answers tell more than the last."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.plan.spending import planned_searches
from dpsynth.strategy import discovery as bins
from dpsynth.strategy.discovery import NoisyHistogram, averaged, codec_of, discover, equal_widths, tree_cuts
from dpsynth.testing import FakeDoor
from tests.strategy.discovery.real_columns import COLUMNS, DECIMALS, distance
from tests.strategy.discovery.searched import number_search, sought
from tests.thinned import some

PRICE = Fraction(1, 2000)


def codec(values, search, seed=0, price=PRICE, **more):
    door = FakeDoor.of_column(values, np.random.default_rng(seed), **more)
    column = sought(search)
    return discover(door, [column], planned_searches([column], price, Fraction(0)))["x"]


def with_a_bin_of_its_own(value, seeds=10, **more):
    name, ends = more.pop("column"), more.pop("ends", (None, None))
    values = COLUMNS[name](np.random.default_rng(1))
    search = number_search("tree", 32, ends, DECIMALS.get(name, 0))
    found = [codec(values, search, seed, **more).labels for seed in range(seeds)]
    return np.mean([search_label(search, value) in labels for labels in found])


def search_label(search, value):
    return f"{value:.{search.decimals}f}"


@pytest.mark.parametrize(
    ("column", "ends", "spikes"),
    some(
        [
            ("gains", (None, None), [0, 7298, 7688]),
            ("gains", (0.0, 99_999.0), [0, 7298, 7688]),
            ("hours", (None, None), [40]),
            ("hours", (0.0, 168.0), [40]),
            ("spending", (None, None), [0]),
            ("spending", (0.0, 1e6), [0]),
        ],
        1,
    ),
)
def test_spikes_are_bins_of_their_own(column, ends, spikes):
    for value in spikes:
        assert with_a_bin_of_its_own(value, column=column, ends=ends) >= 0.9


def test_spikes_are_found_through_laplace_noise_too():
    assert with_a_bin_of_its_own(40, column="hours", noise="laplace") >= 0.9


def test_a_tree_that_never_cuts_is_caught(monkeypatch):
    monkeypatch.setattr(bins, "SPLIT", 1e9)
    assert with_a_bin_of_its_own(7298, column="gains") == 0


def test_a_tree_that_merges_whatever_is_next_is_caught(monkeypatch):
    monkeypatch.setattr(bins, "THIN", 1e9)
    assert with_a_bin_of_its_own(40, column="hours") == 0


@pytest.mark.parametrize("name", some(["gains", "spending", "hours", "debts"], 2))
def test_a_tree_tells_a_column_about_as_well_as_bins_of_one_width_or_far_better(name):
    values = COLUMNS[name](np.random.default_rng(1))
    low, high = float(np.floor(values.min())), float(np.ceil(values.max()))
    search = number_search("tree", 32, decimals=DECIMALS.get(name, 0))
    unit = 10**search.decimals
    declared = distance(values, codec_of(search, equal_widths(int(low * unit), int(high * unit), 32)))
    for seed in range(5):
        here = distance(values, codec(values, search, seed))
        assert here < 0.05 and here < max(declared / 3, 0.03)


def test_a_gap_beside_a_spike_stays_empty():
    values = np.repeat([0.0, 1000.0], 10_000)
    for seed in range(10):
        bins = codec(values, number_search("tree", 8), seed)
        inside = np.array(bins.edges)[(np.array(bins.edges) > 0) & (np.array(bins.edges) < 1000)]
        drawn = np.asarray(bins.decode(bins.codes_of(values), np.random.default_rng(0)))
        assert inside.size and np.isin(drawn, [0, 1000]).mean() > 0.99


def test_one_value_a_bin_where_there_are_no_more_values_than_bins():
    values = np.random.default_rng(0).integers(1, 17, 20_000).astype(float)
    door = FakeDoor.of_column(values, np.random.default_rng(0))
    search = number_search("tree", 32, (1.0, 16.0))
    cuts = tree_cuts(door, sought(search), search, (1, 16), (), PRICE)
    assert set(np.diff(cuts).tolist()) == {1}
    assert len(door.asked) == 1 and door.spent == PRICE, "one question is enough, and has all of the price"


def test_no_more_bins_than_wanted():
    values = COLUMNS["debts"](np.random.default_rng(1))
    for most in (1, 2, 7):
        assert len(codec(values, number_search("tree", most), price=Fraction(1)).labels) <= most


def nested(seed, levels):
    """Answers on finer and finer random cuts of 24 steps."""
    rng = np.random.default_rng(seed)
    answers, cuts = [], np.array([0, 24])
    for _ in range(levels):
        cuts = np.union1d(cuts, rng.integers(0, 25, 5))
        n = cuts.size - 1
        answers.append(NoisyHistogram(cuts, rng.normal(50, 30, n), np.full(n, rng.uniform(0.1, 9))))
    return answers


@pytest.mark.parametrize("levels", [1, 2, 4])
@pytest.mark.parametrize("seed", range(10))
def test_answers_are_averaged_by_least_squares(seed, levels):
    answers = nested(seed, levels)
    last = answers[-1].cuts
    rows, told = [], []
    for a in answers:
        sums = (last[:-1] >= a.cuts[:-1, None]) & (last[:-1] < a.cuts[1:, None])
        rows.append(sums / np.sqrt(a.variances)[:, None])
        told.append(a.rows / np.sqrt(a.variances))
    matrix = np.concatenate(rows)
    best = np.linalg.lstsq(matrix, np.concatenate(told), rcond=None)[0]
    variances = np.diag(np.linalg.inv(matrix.T @ matrix))
    found = averaged(answers)
    assert np.allclose(found.rows, best) and np.allclose(found.variances, variances)
    unweighted = averaged([NoisyHistogram(a.cuts, a.rows, np.ones(a.rows.size)) for a in answers])
    assert levels == 1 or not np.allclose(unweighted.rows, best)
