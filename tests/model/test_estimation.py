"""The fitted model minimises the weighted squared error, as an independent solver finds it."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth.columns import measurement
from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement, estimated_total
from dpsynth.model import FitOptions, estimate
from dpsynth.model.belief_propagation import BeliefPropagation
from dpsynth.model.factor import spread, sum_to
from dpsynth.model.least_squares import targets
from tests.examples import cases
from tests.model.calibrated import marginals
from tests.model.least_loss import least_loss
from tests.thinned import some


def solvable(problems, most=800):
    return [p for p in problems if any(p.cliques) and p.domain.cells(p.domain.columns) <= most]


def rank(domain):
    return {c: i for i, c in enumerate(BeliefPropagation.order(domain, domain.columns))}


def bounds(problem, ms):
    return least_loss(problem.domain, ms, estimated_total(ms))


def refitted(model):
    """The beliefs again, from the log-potentials that calibrated beliefs have."""
    potentials = []
    with np.errstate(divide="ignore"):
        potentials = [np.log(b) for b in model.beliefs]
        for e in model.tree.edges:
            clique = model.tree.cliques[e.child]
            shared = sum_to(model.beliefs[e.child], clique, e.separator)
            held = np.where(shared > 0, np.log(shared), 0.0)
            potentials[e.child] = potentials[e.child] - spread(held, e.separator, clique)
    return marginals(model.tree, potentials, model.total)[0]


def test_no_joint_table_explains_the_measurements_better_than_the_model(problems, measure):
    chosen = solvable(problems)
    assert len(chosen) > 0.7 * len(problems)
    for p in chosen:
        ms = measure(p, 300)
        fit = estimate(p.domain, ms, FitOptions(tolerance=1e-9))
        low, high = bounds(p, ms)
        assert high - low <= 1e-7 * max(high, 1), p.name
        assert fit.objective == pytest.approx(high, rel=1e-6, abs=1e-6), (p.name, fit.iterations)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 40, 2_000, 100_000])
def test_no_joint_table_of_any_size_explains_them_better(problems, measure, rows):
    for p in solvable(problems):
        ms = measure(p, rows)
        fit = estimate(p.domain, ms, FitOptions(tolerance=1e-9))
        low, high = bounds(p, ms)
        assert high - low <= 1e-6 * max(high, 1), p.name
        assert fit.objective == pytest.approx(high, rel=1e-6, abs=1e-6), (p.name, fit.iterations)


@pytest.mark.parametrize("options", some([
    {}, {"options": FitOptions(tolerance=0.3)}, {"options": FitOptions(tolerance=1e-6)},
    {"options": FitOptions(max_iterations=0)}, {"options": FitOptions(max_iterations=1)},
    {"options": FitOptions(max_iterations=7)},
    {"prior_rows": 20.0}, {"total": 123.4},
], 2))  # fmt: skip
def test_the_optimum_is_at_most_the_objective(problems, measure, options):
    for p in solvable(problems)[: cases(60, part=4)]:
        ms = measure(p, 300)
        fit = estimate(p.domain, ms, **options)
        low, _ = least_loss(p.domain, ms, fit.model.total)
        assert low <= fit.objective + 1e-9 * max(1.0, fit.objective), p.name


def test_the_default_tolerance_loses_less_likelihood_than_one_noisy_cell_would(problems, measure):
    for p in solvable(problems):
        ms = measure(p, 300)
        assert estimate(p.domain, ms).objective <= bounds(p, ms)[1] + 0.25, p.name


def test_the_reported_objective_is_that_of_the_models_own_marginals(problems, measure):
    for p in solvable(problems):
        ms = measure(p, 300)
        fit = estimate(p.domain, ms)
        found = sum(
            0.5 / t.variance * float(np.square(fit.model.marginal(t.clique).ravel() - t.values).sum())
            for t in targets(ms, rank(p.domain))
        )
        assert fit.objective == pytest.approx(found, rel=1e-9, abs=1e-9), p.name


def test_a_model_is_a_markov_random_field_of_the_measured_cliques(problems, measure):
    for p in solvable(problems):
        model = estimate(p.domain, measure(p, 300)).model
        assert all(model.tree.home(c) is not None for c in p.cliques), p.name
        for belief, same in zip(model.beliefs, refitted(model), strict=True):
            assert belief.min() >= 0 and belief.sum() == pytest.approx(model.total), p.name
            np.testing.assert_allclose(same, belief, atol=1e-6 * model.total, err_msg=p.name)


def test_a_model_factorises_over_the_measured_pairs_alone(problems, measure):
    """What the tree's clique of all five columns could hold beyond them stays zero."""
    p = next(p for p in problems if p.name == "all pairs, holes 0.0")
    model = estimate(p.domain, measure(p, 3000), prior_rows=5.0).model
    log_joint = np.log(model.marginal(p.domain.columns))
    for i, j, k in combinations(range(5), 3):
        third = np.diff(np.diff(np.diff(log_joint, axis=i), axis=j), axis=k)
        np.testing.assert_allclose(third, 0, atol=1e-8)
    assert np.abs(np.diff(np.diff(log_joint, axis=0), axis=1)).max() > 1e-3


def test_among_equal_explanations_the_model_has_most_entropy():
    domain = Domain({"a": 2, "b": 3})
    a = Measurement(("a",), np.array([30, 10]), "gaussian", 1.0)
    b = Measurement(("b",), np.array([20, 10, 10]), "gaussian", 1.0)
    model = estimate(domain, [a, b], FitOptions(tolerance=1e-12), total=40.0).model
    np.testing.assert_allclose(model.marginal(("a", "b")), np.outer([30, 10], [20, 10, 10]) / 40, rtol=1e-5)


def test_exact_marginals_of_a_chain_are_reproduced():
    rng = np.random.default_rng(3)
    joint = rng.integers(1, 40, (3, 4, 2)).astype(np.int64)
    domain = Domain({"a": 3, "b": 4, "c": 2})
    ms = [
        Measurement(("a", "b"), joint.sum(axis=2), "gaussian", 1.0),
        Measurement(("c", "b"), joint.sum(axis=0).T, "gaussian", 1.0),
    ]
    model = estimate(domain, ms, FitOptions(tolerance=1e-12, max_iterations=20_000)).model
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


def test_progress_counts_each_step_once_and_no_step_is_taken_beyond_the_limit(problems, measure):
    p = problems[0]
    steps = []
    fit = estimate(
        p.domain, measure(p, 300), FitOptions(tolerance=0.0, max_iterations=17, progress=steps.append)
    )
    assert steps == list(range(1, 18)) and fit.iterations == 17


def test_disconnected_parts_are_independent_and_fitted_each_by_itself():
    rng = np.random.default_rng(5)
    domain = Domain({"a": 3, "b": 2, "c": 4, "d": 2})
    ab = Measurement(("a", "b"), rng.integers(0, 50, (3, 2)), "gaussian", 4.0)
    cd = Measurement(("c", "d"), rng.integers(-9, 50, (4, 2)), "gaussian", 6.0)
    both = estimate(domain, [ab, cd], FitOptions(tolerance=1e-10), total=170.0)
    alone = [estimate(domain, [m], FitOptions(tolerance=1e-10), total=170.0) for m in (ab, cd)]
    assert both.objective == pytest.approx(sum(f.objective for f in alone), rel=1e-6)
    joint = both.model.marginal(("a", "b", "c", "d"))
    expected = np.multiply.outer(both.model.marginal(("a", "b")), both.model.marginal(("c", "d"))) / 170
    np.testing.assert_allclose(joint, expected, atol=1e-9)


@pytest.mark.parametrize(("rows", "scale"), some([
    (100_000, 0.3), (5, 40.0), (0, 3.0), (10**8, 2.0),
    (300, 1e3), (300, 1e6),
], 2))  # fmt: skip
def test_noise_may_be_tiny_or_huge_for_the_table(problems, rows, scale):
    for p in solvable(problems)[: cases(40)]:
        rng = p.rng()
        table = rng.multinomial(rows, rng.dirichlet(np.full(p.domain.cells(p.domain.columns), 0.3)))
        table = table.reshape(p.domain.shape(p.domain.columns))
        ms = []
        for clique in dict.fromkeys(p.cliques):
            counts = sum_to(table, p.domain.columns, clique)
            noisy = np.rint(counts + rng.normal(0, scale, counts.shape)).astype(np.int64)
            ms.append(Measurement(clique, noisy, "gaussian", scale))
        fit = estimate(p.domain, ms, FitOptions(tolerance=1e-6))
        low, high = bounds(p, ms)
        # So many rows a unit of noise leave the reference itself fewer digits.
        room = 1e-4 * max(1.0, high) + (high - low)
        assert low - room <= fit.objective <= high + room, (p.name, low, high, fit.iterations)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_model_is_valid_after_any_number_of_steps(problems, measure, steps):
    for p in problems:
        fit = estimate(p.domain, measure(p, 300), FitOptions(max_iterations=steps))
        assert fit.iterations <= steps
        for belief in fit.model.beliefs:
            assert np.isfinite(belief).all() and belief.min() >= 0, p.name
            assert belief.sum() == pytest.approx(fit.model.total, rel=1e-9), p.name
        for e in fit.model.tree.edges:
            child, parent = (
                sum_to(fit.model.beliefs[i], fit.model.tree.cliques[i], e.separator)
                for i in (e.child, e.parent)
            )
            np.testing.assert_allclose(child, parent, atol=1e-9 * fit.model.total, err_msg=p.name)


def test_single_precision_reaches_nearly_the_same_objective(problems, measure):
    for p in solvable(problems)[:60]:
        ms = measure(p, 300)
        double = estimate(p.domain, ms)
        single = estimate(p.domain, ms, FitOptions(precision="float32"))
        assert all(b.dtype == np.float32 for b in single.model.beliefs)
        assert single.objective == pytest.approx(double.objective, rel=1e-3, abs=1e-3), p.name


def test_a_total_alone_or_single_values_leave_a_uniform_model():
    domain = Domain({"a": 1, "b": 3, "c": 1})
    total = Measurement((), np.array(12), "gaussian", 2.0)
    lone = Measurement(("a", "c"), np.array([[15]]), "gaussian", 2.0)
    for ms, rows in (([total], 12.0), ([lone], 15.0), ([total, lone], 13.5)):
        fit = estimate(domain, ms)
        assert fit.model.total == pytest.approx(rows)
        np.testing.assert_allclose(fit.model.marginal(("b",)), np.full(3, rows / 3))


@pytest.mark.slow
def test_a_wrong_noise_variance_or_a_lost_measurement_would_be_noticed(problems, measure, monkeypatch):
    """Planted faults, so that the comparison with the independent solver is known to have teeth."""
    wrong, lost, tried = 0, 0, 0
    right = measurement.noise_variance
    for p in solvable(problems, most=60):
        ms = measure(p, 300)
        if sum(bool(m.clique) for m in ms) < 3:
            continue
        tried += 1
        _, best = bounds(p, ms)
        rows = estimated_total(ms)
        with monkeypatch.context() as m:
            m.setattr(measurement, "noise_variance", lambda n, s: right(n, s) * (2 if n == "laplace" else 1))
            faulty = estimate(p.domain, ms, FitOptions(tolerance=1e-9), total=rows)
        wrong += faulty.objective != pytest.approx(best, rel=1e-6, abs=1e-6)
        less = estimate(p.domain, ms[1:-2], FitOptions(tolerance=1e-9), total=rows)
        lost += less.objective != pytest.approx(best, rel=1e-6, abs=1e-6)
    assert tried > 8 and wrong > tried / 2 and lost > tried / 2, (tried, wrong, lost)
