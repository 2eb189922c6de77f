"""Candidates: what may be chosen from, by enumeration of the workload and of small trees."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.domain import Domain
from dpsynth.model import Triangulation
from dpsynth.strategy.allocation import penalty, whole_weights
from dpsynth.strategy.candidates import most_cells
from tests.examples import examples


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 1e9)), min_size=1, max_size=20))
def test_whole_weights_keep_proportions_to_a_thousandth_of_the_largest(weights):
    found = whole_weights(weights)
    most = max(weights)
    if most in (0.0, min(weights)):
        assert found == [1] * len(weights)
        return
    assert max(found) == 1000
    for whole, given_weight in zip(found, weights, strict=True):
        assert isinstance(whole, int) and (whole == 0) == (given_weight == 0)
        assert abs(whole - 1000 * given_weight / most) <= 0.5 or whole == 1


def test_a_penalty_is_the_error_of_all_cells_and_no_larger_than_a_door_takes():
    assert penalty(2.5, 11) == round(27.5) and penalty(1e9, 10**9) == 1 << 40


@given(st.lists(st.integers(2, 4), min_size=1, max_size=6), st.data())
@examples(200)
def test_no_tree_has_more_cells_than_said(sizes, data):
    domain = Domain({f"c{i}": n for i, n in enumerate(sizes)})
    pairs = list(combinations(domain.columns, 2))
    chosen = data.draw(st.lists(st.sampled_from(pairs))) if pairs else []
    assert Triangulation.of(domain, chosen).cells <= most_cells(sizes)
