"""What a guarantee states doesn't tell how the budget was divided among answers: that is an outcome."""

from dataclasses import astuple
from fractions import Fraction

import pytest

from dpsynth.accounting.calibration import (
    exponential_within,
    gaussian_within,
    laplace_within,
    threshold_within,
)
from dpsynth.accounting.composition import amount_of, compose
from dpsynth.accounting.events import Event
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours

NEAR = Neighbours("add_remove")
DELTA = Fraction(1, 10**6)
BUDGET = Fraction(1, 20)


def divided(measure: Measure, chosen: Fraction) -> list[Event]:
    """A budget spent on choices to a part, and on counts with what is left."""
    spent: list[Event] = []
    if chosen:
        spent = [exponential_within(BUDGET * chosen / 5, measure, 1) for _ in range(5)]
    left = BUDGET - sum((measure.cost(e) for e in spent), Fraction(0))
    last = laplace_within(left, measure, 1) if measure == PURE else gaussian_within(left, 1, measure)
    return [*spent, last]


@pytest.mark.parametrize("measure", [PURE, ZCDP, GDP])
def test_every_figure_is_the_same_however_the_budget_was_divided(measure: Measure) -> None:
    delta = None if measure == PURE else DELTA
    none, few, most = (
        compose(divided(measure, Fraction(part, 10)), measure, delta, NEAR) for part in (0, 1, 9)
    )
    for other in (few, most):
        for figure, same in zip(astuple(none), astuple(other), strict=True):
            assert figure == (pytest.approx(same, rel=1e-12) if isinstance(same, float) else same)


def test_the_rho_stated_beside_mu_is_the_planned_half_square_and_not_below_that_of_the_events() -> None:
    events = divided(GDP, Fraction(9, 10))
    found = compose(events, GDP, DELTA, NEAR)
    assert found.rho is not None and found.rho == pytest.approx(float(BUDGET), rel=1e-12)
    assert found.rho > sum((ZCDP.cost(e) for e in events), Fraction(0)) * Fraction(5, 4), "their own differs"


def test_what_events_leave_of_the_delta_set_apart_for_them_makes_nothing_better() -> None:
    apart = DELTA / 2
    named: list[list[Event]] = [
        [threshold_within(BUDGET / 10, apart / share, GDP, 1)] for share in (1, 3, 1000)
    ]
    stated = []
    for naming in named:
        assert 0 < naming[0].delta < apart
        left = BUDGET - GDP.cost(naming[0])
        stated.append(compose([*naming, gaussian_within(left, 1, GDP)], GDP, DELTA, NEAR, apart))
    assert {g.approximate_delta for g in stated} == {float(apart)}
    assert max(g.epsilon for g in stated) == pytest.approx(min(g.epsilon for g in stated), rel=1e-12)
    assert compose([], PURE, DELTA, NEAR, apart).delta == float(apart)


def test_events_that_take_all_of_delta_leave_no_epsilon() -> None:
    with pytest.raises(ValueError, match="leave nothing of the delta"):
        amount_of([], ZCDP, DELTA, DELTA)
    assert amount_of([], ZCDP, DELTA, DELTA / 2).delta == DELTA
    (named,) = [threshold_within(BUDGET / 10, DELTA / 2, GDP, 1)]
    with pytest.raises(ValueError, match="leave nothing of the delta"):
        amount_of([named], ZCDP, named.delta)
