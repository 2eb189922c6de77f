"""Counts of cells in groups, with a condition on the rows, and the figures of each group.

Published tables and answers to recipients are both made here, so a figure is the same in both. The columns of
the groups come first.

A condition is a conjunction. A part of it that is about one column and that the column's cells decide becomes
a mask of codes. Any other part becomes a table of weights over the cells of its columns: 1 where all rows
satisfy it, 0 where none does. Where a condition cuts through a cell (age >= 67 and a bin from 65 to 69), the
weight is that of values as the synthetic table has them inside the cell, and the least and the largest weight
are 0 and 1.

Invariant: post-processing. A row satisfies a condition if it is true, as in SQL; where it is missing, it
doesn't.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Intervals
from dpsynth.columns.column import Column
from dpsynth.columns.conditions import MOST_CELLS, Truth, possible, satisfied
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Call, Expression
from dpsynth.columns.layout import Layout
from dpsynth.columns.moment_parts import of_parts
from dpsynth.columns.numeric import NumericCodec
from dpsynth.errors import DpsynthError
from dpsynth.statistics import group_figures
from dpsynth.statistics.estimates import ALL, CountedCells, Numbers
from dpsynth.statistics.group_figures import Contents, Estimate, Group

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
        share: float64, the part of each cell's rows that satisfies it, axes as ``columns``.
        least, most: float64, the bounds on that part that hold whatever the values inside cells are.
    """

    columns: Clique
    share: Weights
    least: Weights
    most: Weights

    @property
    def cuts(self) -> bool:
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
        return tuple(dict.fromkeys((*self.masks, *(c for f in self.factors for c in f.columns))))

    @property
    def cut(self) -> Clique:
        return tuple(dict.fromkeys(c for f in self.factors if f.cuts for c in f.columns))


def condition_of(formula: Expression | None, layout: Layout) -> Condition:
    """The condition that a formula is; None is satisfied by all rows.

    Raises:
        ConditionRefused: a part is about columns of too many values together.
    """
    masks: dict[str, NDArray[np.bool_]] = {}
    factors: list[Factor] = []
    if formula is not None:
        formula = of_parts(formula, layout.named)
    for part in [] if formula is None else _conjuncts(formula):
        found = _factor(part, layout)
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


def _factor(formula: Expression, layout: Layout) -> Factor:
    roots = layout.roots(formula)
    names = tuple(c.name for c in layout.columns if c.name in roots)
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


EVERY_ROW = Condition({})


@dataclass(frozen=True)
class Measure:
    """A figure of each group.

    Attributes:
        kind: "count", "share", "sum", "mean", "variance", "quantile" or "correlation".
        of: the columns of numbers that it is about.
        part: the condition of a share; None for the share that each group has of all rows.
    """

    kind: str
    of: Clique = ()
    level: float = 0.5
    part: Condition | None = None


@dataclass(frozen=True, eq=False)
class GroupedCounts:
    """Counts of the cells of some columns, in groups.

    Attributes:
        columns: the columns, in the order of the counts' axes.
        by: number of columns that make the groups: the first ones.
    """

    columns: tuple[Column, ...]
    by: int
    counted: CountedCells
    where: Condition = EVERY_ROW

    @property
    def basis(self) -> str:
        return self.counted.basis

    @property
    def limits(self) -> str:
        return self.counted.limits

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(c.size for c in self.columns)

    @property
    def groups(self) -> int:
        return prod(self.shape[: self.by])

    def possible(self, number: int) -> bool:
        return bool(self._where[2][number].any())

    def figure(self, number: int, measure: Measure) -> tuple[Estimate, float]:
        group = self.group(number)
        if measure.kind == "count":
            return group_figures.count(group), group.rows
        if measure.kind == "share":
            return self._share(group, number, measure.part), group.rows
        held = self._with_values(number, measure.of)
        one, *other = (self._contents(name, number, held) for name in measure.of)
        shown = self._only(number, held)
        if not held.any():
            return group_figures.UNDEFINED, 0.0
        if measure.kind == "quantile":
            return group_figures.quantile(shown, measure.level, one), shown.rows
        return _OF_NUMBERS[measure.kind](shown, one, *other), shown.rows

    def grouping_error(self, number: int, name: str) -> float:
        """Largest mean distance of numbers from the expected number of their cells; NaN without rows."""
        group, held = self.group(number), self._with_values(number, (name,))
        rows = float(group.cells[held] @ group.share[held])
        if rows <= 0:
            return float("nan")
        wide = self._contents(name, number, held).half_width
        inside = float(np.maximum(group.cells[held], 0.0) @ (group.share[held] * wide)) / rows
        return min(inside, float(wide.max()))

    def group(self, number: int) -> Group:
        share, least, most = (weights[number] for weights in self._where)
        reach = partial(self.counted.reach, place=(number, self.groups))
        return Group(self._cells[number], share, least, most, reach)

    @cached_property
    def _cells(self) -> Numbers:
        return self.counted.cells.reshape(self.groups, -1)

    @cached_property
    def _where(self) -> tuple[Numbers, Numbers, Numbers]:
        """The least, expected and largest part of each cell's rows, float64[groups, cells]."""
        share, least, most = (self.weights(self.where, w).reshape(self.groups, -1) for w in _PARTS)
        return share, least, most

    def _on_axis(self, name: str, values: Numbers) -> Numbers:
        """One number a code of a column, broadcast to all cells."""
        place = [c.name for c in self.columns].index(name)
        shape = [1] * len(self.columns)
        shape[place] = len(values)
        return np.broadcast_to(values.reshape(shape), self.shape)

    def weights(self, condition: Condition, which: str) -> Numbers:
        """The part of each cell's rows that satisfies a condition: "share", "least" or "most"."""
        names = [c.name for c in self.columns]
        found = np.ones(self.shape)
        for column, mask in condition.masks.items():
            if column in names:
                found = found * self._on_axis(column, mask.astype(np.float64))
        for factor in condition.factors:
            order = np.argsort([names.index(c) for c in factor.columns])
            shape = [1] * len(names)
            for c, size in zip(factor.columns, factor.share.shape, strict=True):
                shape[names.index(c)] = size
            found = found * getattr(factor, which).transpose(order).reshape(shape)
        return found

    def _with_values(self, number: int, names: Clique) -> NDArray[np.bool_]:
        found = np.ones(self._cells.shape[1], dtype=bool)
        for name in names:
            found &= self._of_codes(name)[0][number] > 0
        return found

    def _contents(self, name: str, number: int, held: NDArray[np.bool_]) -> Contents:
        return Contents(*(part[number][held] for part in self._of_codes(name)[1:]))

    def _of_codes(self, name: str) -> tuple[Numbers, ...]:
        """For each cell float64[groups, cells]: 1 if a column has a value; its number, half-width, ends."""
        if name not in self._known:
            column = next(c for c in self.columns if c.name == name)
            known = (np.arange(column.size) < len(column.codec.labels)).astype(np.float64)
            parts = [known]
            for values in (column.codec.centres, column.codec.half_widths, *_ends(column)):
                assert values is not None
                every = np.zeros(column.size)
                every[: len(values)] = values
                parts.append(every)
            self._known[name] = tuple(self._on_axis(name, p).reshape(self.groups, -1) for p in parts)
        return self._known[name]

    @cached_property
    def _known(self) -> dict[str, tuple[Numbers, ...]]:
        return {}

    def _only(self, number: int, held: NDArray[np.bool_]) -> Group:
        """Some cells of a group; the weights of all others are 0."""
        group = self.group(number)
        if held.all():
            return group

        def reach(weights: Numbers) -> float:
            whole = np.zeros(held.shape)
            whole[held] = weights
            return group.reach(whole)

        return Group(group.cells[held], group.share[held], group.least[held], group.most[held], reach)

    def _share(self, group: Group, number: int, part: Condition | None) -> Estimate:
        if part is not None:
            share, least, most = (self.weights(part, w).reshape(self.groups, -1)[number] for w in _PARTS)
            of_part = Group(
                group.cells, group.share * share, group.least * least, group.most * most, group.reach
            )
            return group_figures.share(group, of_part)
        share, least, most = (weights.reshape(-1) for weights in self._where)
        reach = partial(self.counted.reach, place=ALL)
        every = Group(self._cells.reshape(-1), share, least, most, reach)
        mine = np.zeros(self._cells.shape)
        mine[number] = 1.0
        return group_figures.share(every, every.within(mine.reshape(-1)))


_PARTS = ("share", "least", "most")
_OF_NUMBERS: Mapping[str, Callable[..., Estimate]] = {
    "sum": group_figures.total,
    "mean": group_figures.mean,
    "variance": group_figures.variance,
    "correlation": group_figures.correlation,
}


def _ends(column: Column) -> tuple[Numbers, Numbers]:
    values = column.codec.cell_values
    if isinstance(values, Intervals) and isinstance(column.codec, NumericCodec):
        return values.low, values.high
    centres, half_widths = column.codec.centres, column.codec.half_widths
    assert centres is not None and half_widths is not None
    return centres - half_widths, centres + half_widths
