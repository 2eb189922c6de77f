"""What several units have together: kε only where losses are counted by ε, and never rounded down."""

from dataclasses import replace
from fractions import Fraction
from math import exp, log

import mpmath
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpsynth.accounting.amount import Amount, float_up
from dpsynth.accounting.calibration import gaussian_within, laplace_within, selection_within
from dpsynth.accounting.composition import (
    NOTHING,
    Cost,
    compose,
    group_amount,
    group_cost,
    of_groups,
    other_relation,
    spent,
)
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, Guarantee, LaplaceEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours

DELTA = Fraction(1, 10**6)
NEAR = Neighbours("add_remove")


def released(measure: Measure, epsilon: int) -> Guarantee:
    """The guarantee of one answer at a whole budget."""
    if measure == PURE:
        return compose([laplace_within(Fraction(epsilon), PURE, 1)], PURE, None, NEAR)
    budget = measure.budget(Fraction(epsilon), DELTA)
    return compose([gaussian_within(budget, 1, measure)], measure, DELTA, NEAR)


GOLDEN = [
    (PURE, 1, {1: 1, 2: 2, 5: 5, 20: 20}),
    (GDP, 1, {1: 1, 2: 2.1229, 5: 5.9263, 20: 33.0251}),
    (GDP, 3, {1: 3, 2: 6.5788, 5: 20.0279, 20: 144.7681}),
    (ZCDP, 1, {1: 1, 2: 2.1117, 5: 5.8393, 20: 31.6678}),
    (ZCDP, 3, {1: 3, 2: 6.5291, 5: 19.5688, 20: 135.9534}),
]


@pytest.mark.parametrize(("measure", "epsilon", "figures"), GOLDEN)
def test_the_epsilon_of_a_group_at_the_delta_of_one(
    measure: Measure, epsilon: int, figures: dict[int, float]
) -> None:
    for units, figure in figures.items():
        amount = group_amount(released(measure, epsilon), units)
        assert amount is not None and float(amount.epsilon) == pytest.approx(figure, abs=1e-4)
        assert amount.delta == (0 if measure == PURE else DELTA)


@pytest.mark.parametrize("units", [2, 3, 7])
def test_a_group_is_as_if_each_answer_moved_by_so_much_more(units: int) -> None:
    """Counts that move by k are those of one unit at a sensitivity of k."""
    for measure in (ZCDP, GDP):
        one, group = (
            compose([GaussianEvent(40.0, moved**2)] * 3, measure, DELTA, NEAR) for moved in (1, units)
        )
        amount = group_amount(one, units)
        assert amount is not None and float(amount.epsilon) == pytest.approx(group.epsilon, rel=1e-12)


def test_by_mu_it_is_what_two_normal_distributions_tell() -> None:
    mu = 0.4

    def excess(epsilon: float) -> float:
        x = epsilon / mu - mu / 2
        return float(norm.sf(x) - exp(epsilon) * norm.sf(x + mu)) - 1e-6

    one = Guarantee(1.0, 1e-6, 0.02, "one row", "add_remove", "gdp", mu=mu / 4)
    amount = group_amount(one, 4)
    assert amount is not None
    assert brentq(excess, 0.1, 5) <= float(amount.epsilon) <= brentq(excess, 0.1, 5) * 1.001


@pytest.mark.parametrize("measure", [PURE, ZCDP, GDP])
def test_beside_a_lapse_only_what_epsilon_and_delta_imply_is_said(measure: Measure) -> None:
    event = selection_within(Fraction(1, 20), DELTA / 2, measure, 1)
    one = compose([event], measure, DELTA, NEAR, set_aside=DELTA / 2)
    assert one.approximate_delta > 0
    same, two = group_amount(one, 1), group_amount(one, 2)
    assert same is not None and two is not None
    assert float(same.epsilon) == one.epsilon and float(same.delta) == one.delta
    assert float(two.epsilon) == 2 * one.epsilon
    assert float(two.delta) == pytest.approx(one.delta * (1 + exp(one.epsilon)), rel=1e-9)
    assert two.delta >= Fraction(repr(one.delta)) * (
        1 + Fraction(exp(one.epsilon)) * (1 - Fraction(1, 2**50))
    )
    last = int(log(1 / one.delta) / one.epsilon)
    assert group_amount(one, last + 2) is None and group_amount(one, 100_000) is None


@pytest.mark.parametrize("units", [2, 3, 7, 64, 501])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1, 10**6), Fraction(7, 5), Fraction(12)])
def test_the_delta_of_a_group_is_never_below_the_exact_one(epsilon: Fraction, units: int) -> None:
    """(e^(k epsilon) - 1)/(e^epsilon - 1) times delta, by a sum of 120 digits."""
    delta = Fraction(1, 10**300) if units * epsilon < 600 else Fraction(0)
    promised = replace(released(PURE, 1), epsilon=float(epsilon), delta=1e-300, approximate_delta=1e-300)
    grown = group_amount(promised, units)
    if grown is None or not delta:
        return
    with mpmath.workdps(120):
        one = mpmath.mpf(Fraction(float(epsilon)).numerator) / Fraction(float(epsilon)).denominator
        exact = mpmath.expm1(units * one) / mpmath.expm1(one)
        factor = mpmath.mpf(grown.delta.numerator) / grown.delta.denominator * mpmath.mpf(10) ** 300
        assert exact <= factor <= exact * (1 + mpmath.mpf(10) ** -30)


def test_no_group_is_without_a_unit() -> None:
    with pytest.raises(ValueError, match="at least one"):
        group_amount(released(GDP, 1), 0)


def test_what_is_published_of_groups_is_what_holds_for_each_size() -> None:
    guarantee = released(GDP, 1)
    published = of_groups(guarantee)
    assert [group["units"] for group in published] == [2, 5, 10, 20]
    for group in published:
        amount = group_amount(guarantee, int(group["units"]))
        assert amount is not None and group["epsilon"] == float_up(amount.epsilon)
        assert group["delta"] == guarantee.delta == 1e-6
    lapsing = replace(released(ZCDP, 1), approximate_delta=5e-7)
    last = of_groups(lapsing)[0]
    amount = group_amount(lapsing, 2)
    assert amount is not None and last["delta"] == float_up(amount.delta) > 1e-6
    assert of_groups(replace(lapsing, epsilon=40.0))[3] == {"units": 20, "epsilon": None, "delta": None}


def test_to_exchange_is_to_remove_one_and_add_another_and_nothing_follows_the_other_way() -> None:
    guarantee = released(GDP, 1)
    assert other_relation(guarantee) == {"neighbours": "replace_one", **_of(guarantee, 2)}
    exchanged = replace(guarantee, neighbours="replace_one")
    assert other_relation(exchanged) == {"neighbours": "add_remove", "epsilon": None, "delta": None}


def _of(guarantee: Guarantee, units: int) -> dict[str, float | None]:
    (found,) = [group for group in of_groups(guarantee) if group["units"] == units]
    return {key: found[key] for key in ("epsilon", "delta")}


def moved(events: list[LaplaceEvent | GaussianEvent | ExponentialEvent], units: int) -> list[object]:
    """The same noise on counts and scores that several units move."""
    return [
        LaplaceEvent(e.scale, units * e.l1)
        if isinstance(e, LaplaceEvent)
        else GaussianEvent(e.sigma, units**2 * e.l2_squared)
        if isinstance(e, GaussianEvent)
        else ExponentialEvent(e.scale, units * e.sensitivity)
        for e in events
    ]


PURE_EVENTS = [LaplaceEvent(10.0, 1), LaplaceEvent(7.5, 2), ExponentialEvent(30.0, 1)]
MIXED_EVENTS = [*PURE_EVENTS, GaussianEvent(12.0, 1), GaussianEvent(40.0, 5)]


def covers(grown: Cost, events: list[object]) -> bool:
    """True if a cost is at least that of some events, in rho and in mu."""
    true = spent(events, Amount())  # type: ignore[arg-type]
    slack = 1 + Fraction(1, 10**12)
    assert grown.half_mu_squared is not None and true.half_mu_squared is not None
    return grown.rho * slack >= true.rho and grown.half_mu_squared * slack >= true.half_mu_squared


@pytest.mark.parametrize("units", [1, 2, 7, 50])
@pytest.mark.parametrize("events", [PURE_EVENTS, MIXED_EVENTS], ids=["pure", "mixed"])
def test_the_cost_of_a_group_is_that_of_the_same_noise_on_counts_that_it_moves(events, units):
    pure = events is PURE_EVENTS
    epsilon = sum((e.epsilon for e in PURE_EVENTS), Fraction(0)) if pure else Fraction(2)
    grown = group_cost(spent(events, Amount(epsilon, Fraction(0) if pure else DELTA)), units)
    assert grown is not None and covers(grown, moved(events, units))
    if pure:
        assert grown.amount == Amount(units * epsilon)
    elif units > 1:
        # Of the two that hold, the lesser.
        assert grown.half_mu_squared is not None
        assert grown.amount.delta == DELTA
        assert grown.amount.epsilon <= min(
            ZCDP.epsilon(grown.rho, DELTA), GDP.epsilon(grown.half_mu_squared, DELTA)
        )
    assert not units > 1 or not covers(spent(events, Amount(epsilon)), moved(events, units))


def test_a_cost_that_grows_by_the_number_of_units_alone_is_caught():
    """The planted fault: k times rho, as k times epsilon."""
    cost = spent(MIXED_EVENTS, Amount(Fraction(2), DELTA))
    assert cost.half_mu_squared is not None
    linear = Cost(cost.amount, 3 * cost.rho, 3 * cost.half_mu_squared)
    assert not covers(linear, moved(MIXED_EVENTS, 3))


def test_a_group_of_a_release_that_finds_values_has_what_follows_from_epsilon_and_delta() -> None:
    epsilon, delta = Fraction(1, 2), Fraction(1, 10**7)
    cost = Cost(Amount(epsilon, delta), Fraction(1, 100), Fraction(1, 100), delta / 2)
    grown = group_cost(cost, 3)
    assert grown is not None and grown.amount.epsilon == 3 * epsilon
    e = exp(0.5)
    assert float(grown.amount.delta) == pytest.approx(1e-7 * (1 + e + e * e))
    assert float(grown.amount.delta) >= 1e-7 * (1 + e + e * e) * (1 - 1e-15)
    # Beside its delta, a loss of at most 3 epsilon: as an answer of pure epsilon.
    assert grown.approximate_delta == grown.amount.delta
    assert (grown.rho, grown.half_mu_squared) == PURE.implied(3 * epsilon, mu_by_rho=True)
    assert group_cost(cost, 60) is None
    assert group_cost(NOTHING, 60) == NOTHING
    with pytest.raises(ValueError, match="at least one unit"):
        group_cost(cost, 0)
