"""Lower bounds on a privacy loss, from how well an attacker told two neighbours apart.

A test that finds the first table with a false-negative rate b and a false-positive rate a refutes every
(epsilon, delta) with 1 - delta - b > e^epsilon a, and every mu-Gaussian DP with
mu < Phi^-1(1 - a) - Phi^-1(b) (Dong, Roth and Su 2022). The rates are replaced by upper confidence limits of
Clopper and Pearson (1934), as in Nasr et al. (2023).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from dpsynth.accounting.loss_pairs import LEVEL, limits

Scores = NDArray[np.float64]

CONFIDENCE = LEVEL
"""Confidence of a bound."""
_THRESHOLDS = 60
"""Largest number of thresholds that are tried."""


@dataclass(frozen=True)
class LowerBound:
    """The success of an attacker on releases that weren't used to choose the threshold.

    Attributes:
        epsilon: lower bound on epsilon at the delta that was asked for; at least 0.
        mu: lower bound on mu of Gaussian DP; at least 0.
        hits, false_alarms: shares of releases with the unit, and without it, that were taken to have it.
        right: share of right guesses, where both tables are equally likely.
        right_between: its limits by Clopper and Pearson.
        releases: number of releases of each of the two tables that these rest on.
        confidence: confidence of both bounds together with their threshold, and of the limits.
    """

    epsilon: float
    mu: float
    hits: float
    false_alarms: float
    right: float
    right_between: tuple[float, float]
    releases: int
    confidence: float = CONFIDENCE


def lower_bound(inside: Scores, outside: Scores, delta: float, threshold: float | None = None) -> LowerBound:
    """The lower bound from an attacker's scores; a high score says that the unit is in the table.

    Without a threshold, one and a direction are chosen on the first third of either list, and judged on the
    rest: choosing is no evidence.

    Args:
        inside: float64[releases], scores of releases with the unit.
        outside: float64[releases], scores of releases without it.
        delta: the delta at which epsilon is bounded.
        threshold: the least score that says so, if it is known beforehand.
    """
    sign, least = 1.0, threshold
    if least is None:
        cut, other = len(inside) // 3, len(outside) // 3
        sign, least = _chosen(inside[:cut], outside[:other])
        inside, outside = inside[cut:], outside[other:]
    hits, false = _rates(inside, outside, sign, least)
    missed, alarms = round((1 - hits) * len(inside)), round(false * len(outside))
    b, a = _at_most(missed, len(inside)), _at_most(alarms, len(outside))
    # The test may be read either way round.
    refuted = max((1 - delta - b) / a, (1 - delta - a) / b)
    right, guesses = len(inside) - missed + len(outside) - alarms, len(inside) + len(outside)
    return LowerBound(
        epsilon=max(0.0, log(refuted)) if refuted > 0 else 0.0,
        mu=max(0.0, _mu(missed, len(inside), alarms, len(outside))),
        hits=hits,
        false_alarms=false,
        right=right / guesses,
        right_between=limits(right, guesses),
        releases=min(len(inside), len(outside)),
    )


def _chosen(inside: Scores, outside: Scores) -> tuple[float, float]:
    """The direction and the threshold with the largest bound on mu."""

    def bound(candidate: tuple[float, float]) -> float:
        hits, false = _rates(inside, outside, *candidate)
        return _mu((1 - hits) * len(inside), len(inside), false * len(outside), len(outside))

    return max(_candidates(inside, outside), key=bound, default=(1.0, 0.0))


def _candidates(inside: Scores, outside: Scores) -> Iterator[tuple[float, float]]:
    """Both directions, with each of some thresholds between the scores."""
    scores = np.unique(np.concatenate([inside, outside]))
    between = (scores[1:] + scores[:-1]) / 2
    if len(between) > _THRESHOLDS:
        between = np.quantile(between, np.linspace(0, 1, _THRESHOLDS))
    for sign in (1.0, -1.0):
        yield from ((sign, float(threshold)) for threshold in between)


def _rates(inside: Scores, outside: Scores, sign: float, threshold: float) -> tuple[float, float]:
    """Shares of the two lists that are taken to hold the unit."""
    found = [
        float(np.mean(sign * (scores - threshold) > 0)) if len(scores) else 0.0
        for scores in (inside, outside)
    ]
    return found[0], found[1]


def _mu(missed: float, inside: int, alarms: float, outside: int) -> float:
    return float(-ndtri(_at_most(alarms, outside)) - ndtri(_at_most(missed, inside)))


def _at_most(events: float, trials: int) -> float:
    """Upper Clopper-Pearson limit of a rate; two of them hold together with the confidence."""
    if events >= trials:
        return 1.0
    return float(beta.ppf(1 - (1 - CONFIDENCE) / 2, events + 1, trials - events))
