"""Strategies beside what earlier releases measured: their bound, and that they ask for what has changed."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpsynth.accounting.measures import GDP
from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import Triangulation
from dpsynth.strategy import auto
from dpsynth.testing import STRATEGIES, FakeDoor, problem_of
from tests.thinned import some, thinned

MINDFUL = ["auto", "aim", "one_shot", "privbayes"]
"""Strategies that look after the size of their tree."""
DOMAIN = Domain({f"c{i}": 4 for i in range(6)})
PAIRS = list(combinations(DOMAIN.columns, 2))


def chain(rows=20_000, changed=()):
    """c0 - c1, c2 - c3 and c4 - c5 go together; of a changed pair, each value with another one."""
    codes, rng = {}, np.random.default_rng(0)
    for a, b in zip(DOMAIN.columns[::2], DOMAIN.columns[1::2], strict=True):
        codes[a] = rng.integers(0, 4, rows)
        same = np.where(rng.random(rows) < 0.8, codes[a], rng.integers(0, 4, rows))
        codes[b] = (same + 1) % 4 if (a, b) in changed else same
    return codes


def door_of(codes, seed, budget=Fraction(1, 20), domain=DOMAIN):
    return FakeDoor(domain, codes, budget, np.random.default_rng(seed), GDP, rounding=Fraction(1, 1 << 50))


def told(codes, cliques, sigma=10.0, domain=DOMAIN):
    """What an earlier release measured together."""
    door = door_of(codes, 99, domain=domain)
    return tuple(Measurement(c, door.counts(c), "gaussian", sigma) for c in cliques)


def with_earlier(problem, earlier):
    problem = replace(problem, earlier=earlier)
    return replace(problem, start=problem.refit((), problem.start))


@pytest.mark.parametrize(("method", "seed"), thinned(MINDFUL, range(8), strength=1))
def test_the_tree_keeps_its_bound_with_what_was_there_before(method, seed):
    """Planted: a strategy that doesn't know of it, and the two together need several times as much."""
    rng = np.random.default_rng(seed)
    domain = Domain({f"c{i}": int(rng.integers(2, 5)) for i in range(7)})
    codes = {c: rng.integers(0, size, 500) for c, size in domain.sizes.items()}
    listed = [PAIRS_OF_SEVEN[i] for i in rng.permutation(21)[: rng.integers(1, 7)]]
    earlier = told(codes, listed, domain=domain)
    door = FakeDoor(
        domain, codes, Fraction(1, 20), rng, GDP, rounding=Fraction(1, 1 << 50), wild=bool(seed % 2)
    )
    bound = Triangulation.of(domain, listed).cells + int(rng.integers(0, 60))
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10, max_cells=bound)
    found = STRATEGIES[method].select(door, with_earlier(problem, earlier))
    assert Triangulation.of(domain, [*listed, *found.inside]).cells <= bound
    assert door.exhausted


PAIRS_OF_SEVEN = list(combinations([f"c{i}" for i in range(7)], 2))


@pytest.mark.parametrize("method", some(["mst", "auto", "aim", "one_shot"], 2))
def test_what_has_changed_is_asked_for_and_what_has_not_is_not(method):
    """Planted: comparing with independent columns, all three pairs look alike."""
    changed = ("c2", "c3")
    pairs = [("c0", "c1"), changed, ("c4", "c5")]
    door = door_of(chain(changed=[changed]), 1)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
    first = {
        kind: STRATEGIES[method]
        .select(
            door_of(door.codes, 2, door.budget * 4 / 5),
            with_earlier(problem, told(chain(), pairs) if kind == "beside" else ()),
        )
        .cliques
        for kind in ("alone", "beside")
    }
    held = {kind: [p for p in pairs if any(set(p) <= set(c) for c in first[kind])] for kind in first}
    assert held["alone"] == pairs
    if method == "mst":
        # It measures a tree of all columns whatever they show, the most telling pair first.
        assert first["beside"][0] == changed
    else:
        assert held["beside"] == [changed]


@pytest.mark.parametrize("seed", range(3))
def test_a_relation_of_many_values_that_has_moved_is_asked_for(seed):
    """Of 900 cells noise outweighs the distance from what was known; what is left of it is little."""
    domain, rng = Domain({"c0": 30, "c1": 30, "c2": 4}), np.random.default_rng(0)

    def moved(by, rows=1200):
        c0 = np.clip(np.rint(rng.normal(10 + by, 4, rows)), 0, 29).astype(int)
        return {"c0": c0, "c1": (c0 + rng.integers(0, 2, rows)) % 30, "c2": rng.integers(0, 4, rows)}

    door = door_of(moved(6), seed, Fraction(1, 2), domain)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
    before = told(moved(0), [("c0", "c1")], sigma=4.0, domain=domain)
    found = STRATEGIES["auto"].select(door, with_earlier(problem, before))
    assert ("c0", "c1") in found.cliques


def test_the_bound_that_noise_sets_is_beside_what_is_known(monkeypatch):
    """Planted: counted with it, a large model of earlier answers would leave no room for anything new."""
    monkeypatch.setattr(auto, "LEAST_CELLS", 0)
    monkeypatch.setattr(auto, "CELLS_A_SIGNAL", 0)
    door = door_of(chain(), 1)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
    earlier = told(door.codes, [("c0", "c1", "c2"), ("c1", "c2", "c4")])
    found = STRATEGIES["auto"].select(door, with_earlier(problem, earlier))
    assert ("c4", "c5") in found.cliques
    assert Triangulation.of(DOMAIN, [*(m.clique for m in earlier), *found.inside]).cells <= 2 * 64 + 2 * 24


@pytest.mark.parametrize("method", some(["aim", "privbayes"], 1))
def test_models_between_the_rounds_still_hold_what_earlier_releases_said(method):
    """Planted: a refit to this release's own answers alone forgets it after the first round."""
    codes = chain()
    door = door_of(codes, 1)
    problem = problem_of(door, one_way=door.budget / 5, structure=door.budget / 10)
    STRATEGIES[method].select(door, with_earlier(problem, told(codes, [("c0", "c1")])))
    last = door.estimates[-1]
    assert last is not problem.start.model
    assert np.abs(last.marginal(("c0", "c1")) - door.counts(("c0", "c1"))).sum() < 0.1 * door.rows
