"""What is to be found of columns: which keys say so, what it costs, and what contradicts it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsynth.accounting.measures import PURE
from dpsynth.accounting.scales import selection_within, threshold_within
from dpsynth.columns.column import Column
from dpsynth.columns.numeric_codec import NumericCodec
from dpsynth.columns.search import NumberSearch, PrefixSearch, ValueSearch
from dpsynth.config import Spec, compiled
from dpsynth.errors import ConfigError
from dpsynth.plan.plan import DOMAIN_SHARE, LEAST_DOMAIN_SHARE, Found, make_plan
from dpsynth.plan.steps import PlannedSearch, planned_searches
from dpsynth.strategy import strategy_of

OPEN = """\
source: {path: table.csv}
privacy: {epsilon: 1, delta: 1.0e-9}
columns:
  city: {type: category, open: true, values: [Oslo]}
  job: {type: category, open: true}
  cost: {type: number, bounds: private, edges: tree}
  age: {type: integer, min: 0, max: 110, edges: quantiles, bins: 20}
  post: {type: text, pattern: '[0-9]{5}', levels: [1, 3, 5]}
  sex: {type: category, values: [F, M]}
"""
AUTO = strategy_of("auto", ())


@pytest.fixture
def spec(load_text) -> Spec:
    return load_text(OPEN)


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
    assert plan.delta is not None
    assert sum(s.delta for s in plan.searches) == plan.delta / 2
    assert {s.delta > 0 for s in plan.searches if s.find == "values"} == {True}
    assert sum(step.share for step in plan.steps) == pytest.approx(1)
    for search in plan.searches[:2]:
        event = threshold_within(search.price, search.delta, plan.measure, 1)
        assert plan.measure.cost(event) <= search.price and event.delta <= search.delta


def test_few_searches_get_the_least_share(load_text) -> None:
    columns = "\n".join(f"  c{i}: {{type: boolean}}" for i in range(30))
    text = OPEN[: OPEN.index("columns:")] + f"columns:\n  city: {{type: category, open: true}}\n{columns}\n"
    assert make_plan(compiled(load_text(text)), AUTO).shares.domain == LEAST_DOMAIN_SHARE


def test_naming_values_takes_all_of_delta_where_nothing_else_needs_it(load_text) -> None:
    pure = OPEN.replace("delta: 1.0e-9", "delta: 1.0e-9, noise: laplace, accountant: sequential")
    plan = make_plan(compiled(load_text(pure)), AUTO)
    assert plan.measure == PURE and plan.spent_delta == plan.delta == Fraction(1, 10**9)
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


REFUSED = [
    (
        "city: {type: category, open: true, values: [Oslo]}",
        "city: {type: category, most: 5, values: [a, b]}",
        "most has no use without open: true",
    ),
    (
        "open: true, values: [Oslo]",
        "open: true, values: [a, b], most: 2",
        "most must be above 2, the number of values listed",
    ),
    ("open: true, values: [Oslo]", "open: true, missing: false", "missing must not be false with open: true"),
    (
        "open: true, values: [Oslo]",
        "open: true, missing: other",
        "other must differ from what means missing; it is other",
    ),
    ("bounds: private", "bounds: private, min: 0", "min has no use with bounds: private"),
    ("bounds: private", "bounds: private, bins: [0, 1]", "bins must be a number with bounds: private"),
    ("bounds: private", "bounds: private, bins: 1", "bins must be at least 2 with bounds: private"),
    (
        "bounds: private",
        "bounds: private, missing: false, default: 3",
        "default has no use with bounds: private",
    ),
    ("bounds: private", "bounds: public", "bounds must be private"),
    ("edges: quantiles", "edges: octiles", "edges must be equal, log, quantiles or tree (did you mean"),
    (
        "edges: quantiles, bins: 20",
        "edges: quantiles, bins: [0, 9]",
        "bins must be a number with edges: quantiles",
    ),
    ("levels: [1, 3, 5]", "levels: [3, 1]", "levels[1] must be above the number before it"),
    ("levels: [1, 3, 5]", "levels: [1, 6]", "levels[1] must be at most 5"),
    ("levels: [1, 3, 5]", "levels: [3]", "levels must list at least two numbers; for one, use keep"),
    ("levels: [1, 3, 5]", "levels: []", "levels must be a list of rising numbers"),
    ("levels: [1, 3, 5]", "levels: [0]", "levels[0] must be a whole number of at least 1"),
    (
        "levels: [1, 3, 5]",
        "levels: [1, 2], keep: 2",
        "keep is needed, or prefixes, or levels; give one of them",
    ),
    ("levels: [1, 3, 5]", "levels: [1, 2], most: 5", "levels[0] allows 10 beginnings"),
    ("levels: [1, 3, 5]", "keep: 1, most: 5", "most has no use without levels"),
    ("levels: [1, 3, 5]", "levels: [1, 2], missing: false", "missing must not be false with levels"),
    ("delta: 1.0e-9", "noise: laplace", "privacy.delta is missing: columns.city.open: true needs it"),
    (
        "delta: 1.0e-9",
        "delta: 1.0e-9, split: {one_way: 0.2, structure: 0.2, marginals: 0.5}",
        "privacy.split.domain must be above 0",
    ),
    ("sex", "reuse", "reuse.earlier_periods must be false while something is to be found"),
]


@pytest.mark.parametrize(("old", "new", "words"), REFUSED)
def test_what_contradicts_a_search_is_refused(load_text, old: str, new: str, words: str) -> None:
    assert old in OPEN
    text = OPEN.replace(old, new)
    if "reuse" in new:
        text = OPEN + "reuse: {earlier_periods: true}\n"
    with pytest.raises(ConfigError) as caught:
        load_text(text)
    assert words in str(caught.value)


def test_a_share_for_finding_nothing_is_refused(load_with) -> None:
    split = "epsilon: 1.0, split: {domain: 0.1, one_way: 0.2, structure: 0.2, marginals: 0.5}"
    with pytest.raises(ConfigError, match="domain must be 0, as nothing is to be found of any column"):
        load_with(replace=("epsilon: 1.0", split))
