"""Counts of the cells of some columns, and how far a weighted sum of them may be off.

Counts come from public marginals, from measured answers, or from the model, in this order. The errors of the
model's counts follow from the exam where it has the columns (``examined_estimates``), otherwise from refits,
or they are unknown.

Invariant: post-processing. Counts say what they rest on, and what their limits claim.

Figures from answers whose cells have different variances, as those of randomised reports have.

Invariant: the number of rows is public, so only the cells have errors.

Conditions on rows as weights of cells: the part of a cell's rows that satisfies a condition.

A condition is a conjunction. A part of it that is about one column and that the column's cells decide
becomes a mask of codes. Any other part becomes a table of weights over the cells of its columns: 1 where all
rows satisfy it, 0 where none does. Where a condition cuts through a cell (age >= 67 and a bin from 65 to
69), the weight is that of values as the synthetic table has them inside the cell, and the least and the
largest weight are 0 and 1.

Invariant: a row satisfies a condition if it is true, as in SQL; where it is missing, it doesn't.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan, prod, sqrt
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Call, Expression, references
from dpsynth.columns.layout import Layout
from dpsynth.columns.moment_parts import of_parts
from dpsynth.columns.rules import Rules
from dpsynth.columns.rules.grids import satisfied
from dpsynth.columns.rules.ranges import MOST_CELLS, Truth, possible
from dpsynth.errors import DpsynthError
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


@runtime_checkable
class Uneven(Unbiased, Protocol):
    """Unbiased estimates with a variance for each cell, and a number of rows without one."""

    def cell_variances(self, clique: Clique) -> Numbers:
        """Variance of each cell of a covered clique, shape of the marginal."""
        ...

    def variances(self, clique: Clique, weights: Numbers) -> Numbers:
        """Variance of each weighted sum of a covered clique's cells; weights of shape (sums, *marginal)."""
        ...


def uneven_counts(direct: Uneven, clique: Clique) -> Counts:
    """Counts and shares of the public number of rows, with their errors."""
    rows = direct.marginal(clique).ravel()
    error = np.sqrt(direct.cell_variances(clique).ravel())
    total = float(direct.marginal(()))
    if total < LEAST_ROWS:
        nothing = np.full(rows.shape, np.nan)
        return Counts(rows, error, nothing, nothing)
    return Counts(rows, error, rows / total, error / total)


_DRAWS = 1 << 20
"""Values that are drawn for the weights of cells through which a condition cuts, in all."""

_MOST_DRAWS = 4096
"""Most values of one cell."""

_LEAST_DRAWS = 16

Weights = NDArray[np.float64]


class ConditionRefused(DpsynthError):
    """A condition that joins too many values; the message says how many are allowed."""

    exit_code = 2


@dataclass(frozen=True, eq=False)
class Factor:
    """A part of a condition, over the cells of some columns.

    Attributes:
        columns: its columns.
        share: float64, the part of each cell's rows that satisfies it, axes as ``columns``.
        least, most: float64, the bounds on that part that hold whatever the values inside cells are.
    """

    columns: Clique
    share: Weights
    least: Weights
    most: Weights

    @property
    def cuts(self) -> bool:
        """True if the condition cuts through a cell."""
        return bool((self.least != self.most).any())


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition on rows.

    Attributes:
        masks: for some columns, the codes that are allowed, bool[codes].
        factors: all other parts.
    """

    masks: Mapping[str, NDArray[np.bool_]]
    factors: tuple[Factor, ...] = ()

    @property
    def columns(self) -> Clique:
        """All columns that it is about."""
        return tuple(dict.fromkeys((*self.masks, *(c for f in self.factors for c in f.columns))))

    @property
    def cut(self) -> Clique:
        """Columns of the parts that cut through cells."""
        return tuple(dict.fromkeys(c for f in self.factors if f.cuts for c in f.columns))


def condition_of(formula: Expression | None, layout: Layout, rules: Rules) -> Condition:
    """The condition that a formula is; None is satisfied by all rows.

    Args:
        formula: a checked formula.
        layout: the layout, with the densities inside bins.
        rules: the table's rules, which know from which columns derived ones are computed.

    Raises:
        ConditionRefused: a part is about columns of too many values together.
    """
    masks: dict[str, NDArray[np.bool_]] = {}
    factors: list[Factor] = []
    if formula is not None:
        formula = of_parts(formula, layout.named)
    for part in [] if formula is None else _conjuncts(formula):
        found = _factor(part, layout, rules)
        if len(found.columns) == 1 and not found.cuts:
            (column,) = found.columns
            masks[column] = masks.get(column, np.True_) & (found.share > 0)
        else:
            factors.append(found)
    return Condition(masks, tuple(factors))


def _conjuncts(formula: Expression) -> Iterator[Expression]:
    if isinstance(formula, Call) and formula.operation == "and":
        for operand in formula.operands:
            yield from _conjuncts(operand)
    else:
        yield formula


def _factor(formula: Expression, layout: Layout, rules: Rules) -> Factor:
    mentioned = rules.names(formula, into_sums=False)
    names = tuple(c.name for c in layout.columns if c.name in _roots(mentioned, layout))
    sizes = tuple(c.size for c in layout.columns if c.name in names)
    if prod(sizes) > MOST_CELLS:
        raise ConditionRefused(
            f"The condition joins columns with {prod(sizes):,} combinations of values ({', '.join(names)}); "
            f"{MOST_CELLS:,} are allowed. Split it into parts that are joined by and."
        )
    truth = possible(formula, layout, names)
    assert isinstance(truth, Truth)
    yes, no, missing = (np.broadcast_to(m, sizes) for m in (truth.yes, truth.no, truth.missing))
    sure, depends = yes & ~no & ~missing, yes & (no | missing)
    share = sure.astype(np.float64)
    if depends.any():
        share[depends] = _shares(formula, layout, names, np.nonzero(depends))
    return Factor(names, share, sure.astype(np.float64), yes.astype(np.float64))


def _roots(names: Sequence[str], layout: Layout) -> set[str]:
    """The modelled columns among some names, and those from which derived ones are computed."""
    found = set(names)
    for derived in reversed(list(layout.in_turn())):
        if derived.name in found:
            found |= set(references(derived.formula))
    return found


def _shares(
    formula: Expression, layout: Layout, names: Clique, cells: tuple[NDArray[np.intp], ...]
) -> Weights:
    """The part of values drawn inside some cells that satisfies a formula, float64[cells]."""
    number = len(cells[0])
    draws = int(np.clip(_DRAWS // number, _LEAST_DRAWS, _MOST_DRAWS))
    rng = np.random.default_rng(0)
    codes = {name: np.repeat(code, draws) for name, code in zip(names, cells, strict=True)}
    true = satisfied(formula, layout, codes, rng)
    return true.reshape(number, draws).mean(axis=1)


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
