"""Bins that grow: zero alone, then each as many times as wide as the one before."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.bins import growing_starts
from tests.examples import examples


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**15), st.integers(5, 200))
@examples(400)
def test_starts_rise_from_the_least_value_to_the_largest_and_are_no_more_than_asked_for(low, more, bins):
    starts = growing_starts(low, low + more, bins)
    assert starts[0] == low and starts[-1] == low + more
    assert all(a < b for a, b in pairwise(starts))
    assert len(starts) <= max(bins, 3)
    assert len(starts) >= min(bins, more + 1) - 3 or low < 0 < low + more


def test_each_bin_is_as_many_times_as_wide_as_the_one_before():
    starts = np.array(growing_starts(0, 10**7, 32)[2:], dtype=float)
    ratios = starts[1:] / starts[:-1]
    assert len(starts) == 30 and ratios.min() > 1.4 and ratios.max() < 1.55


@given(st.integers(1, 10**9), st.integers(5, 60))
@examples(100)
def test_bins_below_zero_mirror_those_above(high, bins):
    above, below = growing_starts(0, high, bins), growing_starts(-high, 0, bins)
    ends = [*(start - 1 for start in above[1:]), high]
    assert below == [-end for end in reversed(ends)]


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(5, 60))
@examples(100)
def test_zero_is_alone_between_ends_of_both_signs(below, above, bins):
    starts = growing_starts(-below, above, bins)
    assert {0, 1, -below, above} <= set(starts)


def test_zero_is_alone_and_so_are_the_smallest_whole_numbers(load_column):
    visits = load_column("{type: integer, min: 0, max: 1000, edges: log, bins: 12}")
    assert visits.codec.labels[:3] == ("0", "1", "2 to 3")
    pay = load_column("{type: number, min: 0, max: 100000, edges: log}")
    assert pay.codec.labels[:3] == ("0.00", "[0.01, 1)", "[1, 1.49)")
    assert pay.codec.labels[-1] == "100000.00" and len(pay.codec.labels) == 32
    assert pay.encode(pa.array(["0", "0.00", "0.01", "-5", "1e9"])).tolist() == [0, 0, 1, 0, 31]


@pytest.mark.parametrize(
    ("declared", "labels"),
    [
        ("integer, min: 0, max: 499", ("0", "1 to 19", "480 to 498", "499")),
        ("integer, min: 0, max: 500", ("0", "1", "419 to 499", "500")),
        ("integer, min: 1900, max: 2100", ("1900", "1901 to 1909", "2090 to 2099", "2100")),
        ("integer, min: -1000, max: 2000", ("-1000", "-999 to -620", "1220 to 1999", "2000")),
        ("number, min: 0, max: 1, decimals: 3", ("0.000", "[0.001, 0.05)", "[0.95, 1)", "1.000")),
        ("number, min: 0, max: 2500000", ("0", "[1, 25)", "[1680000, 2500000)", "2500000")),
    ],
)
def test_without_bins_the_ends_are_alone_and_wide_ranges_grow(load_column, declared, labels):
    column = load_column(f"{{type: {declared}}}")
    found = column.codec.labels
    assert (*found[:2], *found[-2:]) == labels and len(found) <= 32
    assert column.encode(pa.array(["-1e9", "1e9"])).tolist() == [0, len(found) - 1]


def test_a_lazy_declaration_of_incomes_keeps_the_median(load_column):
    chance = np.random.default_rng(1)
    incomes = np.round(np.exp(chance.normal(11.08, 0.55, 20_000)))
    codec = load_column("{type: number, min: 0, max: 2500000}").codec
    counts = np.bincount(codec.codes_of(incomes), minlength=len(codec.labels)).astype(float)
    drawn = np.asarray(codec.with_density(counts, 1.0).decode(codec.codes_of(incomes), chance))
    assert np.median(drawn) == pytest.approx(np.median(incomes), rel=0.03)


def test_a_last_edge_given_twice_makes_a_bin_of_the_largest_value(load_column):
    percent = load_column("{type: number, bins: [0, 50, 100, 100], decimals: 1}")
    assert percent.codec.labels == ("[0, 50)", "[50, 100)", "100.0")
    assert percent.encode(pa.array(["99.9", "100", "250"])).tolist() == [1, 2, 2]
    whole = load_column("{type: integer, bins: [0, 1, 9, 9]}")
    assert whole.codec.labels == ("0", "1 to 8", "9")


@pytest.mark.parametrize("declared", ["min: 5, max: 5", "min: 0, max: 1", "min: 0, max: 2", "min: 7, max: 9"])
def test_few_whole_numbers_have_a_bin_each(load_column, declared):
    column = load_column(f"{{type: integer, {declared}, edges: log}}")
    low, high = (int(part.split()[-1]) for part in declared.split(","))
    assert column.codec.labels == tuple(map(str, range(low, high + 1)))


def test_density_inside_a_bin_is_linear_unless_declared_uniform(load_column):
    assert not load_column("{type: number, min: 0, max: 90}").uniform
    assert load_column("{type: integer, min: 0, max: 900, within: uniform}").uniform
