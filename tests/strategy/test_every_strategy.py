"""What every strategy promises, whatever the noise says: its budget, its bound, what was wanted."""

from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.columns.domain import Domain
from dpsynth.columns.workload import Workload
from dpsynth.config.structure import METHODS
from dpsynth.model import Triangulation
from dpsynth.strategy import Strategy, strategy_of
from dpsynth.testing import STRATEGIES, FakeDoor, problem_of
from tests.examples import examples
from tests.strategy.drawn_pairs import forest
from tests.thinned import some

CHOOSING = [m.name for m in METHODS.values() if m.chooses and m.name != "auto"]
"""``auto`` measures single columns again, and has tests of its own."""
TERMS = [(ZCDP, "gaussian"), (ZCDP, "laplace"), (PURE, "laplace"), (GDP, "gaussian")]
BUDGET = {ZCDP: Fraction(1, 50), GDP: Fraction(1, 50), PURE: Fraction(2)}


def made(method: str) -> Strategy:
    return strategy_of(method, [("a", "b")] if METHODS[method].lists_cliques else ())


RUNS = [(m, *terms) for m in CHOOSING for terms in TERMS]


@st.composite
def situations(draw):
    """A table's domain, wanted pairs, a bound that the single columns keep, terms and a seed."""
    columns = [f"c{i}" for i in range(draw(st.integers(2, 6)))]
    domain = Domain({c: draw(st.integers(1, 6)) for c in columns})
    wanted = forest(columns, draw, 4)
    least = Triangulation.of(domain, wanted).cells
    bound = least + draw(st.integers(0, 2 * prod(domain.sizes.values())))
    method, measure, noise = draw(st.sampled_from(RUNS))
    targets = draw(st.sampled_from([(), (columns[0],)]))
    workload = Workload(domain.columns, targets=targets)
    return domain, wanted, bound, method, measure, noise, workload, draw(st.integers(0, 2**32))


def ready(domain, rows, seed, measure, noise, **terms):
    rng = np.random.default_rng(seed)
    codes = {c: rng.integers(0, size, rows) for c, size in domain.sizes.items()}
    return FakeDoor(
        domain, codes, BUDGET[measure], rng, measure, noise, rounding=Fraction(1, 1 << 50), **terms
    )


@given(situations())
@examples(120)
def test_whatever_the_noise_says_the_tree_keeps_its_bound_and_the_budget_is_spent_to_the_last_part(situation):
    domain, wanted, bound, method, measure, noise, workload, seed = situation
    # Real prices are rounded, and answers cost a little less than was offered: here a lot less.
    door = ready(domain, 60, seed, measure, noise, wild=True, thrift=Fraction(1, 1 + seed % 3))
    problem = problem_of(
        door,
        one_way=door.budget / 5,
        structure=door.budget / 10,
        max_cells=bound,
        wanted=wanted,
        workload=workload,
    )
    found = STRATEGIES[method].select(door, problem)
    assert len(found.cliques) == len(found.answers)
    assert set(wanted) <= set(found.cliques)
    assert all(m.clique == c for c, m in zip(found.cliques, found.answers, strict=True))
    assert all(domain.canonical(c) == c for c in found.cliques)
    assert Triangulation.of(domain, found.inside).cells <= bound
    assert door.exhausted
    structure = sum(price for kind, _, price in door.asked if kind != "marginal") * door.thrift
    assert structure <= problem.structure * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(("method", "measure", "noise"), RUNS)
def test_no_more_is_asked_than_the_outline_said(method, measure, noise):
    domain = Domain({f"c{i}": 2 + i % 3 for i in range(7)})
    for wild in (False, True):
        door = ready(domain, 300, 3, measure, noise, wild=wild)
        problem = problem_of(
            door, one_way=door.budget / 5, structure=door.budget / 10, wanted=(("c0", "c1"),)
        )
        outlined = STRATEGIES[method].outline(domain.sizes, problem.wanted, measure, noise)
        found = STRATEGIES[method].select(door, problem)
        assert sum(kind == "choose" for kind, _, _ in door.asked) <= outlined.choices
        assert sum(len(asked) for kind, asked, _ in door.asked if kind == "errors") <= outlined.errors
        assert Triangulation.of(domain, found.inside).cells <= outlined.cells


FEW = [
    (method, *terms, columns)
    for method in sorted(METHODS)
    for terms in TERMS
    for columns in ("a", "ab")
    if (method, columns) != ("fixed", "a")
]


@pytest.mark.parametrize(("method", "measure", "noise", "columns"), FEW)
def test_one_or_two_columns_are_asked_for_as_planned_and_all_is_spent(method, measure, noise, columns):
    """Where the outline announces no clique, the single columns have all, and nothing is selected."""
    domain = Domain(dict.fromkeys(columns, 3))
    strategy = made(method)
    said = strategy.outline(domain.sizes, (), measure, noise)
    assert bool(said.cliques) == (columns == "ab" and METHODS[method].measures)
    door = ready(domain, 300, 11, measure, noise)
    one_way = said.shares.one_way if said.cliques else 1
    asks = said.choices + said.errors > 0
    problem = problem_of(
        door, one_way=door.budget * one_way, structure=door.budget * said.shares.structure * asks
    )
    if said.cliques:
        strategy.select(door, problem)
    assert door.exhausted
    assert sum(kind == "choose" for kind, _, _ in door.asked) <= said.choices
    assert sum(len(asked) for kind, asked, _ in door.asked if kind == "errors") <= said.errors
    assert columns == "ab" or not asks, "a single column leaves nothing to choose"


@pytest.mark.parametrize("method", sorted(METHODS))
def test_default_shares_sum_to_exactly_one_and_what_asks_has_its_share(method):
    for measure, noise in TERMS:
        said = made(method).outline(dict.fromkeys("abcd", 3), (), measure, noise)
        shares = said.shares
        assert shares.one_way + shares.structure + shares.marginals == 1
        assert shares.one_way > 0
        assert (shares.structure > 0) == (said.choices + said.errors > 0)
        assert (shares.marginals > 0) == (said.cliques > 0)


@pytest.mark.parametrize(("method", "measure", "noise"), RUNS)
def test_a_strategy_copes_with_answers_that_are_lost(method, measure, noise):
    domain = Domain({"a": 2, "b": 3, "c": 2, "d": 3})
    lost = frozenset([("a", "b"), ("c", "d"), ("a", "c", "d"), ("a",), ("a", "b", "c")])
    door = ready(domain, 200, 5, measure, noise)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10, wanted=(("a", "b"),))
    door.lost = lost
    found = STRATEGIES[method].select(door, problem)
    assert door.exhausted
    assert [m is None for m in found.answers] == [c in lost for c in found.cliques]
    assert found.answers[found.cliques.index(("a", "b"))] is None


def planted(rows, rng):
    """Columns of two places: b copies a, d copies c, e is their sum; f and g are by themselves."""
    a, c, f, g = (rng.integers(0, 2, rows) for _ in range(4))
    noisy = lambda x: np.where(rng.random(rows) < 0.05, 1 - x, x)  # noqa: E731
    codes = {"a": a, "b": noisy(a), "c": c, "d": noisy(c), "e": a & c, "f": f, "g": g}
    return Domain(dict.fromkeys(codes, 2)), codes


@pytest.mark.parametrize(("method", "measure", "noise"), some(RUNS, 8))
@pytest.mark.parametrize("seed", some([0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))], 1))
def test_at_high_epsilon_each_finds_the_pairs_that_were_planted(method, measure, noise, seed):
    rng = np.random.default_rng(seed)
    domain, codes = planted(5000, rng)
    door = FakeDoor(domain, codes, 50 * BUDGET[measure], rng, measure, noise)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 5)
    found = STRATEGIES[method].select(door, problem)
    together = {frozenset(p) for clique in found.cliques for p in combinations(clique, 2)}
    assert {frozenset("ab"), frozenset("cd")} <= together
    assert frozenset("ae") in together or frozenset("be") in together


def test_independent_asks_nothing_and_measures_nothing():
    domain = Domain(dict.fromkeys("abc", 2))
    door = ready(domain, 50, 1, ZCDP, "gaussian")
    problem = problem_of(door, one_way=door.budget, structure=Fraction(0), wanted=(("a", "b"),))
    asked = list(door.asked)
    found = STRATEGIES["independent"].select(door, problem)
    assert (found.cliques, found.answers, door.asked) == ((), (), asked)
    assert found.fit is problem.start
    said = STRATEGIES["independent"].outline(domain.sizes, problem.wanted, ZCDP, "gaussian")
    assert (said.cliques, said.choices, said.errors, said.cells) == (0, 0, 0, 6)


def test_with_gaussian_noise_one_shot_makes_no_private_choice():
    door = ready(Domain(dict.fromkeys("abcd", 2)), 300, 1, GDP, "gaussian")
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
    STRATEGIES["one_shot"].select(door, problem)
    assert {kind for kind, _, _ in door.asked} == {"errors", "marginal"}
