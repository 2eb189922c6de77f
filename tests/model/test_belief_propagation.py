"""Belief propagation gives the marginals of the explicit joint, cells of probability zero included."""

import numpy as np
import pytest

from dpsynth.domain.domain import Domain
from dpsynth.model.belief_propagation import marginals
from dpsynth.model.junction_tree import junction_tree


def test_marginals_and_log_partition_are_those_of_the_explicit_joint(problems, marginal_of):
    for p in problems:
        joint, log_z = p.joint
        beliefs, log_partition = marginals(p.tree, p.potentials, 1.0)
        for clique, belief in zip(p.tree.cliques, beliefs, strict=True):
            expected = marginal_of(joint, p.domain.columns, clique)
            np.testing.assert_allclose(belief, expected, rtol=0, atol=1e-9, err_msg=p.name)
        assert log_partition == pytest.approx(log_z, rel=1e-12, abs=1e-9), p.name


def test_cells_of_probability_zero_stay_exactly_zero(problems):
    closed = 0
    for p in problems:
        beliefs, _ = marginals(p.tree, p.potentials, 10.0)
        for potential, belief in zip(p.potentials, beliefs, strict=True):
            shut = belief[np.isneginf(potential)]
            assert not shut.any(), p.name
            closed += shut.size
    assert closed > 100


def test_marginals_sum_to_the_total_and_agree_on_separators(problems, marginal_of):
    for p in problems:
        beliefs, _ = marginals(p.tree, p.potentials, 1234.5)
        for belief in beliefs:
            assert belief.sum() == pytest.approx(1234.5, rel=1e-12), p.name
        for e in p.tree.edges:
            child = marginal_of(beliefs[e.child], p.tree.cliques[e.child], e.separator)
            parent = marginal_of(beliefs[e.parent], p.tree.cliques[e.parent], e.separator)
            np.testing.assert_allclose(child, parent, atol=1e-9 * 1234.5, err_msg=p.name)


def test_the_given_potentials_are_left_alone(problems):
    for p in problems[:30]:
        before = [q.copy() for q in p.potentials]
        marginals(p.tree, p.potentials, 1.0)
        for q, r in zip(before, p.potentials, strict=True):
            np.testing.assert_array_equal(q, r)


def test_potentials_far_beyond_the_range_of_exp_do_not_overflow():
    tree = junction_tree(Domain({"a": 2, "b": 2}), [("a",), ("b",)])
    beliefs, log_partition = marginals(tree, [np.array([1e5, 1e5]), np.array([-1e5, 0.0])], 4.0)
    np.testing.assert_allclose(beliefs[0], [2.0, 2.0])
    np.testing.assert_allclose(beliefs[1], [0.0, 4.0])
    assert log_partition == pytest.approx(1e5 + np.log(2))
