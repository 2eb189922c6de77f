"""Cliques to choose from, by enumeration of the workload; and the capacity of a model for them."""

from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.workload import Workload
from dpsynth.model import Triangulation
from dpsynth.wings.methods.cliques import Capacity, closure, overlap

WORKLOADS = [
    Workload(tuple("abcde")),
    Workload(tuple("abcde"), ways=2, weights=(("a", 3),)),
    Workload(tuple("abcde"), targets=("e",)),
    Workload(tuple("abcde"), marginals=((("a", "b", "c", "d"), 2), (("d", "e"), 1))),
]


def listed(workload):
    """The workload's marginals with their weights, one by one, in the workload's own unit."""
    ways = workload.ways if workload.ways is not None else (0 if workload.marginals else 3)
    found = dict.fromkeys(combinations(workload.columns, ways), 1.0) if ways else {}
    for clique in list(found):
        found[clique] *= prod(dict(workload.weights).get(c, 1) for c in clique)
    for clique, weight in workload.marginals:
        found[clique] = found.get(clique, 0.0) + float(weight)
    return {
        c: w * (workload.target_weight if set(c) & set(workload.targets) else 1) for c, w in found.items()
    }


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_closure_holds_what_lies_within_a_marginal_of_the_workload_and_nothing_else(workload):
    every = [c for k in range(1, 6) for c in combinations(workload.columns, k)]
    expected = [c for c in every if any(set(c) <= set(m) for m in listed(workload))]
    assert closure(workload, 10**6) == expected


def test_a_closure_too_large_leaves_out_the_widest_but_never_pairs():
    workload = Workload(tuple("abcdefgh"))
    pairs = comb(8, 1) + comb(8, 2)
    assert len(closure(workload, 0)) == len(closure(workload, pairs + comb(8, 3) - 1)) == pairs
    assert len(closure(workload, pairs + comb(8, 3))) == pairs + comb(8, 3)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_overlap_is_the_weighted_number_of_columns_shared_with_the_workload_s_marginals(workload):
    cliques = closure(workload, 10**6)
    direct = np.array([sum(w * len(set(c) & set(m)) for m, w in listed(workload).items()) for c in cliques])
    assert np.array(overlap(workload, cliques)) / direct == pytest.approx(
        np.full(len(cliques), overlap(workload, cliques[:1])[0] / direct[0])
    )


def test_room_is_never_exceeded_and_a_clique_without_room_is_refused():
    rng = np.random.default_rng(0)
    refused = foreseen = 0
    for trial in range(40):
        domain = Domain({f"c{i}": int(rng.integers(2, 6)) for i in range(7)})
        given_ = [("c0", "c1")] if trial % 2 else []
        bound = int(rng.integers(20, 500))
        most = max(bound, Triangulation.of(domain, given_).cells)
        capacity = Capacity(domain, given_, bound)
        cliques = [c for k in (2, 3) for c in combinations(domain.columns, k)]
        for at in rng.permutation(len(cliques)):
            clique = cliques[at]
            seen, before = capacity.fits(clique), capacity.cliques
            if capacity.add(clique):
                assert capacity.cliques == (*before, clique)
            else:
                refused += 1
                foreseen += not seen
                assert capacity.cliques == before and not capacity.fits(clique)
            assert Triangulation.of(domain, capacity.cliques).cells <= most
    assert refused > 200 and foreseen > 0.9 * refused


def test_what_lies_within_the_tree_always_has_room():
    domain = Domain(dict.fromkeys("abcd", 3))
    capacity = Capacity(domain, [("a", "b", "c")], 1)
    assert all(capacity.fits(p) and capacity.add(p) for p in combinations("abc", 2))
    assert not any(capacity.fits((x, "d")) or capacity.add((x, "d")) for (x,) in product("abc"))
