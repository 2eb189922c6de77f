"""Belief propagation gives the marginals of the explicit joint, cells of probability zero included."""

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import belief_propagation as views
from dpsynth.model.belief_propagation import BeliefPropagation
from dpsynth.model.junction_tree import junction_tree
from tests.model.calibrated import marginals


@pytest.fixture(autouse=True, params=[0, 1 << 16], ids=["summed by axes", "one matrix"])
def entries_of_one_matrix(request, monkeypatch):
    """Each claim holds for both ways in which views are computed."""
    monkeypatch.setattr(views, "_SMALL", request.param)


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


def at_work(problem):
    """A generator, belief propagation for random scopes inside the tree's cliques, and these."""
    rng = np.random.default_rng(list(problem.name.encode()))
    scopes = set()
    for clique in problem.tree.cliques:
        for _ in range(3):
            some = [c for c in clique if rng.random() < 0.6]
            scopes.add(BeliefPropagation.order(problem.domain, some))
    scopes = sorted(scopes)
    propagation = BeliefPropagation(problem.tree, scopes)
    assert list(propagation.scopes) == scopes
    return rng, propagation, scopes


def drawn(rng, problem, scopes, scale):
    return [rng.normal(0, scale, problem.domain.cells(s)) for s in scopes]


def summed_up(problem, scopes, parts, spread_over):
    columns = problem.domain.columns
    found = np.zeros(problem.domain.shape(columns))
    for scope, part in zip(scopes, parts, strict=True):
        found = found + spread_over(part.reshape(problem.domain.shape(scope)), scope, columns)
    return found


def normalised(log_joint):
    weights = np.exp(log_joint - log_joint.max())
    return weights / weights.sum()


def holes(rng, problem, scopes, parts, share):
    """Some cells closed, values of first columns as a whole among them; a row of the domain stays open."""
    kept = {c: int(rng.integers(s)) for c, s in problem.domain.sizes.items()}
    found = []
    for scope, part in zip(scopes, parts, strict=True):
        values = part.reshape(problem.domain.shape(scope)).copy()
        closed = np.asarray(rng.random(values.shape) < share)
        if scope:
            closed[rng.random(values.shape[0]) < share] = True
        closed[tuple(kept[c] for c in scope)] = False
        values[closed] = -np.inf
        found.append(values.reshape(-1))
    return found


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_potentials_over_any_scopes_give_the_joints_marginals(problems, marginal_of, spread_over, share):
    for p in problems:
        rng, propagation, scopes = at_work(p)
        potentials = holes(rng, p, scopes, drawn(rng, p, scopes, 3.0), share)
        log_joint = summed_up(p, scopes, potentials, spread_over)
        found, log_partition = propagation.calibrate(potentials)
        joint = normalised(log_joint)
        for scope, values in zip(scopes, found, strict=True):
            expected = marginal_of(joint, p.domain.columns, scope).reshape(-1)
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=f"{p.name} {scope}")
        for clique, belief in zip(p.tree.cliques, propagation.beliefs(p.tree.cliques, 7.0), strict=True):
            expected = 7 * marginal_of(joint, p.domain.columns, clique)
            np.testing.assert_allclose(belief, expected, rtol=0, atol=1e-11, err_msg=p.name)
        peak = log_joint.max()
        expected = peak + np.log(np.exp(log_joint - peak).sum())
        assert log_partition == pytest.approx(expected, rel=1e-10, abs=1e-9), p.name


def test_one_object_stays_exact_when_potentials_move_by_thousands(problems, marginal_of, spread_over):
    for p in problems[:80]:
        rng, propagation, scopes = at_work(p)
        shut = holes(rng, p, scopes, drawn(rng, p, scopes, 0.0), 0.2 * (len(p.name) % 2))
        for scale in (1.0, 5000.0, 0.0, 30.0, 1e5, 1.0):
            potentials = [s + d for s, d in zip(shut, drawn(rng, p, scopes, scale), strict=True)]
            found, _ = propagation.calibrate(potentials)
            joint = normalised(summed_up(p, scopes, potentials, spread_over))
            for scope, values in zip(scopes, found, strict=True):
                expected = marginal_of(joint, p.domain.columns, scope).reshape(-1)
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9, err_msg=f"{p.name} {scale}")


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_covariances_are_those_of_the_explicit_joint(problems, marginal_of, spread_over, share):
    for p in problems:
        rng, propagation, scopes = at_work(p)
        potentials = holes(rng, p, scopes, drawn(rng, p, scopes, 2.0), share)
        joint = normalised(summed_up(p, scopes, potentials, spread_over))
        propagation.calibrate(potentials)
        for _ in range(2):
            directions = drawn(rng, p, scopes, 1.0)
            along = summed_up(p, scopes, directions, spread_over)
            moved = joint * (along - (joint * along).sum())
            for scope, values in zip(scopes, propagation.covary(directions), strict=True):
                expected = marginal_of(moved, p.domain.columns, scope).reshape(-1)
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=f"{p.name} {scope}")


def test_covariances_are_the_derivatives_of_the_marginals(problems):
    for p in problems[:60]:
        rng, propagation, scopes = at_work(p)
        potentials, directions = drawn(rng, p, scopes, 1.0), drawn(rng, p, scopes, 1.0)
        propagation.calibrate(potentials)
        covariances = [c.copy() for c in propagation.covary(directions)]
        ends = []
        for step in (1e-5, -1e-5):
            moved = [q + step * d for q, d in zip(potentials, directions, strict=True)]
            ends.append([m.copy() for m in propagation.calibrate(moved)[0]])
        for found, up, down in zip(covariances, *ends, strict=True):
            np.testing.assert_allclose(found, (up - down) / 2e-5, rtol=0, atol=1e-8, err_msg=p.name)


def test_rows_of_a_separator_that_are_closed_throughout_give_no_nan():
    """Matrix products of -inf with zeros would be nan: short inner axes go through such products."""
    domain = Domain({"a": 3, "b": 4, "c": 5, "d": 2})
    tree = junction_tree(domain, [("a", "b", "c"), ("b", "c", "d")])
    rng = np.random.default_rng(1)
    for seed in range(60):
        beliefs = [rng.normal(0, 2, domain.shape(c)) for c in tree.cliques]
        at = seed % len(tree.cliques)
        clique = tree.cliques[at]
        beliefs[at][(*(slice(None),) * clique.index("b"), rng.random(4) < 0.5)] = -np.inf
        beliefs[at][(*(slice(None),) * clique.index("c"), slice(1, 4))] = -np.inf
        if np.isneginf(beliefs[at]).all():
            with pytest.raises(ValueError, match="no row"):
                marginals(tree, beliefs, 1.0)
            continue
        found, log_partition = marginals(tree, beliefs, 1.0)
        joint = np.einsum(
            np.exp(beliefs[0]), [*map("abcd".index, tree.cliques[0])],
            np.exp(beliefs[1]), [*map("abcd".index, tree.cliques[1])], range(4),
        )  # fmt: skip
        assert log_partition == pytest.approx(np.log(joint.sum()), rel=1e-12, abs=1e-12)
        for clique, values in zip(tree.cliques, found, strict=True):
            expected = np.einsum(joint, range(4), [*map("abcd".index, clique)]) / joint.sum()
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-13)


def test_nothing_left_possible_is_refused(problems):
    for p in problems[:40]:
        _, propagation, scopes = at_work(p)
        if not scopes:
            continue
        potentials = [np.zeros(p.domain.cells(s)) for s in scopes]
        potentials[-1][:] = -np.inf
        with pytest.raises(ValueError, match="no row"):
            propagation.calibrate(potentials)


def test_single_precision_agrees_with_double(problems):
    for p in problems:
        rng, double, scopes = at_work(p)
        single = BeliefPropagation(p.tree, scopes, "float32")
        shut = holes(rng, p, scopes, drawn(rng, p, scopes, 0.0), 0.1)
        for scale in (1.0, 20.0, 2.0):
            potentials = [s + d for s, d in zip(shut, drawn(rng, p, scopes, scale), strict=True)]
            potentials = [q.astype(np.float32) for q in potentials]
            directions = [d.astype(np.float32) for d in drawn(rng, p, scopes, 1.0)]
            exact, log_exact = double.calibrate([q.astype(float) for q in potentials])
            found, log_partition = single.calibrate(potentials)
            assert log_partition == pytest.approx(log_exact, rel=1e-4, abs=1e-4), p.name
            for e, f in zip(exact, found, strict=True):
                assert f.dtype == np.float32
                np.testing.assert_allclose(f, e, rtol=0, atol=1e-4, err_msg=p.name)
            moved = zip(
                double.covary([d.astype(float) for d in directions]), single.covary(directions), strict=True
            )
            for e, f in moved:
                np.testing.assert_allclose(f, e, rtol=0, atol=1e-4, err_msg=p.name)


def test_a_scope_outside_the_tree_is_refused():
    tree = junction_tree(Domain({"a": 2, "b": 2}), [("a",), ("b",)])
    with pytest.raises(ValueError, match="no clique that holds"):
        BeliefPropagation(tree, [("a", "b")])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_impossible_rows_stay_impossible_where_the_rest_of_the_tree_prefers_them(dtype):
    """A closed row with any share left, however small, would win against what outweighs it by e^200."""
    tree = junction_tree(Domain({"a": 4, "b": 2, "d": 3}), [("a", "d"), ("b", "d")])
    wanted = np.tile([0.0, 200.0, 0.0], (4, 1)).astype(dtype)
    shut = np.tile([0.0, -np.inf, 0.0], (2, 1)).astype(dtype)
    propagation = BeliefPropagation(tree, [("d", "a"), ("b", "d")], dtype)
    found, log_partition = propagation.calibrate(
        [np.ascontiguousarray(wanted.T).reshape(-1), shut.reshape(-1)]
    )
    np.testing.assert_allclose(found[0].reshape(3, 4), np.array([[1], [0], [1]]) / 8 * np.ones(4), atol=1e-6)
    assert not found[0].reshape(3, 4)[1].any()
    assert log_partition == pytest.approx(np.log(16), rel=1e-6)
