"""AIM: every round replayed against the paper's rules."""

from fractions import Fraction
from itertools import combinations
from math import pi, sqrt

import numpy as np
import pytest

from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.columns.domain import Domain
from dpsynth.columns.workload import Workload
from dpsynth.model import Triangulation
from dpsynth.testing import STRATEGIES, FakeDoor, problem_of
from dpsynth.wings.methods.aim import Run
from tests.thinned import some

DOMAIN = Domain({"a": 2, "b": 3, "c": 2, "d": 4, "e": 2})


def run(
    method,
    seed=0,
    budget=Fraction(1, 10),
    measure=ZCDP,
    noise="gaussian",
    max_cells=10**6,
    one_way=Fraction(1, 5),
    workload=None,
    lost=(),
    thrift=Fraction(1),
):
    rng = np.random.default_rng(seed)
    codes = {c: rng.integers(0, n, 2000) for c, n in DOMAIN.sizes.items()}
    codes["b"] = np.minimum(codes["a"] + (rng.random(2000) < 0.1), 2)
    codes["e"] = codes["a"] ^ codes["c"]
    door = FakeDoor(DOMAIN, codes, budget, rng, measure, noise, thrift=thrift)
    problem = problem_of(
        door, one_way=one_way * budget, structure=budget / 10, max_cells=max_cells, workload=workload
    )
    before, door.lost = len(door.asked), frozenset(lost)
    return door, problem, STRATEGIES[method].select(door, problem), door.asked[before:]


def rounds_of(asked, kind):
    """(candidates, price of choosing, clique, price of measuring) of each round."""
    chosen = [i for i, (k, _, _) in enumerate(asked) if k == kind]
    return [(asked[i][1], asked[i][2], asked[i + 1][1][0], asked[i + 1][2]) for i in chosen]


@pytest.mark.parametrize("seed", range(3))
def test_penalties_are_the_expected_error_of_a_gaussian_marginal_and_weights_the_columns_shared(seed):
    workload = Workload(DOMAIN.columns, ways=2, weights=(("a", 2),))
    door, _, _, asked = run("aim", seed, workload=workload)
    shared = {
        c: sum(2 if "a" in s else 1 for s in combinations(DOMAIN.columns, 2) for _ in set(c) & set(s))
        for k in (1, 2)
        for c in combinations(DOMAIN.columns, k)
    }
    rounds = rounds_of(asked, "choose")
    assert len(rounds) > 2
    for (candidates, _, _, price), penalties, weights in zip(
        rounds, door.penalties, door.weights, strict=True
    ):
        if price is rounds[-1][3]:
            continue
        sigma = 1 / sqrt(2 * price)
        assert list(penalties) == [round(sqrt(2 / pi) * sigma * DOMAIN.cells(c)) for c in candidates]
        most = max(shared.values())
        assert list(weights) == [round(1000 * shared[c] / most) for c in candidates]


@pytest.mark.parametrize(
    ("measure", "noise", "factor"), some([(ZCDP, "gaussian", 4), (PURE, "laplace", 2)], 1)
)
def test_the_price_grows_exactly_when_a_measurement_moved_the_model_by_no_more_than_its_noise(
    measure, noise, factor
):
    budget, one_way = Fraction(1, 10) if measure == ZCDP else Fraction(1, 4), Fraction(4, 5)
    grown, kept = 0, 0
    for seed in range(6):
        door, problem, found, asked = run("aim", seed, budget, measure, noise, one_way=one_way)
        rounds = rounds_of(asked, "choose")
        models = [*door.estimates, found.fit.model]
        for i, (_, price, clique, measuring) in enumerate(rounds[:-2]):
            moved = np.abs(models[i + 1].marginal(clique) - models[i].marginal(clique)).sum()
            quiet = moved <= door.cell_error(measuring) * DOMAIN.cells(clique)
            assert rounds[i + 1][1] == price * (factor if quiet else 1)
            grown, kept = grown + quiet, kept + (not quiet)
        assert problem.structure == budget / 10 and rounds[0][1] == rounds[0][3]
        assert sum(price for _, _, price in asked) == budget / 5
    assert grown > 0 and kept > 0


@pytest.mark.parametrize("seed", range(4))
def test_no_round_is_cheaper_than_the_one_before_though_answers_cost_less_than_was_offered(seed):
    door, _, _, asked = run("aim", seed, thrift=Fraction(1, 3))
    costs = [choosing + price for _, choosing, _, price in rounds_of(asked, "choose")]
    assert len(costs) > 2 and costs == sorted(costs)
    assert door.exhausted


def test_an_answer_that_was_lost_taught_nothing_about_the_price():
    lost = [c for k in (2, 3) for c in combinations(DOMAIN.columns, k)]
    door, _, found, asked = run("aim", 0, lost=lost)
    rounds = rounds_of(asked, "choose")
    missing = [i for i, m in enumerate(found.answers[:-2]) if m is None]
    assert len(missing) > 5
    assert all(rounds[i + 1][1] == rounds[i][1] for i in missing)
    assert door.exhausted


def test_a_clique_whose_own_tree_is_too_large_is_measured_as_far_as_it_fits():
    door, problem, _, _ = run("aim")
    under_way = Run(door, problem, [], problem.start, [("a", "b"), ("b", "c"), ("c", "d")])
    whole = Triangulation.of(DOMAIN, [*under_way.cliques, ("a", "c", "e")]).cells
    assert under_way.part_within(("a", "c", "e"), whole)[0] == ("a", "c", "e")
    part, tree = under_way.part_within(("a", "c", "e"), whole - 1)
    assert part in {("a", "c"), ("a", "e"), ("c", "e")} and tree.cells <= whole - 1
    assert tree.cells == Triangulation.of(DOMAIN, [*under_way.cliques, part]).cells
    # Even a bound below the tree at hand leaves a single column, which adds nothing to it.
    part, tree = under_way.part_within(("a", "c", "e"), 1)
    assert len(part) == 1 and tree.cells == under_way.tree_with().cells


def test_the_model_may_grow_with_the_part_of_the_budget_that_was_spent():
    door, problem, _, asked = run("aim", 2, max_cells=60)
    total, spent, cliques = door.budget * Fraction(4, 5), Fraction(0), []
    for candidates, choosing, clique, price in rounds_of(asked, "choose"):
        spent += choosing + price
        tree = Triangulation.of(DOMAIN, cliques)
        allowed = max(tree.cells, int(60 * spent / total))
        assert all(tree.cells_with(c) <= allowed for c in candidates)
        left_out = {c for k in (1, 2, 3) for c in combinations(DOMAIN.columns, k)} - set(candidates)
        worthless = {c for c in left_out if door.cell_error(price) * DOMAIN.cells(c) > 3000}
        assert all(tree.cells_with(c) > allowed for c in left_out - worthless)
        cliques.append(clique)
    assert problem.max_cells >= Triangulation.of(DOMAIN, cliques).cells > 13
