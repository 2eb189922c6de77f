"""Amplification by sampling: exact on randomised response, and as the library has it for Gaussian noise."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

from dpsynth.accounting import subsampling
from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import group_amount
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.measures import gdp_budget
from dpsynth.accounting.subsampling import Sampling
from tests.guarantee.losses import excess_delta

RATES = (Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(99, 100))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(10)])
def test_the_loss_of_a_sample_and_of_the_whole_are_inverse_and_rounded_apart(
    rate: Fraction, epsilon: Fraction
) -> None:
    sampling, asked = Sampling(rate), Amount(epsilon, Fraction(1, 10**6))
    of_sample = sampling.of_sample(asked)
    again = sampling.whole(of_sample)
    assert again.within(asked) and asked.epsilon - again.epsilon < Fraction(1, 10**40)
    assert float(of_sample.epsilon) == pytest.approx(log(1 + (exp(epsilon) - 1) / float(rate)), rel=1e-12)
    assert of_sample.delta * rate == asked.delta


def sampled_coin(rate: float, epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """The laws with and without a unit, of a mechanism on a sample that reaches (epsilon, delta).

    Outcomes: the unit is revealed with probability delta, either way; otherwise randomised response.
    """
    true = exp(epsilon) / (1 + exp(epsilon))
    without = np.array([delta, 0.0, (1 - delta) * true, (1 - delta) * (1 - true)])
    inside = np.array([0.0, delta, (1 - delta) * (1 - true), (1 - delta) * true])
    return (1 - rate) * without + rate * inside, without


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_loss_of_the_whole_is_reached_and_never_exceeded(rate: float, delta: float) -> None:
    of_sample = Amount(Fraction(2), Fraction(delta))
    whole = Sampling(Fraction(rate)).whole(of_sample)
    laws = sampled_coin(rate, 2.0, delta)
    reached = max(
        excess_delta(one[None], other[None], float(whole.epsilon)) for one, other in (laws, laws[::-1])
    )
    assert reached == pytest.approx(float(whole.delta), abs=1e-12)
    less = excess_delta(laws[0][None], laws[1][None], 0.99 * float(whole.epsilon))
    assert less > float(whole.delta) + 1e-5


@pytest.mark.parametrize(
    ("rate", "epsilon"),
    [
        (0.5, 0.5),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.1, 0.5), (0.1, 2.0), (0.5, 2.0))),
    ],
)
def test_gaussian_noise_on_a_sample_is_as_tight_as_the_librarys_distribution(
    rate: float, epsilon: float
) -> None:
    """The delta by which noise is calibrated is that of the sampled Gaussian's privacy loss distribution."""
    from dp_accounting.pld import privacy_loss_distribution

    delta = Fraction(1, 10**5)
    of_sample = Sampling(Fraction(rate)).of_sample(Amount(Fraction(epsilon), delta))
    mu = float(2 * gdp_budget(of_sample.epsilon, of_sample.delta)) ** 0.5
    found = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=1e-4, sampling_prob=rate
    )
    assert found.get_delta_for_epsilon(epsilon) == pytest.approx(float(delta), rel=5e-3)


def test_an_unamplified_release_would_be_noticed() -> None:
    laws = sampled_coin(0.1, 2.0, 0.0)
    whole = Sampling(Fraction(1, 10)).whole(Amount(Fraction(2)))
    assert excess_delta(laws[0][None], laws[1][None], float(whole.epsilon) * 0.9) > 1e-3
    # A rate that is drawn twice as large as it is counted exceeds the figures.
    biased = sampled_coin(0.2, 2.0, 0.0)
    assert excess_delta(biased[0][None], biased[1][None], float(whole.epsilon)) > 1e-2


def test_groups_of_a_sampled_release_have_the_bound_that_always_holds() -> None:
    promise = Guarantee(1.0, 1e-6, None, "one row", "add_remove", "gdp", sample_rate=0.1)
    two = group_amount(promise, 2)
    assert two is not None and two.epsilon == 2 and two.delta > 2 * Fraction(repr(1e-6))


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1), Fraction(2)])
def test_a_rate_that_samples_nothing_or_everything_is_refused(rate: Fraction) -> None:
    with pytest.raises(ValueError, match="above 0 and below 1"):
        Sampling(rate)


def test_a_delta_too_large_for_the_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="below 1"):
        Sampling(Fraction(1, 100)).of_sample(Amount(Fraction(1), Fraction(1, 50)))


def test_a_coin_has_64_bits_and_the_threshold_is_so_many_of_them() -> None:
    assert Sampling(Fraction(1, 2)).threshold == 1 << 63
    assert Sampling(Fraction(1, 3)).threshold == (1 << 64) // 3


def test_a_delta_of_the_whole_that_is_the_rate_leaves_nothing_of_the_samples() -> None:
    for delta in (Fraction(1, 10), Fraction(11, 100)):
        with pytest.raises(ValueError, match="below 1"):
            Sampling(Fraction(1, 10)).of_sample(Amount(Fraction(1), delta))
    assert Sampling(Fraction(1, 10)).of_sample(Amount(Fraction(1), Fraction(9, 100))).delta == Fraction(9, 10)


def test_margins_go_to_the_safe_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are below the last digit of a float; widened, they show: up for the whole, down for the sample."""
    sampling, epsilon = Sampling(Fraction(1, 10)), Fraction(1)
    up, down = sampling.whole(Amount(epsilon)).epsilon, sampling.of_sample(Amount(epsilon)).epsilon
    margin = 1e-4
    monkeypatch.setattr(subsampling, "_MARGIN", Fraction(1, 10**4))
    wide = float(sampling.whole(Amount(epsilon)).epsilon)
    grown = (exp(1) - 1) * (1 + margin) + margin**2
    assert wide == pytest.approx(log(1 + 0.1 * grown) * (1 + margin) + margin**2, rel=1e-12) and wide > up
    narrow = float(sampling.of_sample(Amount(epsilon)).epsilon)
    left = (exp(1) - 1) * (1 - 8 * margin) - 8 * margin**2
    assert narrow == pytest.approx(log(1 + left / 0.1) * (1 - 8 * margin) - 8 * margin**2, rel=1e-12)
    assert narrow < down
