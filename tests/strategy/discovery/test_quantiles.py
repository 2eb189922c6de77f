"""Quantiles: bins of about as many rows each, whatever the column looks like."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.strategy import discovery as bins
from dpsynth.strategy.discovery import codec_of, quantile_cuts
from dpsynth.testing import FakeDoor
from tests.strategy.discovery.real_columns import COLUMNS
from tests.strategy.discovery.searched import number_search, sought

PRICE = Fraction(1, 2000)


def found(values, ends, bins=16, decimals=0, **more):
    search = number_search("quantiles", bins, decimals=decimals)
    door = FakeDoor.of_column(values, np.random.default_rng(more.pop("seed", 0)), **more)
    cuts = quantile_cuts(door, sought(search), search, ends, more.pop("price", PRICE))
    return codec_of(search, cuts), door


def heaviest(values, codec):
    return np.bincount(codec.codes_of(values), minlength=len(codec.labels)).max() / len(values)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("tail", [1.0, 2.0])
def test_bins_have_about_as_many_rows_each(exact, tail):
    values = np.random.default_rng(0).lognormal(5, tail, 40_000)
    for seed in range(5):
        codec, _ = found(values, (0, 10**8), decimals=2, exact=exact, seed=seed)
        assert len(codec.labels) == 16 and heaviest(values, codec) < (0.08 if exact else 0.12)


def test_candidates_of_one_distance_alone_are_caught(monkeypatch):
    monkeypatch.setattr(bins, "magnitudes", lambda: np.array([-1, 0, 1]))
    values = np.random.default_rng(0).lognormal(3, 1, 40_000)
    codec, _ = found(values, (0, 10**12), decimals=2, exact=True)
    assert heaviest(values, codec) > 0.9


def test_rows_beyond_the_ends_count_in_the_first_and_last_bin():
    values = np.concatenate((np.full(10_000, -5.0), np.arange(10_000) / 100, np.full(10_000, 1e9)))
    codec, _ = found(values, (0, 100), bins=2, exact=True)
    assert 40 <= codec.edges[1] <= 60


def test_a_value_that_most_rows_have_is_cut_off_and_no_edge_is_twice():
    values = COLUMNS["hours"](np.random.default_rng(1))
    codec, door = found(values, (1, 99), bins=64, exact=True)
    assert "40" in codec.labels and len(codec.labels) < 64
    assert len(door.asked) <= 6 and door.spent <= PRICE


@pytest.mark.parametrize("bins", [1, 2, 3, 16, 100])
def test_each_level_is_one_question_for_the_same_part_of_the_price(bins):
    values = np.random.default_rng(0).normal(500, 100, 10_000)
    codec, door = found(values, (0, 1000), bins=bins)
    levels = bins.bit_length() - 1
    assert [price for _, _, price in door.asked] == [PRICE / levels for _ in range(levels)]
    assert len(codec.labels) == 2**levels
