"""Allocation: the split of a budget at which no shift of it lowers the expected weighted error."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.columns.domain import Domain
from dpsynth.columns.workload import Workload
from dpsynth.strategy import strategy_of
from dpsynth.strategy.allocation import burden, cost_weights, importance
from dpsynth.testing import FakeDoor, problem_of

DOMAIN = Domain({"a": 2, "b": 3, "c": 7, "d": 20})
CLIQUES = [("a", "b"), ("b", "d"), ("c", "d"), ("a", "b", "c")]
TERMS = [(ZCDP, "gaussian"), (ZCDP, "laplace"), (PURE, "laplace"), (GDP, "gaussian")]


def door_on(measure, noise, budget=Fraction(1)):
    rng = np.random.default_rng(0)
    codes = {c: rng.integers(0, n, 500) for c, n in DOMAIN.sizes.items()}
    return FakeDoor(DOMAIN, codes, budget, rng, measure, noise)


@pytest.mark.parametrize(("measure", "noise"), TERMS)
@pytest.mark.parametrize("targets", [(), ("d",)])
def test_no_shift_of_budget_between_two_cliques_lowers_the_expected_weighted_error(measure, noise, targets):
    workload = Workload(DOMAIN.columns, targets=targets)
    # A budget so small that discrete noise is as good as continuous.
    door = door_on(measure, noise, Fraction(1, 10_000))
    problem = problem_of(door, one_way=door.budget / 4, structure=Fraction(0), workload=workload)
    parts = cost_weights(problem, measure, CLIQUES)
    prices = [float(p / sum(parts) * door.remaining) for p in parts]

    def error(prices):
        cells = [DOMAIN.cells(c) * importance(workload, c) for c in CLIQUES]
        return sum(n * door.cell_error(Fraction(b)) for n, b in zip(cells, prices, strict=True))

    best = error(prices)
    for i in range(4):
        for j in range(4):
            for share in (0.1, 0.5):
                moved = list(prices)
                moved[i] -= share * prices[i]
                moved[j] += share * prices[i]
                assert i == j or error(moved) > best
    assert best < error([sum(prices) / 4] * 4)


@pytest.mark.parametrize(("measure", "noise"), TERMS)
def test_the_power_is_the_one_by_which_a_door_s_errors_fall(measure, noise):
    door = door_on(measure, noise)
    small, large = door.cell_error(Fraction(1, 10**6)), door.cell_error(Fraction(1, 10**4))
    assert small / large == pytest.approx(100**measure.error_power, rel=1e-3)


def test_under_gaussian_noise_costs_grow_with_the_two_thirds_power():
    assert burden(ZCDP, 8.0) == pytest.approx(4.0) and burden(GDP, 27.0) == pytest.approx(9.0)
    assert burden(PURE, 9.0) == pytest.approx(3.0)


def test_what_a_workload_leaves_out_still_has_a_positive_share():
    listed = Workload(("a", "b", "c", "d"), marginals=((("a", "b"), 1),))
    assert importance(listed, ("c", "d")) > 0
    assert (
        importance(listed, ("a", "b")) > importance(listed, ("a", "b", "c")) > importance(listed, ("c", "d"))
    )
    assert importance(Workload(("a", "b", "c")), ("a", "b", "c")) == pytest.approx(1.0)


def test_where_nothing_may_be_measured_the_rest_of_the_budget_measures_the_columns_again():
    door = door_on(ZCDP, "gaussian")
    problem = problem_of(door, one_way=Fraction(1, 4), structure=Fraction(1, 4), max_cells=1)
    found = strategy_of("mst").select(door, problem)
    assert found.cliques == () and [m.clique for m in found.singles] == [(c,) for c in DOMAIN.columns]
    assert door.exhausted
    assert all(kind == "marginal" for kind, _, _ in door.asked)


def test_fixed_measures_the_listed_cliques_and_the_wanted_pairs_once_and_nothing_else():
    door = door_on(ZCDP, "gaussian")
    wanted = (("a", "b"), ("b", "d"))
    problem = problem_of(door, one_way=Fraction(1, 4), structure=Fraction(0), wanted=wanted)
    before = len(door.asked)
    fixed = strategy_of("fixed", [("c", "a", "b"), ("b", "a"), ("d", "c")])
    found = fixed.select(door, problem)
    assert found.cliques == (("a", "b"), ("b", "d"), ("a", "b", "c"), ("c", "d"))
    assert [c for _, (c,), _ in door.asked[before:]] == list(found.cliques)
    assert door.exhausted
    parts = cost_weights(problem, ZCDP, found.cliques)
    prices = [price for _, _, price in door.asked[before:]]
    assert prices == [p / sum(parts) * Fraction(3, 4) for p in parts]


def test_fixed_says_how_many_cells_its_tree_has_before_anything_is_asked():
    fixed = strategy_of("fixed", [("a", "b"), ("b", "c"), ("c", "a")])
    assert fixed.outline(DOMAIN.sizes, (), ZCDP, "gaussian").cells == 2 * 3 * 7 + 20
    assert fixed.outline(DOMAIN.sizes, (("c", "d"),), ZCDP, "gaussian").cells == 2 * 3 * 7 + 7 * 20
    assert fixed.outline(DOMAIN.sizes, (("c", "d"),), ZCDP, "gaussian").cliques == 4
