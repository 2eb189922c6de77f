"""The dual's values, slopes and curvature are those of the explicit joint."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpsynth.columns.domain import Domain
from dpsynth.model.belief_propagation import BeliefPropagation
from dpsynth.model.estimation import Likelihood
from dpsynth.model.junction_tree import junction_tree
from dpsynth.model.least_squares import Target
from tests.examples import cases
from tests.model.least_loss import codes

ROWS = 70.0


def random_problem(seed):
    """A likelihood of targets and a centre with impossible cells, and the dense things."""
    rng = np.random.default_rng(seed)
    domain = Domain({c: int(rng.integers(1, 5)) for c in "abcd"[: rng.integers(2, 5)]})
    pick = {
        BeliefPropagation.order(domain, [c for c in domain.columns if rng.random() < 0.6]) for _ in range(4)
    }
    cliques = sorted(pick - {()}) or [BeliefPropagation.order(domain, domain.columns[:1])]
    targets = []
    for clique in cliques:
        variance = float(rng.uniform(1, 20))
        targets.append(Target(clique, rng.normal(10, 8, domain.cells(clique)), variance))
    closed = rng.random(domain.shape(cliques[0])) < 0.2
    closed[(0,) * closed.ndim] = False
    centre = {(c,): rng.normal(size=s) for c, s in domain.sizes.items()}
    centre[cliques[0]] = centre.get(cliques[0], 0.0) + np.where(closed, -np.inf, 0.0)
    tree = junction_tree(domain, cliques)
    return rng, Likelihood(tree, targets, centre, ROWS, "float64"), *dense(domain, targets, centre)


def dense(domain, targets, centre):
    """Matrix from the joint's cells to all answers, and the centre's log-probabilities."""
    values, cells = codes(domain), domain.cells(domain.columns)
    blocks = []
    for t in targets:
        block = np.zeros((domain.cells(t.clique), cells))
        index = np.ravel_multi_index([values[c] for c in t.clique], domain.shape(t.clique))
        block[index, np.arange(cells)] = 1
        blocks.append(block)
    log_centre = np.zeros(cells)
    for clique, part in centre.items():
        log_centre = log_centre + part.reshape(domain.shape(clique))[tuple(values[c] for c in clique)]
    return np.concatenate(blocks), log_centre


def shares(log_weights):
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def test_the_models_answers_their_variances_and_covariances_are_the_joints():
    for seed in range(cases(100)):
        rng, likelihood, matrix, log_centre = random_problem(seed)
        for scale in (0.3, 30.0):
            tilt, direction = rng.normal(0, scale, len(matrix)), rng.normal(size=len(matrix))
            p = shares(log_centre - matrix.T @ tilt)
            counts = likelihood.model(tilt)
            np.testing.assert_allclose(counts, ROWS * (matrix @ p), atol=1e-9)
            covariance = ROWS * (matrix * p) @ matrix.T - ROWS * np.outer(matrix @ p, matrix @ p)
            np.testing.assert_allclose(likelihood.covary(direction), covariance @ direction, atol=1e-9)
            np.testing.assert_allclose(likelihood.spread(counts), np.diag(covariance), atol=1e-9)


def test_the_loss_is_that_of_the_noisy_answers_for_every_models_counts():
    for seed in range(cases(100)):
        rng, likelihood, matrix, _ = random_problem(seed)
        noisy = np.concatenate([t.values for t in likelihood.targets])
        counts = likelihood.model(rng.normal(size=len(matrix)))
        expected = 0.5 * float((np.square(counts - noisy) / likelihood.variances).sum())
        assert likelihood.loss(counts) == pytest.approx(expected, rel=1e-9)


def test_effective_multipliers_give_the_same_model():
    for seed in range(cases(100)):
        rng, likelihood, matrix, log_centre = random_problem(seed)
        tilt = rng.normal(size=len(matrix))
        kept = likelihood.effective(tilt)
        p, q = (shares(log_centre - matrix.T @ t) for t in (tilt, kept))
        np.testing.assert_allclose(p, q, atol=1e-11)
        assert (likelihood.variances * kept) @ kept <= (likelihood.variances * tilt) @ tilt + 1e-9


def test_the_duals_least_value_is_the_penalised_losss():
    """Fenchel duality: where S nu = mu - y, the primal value is minus the dual one."""
    for seed in range(12):
        _, likelihood, matrix, log_centre = random_problem(seed)
        possible = np.isfinite(log_centre)
        inside, base = matrix[:, possible], log_centre[possible]
        base = base - np.log(np.exp(base).sum())
        noisy, variances, path = likelihood.values, likelihood.variances, 5.0

        def dual(nu, inside=inside, base=base, noisy=noisy, variances=variances, path=path):
            logs = base - path * (inside.T @ nu)
            log_z = logs.max() + np.log(np.exp(logs - logs.max()).sum())
            slope = variances * nu + noisy - ROWS * (inside @ shares(logs))
            return 0.5 * variances @ nu**2 + nu @ noisy + ROWS / path * log_z, slope

        best = minimize(dual, np.zeros(len(matrix)), jac=True, method="L-BFGS-B",
                        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9})  # fmt: skip
        counts = likelihood.model(path * best.x)
        np.testing.assert_allclose(variances * best.x, counts - noisy, atol=1e-3)
        p = shares(base - path * (inside.T @ best.x))
        kept = p > 0
        apart = float(p[kept] @ (np.log(p[kept]) - base[kept]))
        primal = likelihood.loss(counts) - likelihood.unexplained + ROWS / path * apart
        assert primal == pytest.approx(-best.fun, rel=1e-6, abs=1e-6)


def test_axes_in_another_order_are_refused():
    domain = Domain({"a": 3, "b": 2})
    tree = junction_tree(domain, [("a", "b")])
    target = Target(("a", "b"), np.zeros(6), 1.0)
    with pytest.raises(ValueError, match="order"):
        Likelihood(tree, [target], {}, 1.0, "float64")
