"""Missing cells that a rule allows, and no noisy count tells of, are closed; all others stay open."""

import numpy as np
import pytest

from dpsynth.columns.kinds import layout_of
from dpsynth.columns.rules import grids_of, rules_of, told_only
from tests.specs import spec_of

COLUMNS = {
    "members": {"type": "integer", "min": 1, "max": 3, "missing": False},
    "partner": {"type": "category", "values": ["F", "M"]},
    "sex": {"type": "category", "values": ["F", "M"], "missing": False},
}
ONE_WAY, BOTH_WAYS, THREE = (
    "members < 2 implies partner is missing",
    "(members < 2) == (partner is missing)",
    "members < 2 and sex == 'F' implies partner is missing",
)
MEMBERS = np.array([400.0, 300.0, 200.0])


def grid_of(rule, missing, variance=9.0):
    """The grid of a rule before and after, with so many missing cells of ``partner`` by noisy counts."""
    layout = layout_of(spec_of(COLUMNS, [rule]).columns)
    (before,) = grids_of(rules_of([rule], layout), layout)
    known = {("members",): (MEMBERS, 9.0), ("partner",): (np.array([300.0, 200.0, missing]), variance)}
    (after,) = told_only([before], known, {"partner": 2})
    return before.zeros, after.zeros


@pytest.mark.parametrize("missing", [300.0, 400.0, 407.0])
def test_no_other_row_has_a_missing_cell_where_counts_tell_of_none(missing):
    before, after = grid_of(ONE_WAY, missing)
    assert not before[1:, 2].any()
    assert after[1:, 2].all()
    np.testing.assert_array_equal(before[:, :2], after[:, :2])
    # A row of which the rule asks for one can always have it.
    assert not after[0, 2]


def test_missing_cells_that_counts_tell_of_stay_possible():
    # Two standard deviations of a difference between counts of variance 9 are 8.5.
    for missing, variance in ((410.0, 9.0), (500.0, 2000.0)):
        before, after = grid_of(ONE_WAY, missing, variance)
        np.testing.assert_array_equal(before, after)
    assert grid_of(ONE_WAY, 410.0, 100.0)[1][1:, 2].all()


def test_a_rule_that_leaves_no_choice_closes_what_it_did():
    for rule in (BOTH_WAYS, THREE):
        before, after = grid_of(rule, 300.0)
        np.testing.assert_array_equal(before, after)


def test_a_column_without_counts_stays_as_it_is():
    layout = layout_of(spec_of(COLUMNS, [ONE_WAY]).columns)
    (before,) = grids_of(rules_of([ONE_WAY], layout), layout)
    (after,) = told_only([before], {("members",): (MEMBERS, 9.0)}, {"partner": 2})
    np.testing.assert_array_equal(before.state, after.state)


def test_a_column_that_two_rules_ask_missing_cells_of_stays_as_it_is():
    """Each by itself would close what the other one asks for, and then no row might be left."""
    for other in ("sex == 'F' implies partner is missing", "members >= 2 implies partner is missing"):
        rules = [ONE_WAY, other]
        layout = layout_of(spec_of(COLUMNS, rules).columns)
        before = grids_of(rules_of(rules, layout), layout)
        counts = {(c,): (np.ones(layout.named[c].size), 1e6) for c in COLUMNS}
        after = told_only(before, counts, {"partner": 2})
        for one, two in zip(before, after, strict=True):
            np.testing.assert_array_equal(one.state, two.state)
