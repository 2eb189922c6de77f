"""What marginals are worth: prices, gains and shares held against optima found in other ways."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from dpsynth.strategy.allocation import Trade, shared
from tests.examples import cases
from tests.thinned import some

POWERS = [0.5, 1.0]


def random_trade(rng, power, columns, worth_it=(-2, 2)):
    """A budget and columns, some of them measured before, over many orders of magnitude."""
    budget = 10 ** rng.uniform(-6, 3)
    known = budget * 10 ** rng.uniform(-3, 1, columns) * rng.integers(0, 2, columns)
    unit = 10 ** rng.uniform(*worth_it)
    return Trade(unit, power, budget, known, 10 ** rng.uniform(0, 3, columns))


def gained(trade, weighted, burdens, costs):
    """What marginals gain at some costs, by the definition."""
    return weighted - burdens * trade.unit * costs**-trade.power


@pytest.mark.parametrize("power", POWERS)
def test_no_other_cost_of_a_marginal_gains_more_at_a_price(power):
    rng = np.random.default_rng(0)
    for _ in range(60):
        trade = random_trade(rng, power, 1)
        burden, price, weighted = (10 ** rng.uniform(-3, 4, 1) for _ in range(3))
        best = trade.costs(burden, float(price[0]))
        value = trade.gains(weighted, burden, float(price[0]))
        assert value == pytest.approx(gained(trade, weighted, burden, best) - price * best, rel=1e-9)
        for factor in (0.5, 0.99, 1.01, 2):
            assert gained(trade, weighted, burden, best * factor) - price * best * factor < value
        assert trade.error(3.0) == trade.unit * 3.0**-power


@pytest.mark.parametrize("power", some(POWERS, 1))
def test_the_price_is_the_one_at_which_costs_take_up_the_budget(power):
    """It is where the dual is least: convex in the price, its slope is the budget less what is taken."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        trade = random_trade(rng, power, int(rng.integers(1, 5)))
        burdens = 10 ** rng.uniform(0, 4, int(rng.integers(0, 12)))
        fair = trade.error(trade.budget / (burdens.size + 1)) * burdens
        weighted = fair * rng.choice([-1.0, 0.3, 1, 3, 30, np.inf], burdens.size)
        price = trade.price(weighted, burdens)
        always = np.isinf(weighted)
        finite = np.where(always, 0.0, weighted)

        def dual(logarithm, trade=trade, finite=finite, burdens=burdens, always=always):
            at = float(np.exp(logarithm))
            gains = trade.gains(finite, burdens, at)
            again = np.maximum(trade.costs(trade.burdens, at), trade.known)
            of_columns = -trade.burdens * trade.unit * again**-trade.power - at * (again - trade.known)
            return at * trade.budget + np.where(always, gains, np.maximum(gains, 0)).sum() + of_columns.sum()

        centre = np.log(price)
        found = minimize_scalar(dual, bounds=(centre - 20, centre + 20), method="bounded")
        scale = abs(dual(centre)) + price * trade.budget
        assert dual(centre) <= found.fun + 1e-6 * scale
        assert dual(centre) <= dual(centre + 0.05) + 1e-12 * scale
        assert dual(centre) <= dual(centre - 0.05) + 1e-12 * scale


@pytest.mark.parametrize("power", some(POWERS, 1))
def test_where_all_is_worth_measuring_no_solver_shares_the_budget_better(power):
    rng = np.random.default_rng(2)
    for _ in range(15):
        trade = random_trade(rng, power, 3, (0, 0))
        burdens = 10 ** rng.uniform(0, 3, 4)
        price = trade.price(np.full(4, np.inf), burdens)
        costs = trade.costs(burdens, price)
        again = np.maximum(trade.costs(trade.burdens, price) - trade.known, 0)
        assert costs.sum() + again.sum() == pytest.approx(trade.budget, rel=1e-9)

        def error(parts, trade=trade, burdens=burdens):
            given = trade.budget * parts
            of_columns = trade.burdens * (trade.known + given[4:]) ** -power
            return (burdens * given[:4] ** -power).sum() + of_columns.sum()

        scale = error(np.full(7, 1 / 7))
        solved = minimize(
            lambda parts, error=error, scale=scale: error(np.maximum(parts, 1e-9)) / scale,
            np.full(7, 1 / 7),
            bounds=[(1e-9, 1)] * 7,
            constraints={"type": "eq", "fun": lambda parts: parts.sum() - 1},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        ours = error(np.concatenate([costs, np.maximum(again, 1e-12 * trade.budget)]) / trade.budget)
        assert ours / scale <= solved.fun * (1 + 1e-5)


def problems(seed, power):
    """Columns, some of their pairs and triples with weights, and what a budget buys."""
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 9))
    sizes = rng.integers(1, rng.choice([3, 10, 300]) + 1, columns).astype(float)
    possible = [c for k in (2, 3) for c in combinations(range(columns), k)]
    members = [possible[i] for i in rng.permutation(len(possible))[: int(rng.integers(0, 20))]]
    trade = random_trade(rng, power, columns)
    trade = replace(trade, merged=trade.burdens * rng.choice([0.0, 0.5, 1.0], columns))
    return trade, sizes, members, 10 ** rng.uniform(-2, 2, len(members))


def expected_error(trade, sizes, members, weights, costs):
    """The objective and its slopes, clique by clique as the docstring has it."""
    q, d = trade.power, len(sizes)
    precise = trade.known + costs[:d]
    for clique, cost in zip(members, costs[d:], strict=True):
        for c in clique:
            precise[c] += cost * sizes[c] / np.prod(sizes[list(clique)])
    alone, told_too = trade.known + costs[:d], trade.burdens - trade.merged
    value = (trade.unit * (told_too * precise**-q + trade.merged * alone**-q)).sum()
    by_all = -q * trade.unit * told_too * precise ** (-q - 1)
    slopes = (by_all - q * trade.unit * trade.merged * alone ** (-q - 1)).tolist()
    for clique, weight, cost in zip(members, weights, costs[d:], strict=True):
        cells = np.prod(sizes[list(clique)])
        value += trade.unit * weight * cells * cost**-q
        told = sum(by_all[c] * sizes[c] / cells for c in clique)
        slopes.append(-q * trade.unit * weight * cells * cost ** (-q - 1) + told)
    return value, np.array(slopes)


@pytest.mark.parametrize("power", some(POWERS, 1))
def test_shares_keep_the_budget_and_no_others_bring_an_error_less_by_a_thousandth(power):
    """By convexity the least error is above e + slopes.(x - costs) for any x of the same sum."""
    gaps = []
    for seed in range(cases(150, part=4)):
        trade, sizes, members, weights = problems(seed, power)
        found = shared(trade, sizes, members, weights)
        costs = np.concatenate([found.columns, found.cliques])
        assert len(found.columns) == len(sizes) and len(found.cliques) == len(members)
        assert (costs > 0).all()
        assert costs.sum() == pytest.approx(trade.budget, rel=1e-12)
        error, slopes = expected_error(trade, sizes, members, weights, costs)
        gaps.append(((slopes * costs).sum() - slopes.min() * trade.budget) / error)
        assert found.price == pytest.approx(-slopes.min(), rel=1e-3)
    assert max(gaps) < 1e-3


@pytest.mark.parametrize("power", POWERS)
def test_a_general_solver_finds_no_better_shares(power):
    for seed in range(cases(12, least=4)):
        trade, sizes, members, weights = problems(1000 + seed, power)
        found = shared(trade, sizes, members, weights)
        ours, _ = expected_error(
            trade, sizes, members, weights, np.concatenate([found.columns, found.cliques])
        )

        def error(logits, trade=trade, sizes=sizes, members=members, weights=weights, ours=ours):
            parts = np.exp(logits - logits.max())
            parts /= parts.sum()
            value, slopes = expected_error(trade, sizes, members, weights, trade.budget * parts)
            slopes = slopes * trade.budget
            return value / ours, parts * (slopes - (parts * slopes).sum()) / ours

        start = np.zeros(len(sizes) + len(members))
        solved = minimize(error, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000})
        assert solved.fun >= 1 - 1e-3
        assert solved.fun <= 1.05


def test_a_column_known_well_gets_next_to_nothing_and_one_unknown_its_share():
    trade = Trade(1.0, 0.5, 1.0, np.array([100.0, 0.0]), np.array([4.0, 4.0]))
    found = shared(trade, np.array([4.0, 4.0]), [], np.zeros(0))
    assert found.columns[0] < 1e-3
    assert found.columns[1] > 0.99


def test_a_clique_that_tells_of_its_columns_spares_measuring_them_again():
    trade = Trade(1.0, 0.5, 1.0, np.zeros(3), np.full(3, 2.0))
    sizes = np.full(3, 2.0)
    alone = shared(trade, sizes, [], np.zeros(0)).columns
    assert alone == pytest.approx(np.full(3, 1 / 3))
    held = shared(trade, sizes, [(0, 1)], np.ones(1)).columns
    assert held[0] == pytest.approx(held[1]) and held[0] < held[2] / 2


def test_a_clique_spares_no_measuring_of_values_that_count_in_groups_there():
    whole = Trade(1.0, 0.5, 1.0, np.zeros(3), np.full(3, 8.0))
    merged = replace(whole, merged=np.array([6.0, 0.0, 0.0]))
    sizes = np.full(3, 2.0)
    spared, measured = (shared(t, sizes, [(0, 1)], np.ones(1)).columns for t in (whole, merged))
    assert spared[0] == pytest.approx(spared[1]) and measured[0] > 1.5 * measured[1]


def test_twice_the_weight_gets_more_but_less_than_twice_the_cost():
    trade = Trade(1.0, 0.5, 1.0, np.full(4, 10.0), np.full(4, 2.0))
    light, heavy = shared(trade, np.full(4, 2.0), [(0, 1), (2, 3)], np.array([1.0, 2.0])).cliques
    assert light < heavy < 2 * light
