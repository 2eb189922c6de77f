"""A plan is made of the config alone, never promises more than the budget, and agrees with its events."""

import json
from fractions import Fraction
from itertools import product

import pytest

from dpsynth.accounting.calibration import exponential_within, gaussian_within, laplace_within
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import GDP, MEASURES, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.column import domain_of
from dpsynth.columns.domain import Domain
from dpsynth.config import compiled, from_mapping
from dpsynth.errors import ConfigError
from dpsynth.plan.plan import CUTOFF_SHARE, EXAM_SHARE, Found, make_plan, wanted_pairs
from dpsynth.plan.resources import LEAST_CELLS, cells_within, forecast_of
from dpsynth.plan.spending import Shares, Spending, StrategyOutline, one_way_weights
from dpsynth.strategy import strategy_of
from tests.plan.outlines import Alone, Outline
from tests.thinned import thinned
from tests.wings.tables.linked import two

EPSILON = "epsilon: 1.0, delta: 1.0e-9"
PRIVACIES = [
    "epsilon: 1.0",
    "epsilon: 0.1, delta: 1.0e-9",
    "epsilon: 1, delta: 1.0e-9, accountant: zcdp",
    "epsilon: 3, delta: 1.0e-6, noise: laplace",
    "epsilon: 1, delta: 1.0e-6, noise: laplace, accountant: sequential",
]
UNITS = [
    "",
    ", neighbours: replace_one",
    ", unit: {column: id, max_rows: 3}",
    ", neighbours: replace_one, unit: {column: id, max_rows: 3}",
]
MANNERS = ["choices", "distances", "both", "none", "independent", "SPLIT"]
SPLIT = ", split: {one_way: 0.3, structure: 0.1, marginals: 0.4}"
STATISTICS = (
    "publish: {statistics: [{crosstab: [sex, age]}, {mean: income, by: member}, {mean: age, by: sex}]}\n"
)


@pytest.fixture
def plan_of(load_with):
    """The plan and spec of the small configuration with its privacy section and more replaced."""

    def made(privacy=EPSILON, added="", outline=None):
        spec = load_with(added, replace=(EPSILON, privacy))
        return make_plan(compiled(spec), outline or Outline()), spec

    return made


PLANS = [pytest.param(case.values, marks=case.marks) for case in thinned(PRIVACIES, UNITS, MANNERS)]


@pytest.fixture(params=PLANS, ids=" ".join)
def any_plan(request, plan_of):
    """Plans under every kind of privacy, unit and strategy."""
    privacy, unit, manner = request.param
    if manner == "SPLIT":
        return plan_of(privacy + unit + SPLIT)
    if manner == "independent":
        return plan_of(privacy + unit, "structure: independent\n", Alone())
    return plan_of(privacy + unit, outline=Outline(manner=manner))


def crosstabs(*pairs):
    requests = ", ".join(f"{{crosstab: [{pair}]}}" for pair in pairs)
    return f"publish: {{statistics: [{requests}]}}\n"


def event_of(plan, step, scale):
    """One answer of a step; all distances of the exam are one answer."""
    near, many = plan.neighbours, step.questions if step.step == "exam" else 1
    near = near.counted_once if step.step == "cutoff" else near
    squared = many * near.l1**2 if step.step in {"structure", "exam"} else near.l2_squared
    return {
        "discrete Gaussian": lambda: GaussianEvent(scale, squared),
        "discrete Laplace": lambda: LaplaceEvent(scale, many * near.l1),
        "exponential mechanism": lambda: ExponentialEvent(scale, near.l1),
    }[step.mechanism]()


def one_way_of(plan):
    (step,) = (step for step in plan.steps if step.step == "one_way")
    return step


def costs(plan, step):
    """What the answers of a step cost at the scales that the plan states."""
    if step.step == "exam":
        return [plan.measure.cost(event_of(plan, step, step.scale))]
    scales = list(step.scale_of.values()) or [step.scale] * step.questions
    assert len(scales) == step.questions
    return [plan.measure.cost(event_of(plan, step, s)) for s in scales]


def test_the_stated_scales_cost_what_the_plan_says_and_together_at_most_the_budget(any_plan):
    plan, _ = any_plan
    spent = Fraction(0)
    for step in plan.steps:
        total = sum(costs(plan, step), Fraction(0))
        assert float(total) == pytest.approx(step.cost, rel=1e-9)
        spent += total
    assert plan.budget * (1 - Fraction(1, 10**9)) <= spent <= plan.budget


def test_the_budget_implies_no_more_than_the_epsilon_asked_for(any_plan):
    plan, spec = any_plan
    asked = Fraction(spec.privacy.epsilon)
    assert plan.tier.epsilon == asked
    implied = plan.measure.epsilon(plan.budget, plan.tier.delta)
    assert asked * (1 - Fraction(1, 10**9)) <= implied <= asked
    assert plan.tier.spent_delta == (0 if plan.measure == PURE else Fraction(spec.privacy.delta))


def test_shares_in_force_sum_to_at_most_one_exactly(any_plan):
    plan, spec = any_plan
    shares = plan.shares
    assert isinstance(shares.one_way, Fraction)
    assert shares.one_way + shares.structure + shares.marginals + shares.exam + shares.cutoff <= 1
    assert shares.exam == (0 if spec.privacy.split else EXAM_SHARE)
    of_persons = plan.neighbours.person is not None and not spec.privacy.split
    assert shares.cutoff == (CUTOFF_SHARE if of_persons else 0)
    assert plan.cutoff_price == plan.budget * shares.cutoff
    if spec.privacy.split is not None:
        assert shares == Shares(Fraction(3, 10), Fraction(1, 10), Fraction(4, 10))
    assert sum(step.share for step in plan.steps) == pytest.approx(1.0)


def test_each_column_is_asked_once_and_the_total_only_where_it_is_private(any_plan):
    plan, spec = any_plan
    near = spec.privacy.protected
    singles, first = one_way_of(plan), ["cutoff"] * bool(plan.shares.cutoff)
    names = [] if near.rows_public else ["(total)"]
    assert singles.step == "one_way" and list(singles.scale_of) == [*names, *spec.columns]
    assert singles.questions == len(names) + 4
    chosen = ["structure"] * ((plan.outlined.choices > 0) + (plan.outlined.errors > 0))
    exam = ["exam"] * (spec.privacy.split is None)
    expected = [*first, "one_way", *chosen, *["marginals"] * (plan.outlined.cliques > 0), *exam]
    assert [s.step for s in plan.steps] == expected


def test_a_column_that_rules_tie_to_several_weighs_as_if_it_had_as_many_times_the_cells():
    ledger = {"url": "sqlite:///l.db", "dataset": "x"}
    privacy = {"epsilon": 1, "delta": 1e-6}
    spec = from_mapping({"release": "x", "tables": two(), "privacy": privacy, "ledger": ledger})
    plan, sizes = make_plan(compiled(spec), Outline()), domain_of(compiled(spec).columns).sizes
    # Age and sex of three persons are there by the number of persons.
    assert plan.one_way[("persons",)] == Fraction((6 * sizes["persons"]) ** (2 / 3))
    assert plan.one_way[("persons_2_age",)] == Fraction(sizes["persons_2_age"] ** (2 / 3))


def test_the_split_of_the_one_way_share_sums_to_no_more_than_the_share(any_plan):
    plan, spec = any_plan
    weights = one_way_weights(domain_of(compiled(spec).columns), plan.neighbours)
    singles = one_way_of(plan)
    left = 1 - plan.shares.exam - plan.shares.cutoff
    share = plan.budget * (left if plan.last_measured == singles else plan.shares.one_way)
    by_weight = share * weights.get((), 0) / sum(weights.values())
    # The number of rows has a hundredth of the budget at least, if it is asked.
    total = max(by_weight, min(plan.budget / 100, share / 2)) if () in weights else Fraction(0)
    columns = sum(weight for clique, weight in weights.items() if clique)
    prices = [(share - total) * w / columns if clique else total for clique, w in weights.items()]
    assert sum(prices) == share
    for price, spent in zip(prices, costs(plan, singles), strict=True):
        assert price * (1 - Fraction(1, 10**12)) <= spent <= price


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 20, 61, 113, 200])
def test_prices_of_any_number_of_columns_sum_to_the_budget_and_not_a_digit_more(columns):
    budget = Fraction(0.18507)
    domain = Domain({f"c{i}": 2 + i * i % 97 for i in range(columns)})
    near = Neighbours("add_remove")
    shares = Shares(Fraction(1, 3), Fraction(1, 7), Fraction(1, 2))
    outlined = StrategyOutline(1, columns // 2, columns // 3, columns - 1, 10, shares)
    for measure, noise in ((ZCDP, "gaussian"), (GDP, "gaussian"), (PURE, "laplace")):
        steps = Spending(budget, measure, near, noise).steps(shares, outlined, domain)
        plan = Terms(near, measure)
        spent = sum((sum(costs(plan, s), Fraction(0)) for s in steps), Fraction(0))
        assert budget * (1 - Fraction(1, 10**11)) <= spent <= budget
        assert float(sum(Fraction(s.cost) for s in steps)) == pytest.approx(float(budget), rel=1e-12)


class Terms:
    """As much of a plan as the cost of a step depends on."""

    def __init__(self, near, measure):
        self.neighbours, self.measure = near, measure


def test_the_measured_step_takes_what_a_split_leaves_over(plan_of):
    plan, _ = plan_of(EPSILON + SPLIT)
    assert [s.share for s in plan.steps] == pytest.approx([0.3, 0.1, 0.6])
    plan, _ = plan_of(EPSILON + SPLIT, crosstabs("age, sex", "age, income", "age, member"))
    assert [s.share for s in plan.steps] == pytest.approx([0.3, 0.7])


def test_choices_and_distances_share_a_step_as_the_strategy_says(plan_of):
    plan, _ = plan_of("epsilon: 1.0", outline=Outline(manner="both"))
    _, choices, distances, *_ = plan.steps
    assert (choices.step, distances.step) == ("structure", "structure")
    assert (choices.questions, distances.questions) == (3, 6)
    assert choices.share + distances.share == pytest.approx(0.097)
    assert choices.cost == pytest.approx(distances.cost)
    assert choices.scale > exponential_within(plan.budget * Fraction(97, 2000), plan.measure, 1).scale
    assert choices.expected_error is None and distances.expected_error > 0


def test_a_plan_is_plain_json_that_says_what_it_is_made_of(any_plan):
    plan, _ = any_plan
    facts = plan.to_json()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert Fraction(facts["budget_exact"]) == plan.budget
    assert facts["epsilon_of_budget"] <= facts["epsilon"] * (1 + 1e-12)
    assert facts["unit"] == plan.neighbours.unit and facts["neighbours"] == plan.neighbours.relation
    assert len(facts["steps"]) == len(plan.steps)
    assert facts["rounds"] == plan.outlined.rounds
    assert facts["model_megabytes_at_most"] * 1e6 == pytest.approx(plan.model_cells * 8, abs=500)


def test_noise_and_measure_follow_the_config_and_the_strategy(plan_of):
    def kinds(privacy, manner):
        plan, _ = plan_of(privacy, outline=Outline(manner=manner))
        return plan.measure, {s.mechanism for s in plan.steps}

    choice, gaussian, laplace = "exponential mechanism", "discrete Gaussian", "discrete Laplace"
    pure, free, zcdp, with_delta, sequential = PRIVACIES
    assert kinds(pure, "choices") == (PURE, {laplace, choice})
    assert kinds(sequential, "both") == (PURE, {laplace, choice})
    for manner, mechanisms in (
        ("choices", {gaussian, choice}),
        ("both", {gaussian, choice}),
        ("distances", {gaussian}),
        ("none", {gaussian}),
    ):
        assert kinds(free, manner) == (GDP, mechanisms)
        assert kinds(free + ", accountant: gdp", manner) == (GDP, mechanisms)
        assert kinds(zcdp, manner) == (ZCDP, mechanisms)
    assert kinds(with_delta, "choices") == (ZCDP, {laplace, choice})
    assert kinds(f"{with_delta}, accountant: zcdp", "distances") == (ZCDP, {laplace})


def test_a_strategy_is_outlined_under_the_measure_in_force(plan_of):
    for privacy, manner in product(PRIVACIES, ["choices", "distances"]):
        outline = Outline(manner=manner)
        plan, spec = plan_of(privacy, STATISTICS, outline)
        sizes = domain_of(compiled(spec).columns).sizes
        assert (sizes, plan.wanted, plan.measure, plan.noise) in outline.asked
        assert plan.outlined == outline.outline(sizes, plan.wanted, plan.measure, plan.noise)


@pytest.mark.parametrize("manner", ["choices", "distances", "both", "none"])
def test_gaussian_accounting_allows_less_noise_for_the_same_guarantee(plan_of, manner):
    gdp, zcdp = (
        plan_of(f"{EPSILON}, accountant: {a}", outline=Outline(manner=manner))[0] for a in ("gdp", "zcdp")
    )
    for a, b in zip(gdp.steps, zcdp.steps, strict=True):
        # A choice counts more under Gaussian DP, and so is a little less sharp at the same share.
        assert (a.scale < b.scale) == (a.mechanism == "discrete Gaussian")


@pytest.mark.parametrize("manner", ["choices", "distances", "both"])
def test_the_accountant_is_the_one_with_less_noise_in_the_last_step_where_it_may_be_chosen(plan_of, manner):
    for epsilon, measure in (("0.1", GDP), ("1", GDP), ("1000", ZCDP)):
        privacy = f"epsilon: {epsilon}, delta: 1.0e-9"
        free, _ = plan_of(privacy, outline=Outline(manner=manner))
        assert free.measure == measure
        forced = [
            plan_of(f"{privacy}, accountant: {a}", outline=Outline(manner=manner))[0].last_measured.scale
            for a in ("gdp", "zcdp")
        ]
        assert free.last_measured.scale == min(forced)


def test_a_person_of_k_rows_has_k_times_the_noise_of_a_row(plan_of):
    for manner in ("choices", "distances"):
        row, _ = plan_of("epsilon: 1.0", outline=Outline(manner=manner))
        person, _ = plan_of(
            "epsilon: 1.0, unit: {column: id, max_rows: 3}, split: {cutoff: 0}",
            outline=Outline(manner=manner),
        )
        for one, three in zip(row.steps, person.steps, strict=True):
            assert three.scale == pytest.approx(3 * one.scale)


def test_the_expected_error_is_that_of_the_noise_at_the_stated_scale(plan_of):
    for privacy, manner in product(PRIVACIES[:3], ["choices", "distances"]):
        plan, _ = plan_of(privacy, outline=Outline(manner=manner))
        for step in plan.steps:
            if step.expected_error is None:
                assert step.mechanism == "exponential mechanism"
            elif plan.noise == "gaussian":
                assert step.expected_error == pytest.approx(0.79788 * step.scale, rel=1e-3)
            else:
                assert step.expected_error == pytest.approx(step.scale, rel=0.02)


def test_requested_pairs_are_measured_as_far_as_they_make_no_cycle_and_cost_no_choice(plan_of):
    plan, spec = plan_of(added=STATISTICS)
    assert wanted_pairs(compiled(spec)) == (("age", "sex"), ("income", "member")) == plan.wanted
    chosen = next(s for s in plan.steps if s.step == "structure")
    assert chosen.questions == 1
    assert plan.to_json()["wanted_pairs"] == [["age", "sex"], ["income", "member"]]
    assert plan_of(added=crosstabs("age, sex", "sex, income", "income, age"))[0].wanted == (
        ("age", "sex"),
        ("sex", "income"),
    )


def test_when_every_pair_is_requested_the_structures_share_goes_to_the_marginals(plan_of):
    plan, _ = plan_of(added=crosstabs("age, sex", "age, income", "age, member"))
    assert [s.step for s in plan.steps] == ["one_way", "marginals", "exam"]
    assert plan.steps[1].share == pytest.approx(float(1 - plan.shares.one_way - EXAM_SHARE))


def test_a_table_of_one_column_gives_it_the_whole_budget(load_text):
    spec = load_text("source: {path: t.csv}\nprivacy: {epsilon: 1}\ncolumns:\n  x: {type: boolean}\n")
    plan = make_plan(compiled(spec), Outline())
    assert [s.step for s in plan.steps] == ["one_way"] and plan.steps[0].share == 1.0
    assert plan.steps[0].cost == 1.0


def test_planning_twice_gives_the_same_plan(plan_of):
    assert plan_of()[0].to_json() == plan_of()[0].to_json()


WIDE = "columns:\n" + "".join(f"  c{i}: {{type: integer, min: 0, max: 2999, bins: 3000}}\n" for i in range(8))
HEAD = f"source: {{path: t.csv}}\nprivacy: {{epsilon: 1}}\n{WIDE}"
ALONE = 8 * 3001


def test_a_strategy_that_chooses_keeps_a_wide_table_within_the_bound(load_text):
    plan = make_plan(compiled(load_text(HEAD)), Outline())
    assert plan.outlined.cells == 3001 * 7 * 3001
    assert plan.max_cells == plan.model_cells == Outline.max_cells
    assert make_plan(compiled(load_text(HEAD)), Outline(max_cells=10**9)).model_cells == plan.outlined.cells


@pytest.mark.parametrize(("megabytes", "cells"), [("1", 125_000), ("0.2", 25_000), ("1000", 63_042_007)])
def test_a_bound_in_megabytes_replaces_the_strategys_own(load_text, megabytes, cells):
    plan = make_plan(
        compiled(load_text(HEAD + f"structure: {{method: mst, max_model_mb: {megabytes}}}\n")), Outline()
    )
    assert plan.model_cells == cells <= plan.max_cells
    assert plan.max_cells == int(float(megabytes) * 1e6 / 8)
    assert plan.to_json()["model_megabytes_at_most"] <= float(megabytes)


def test_a_bound_that_not_even_the_single_columns_fit_in_is_refused(load_text):
    tight = "structure: {method: mst, max_model_mb: 0.19}\n"
    with pytest.raises(ConfigError, match=r"needs 24,008 cells \(0\.2 MB\).*23,750 are allowed"):
        make_plan(compiled(load_text(HEAD + tight)), Outline())


def test_requested_pairs_that_do_not_fit_in_the_bound_are_refused_and_never_left_out(load_text):
    asked = "publish: {statistics: [{crosstab: [c0, c1]}]}\n"
    both = 3001 * 3001 + 6 * 3001
    with pytest.raises(ConfigError, match=rf"needs {both:,} cells"):
        make_plan(compiled(load_text(HEAD + asked)), Outline(max_cells=both - 1))
    assert make_plan(compiled(load_text(HEAD + asked)), Outline(max_cells=both)).model_cells == both


def test_what_measures_no_pairs_needs_no_room_for_requested_ones(load_text):
    asked = "publish: {statistics: [{crosstab: [c0, c1]}]}\nstructure: independent\n"
    plan = make_plan(compiled(load_text(HEAD + asked)), Alone(max_cells=ALONE))
    assert plan.model_cells == ALONE


def test_listed_cliques_that_do_not_fit_in_the_bound_are_refused(load_text):
    fixed = HEAD + "structure: {method: fixed, cliques: [[c0, c1]], max_model_mb: 80}\n"
    with pytest.raises(ConfigError, match=r"structure\.cliques; 10,000,000 are allowed"):
        make_plan(compiled(load_text(fixed)), Outline(name="fixed", manner="none"))


def test_a_hint_of_seconds_keeps_the_model_small_but_never_below_what_is_needed(load_text):
    def planned(text, **options):
        return make_plan(compiled(load_text(HEAD + text)), Outline(**options))

    long = planned("structure: {method: mst, max_seconds: 100000}\n")
    assert long.max_cells == Outline.max_cells
    short = planned("structure: {method: mst, max_seconds: 3}\n")
    assert LEAST_CELLS < short.max_cells < Outline.max_cells
    assert short.forecast.seconds <= 3
    assert planned("structure: {method: mst, max_seconds: 1}\n").max_cells == LEAST_CELLS
    assert planned("structure: {method: mst, max_seconds: 3}\n", rounds=5).max_cells < short.max_cells
    asked = "publish: {statistics: [{crosstab: [c0, c1]}]}\nstructure: {method: mst, max_seconds: 1}\n"
    assert planned(asked).max_cells == 3001 * 3001 + 6 * 3001
    tight = planned("structure: {method: mst, max_seconds: 3, max_model_mb: 0.2}\n")
    assert tight.max_cells == 25_000


def test_the_largest_model_within_some_seconds_is_forecast_to_take_no_longer():
    for columns, fits, seconds in product([1, 15, 200], [1, 4, 30], [2, 10, 500]):
        cells = cells_within(seconds, columns, fits)
        assert cells >= LEAST_CELLS
        if cells > LEAST_CELLS:
            assert forecast_of(columns, cells, fits, chooses=True).seconds <= seconds
            assert forecast_of(columns, cells * 1.01, fits, chooses=True).seconds > seconds


def test_a_forecast_grows_with_columns_cells_and_fits_and_states_what_rows_add(plan_of):
    base = forecast_of(10, 10**6, 2, chooses=True)
    assert forecast_of(20, 10**6, 2, chooses=True).seconds > base.seconds
    assert forecast_of(10, 10**7, 2, chooses=True).megabytes > base.megabytes
    assert forecast_of(10, 10**6, 5, chooses=True).seconds > base.seconds
    assert forecast_of(10, 10**6, 2, chooses=False).seconds_per_million_rows < base.seconds_per_million_rows
    said = plan_of()[0].to_json()["rough_forecast"]
    assert set(said) == {
        "seconds", "megabytes", "seconds_per_million_rows", "megabytes_per_million_rows",
    }  # fmt: skip
    assert min(said.values()) > 0


def test_an_epsilon_and_delta_that_leave_nothing_are_refused_in_words(plan_of, monkeypatch):
    for measure in MEASURES:
        monkeypatch.setattr(type(measure), "budget", lambda *_: Fraction(0))
    with pytest.raises(ConfigError, match="leaves nothing to spend"):
        plan_of()


def test_more_noise_is_planned_rather_than_less(plan_of):
    for privacy in PRIVACIES:
        plan, _ = plan_of(privacy)
        (marginals,) = (s for s in plan.steps if s.step == "marginals")
        price = plan.budget * plan.shares.marginals / marginals.questions
        if plan.noise == "gaussian":
            assert marginals.scale >= gaussian_within(price, 1, plan.measure).sigma
        else:
            assert marginals.scale >= laplace_within(price, plan.measure, 1).scale


@pytest.mark.parametrize("method", ["mst", "independent"])
def test_the_number_of_rows_keeps_its_price_once_domains_are_found(load_text, method):
    """It was asked before; columns whose domains turned out small share the rest, all of it."""
    text = (
        "source: {{path: t.csv}}\nprivacy: {{epsilon: 1, delta: 1.0e-6}}\n"
        "columns: {{pay: {{type: number, {pay}}}, age: {{type: integer, min: 0, max: 9}}}}\n"
        "structure: {{method: {method}}}\n"
    )
    before, after = (
        compiled(load_text(text.format(pay=pay, method=method)))
        for pay in ("bounds: private, decimals: 0, bins: 64", "min: 0, max: 9, decimals: 0, bins: 2")
    )
    strategy = strategy_of(method, ())
    first = make_plan(before, strategy)
    again = make_plan(before, strategy, Found(first, after.columns))
    weights = one_way_weights(domain_of(before.columns), first.neighbours)
    shares = [Fraction(step.cost) for step in first.steps if step.step == "one_way"]
    assert float(first.total_price) == pytest.approx(float(shares[0] * weights[()] / sum(weights.values())))
    assert again.total_price == first.total_price
    (one_way,) = (step for step in again.steps if step.step == "one_way")
    (planned,) = (step for step in first.steps if step.step == "one_way")
    assert one_way.scale_of["(total)"] == planned.scale_of["(total)"]
    assert (
        one_way.scale_of["pay"] > planned.scale_of["pay"]
        and one_way.scale_of["age"] < planned.scale_of["age"]
    )
    spent = sum(costs(again, one_way))
    assert one_way.cost == pytest.approx(planned.cost) == pytest.approx(float(spent))
    assert spent <= again.budget * (1 if method == "independent" else again.shares.one_way)
