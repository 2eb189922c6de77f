"""Bins that grow: zero alone, then each as many times as wide as the one before."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.config.growing_bins import growing_edges
from dpsynth.errors import ConfigError
from tests.examples import examples


@given(st.integers(0, 10**6), st.integers(1, 10**15), st.integers(3, 200), st.sampled_from([1, 100, 10**6]))
@examples(400)
def test_edges_rise_from_the_least_value_to_the_largest_and_are_no_more_than_asked_for(low, more, bins, one):
    edges = growing_edges(low, low + more, bins, one)
    assert edges[0] == low and edges[-1] == low + more
    assert all(a < b for a, b in pairwise(edges))
    assert len(edges) - 1 <= bins
    assert len(edges) - 1 >= min(bins, more) - 2


def test_each_bin_is_as_many_times_as_wide_as_the_one_before():
    edges = np.array(growing_edges(0, 10**7, 32, one=100)[2:], dtype=float)
    ratios = edges[1:] / edges[:-1]
    assert len(edges) == 31 and ratios.min() > 1.4 and ratios.max() < 1.55


def test_zero_is_alone_and_so_are_the_smallest_whole_numbers(load_column):
    visits = load_column("{type: integer, min: 0, max: 1000, edges: log, bins: 12}")
    assert visits.codec.labels[:3] == ("0", "1", "2 to 3")
    pay = load_column("{type: number, min: 0, max: 100000, edges: log}")
    assert pay.codec.labels[:3] == ("0.00", "[0.01, 1)", "[1, 1.47)")
    assert pay.codec.labels[-1].endswith("100000]") and len(pay.codec.labels) == 32
    assert pay.encode(pa.array(["0", "0.00", "0.01", "-5", "1e9"])).tolist() == [0, 0, 1, 0, 31]


def test_small_numbers_grow_from_a_thousandth_of_the_largest(load_column):
    share = load_column("{type: number, min: 0, max: 1, decimals: 4, edges: log, bins: 8}")
    assert share.codec.edges[:3] == (0.0, 0.0001, 0.001)


@pytest.mark.parametrize("declared", ["min: 5, max: 5", "min: 0, max: 1", "min: 0, max: 2", "min: 7, max: 9"])
def test_few_whole_numbers_have_a_bin_each(load_column, declared):
    column = load_column(f"{{type: integer, {declared}, edges: log}}")
    low, high = (int(part.split()[-1]) for part in declared.split(","))
    assert column.codec.labels == tuple(map(str, range(low, high + 1)))


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("type: number, min: -1, max: 5, edges: log", "x.min must be at least 0 with edges: log"),
        ("type: integer, min: -1, max: 5, edges: log", "x.min must be at least 0 with edges: log"),
        ("type: number, bounds: private, edges: log", "x.edges must not be log with bounds: private"),
        ("type: number, bins: [0, 1, 9], edges: log", "x.bins must be a number with edges: log"),
        ("type: number, min: 0, max: 90, bins: 2, edges: log", "x.bins must be at least 3 with edges: log"),
        ("type: number, max: 90, edges: log", "x.min is missing"),
        ("type: number, min: 0, max: 90, within: middle", "x.within must be linear or uniform"),
        (
            "type: number, min: 0, max: 90, within: sloped",
            "'sloped' now: write linear",
        ),
        (
            "type: integer, min: 0, max: 9, within: even",
            "'even' now: write uniform",
        ),
    ],
)
def test_what_contradicts_bins_that_grow_is_refused(load_column, declared, words):
    with pytest.raises(ConfigError, match=words):
        load_column(f"{{{declared}}}")


def test_density_inside_a_bin_is_linear_unless_declared_uniform(load_column):
    assert not load_column("{type: number, min: 0, max: 90}").uniform
    assert load_column("{type: integer, min: 0, max: 900, within: uniform}").uniform
