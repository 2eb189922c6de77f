"""The privacy loss of a transcript: how much likelier its answers are on one table than on its neighbour.

Noise is discrete, so the probability of each answer is known exactly, up to a factor that cancels. The loss
is the best statistic for telling two neighbours apart (Neyman and Pearson 1933).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import PURE, Measure
from dpsynth.wings.proof.audit.observed_door import Asked, Transcript

_LEAST_SCALE = 3.0
"""Scale from which discrete noise has the moments of continuous noise, to within a hundredth."""


def transcript_loss(one: Transcript, two: Transcript) -> float:
    """The sum of log-ratios of the probabilities of all answers on the first and on the second table.

    Answers of partition selection, and of several choices at once, are left out: any statistic gives a
    valid lower bound.

    Args:
        one: the transcript of a table.
        two: its replay on the neighbour.
    """
    return float(sum(_answer_loss(a, b) for a, b in zip(one.asked, two.asked, strict=True)))


def _answer_loss(one: Asked, two: Asked) -> float:
    answer, here, there = np.asarray(one.answer), one.exact, two.exact
    if not (isinstance(here, np.ndarray) and isinstance(there, np.ndarray)):
        return 0.0
    match one.event:
        case GaussianEvent(sigma=sigma):
            near, far = (answer - here).astype(np.float64), (answer - there).astype(np.float64)
            return float((far**2 - near**2).sum()) / (2 * sigma**2)
        case LaplaceEvent(scale=scale):
            return float((np.abs(answer - there) - np.abs(answer - here)).sum()) / scale
        case ExponentialEvent(scale=scale) if answer.ndim == 0:
            chosen = int(answer)
            return float((_log_chances(here, scale) - _log_chances(there, scale))[chosen])
        case _:
            return 0.0


@dataclass(frozen=True)
class ExactCost:
    """The exact cost of the answers of one transcript to a pair of tables, given their questions.

    Attributes:
        mean_loss: the expected loss in nats: the sum of the Kullback-Leibler divergences of all answers.
        largest_loss: the largest loss of any answers to these questions; infinite with Gaussian noise.
    """

    mean_loss: float
    largest_loss: float

    def share_of(self, measure: Measure, budget: Fraction) -> float:
        """The cost over a budget; at most 1 if the budget is kept.

        Under pure epsilon it is the largest loss that counts, else the mean loss: that of a Gaussian
        mechanism is mu^2/2, and rho bounds that of every other. Mu itself is the share's root.

        Args:
            measure: the measure of the budget.
            budget: epsilon, rho or mu^2/2.
        """
        if measure == PURE:
            return self.largest_loss / float(budget)
        share = self.mean_loss / float(budget)
        return share if measure.mu(Fraction(1)) is None else sqrt(share)


def exact_cost(one: Transcript, two: Transcript) -> ExactCost:
    """The exact cost of a transcript; that of partition selection is left out.

    Args:
        one: the transcript of a table.
        two: its replay on the neighbour.
    """
    costs = [_cost_of(a, b) for a, b in zip(one.asked, two.asked, strict=True)]
    return ExactCost(float(sum(mean for mean, _ in costs)), float(sum(most for _, most in costs)))


def _cost_of(one: Asked, two: Asked) -> tuple[float, float]:
    """The expected and the largest loss of an answer."""
    here, there = one.exact, two.exact
    if not (isinstance(here, np.ndarray) and isinstance(there, np.ndarray)):
        return 0.0, 0.0
    gap = np.abs(here - there).astype(np.float64)
    match one.event:
        case GaussianEvent(sigma=sigma):
            return float((gap**2).sum()) / (2 * sigma**2), inf if gap.any() else 0.0
        case LaplaceEvent(scale=scale):
            ratio = exp(-1 / scale)
            # E|X - g| = g + 2 r^(g + 1)/(1 - r^2), by a sum over its steps P(X < g) - P(X >= g).
            rest = 2 * (ratio ** (gap + 1) - ratio) / (1 - ratio**2)
            return float((gap + rest).sum()) / scale, float(gap.sum()) / scale
        case ExponentialEvent(scale=scale) if np.asarray(one.answer).ndim == 0:
            near, far = _log_chances(here, scale), _log_chances(there, scale)
            return float((np.exp(near) * (near - far)).sum()), float(np.abs(near - far).max())
        case _:
            return 0.0, 0.0


def _log_chances(scores: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    weights = (scores - scores.max()).astype(np.float64) / scale
    chances: NDArray[np.float64] = weights - np.log(np.exp(weights).sum())
    return chances


@dataclass(frozen=True)
class DrawnNoise:
    """The noise that was really drawn, beside what the events state.

    Attributes:
        draws: number of draws.
        ratio: their size over the stated one: root of the mean square for Gaussian, mean for Laplace noise.
    """

    draws: int
    ratio: float

    @property
    def as_stated(self) -> bool:
        """False where chance explains the difference less often than once in 10^8 audits."""
        return abs(self.ratio - 1) <= 0.02 + 6 / sqrt(max(self.draws, 1))


def drawn_noise(transcripts: Iterable[Transcript]) -> DrawnNoise:
    """The size of all noise in some transcripts, in units of what their events state.

    Only noise of a scale of 3 or more counts, which has the moments of continuous noise.
    """
    draws, total = 0, 0.0
    for transcript in transcripts:
        for asked in transcript.asked:
            scale = getattr(asked.event, "scale", 0.0)
            if not isinstance(asked.event, GaussianEvent | LaplaceEvent) or scale < _LEAST_SCALE:
                continue
            if not isinstance(asked.exact, np.ndarray):
                continue
            noise = np.abs(np.asarray(asked.answer) - asked.exact).astype(np.float64) / scale
            draws += noise.size
            # The mean square of a Gaussian, and the mean of a Laplace draw, are both 1.
            total += float((noise**2).sum() if isinstance(asked.event, GaussianEvent) else noise.sum())
    return DrawnNoise(draws, sqrt(total / draws) if draws else 1.0)
