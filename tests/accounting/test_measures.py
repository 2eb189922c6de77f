"""Every measure that is registered brings all that is asked of one, and agrees with itself."""

from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import pytest

from dpsynth.accounting import measures
from dpsynth.accounting.amount import PI
from dpsynth.accounting.calibration import LAPLACE, NOISES, Calibration, Noise, NoiseName, noise_named
from dpsynth.accounting.events import GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import GDP, MEASURES, PURE, ZCDP, Measure, measure_named
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.config.privacy import Accountant, Filter
from dpsynth.config.privacy import Noise as Configured
from dpsynth.testing import STRATEGIES

NEIGHBOURS = [
    Neighbours("add_remove"),
    Neighbours("replace_one"),
    Neighbours("add_remove", "id", 3),
    Neighbours("replace_one", "id", 3),
]
PRICES = [Fraction(1, 10**6), Fraction(1, 50), Fraction(2), Fraction(100)]
TARGETS = [
    (Fraction(1, 10), Fraction(1, 10**9)),
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(30), Fraction(1, 99)),
]
HAIR = Fraction(1, 10**9)
COUNTED = [(measure, noise) for measure in MEASURES for noise in NOISES if noise.name in measure.noises]


def over_price(measure: Measure, noise: Noise) -> int:
    """How many prices buy an event that costs more, or notably less."""
    found = 0
    for near in NEIGHBOURS:
        calibration = Calibration(near, measure, noise)
        for price in PRICES:
            bought = [
                calibration.counts(price).event,
                calibration.counted_once.counts(price).event,
                calibration.distances(price, 7).event,
                calibration.choices(price).event,
                calibration.choices(price, 11).event,
                calibration.quantiles(price).event,
                calibration.values(price, Fraction(1, 10**7)).event,
            ]
            found += sum(not price * (1 - HAIR) <= measure.cost(event) <= price for event in bought)
            found += bought[-1].delta > Fraction(1, 10**7)
    return found


def over_target(measure: Measure) -> int:
    """How many budgets imply more than the epsilon that they were made for, or notably less."""
    implied = [(e, measure.epsilon(measure.budget(e, delta), delta)) for e, delta in TARGETS]
    return sum(not epsilon * (1 - HAIR) <= found <= epsilon for epsilon, found in implied)


def over_implied(measure: Measure) -> int:
    """How many answers at a price have a rho or a mu^2/2 above those that a budget of the price implies."""
    found = 0
    for price in PRICES:
        for noise in NOISES:
            if noise.name not in measure.noises:
                continue
            rho, half = measure.implied(price, noise.mu_by_rho)
            event = Calibration(NEIGHBOURS[0], measure, noise).counts(price).event
            found += event.rho > rho or (
                half is not None and (event.half_mu_squared is None or event.half_mu_squared > half)
            )
    return found


@pytest.mark.parametrize(("measure", "noise"), COUNTED)
def test_what_a_price_buys_costs_at_most_that_and_hardly_less(measure: Measure, noise: Noise) -> None:
    assert over_price(measure, noise) == 0


@pytest.mark.parametrize("measure", MEASURES)
def test_a_budget_implies_at_most_the_epsilon_that_it_was_made_for(measure: Measure) -> None:
    assert over_target(measure) == 0 and over_implied(measure) == 0
    if measure.needs_delta:
        for asked in (measure.budget, measure.epsilon):
            with pytest.raises(ValueError, match="needs a delta"):
                asked(Fraction(1), None)


@pytest.mark.parametrize("measure", MEASURES)
def test_its_error_falls_with_the_price_by_the_power_that_it_states(measure: Measure) -> None:
    for noise in (noise_named(name) for name in measure.noises):
        calibration = Calibration(NEIGHBOURS[0], measure, noise)
        small, large = (calibration.counts(price).expected_error for price in (PRICES[0], 100 * PRICES[0]))
        assert small / large == pytest.approx(100**measure.error_power, rel=1e-3)


@pytest.mark.parametrize("measure", MEASURES)
def test_every_strategy_says_what_it_does_under_it(measure: Measure) -> None:
    sizes = dict.fromkeys("abcdefghij", 5)
    for strategy in STRATEGIES.values():
        for noise in measure.noises:
            outlined = strategy.outline(sizes, (), measure, noise)
            assert outlined.shares.structure + outlined.shares.one_way <= 1


def test_configs_name_the_measures_and_noises_that_are_registered() -> None:
    named = {measure.accountant for measure in MEASURES}
    assert named | {"auto"} == set(get_args(Filter)) == set(get_args(Accountant))
    assert {n.name for n in NOISES} == set(get_args(Configured)) == set(get_args(NoiseName))
    assert all(measure_named(m.name) == measure_named(m.accountant) == m for m in MEASURES)
    assert len({m.name for m in MEASURES}) == len({m.accountant for m in MEASURES}) == len(MEASURES)
    with pytest.raises(KeyError):
        measure_named("renyi")
    with pytest.raises(ValueError, match="unknown noise"):
        noise_named("uniform")


# Planted faults: measures that don't agree with themselves.


@dataclass(frozen=True)
class Generous(measures.PureEpsilon):
    """Its costs are too low for its budgets."""

    def exact_cost(self, loss: measures.Loss) -> Fraction | None:
        return None if loss.epsilon is None else loss.epsilon / 2


@dataclass(frozen=True)
class Rash(measures.ZeroConcentrated):
    """Its budgets are too large, and what they imply too small."""

    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        return super().budget(epsilon, delta) * 2

    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction | None]:
        return budget, budget if mu_by_rho else None


def test_a_measure_that_does_not_agree_with_itself_would_be_seen() -> None:
    assert over_target(Rash()) == len(TARGETS) and over_implied(Rash()) > 0
    assert over_price(Generous(), LAPLACE) > 0
    laplace, gaussian = LaplaceEvent(2.0, 1), GaussianEvent(3.0, 1)
    assert PURE.cost(laplace) == Fraction(1, 2) and PI / 2 * laplace.rho == laplace.half_mu_squared
    with pytest.raises(ValueError, match="pure epsilon"):
        PURE.cost(gaussian)


def test_a_measure_that_brings_less_can_not_be_made() -> None:
    class Bare(Measure):
        name = "pure"

    with pytest.raises(TypeError, match="abstract"):
        Bare()  # type: ignore[abstract]


def test_what_rho_implies_of_mu_is_half_pi_times_as_much_and_hardly_more() -> None:
    """Written out: 355/113 is above pi, and a millionth of a millionth more is for rounding."""
    rho = Fraction(3, 100)
    assert ZCDP.implied(rho, True) == (rho, Fraction(355, 226) * rho * (1 + Fraction(1, 2**40)))
    assert ZCDP.implied(rho, False) == (rho, None)
    assert GDP.implied(rho, True) == GDP.implied(rho, False) == (rho * (1 + Fraction(1, 2**40)), rho)
