"""A fit that starts from an earlier one ends where a cold start ends, after fewer steps."""

import pytest

from dpsynth.columns.measurement import estimated_total
from dpsynth.model import FitOptions, estimate
from tests.examples import cases
from tests.model.least_loss import least_loss


def solvable(problems):
    return [p for p in problems if any(p.cliques) and p.domain.cells(p.domain.columns) <= 800]


def test_a_clique_measured_later_is_fitted_from_the_earlier_fit_in_fewer_steps(problems, measure):
    warm_steps, cold_steps, quicker, tried = 0, 0, 0, 0
    for p in solvable(problems)[: cases(50, part=2)]:
        ms = measure(p, 300, total=True)
        earlier = [m for m in ms if set(m.clique) != set(ms[0].clique)]
        if not any(m.clique for m in earlier) or not ms[0].clique:
            continue
        before = estimate(p.domain, earlier)
        for tolerance in (1e-3, 1e-9):
            cold = estimate(p.domain, ms, FitOptions(tolerance=tolerance))
            warm = estimate(p.domain, ms, FitOptions(tolerance=tolerance), start=before)
            near = 1e-6 if tolerance < 1e-6 else 0.02
            assert warm.objective == pytest.approx(cold.objective, rel=near, abs=near), p.name
        tried += 1
        warm_steps += warm.iterations
        cold_steps += cold.iterations
        quicker += warm.iterations < cold.iterations
    assert tried > 8
    assert warm_steps < cold_steps and quicker > tried / 2, (warm_steps, cold_steps, quicker, tried)


def test_a_start_of_which_cliques_are_no_longer_measured_is_no_hindrance(problems, measure):
    for p in solvable(problems)[: cases(30)]:
        ms = measure(p, 300)
        before = estimate(p.domain, ms)
        for later in (ms[:1], ms[1:3], []):
            rows = estimated_total(ms)
            warm = estimate(p.domain, later, FitOptions(tolerance=1e-9), start=before, total=rows)
            _, best = least_loss(p.domain, later, rows)
            assert warm.objective == pytest.approx(best, rel=1e-6, abs=1e-6), p.name


def test_a_fit_started_at_its_own_end_gets_no_worse(problems, measure):
    for p in solvable(problems)[: cases(60, part=4)]:
        ms = measure(p, 300)
        first = estimate(p.domain, ms)
        again = estimate(p.domain, ms, start=first)
        assert again.objective <= first.objective * (1 + 5e-3) + 1e-6, p.name
