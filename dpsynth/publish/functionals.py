"""Functions of a table of counts, with the gradients that carry the counts' noise over to them.

A table of counts has shape (groups, cells): the groups' columns first, all cells within a group flat. Cells
hold bins, so a number is known by its bin only: values are computed with bins' centres and the variance of
an even density, and ``unknown`` has the standard deviation of what that leaves open.

Invariant: post-processing. A figure is NaN in a group with too few rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpsynth.publish.estimates import LEAST_ROWS, Numbers

_SQRT12 = 12.0**0.5


@dataclass(frozen=True, eq=False)
class Cells:
    """The contents of the cells within a group.

    Attributes:
        truth: float64[groups, cells], the part of a cell's rows that obey the rule; rows without a number in
            the column of numbers obey none.
        numbers: float64[cells], the expected number of each cell; 0 where there is none.
        half_widths: float64[cells], the largest distance of a number from it.
        evened: float64[cells], the variance inside the cell of an even density.
    """

    truth: Numbers
    numbers: Numbers
    half_widths: Numbers
    evened: Numbers


class Functional(Protocol):
    """A figure of each group."""

    def value(self, counts: Numbers, cells: Cells) -> Numbers:
        """The figures, float64[groups]."""
        ...

    def gradient(self, counts: Numbers, cells: Cells) -> Numbers:
        """The change of each group's figure with its own cells' counts, float64[groups, cells]."""
        ...

    def unknown(self, counts: Numbers, cells: Cells) -> Numbers:
        """Standard deviation of each figure because numbers lie anywhere in their bins, float64[groups]."""
        ...


def _rows(counts: Numbers, cells: Cells) -> Numbers:
    """The rows of each group that obey the rule; NaN where there are too few for a ratio."""
    rows = (counts * cells.truth).sum(axis=1)
    return np.where(rows >= LEAST_ROWS, rows, np.nan)


def _mean(counts: Numbers, cells: Cells) -> Numbers:
    return np.asarray((counts * cells.truth) @ cells.numbers / _rows(counts, cells))


class RowCount:
    """The number of rows."""

    def value(self, counts: Numbers, cells: Cells) -> Numbers:
        """Sums of the counts."""
        return np.asarray((counts * cells.truth).sum(axis=1))

    def gradient(self, counts: Numbers, cells: Cells) -> Numbers:
        """The truths."""
        del counts
        return cells.truth

    def unknown(self, counts: Numbers, cells: Cells) -> Numbers:
        """Of cells that obey the rule in part."""
        part = np.where((cells.truth > 0) & (cells.truth < 1), np.maximum(cells.truth, 1 - cells.truth), 0.0)
        return np.asarray(np.sqrt(((np.maximum(counts, 0.0) * part) ** 2).sum(axis=1)) / _SQRT12)


class Total:
    """The sum of numbers."""

    def value(self, counts: Numbers, cells: Cells) -> Numbers:
        """Sums of rows times numbers."""
        return np.asarray((counts * cells.truth) @ cells.numbers)

    def gradient(self, counts: Numbers, cells: Cells) -> Numbers:
        """The numbers."""
        del counts
        return cells.truth * cells.numbers

    def unknown(self, counts: Numbers, cells: Cells) -> Numbers:
        """Of numbers in wide bins."""
        inside = np.maximum(counts, 0.0) * cells.truth * cells.half_widths
        return np.asarray(np.sqrt((inside**2).sum(axis=1)) / _SQRT12)


class Average:
    """The mean of numbers."""

    def value(self, counts: Numbers, cells: Cells) -> Numbers:
        """Sums by rows."""
        return _mean(counts, cells)

    def gradient(self, counts: Numbers, cells: Cells) -> Numbers:
        """Distances from the mean, by rows."""
        away = cells.numbers - _mean(counts, cells)[:, None]
        return np.asarray(cells.truth * away / _rows(counts, cells)[:, None])

    def unknown(self, counts: Numbers, cells: Cells) -> Numbers:
        """Of the sum, by rows."""
        return np.asarray(Total().unknown(counts, cells) / _rows(counts, cells))


class Spread:
    """The variance of numbers."""

    def value(self, counts: Numbers, cells: Cells) -> Numbers:
        """Mean squared distance from the mean, with the variance inside of bins; not below 0."""
        squares = self._squares(counts, cells)
        found = (counts * cells.truth * squares).sum(axis=1) / _rows(counts, cells)
        return np.maximum(found, 0.0)

    def gradient(self, counts: Numbers, cells: Cells) -> Numbers:
        """Squared distances less the variance, by rows."""
        rows, squares = _rows(counts, cells)[:, None], self._squares(counts, cells)
        found = (counts * cells.truth * squares).sum(axis=1, keepdims=True) / rows
        return np.asarray(cells.truth * (squares - found) / rows)

    def unknown(self, counts: Numbers, cells: Cells) -> Numbers:
        """Of squared distances: twice the distance times that of the number, and half of the one inside."""
        away = np.abs(cells.numbers - _mean(counts, cells)[:, None])
        inside = np.maximum(counts, 0.0) * cells.truth
        inside = inside * (2 * away * cells.half_widths + cells.half_widths**2 / 2)
        return np.asarray(np.sqrt((inside**2).sum(axis=1)) / _SQRT12 / _rows(counts, cells))

    @staticmethod
    def _squares(counts: Numbers, cells: Cells) -> Numbers:
        return np.asarray((cells.numbers - _mean(counts, cells)[:, None]) ** 2 + cells.evened)


def pearson(counts: Numbers, one: Cells, two: Cells) -> tuple[float, Numbers]:
    """The correlation of two columns of numbers, and its gradient; NaN where it is undefined.

    Args:
        counts: float64[cells of one, cells of two].
        one: the first column's cells; ``truth`` is 1 for cells with a number.
        two: the second column's cells.
    """
    known = one.truth.T * two.truth
    rows = float((counts * known).sum())
    if rows < LEAST_ROWS:
        return np.nan, np.full(counts.shape, np.nan)
    shares = counts * known / rows
    x = (one.numbers - shares.sum(axis=1) @ one.numbers)[:, None]
    y = two.numbers - shares.sum(axis=0) @ two.numbers
    of_x = float((shares * (x**2 + one.evened[:, None])).sum())
    of_y = float((shares * (y**2 + two.evened)).sum())
    if min(of_x, of_y) <= 0:
        return np.nan, np.full(counts.shape, np.nan)
    scale = (of_x * of_y) ** 0.5
    found = float((shares * x * y).sum()) / scale
    squares = (x**2 + one.evened[:, None]) / of_x + (y**2 + two.evened) / of_y
    gradient = known * (x * y / scale - found / 2 * squares) / rows
    return float(np.clip(found, -1.0, 1.0)), np.asarray(gradient)


def cramers_v(counts: Numbers, cell_variance: float) -> float:
    """Cramer's V of a table of counts, less what its noise is expected to add; NaN without rows.

    Args:
        counts: float64[one, two]; cells below zero count as zero.
        cell_variance: variance of the noise of a cell; 0 for a model's.
    """
    positive = np.maximum(counts, 0.0)
    total, one, two = positive.sum(), positive.sum(axis=1), positive.sum(axis=0)
    positive = positive[one > 0][:, two > 0]
    one, two = one[one > 0], two[two > 0]
    least = min(len(one), len(two)) - 1
    if total < LEAST_ROWS or least < 1:
        return float("nan")
    expected = one[:, None] * two / total
    excess = (positive - expected) ** 2 - cell_variance * (1 - one[:, None] / total) * (1 - two / total)
    square = float((excess / expected).sum()) / total / least
    return float(np.sqrt(np.clip(square, 0.0, 1.0)))
