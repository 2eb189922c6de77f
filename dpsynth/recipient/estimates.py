"""Estimates of one group's measure, from the counts of its cells, with 95 % intervals.

Counts are linear in the cells. Shares, means and correlations are smooth functions of sums of cells; their
variance is that of their linear part (delta method). Quantiles have the interval of Woodruff (1952): the
levels within two standard errors of the level asked for, read back as values. Values inside bins are
unknown, so intervals of sums, means and quantiles are widened by the bins.

Invariant: an interval is given only where it covers all that is unknown of the number; otherwise its ends are
None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.publish.estimates import LEAST_ERRORS, LEAST_ROWS, Z95

Numbers = NDArray[np.float64]
Variance = Callable[[Numbers], float | None]
"""Variance of the sum of a group's cells times weights."""


@dataclass(frozen=True)
class Estimate:
    """An estimate; its ends are None where no interval is known to hold, its value where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


UNDEFINED = Estimate(None)


@dataclass(frozen=True, eq=False)
class Group:
    """The cells of a group, flat.

    Attributes:
        cells: float64, counts.
        share: float64, the part of each cell's rows that satisfies the condition.
        least, most: float64, bounds on that part.
        variance: of weighted sums of the cells.
    """

    cells: Numbers
    share: Numbers
    least: Numbers
    most: Numbers
    variance: Variance

    @property
    def cut(self) -> bool:
        """True if the condition cuts through cells of the group."""
        return bool((self.least != self.most).any())

    @property
    def rows(self) -> float:
        """Estimated rows that satisfy the condition."""
        return float(self.cells @ self.share)

    def error(self, weights: Numbers) -> float | None:
        """Standard error of a weighted sum of the cells; None if it is unknown."""
        variance = self.variance(weights)
        return None if variance is None else sqrt(max(variance, 0.0))

    def within(self, part: Numbers) -> Group:
        """The group with a further condition that cuts through no cell."""
        return Group(self.cells, self.share * part, self.least * part, self.most * part, self.variance)

    @property
    def enough(self) -> bool:
        """True if the number of rows is clearly above zero, so that it can be divided by."""
        error = self.error(self.share)
        return self.rows >= max(LEAST_ROWS, LEAST_ERRORS * (error or 0.0))


def _around(value: float, error: float | None, wider: float, least: float, most: float) -> Estimate:
    if error is None:
        return Estimate(value)
    half = Z95 * error + wider
    return Estimate(value, *(float(np.clip(end, least, most)) for end in (value - half, value + half)))


def count(group: Group) -> Estimate:
    """Rows that satisfy the condition; the interval holds whatever the values inside cut cells are."""
    low_error, high_error = group.error(group.least), group.error(group.most)
    if low_error is None or high_error is None:
        return Estimate(group.rows)
    low = float(group.cells @ group.least) - Z95 * low_error
    high = float(group.cells @ group.most) + Z95 * high_error
    # A negative estimate never leaves an interval of nothing but zero.
    return Estimate(group.rows, max(low, 0.0), max(high, high_error))


def share(group: Group, part: Group) -> Estimate:
    """The part of a group's rows that satisfies one more condition.

    Args:
        group: the group.
        part: the same with one more condition.
    """
    if not group.enough:
        return UNDEFINED
    rows = group.rows
    value = part.rows / rows
    ends = []
    for weights in (part.least, part.most):
        end = float(group.cells @ weights) / rows
        error = group.error((weights - end * group.share) / rows)
        ends.append((end, error))
    (low, low_error), (high, high_error) = ends
    if group.cut or low_error is None or high_error is None:
        return Estimate(value)
    least, most = min(low - Z95 * low_error, value), max(high + Z95 * high_error, value)
    return Estimate(value, float(np.clip(least, 0.0, 1.0)), float(np.clip(most, 0.0, 1.0)))


def total(group: Group, values: Numbers, half_widths: Numbers) -> Estimate:
    """The sum of a column's values."""
    weights = group.share * values
    inside = float(np.maximum(group.cells, 0.0) @ (group.share * half_widths))
    error = None if group.cut else group.error(weights)
    return _around(float(group.cells @ weights), error, inside, -np.inf, np.inf)


def mean(group: Group, values: Numbers, half_widths: Numbers) -> Estimate:
    """The mean of a column's values among rows that have one."""
    if not group.enough:
        return UNDEFINED
    rows = group.rows
    value = float(group.cells @ (group.share * values)) / rows
    inside = float(np.maximum(group.cells, 0.0) @ (group.share * half_widths)) / rows
    error = None if group.cut else group.error(group.share * (values - value) / rows)
    ends = float((values - half_widths).min()), float((values + half_widths).max())
    return _around(value, error, min(inside, float(half_widths.max())), *ends)


def quantile(group: Group, level: float, low: Numbers, high: Numbers) -> Estimate:
    """A quantile of a column's values among rows that have one; inside a bin values are taken to lie evenly.

    Args:
        group: the group.
        level: between 0 and 1.
        low: float64, the lowest value of each cell.
        high: float64, the highest.
    """
    if not group.enough:
        return UNDEFINED
    rows = group.rows
    bins, place = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    place = place.reshape(-1)
    counts = np.bincount(place, weights=group.cells * group.share, minlength=len(bins))
    reach = np.maximum.accumulate(np.cumsum(counts) / rows).clip(0.0, 1.0)
    reach[-1] = 1.0
    spot = min(int(np.searchsorted(reach, level - 1e-12)), len(bins) - 1)
    # A level that is reached by no count is that of the first value that has rows.
    before = reach[spot - 1] if spot else 0.0
    inside = (level - before) / (reach[spot] - before) if reach[spot] > before else 0.0
    value = float(bins[spot, 0] + np.clip(inside, 0.0, 1.0) * (bins[spot, 1] - bins[spot, 0]))
    errors = []
    for edge in {max(spot - 1, 0), spot}:
        below = (place <= edge).astype(np.float64)
        errors.append(group.error(group.share * (below - reach[edge]) / rows))
    if group.cut or any(error is None for error in errors):
        return Estimate(value)
    reached = Z95 * max(error for error in errors if error is not None)
    first = min(int(np.searchsorted(reach, max(level - reached, 0.0) - 1e-12)), len(bins) - 1)
    last = min(int(np.searchsorted(reach, min(level + reached, 1.0) - 1e-12)), len(bins) - 1)
    return Estimate(value, float(bins[first, 0]), float(bins[last, 1]))


def correlation(group: Group, one: Numbers, other: Numbers, *, exact: bool) -> Estimate:
    """Pearson's correlation of two columns' cells, among rows that have both values.

    With x and y in standard units, the correlation r moves with a cell by (x y - r (x^2 + y^2)/2)/n.

    Args:
        group: the group.
        one: float64, the expected value of each cell in one column.
        other: float64, that in the other column.
        exact: True if each cell has one value; otherwise there is no interval.
    """
    if not group.enough:
        return UNDEFINED
    rows = group.rows
    weights = group.cells * group.share
    means = [float(weights @ v) / rows for v in (one, other)]
    spread = [float(weights @ (v - m) ** 2) / rows for v, m in zip((one, other), means, strict=True)]
    if min(spread) <= 0:
        return UNDEFINED
    x, y = ((v - m) / sqrt(s) for v, m, s in zip((one, other), means, spread, strict=True))
    value = float(np.clip(float(weights @ (x * y)) / rows, -1.0, 1.0))
    moved = group.share * (x * y - value * (x**2 + y**2) / 2) / rows
    return _around(value, group.error(moved) if exact and not group.cut else None, 0.0, -1.0, 1.0)
