"""Errors of the model's figures by the exam, so that they hold whatever the model lacks.

The exam measures the L1 distance D of the synthetic table from the private one in a clique. It says how large
the errors of all cells are together: noise, shrinkage, and relations that the model doesn't have. The model's
own counts n lie as far away, but for the rounding to whole rows. The distance is divided among the cells as
the sizes of their errors are expected to be: cell i gets D sqrt(n_i + 1) / sum_j sqrt(n_j + 1). Errors have
longer tails than normal ones, as some relations are missing and others aren't. Those of the Laplace
distribution with the mean size e lie within e ln(20) in 95 of 100 cases.

The errors of a group's cells may be random, or all of them may shift the group's mean in one direction, as
they do where a relation is missing. Then some groups are further off than others. So a sum may be off by
random errors, and by a shift of errors of two and a half times the expected sizes. Chance shifts nothing: a
table that was drawn from the model would be at the distance C of it, the sum of sqrt(2 n_i/pi) over cells.
One that agrees with measured marginals is nearer; half of C^2 is taken for chance, so the sizes in the shift
are those of the distance sqrt(D^2 - C^2/2).

That is a model of the errors, held against tables by ``benchmarks/coverage.py``. There is a bound too. Errors
above zero and errors below zero add up to D/2 each, if both tables have as many rows. So a sum of counts with
weights between a and b is off by at most (b - a) D/2, and by |a + b|/2 more for each row by which the numbers
of rows differ. The narrower of the two is taken.

Invariant: post-processing. Nothing here has seen the private table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log, pi, sqrt

import numpy as np

from dpsynth.statistics.estimates import ALL, HOLDS, LEAST_ROWS, Z95, Counts, Numbers, Place, Unbiased, ratio

_TAIL = log(20)
"""Half the width of the 95 % interval of an error, by its expected size."""
_FURTHER = 2.5
"""Size of errors that shift a sum in one direction, by the expected size: groups are not equally far off."""


@dataclass(frozen=True)
class Distance:
    """A measured L1 distance of a clique, in rows.

    Attributes:
        expected: the noisy distance, at least 0, and one standard error of its noise: intervals would be too
            short where noise has made a distance small.
        highest: its upper 95 % limit.
    """

    expected: float
    highest: float


Distances = Mapping[frozenset[str], Distance]
"""The measured distance of each examined clique, by its columns."""


@dataclass(frozen=True, eq=False)
class ExaminedCells:
    """The model's counts of columns whose distance from the private table was measured.

    Attributes:
        cells: float64, the counts.
        distance: the measured distance.
        rows_reach: half the width of the 95 % interval of the number of rows.
        basis: what the model rests on.
    """

    cells: Numbers
    distance: Distance
    rows_reach: float
    basis: str = "model"
    limits: str = HOLDS

    @staticmethod
    def of(cells: Numbers, distance: Distance, direct: Unbiased, basis: str) -> ExaminedCells:
        """The model's counts with errors by the exam.

        Args:
            cells: the model's counts.
            distance: the measured distance of their columns.
            direct: the measured counts, which tell how well the number of rows is known.
            basis: what the model rests on.
        """
        return ExaminedCells(cells, distance, Z95 * sqrt(direct.cell_variance(())), basis)

    @cached_property
    def sizes(self) -> Numbers:
        """Expected size of the error of each cell, in rows, of the cells' shape."""
        parts = np.sqrt(np.maximum(self.cells, 0.0) + 1.0)
        return np.asarray(self.distance.expected * parts / parts.sum())

    @cached_property
    def shifting(self) -> float:
        """The part of the errors' sizes that may shift sums: what isn't chance, by squares."""
        by_chance = float(np.sqrt(np.maximum(self.cells, 0.0) / pi).sum())
        return sqrt(max(1.0 - (by_chance / max(self.distance.expected, 1e-9)) ** 2, 0.0))

    @property
    def figures(self) -> Counts:
        """All counts, and their shares of all rows."""
        rows, total = self.cells.ravel(), float(self.cells.sum())
        bound = (self.distance.highest + self.rows_reach) / 2
        error = np.minimum(_TAIL * self.sizes.ravel(), bound) / Z95
        return Counts(rows, error, ratio(rows, total, LEAST_ROWS), ratio(error, total, LEAST_ROWS))

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        """The reach of errors of the expected sizes, or the bound by half of the distance if that is less."""
        number, groups = place
        parts = np.abs(weights) * self.sizes.reshape(groups, -1)[number]
        # A cell's own error is random; the errors of all others may shift the sum along with it.
        shift = _FURTHER * self.shifting * float(parts.sum() - parts.max(initial=0.0))
        expected = sqrt(_TAIL**2 * float(parts @ parts) + shift**2)
        ends = [float(weights.min()), float(weights.max())]
        if groups > 1:
            ends = [min(ends[0], 0.0), max(ends[1], 0.0)]
        low, high = ends
        bound = (high - low) * self.distance.highest / 2 + abs(high + low) * self.rows_reach / 2
        return min(expected, bound)
