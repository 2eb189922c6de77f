"""Figures by group with a question of their own: means and sums from noisy sums, quantiles from finer counts.

The synthetic table follows measured sums by slopes of the densities inside bins (``tilts_of``).

Invariant: post-processing of noisy answers. The same bundle gives the same tilts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.joint_density import Tilt, moved_steps
from dpsynth.columns.sums import Centring, FinerCounts, MeasuredSums, Pieces, Steps, variance_of_unknown
from dpsynth.statistics import group_figures
from dpsynth.statistics.estimates import (
    HOLDS,
    LEAST_ERRORS,
    LEAST_ROWS,
    Z95,
    Marginals,
    Numbers,
    Unbiased,
    of_two_cells,
)
from dpsynth.statistics.group_figures import Contents, Estimate, Group
from dpsynth.statistics.grouped_counts import Measure

SUMS, FINER = "sums.json", "finer_counts.json"
"""The noisy sums and the noisy counts of pieces in a bundle."""


@dataclass(frozen=True, eq=False)
class SummedMeans:
    """Means of a column in each group; NaN where a group has too few rows.

    A mean is (bins' rows times offsets + sum of distances) / rows. Its interval is Fieller's (1954): all m
    for which the estimated sum less m times the estimated rows is within 1.96 of its standard errors of zero.
    It holds for ratios of noisy numbers where a first-order error doesn't: where a group has few rows. Where
    the limit of a row may have cut off numbers of a wide bin, the standard error covers the unknown mean of
    what was cut off as well, by ``variance_of_unknown``.

    Attributes:
        error: its standard error, to first order; of noise, and of what the limit may have cut off.
        cut_off: largest distance of the mean from the estimate by what the limit cut off.
    """

    mean: Numbers
    error: Numbers
    low: Numbers
    high: Numbers
    rows: Numbers
    cut_off: Numbers


@dataclass(frozen=True, eq=False)
class SummedGroups:
    """Means and sums of a column by group.

    Attributes:
        sums: the measured sums, whose clique ``direct`` covers.
    """

    sums: MeasuredSums
    column: Column
    direct: Unbiased
    basis: str = "measured sum"
    limits: str = HOLDS

    @property
    def groups(self) -> int:
        return self.sums.values.size

    def figure(self, number: int, measure: Measure) -> tuple[Estimate, float]:
        means = self._means
        rows = float(means.rows[number])
        if measure.kind == "mean":
            value, low, high = (float(end[number]) for end in (means.mean, means.low, means.high))
            return Estimate(value, low, high, float(means.error[number])), rows
        value, error = (float(figure[number]) for figure in self._totals)
        return Estimate(value, value - Z95 * error, value + Z95 * error, error), rows

    def grouping_error(self, number: int, name: str) -> float:
        """Largest distance of a mean from its estimate by what the limit cut off; NaN without rows."""
        del name
        return float(self._means.cut_off[number])

    @cached_property
    def _means(self) -> SummedMeans:
        return summed_means(self.sums, self.column, self.direct)

    @cached_property
    def _totals(self) -> tuple[Numbers, Numbers]:
        totals, errors = total_of_sums(self.sums, self.column, self.direct)
        return totals, np.broadcast_to(errors, totals.shape)


def summed_means(measured: MeasuredSums, column: Column, direct: Unbiased) -> SummedMeans:
    """The means of measured sums."""
    steps = column.codec.steps
    assert steps is not None
    clique, bins = measured.clique, steps.bins
    marginal = direct.marginal(clique)
    cells = np.atleast_2d(marginal)[:, :bins]
    rows = cells.sum(axis=1)
    first = np.zeros(marginal.shape)
    np.atleast_2d(first)[0, :bins] = 1.0
    of_rows = direct.variance(clique, first)
    enough = rows >= max(LEAST_ROWS, LEAST_ERRORS * sqrt(of_rows))
    known = np.where(enough, rows, np.nan)
    offsets = np.array(measured.centring.offsets, dtype=np.float64)
    mean = (cells @ offsets + measured.values.ravel()) / known
    # Sums less the mean times the rows move with each bin's rows times the distance of its offset.
    weights = offsets - mean[:, None]
    shared, own = of_two_cells(direct.cell_variance(clique), of_rows, bins)
    beyond, kept = measured.centring.beyond(steps), np.maximum(cells, 0.0)
    noise = own * (weights**2).sum(axis=1) + shared * weights.sum(axis=1) ** 2 + measured.variance
    spread = noise + variance_of_unknown(kept, beyond)
    crossed = (own + shared * bins) * weights.sum(axis=1)
    below, above = _fieller(known, spread, crossed, of_rows)
    least, most = steps.number(np.array([0.0, float(steps.last)]))

    def end(distance: Numbers) -> Numbers:
        return np.clip(steps.number(mean + distance), least, most)

    return SummedMeans(
        mean=steps.number(mean),
        error=np.sqrt(spread) / known * steps.unit,
        low=end(below),
        high=end(above),
        rows=rows,
        cut_off=kept @ beyond / known * steps.unit,
    )


def total_of_sums(measured: MeasuredSums, column: Column, direct: Unbiased) -> tuple[Numbers, Numbers]:
    """The sum of a column's numbers in each group, and its standard error; see ``summed_means``."""
    steps = column.codec.steps
    assert steps is not None
    clique, bins = measured.clique, steps.bins
    marginal = direct.marginal(clique)
    cells = np.atleast_2d(marginal)[:, :bins]
    weights = np.zeros(marginal.shape)
    values = np.array(measured.centring.offsets, dtype=np.float64) + steps.origin
    np.atleast_2d(weights)[0, :bins] = values
    lost = variance_of_unknown(np.maximum(cells, 0.0), measured.centring.beyond(steps))
    # By symmetry the noise of the counts is the same in each group.
    error = np.sqrt(direct.variance(clique, weights) + measured.variance + lost)
    return (cells @ values + measured.values.ravel()) * steps.unit, np.asarray(error * steps.unit)


def _fieller(rows: Numbers, spread: Numbers, crossed: Numbers, of_rows: float) -> tuple[Numbers, Numbers]:
    """Distances of the ends of a ratio's interval from the ratio.

    The ends t solve t^2 rows^2 = z^2 (spread - 2 t crossed + t^2 of_rows).

    Args:
        rows: the denominators; NaN where there is no ratio.
        spread: variance of the numerator less the ratio times the denominator.
        crossed: covariance of that with the denominator.
        of_rows: variance of a denominator.
    """
    z2 = Z95**2
    square = rows**2 - z2 * of_rows
    root = np.sqrt(np.maximum((z2 * crossed) ** 2 + square * z2 * spread, 0.0))
    return (-z2 * crossed - root) / square, (-z2 * crossed + root) / square


@dataclass(frozen=True, eq=False)
class FinerQuantiles:
    """Quantiles of a column by group.

    A quantile is that of ``group_figures``, with pieces of bins in place of bins. Both say how many rows a
    bin has. With f the counts of the K pieces of a bin, of variance v each, and c the count of the bin, of
    variance V, the pieces are estimated by f + l (c - sum of f)/K with l = K v/(K v + V): they add up to the
    mean of both, weighted by precision. A sum of pieces with weights w, of mean m in a bin, is then the sum
    of (w - l m) f and of l m c over the bins. The two are independent, so its variance is that of both
    together.

    Attributes:
        measured: the finer counts, whose clique ``direct`` covers.
    """

    measured: FinerCounts
    column: Column
    direct: Unbiased
    basis: str = "measured"
    limits: str = HOLDS

    def figure(self, number: int, measure: Measure) -> tuple[Estimate, float]:
        cells, every = self._cells[number], np.ones(self._bin.shape)
        group = Group(cells, every, every, every, self._reach)
        return group_figures.quantile(group, measure.level, self._contents), group.rows

    @property
    def groups(self) -> int:
        return len(self._cells)

    @cached_property
    def _steps(self) -> Steps:
        steps = self.column.codec.steps
        assert steps is not None
        return steps

    @cached_property
    def _joined(self) -> NDArray[np.int64]:
        """The number of bins that begin at each step where one does: they count as one bin here."""
        return np.unique(self._steps.low, return_counts=True)[1]

    @cached_property
    def _bin(self) -> NDArray[np.intp]:
        return np.unique(self.measured.pieces.bin_of(self._steps), return_inverse=True)[1]

    @cached_property
    def _number(self) -> NDArray[np.intp]:
        return np.bincount(self._bin, minlength=len(self._joined))

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
        noise, (shared, own) = self._number * self.measured.variance, self._variances
        return np.asarray(noise / (noise + (shared * self._joined**2 + own * self._joined)))

    @cached_property
    def _cells(self) -> Numbers:
        pieces = self.measured.values.reshape(-1, len(self._bin)).astype(np.float64)
        marginal = self.direct.marginal(self.measured.clique)
        bins = marginal.reshape(-1, marginal.shape[-1])[:, : self._steps.bins]
        bins = np.add.reduceat(bins, np.cumsum(self._joined) - self._joined, axis=1)
        own = np.add.reduceat(pieces, np.searchsorted(self._bin, np.arange(len(self._joined))), axis=1)
        missing = self._trusted * (bins - own) / self._number
        return np.asarray(pieces + missing[:, self._bin])

    def _reach(self, weights: Numbers) -> float:
        shared, own = self._variances
        kept = self._trusted * np.bincount(self._bin, weights, len(self._joined)) / self._number
        pieces = weights - kept[self._bin]
        of_bins = own * float(kept @ (kept * self._joined)) + shared * float(kept @ self._joined) ** 2
        return Z95 * sqrt(max(self.measured.variance * float(pieces @ pieces) + of_bins, 0.0))

    @cached_property
    def _contents(self) -> Contents:
        ends = (self.measured.pieces.array, self.measured.pieces.last(self._steps))
        low, high = (self._steps.number(end.astype(np.float64)) for end in ends)
        return Contents((low + high) / 2, (high - low) / 2, low, high)


def _described(
    measured: MeasuredSums | FinerCounts,
    columns: Mapping[str, Column],
    own: Mapping[str, object],
    values: str,
) -> dict[str, object]:
    steps = columns[measured.column].codec.steps
    assert steps is not None
    return {
        "column": measured.column,
        "by": list(measured.by),
        "step": f"1e{steps.exponent}",
        "origin": steps.origin,
        **own,
        "noise": measured.noise,
        "scale": measured.scale,
        "standard_deviation": measured.stddev,
        "groups": [list(columns[name].labels) for name in measured.by],
        values: measured.values.ravel().tolist(),
    }


def sums_file(sums: Sequence[MeasuredSums], columns: Mapping[str, Column]) -> list[dict[str, object]]:
    """The noisy sums as JSON values, each with all that a mean needs."""
    return [_described(m, columns, _centred(m, columns[m.column]), "sums") for m in sums]


def _centred(measured: MeasuredSums, column: Column) -> dict[str, object]:
    offsets = dict(zip(column.codec.labels, measured.centring.offsets, strict=True))
    return {"offsets": offsets, "limit": measured.centring.limit}


def sums_in(content: Sequence[Mapping[str, Any]], columns: Mapping[str, Column]) -> tuple[MeasuredSums, ...]:
    """The noisy sums of a bundle, read back from what ``sums_file`` made.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: the content is no such list, or of other columns.
    """
    found = []
    for facts in content:
        by, labels = tuple(facts["by"]), columns[facts["column"]].codec.labels
        centring = Centring(tuple(int(facts["offsets"][label]) for label in labels), int(facts["limit"]))
        values = np.array(facts["sums"], dtype=np.int64).reshape([columns[name].size for name in by])
        noise, scale = str(facts["noise"]), float(facts["scale"])
        found.append(MeasuredSums(str(facts["column"]), by, values, noise, scale, centring))
        if not found[-1].variance > 0:
            raise ValueError("noise has a scale above 0")
    return tuple(found)


def finer_counts_file(finer: Sequence[FinerCounts], columns: Mapping[str, Column]) -> list[dict[str, object]]:
    """The finer counts as JSON values, each with all that a quantile needs."""
    return [_described(m, columns, {"first": list(m.pieces.first)}, "counts") for m in finer]


def finer_counts_in(
    content: Sequence[Mapping[str, Any]], columns: Mapping[str, Column]
) -> tuple[FinerCounts, ...]:
    """The finer counts of a bundle, read back from what ``finer_counts_file`` made.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: the content is no such list, or of other columns.
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
        if not found[-1].variance > 0:
            raise ValueError("noise has a scale above 0")
    return tuple(found)


STEEPEST = 6.0
"""Largest power of a tilt, and one over the least."""

_POWERS = np.geomspace(1 / STEEPEST, STEEPEST, 41)

_DRAWS = 512
"""Numbers of each bin by which the mean of a tilted density is computed."""


def tilts_of(
    sums: Sequence[MeasuredSums],
    columns: Mapping[str, Column],
    model: Marginals,
    direct: Unbiased,
    ruled: Collection[str] = (),
) -> tuple[Tilt, ...]:
    """A tilt for each column with sums: by the sums of most groups.

    The model knows how many rows of a group are in each bin, and gives every group the density of all rows
    inside it. So the densities of a group are tilted by a power, within bounds, with which the model's mean
    of the group becomes the measured one. If the measured mean is less precise than the mean by bins, the aim
    is the mean of both, weighted by precision.

    Args:
        model: the fitted model, whose marginals say how many rows of a group are in each bin.
        direct: estimates of counts from the answers alone.
        ruled: columns that constraints name; their values stay where they are.
    """
    widest: dict[str, MeasuredSums] = {}
    for measured in sums:
        before = widest.get(measured.column)
        if before is None or measured.values.size > before.values.size:
            widest[measured.column] = measured
    able = [m for m in widest.values() if m.column not in ruled and not columns[m.column].uniform]
    # A coarser step than the last decimal would round what was drawn.
    return tuple(
        _tilt(m, columns[m.column], model, direct)
        for m in able
        if _finest(columns[m.column]) and direct.covers(m.clique)
    )


def _finest(column: Column) -> bool:
    steps = column.codec.steps
    return steps is not None and steps.exponent <= 0 and steps.exponent == -column.codec.kind.decimals


def _tilt(measured: MeasuredSums, column: Column, model: Marginals, direct: Unbiased) -> Tilt:
    steps = column.codec.steps
    assert steps is not None
    cells = np.maximum(
        model.marginal(measured.clique).reshape(measured.values.size, -1)[:, : steps.bins], 0.0
    )
    found = summed_means(measured, column, direct)
    rows = cells.sum(axis=1)
    shares = cells / np.where(rows > 0, rows, 1.0)[:, None]
    # float64[powers, groups]: means by power, falling.
    means = _means(column, steps) @ shares.T
    flat = means[len(_POWERS) // 2]
    unknown = variance_of_unknown(shares, steps.half_widths)
    error = (found.error / steps.unit) ** 2
    target = found.mean / steps.unit - steps.origin
    weight = np.divide(unknown, unknown + error, out=np.zeros(len(rows)), where=unknown + error > 0)
    aim = np.where(np.isfinite(target) & np.isfinite(weight), flat + weight * (target - flat), flat)
    logs = np.log(_POWERS)[::-1]
    powers = [np.exp(np.interp(a, mean[::-1], logs)) for a, mean in zip(aim, means.T, strict=True)]
    unmoved = np.isclose(aim, flat) | (means[0] == means[-1])
    return Tilt(measured.column, measured.by, np.where(unmoved, 1.0, powers).reshape(measured.values.shape))


def _means(column: Column, steps: Steps) -> Numbers:
    """The mean step of each bin under each power, float64[powers, bins].

    Draws say how far it moves from the mean of the density as it is, which is known exactly.
    """
    assert column.centres is not None
    centres = column.centres * 10.0**-steps.exponent - steps.origin
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(steps.bins), _DRAWS)
    drawn = column.codec.decode(code, rng).to_numpy(zero_copy_only=False).astype(np.float64)
    at = np.rint(drawn * 10.0**-steps.exponent).astype(np.int64) - steps.origin
    inside = rng.random(len(code))
    moved = [moved_steps(steps, code, at, np.full(len(code), power), inside) for power in _POWERS]
    means = np.stack(moved).reshape(len(_POWERS), steps.bins, _DRAWS).mean(axis=2)
    return np.asarray(centres + means - means[len(_POWERS) // 2])
