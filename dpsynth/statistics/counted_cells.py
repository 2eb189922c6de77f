"""Counts of the cells of some columns, and how far a weighted sum of them may be off.

Counts come from public marginals, from measured answers, or from the model, in this order. The errors of the
model's counts follow from the exam where it has the columns (``examined_estimates``), otherwise from refits,
or they are unknown.

Invariant: post-processing. Counts say what they rest on, and what their limits claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt
from typing import Protocol

import numpy as np

from dpsynth.columns.domain import Clique
from dpsynth.columns.public_marginals import PublicMarginals
from dpsynth.statistics.estimates import (
    ALL,
    HOLDS,
    LEAST_ROWS,
    NOISE_ONLY,
    NONE,
    Z95,
    Counts,
    Numbers,
    Place,
    Unbiased,
    ratio,
)
from dpsynth.statistics.examined_estimates import Distances, ExaminedCells
from dpsynth.statistics.uneven_estimates import Uneven, uneven_counts


class CountedCells(Protocol):
    """Estimated counts of the cells of a clique."""

    @property
    def basis(self) -> str:
        """The basis of the counts."""
        ...

    @property
    def limits(self) -> str:
        """The claim of intervals by ``reach``: "95 %", "noise only" or "none"."""
        ...

    @property
    def cells(self) -> Numbers:
        """The counts, axes as the clique."""
        ...

    @property
    def figures(self) -> Counts:
        """All counts, and their shares of all rows, with their standard errors."""
        ...

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        """Half the width of the 95 % interval of a weighted sum of counts; NaN if it is unknown.

        Args:
            weights: float64[cells of the group], flat.
            place: the group; all others have weights of 0.
        """
        ...


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
        """The shares times the number of rows."""
        return self.shares * (float(self.direct.marginal(())) if self.rows is None else float(self.rows))

    @property
    def figures(self) -> Counts:
        """All counts and shares; a share has no error."""
        error = 0.0 if self.rows is not None else sqrt(self.direct.cell_variance(()))
        shares = self.shares.ravel()
        return Counts(self.cells.ravel(), shares * error, shares, np.zeros(shares.shape))

    def reach(self, weights: Numbers, place: Place = ALL) -> float:
        """The weighted share times the reach of the number of rows."""
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
        """The estimates, which may be negative."""
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
        """1.96 standard deviations of the noise."""
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
        cells: float64, the counts.
        refits: the counts of each refit.
        basis: what the model rests on.
    """

    cells: Numbers
    refits: Sequence[Numbers] = ()
    basis: str = "model"

    @property
    def limits(self) -> str:
        """The noise only, or nothing."""
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


def public_or_measured(public: PublicMarginals, direct: Unbiased, clique: Clique) -> CountedCells | None:
    """The counts of a clique that is public or was measured together; None of any other.

    Args:
        public: the public marginals.
        direct: the measured counts.
        clique: the columns.
    """
    shares = public.shares(clique)
    if shares is not None:
        return PublicCells(shares, direct, public.rows)
    return MeasuredCells(direct, clique) if direct.covers(clique) else None


def examined(
    cells: Numbers, clique: Clique, distances: Distances, direct: Unbiased, basis: str
) -> ExaminedCells | None:
    """The model's counts with errors by the exam; None if the exam doesn't have the clique.

    Args:
        cells: the model's counts.
        clique: their columns.
        distances: the distances of all examined cliques.
        direct: the measured counts, which tell how well the number of rows is known.
        basis: what the model rests on.
    """
    distance = distances.get(frozenset(clique))
    if distance is None:
        return None
    return ExaminedCells(cells, distance, Z95 * sqrt(direct.cell_variance(())), basis)
