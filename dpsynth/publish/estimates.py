"""Counts, shares and means with their standard errors, from either of two sources.

Estimates of columns that were measured together come from the noisy answers, averaged by least squares. They
are linear in the answers, so they have no bias and a variance in closed form. The fitted model's estimates
are cut at zero and smoothed by its independences, so their bias is unknown. The drawback of the linear
estimates: a cell may be below zero. It stays so, because sums of cells then have no bias either.

Estimates of columns that were not measured together come from the model. The standard error is a parametric
bootstrap (Efron and Tibshirani 1993, chapter 6): the root mean square distance,
over refits to the model's own marginals with fresh noise, of a statistic from the model's.
It covers noise and shrinkage, but not the model's assumption that such columns are
independent given those between them.

Invariant: post-processing. Nothing here has seen the private table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique

Z95 = 1.96
"""Half the width of a 95 % interval, in standard errors."""

LEAST_ROWS = 0.5
"""Least estimated number of rows that has a mean."""

LEAST_ERRORS = 3.0
"""Least measured number of rows that has a mean, in standard errors of that number."""

Numbers = NDArray[np.float64]


class Marginals(Protocol):
    """The marginals of a fitted model."""

    @property
    def total(self) -> float:
        """Estimated number of rows."""
        ...

    def marginal(self, clique: Clique) -> Numbers:
        """Estimated counts over a clique, axes in its order, summing to ``total``."""
        ...


class Unbiased(Protocol):
    """Unbiased estimates of measured marginals, with the variance of linear functions of them.

    Invariant: marginals of all covered cliques agree on their common columns, and the covariance of a
        clique's
    cells is invariant to permutations of a column's codes.
    """

    def covers(self, clique: Clique) -> bool:
        """True if a clique's columns were measured together; () is the number of rows."""
        ...

    def marginal(self, clique: Clique) -> Numbers:
        """Estimated counts over a covered clique, axes in its order; may be negative."""
        ...

    def variance(self, clique: Clique, weights: Numbers) -> float:
        """Variance of the sum of a covered clique's cells times weights of the same shape."""
        ...

    def cell_variance(self, clique: Clique) -> float:
        """Variance of any one cell of a covered clique, in rows squared."""
        ...


@dataclass(frozen=True, eq=False)
class Counts:
    """Estimated rows of each cell of a clique, cells in the order of its flat array.

    Attributes:
        rows: estimated number of rows.
        error: its standard error; NaN where unknown.
        share: part of all rows; NaN where there are none.
        share_error: standard error of the share.
    """

    rows: Numbers
    error: Numbers
    share: Numbers
    share_error: Numbers


@dataclass(frozen=True, eq=False)
class Means:
    """Estimated mean of a column in each group; NaN where a figure is undefined.

    Attributes:
        mean: mean of the centres of the values' cells.
        error: its standard error.
        rows: estimated number of rows with a value that is not missing.
        grouping_error: mean distance that a value may have from the centre of its cell.
    """

    mean: Numbers
    error: Numbers
    rows: Numbers
    grouping_error: Numbers


class Source(Protocol):
    """A source of a table's figures."""

    def counts(self, clique: Clique) -> Counts:
        """Counts and shares of a clique's cells."""
        ...

    def means(self, clique: Clique, centres: Numbers, half_widths: Numbers) -> Means:
        """Means of a clique's last column in groups by the first, or in all rows.

        Args:
            clique: the column of the groups, if any, and the column averaged.
            centres: one a code that is not missing.
            half_widths: largest distance of a value from its centre, one a code that is not missing.
        """
        ...


@dataclass(frozen=True, eq=False)
class Measured:
    """Figures from the noisy answers alone."""

    direct: Unbiased

    def counts(self, clique: Clique) -> Counts:
        """Counts, their exact error, and shares with their error to first order.

        A share x/n moves with x - share n, whose variance is that of the cell, V, less
        2 share Cov(x, n), plus share^2 W, W being the variance of the total n. By symmetry
        Cov(x, n) is the same for each of k cells; the k of them add up to W.
        """
        rows = self.direct.marginal(clique).ravel()
        total = float(self.direct.marginal(()))
        cell, whole = self.direct.cell_variance(clique), self.direct.cell_variance(())
        share = ratio(rows, total, LEAST_ROWS)
        moved = np.maximum(cell - 2.0 * share * whole / rows.size + share**2 * whole, 0.0)
        return Counts(rows, np.full(rows.shape, sqrt(cell)), share, ratio(np.sqrt(moved), total, LEAST_ROWS))

    def means(self, clique: Clique, centres: Numbers, half_widths: Numbers) -> Means:
        """Means as ratios of sums, their errors to first order.

        The mean m of a group of n rows moves with the sum of its cells times (centre - m)/n.
        Where n lies within three of its own standard errors of zero, the first-order error is unreliable and
        the ratio may be anything: no mean is given there.
        """
        marginal = self.direct.marginal(clique)
        cells = np.atleast_2d(marginal)[:, : len(centres)]
        rows = cells.sum(axis=1)
        first = np.zeros(marginal.shape)
        np.atleast_2d(first)[0, : len(centres)] = 1.0
        of_rows = self.direct.variance(clique, first)
        least = max(LEAST_ROWS, LEAST_ERRORS * sqrt(of_rows))
        mean = ratio(cells @ centres, rows, least)
        weights = ratio(centres - mean[:, None], rows[:, None], least)
        error = np.sqrt(_within_group(weights, self.direct.cell_variance(clique), of_rows))
        # A cell that noise has taken below zero has no rows, and does not reduce the error of other cells.
        inside = np.maximum(cells, 0.0) @ half_widths
        grouping_error = np.clip(ratio(inside, rows, least), 0.0, half_widths.max())
        return Means(mean, error, rows, grouping_error)


def _within_group(weights: Numbers, cell: float, whole: float) -> Numbers:
    """Variance of each weighted sum of k cells, given a cell's and that of their plain sum.

    By symmetry every two of the cells have the same covariance, (whole - k cell)/(k (k - 1)).
    """
    k = weights.shape[1]
    shared = (whole - k * cell) / (k * (k - 1)) if k > 1 else 0.0
    squares, sums = (weights**2).sum(axis=1), weights.sum(axis=1)
    return np.maximum(cell * squares + shared * (sums**2 - squares), 0.0)


@dataclass(frozen=True, eq=False)
class Modelled:
    """Figures of the fitted model; without refits, their errors are unknown."""

    model: Marginals
    replicates: Sequence[Marginals]

    def counts(self, clique: Clique) -> Counts:
        """Counts and shares of the model, errors by the bootstrap."""
        rows, share = _counts(self.model, clique)
        refits = [_counts(replicate, clique) for replicate in self.replicates]
        return Counts(
            rows=rows,
            error=root_mean_square_error(rows, [again for again, _ in refits]),
            share=share,
            share_error=root_mean_square_error(share, [again for _, again in refits]),
        )

    def means(self, clique: Clique, centres: Numbers, half_widths: Numbers) -> Means:
        """Means of the model, errors by the bootstrap; none for an empty group."""
        mean, rows = _means(self.model, clique, centres)
        refits = [_means(replicate, clique, centres)[0] for replicate in self.replicates]
        grouping_error, _ = _means(self.model, clique, half_widths)
        return Means(mean, root_mean_square_error(mean, refits), rows, grouping_error)


def root_mean_square_error(estimate: Numbers, refits: Sequence[Numbers]) -> Numbers:
    """Standard error of each statistic: sqrt(mean over refits of (refit - estimate)^2).

    Refits in which a statistic is undefined (NaN) are left out; NaN where none is left.
    """
    if not refits:
        return np.full(estimate.shape, np.nan)
    squares = (np.stack(refits) - estimate) ** 2
    defined = ~np.isnan(squares)
    total = np.where(defined, squares, 0.0).sum(axis=0)
    return np.sqrt(ratio(total, defined.sum(axis=0).astype(np.float64), 1.0))


def _counts(model: Marginals, clique: Clique) -> tuple[Numbers, Numbers]:
    """Rows of each cell, and their shares of all rows."""
    rows = model.marginal(clique).ravel()
    return rows, ratio(rows, rows.sum(), LEAST_ROWS)


def _means(model: Marginals, clique: Clique, centres: Numbers) -> tuple[Numbers, Numbers]:
    """Mean of the last column's centres in each group, and each group's rows without a missing value."""
    counts = np.atleast_2d(model.marginal(clique))[:, : len(centres)]
    rows = counts.sum(axis=1)
    return ratio(counts @ centres, rows, LEAST_ROWS), rows


def ratio(above: Numbers, below: Numbers | float, least: float) -> Numbers:
    """Quotients of sums by counts, NaN where the count is below ``least``."""
    quotients = np.full(above.shape, np.nan)
    np.divide(above, below, out=quotients, where=np.asarray(below) >= least)
    return quotients
