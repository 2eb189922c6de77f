"""Figures of all rows from answers about a Poisson sample of the units: counts over the rate, with its error.

With s rows of a cell in a sample of rate q, s/q estimates the rows of the table. A sum of cells times weights
w has the variance of its noise, and that of sampling: the sum over units of (the unit's rows times w)^2 times
q (1 - q). A unit has at most k rows, so by the inequality of Cauchy and Schwarz that is at most (1 - q) k
times the sum of w^2 s, s being expected rows in the sample. Both are divided by q^2.

Invariant: errors count noise and sampling; the answers and the model stay in rows of the sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import Annotated

import numpy as np
from pydantic import Field

from dpsynth.statistics.estimates import ALL, Z95, CountedCells, Counts, Numbers, Place


@dataclass(frozen=True)
class SampledUnits:
    """A Poisson sample of the units.

    Attributes:
        rate: probability with which a unit is in the sample.
        rows_a_unit: the most rows of a unit that count.
    """

    rate: Annotated[float, Field(gt=0, lt=1)]
    rows_a_unit: Annotated[int, Field(ge=1)]

    def variance(self, weights: Numbers, rows: Numbers) -> Numbers:
        """Variance by sampling of weighted sums along the last axis, in rows of the sample squared.

        A cell counts one row more than it is estimated to have, since noise may have hidden it.
        """
        expected = np.maximum(rows, 0.0) + 1.0
        return (1.0 - self.rate) * self.rows_a_unit * np.asarray((weights**2 * expected).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class OfAllRows:
    """Counts of the sample as counts of all rows."""

    counted: CountedCells
    sampled: SampledUnits

    @property
    def basis(self) -> str:
        return self.counted.basis

    @property
    def limits(self) -> str:
        return self.counted.limits

    @property
    def cells(self) -> Numbers:
        return np.asarray(self.counted.cells / self.sampled.rate)

    @property
    def figures(self) -> Counts:
        """Counts over the rate; shares as they are. Errors count the noise and the sample."""
        found, rate = self.counted.figures, self.sampled.rate
        each = self.sampled.variance(np.ones((found.rows.size, 1)), found.rows[:, None])
        total = max(float(found.rows.sum()), 1.0)
        share = np.clip(found.share, 0.0, 1.0)
        apart = share * (1.0 - share) + 1.0 / total
        of_share = (1.0 - rate) * self.sampled.rows_a_unit * apart / total
        return replace(
            found,
            rows=found.rows / rate,
            error=np.sqrt(found.error**2 + each) / rate,
            share_error=np.sqrt(found.share_error**2 + of_share),
        )

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        mine = np.reshape(self.counted.cells, (place[1], -1))[place[0]]
        of_sample = Z95 * sqrt(float(self.sampled.variance(weights, mine)))
        return hypot(self.counted.reach(weights, place), of_sample) / self.sampled.rate


def of_all_rows(counted: CountedCells, sampled: SampledUnits | None) -> CountedCells:
    """Counts of all rows from those of a sample; unchanged without one."""
    return counted if sampled is None else OfAllRows(counted, sampled)
