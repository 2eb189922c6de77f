"""Noise and mechanisms calibrated to a price: moments by sums, and the sensitivity that each is given."""

from fractions import Fraction
from math import erfc, exp, sqrt

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.calibration import GAUSSIAN, LAPLACE, NOISES, Calibration, Noise, noise_named
from dpsynth.accounting.composition import spent
from dpsynth.accounting.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    ThresholdEvent,
)
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours

NEAR = [
    Neighbours("add_remove"),
    Neighbours("replace_one"),
    Neighbours("add_remove", "id", 3),
    Neighbours("replace_one", "id", 3),
]
PRICE = Fraction(1, 10)


def weights(noise: Noise, scale: float) -> dict[int, float]:
    """P(x) at all integers that matter."""
    reach = range(-int(60 * scale) - 60, int(60 * scale) + 61)
    power = (lambda x: x * x / (2 * scale**2)) if noise is GAUSSIAN else (lambda x: abs(x) / scale)
    found = {x: exp(-power(x)) for x in reach}
    total = sum(found.values())
    return {x: weight / total for x, weight in found.items()}


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("scale", [1.0, 1.7, 6.0])
def test_moments_are_those_of_the_draws(noise: Noise, scale: float) -> None:
    chances = weights(noise, scale)
    variance = sum(x * x * chance for x, chance in chances.items())
    error = sum(abs(x) * chance for x, chance in chances.items())
    assert noise.variance(scale) == pytest.approx(variance, rel=2e-6)
    # That of the Gaussian is its continuous value.
    near = 0.1 / scale**2 if noise is GAUSSIAN else 1e-9
    assert noise.mean_absolute_error(scale) == pytest.approx(error, rel=near)


@pytest.mark.parametrize(("cells", "chance"), [(1, 0.01), (100, 0.05), (10_000, 0.001)])
def test_all_draws_stay_below_so_many_deviations_but_for_a_small_chance(cells: int, chance: float) -> None:
    far = GAUSSIAN.deviations(cells, chance)
    assert cells * erfc(far / sqrt(2)) / 2 == pytest.approx(chance)
    far = LAPLACE.deviations(cells, chance)
    assert cells * exp(-far * sqrt(2)) / 2 == pytest.approx(chance)


def test_costs_go_by_the_distance_that_each_noise_says() -> None:
    assert (GAUSSIAN.by_l2, GAUSSIAN.mu_by_rho) == (True, False)
    assert (LAPLACE.by_l2, LAPLACE.mu_by_rho) == (False, True)
    assert [noise_named(noise.name) for noise in NOISES] == [GAUSSIAN, LAPLACE]
    with pytest.raises(ValueError, match="unknown noise"):
        noise_named("uniform")
    assert "1.41421" in GAUSSIAN.moved(9, 2) and GAUSSIAN.moved(9, 2) != LAPLACE.moved(9, 2)
    assert LAPLACE.moved(9, 2).endswith("9")


def sensitivity(event: object) -> int:
    return event.l2_squared if isinstance(event, GaussianEvent) else event.l1  # type: ignore[attr-defined]


@pytest.mark.parametrize("near", NEAR, ids=lambda near: f"{near.relation} {near.max_rows}")
@pytest.mark.parametrize(
    ("noise", "measure"), [(GAUSSIAN, ZCDP), (GAUSSIAN, GDP), (LAPLACE, PURE), (LAPLACE, ZCDP)]
)
def test_each_question_gets_the_sensitivity_of_what_a_unit_moves(near, noise, measure) -> None:
    """Written out by hand: k rows that come or go, or twice as many when exchanged."""
    calibration = Calibration(near, measure, noise)
    exchanged = near.relation == "replace_one"
    rows = near.max_rows * (2 if exchanged else 1)
    gaussian = noise is GAUSSIAN
    counts = near.max_rows**2 * (2 if exchanged else 1) if gaussian else rows
    found = calibration.counts(PRICE)
    assert sensitivity(found.event) == counts
    assert sensitivity(calibration.counted_once.counts(PRICE).event) == (2 if exchanged else 1)
    assert sensitivity(calibration.distances(PRICE).event) == (rows**2 if gaussian else rows)
    assert sensitivity(calibration.distances(PRICE, 7).event) == 7 * (rows**2 if gaussian else rows)
    assert sensitivity(calibration.sums(PRICE, 5).event) == ((5 * rows) ** 2 if gaussian else 5 * rows)
    assert (
        calibration.choices(PRICE).event.sensitivity == calibration.quantiles(PRICE).event.sensitivity == rows
    )
    assert calibration.choices(PRICE, 11).event.sensitivity == 11
    values = calibration.values(PRICE, Fraction(1, 10**6))
    assert values.event.partitions == rows
    assert isinstance(values.event, ThresholdEvent if gaussian else SelectionEvent)
    assert values.mechanism.startswith("threshold of") is gaussian
    assert found.mechanism.lower() == noise.mechanism.lower()
    assert found.stddev == sqrt(noise.variance(found.scale)) and found.scale == found.event.scale
    assert found.expected_error == noise.mean_absolute_error(found.scale)
    for calibrated in (found, values, calibration.distances(PRICE, 7), calibration.choices(PRICE)):
        assert Fraction(999, 1000) * PRICE < measure.cost(calibrated.event) <= PRICE


def test_a_journal_with_one_answer_that_mu_does_not_bound_is_not_bounded_by_mu() -> None:
    much, little = GaussianEvent(5.0, 1), GaussianEvent(0.5, 1)
    choice = ExponentialEvent(10.0, 1)
    assert little.half_mu_squared is None
    assert spent([much, little, choice], Amount()).half_mu_squared is None
    assert spent([much, choice], Amount()).half_mu_squared == GDP.cost(much) + GDP.cost(choice)
    assert spent([much, LaplaceEvent(2.0, 1)], Amount()).rho == ZCDP.cost(much) + Fraction(1, 8)
