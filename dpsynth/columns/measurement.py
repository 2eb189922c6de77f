"""Noisy and public counts, each with a type that gives its provenance.

A model takes any ``Observation``. A release may write down as its own answers only a ``Measurement``, which
was charged to the journal, or an ``ExactTotal``; public counts and evidence have other types.

A census publishes totals. Public marginals given as counts are those of the private table itself, so the
number of its rows, their sum, is public too. Where all marginals are given as shares, it stays private.

Invariant: all of them are public. Everything after a measurement is post-processing. Public marginals agree
wherever they share columns, and all counts have one sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import noise_variance
from dpsynth.accounting.neighbours import Weighting
from dpsynth.columns.domain import Clique


class Estimates(Protocol):
    """Estimated counts of any marginal."""

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        """Estimated counts, axes in the clique's order."""

    def fingerprint(self) -> str: ...


@runtime_checkable
class ManyEstimates(Protocol):
    """Estimates of many marginals together, at less work than one by one."""

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, NDArray[np.float64]]:
        """Estimated counts by clique, axes in its order."""


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
        return sqrt(self.variance)


@dataclass(frozen=True, eq=False)
class Observation(Noisy):
    """Counts of one marginal, with an error of given variance.

    Attributes:
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
        return self.variance * (self.values.size if self.summed is None else int(self.summed.sum()))


@dataclass(frozen=True, eq=False)
class Measurement(Observation):
    """A noisy marginal: charged and drawn by the curator, or made of reports that respondents randomised."""


@dataclass(frozen=True, eq=False)
class WeightedCounts(Measurement):
    """A noisy marginal of rows that count by weights, in units of rows: no count of rows.

    All rows of a unit have the same weight together (``Neighbours.weighted``), so units with few rows count
    for more than in a count of rows.

    Attributes:
        values, scale: those that were drawn, times a public number; values are rounded.
        drawn: what the curator drew, in units of weight.
        whole: the whole weight of a unit.
        by: the way in which rows count.
    """

    drawn: Measurement | None = None
    whole: int = 0
    by: Weighting = "weights"

    @classmethod
    def of(cls, drawn: Measurement, whole: int, rows: float, by: Weighting = "weights") -> WeightedCounts:
        """The answer with a unit of what was drawn as so many rows."""
        values = np.rint(drawn.values * rows).astype(np.int64)
        return cls(drawn.clique, values, drawn.noise, drawn.scale * rows, drawn=drawn, whole=whole, by=by)


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


@dataclass(frozen=True)
class Classified(Noisy):
    """Noisy rows of each class, a column's code, that a classifier guesses wrong and right."""

    target: str
    aim: str
    wrong: tuple[int, ...]
    right: tuple[int, ...]
    noise: str
    scale: float


@dataclass(frozen=True, eq=False)
class ExactTotal(Observation):
    """The number of rows, where it is public: under replace-one, or by public marginals that are counts."""

    @classmethod
    def of(cls, rows: int | NDArray[np.int64]) -> ExactTotal:
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

PooledCounts = Mapping[Clique, tuple[NDArray[np.float64], float]]
"""Counts of each clique, and their noise's variance."""

Kind = Literal["pair", "criterion", "statistic", "triple", "link"]


@dataclass(frozen=True)
class Examined:
    """A marginal of the exam.

    Attributes:
        kind: "pair"; "criterion", other columns of an acceptance criterion; "statistic", a requested table of
            three columns or more; "triple", drawn at random; or "link", a column and that of the row before.
    """

    kind: Kind
    clique: Clique


def estimated_total(measurements: Sequence[Observation]) -> float:
    """Number of rows: the public number if there is one, else the minimum-variance estimate.

    The variance of a full marginal's sum is the sum of its values' variances. Denoised counts tell nothing of
    it where others do: their cells' errors have one sign. The result is at least 1, so that proportions are
    defined for an empty table too.
    """
    measurements = [m for m in measurements if not isinstance(m, DenoisedCounts)] or measurements
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


_FINE = 4
"""Up to this multiple of the bound a cell begins a quarter above the one before; beyond, at its double."""
_FARTHEST = 64
"""The last cell, which is open, begins at this multiple of the bound, or before."""


def ranges_of_rows(bound: int, *, each: bool) -> tuple[int, ...]:
    """The least number of rows of each cell, rising from 1; the last cell has no end.

    Above the bound, cells widen with the number of rows: up to four times the bound each begins a quarter
    above the one before, and beyond at its double. Narrower cells would tell less: each adds noise to sums.

    Args:
        bound: the contribution bound, or the largest one that may be found.
        each: True if every number up to the bound has a cell of its own, False if one cell has them all.

    >>> ranges_of_rows(4, each=False)
    (1, 5, 6, 7, 8, 10, 12, 15, 18, 36, 72, 144)
    >>> ranges_of_rows(3, each=True)
    (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 24, 48, 96, 192)
    """
    first = list(range(1, bound + 1)) if each else [1]
    start = bound + 1
    while start <= _FARTHEST * bound or start == bound + 1:
        first.append(start)
        start += max(start // 4, 1) if start < _FINE * bound else start
    return tuple(first)


@dataclass(frozen=True, eq=False)
class UnitsByRows(Noisy):
    """Noisy numbers of units by their number of rows, charged and drawn by the curator.

    Attributes:
        first: the least number of rows of each cell, rising from 1; the last cell has no end.
        values: int64[cells], numbers of units plus noise.
        noise: "gaussian" or "laplace".
        scale: sigma or b, in units.
    """

    first: tuple[int, ...]
    values: NDArray[np.int64]
    noise: str
    scale: float

    def up_to(self, most: int) -> NDArray[np.int64]:
        """Noisy numbers of units with 1, 2, ... rows, int64[most]; the last one is of all with more, too.

        Raises:
            ValueError: a number of rows up to ``most`` has no cell of its own.
        """
        if self.first[:most] != tuple(range(1, most + 1)):
            raise ValueError("these numbers of rows have no cells of their own")
        return np.append(self.values[: most - 1], self.values[most - 1 :].sum())


Shares = NDArray[np.float64]

AGREEMENT = 1e-6
"""Largest difference between two shares of the same rows."""


@dataclass(frozen=True, eq=False)
class PublicMarginal:
    """A public marginal.

    Attributes:
        numbers: float64 of the columns' sizes; counts, or shares on any scale. At least one is above 0.
        counted: true if they are counts of the private table's rows.
    """

    clique: Clique
    numbers: Shares
    counted: bool

    @cached_property
    def shares(self) -> Shares:
        return self.numbers / self.numbers.sum()

    def summed(self, clique: Clique) -> Shares:
        """Shares over some of the columns, axes in their order."""
        kept = [self.clique.index(c) for c in clique]
        others = tuple(i for i in range(len(self.clique)) if i not in kept)
        left = sorted(kept)
        return self.shares.sum(axis=others).transpose([left.index(i) for i in kept])


@dataclass(frozen=True, eq=False)
class PublicMarginals:
    """All public marginals of a table.

    Attributes:
        marginals: marginals of which none lies within another's columns; each shares as many columns as
            possible with the marginals before it.
    """

    marginals: tuple[PublicMarginal, ...] = ()

    @classmethod
    def of(cls, marginals: Iterable[PublicMarginal]) -> PublicMarginals:
        """The marginals without those that another one contains.

        Raises:
            Contradiction: two of them disagree.
        """
        given = list(marginals)
        for i, one in enumerate(given):
            for j, other in enumerate(given[:i]):
                _agree(i, one, j, other)
        kept: list[PublicMarginal] = []
        for marginal in sorted(given, key=lambda m: -len(m.clique)):
            if not any(set(marginal.clique) <= set(k.clique) for k in kept):
                kept.append(marginal)
        order: list[PublicMarginal] = []
        seen: set[str] = set()
        while kept:
            following = max(kept, key=lambda m: len(seen & set(m.clique)))
            kept.remove(following)
            order.append(following)
            seen |= set(following.clique)
        return cls(tuple(order))

    @cached_property
    def rows(self) -> int | None:
        """The private table's number of rows; None where that is private."""
        counted = [m for m in self.marginals if m.counted]
        return round(float(counted[0].numbers.sum())) if counted else None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return tuple(m.clique for m in self.marginals)

    @property
    def columns(self) -> frozenset[str]:
        """Columns whose one-way marginal is public."""
        return frozenset(c for m in self.marginals for c in m.clique)

    def shares(self, columns: Clique) -> Shares | None:
        """The part of all rows that each cell of some columns has; None where that is not public."""
        of = next((m for m in self.marginals if columns and set(columns) <= set(m.clique)), None)
        return None if of is None else of.summed(columns)


NO_PUBLIC_MARGINALS = PublicMarginals()


class Contradiction(ValueError):
    """Two public marginals that can't both be true: the position of the later one, and its fault."""

    def __init__(self, position: int, words: str) -> None:
        super().__init__(words)
        self.position = position
        self.words = words


def _agree(i: int, one: PublicMarginal, j: int, other: PublicMarginal) -> None:
    totals = [m.numbers.sum() for m in (one, other)]
    if one.counted and other.counted and totals[0] != totals[1]:
        raise Contradiction(
            i,
            f"adds up to {totals[0]:,.0f} rows, and public_marginals[{j}] to {totals[1]:,.0f}: all counts "
            "are of the same table, so they must have one sum. If they are of another population, give them "
            "as shares",
        )
    shared = tuple(c for c in one.clique if c in other.clique)
    if shared and float(np.abs(one.summed(shared) - other.summed(shared)).max()) > AGREEMENT:
        raise Contradiction(
            i, f"contradicts public_marginals[{j}]: the two have other numbers for {' and '.join(shared)}"
        )


def pooled_counts(answers: Iterable[Observation], *, joint: bool = False) -> PooledCounts:
    """Counts of each column by all noisy answers, averaged by precision; of all cliques with ``joint``."""
    sums: dict[Clique, tuple[NDArray[np.float64], float]] = {}
    for m in answers:
        if (joint or len(m.clique) == 1) and m.variance > 0:
            before, precision = sums.get(m.clique, (np.zeros(m.values.shape), 0.0))
            sums[m.clique] = before + m.values / m.variance, precision + 1 / m.variance
    return {clique: (values / precision, 1 / precision) for clique, (values, precision) in sums.items()}
