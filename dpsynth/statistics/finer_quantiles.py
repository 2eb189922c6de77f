"""Quantiles from counts of pieces of bins, beside the counts of the bins.

Both say how many rows a bin has. With f the counts of the K pieces of a bin, of variance v each, and c the
count of the bin, of variance V, the pieces are estimated by f + l (c - sum of f)/K with l = K v/(K v + V):
they add up to the mean of both, weighted by precision. A sum of pieces with weights w, of mean m in a bin, is
then the sum of (w - l m) f and of l m c over the bins. The two are independent, so its variance is that of
both together.

The interval of a quantile is that of ``group_figures``, with pieces in place of bins.

Invariant: post-processing of noisy answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.sums import FinerCounts, Pieces, Steps
from dpsynth.statistics import group_figures
from dpsynth.statistics.estimates import HOLDS, Z95, Numbers, Unbiased, of_two_cells
from dpsynth.statistics.group_figures import Contents, Estimate, Group
from dpsynth.statistics.grouped_counts import Measure

FILE = "finer_counts.json"
"""The noisy counts of pieces in a bundle."""


@dataclass(frozen=True, eq=False)
class FinerQuantiles:
    """Quantiles of a column by group.

    Attributes:
        measured: the finer counts, whose clique ``direct`` covers.
        column: the column.
        direct: estimates of counts from the answers alone.
    """

    measured: FinerCounts
    column: Column
    direct: Unbiased
    basis: str = "measured"
    limits: str = HOLDS

    def figure(self, number: int, measure: Measure) -> tuple[Estimate, float]:
        """A quantile of a group, and the estimated number of rows that it rests on."""
        cells, every = self._cells[number], np.ones(self._bin.shape)
        group = Group(cells, every, every, every, self._reach)
        return group_figures.quantile(group, measure.level, self._contents), group.rows

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self._cells)

    @cached_property
    def _steps(self) -> Steps:
        steps = self.column.codec.steps
        assert steps is not None
        return steps

    @cached_property
    def _bin(self) -> NDArray[np.intp]:
        return self.measured.pieces.bin_of(self._steps)

    @cached_property
    def _number(self) -> NDArray[np.intp]:
        return np.bincount(self._bin, minlength=self._steps.bins)

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """The covariance of two bins' counts in one group, and a count's variance less that."""
        clique, bins = self.measured.clique, self._steps.bins
        shape = self.direct.marginal(clique).shape
        first = np.zeros(int(np.prod(shape)))
        first[:bins] = 1.0
        whole = self.direct.variance(clique, first.reshape(shape))
        return of_two_cells(self.direct.cell_variance(clique), whole, bins)

    @cached_property
    def _trusted(self) -> Numbers:
        """The weight l of each bin's own count."""
        noise = self._number * self.measured.variance
        return np.asarray(noise / (noise + sum(self._variances)))

    @cached_property
    def _cells(self) -> Numbers:
        """Estimated rows of each piece, float64[groups, pieces]."""
        pieces = self.measured.values.reshape(-1, len(self._bin)).astype(np.float64)
        marginal = self.direct.marginal(self.measured.clique)
        bins = marginal.reshape(-1, marginal.shape[-1])[:, : self._steps.bins]
        own = np.add.reduceat(pieces, np.searchsorted(self._bin, np.arange(self._steps.bins)), axis=1)
        missing = self._trusted * (bins - own) / self._number
        return np.asarray(pieces + missing[:, self._bin])

    def _reach(self, weights: Numbers) -> float:
        """1.96 standard deviations of a weighted sum of a group's pieces."""
        shared, own = self._variances
        kept = self._trusted * np.bincount(self._bin, weights, self._steps.bins) / self._number
        pieces = weights - kept[self._bin]
        of_bins = own * float(kept @ kept) + shared * float(kept.sum()) ** 2
        return Z95 * sqrt(max(self.measured.variance * float(pieces @ pieces) + of_bins, 0.0))

    @cached_property
    def _contents(self) -> Contents:
        ends = (self.measured.pieces.array, self.measured.pieces.last(self._steps))
        low, high = (self._steps.number(end.astype(np.float64)) for end in ends)
        return Contents((low + high) / 2, (high - low) / 2, low, high)


def finer_counts_file(finer: Sequence[FinerCounts], columns: Mapping[str, Column]) -> list[dict[str, object]]:
    """The finer counts as JSON values, each with all that a quantile needs.

    Args:
        finer: the answers.
        columns: the columns by name.
    """
    return [_described(measured, columns[measured.column].codec.steps, columns) for measured in finer]


def _described(
    measured: FinerCounts, steps: Steps | None, columns: Mapping[str, Column]
) -> dict[str, object]:
    assert steps is not None
    return {
        "column": measured.column,
        "by": list(measured.by),
        "step": f"1e{steps.exponent}",
        "origin": steps.origin,
        "first": list(measured.pieces.first),
        "noise": measured.noise,
        "scale": measured.scale,
        "standard_deviation": measured.stddev,
        "groups": [list(columns[name].labels) for name in measured.by],
        "counts": measured.values.ravel().tolist(),
    }


def finer_counts_in(
    content: Sequence[Mapping[str, Any]], columns: Mapping[str, Column]
) -> tuple[FinerCounts, ...]:
    """The finer counts of a bundle, read back from what ``finer_counts_file`` made.

    Raises:
        KeyError, TypeError, ValueError: the content is no such list, or of other columns.
    """
    found = []
    for facts in content:
        by, steps = tuple(facts["by"]), columns[facts["column"]].codec.steps
        if steps is None:
            raise ValueError("the column has no bins of numbers")
        pieces = Pieces(tuple(int(step) for step in facts["first"]), steps.bins)
        if pieces.first[-1] > steps.last or not set(steps.low.tolist()) <= set(pieces.first):
            raise ValueError("the pieces are not those of the column's bins")
        shape = (*(columns[name].size for name in by), len(pieces.first))
        values = np.array(facts["counts"], dtype=np.int64).reshape(shape)
        noise, scale = str(facts["noise"]), float(facts["scale"])
        found.append(FinerCounts(str(facts["column"]), by, values, noise, scale, pieces))
    return tuple(found)
