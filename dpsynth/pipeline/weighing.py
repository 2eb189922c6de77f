"""Marginals by weights: noise that doesn't grow with the rows of a person.

A bound of k rows a person gives a count of rows the noise of k rows, where a person has m on average. Where
all rows of a person have weight 1 together, noise is that of one person: k/m times less, relative to the
total. But weights tell of a random row of a random person, not of a random row.

How data flow. Single columns, and the pairs that statistics ask for, are counted as rows. If noisy numbers of
rows and of persons say that weights pay, everything that the strategy asks is asked of a curator whose rows
count by weights: its single columns, its distances, its pairs. The strategy sees rows, a weight being N/M
rows where there are N rows and M persons by noisy answers. The model is fitted to weights, and raked to
counts of rows of single columns (``model.raking``): those by rows, and those by surplus, which are what rows
add to (k + 1)/2 times the weights, with less than half of the noise of rows. So only relations come from
weights. Exam, verdict and the statistics that count as measured rest on rows alone.

Invariant: post-processing of a curator's answers. Whether weights are used follows from the configuration and
from noisy answers, and all of the budget is spent either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.measures import Measure
from dpsynth.accounting.neighbours import Weighting, whole_weight
from dpsynth.columns.codec import Codec
from dpsynth.columns.column import Column
from dpsynth.columns.domain import NO_STEPS, Clique, Compression, StepCells
from dpsynth.columns.measurement import Estimates, ManyEstimates, Measurement, WeightedCounts
from dpsynth.columns.sums import Centring, FinerCounts, MeasuredSums, Pieces
from dpsynth.plan.questions import Door
from dpsynth.strategy.allocation import FARTHEST, MEASURED_A_COLUMN

LEAST_GAIN, OF_NOISE = 1.2, 35.0
"""Rows of noise for each row of a person, k/m, from which weights pay for the single columns asked twice, and
its increase by the noise of a usual cell relative to all persons: with much noise single columns are most of
what can be had."""
CLEARLY = 3.0
"""Standard deviations of noise that the number of persons must exceed."""
OF_PERSONS = Fraction(1, 200)
"""The part of what remains for the number of persons."""
OF_WEIGHTS, OF_SURPLUS = Fraction(2, 100), Fraction(10, 100)
"""The parts for the single columns by weights, and by surplus."""
OF_A_PAIR, OF_PAIRS = Fraction(1, 20), Fraction(1, 4)
"""The part for a pair that a statistic asks for, counted as rows, and the largest for all of these."""


class RowsDoor(Door, Protocol):
    """A curator of rows of persons, and its twins."""

    def weighted(self, by: Weighting = "weights") -> RowsDoor: ...

    def with_rows_before(self, steps: StepCells = NO_STEPS, firsts: StepCells = NO_STEPS) -> RowsDoor: ...

    def grouped(self, compression: Compression) -> RowsDoor: ...


@dataclass(frozen=True)
class InWeights:
    """Estimates of rows in units of weight; only marginals are asked for."""

    rows: Estimates
    unit: float

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        return self.rows.marginal(clique) / self.unit

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, NDArray[np.float64]]:
        if isinstance(self.rows, ManyEstimates):
            return {c: counts / self.unit for c, counts in self.rows.marginals(cliques).items()}
        return {c: self.marginal(c) for c in cliques}

    def fingerprint(self) -> str:
        return sha256(f"{self.unit!r} {self.rows.fingerprint()}".encode()).hexdigest()


@dataclass(frozen=True, repr=False)
class WeighedDoor:
    """A strategy's door to rows that count by weights, in units of rows.

    Attributes:
        curator: of rows that count by weights (``Curator.weighted``).
        rows: of the same rows, each counted once.
        whole: the whole weight of a unit.
        unit: the rows that a unit of weight stands for.
    """

    curator: RowsDoor
    rows: RowsDoor
    whole: int
    unit: float

    def surplus(
        self, columns: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction]
    ) -> tuple[WeightedCounts, ...]:
        """Noisy counts of rows, less (k + 1)/2 times the persons by weights; of single columns."""
        by: Weighting = "surplus"
        found = self.rows.weighted(by).marginals(columns, allowance, weights)
        return tuple(WeightedCounts.of(m, self.whole, 0.5 / self.whole, by) for m in found if m is not None)

    def grouped(self, compression: Compression) -> WeighedDoor:
        """The door to the same rows over a compressed domain."""
        return replace(self, curator=self.curator.grouped(compression)) if compression.groups else self

    def with_rows_before(self, steps: StepCells = NO_STEPS, firsts: StepCells = NO_STEPS) -> WeighedDoor:
        """The door to the same rows, each with the values of the row before it."""
        return replace(self, curator=self.curator.with_rows_before(steps, firsts))

    @property
    def measure(self) -> Measure:
        return self.curator.measure

    @property
    def noise(self) -> str:
        return self.curator.noise

    @property
    def remaining(self) -> Fraction:
        return self.curator.remaining

    def cell_error(self, price: Fraction) -> float:
        return self.curator.cell_error(price) * self.unit

    def marginals(
        self, cliques: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        return self._in_rows(self.curator.marginals(cliques, allowance, weights))

    def singles(
        self, columns: Sequence[str], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        return self._in_rows(self.curator.singles(columns, allowance, weights))

    def parity_error(self, price: Fraction, number: int) -> float:
        return self.curator.parity_error(price, number) * self.unit

    def parities(self, columns: Sequence[str], most: int, price: Fraction) -> tuple[NDArray[np.int64], float]:
        return self._distances(*self.curator.parities(columns, most, price))

    def errors(
        self, candidates: Sequence[Clique], estimates: Estimates, price: Fraction
    ) -> tuple[NDArray[np.int64], float]:
        found = self.curator.errors(candidates, InWeights(estimates, self.unit), price)
        return self._distances(*found)

    def choose(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> int:
        known = InWeights(estimates, self.unit)
        return self.curator.choose(candidates, known, price, self._penalties(penalties), weights)

    def choose_in_turn(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        most: int,
        admissible: Callable[[Sequence[int]], NDArray[np.bool_]],
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> list[int]:
        known, off = InWeights(estimates, self.unit), self._penalties(penalties)
        return self.curator.choose_in_turn(candidates, known, price, most, admissible, off, weights)

    def sums(self, column: str, by: Clique, centring: Centring, price: Fraction) -> MeasuredSums:
        raise _of_rows()

    def finer_counts(self, column: str, by: Clique, pieces: Pieces, price: Fraction) -> FinerCounts:
        raise _of_rows()

    def counts_under(self, column: Column, codec: Codec, price: Fraction) -> tuple[NDArray[np.int64], float]:
        raise _of_rows()

    def medians(
        self, column: Column, cuts: NDArray[np.float64], runs: Sequence[tuple[int, int]], price: Fraction
    ) -> NDArray[np.int64]:
        raise _of_rows()

    def values_of(
        self, column: Column, price: Fraction, delta: Fraction, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        raise _of_rows()

    def _in_rows(self, answers: Sequence[Measurement | None]) -> list[Measurement | None]:
        return [None if m is None else WeightedCounts.of(m, self.whole, self.unit) for m in answers]

    def _distances(self, values: NDArray[np.int64], deviation: float) -> tuple[NDArray[np.int64], float]:
        return np.rint(values * self.unit).astype(np.int64), deviation * self.unit

    def _penalties(self, rows: Sequence[int]) -> list[int]:
        return [max(-FARTHEST, min(round(off / self.unit), FARTHEST)) for off in rows]


def _of_rows() -> ValueError:
    return ValueError("this is asked of rows, not of weights")


def weighed(
    curator: RowsDoor, max_rows: int, rows: float, columns: int
) -> tuple[tuple[WeightedCounts, ...], WeighedDoor | None]:
    """The whole weight of all persons, and the door to rows that count by weights, if they pay by it.

    Args:
        max_rows: the contribution bound k.
        rows: the noisy number of rows.
        columns: the number of columns.
    """
    by_weight, whole = curator.weighted(), whole_weight(max_rows)
    (total,) = by_weight.marginals([()], curator.remaining * OF_PERSONS)
    if total is None:
        return (), None
    weight = max(float(total.values), 1.0)
    persons = weight / whole
    unit = max(rows, persons) / weight
    told = (WeightedCounts.of(total, whole, unit),)
    surely = weight > CLEARLY * total.stddev
    usual = by_weight.remaining / (MEASURED_A_COLUMN * columns)
    least = LEAST_GAIN + OF_NOISE * by_weight.cell_error(usual) / weight
    pays = max_rows * persons >= least * max(rows, persons)
    return told, WeighedDoor(by_weight, curator, whole, unit) if surely and pays else None
