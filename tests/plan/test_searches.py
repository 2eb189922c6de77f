"""What is to be found of columns: which keys say so, what it costs, and what contradicts it."""

from fractions import Fraction

import pytest

from dpsynth.accounting.calibration import selection_within, threshold_within
from dpsynth.accounting.measures import PURE
from dpsynth.columns.column import Column, NumberSearch, PrefixSearch, ValueSearch
from dpsynth.columns.numeric import NumericCodec
from dpsynth.config import Spec, compiled
from dpsynth.errors import ConfigError
from dpsynth.plan.plan import DOMAIN_SHARE, LEAST_DOMAIN_SHARE, Found, make_plan
from dpsynth.plan.spending import PlannedSearch, planned_searches
from dpsynth.strategy import strategy_of
from tests.config.conftest import FOUND

AUTO = strategy_of("auto", ())


@pytest.fixture
def spec(load_text) -> Spec:
    return load_text(FOUND)


def test_a_column_knows_what_is_sought_of_it(spec: Spec) -> None:
    searches = {c.name: c.search for c in compiled(spec).columns}
    assert searches == {
        "city": ValueSearch(("Oslo",), 100, "other"),
        "job": ValueSearch((), 100, "other"),
        "cost": NumberSearch(None, None, "tree", 32, 2, integer=False),
        "age": NumberSearch(0.0, 110.0, "quantiles", 20, 0, integer=True),
        "post": PrefixSearch("[0-9]{5}", (1, 3, 5), 1000),
        "sex": None,
    }


def test_what_stands_in_for_places_is_as_many_as_there_may_be_and_codes_nothing(spec: Spec) -> None:
    sizes = {c.name: len(c.codec.labels) for c in compiled(spec).columns}
    assert sizes == {"city": 101, "job": 101, "cost": 32, "age": 20, "post": 1000, "sex": 2}
    with pytest.raises(ValueError, match="still to be found"):
        compiled(spec).columns[0].encode([])  # type: ignore[arg-type]


def test_searches_cost_their_share_and_what_names_values_half_of_delta(spec: Spec) -> None:
    plan = make_plan(compiled(spec), AUTO)
    # Something is sought of five columns of six.
    share = DOMAIN_SHARE * 5 / 6
    assert plan.shares.domain == share
    assert [(s.column, s.find) for s in plan.searches] == [
        ("city", "values"),
        ("job", "values"),
        ("cost", "bounds"),
        ("cost", "tree"),
        ("age", "quantiles"),
        ("post", "prefixes"),
    ]
    assert sum(s.price for s in plan.searches) == plan.budget * share
    assert plan.tier.delta is not None
    assert sum(s.delta for s in plan.searches) == plan.tier.delta / 2
    assert {s.delta > 0 for s in plan.searches if s.find == "values"} == {True}
    assert sum(step.share for step in plan.steps) == pytest.approx(1)
    for search in plan.searches[:2]:
        event = threshold_within(search.price, search.delta, plan.measure, 1)
        assert plan.measure.cost(event) <= search.price and event.delta <= search.delta


def test_few_searches_get_the_least_share(load_text) -> None:
    columns = "\n".join(f"  c{i}: {{type: boolean}}" for i in range(30))
    text = FOUND[: FOUND.index("columns:")] + f"columns:\n  city: {{type: category, open: true}}\n{columns}\n"
    assert make_plan(compiled(load_text(text)), AUTO).shares.domain == LEAST_DOMAIN_SHARE


def test_naming_values_takes_all_of_delta_where_nothing_else_needs_it(load_text) -> None:
    pure = FOUND.replace("delta: 1.0e-9", "delta: 1.0e-9, noise: laplace, accountant: sequential")
    plan = make_plan(compiled(load_text(pure)), AUTO)
    assert plan.measure == PURE and plan.tier.spent_delta == plan.tier.delta == Fraction(1, 10**9)
    event = selection_within(plan.searches[0].price, plan.searches[0].delta, PURE, 1)
    assert event.epsilon <= plan.searches[0].price


def test_the_plan_made_again_keeps_measure_budget_and_searches(spec: Spec) -> None:
    plan = make_plan(compiled(spec), AUTO)
    codec = NumericCodec((0.0, 1.0, 9.5), 0, integer=True)
    found = [Column(c.name, codec) for c in compiled(spec).columns]
    again = make_plan(compiled(spec), AUTO, Found(plan, found))
    assert (again.measure, again.budget, again.searches) == (plan.measure, plan.budget, plan.searches)
    assert again.model_cells < plan.model_cells
    assert again.steps[: len(plan.searches) - 2] == plan.steps[: len(plan.searches) - 2]


def test_prices_add_up_exactly_whatever_is_sought() -> None:
    codec = NumericCodec((0.0, 1.0, 9.5), 0, integer=True)
    one = Column("a", codec, search=NumberSearch(None, None, "quantiles", 8, 0, integer=True))
    other = Column("b", codec, search=ValueSearch((), 5, "other"))
    found = planned_searches([one, other], Fraction(1, 7), Fraction(1, 3))
    assert sum(s.price for s in found) == Fraction(1, 7) and sum(s.delta for s in found) == Fraction(1, 3)
    assert planned_searches([Column("c", codec)], Fraction(1), Fraction(0)) == ()
    assert found[0] == PlannedSearch("a", "bounds", found[0].price)


def test_a_share_for_finding_nothing_is_refused(load_with) -> None:
    split = "epsilon: 1.0, split: {domain: 0.1, one_way: 0.2, structure: 0.2, marginals: 0.5}"
    with pytest.raises(ConfigError, match="domain must be 0, as nothing is to be found of any column"):
        load_with(replace=("epsilon: 1.0", split))
