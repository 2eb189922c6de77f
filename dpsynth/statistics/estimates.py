"""Estimated counts of the cells of some columns, and how far a weighted sum of them may be off.

Counts come from public marginals, from measured answers, or from the model. Those of columns that were
measured together come from the noisy answers, averaged by least squares. They are linear in the answers, so
they have no bias and a variance in closed form. A cell may be below zero, and stays so, because sums of cells
then have no bias either. The fitted model's counts are cut at zero and smoothed by its independences, so
their bias is unknown. Their errors follow from the exam where it has the columns (``exam.ExaminedCells``),
otherwise from refits, or they are unknown.

Invariant: post-processing. Counts say what they rest on, and what their limits claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique

Z95 = 1.96
"""Half the width of a 95 % interval, in standard errors."""

LEAST_ROWS = 0.5
"""Least estimated number of rows that has a mean."""

LEAST_ERRORS = 3.0
"""Least measured number of rows that has a mean, in standard errors of that number."""

HOLDS, NOISE_ONLY, NONE = "95 %", "noise only", "none"
"""The claims of intervals: to hold in 95 of 100 releases; to cover the noise but not the model; nothing."""

Numbers = NDArray[np.float64]
Place = tuple[int, int]
"""A group's number, and the number of groups: the cells of a group lie together."""
ALL: Place = (0, 1)
"""The place of all cells as one group."""


class Marginals(Protocol):
    """The marginals of a fitted model."""

    @property
    def total(self) -> float: ...

    def marginal(self, clique: Clique) -> Numbers:
        """Estimated counts over a clique, axes in its order, summing to ``total``."""


class Unbiased(Protocol):
    """Unbiased estimates of measured marginals, with the variance of linear functions of them.

    Invariant: marginals of all covered cliques agree on their common columns, and the covariance of a
        clique's
    cells is invariant to permutations of a column's codes.
    """

    def covers(self, clique: Clique) -> bool:
        """True if a clique's columns were measured together; () is the number of rows."""

    def marginal(self, clique: Clique) -> Numbers:
        """Estimated counts over a covered clique, axes in its order; may be negative."""

    def variance(self, clique: Clique, weights: Numbers) -> float:
        """Variance of the sum of a covered clique's cells times weights of the same shape."""

    def cell_variance(self, clique: Clique) -> float:
        """Variance of any one cell of a covered clique, in rows squared."""


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


def ratio(above: Numbers, below: Numbers | float, least: float) -> Numbers:
    """Quotients of sums by counts, NaN where the count is below ``least``."""
    quotients = np.full(above.shape, np.nan)
    np.divide(above, below, out=quotients, where=np.asarray(below) >= least)
    return quotients


def of_two_cells(cell: float, whole: float, cells: int) -> tuple[float, float]:
    """The covariance of two of some cells, and a cell's variance less that; ``whole`` is their sum's."""
    shared = (whole - cells * cell) / (cells * (cells - 1)) if cells > 1 else 0.0
    return shared, cell - shared


@runtime_checkable
class Uneven(Unbiased, Protocol):
    """Unbiased estimates with a variance for each cell, and a number of rows without one."""

    def cell_variances(self, clique: Clique) -> Numbers:
        """Variance of each cell of a covered clique, shape of the marginal."""


def uneven_counts(direct: Uneven, clique: Clique) -> Counts:
    """Counts and shares of the public number of rows, with their errors."""
    rows = direct.marginal(clique).ravel()
    error = np.sqrt(direct.cell_variances(clique).ravel())
    total = float(direct.marginal(()))
    if total < LEAST_ROWS:
        nothing = np.full(rows.shape, np.nan)
        return Counts(rows, error, nothing, nothing)
    return Counts(rows, error, rows / total, error / total)


class CountedCells(Protocol):
    """Estimated counts of the cells of a clique."""

    @property
    def basis(self) -> str: ...

    @property
    def limits(self) -> str:
        """The claim of intervals by ``reach``: "95 %", "noise only" or "none"."""

    @property
    def cells(self) -> Numbers:
        """The counts, axes as the clique."""

    @property
    def figures(self) -> Counts:
        """All counts, and their shares of all rows, with their standard errors."""

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        """Half the width of the 95 % interval of a weighted sum of counts; NaN if it is unknown.

        Args:
            weights: float64[cells of the group], flat.
            place: the group; all others have weights of 0.
        """


@dataclass(frozen=True, eq=False)
class PublicCells:
    """Shares that are public, of a number of rows that is public or measured."""

    shares: Numbers
    direct: Unbiased
    rows: int | None = None
    basis: str = "public"
    limits: str = HOLDS

    @property
    def cells(self) -> Numbers:
        return self.shares * (float(self.direct.marginal(())) if self.rows is None else float(self.rows))

    @property
    def figures(self) -> Counts:
        error = 0.0 if self.rows is not None else sqrt(self.direct.cell_variance(()))
        shares = self.shares.ravel()
        return Counts(self.cells.ravel(), shares * error, shares, np.zeros(shares.shape))

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        if self.rows is not None:
            return 0.0
        share = float(weights @ self.shares.reshape(place[1], -1)[place[0]])
        return abs(share) * Z95 * sqrt(self.direct.cell_variance(()))


@dataclass(frozen=True, eq=False)
class MeasuredCells:
    """Noisy answers, reconciled: without bias, and with exact variances."""

    direct: Unbiased
    clique: Clique
    basis: str = "measured"
    limits: str = HOLDS

    @cached_property
    def cells(self) -> Numbers:
        return self.direct.marginal(self.clique)

    @property
    def figures(self) -> Counts:
        """All counts, their exact error, and shares with their error to first order.

        A share x/n moves with x - share n, whose variance is that of the cell, V, less
        2 share Cov(x, n), plus share^2 W, W being the variance of the total n. By symmetry
        Cov(x, n) is the same for each of k cells; the k of them add up to W.
        """
        if isinstance(self.direct, Uneven):
            return uneven_counts(self.direct, self.clique)
        rows, total = self.cells.ravel(), float(self.direct.marginal(()))
        cell, whole = self.direct.cell_variance(self.clique), self.direct.cell_variance(())
        share = ratio(rows, total, LEAST_ROWS)
        moved = np.maximum(cell - 2.0 * share * whole / rows.size + share**2 * whole, 0.0)
        return Counts(rows, np.full(rows.shape, sqrt(cell)), share, ratio(np.sqrt(moved), total, LEAST_ROWS))

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        whole = np.zeros((place[1], weights.size))
        whole[place[0]] = weights
        variance = self.direct.variance(self.clique, whole.reshape(self.cells.shape))
        return Z95 * sqrt(max(variance, 0.0))


@dataclass(frozen=True, eq=False)
class ModelCells:
    """The model's counts; their errors follow from refits to fresh noise, or are unknown without any.

    The standard error is a parametric bootstrap (Efron and Tibshirani 1993, chapter 6): the root mean square
    distance, over refits to the model's own marginals with fresh noise, of a sum from the model's. It covers
    noise and shrinkage, but not the model's assumption that columns which were not measured together are
    independent given those between them. A refit says nothing of a cell that it leaves at zero, so the error
    of a count is one row at least.

    Attributes:
        refits: the counts of each refit.
    """

    cells: Numbers
    refits: Sequence[Numbers] = ()
    basis: str = "model"

    @property
    def limits(self) -> str:
        return NOISE_ONLY if self.refits else NONE

    @property
    def figures(self) -> Counts:
        """All counts and shares; their errors are NaN without refits."""
        rows = self.cells.ravel()
        share, missing = ratio(rows, rows.sum(), LEAST_ROWS), np.full(rows.shape, nan)
        if not self.refits:
            return Counts(rows, missing, share, missing)
        again = np.stack([refit.ravel() for refit in self.refits])
        totals = again.sum(axis=1, keepdims=True)
        shares = again / np.where(totals >= LEAST_ROWS, totals, nan)
        return Counts(
            rows=rows,
            error=np.maximum(np.sqrt(((again - rows) ** 2).mean(axis=0)), 1.0),
            share=share,
            share_error=np.sqrt(np.nanmean((shares - share) ** 2, axis=0)),
        )

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        """1.96 times the root of the mean squared change of the sum, over the refits."""
        if not self.refits:
            return nan
        number, groups = place
        mine = self.cells.reshape(groups, -1)[number]
        moves = [float(weights @ (again.reshape(groups, -1)[number] - mine)) for again in self.refits]
        return Z95 * max(sqrt(float(np.mean(np.square(moves)))), float(np.abs(weights).max(initial=0.0)))
