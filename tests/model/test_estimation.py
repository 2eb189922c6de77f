"""The fitted model minimises the weighted squared error, as an independent solver finds it."""

import numpy as np
import pytest
from scipy.optimize import nnls

from dpsynth.domain.domain import Domain
from dpsynth.domain.measurement import Measurement
from dpsynth.model import estimate
from dpsynth.model.belief_propagation import marginals
from dpsynth.model.estimation import estimated_total, potentials_of, targets
from dpsynth.model.junction_tree import junction_tree


def design(domain, measurements):
    """Matrix from the joint's cells to all measured cells, weighted; and the weighted targets."""
    shape = domain.shape(domain.columns)
    codes = dict(zip(domain.columns, np.indices(shape).reshape(len(shape), -1), strict=True))
    blocks, aims = [], []
    for m in measurements:
        if not m.clique:
            continue
        cell = np.ravel_multi_index([codes[c] for c in m.clique], domain.shape(m.clique))
        block = np.zeros((m.values.size, cell.size))
        block[cell, np.arange(cell.size)] = 1
        blocks.append(block / m.stddev)
        aims.append(m.values.ravel() / m.stddev)
    return np.concatenate(blocks), np.concatenate(aims)


def best_objective(domain, measurements, rows):
    """Least weighted squared error over all joint tables of so many rows, by non-negative least squares.

    Targets of the same clique count by their weighted mean, as in ``estimate``.
    """
    matrix, aims = design(domain, measurements)
    weight = 1e5
    table, _ = nnls(np.vstack([matrix, np.full(matrix.shape[1], weight)]), np.append(aims, weight * rows))
    table *= rows / table.sum()
    return table, 0.5 * float(np.square(matrix @ table - aims).sum())


def constant(tree, measurements):
    """What weighted means leave out of the sum of squares: the same for every model."""
    apart = sum(0.5 / m.variance * float(np.square(m.values).sum()) for m in measurements if m.clique)
    return apart - sum(
        0.5 * t.precision * float(np.square(t.values).sum()) for t in targets(tree, measurements)
    )


def solvable(problems, most=150):
    for p in problems:
        if any(p.cliques) and p.domain.cells(p.domain.columns) <= most:
            yield p


def least(problem, measurements):
    tree = junction_tree(problem.domain, problem.cliques)
    _, best = best_objective(problem.domain, measurements, estimated_total(measurements))
    return best - constant(tree, measurements)


def test_no_joint_table_explains_the_measurements_better_than_the_model(problems, measure):
    chosen = list(solvable(problems, most=40))[:32]
    assert len(chosen) == 32
    for p in chosen:
        ms = measure(p, 300)
        fit = estimate(p.domain, ms, tolerance=1e-12, max_iterations=2000)
        assert fit.objective == pytest.approx(least(p, ms), rel=3e-4, abs=1e-4), (p.name, fit.iterations)


def test_the_default_tolerance_loses_less_likelihood_than_one_noisy_cell_would(problems, measure):
    chosen = list(solvable(problems))
    assert len(chosen) > 50
    for p in chosen:
        ms = measure(p, 300)
        assert estimate(p.domain, ms).objective <= least(p, ms) + 0.25, p.name


def test_the_independent_solver_meets_its_optimality_conditions(problems, measure):
    for p in list(solvable(problems))[:30]:
        ms = measure(p, 300)
        rows = estimated_total(ms)
        table, best = best_objective(p.domain, ms, rows)
        matrix, aims = design(p.domain, ms)
        gradient = matrix.T @ (matrix @ table - aims)
        assert gradient @ table - rows * gradient.min() <= 1e-5 * max(best, 1), p.name


def test_the_reported_objective_is_that_of_the_models_own_marginals(problems, measure):
    for p in solvable(problems):
        ms = measure(p, 300)
        fit = estimate(p.domain, ms)
        found = sum(
            0.5 * t.precision * float(np.square(fit.model.marginal(t.clique) - t.values).sum())
            for t in targets(fit.model.tree, ms)
        )
        assert fit.objective == pytest.approx(found, rel=1e-9, abs=1e-9), p.name


def test_a_model_is_a_markov_random_field_of_the_measured_cliques(problems, measure):
    for p in solvable(problems):
        model = estimate(p.domain, measure(p, 300)).model
        assert all(model.tree.home(c) is not None for c in p.cliques), p.name
        for belief in model.beliefs:
            assert belief.min() >= 0 and belief.sum() == pytest.approx(model.total), p.name
        again, _ = marginals(model.tree, potentials_of(model.tree, model.beliefs), model.total)
        for belief, same in zip(model.beliefs, again, strict=True):
            np.testing.assert_allclose(same, belief, atol=1e-6 * model.total, err_msg=p.name)


def test_among_equal_explanations_the_model_has_most_entropy():
    domain = Domain({"a": 2, "b": 3})
    a = Measurement(("a",), np.array([30, 10]), "gaussian", 1.0)
    b = Measurement(("b",), np.array([20, 10, 10]), "gaussian", 1.0)
    model = estimate(domain, [a, b], total=40.0, tolerance=1e-12).model
    np.testing.assert_allclose(model.marginal(("a", "b")), np.outer([30, 10], [20, 10, 10]) / 40, rtol=1e-5)


def test_exact_marginals_of_a_chain_are_reproduced():
    rng = np.random.default_rng(3)
    joint = rng.integers(1, 40, (3, 4, 2)).astype(np.int64)
    domain = Domain({"a": 3, "b": 4, "c": 2})
    ms = [
        Measurement(("a", "b"), joint.sum(axis=2), "gaussian", 1.0),
        Measurement(("c", "b"), joint.sum(axis=0).T, "gaussian", 1.0),
    ]
    model = estimate(domain, ms, tolerance=1e-12, max_iterations=20_000).model
    np.testing.assert_allclose(model.marginal(("a", "b")), joint.sum(axis=2), atol=1e-3)
    expected = joint.sum(axis=2)[:, :, None] * joint.sum(axis=0) / joint.sum(axis=(0, 2))[:, None]
    np.testing.assert_allclose(model.marginal(("a", "b", "c")), expected, atol=1e-3)


def test_the_total_is_the_minimum_variance_mean_of_all_sums():
    ms = [
        Measurement((), np.array(1000), "gaussian", 5.0),
        Measurement(("a",), np.array([500, 520]), "gaussian", 10.0),
        Measurement(("a", "b"), np.full((2, 3), 160), "laplace", 4.0),
    ]
    sums, variances = [1000, 1020, 960], [m.variance * m.values.size for m in ms]
    weights = 1 / np.array(variances)
    expected = float((weights * sums).sum() / weights.sum())
    assert estimated_total(ms) == pytest.approx(expected, rel=1e-12)
    rng = np.random.default_rng(0)
    spread = []
    for _ in range(400):
        noisy = [m.values + np.rint(rng.normal(0, m.stddev, m.values.shape)).astype(int) for m in ms]
        again = [Measurement(m.clique, v, m.noise, m.scale) for m, v in zip(ms, noisy, strict=True)]
        spread.append(estimated_total(again))
    assert np.var(spread) == pytest.approx(1 / weights.sum(), rel=0.3)


def test_a_public_number_of_rows_overrules_every_noisy_one():
    ms = [
        Measurement(("a",), np.array([500, 520]), "gaussian", 0.1),
        Measurement((), np.array(77), "none", 0.0),
    ]
    assert estimated_total(ms) == 77.0
    assert estimate(Domain({"a": 2}), ms).model.total == 77.0


@pytest.mark.parametrize("values", [[0, 0], [-40, 12], [-5, -5]])
def test_a_table_that_looks_empty_still_has_a_model_of_one_row(values):
    ms = [Measurement(("a",), np.array(values), "gaussian", 30.0)]
    model = estimate(Domain({"a": 2}), ms).model
    assert model.total == 1.0
    assert np.isfinite(model.marginal(("a",))).all() and model.marginal(("a",)).sum() == pytest.approx(1)


def test_without_measurements_the_model_is_uniform():
    model = estimate(Domain({"a": 2, "b": 4}), [], total=8.0).model
    np.testing.assert_allclose(model.marginal(("b", "a")), np.ones((4, 2)))


def test_measurements_of_one_clique_combine_by_precision_whatever_their_axes():
    tree = junction_tree(Domain({"a": 2, "b": 2}), [("a", "b")])
    ab = np.array([[1, 2], [3, 4]])
    ms = [Measurement(("a", "b"), ab, "gaussian", 1.0), Measurement(("b", "a"), 5 * ab.T, "gaussian", 2.0)]
    (target,) = targets(tree, ms)
    assert target.clique == ("a", "b") and target.precision == pytest.approx(1.25)
    np.testing.assert_allclose(target.values, (ab + 5 * ab / 4) / 1.25)


def test_a_measurement_outside_the_tree_is_refused():
    tree = junction_tree(Domain({"a": 2, "b": 2}), [("a",), ("b",)])
    with pytest.raises(ValueError, match="no clique that holds"):
        targets(tree, [Measurement(("a", "b"), np.ones((2, 2), int), "gaussian", 1.0)])


def test_progress_counts_each_step_once_and_no_step_is_taken_beyond_the_limit(problems, measure):
    p = problems[0]
    steps = []
    fit = estimate(p.domain, measure(p, 300), tolerance=0.0, max_iterations=17, progress=steps.append)
    assert steps == list(range(1, 18)) and fit.iterations == 17


def test_a_fit_started_at_its_own_end_gets_no_worse(problems, measure):
    for p in list(solvable(problems))[:30]:
        ms = measure(p, 300)
        first = estimate(p.domain, ms)
        start = potentials_of(first.model.tree, first.model.beliefs)
        again = estimate(p.domain, ms, start=start)
        assert again.objective <= first.objective * (1 + 1e-9) + 1e-9, p.name
