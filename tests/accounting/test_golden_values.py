"""Golden values to 1e-9 against mpmath, and published tables, for every formula that a guarantee rests on."""

from fractions import Fraction
from math import exp, inf, log

import mpmath
import numpy as np
import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import group_amount, spent
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, Guarantee, LaplaceEvent
from dpsynth.accounting.measures import ZCDP, gdp_epsilon, zcdp_epsilon
from dpsynth.ledger.views import Composed
from dpsynth.wings.proof.accountants.advanced import (
    adaptive_epsilon,
    advanced_epsilon,
    largest_each,
    optimal_epsilon,
    textbook_epsilon,
)
from dpsynth.wings.proof.accountants.comparison import statements
from dpsynth.wings.proof.loss_pairs import AtomicPair, NormalPair
from tests.accounting import exact

CLOSE = 1e-9


def close(found, truth) -> bool:
    """Within 1e-9, and not below: epsilons are rounded up."""
    return bool(truth * (1 - mpmath.mpf(10) ** -15) <= found <= truth * (1 + CLOSE))


# Composition.


@pytest.mark.parametrize(("times", "epsilon", "delta"), [(10_000, 1 / 801, exp(-32)), (50, 0.1, 1e-6)])
def test_advanced_composition_is_the_formula_of_its_theorem(times, epsilon, delta) -> None:
    each, slack = Fraction(epsilon), Fraction(delta)
    with mpmath.workdps(50):
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
        textbook = e * mpmath.sqrt(2 * times * mpmath.log(1 / d)) + times * e * (mpmath.exp(e) - 1)
        as_filter = times * e**2 / 2 + mpmath.sqrt(2 * times * e**2 * mpmath.log(1 / d))
        heterogeneous = times * e * mpmath.tanh(e / 2) + mpmath.sqrt(2 * times * e**2 * mpmath.log(1 / d))
        assert close(mpmath.mpf(float(textbook_epsilon(each, times, slack))), textbook)
        assert close(mpmath.mpf(float(adaptive_epsilon(times * each**2, slack))), as_filter)
        assert float(advanced_epsilon([Amount(each)] * times, slack)) <= float(heterogeneous) * (1 + CLOSE)


def test_example_3_7_of_dwork_and_roth_both_ways() -> None:
    slack = Fraction(exp(-32))
    assert float(textbook_epsilon(Fraction(1, 801), 10_000, slack)) == pytest.approx(1.0143473, abs=1e-7)
    least = largest_each(Fraction(1), 10_000, lambda each: textbook_epsilon(each, 10_000, slack))
    assert 1 / 812.319 < least < 1 / 812.318


@pytest.mark.parametrize(
    ("times", "epsilon", "delta"),
    [
        pytest.param(10_000, "1/801", 1.26642e-14, marks=pytest.mark.slow),
        (100, "1/10", 1e-6),
        (7, "2", 1e-3),
        (1, "3", 1e-9),
    ],
)
@pytest.mark.parametrize("each", ["0", "1e-12"])
def test_optimal_composition_is_the_theorem_of_kairouz_oh_and_viswanath(times, epsilon, delta, each) -> None:
    if Fraction(each) * times > Fraction(delta):
        pytest.skip("the parts use up delta")
    parts = [Amount(Fraction(epsilon), Fraction(each))] * times
    truth = exact.optimal_epsilon(times, Fraction(epsilon), Fraction(delta), Fraction(each))
    found = float(optimal_epsilon(parts, Fraction(delta)))
    assert truth * (1 - 1e-12) <= found <= truth * (1 + CLOSE)


def by_brute_force(epsilons, delta) -> float:
    """The epsilon of randomised responses of these epsilons, over all their outcomes, at 40 digits."""
    with mpmath.workdps(40):
        laws = [(mpmath.mpf(0), mpmath.mpf(1))]
        for epsilon in epsilons:
            e = mpmath.mpf(epsilon)
            true = 1 / (1 + mpmath.exp(-e))
            laws = [
                (loss + way * e, p * (true if way > 0 else 1 - true)) for loss, p in laws for way in (1, -1)
            ]
        low, high = mpmath.mpf(0), mpmath.mpf(sum(epsilons))
        for _ in range(80):
            middle = (low + high) / 2
            over = sum(p * (1 - mpmath.exp(middle - loss)) for loss, p in laws if loss > middle)
            low, high = (middle, high) if over > delta else (low, middle)
        return float(high)


@pytest.mark.parametrize("epsilons", [(0.1, 0.2, 0.4, 0.8), (1.0, 1.0, 0.5, 0.5, 0.25), (3.0,)])
def test_optimal_composition_of_unequal_answers_is_that_of_all_their_outcomes(epsilons) -> None:
    truth = by_brute_force(epsilons, 1e-3)
    found = float(optimal_epsilon([Amount(Fraction(e)) for e in epsilons], Fraction(1, 1000)))
    assert truth * (1 - 1e-12) <= found <= truth * (1 + CLOSE)


def test_a_loss_that_is_counted_once_for_two_answers_would_be_seen() -> None:
    """Two answers whose epsilons differ as fractions and not as doubles."""
    parts = [Amount(Fraction(1, 5)), Amount(Fraction(0.2))] * 60
    truth = exact.optimal_epsilon(120, Fraction(1, 5), Fraction(1, 10**6))
    assert float(optimal_epsilon(parts, Fraction(1, 10**6))) >= truth * (1 - 1e-12)


def test_the_epsilon_of_adaptive_answers_is_the_formula_to_forty_digits_and_rounded_up() -> None:
    with mpmath.workdps(80):
        half = mpmath.mpf(1) / 7
        truth = half + 2 * mpmath.sqrt(half * mpmath.log(10**6))
        found = adaptive_epsilon(Fraction(2, 7), Fraction(1, 10**6))
        over = mpmath.mpf(found.numerator) / found.denominator / truth - 1
        assert 0 < over < mpmath.mpf(10) ** -44
    assert adaptive_epsilon(Fraction(0), Fraction(1, 10**6)) == 0


# Gaussian noise: Balle and Wang 2018; the reference values of zCDP.


@pytest.mark.parametrize(("epsilon", "mu"), [(0.1, 0.05), (1.0, 0.3), (1.0, 1.0), (4.0, 1.0), (0.0, 2.0)])
def test_the_analytic_gaussian_is_its_formula(epsilon, mu) -> None:
    with mpmath.workdps(40):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert NormalPair(mu).delta(epsilon) == pytest.approx(float(truth), rel=CLOSE)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    # By bisection of the closed form at 40 digits: sigma of the analytic Gaussian mechanism, sensitivity 1.
    [(0.1, 1e-5, 30.74957), (1.0, 1e-5, 3.730632), (1.0, 1e-6, 4.224679), (10.0, 1e-5, 0.4998886)],
)
def test_sigma_of_the_analytic_gaussian_is_the_one_of_its_table(epsilon, delta, sigma) -> None:
    assert NormalPair(1 / sigma).delta(epsilon) == pytest.approx(delta, rel=1e-4)
    classical = (2 * log(1.25 / delta)) ** 0.5 / epsilon
    assert epsilon > 1 or NormalPair(1 / classical).delta(epsilon) < delta


def test_the_reference_values_at_one_twentieth() -> None:
    half, delta = Fraction(1, 20), Fraction(1, 10**6)
    assert float(zcdp_epsilon(half, delta)) == pytest.approx(1.4716, abs=5e-5)
    assert float(gdp_epsilon(half, delta)) == pytest.approx(1.3676, abs=5e-5)
    assert float(adaptive_epsilon(2 * half, delta)) == pytest.approx(1.7123, abs=5e-5)


# Randomised response: Warner 1965.


@pytest.mark.parametrize(("gamma", "epsilon"), [(0.25, log(3)), (0.1, log(1.5)), (0.45, log(19))])
def test_randomised_response_has_the_loss_and_the_variance_of_its_table(gamma, epsilon) -> None:
    pair = AtomicPair.coin(epsilon)
    assert pair.atoms[1][0] == pytest.approx(0.5 + gamma, rel=CLOSE)
    assert pair.largest_loss == pytest.approx(epsilon, rel=CLOSE) and pair.delta(epsilon) <= 1e-15
    assert pair.delta(0.0) == pytest.approx(2 * gamma, rel=CLOSE)
    with mpmath.workdps(40):
        p = mpmath.mpf("0.5") + mpmath.mpf(gamma)
        entropy = p * mpmath.log(p / (1 - p)) + (1 - p) * mpmath.log((1 - p) / p)
        assert pair.renyi(1.0) == pytest.approx(float(entropy), rel=CLOSE)


# The order of the accountants, and none below the exact value.

BELOW = 1 - 1e-9


def composition(seed: int) -> list[Composed]:
    """Some releases, each of one answer of a random kind and size, at random repeated."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(rng.integers(1, 6)):
        # Of one common unit, as the exact account adds up losses on a grid.
        kind, scale = rng.integers(3), float(rng.choice([50, 20, 10, 5, 2, 1]))
        event = (LaplaceEvent(scale, 1), GaussianEvent(max(scale, 2.0), 1), ExponentialEvent(2 * scale, 1))[
            kind
        ]
        delta = Fraction(1, 10**9)
        amount = (
            Amount(event.epsilon)
            if event.epsilon is not None
            else Amount(ZCDP.epsilon(event.rho, delta), delta)
        )
        found += [Composed(spent([event], amount), (event,))] * int(rng.integers(1, 40))
    return found


def disorder(releases: list[Composed], delta: Fraction) -> set[str]:
    """The accountants that say less than the truth, or more than one that is never better."""
    said = {s.accountant: inf if s.epsilon is None else s.epsilon for s in statements(releases, delta)}
    events: dict[object, int] = {}
    for release in releases:
        for event in release.events:
            events[event] = events.get(event, 0) + 1
    truth = exact.exact_epsilon(events, float(delta))  # type: ignore[arg-type]
    wrong = {name for name, epsilon in said.items() if epsilon < truth * BELOW}
    if said["optimal"] > min(said["advanced"], said["sequential"]) * (1 + 1e-9):
        wrong.add("optimal")
    if said["zcdp"] > said["advanced"] * (1 + 1e-9):
        wrong.add("zcdp")
    if said["rdp"] > said["zcdp"] * 1.002 + 1e-9:
        wrong.add("rdp")
    if said["pld"] > said["gdp"] * 1.001 + 1e-3:
        wrong.add("pld")
    return wrong


def test_the_accountants_are_in_order_for_a_few_random_compositions() -> None:
    assert [disorder(composition(seed), Fraction(1, 10**5)) for seed in range(3)] == [set()] * 3


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_the_accountants_are_in_order_for_a_thousand_random_compositions(part: int) -> None:
    for seed in range(100 * part, 100 * part + 100):
        assert disorder(composition(seed), Fraction(1, 10**5)) == set(), seed


def test_an_accountant_that_says_too_little_would_be_seen(monkeypatch) -> None:
    monkeypatch.setattr(LaplaceEvent, "rho", property(lambda self: self.epsilon**2 / 8))
    releases = [r for r in composition(1) if isinstance(r.events[0], LaplaceEvent)] or composition(1)
    event = LaplaceEvent(2.0, 1)
    releases = [Composed(spent([event], Amount(event.epsilon)), (event,))] * 60
    assert "zcdp" in disorder(releases, Fraction(1, 10**5))


def group_too_low(units: int, grown: float) -> bool:
    """Whether the epsilon of a group is below that of normal laws at ``grown`` times the distance."""
    guarantee = Guarantee(1.0, 1e-6, 0.06, "one row", "add_remove", "gdp", mu=0.2)
    amount = group_amount(guarantee, units)
    assert amount is not None and amount.delta == Fraction(1, 10**6)
    return NormalPair(0.2 * grown).delta(float(amount.epsilon)) > 1e-6


@pytest.mark.parametrize("units", [2, 5, 20])
def test_a_group_that_grows_too_little_would_be_seen(units) -> None:
    """A group under gdp has k mu, and not a little more."""
    assert not group_too_low(units, units)
    assert group_too_low(units, 1.01 * units)
