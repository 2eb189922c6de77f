"""The model counts numbers in cells of its own, whatever number of bins is declared; listed edges bind."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.bins import round_starts
from dpsynth.config import compiled
from tests.examples import examples
from tests.specs import spec_of

PRIVACY = {"epsilon": 1, "delta": 1e-6}
Y = {"type": "category", "values": ["a", "b"]}


def worked_out(x, **more):
    return compiled(spec_of({"x": x, "y": Y}, privacy=PRIVACY, **more))


def labels(x, **more):
    return worked_out(x, **more).columns[0].codec.labels


HOURS = {"type": "integer", "min": 0, "max": 99}
PAY = {"type": "number", "min": 0, "max": 40_000, "decimals": 2}
SCORE = {"type": "number", "min": 0, "max": 100, "decimals": 2}
YEARS = {"type": "number", "min": 17, "max": 90, "decimals": 0}


@pytest.mark.parametrize("declared", [HOURS, PAY, SCORE, YEARS])
def test_no_question_depends_on_a_number_of_bins(declared):
    plain = worked_out(declared).fingerprint
    for bins in (5, 8, 32, 64):
        assert worked_out({**declared, "bins": bins}).fingerprint == plain


@pytest.mark.parametrize(
    ("declared", "first", "last", "number"),
    [
        (HOURS, ("0", "1"), "99", 100),
        (YEARS, ("17", "18"), "90", 74),
        (SCORE, ("0.00", "[0.01, 1)", "[1, 2)"), "100.00", 102),
        (PAY, ("0.00", "[0.01, 0.4)", "[0.4, 0.44)"), "40000.00", 128),
        ({"type": "integer", "min": 1900, "max": 2100}, ("1900", "1901", "1902 to 1903"), "2100", 102),
    ],
)
def test_cells_are_values_where_these_are_few_and_begin_at_round_numbers_elsewhere(
    declared, first, last, number
):
    found = labels(declared)
    assert found[: len(first)] == first and found[-1] == last and len(found) == number


@pytest.mark.parametrize(
    ("declared", "number"),
    [
        ({"type": "integer", "bins": [0, 10, 20, 99]}, 3),
        ({**PAY, "bins": 200}, 200),
        ({**PAY, "edges": "tree", "bins": 8}, 8),
    ],
)
def test_listed_edges_many_bins_and_edges_to_be_found_bind(declared, number):
    assert len(labels(declared)) == number


@pytest.mark.parametrize(
    "more",
    [
        {"publish": {"statistics": [{"count": "rows", "by": "x"}]}},
        {"publish": {"statistics": [{"correlation": ["x", "y2"]}]}},
        {"publish": {"statistics": [{"mean": "y2", "by": "x"}]}},
        {"constraints": ["x == y2 + 1"]},
        {"public_marginals": [{"columns": ["x"], "shares": {"0 to 49": 1, "50 to 99": 2}}]},
        {"structure": {"merge_rare": 0}},
    ],
)
def test_bins_bind_where_something_is_asked_or_known_about_them(more):
    spec = spec_of({"x": {**HOURS, "bins": 2}, "y": Y, "y2": HOURS}, privacy=PRIVACY, **more)
    assert compiled(spec).columns[0].codec.labels == ("0 to 49", "50 to 99")


def test_a_mean_or_quantile_of_a_column_needs_no_bins():
    """By groups it rests on counts of the bins and groups together."""
    asked = [{"mean": "x"}, {"quantiles": "x"}, {"mean": "x", "by": "y"}]
    assert len(labels({**HOURS, "bins": 2}, publish={"statistics": asked[:2]})) == 100
    assert len(labels({**HOURS, "bins": 2}, publish={"statistics": asked})) == 2


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**10), st.integers(12, 200))
@examples(200)
def test_round_starts_rise_from_end_to_end_and_are_no_more_than_asked_for(low, width, bins):
    found = round_starts(low, low + width, bins)
    assert len(found) <= bins and found[0] == low and found[-1] == low + width
    assert all(a < b for a, b in pairwise(found))
    if width >= bins:
        assert len(found) > bins // 3
        steps = {b - a for a, b in pairwise(found[2:-1])}
        assert len(steps) <= 1
