r"""The noisy number of rows, and shares of it with limits.

A share is a ratio of two noisy numbers that are linear in the answers: a count M, and the number of rows N,
averaged over its own answer and all columns' sums with weights by their precision. By Fieller's theorem its
limits are the roots s of (M - sN)^2 = z^2 Var(M - sN), where z is a number of standard deviations. They are
real if N exceeds z of its own; otherwise noise allows any share. With w the weight of M's own column in N,
Var(M - sN) = Var(M)(1 - 2sw) + s^2 Var(N).

Invariant: only answers of the release and public facts enter. All limits of a release hold together, but for
a chance of ``CHANCE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from dpsynth.accounting.noises import noise_named
from dpsynth.columns.measurement import ExactTotal, Measurement, OwnAnswer

CHANCE = 1e-4
"""Probability that any limit of a release is wrong, because of the noise."""
_LEAST = 1e-6
"""Least variance; noise so small that its variance rounds to 0 takes part like any other."""


@dataclass(frozen=True)
class Limits:
    """A noisy figure, and the limits that the noise allows it."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class NoisyRows:
    """The number of rows by the first answers.

    Attributes:
        rows: the public number if there is one, otherwise the average of the answers' sums.
        variance: its variance, in rows squared; 0 if it is public.
        reach: rows that the noise of the answers' average may come to, whether or not the number is public.
        deviations: standard deviations that no noise of the release exceeds, but for a small chance.
    """

    rows: float
    variance: float
    reach: float
    deviations: float

    @classmethod
    def of(cls, answers: Sequence[OwnAnswer]) -> NoisyRows:
        """The number of rows.

        Args:
            answers: the number of rows, noisy or public, and the noisy marginals of single columns; at least
                one of them is noisy.
        """
        noisy = [m for m in answers if isinstance(m, Measurement)]
        # A lower and an upper limit for each cell.
        limits = 2 * sum(m.values.size for m in noisy)
        each, single = (max(noise_named(m.noise).deviations(k, CHANCE) for m in noisy) for k in (limits, 1))
        precisions = [1.0 / _variance_of_sum(m) for m in noisy]
        own = 1.0 / sum(precisions)
        exact = [float(t.values) for t in answers if isinstance(t, ExactTotal)]
        if exact:
            return cls(exact[0], 0.0, single * sqrt(own), each)
        sums = (p * float(m.values.sum()) for p, m in zip(precisions, noisy, strict=True))
        return cls(own * sum(sums), own, single * sqrt(own), each)

    @property
    def below_noise(self) -> bool:
        """True if the number of rows can't be told from the noise of the answers' average."""
        return self.rows <= self.reach

    def share(self, answer: Measurement, codes: Sequence[int]) -> Limits:
        """Share of all rows that have one of some codes of a column; only for a table above its noise."""
        found = float(answer.values[list(codes)].sum())
        variance = max(answer.variance, _LEAST) * len(codes)
        weight, z2 = self.variance / _variance_of_sum(answer), self.deviations**2
        a = self.rows**2 - z2 * self.variance
        b = self.rows * found - z2 * weight * variance
        c = found**2 - z2 * variance
        if a <= 0:
            return Limits(min(max(found / self.rows, 0.0), 1.0), 0.0, 1.0)
        root = sqrt(max(b * b - a * c, 0.0))
        low, high = (min(max((b + side) / a, 0.0), 1.0) for side in (-root, root))
        return Limits(min(max(found / self.rows, low), high), low, high)


def _variance_of_sum(answer: Measurement) -> float:
    return max(answer.variance_of_sum, _LEAST)
