"""PrivBayes: the degree is the paper's rule, families are all there are, and scores ask about the child."""

from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.domain import Domain
from dpsynth.testing import STRATEGIES, FakeDoor, problem_of
from dpsynth.wings.methods.privbayes import THETA, degree, families

PRIVBAYES = STRATEGIES["privbayes"]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=7), st.floats(1, 5000))
def test_the_degree_is_the_largest_with_which_some_family_is_useful(sizes, useful):
    useful_degrees = [
        k for k in range(1, len(sizes)) if any(prod(f) <= useful for f in combinations(sizes, k + 1))
    ]
    assert degree(sizes, useful) == max(useful_degrees, default=1)


def test_a_table_of_many_columns_has_families_of_one_parent_only():
    assert degree([2] * 150, 1e9) == 1 and degree([2] * 20, 1e9) > 1


@given(st.data())
def test_families_are_all_useful_sets_of_parents_that_can_not_be_extended(data):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=6))
    domain = Domain({f"c{i}": n for i, n in enumerate(sizes)})
    network = data.draw(st.lists(st.sampled_from(domain.columns), min_size=1, unique=True))
    most, useful = data.draw(st.integers(1, 3)), data.draw(st.floats(1, 200))
    expected = set()
    for child in set(domain.columns) - set(network):
        sets = [
            set(p)
            for k in range(1, most + 1)
            for p in combinations(network, k)
            if domain.cells((child, *p)) <= useful
        ]
        expected |= {domain.canonical({child} | p) for p in sets if not any(p < other for other in sets)}
    found = list(families(domain, network, most, useful))
    assert len(found) == len(set(found)) and set(found) == expected


def ready(codes, budget, seed=0, **more):
    rng = np.random.default_rng(seed)
    domain = Domain({c: int(v.max()) + 1 for c, v in codes.items()})
    door = FakeDoor(domain, codes, budget, rng)
    return door, problem_of(door, one_way=budget / 5, structure=budget / 5, **more)


@pytest.mark.parametrize("seed", range(5))
def test_a_child_joins_the_parent_that_it_depends_on_not_parents_that_depend_on_each_other(seed):
    rng = np.random.default_rng(seed)
    a, x, z = (rng.integers(0, 2, 4000) for _ in range(3))
    copy = lambda v, p: np.where(rng.random(4000) < p, 1 - v, v)  # noqa: E731
    # b and c are copies of a: any joint counts of theirs are farther from independence than x and y's.
    codes = {"a": a, "b": copy(a, 0.01), "c": copy(a, 0.01), "x": x, "y": copy(x, 0.2), "z": z}
    door, problem = ready(codes, Fraction(1, 2400), seed)
    found = PRIVBAYES.select(door, problem)
    assert max(map(len, found.cliques)) == 3
    assert any({"x", "y"} <= set(c) for c in found.cliques)


@pytest.mark.parametrize("rows", [40, 4000])
def test_no_family_has_fewer_rows_a_cell_than_theta_times_the_noise(rows):
    rng = np.random.default_rng(1)
    codes = {f"c{i}": rng.integers(0, 2 + i, rows) for i in range(6)}
    door, problem = ready(codes, Fraction(1, 20))
    measuring = (door.remaining - problem.structure) / 5
    found = PRIVBAYES.select(door, problem)
    widest = max((door.domain.cells(c) for c in found.cliques), default=0)
    assert widest * THETA * door.cell_error(measuring) <= problem.start.model.total
    assert (rows == 40) == (not found.cliques)


def test_a_family_is_scored_against_a_model_in_which_the_child_is_independent_of_its_parents():
    rng = np.random.default_rng(2)
    codes = {f"c{i}": rng.integers(0, 2, 3000) for i in range(5)}
    codes["c1"] = codes["c0"].copy()
    door, problem = ready(codes, Fraction(1))
    PRIVBAYES.select(door, problem)
    chosen = [i for i, (kind, _, _) in enumerate(door.asked) if kind == "choose"]
    assert len(chosen) == 4
    network = {"c0"}
    for i, model in zip(chosen, door.estimates, strict=True):
        for family in door.asked[i][1]:
            (child,) = set(family) - network
            parents = tuple(c for c in family if c != child)
            joint = model.marginal((child, *parents))
            alone = np.multiply.outer(model.marginal((child,)), model.marginal(parents)) / model.total
            assert np.allclose(joint, alone, atol=1e-6 * model.total)
        network |= set(door.asked[i + 1][1][0])
    assert network == set(door.domain.columns)
    assert [door.asked[i][2] for i in chosen] == [problem.structure / 4] * 4
