"""A Markov random field's marginals are the joint's, for any columns in any order."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth.model import MarkovRandomField
from dpsynth.model.belief_propagation import marginals
from dpsynth.model.estimation import potentials_of
from dpsynth.model.factor import spread, sum_to


def field(problem, total):
    beliefs, _ = marginals(problem.tree, problem.potentials, total)
    return MarkovRandomField(problem.tree, beliefs, total)


def test_any_columns_in_any_order_have_the_joints_marginal(problems, marginal_of):
    for p in problems:
        model, (joint, _), rng = field(p, 50.0), p.joint, p.rng()
        subsets = [s for n in range(len(p.domain.columns) + 1) for s in combinations(p.domain.columns, n)]
        for subset in subsets:
            clique = tuple(str(c) for c in rng.permutation(list(subset)))
            found = model.marginal(clique)
            expected = 50.0 * marginal_of(joint, p.domain.columns, clique)
            np.testing.assert_allclose(found, expected, rtol=0, atol=50e-9, err_msg=f"{p.name} {clique}")


def test_no_marginal_is_negative_and_each_sums_to_the_total(problems):
    for p in problems:
        model = field(p, 7.0)
        for pair in combinations(p.domain.columns, 2):
            found = model.marginal(pair)
            assert found.min() >= 0 and found.sum() == pytest.approx(7.0), p.name


def test_log_potentials_of_calibrated_marginals_give_these_marginals_back(problems):
    for p in problems:
        model = field(p, 300.0)
        again, _ = marginals(p.tree, potentials_of(p.tree, model.beliefs), 300.0)
        for belief, same in zip(model.beliefs, again, strict=True):
            np.testing.assert_allclose(same, belief, rtol=1e-9, atol=1e-9, err_msg=p.name)


def test_the_fingerprint_changes_with_the_last_bit_of_any_belief_and_with_nothing_else(problems):
    for p in problems[:40]:
        model = field(p, 9.0)
        assert model.fingerprint() == field(p, 9.0).fingerprint(), p.name
        for i in range(len(model.beliefs)):
            beliefs = [b.copy() for b in model.beliefs]
            beliefs[i].reshape(-1)[-1] = np.nextafter(beliefs[i].reshape(-1)[-1], np.inf)
            other = MarkovRandomField(p.tree, tuple(beliefs), 9.0)
            assert other.fingerprint() != model.fingerprint(), p.name


def test_summing_and_spreading_put_axes_where_the_names_say():
    values = np.arange(24.0).reshape(2, 3, 4)
    abc = ("a", "b", "c")
    np.testing.assert_array_equal(sum_to(values, abc, ("c", "a")), values.sum(axis=1).T)
    np.testing.assert_array_equal(sum_to(values, abc, ("b", "c", "a")), values.transpose(1, 2, 0))
    assert sum_to(values, abc, ()).item() == values.sum()
    ca = values[:, 0, :].T
    np.testing.assert_array_equal(spread(ca, ("c", "a"), abc), values[:, :1, :])
