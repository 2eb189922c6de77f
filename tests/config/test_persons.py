"""Keys of a person as the unit, and the plan of a release that finds how many rows of a person to use."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsynth.accounting.calibration import gaussian_within, laplace_within
from dpsynth.accounting.measures import PURE
from dpsynth.config import compiled
from dpsynth.errors import ConfigError
from dpsynth.pipeline.reservation import Occasion, reservation_of
from dpsynth.plan.plan import BOUND_SHARE, CUTOFF_SHARE, Found, make_plan
from dpsynth.strategy import strategy_of

EPSILON = "epsilon: 1.0"
AUTO = strategy_of("auto", ())
SPLIT = "split: {domain: 0.1, one_way: 0.2, structure: 0.2, marginals: 0.5}"


@pytest.fixture
def load_unit(load_with):
    """Load the small configuration with a unit, and more keys of privacy."""

    def loaded(unit, more="", added=""):
        return load_with(added, replace=(EPSILON, f"{EPSILON}, unit: {unit}{more}"))

    return loaded


def test_what_is_left_out_has_a_default(load_unit):
    given = load_unit("{column: id, max_rows: 4}").privacy
    assert (given.unit.bound, given.unit.missing, given.max_rows_private) == (4, "left_out", False)
    sought = load_unit("{column: id, max_rows: private}").privacy
    assert (sought.unit.bound, sought.unit.at_most, sought.max_rows_private) == (20, None, True)
    assert load_unit("{column: id, max_rows: private, at_most: 50}").privacy.unit.bound == 50


def test_a_split_has_a_share_for_it_where_it_is_sought_and_none_where_it_is_given(load_unit):
    assert load_unit("{column: id, max_rows: private}", f", {SPLIT}").privacy.split.domain
    with pytest.raises(ConfigError, match="domain must be 0"):
        load_unit("{column: id, max_rows: 3}", f", {SPLIT}")
    with pytest.raises(ConfigError, match="domain must be above 0"):
        load_unit("{column: id, max_rows: private}", f", {SPLIT.replace('0.1', '0.0')}")


@pytest.mark.parametrize("key", ["same_period", "earlier_periods"])
def test_answers_with_another_bound_are_not_used_again(load_unit, key):
    again = f"period: {{column: seen, every: month}}\nreuse: {{{key}: true}}\n"
    assert load_unit("{column: id, max_rows: 3}", added=again)
    with pytest.raises(ConfigError, match=f"reuse.{key} must be false with privacy.unit.max_rows: private"):
        load_unit("{column: id, max_rows: private}", added=again)


@pytest.mark.parametrize("delta", ["1.0e-9", None])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_question_costs_what_the_plan_says_and_the_rest_is_for_the_answers(load_with, delta, relation):
    unit = f"{EPSILON}, neighbours: {relation}, unit: {{column: id, max_rows: private, at_most: 9}}"
    text = f"privacy: {{{EPSILON}, delta: 1.0e-9}}"
    spec = load_with(replace=(text, f"privacy: {{{unit}{'' if delta is None else f', delta: {delta}'}}}"))
    plan = make_plan(compiled(spec), AUTO)
    first, *others = plan.steps
    assert plan.bound_price == plan.budget * BOUND_SHARE and not plan.searches
    assert (first.step, first.questions) == ("domain: max_rows", 1)
    moved = 2 if relation == "replace_one" else 1
    if delta is None:
        assert first.scale == laplace_within(plan.bound_price, PURE, moved).scale
    else:
        assert first.scale == gaussian_within(plan.bound_price, moved, plan.measure).sigma
    assert sum(step.share for step in plan.steps) == pytest.approx(1)
    assert plan.to_json()["contribution_bound_share"] == float(BOUND_SHARE)
    assert plan.neighbours.max_rows == 9 and len(others) >= 2


def test_the_plan_made_again_has_the_same_budget_and_the_noise_of_the_bound_that_was_found(load_unit):
    spec = load_unit("{column: id, max_rows: private, at_most: 10}")
    plan = make_plan(compiled(spec), AUTO)
    bounded = replace(plan, neighbours=replace(plan.neighbours, max_rows=2))
    again = make_plan(compiled(spec), AUTO, Found(bounded, compiled(spec).columns))
    assert (again.budget, again.measure, again.bound_price) == (plan.budget, plan.measure, plan.bound_price)
    assert again.neighbours.max_rows == 2
    for step in ("one_way", "marginals"):
        before, after = (next(s for s in p.steps if s.step == step) for p in (plan, again))
        assert before.scale == pytest.approx(5 * after.scale, rel=1e-3)


def test_beside_searches_of_columns_it_has_a_part_of_the_share(load_with):
    found = "  pay: {type: number, bounds: private, bins: 8, decimals: 0}\n"
    unit = (EPSILON, f"{EPSILON}, unit: {{column: id, max_rows: private}}")
    plan = make_plan(compiled(load_with(found, replace=unit)), AUTO)
    prices = [plan.bound_price, *(search.price for search in plan.searches)]
    assert sum(prices) == plan.budget * plan.shares.domain and min(prices) > 0
    assert plan.shares.domain > BOUND_SHARE


def test_the_ledger_is_told_of_the_most_rows_whatever_comes_out(load_unit):
    spec = load_unit("{column: id, max_rows: private, at_most: 10}")
    entry = reservation_of(compiled(spec), make_plan(compiled(spec), AUTO), Occasion(None, None), "r1")
    assert entry.unit == "one person: all rows with the same id, at most 10"


def test_a_release_that_is_resumed_keeps_to_its_rule_for_rows_without_an_id(load_unit):
    units = (
        "max_rows: 4",
        "max_rows: 4, missing: together",
        "max_rows: private",
        "max_rows: private, at_most: 9",
    )
    assert len({compiled(load_unit(f"{{column: id, {unit}}}")).fingerprint for unit in units}) == len(units)


# The share of the budget for what a bound cuts off.


@pytest.mark.parametrize(
    ("unit", "split", "share"),
    [
        ("{column: id, max_rows: 3}", "", CUTOFF_SHARE),
        ("{column: id, max_rows: 3}", ", split: {exam: 0.05}", CUTOFF_SHARE),
        ("{column: id, max_rows: 3}", ", split: {cutoff: 0.05}", Fraction(1, 20)),
        ("{column: id, max_rows: 3}", ", split: {exam: 0, cutoff: 0.05}", Fraction(1, 20)),
        ("{column: id, max_rows: 3}", ", split: {cutoff: 0}", 0),
        ("{column: id, max_rows: 3}", f", {SPLIT.replace('domain: 0.1', 'cutoff: 0.02')}", Fraction(1, 50)),
        ("{column: id, max_rows: 3}", f", {SPLIT.replace('domain: 0.1, ', '')}", 0),
        ("{column: id, max_rows: private}", "", 0),
        ("row", "", 0),
    ],
)
def test_what_a_given_bound_cuts_off_has_the_share_that_is_said_and_comes_first(
    load_unit, unit, split, share
):
    spec = load_unit(unit, split)
    plan = make_plan(compiled(spec), AUTO)
    assert plan.shares.cutoff == share and plan.cutoff_price == plan.budget * share
    assert [step.step for step in plan.steps].count("cutoff") == bool(share)
    assert bool(compiled(spec).ranges_of_rows) == (bool(share) or "private" in unit)
    if share:
        first = plan.steps[0]
        assert (first.step, first.questions) == ("cutoff", 1)
        assert first.scale == gaussian_within(plan.cutoff_price, 1, plan.measure).sigma
        assert first.share == pytest.approx(float(share))
    assert sum(step.share for step in plan.steps) == pytest.approx(1)
    exam = (
        0.05
        if "exam: 0.05" in split
        else 0
        if (split and "one_way" in split) or "exam: 0," in split
        else 0.03
    )
    assert float(plan.shares.exam) == exam


def test_a_release_that_asks_other_ranges_is_not_resumed_as_the_same(load_unit):
    asked, not_asked = (
        compiled(load_unit("{column: id, max_rows: 3}", more)) for more in ("", ", split: {cutoff: 0}")
    )
    assert asked.fingerprint != not_asked.fingerprint
    other = compiled(load_unit("{column: id, max_rows: 4}"))
    assert other.ranges_of_rows != asked.ranges_of_rows and other.fingerprint != asked.fingerprint
