"""Figures of one group, from the counts of its cells, with 95 % intervals.

Counts are linear in the cells. Shares, means, variances and correlations are smooth functions of sums of
cells, which move with the cells by their linear part (delta method). Quantiles have the interval of Woodruff
(1952): the bins at which the rows so far may have reached the level asked for. Numbers inside bins are
unknown, so intervals of sums, means, variances and quantiles are widened by as much as the bins allow; but
for quantiles by squares, as independent errors add up.

Invariant: post-processing. A figure is ``sound`` if its interval covers all that is unknown beside the errors
of the counts; otherwise it covers these errors alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, isnan, nan, sqrt

import numpy as np

from dpsynth.statistics.estimates import LEAST_ERRORS, LEAST_ROWS, Z95, Numbers

Reach = Callable[[Numbers], float]
"""Half the width of the 95 % interval of the sum of a group's cells times weights; NaN if it is unknown."""
_SAME = 1e-9
_FAR = 3.0
"""Half-widths of an interval, from which on no further bin is looked at. Of many narrow bins next to each
other, noise may take one for passed; so the search doesn't end at the first."""


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval; NaN where there is none.

    Attributes:
        error: the standard error of the counts' part of it; NaN of a quantile.
        sound: true if the interval covers all that is unknown beside the errors of the counts.
    """

    value: float
    low: float = nan
    high: float = nan
    error: float = nan
    sound: bool = True


UNDEFINED = Estimate(nan)


@dataclass(frozen=True, eq=False)
class Group:
    """The cells of a group, flat.

    Attributes:
        share: float64, the part of each cell's rows that satisfies the condition.
        least, most: float64, bounds on that part.
    """

    cells: Numbers
    share: Numbers
    least: Numbers
    most: Numbers
    reach: Reach

    @property
    def cut(self) -> bool:
        return bool((self.least != self.most).any())

    @property
    def rows(self) -> float:
        return float(self.cells @ self.share)

    def within(self, part: Numbers) -> Group:
        return Group(self.cells, self.share * part, self.least * part, self.most * part, self.reach)

    @property
    def enough(self) -> bool:
        """True if the number of rows is clearly above zero, so that it can be divided by."""
        reach = self.reach(self.share)
        error = 0.0 if isnan(reach) else reach / Z95
        return self.rows >= max(LEAST_ROWS, LEAST_ERRORS * error)


@dataclass(frozen=True, eq=False)
class Contents:
    """The numbers of a group's cells; cells without a number have 0 in all.

    Attributes:
        number: float64, the expected number.
        half_width: float64, the largest distance of a number from it.
        low, high: float64, the least and the largest number.
    """

    number: Numbers
    half_width: Numbers
    low: Numbers
    high: Numbers

    @property
    def inside(self) -> Numbers:
        """Variance of an even density inside of each cell."""
        return self.half_width**2 / 3

    @property
    def single(self) -> bool:
        return not self.half_width.any()


def _around(value: float, reach: float, wider: float, ends: tuple[float, float], *, sound: bool) -> Estimate:
    if isnan(reach):
        return Estimate(value, sound=False)
    low, high = (
        float(np.clip(end, *ends)) for end in (value - hypot(reach, wider), value + hypot(reach, wider))
    )
    return Estimate(value, low, high, reach / Z95, sound)


def count(group: Group) -> Estimate:
    """Rows that satisfy the condition; the interval holds whatever the values inside cut cells are."""
    low_reach, high_reach = group.reach(group.least), group.reach(group.most)
    if isnan(low_reach) or isnan(high_reach):
        return Estimate(group.rows, sound=False)
    low = float(group.cells @ group.least) - low_reach
    high = float(group.cells @ group.most) + high_reach
    # A negative estimate never leaves an interval of nothing but zero.
    ends = max(low, 0.0), max(high, high_reach)
    return Estimate(group.rows, *ends, group.reach(group.share) / Z95)


def share(group: Group, part: Group) -> Estimate:
    """The part of a group's rows that satisfies one more condition."""
    if not group.enough:
        return UNDEFINED
    rows = group.rows
    value = part.rows / rows
    ends = [float(group.cells @ weights) / rows for weights in (part.least, value * group.share, part.most)]
    low, _, high = (
        end + sign * group.reach((weights - end * group.share) / rows)
        for end, sign, weights in zip(ends, (-1, 0, 1), (part.least, part.share, part.most), strict=True)
    )
    error = group.reach((part.share - value * group.share) / rows) / Z95
    if isnan(error):
        return Estimate(value, sound=False)
    least, most = (float(np.clip(end, 0.0, 1.0)) for end in (min(low, value), max(high, value)))
    return Estimate(value, least, most, error, sound=not group.cut)


def total(group: Group, held: Contents) -> Estimate:
    """The sum of a column's values."""
    weights = group.share * held.number
    inside = float(np.maximum(group.cells, 0.0) @ (group.share * held.half_width))
    reach = group.reach(weights)
    return _around(float(group.cells @ weights), reach, inside, (-np.inf, np.inf), sound=not group.cut)


def mean(group: Group, held: Contents) -> Estimate:
    """The mean of a column's values among rows that have one."""
    if not group.enough:
        return UNDEFINED
    rows = group.rows
    value = float(group.cells @ (group.share * held.number)) / rows
    inside = float(np.maximum(group.cells, 0.0) @ (group.share * held.half_width)) / rows
    reach = group.reach(group.share * (held.number - value) / rows)
    ends = _ends(group, held)
    return _around(value, reach, min(inside, float(held.half_width.max())), ends, sound=not group.cut)


def _ends(group: Group, held: Contents) -> tuple[float, float]:
    used = group.most > 0
    return float(held.low[used].min()), float(held.high[used].max())


def variance(group: Group, held: Contents) -> Estimate:
    """The variance of a column's values among rows that have one, with that inside of bins."""
    if not group.enough:
        return UNDEFINED
    rows, kept = group.rows, np.maximum(group.cells, 0.0) * group.share
    centre = float(group.cells @ (group.share * held.number)) / rows
    away = held.number - centre
    squares = away**2 + held.inside
    value = max(float(group.cells @ (group.share * squares)) / rows, 0.0)
    # A number at a distance of at most h from a bin's centre moves its square by 2 |away| h + h^2 at most.
    inside = float(kept @ (2 * np.abs(away) * held.half_width + held.half_width**2)) / rows
    reach = group.reach(group.share * (squares - value) / rows)
    return _around(value, reach, inside, (0.0, np.inf), sound=not group.cut)


def quantile(group: Group, level: float, held: Contents) -> Estimate:
    """A quantile of a column's values among rows that have one.

    The interval has all bins that the quantile may lie in, by the rows so far, from the low end of the first
    to the high end of the last. It needs no density inside a bin; only the estimate does, an even one.
    """
    if group.rows < LEAST_ROWS:
        return UNDEFINED
    bins, place = np.unique(np.stack([held.low, held.high], axis=1), axis=0, return_inverse=True)
    place = place.reshape(-1)
    counts = np.bincount(place, weights=group.cells * group.share, minlength=len(bins))
    away = np.cumsum(counts) - level * group.rows
    last = len(bins) - 1

    def reach(spot: int) -> float:
        return group.reach(group.share * ((place <= spot) - level))

    reached = away >= -_SAME * group.rows
    spot = int(np.argmax(reached)) if reached.any() else last
    inside = np.clip(1 - away[spot] / counts[spot], 0.0, 1.0) if counts[spot] > 0 else 0.5
    value = float(bins[spot, 0] + inside * (bins[spot, 1] - bins[spot, 0]))
    if isnan(reach(spot)):
        return Estimate(value, sound=False)
    first = to = spot
    for at in range(spot, last):
        if away[at] < reach(at):
            to = at + 1
        elif away[at] > _FAR * reach(at):
            break
    for at in range(spot - 1, -1, -1):
        if -away[at] <= reach(at):
            first = at
        elif -away[at] > _FAR * reach(at):
            break
    return Estimate(value, float(bins[first, 0]), float(bins[to, 1]), sound=not group.cut)


def correlation(group: Group, one: Contents, other: Contents) -> Estimate:
    """Pearson's correlation of two columns' numbers, among rows that have both.

    With x and y in standard units, the correlation r moves with a cell by (x y - r (x^2 + y^2)/2)/n. The
    variance inside of bins counts in x^2 and y^2. What two numbers of one cell have to do with each other is
    unknown, so an interval is sound where each cell has one value.
    """
    if not group.enough:
        return UNDEFINED
    rows = group.rows
    weights = group.cells * group.share
    away = [v.number - float(weights @ v.number) / rows for v in (one, other)]
    squares = [a**2 + v.inside for a, v in zip(away, (one, other), strict=True)]
    spread = [float(weights @ s) / rows for s in squares]
    if min(spread) <= 0:
        return UNDEFINED
    crossed = away[0] * away[1] / sqrt(spread[0] * spread[1])
    value = float(np.clip(float(weights @ crossed) / rows, -1.0, 1.0))
    halves = (squares[0] / spread[0] + squares[1] / spread[1]) / 2
    reach = group.reach(group.share * (crossed - value * halves) / rows)
    return _around(value, reach, 0.0, (-1.0, 1.0), sound=one.single and other.single and not group.cut)
