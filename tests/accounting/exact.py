"""The exact epsilon of many answers on the neighbours that each tells most of."""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, exp, inf, sqrt

import mpmath
import numpy as np
from scipy.special import log_ndtr
from scipy.stats import binom

from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent

Events = Mapping[LaplaceEvent | GaussianEvent | ExponentialEvent, int]


def exact_epsilon(events: Events, delta: float, told: float = 0.0) -> float:
    """Epsilon at a delta, right to ten digits.

    Gaussian noise is taken as continuous, Laplace noise of l1 = 1 as randomised response, and choices as
    even ones of two, so their losses are multiples of a unit that all have in common.

    Args:
        events: how often each answer was given.
        delta: at which.
        told: probability that all is told besides.
    """
    mu = sqrt(sum(e.l2_squared / e.sigma**2 * n for e, n in events.items() if isinstance(e, GaussianEvent)))
    coins = [(loss_of(e), n) for e, n in events.items() if not isinstance(e, GaussianEvent)]
    unit = _common_unit([loss for loss, _ in coins])
    law, top = np.ones(1), 0
    for loss, times in coins:
        each = round(Fraction(loss) / unit)
        spread = np.zeros(2 * each * times + 1)
        spread[:: 2 * each] = binom.pmf(np.arange(times + 1), times, 1 / (1 + exp(-loss)))
        law, top = np.convolve(law, spread), top + each * times
    losses = np.arange(-top, top + 1) * float(unit)

    def delta_at(epsilon: float) -> float:
        return told + (1 - told) * float((law * _normal_delta(epsilon - losses, mu)).sum())

    if told >= delta or delta_at(0.0) <= delta:
        return inf if told >= delta else 0.0
    low, high = 0.0, top * float(unit) + mu * mu / 2 + 40 * mu + 1e-9
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return low


def loss_of(event: LaplaceEvent | ExponentialEvent) -> Fraction:
    """The loss of either outcome of the coin that an answer is."""
    assert isinstance(event, ExponentialEvent) or event.l1 == 1
    loss = event.epsilon / (2 if isinstance(event, ExponentialEvent) else 1)
    return loss.limit_denominator(10**6)


def _common_unit(losses: list[Fraction]) -> Fraction:
    unit = Fraction(0)
    for loss in losses:
        a, b = unit, loss
        while b:
            a, b = b, a % b
        unit = a
    return unit or Fraction(1)


def _normal_delta(epsilon: np.ndarray, mu: float) -> np.ndarray:
    if mu == 0:
        return -np.expm1(np.minimum(0.0, epsilon))
    with np.errstate(over="ignore"):
        above = np.exp(log_ndtr(mu / 2 - epsilon / mu))
        return above - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def optimal_epsilon(times: int, epsilon: Fraction, delta: Fraction, each: Fraction = Fraction(0)) -> float:
    """Of the worst (epsilon, each)-DP releases: Kairouz, Oh and Viswanath 2015, theorem 3.3.

    Its delta at t is 1 - (1 - each)^k (1 - d), where d is the sum of C(k, n) (e^((k - n) epsilon) -
    e^(t + n epsilon))/(1 + e^epsilon)^k over the n with (k - 2 n) epsilon above t.
    """
    with mpmath.workdps(60):
        e, target = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, delta))
        kept = (1 - mpmath.mpf(each.numerator) / each.denominator) ** times
        weights = [mpmath.binomial(times, n) / (1 + mpmath.exp(e)) ** times for n in range(times + 1)]

        def total(t):
            lost = mpmath.mpf(0)
            for n in range(ceil(times / 2) + 1):
                if (times - 2 * n) * e > t:
                    lost += weights[n] * (mpmath.exp((times - n) * e) - mpmath.exp(t + n * e))
            return 1 - kept * (1 - lost)

        if 1 - kept >= target:
            return inf
        low, high = mpmath.mpf(0), times * e
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if total(middle) > target else (low, middle)
        return float(low)
