"""Groups are numbered without gaps, fit their domain, and have a digest of their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.rules.grids import DEPENDS, OBEYED, VIOLATED, Grid, told_apart

DOMAIN = Domain({"city": 4, "sex": 2, "age": 3})


def compression(**groups):
    return Compression({column: np.array(g) for column, g in groups.items()})


def test_the_coarse_domain_has_the_same_columns_in_the_same_order_and_fewer_places():
    coarse = compression(age=[0, 1, 1], city=[1, 0, 1, 1]).coarse(DOMAIN)
    assert list(coarse.sizes.items()) == [("city", 2), ("sex", 2), ("age", 2)]
    assert compression().coarse(DOMAIN).sizes == DOMAIN.sizes


@pytest.mark.parametrize("groups", [[0, 2, 2], [1, 1, 2], [-1, 0, 1], [], [[0, 1]], [0.0, 1.0]])
def test_groups_that_leave_a_number_out_are_refused(groups):
    with pytest.raises(ValueError, match="column age"):
        compression(age=groups)


@pytest.mark.parametrize("groups", [{"age": [0, 1]}, {"age": [0, 0, 0, 1]}, {"town": [0, 0]}])
def test_a_grouping_of_another_domain_is_refused(groups):
    with pytest.raises(ValueError, match="other cells"):
        compression(**groups).coarse(DOMAIN)


GROUPS = st.lists(st.integers(0, 2), min_size=1, max_size=4).map(
    lambda g: np.unique(g, return_inverse=True)[1].tolist()
)
GROUPINGS = st.dictionaries(st.sampled_from(["age", "city", 'a", "b']), GROUPS)


@given(GROUPINGS, GROUPINGS)
def test_two_groupings_share_a_digest_only_if_they_are_the_same(one, two):
    assert (compression(**one).digest == compression(**two).digest) == (one == two)


def test_the_digest_knows_no_order_of_columns_and_no_integer_type():
    small = Compression({"b": np.array([0, 0], np.uint8), "a": np.array([0, 1, 0], np.int32)})
    assert small.digest == compression(a=[0, 1, 0], b=[0, 0]).digest


def test_groups_end_where_a_rule_tells_two_kinds_of_values():
    number, age = np.arange(5)[:, None], np.arange(3)
    states = {
        "third": np.where((number >= 3) == (age < 2), OBEYED, VIOLATED),
        "order": np.where(number <= age, OBEYED, DEPENDS),
    }
    grids = {name: Grid(0, ("number", name), state.astype(np.int8)) for name, state in states.items()}
    groups = compression(number=[0, 1, 1, 1, 1], third=[0, 1, 0], order=[0, 0, 1])
    found = told_apart(groups, grids.values()).groups
    assert {c: g.tolist() for c, g in found.items()} == {"number": [0, 1, 1, 2, 2], "order": [0, 0, 1]}
