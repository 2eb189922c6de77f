"""Quantiles by the counts of bins up to each bin, with intervals that hold whatever numbers a bin holds.

The quantile of a share q lies in the first bin at which the rows so far reach q of all rows. The interval
(Woodruff 1952) has all bins that this may be, by the noise of the rows so far, from the low end of the first
to the high end of the last. It needs no density of numbers inside a bin; only the estimate does, an even
one.

Invariant: post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpsynth.domain.cell_values import Intervals
from dpsynth.domain.column import Column
from dpsynth.domain.domain import Clique
from dpsynth.publish.estimates import LEAST_ROWS, Numbers
from dpsynth.publish.provenance import Counted, Sources

Z95 = 1.96


Deviations = Callable[[int, float], Numbers]
"""From a group and a share to the standard deviation of each bin's distance from the quantile, in rows."""


def quantile_figures(
    sources: Sources,
    clique: Clique,
    about: tuple[int, Column],
    shares: Sequence[float],
    truth: Numbers | None,
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Estimates, standard errors (NaN: an interval isn't made of one) and ends of intervals.

    Args:
        sources: the sources of figures.
        clique: the groups' columns, those of a rule, and the column of numbers last.
        about: the number of groups, and the column of numbers.
        shares: the shares of rows below each quantile.
        truth: the part of each cell's rows that obey the rule; None for all.

    Returns:
        Four of float64[groups * shares], shares within groups.
    """
    groups, column = about
    low, high = _ends(column)
    bins = len(low)

    def counts(marginals: Counted) -> Numbers:
        return _by_bin(marginals.marginal(clique), truth, groups, bins)

    deviations: Deviations = _without_noise
    public = sources.provenance.public_marginals.shares(clique)
    if public is not None:
        table = _by_bin(public * float(sources.direct.marginal(())), truth, groups, bins)
    elif sources.measured(clique):
        table = counts(sources.direct)
        deviations = _by_answers(sources, clique, truth, groups)
    else:
        table = counts(sources.model)
        deviations = _by_refits(table, [counts(again) for again in sources.replicates])
    found = np.full((4, groups, len(shares)), np.nan)
    for group, row in enumerate(table):
        if row.sum() < LEAST_ROWS:
            continue
        for spot, share in enumerate(shares):
            away = np.cumsum(row) - share * row.sum()
            slack = Z95 * deviations(group, share)
            found[0, group, spot] = _estimate(away, row, low, high)
            found[2:, group, spot] = _interval(away, slack, low, high)
    return found[0].ravel(), found[1].ravel(), found[2].ravel(), found[3].ravel()


def _ends(column: Column) -> tuple[Numbers, Numbers]:
    """The least and the largest number of each bin."""
    values = column.codec.cell_values
    centres, half_widths = column.centres, column.codec.half_widths
    assert centres is not None
    assert half_widths is not None
    if isinstance(values, Intervals) and column.codec.continuous:
        return values.low, values.high
    return centres - half_widths, centres + half_widths


def _by_bin(marginal: Numbers, truth: Numbers | None, groups: int, bins: int) -> Numbers:
    """Rows of each group and bin that obey the rule."""
    kept = marginal if truth is None else marginal * truth
    return np.asarray(kept.reshape(groups, -1, marginal.shape[-1]).sum(axis=1)[:, :bins])


def _without_noise(group: int, share: float) -> Numbers:
    del group, share
    return np.zeros(1)


def _by_answers(sources: Sources, clique: Clique, truth: Numbers | None, groups: int) -> Deviations:
    shape = sources.direct.marginal(clique).shape
    part = np.ones(shape) if truth is None else np.broadcast_to(truth, shape)

    def deviations(group: int, share: float) -> Numbers:
        column = sources.columns[clique[-1]]
        bins, found = len(column.codec.labels), []
        for last in range(bins):
            weights = np.zeros((groups, *part.reshape(groups, -1, shape[-1]).shape[1:]))
            weights[group, :, :bins] = -share
            weights[group, :, : last + 1] += 1.0
            scaled = weights * part.reshape(weights.shape)
            found.append(sources.direct.variance(clique, scaled.reshape(shape)))
        return np.sqrt(np.array(found))

    return deviations


def _by_refits(table: Numbers, refits: Sequence[Numbers]) -> Deviations:
    def deviations(group: int, share: float) -> Numbers:
        if not refits:
            return np.full(table.shape[1], np.nan)
        moves = np.stack([again[group] - table[group] for again in refits])
        away = np.cumsum(moves, axis=1) - share * moves.sum(axis=1, keepdims=True)
        return np.asarray(np.sqrt((away**2).mean(axis=0)))

    return deviations


def _estimate(away: Numbers, rows: Numbers, low: Numbers, high: Numbers) -> float:
    spot = int(np.argmax(away >= 0)) if (away >= 0).any() else len(away) - 1
    before = away[spot] - rows[spot]
    part = np.clip(-before / rows[spot], 0.0, 1.0) if rows[spot] > 0 else 0.5
    return float(low[spot] + part * (high[spot] - low[spot]))


def _interval(away: Numbers, slack: Numbers, low: Numbers, high: Numbers) -> tuple[float, float]:
    if np.isnan(slack).any():
        return np.nan, np.nan
    surely_above = np.flatnonzero(away + slack < 0)
    first = int(surely_above[-1]) + 1 if surely_above.size else 0
    surely_reached = np.flatnonzero(away - slack >= 0)
    last = int(surely_reached[0]) if surely_reached.size else len(away) - 1
    first = min(first, len(away) - 1)
    return float(low[first]), float(high[max(first, last)])
