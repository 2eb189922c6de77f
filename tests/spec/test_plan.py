"""A plan is made of the config alone, never promises more than the budget, and agrees with its events."""

import json
from fractions import Fraction
from itertools import product

import pytest

from dpsynth.accounting.accountants import zcdp_epsilon
from dpsynth.accounting.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    cost,
    gaussian_within,
    laplace_within,
)
from dpsynth.domain.column import domain_of
from dpsynth.errors import ConfigError
from dpsynth.planning import forecast
from dpsynth.spec.plan import make_plan, neighbours_of, one_way_weights, wanted_pairs
from dpsynth.structure import STRATEGIES

EPSILON = "epsilon: 1.0, delta: 1.0e-9"
PRIVACIES = [
    "epsilon: 1.0",
    "epsilon: 0.1, delta: 1.0e-9",
    "epsilon: 3, delta: 1.0e-6, noise: laplace",
    "epsilon: 1, delta: 1.0e-6, noise: laplace, accountant: sequential",
]
UNITS = [
    "",
    ", neighbours: replace_one",
    ", unit: {column: id, max_rows: 3}",
    ", neighbours: replace_one, unit: {column: id, max_rows: 3}",
]
METHODS = ["", "structure: independent\n", "SPLIT"]
SPLIT = ", split: {one_way: 0.3, structure: 0.1, marginals: 0.4}"
STATISTICS = (
    "publish: {statistics: [{crosstab: [sex, age]}, {mean: income, by: member}, {mean: age, by: sex}]}\n"
)


@pytest.fixture
def plan_of(load_with):
    """The plan and spec of the small configuration with its privacy section and more replaced."""

    def made(privacy=EPSILON, added=""):
        spec = load_with(added, replace=(EPSILON, privacy))
        return make_plan(spec, STRATEGIES[spec.structure.method]), spec

    return made


@pytest.fixture(params=product(PRIVACIES, UNITS, METHODS), ids=lambda p: "".join(p) or "default")
def any_plan(request, plan_of):
    """Plans under every kind of privacy, unit and structure."""
    privacy, unit, method = request.param
    if method == "SPLIT":
        return plan_of(privacy + unit + SPLIT)
    return plan_of(privacy + unit, method)


def crosstabs(*pairs):
    requests = ", ".join(f"{{crosstab: [{pair}]}}" for pair in pairs)
    return f"publish: {{statistics: [{requests}]}}\n"


def event_of(plan, mechanism, scale):
    near = plan.neighbours
    return {
        "discrete Gaussian": lambda: GaussianEvent(scale, near.l2_squared),
        "discrete Laplace": lambda: LaplaceEvent(scale, near.l1),
        "exponential mechanism": lambda: ExponentialEvent(scale, near.l1),
    }[mechanism]()


def costs(plan, step):
    """What the answers of a step cost at the scales that the plan states."""
    scales = list(step.scale_of.values()) or [step.scale] * step.questions
    assert len(scales) == step.questions
    return [cost(event_of(plan, step.mechanism, s), plan.measure) for s in scales]


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
    assert plan.epsilon == asked
    implied = plan.budget if plan.measure == "pure" else zcdp_epsilon(plan.budget, plan.delta)
    assert asked * (1 - Fraction(1, 10**9)) <= implied <= asked
    assert plan.spent_delta == (0 if plan.measure == "pure" else Fraction(spec.privacy.delta))


def test_shares_in_force_sum_to_at_most_one_exactly(any_plan):
    plan, spec = any_plan
    shares = plan.shares
    assert isinstance(shares.one_way, Fraction)
    assert shares.one_way + shares.structure + shares.marginals <= 1
    if spec.privacy.split is not None:
        assert shares.one_way == Fraction(3, 10) and shares.structure == Fraction(1, 10)
    assert sum(step.share for step in plan.steps) == pytest.approx(1.0)


def test_each_column_is_asked_once_and_the_total_only_where_it_is_private(any_plan):
    plan, spec = any_plan
    near = neighbours_of(spec)
    singles = plan.steps[0]
    names = [] if near.rows_public else ["(total)"]
    assert singles.step == "one_way" and list(singles.scale_of) == [*names, *spec.columns]
    assert singles.questions == len(names) + 4
    expected = ["one_way"] if plan.structure == "independent" else ["one_way", "structure", "marginals"]
    assert [s.step for s in plan.steps] == expected


def test_the_split_of_the_one_way_share_sums_to_no_more_than_the_share(any_plan):
    plan, spec = any_plan
    weights = one_way_weights(domain_of(spec.table_columns()), plan.neighbours)
    share = plan.budget * (plan.shares.one_way if len(plan.steps) > 1 else 1)
    prices = [share * w / sum(weights.values()) for w in weights.values()]
    assert sum(prices) == share
    for price, spent in zip(prices, costs(plan, plan.steps[0]), strict=True):
        assert price * (1 - Fraction(1, 10**12)) <= spent <= price


def test_a_plan_is_plain_json_that_says_what_it_is_made_of(any_plan):
    plan, _ = any_plan
    facts = plan.to_json()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert Fraction(facts["budget_exact"]) == plan.budget
    assert facts["epsilon_of_budget"] <= facts["epsilon"] * (1 + 1e-12)
    assert facts["unit"] == plan.neighbours.unit and facts["neighbours"] == plan.neighbours.relation
    assert len(facts["steps"]) == len(plan.steps)


def test_noise_and_measure_follow_the_config(plan_of):
    def kinds(privacy):
        plan, _ = plan_of(privacy)
        return plan.measure, plan.noise, {s.mechanism for s in plan.steps}

    choice = "exponential mechanism"
    assert kinds(PRIVACIES[0]) == ("pure", "laplace", {"discrete Laplace", choice})
    assert kinds(PRIVACIES[1]) == ("zcdp", "gaussian", {"discrete Gaussian", choice})
    assert kinds(PRIVACIES[2]) == ("zcdp", "laplace", {"discrete Laplace", choice})
    assert kinds(PRIVACIES[3]) == ("pure", "laplace", {"discrete Laplace", choice})


def test_a_person_of_k_rows_has_k_times_the_noise_of_a_row(plan_of):
    row, _ = plan_of("epsilon: 1.0")
    person, _ = plan_of("epsilon: 1.0, unit: {column: id, max_rows: 3}")
    for one, three in zip(row.steps, person.steps, strict=True):
        assert three.scale == pytest.approx(3 * one.scale)


def test_the_expected_error_is_that_of_the_noise_at_the_stated_scale(plan_of):
    for privacy in PRIVACIES[:2]:
        plan, _ = plan_of(privacy)
        for step in plan.steps:
            if step.expected_error is None:
                assert step.step == "structure"
            elif plan.noise == "gaussian":
                assert step.expected_error == pytest.approx(0.79788 * step.scale, rel=1e-3)
            else:
                assert step.expected_error == pytest.approx(step.scale, rel=0.02)
        assert plan.cell_error == plan.steps[-1].expected_error


def test_requested_pairs_are_measured_as_far_as_they_make_no_cycle_and_cost_no_choice(plan_of):
    plan, spec = plan_of(added=STATISTICS)
    assert wanted_pairs(spec) == (("age", "sex"), ("income", "member")) == plan.wanted
    chosen = next(s for s in plan.steps if s.step == "structure")
    assert chosen.questions == 1
    assert plan.to_json()["wanted_pairs"] == [["age", "sex"], ["income", "member"]]
    assert plan_of(added=crosstabs("age, sex", "sex, income", "income, age"))[0].wanted == (
        ("age", "sex"),
        ("sex", "income"),
    )


def test_when_every_pair_is_requested_the_structures_share_goes_to_the_marginals(plan_of):
    plan, _ = plan_of(added=crosstabs("age, sex", "age, income", "age, member"))
    assert [s.step for s in plan.steps] == ["one_way", "marginals"]
    assert plan.steps[1].share == pytest.approx(float(1 - plan.shares.one_way))


def test_a_table_of_one_column_gives_it_the_whole_budget(load_text):
    spec = load_text("source: {path: t.csv}\nprivacy: {epsilon: 1}\ncolumns:\n  x: {type: boolean}\n")
    plan = make_plan(spec, STRATEGIES["mst"])
    assert [s.step for s in plan.steps] == ["one_way"] and plan.steps[0].share == 1.0


def test_planning_reads_no_table_and_makes_no_file(plan_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan, spec = plan_of(added="ledger: {url: 'sqlite:///spent.db', dataset: d}\n")
    assert not (tmp_path / spec.source.path).exists()
    before = sorted(p.name for p in tmp_path.rglob("*"))
    facts = forecast(spec)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    assert facts["budget"] == plan.to_json()["budget"] and facts["ledger"]["allowed"]
    json.dumps(facts, allow_nan=False)


def test_planning_twice_gives_the_same_plan(plan_of):
    assert plan_of()[0].to_json() == plan_of()[0].to_json()


WIDE = "columns:\n" + "".join(f"  c{i}: {{type: integer, min: 0, max: 2999, bins: 3000}}\n" for i in range(8))


def test_a_model_too_large_for_memory_is_refused_and_without_pairs_it_is_not(load_text):
    text = f"source: {{path: t.csv}}\nprivacy: {{epsilon: 1}}\n{WIDE}"
    with pytest.raises(ConfigError, match=r"63,042,007 cells, and 50,000,000 are allowed"):
        make_plan(load_text(text), STRATEGIES["mst"])
    plan = make_plan(load_text(text + "structure: independent\n"), STRATEGIES["independent"])
    assert plan.model_cells == 8 * 3001


def test_the_model_never_has_more_cells_than_the_plan_allows_for(plan_of):
    plan, spec = plan_of()
    sizes = domain_of(spec.table_columns()).sizes
    trees = [
        [("age", "sex"), ("age", "income"), ("age", "member")],
        [("age", "income"), ("income", "sex"), ("sex", "member")],
    ]
    for tree in trees:
        assert sum(sizes[a] * sizes[b] for a, b in tree) <= plan.model_cells


def test_an_epsilon_and_delta_that_leave_nothing_are_refused_in_words(plan_of, monkeypatch):
    monkeypatch.setattr("dpsynth.spec.plan.budget_of", lambda *_: Fraction(0))
    with pytest.raises(ConfigError, match="leaves nothing to spend"):
        plan_of()


def test_more_noise_is_planned_rather_than_less(plan_of):
    plan, _ = plan_of()
    (marginals,) = (s for s in plan.steps if s.step == "marginals")
    price = plan.budget * plan.shares.marginals / marginals.questions
    least = {"gaussian": gaussian_within(price, 1).sigma, "laplace": laplace_within(price, "zcdp", 1).scale}
    assert marginals.scale >= least[plan.noise]
