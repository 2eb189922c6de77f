"""Two accountants of the library dp-accounting: Renyi DP and privacy loss distributions.

The library computes in doubles, rounded to the nearest. Invariant: every result exceeds the
library's by more than its rounding error, and each answer is represented by a dominating pair of laws: no two
neighbours are easier to distinguish, whatever the question was. So both hold where questions depend on
earlier answers, if all scales of noise were fixed before the first (Mironov 2017; Zhu, Dong and Wang 2022).
The pairs, for privacy loss distributions:

1. Gaussian noise: normal laws at distance mu, and a factor on delta, by the proof in
   ``measures.continuous_variance``. The factor goes with the delta of everything, as the other
   laws multiply both sides in its step 3.
2. Laplace noise of L1 sensitivity l: the noise, and the noise moved by l in a single cell. Moving several
   cells by a little each is a walk of as many steps. Of log-concave noise the trade-off functions for s
   and for t chain to that for s + t (Dong, Roth and Su 2022, on group privacy), so no walk ends further than
   its steps in a row. For l = 1 the pair is randomised response: continuous Laplace noise reveals less.
3. Choices: pairs of two points with ratios e^t and e^(t - epsilon) (``events.ExponentialEvent``), with
   another t for each answer. Their largest delta(e) is at t = (e + epsilon)/2, and it is
   (1 - exp((e - epsilon)/2))^2/(1 - exp(-epsilon)) for e between -epsilon and epsilon. Being convex in
   exp(e), it is the delta(e) of one pair, which stands for every t.
4. Releases of which only epsilon and delta are given: randomised response that with probability delta reveals
   the input
   (Kairouz, Oh and Viswanath 2015).
5. Partition selection, but for its delta: Gaussian noise, or randomised response for each of its partitions
   (``dpsynth.accounting.events``). Its delta is subtracted from the delta asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, inf, sqrt
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.accounting.amount import PI, Amount, float_down, float_up
from dpsynth.accounting.composition import Cost
from dpsynth.accounting.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    RecordedEvent,
    SelectionEvent,
    ThresholdEvent,
)
from dpsynth.accounting.measures import DELTA_GROWTH, gdp_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_ORDERS = 1 + np.geomspace(0.02, 1e6, 160)

_RENYI_MARGIN = Fraction(1, 10**9)
"""Margin of epsilon, relative and absolute: epsilon is a sum of terms with 12 correct digits."""

_EXACT_BETWEEN = (Fraction(1, 100), Fraction(500))
"""Range of epsilon in which the library's Renyi divergence of randomised response has nine correct digits."""

_DELTA_MARGIN = 1e-12
"""Margin of delta, and a thousandth more for each answer: convolution by FFT moves delta by 1e-16 each."""

_STEP, _LEAST_STEP = 1e-4, 5e-6
"""Step of the grid of losses, as a part of epsilon: the usual one, and the least, for small answers."""

_LARGEST_STEP = 0.05
"""Largest step of the grid: an epsilon above 500 is of no interest, and its exponentials overflow."""

_POINTS = 401
"""Points of a choice's delta(e), which lines join."""


@dataclass(frozen=True)
class Composition:
    """The losses that releases compose, without their approximate deltas, which add up separately.

    Attributes:
        events: the answers, with the number of times each was given.
        costs: the costs of releases without a list of answers, with the number of times each occurs.
    """

    events: Mapping[RecordedEvent, int]
    costs: Mapping[Cost, int]


def rdp_epsilon(composition: Composition, delta: Fraction) -> Fraction:
    """The epsilon at the best of many orders of Renyi DP, rounded up.

    Laplace noise, and releases that are epsilon-DP, count as randomised response; everything else by rho.

    Args:
        composition: the releases.
        delta: the delta less the approximate deltas, above 0.
    """
    import dp_accounting as library
    from dp_accounting.rdp import RdpAccountant

    found: list[tuple[Fraction | None, Fraction, int]] = [
        *(
            (e.epsilon if isinstance(e, LaplaceEvent) else None, e.rho, n)
            for e, n in composition.events.items()
        ),
        *((c.amount.epsilon if c.pure else None, c.rho, n) for c, n in composition.costs.items()),
    ]
    if not any(spent for _, spent, _ in found):
        return Fraction(0)
    accountant = RdpAccountant(_ORDERS, library.NeighboringRelation.REPLACE_ONE)
    rho = Fraction(0)
    for epsilon, spent, times in found:
        if epsilon is not None and _EXACT_BETWEEN[0] <= epsilon <= _EXACT_BETWEEN[1]:
            coin = library.RandomizedResponseDpEvent(2 / (exp(float_up(epsilon)) + 1), 2)
            accountant.compose(coin, times)
        else:
            rho += spent * times
    accountant.compose(library.ZCDpEvent(float_up(rho)))
    epsilon = Fraction(float(accountant.get_epsilon(float_down(delta))))
    return epsilon * (1 + _RENYI_MARGIN) + _RENYI_MARGIN


def pld_epsilon(composition: Composition, delta: Fraction) -> Fraction | None:
    """The epsilon of the privacy loss distribution of all answers, rounded up.

    Args:
        composition: the releases; all events have a ``half_mu_squared``.
        delta: the delta less the approximate deltas, above 0.

    Returns:
        None where doubles can't represent so small a delta or so large an epsilon, or ``composition.costs``
        have as much delta of their own.
    """
    from dp_accounting.pld import privacy_loss_distribution

    gaussian, parts = _pairs(composition)
    if not gaussian and not parts:
        return Fraction(0)
    answers = sum(parts.values()) + 1
    allowed = float(delta) * exp(-2 * float(DELTA_GROWTH) * float(gaussian)) * (1 - 1e-9)
    allowed -= _DELTA_MARGIN * (1 + answers / 1000)
    if allowed <= 0 or (step := _step(gaussian, parts, delta)) > _LARGEST_STEP:
        return None
    laws = [_law(part, step).self_compose(parts[part]) for part in sorted(parts, key=lambda p: p.epsilon)]
    if gaussian:
        deviation = 1 / sqrt(float_up(2 * gaussian)) * (1 - 1e-15)
        laws.append(
            privacy_loss_distribution.from_gaussian_mechanism(deviation, value_discretization_interval=step)
        )
    while len(laws) > 1:
        # In pairs of about equal size, as convolving is dearest with long ones.
        laws = [a.compose(b) for a, b in zip(laws[::2], laws[1::2], strict=False)] + laws[len(laws) & ~1 :]
    epsilon = float(laws[0].get_epsilon_for_delta(allowed))
    while epsilon < inf and laws[0].get_delta_for_epsilon(epsilon) > allowed:
        epsilon += 1e-9 * (1 + epsilon)
    if epsilon == inf:
        return None
    pure = not gaussian and not any(isinstance(part, Amount) and part.delta for part in parts)
    return min(Fraction(epsilon), _sum(parts)) if pure else Fraction(epsilon)


_Part = LaplaceEvent | ExponentialEvent | Amount


def _pairs(composition: Composition) -> tuple[Fraction, dict[_Part, int]]:
    """The mu^2/2 of everything that counts as normal laws; and the other parts, with their number."""
    gaussian = Fraction(0)
    parts: dict[_Part, int] = {}
    for event, times in composition.events.items():
        if isinstance(event, GaussianEvent | ThresholdEvent):
            assert event.half_mu_squared is not None
            gaussian += event.half_mu_squared * times
        elif isinstance(event, SelectionEvent):
            coin = Amount(Fraction(event.epsilon0))
            parts[coin] = parts.get(coin, 0) + event.partitions * times
        else:
            parts[event] = times
    for cost, times in composition.costs.items():
        if not cost.pure and cost.half_mu_squared is not None:
            gaussian += cost.half_mu_squared * times
        elif (rest := Amount(cost.amount.epsilon, cost.amount.delta - cost.approximate_delta)) != Amount():
            parts[rest] = parts.get(rest, 0) + times
    return gaussian, parts


def _sum(parts: Mapping[_Part, int]) -> Fraction:
    return sum((part.epsilon * times for part, times in parts.items()), Fraction(0))


def _step(gaussian: Fraction, parts: Mapping[_Part, int], delta: Fraction) -> float:
    half = gaussian + sum((PI * part.epsilon**2 / 4 * n for part, n in parts.items()), Fraction(0))
    reach = max(sqrt(2 * half), float(gdp_epsilon(half, delta)))
    if not gaussian:
        reach = min(reach, float(_sum(parts)))
    least = min((float(part.epsilon) for part in parts if part.epsilon), default=inf)
    return max(_LEAST_STEP * reach, min(_STEP * reach, least / 10)) or 1.0


def _law(part: _Part, step: float) -> PrivacyLossDistribution:
    """The privacy loss distribution of a pair of laws; losses are multiples of a step, rounded up."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    if isinstance(part, LaplaceEvent):
        return privacy_loss_distribution.from_discrete_laplace_mechanism(
            float_up(1 / Fraction(part.scale)),
            part.l1,
            value_discretization_interval=step,
            use_connect_dots=True,
        )
    epsilon = float_up(part.epsilon)
    far = max(1, ceil(epsilon / step))
    if isinstance(part, ExponentialEvent):
        points = np.unique(np.rint(np.linspace(-far, far, _POINTS)).astype(np.int64))
        revealed = 0.0
        between = np.expm1((np.clip(points * step, -epsilon, epsilon) - epsilon) / 2) ** 2
        between /= -np.expm1(-epsilon)
    else:
        points = np.unique([-far, 1 - far, far - 1, far])
        revealed = float_up(part.delta)
        between = -np.expm1(np.clip(points * step, -epsilon, epsilon) - epsilon) / (1 + exp(-epsilon))
    # Below -epsilon every delta(e) is 1 - exp(e).
    deltas = revealed + (1 - revealed) * np.maximum(between, -np.expm1(points * step))
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(step, points, deltas)
    )
