"""Counts that a model is fitted to, each with a type that gives their provenance.

A model takes any ``Observation``. A release may write down as its own answers only a ``Measurement``, which
was charged to the journal, or an ``ExactTotal``; public counts and evidence have other types.

Invariant: all of them are public. Everything after a measurement is post-processing.

Public estimates of marginals, with which a curator compares the private table.

Marginals of a synthetic table that are examined, and how far a noisy distance of one may be off.

Invariant: public facts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import noise_named
from dpsynth.columns.domain import Clique


class Estimates(Protocol):
    """Estimated counts of any marginal."""

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        """Estimated counts, axes in the clique's order."""
        ...

    def fingerprint(self) -> str:
        """A digest that changes whenever an estimate does."""
        ...


@runtime_checkable
class ManyEstimates(Protocol):
    """Estimates of many marginals together, at less work than one by one."""

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, NDArray[np.float64]]:
        """Estimated counts by clique, axes in its order."""
        ...


RANDOMISED = "randomised response"
"""Noise of answers that respondents randomise themselves: about normal, as a sum over many respondents."""


def noise_variance(noise: str, scale: float) -> float:
    """Variance of one draw of discrete noise.

    Args:
        noise: "gaussian" (discrete Gaussian, scale = sigma), "laplace" (discrete Laplace,
            scale = b), "randomised response" (scale = standard deviation of a cell on average) or "none"
            (an exact public number).
        scale: the distribution's parameter, in counts.
    """
    if noise == RANDOMISED:
        return scale**2
    return 0.0 if noise == "none" else noise_named(noise).variance(scale)


@lru_cache(maxsize=256)
def mean_absolute_error(noise: str, scale: float) -> float:
    """Expected |x| of one draw of discrete noise, in counts; arguments as of ``noise_variance``."""
    if noise == RANDOMISED:
        return sqrt(2 / pi) * scale
    return 0.0 if noise == "none" else noise_named(noise).mean_absolute_error(scale)


class Noisy:
    """Values with noise of a known distribution, each with a draw of its own.

    Attributes:
        noise: the name of the distribution; see ``noise_variance``.
        scale: its parameter, in the unit of the values.
    """

    noise: str
    scale: float

    @property
    def variance(self) -> float:
        """Variance of one draw of the noise, in the unit of the values squared."""
        return noise_variance(self.noise, self.scale)

    @property
    def stddev(self) -> float:
        """Standard deviation of one draw of the noise, in the unit of the values."""
        return sqrt(self.variance)


@dataclass(frozen=True, eq=False)
class Observation(Noisy):
    """Counts of one marginal, with an error of given variance.

    Attributes:
        clique: the columns counted, in the order of the array's axes.
        values: int64, shape ``domain.shape(clique)``: counts plus noise, in rows.
        noise: "gaussian", "laplace", "randomised response", or "none" for a number that is exact.
        scale: sigma of the discrete Gaussian, b of the discrete Laplace, or the standard deviation of
            randomised answers, in rows.
        summed: int64, shape of the values: number of noisy counts whose sum each value is, each count with
            noise of its own; None where each value is one count.
    """

    clique: Clique
    values: NDArray[np.int64]
    noise: str
    scale: float
    summed: NDArray[np.int64] | None = None

    @property
    def variances(self) -> NDArray[np.float64]:
        """Variance of each value's noise, float64, shape of the values; ``variance`` is one noisy count's."""
        counts = np.ones(self.values.shape) if self.summed is None else self.summed
        return self.variance * np.asarray(counts, dtype=np.float64)

    @property
    def variance_of_sum(self) -> float:
        """Variance of the sum of all values' noise, in rows squared."""
        return self.variance * (self.values.size if self.summed is None else int(self.summed.sum()))


@dataclass(frozen=True, eq=False)
class Measurement(Observation):
    """A noisy marginal: charged and drawn by the curator, or made of reports that respondents randomised.

    Nothing else of private rows reaches a release.
    """


@dataclass(frozen=True, eq=False)
class NoisyDistances(Noisy):
    """Noisy distances between a finished table and the private one, charged and drawn by the curator.

    Attributes:
        cliques: the marginals compared.
        values: int64[cliques], L1 distances of their counts plus noise, in rows.
        noise: "gaussian" or "laplace".
        scale: sigma or b, in rows.
    """

    cliques: tuple[Clique, ...]
    values: NDArray[np.int64]
    noise: str
    scale: float


@dataclass(frozen=True, eq=False)
class ExactTotal(Observation):
    """The number of rows, where it is public: under replace-one, or by public marginals that are counts."""

    @classmethod
    def of(cls, rows: int | NDArray[np.int64]) -> ExactTotal:
        """The total of so many rows."""
        return cls((), np.array(rows), "none", 0.0)


@dataclass(frozen=True, eq=False)
class PublicCounts(Observation):
    """Counts from public knowledge: a marginal given in the config, or one of a public table."""


@dataclass(frozen=True, eq=False)
class EvidenceCounts(Observation):
    """An estimate from published counts: those of earlier releases, or of a public table, rescaled."""


@dataclass(frozen=True, eq=False)
class CombinedCounts(Observation):
    """Counts of one column from answers about it with other columns, reconciled: no answer of its own."""


@dataclass(frozen=True, eq=False)
class DenoisedCounts(Observation):
    """An estimate from a release's own answers by empirical Bayes: less noise, but not unbiased."""


LEAST_VARIANCE = 1e-6
"""Least variance of a whole number in an estimate; less noise than that counts as this much."""

OwnAnswer = Measurement | ExactTotal
"""The types of a release's own answers."""

Kind = Literal["pair", "statistic", "triple"]

OUTSIDE = 0.05
"""Chance that a distance lies outside of its limits; each pair of limits holds by itself."""


@dataclass(frozen=True)
class Examined:
    """A marginal of the exam.

    Attributes:
        kind: "pair", "statistic" (a requested table of three columns or more) or "triple" (drawn at random).
        clique: its columns, in table order.
    """

    kind: Kind
    clique: Clique


def reach(noise: str, scale: float) -> float:
    """Half the width of the 95 % interval of a noisy distance, in rows."""
    return noise_named(noise).deviations(1, OUTSIDE / 2) * sqrt(noise_variance(noise, scale))


def estimated_total(measurements: Sequence[Observation]) -> float:
    """Number of rows: the public number if there is one, else the minimum-variance estimate.

    The variance of a full marginal's sum is the sum of its values' variances. The result is at least 1, so
    that proportions are defined for an empty table too.
    """
    public = [float(m.values.sum()) for m in measurements if m.noise == "none"]
    if public:
        return max(1.0, public[0])
    sums = np.array([float(m.values.sum()) for m in measurements])
    weights = np.array([1.0 / max(m.variance_of_sum, LEAST_VARIANCE) for m in measurements])
    return max(1.0, float((sums * weights).sum() / weights.sum())) if len(sums) else 1.0


def error_of_total(measurements: Sequence[Observation]) -> float:
    """Standard error of ``estimated_total``; 0 for a public number."""
    if not measurements or any(m.noise == "none" for m in measurements):
        return 0.0
    return 1.0 / sqrt(sum(1.0 / max(m.variance_of_sum, LEAST_VARIANCE) for m in measurements))
