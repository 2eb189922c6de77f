"""MST: without noise it is the maximum spanning tree of the scores, found by trying all trees."""

from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.workload import Workload
from dpsynth.testing import STRATEGIES, FakeDoor, problem_of
from tests.thinned import thinned

MST = STRATEGIES["mst"]


class Scored(FakeDoor):
    """Chooses the best score, from distances that are laid down."""

    distances: ClassVar = {}

    def choose(self, candidates, estimates, price, penalties=(), weights=()):
        self._pay("choose", candidates, price)
        self.penalties.append(tuple(penalties))
        self.weights.append(tuple(weights))
        self.estimates.append(estimates)
        scores = [
            w * (self.distances[c] - off) for c, off, w in zip(candidates, penalties, weights, strict=True)
        ]
        return int(np.argmax(scores))


def laid_down(domain, seed, workload=None, max_cells=10**6, wanted=()):
    rng = np.random.default_rng(seed)
    codes = {c: rng.integers(0, n, 100) for c, n in domain.sizes.items()}
    door = Scored(domain, codes, Fraction(1), rng)
    door.distances = {p: int(rng.integers(0, 60)) for p in combinations(domain.columns, 2)}
    one_way, structure = Fraction(3, 10), Fraction(1, 10)
    return door, problem_of(
        door, one_way=one_way, structure=structure, workload=workload, max_cells=max_cells, wanted=wanted
    )


def is_forest(edges):
    part = {c: c for e in edges for c in e}
    for a, b in edges:
        if part[a] == part[b]:
            return False
        part = {c: part[a] if p == part[b] else p for c, p in part.items()}
    return True


def heaviest_tree(columns, scores, wanted):
    trees = (t for t in combinations(scores, len(columns) - 1) if set(wanted) <= set(t) and is_forest(t))
    return max(sum(scores[e] for e in tree) for tree in trees)


@pytest.mark.parametrize(
    ("seed", "wanted", "targets"),
    thinned(range(12), ((), (("a", "c"),), (("a", "e"), ("b", "e"))), ((), ("c",)), strength=1),
)
def test_without_noise_it_is_the_maximum_spanning_tree_of_the_scores(seed, wanted, targets):
    rng = np.random.default_rng(seed)
    domain = Domain({c: int(s) for c, s in zip("abcde", rng.integers(1, 5, 5), strict=True)})
    workload = Workload(domain.columns, targets=targets)
    door, problem = laid_down(domain, seed, workload, wanted=wanted)
    found = MST.select(door, problem)
    assert is_forest(found.cliques) and len(found.cliques) == 4
    assert found.cliques[: len(wanted)] == wanted
    # A cell's error at a fourth of what measuring may cost.
    error = door.cell_error(Fraction(6, 10) / 4)
    pairs = list(door.distances)
    heaviest = max(workload.weight(p) for p in pairs)
    times = {p: round(1000 * workload.weight(p) / heaviest) if targets else 1 for p in pairs}
    net = {p: times[p] * (d - round(error * domain.cells(p))) for p, d in door.distances.items()}
    assert sum(net[e] for e in found.cliques) == heaviest_tree(domain.columns, net, wanted)
    assert [price for kind, _, price in door.asked if kind == "choose"] == [
        Fraction(1, 10) / (4 - len(wanted))
    ] * (4 - len(wanted))


@pytest.mark.parametrize("seed", range(20))
def test_the_heaviest_pairs_that_the_bound_leaves_room_for_are_taken_and_no_room_is_wasted(seed):
    rng = np.random.default_rng(seed)
    domain = Domain({c: int(s) for c, s in zip("abcdef", rng.integers(2, 9, 6), strict=True)})
    bound = int(rng.integers(sum(domain.sizes.values()), 200))
    door, problem = laid_down(domain, seed, max_cells=bound)
    found = MST.select(door, problem)

    def cells(edges):
        lone = [c for c in domain.columns if not any(c in e for e in edges)]
        return sum(map(domain.cells, edges)) + sum(domain.sizes[c] for c in lone)

    assert is_forest(found.cliques) and cells(found.cliques) <= bound
    for pair in door.distances:
        more = (*found.cliques, pair)
        assert pair in found.cliques or not is_forest(more) or cells(more) > bound


def test_every_choice_is_made_against_independent_columns():
    door, problem = laid_down(Domain(dict.fromkeys("abcd", 3)), 1)
    MST.select(door, problem)
    assert door.estimates and all(e is problem.start.model for e in door.estimates)


def test_pairs_that_the_workload_has_no_use_for_still_rank_by_their_distance():
    domain = Domain(dict.fromkeys("abcd", 2))
    listed = Workload(domain.columns, marginals=((("a", "b"), 1),))
    door, problem = laid_down(domain, 4, listed)
    door.distances = dict.fromkeys(combinations("abcd", 2), 10) | {("a", "c"): 50, ("b", "d"): 40}
    assert set(MST.select(door, problem).cliques) == {("a", "b"), ("a", "c"), ("b", "d")}
