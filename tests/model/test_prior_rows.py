"""With rows of a prior the model minimises loss + prior_rows KL(p | independent columns)."""

from itertools import pairwise

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement, estimated_total
from dpsynth.model import FitOptions, estimate
from dpsynth.model.least_squares import one_way_logarithms, targets
from tests.examples import cases
from tests.model.least_loss import combined_alone, design, penalised
from tests.thinned import some


def solvable(problems, most):
    return [p for p in problems if any(p.cliques) and p.domain.cells(p.domain.columns) <= most]


def independent(domain, ms, rows):
    """The centre on the joint: the product of its columns' guesses."""
    order = {c: i for i, c in enumerate(domain.columns)}
    guesses = one_way_logarithms(domain, targets(ms, order), rows)
    centre = np.ones(())
    for c in domain.columns:
        centre = np.multiply.outer(centre, np.exp(guesses[c,]))
    return centre / centre.sum()


def divergence(p, q):
    kept = p > 0
    return float(p[kept] @ (np.log(p[kept]) - np.log(q.ravel()[kept])))


@pytest.mark.parametrize("prior_rows", some([0.5, 10.0, 400.0, 1e5], 2))
def test_no_joint_distribution_has_a_lower_penalised_loss(problems, measure, prior_rows):
    for p in solvable(problems, most=60)[: cases(25)]:
        ms = measure(p, 300)
        rows = estimated_total(ms)
        centre = independent(p.domain, ms, rows)
        _, least = penalised(p.domain, ms, rows, prior_rows, centre)
        fit = estimate(p.domain, ms, FitOptions(tolerance=1e-10), prior_rows=prior_rows)
        found = fit.model.marginal(p.domain.columns).ravel() / rows
        assert fit.prior_rows == prior_rows and fit.path <= rows / prior_rows * (1 + 1e-12)
        value = fit.objective + prior_rows * divergence(found, centre)
        assert value <= least + 1e-6 * max(1.0, abs(least)), p.name
        matrix, aims = design(p.domain, ms)
        own = 0.5 * float(np.square(rows * matrix @ found - aims).sum()) - combined_alone(ms)
        assert fit.objective == pytest.approx(own, rel=1e-8, abs=1e-8), p.name


def test_more_rows_of_the_prior_move_the_model_towards_independence(problems, measure):
    for p in solvable(problems, most=300)[: cases(30)]:
        ms = measure(p, 300)
        rows = estimated_total(ms)
        centre = independent(p.domain, ms, rows)
        apart, losses = [], []
        for prior_rows in (1.0, 10.0, 100.0, 1e3, 1e5, 1e8):
            fit = estimate(p.domain, ms, FitOptions(tolerance=1e-9), prior_rows=prior_rows)
            apart.append(divergence(fit.model.marginal(p.domain.columns).ravel() / rows, centre))
            losses.append(fit.objective)
        assert all(b <= a + 1e-8 for a, b in pairwise(apart)), (p.name, apart)
        assert all(b >= a - 1e-6 for a, b in pairwise(losses)), (p.name, losses)
        assert apart[-1] < 1e-3, (p.name, apart)


def test_columns_measured_together_become_independent_under_a_strong_prior():
    domain = Domain({"a": 2, "b": 2})
    m = Measurement(("a", "b"), np.array([[400, 100], [100, 400]]), "gaussian", 5.0)
    free, bound = (estimate(domain, [m], prior_rows=r).model.marginal(("a", "b")) for r in (0.0, 1e9))
    np.testing.assert_allclose(free, m.values, atol=0.5)
    np.testing.assert_allclose(bound, np.full((2, 2), 250.0), atol=0.5)


def test_columns_never_measured_together_stay_independent_with_and_without_a_prior():
    domain = Domain({"a": 3, "b": 2})
    ms = [
        Measurement(("a",), np.array([30, 50, 20]), "gaussian", 2.0),
        Measurement(("b",), np.array([25, 75]), "gaussian", 2.0),
    ]
    for prior_rows in (0.0, 3.0):
        joint = estimate(domain, ms, FitOptions(tolerance=1e-9), prior_rows=prior_rows).model.marginal(
            ("a", "b")
        )
        expected = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / 100
        np.testing.assert_allclose(joint, expected, atol=1e-9)
