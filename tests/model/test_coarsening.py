"""A coarse junction tree is one, holds the fine one, and stands for the same distribution."""

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import MarkovRandomField
from dpsynth.model.junction_tree import coarsened, junction_tree
from tests.model.calibrated import marginals


@pytest.mark.parametrize("worth", [-1, 0, 3, 40, 10_000])
def test_a_coarse_tree_is_a_junction_tree_around_the_fine_one(problems, worth):
    for p in problems:
        coarse = coarsened(p.tree, worth)
        assert all(coarse.home(c) is not None for c in p.tree.cliques), p.name
        assert set(p.tree.cliques[0]) <= set(coarse.cliques[0]), p.name
        met = {0}
        for edge in coarse.edges:
            assert edge.parent in met and edge.child not in met, p.name
            met.add(edge.child)
            shared = set(coarse.cliques[edge.child]) & set(coarse.cliques[edge.parent])
            assert edge.separator == p.domain.canonical(shared), p.name
        assert met == set(range(len(coarse.cliques))), p.name
        for column in p.domain.columns:
            held = {i for i, c in enumerate(coarse.cliques) if column in c}
            assert len(held) - sum(e.child in held and e.parent in held for e in coarse.edges) == 1, p.name


def test_marginals_of_the_coarse_tree_are_those_of_the_fine_one(problems):
    for p in problems:
        coarse = coarsened(p.tree, 30)
        potentials = [np.zeros(p.domain.shape(c)) for c in coarse.cliques]
        for clique, values in zip(p.tree.cliques, p.potentials, strict=True):
            home = coarse.home(clique)
            inside = [p.domain.sizes[c] if c in clique else 1 for c in coarse.cliques[home]]
            potentials[home] = potentials[home] + values.reshape(inside)
        fine, log_fine = marginals(p.tree, p.potentials, 1.0)
        beliefs, log_coarse = marginals(coarse, potentials, 1.0)
        assert log_coarse == pytest.approx(log_fine, rel=1e-12, abs=1e-9), p.name
        field = MarkovRandomField(coarse, beliefs, 1.0)
        for clique, belief in zip(p.tree.cliques, fine, strict=True):
            np.testing.assert_allclose(field.marginal(clique), belief, rtol=0, atol=1e-9, err_msg=p.name)


def test_cliques_are_joined_only_where_few_cells_are_added():
    domain = Domain({"a": 10, "b": 2, "c": 2, "d": 2, "e": 50})
    tree = junction_tree(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
    assert len(coarsened(tree, -100).cliques) == 4
    assert {frozenset(c) for c in coarsened(tree, 0).cliques} == {
        frozenset("ab"),
        frozenset("bcd"),
        frozenset("de"),
    }
    assert len(coarsened(tree, 10_000).cliques) == 1
