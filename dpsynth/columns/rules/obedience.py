"""Obedience of cells: the combinations of cells in which some row can obey each rule.

A rule over few combinations of cells has a table of those that are closed. For any other rule, the possible
values of its formula are computed for the rows at hand (``possible``). A column that a rule computes stands
in its own cell here, and the rule that computes it is one more condition: the cells of all its columns fit
together. A tie closes all pairs of cells but those of partners.

Invariant: a combination of cells that holds a row which obeys all rules is open, but for rows whose tied
cells are no partners.

The rows that satisfy a formula, by the values in them.

Invariant: a row satisfies a formula if it is true, as in SQL; where it is missing, it doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Call, Expression, Reference, references
from dpsynth.columns.formulas import Operand, value_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.rules.grids import NONE
from dpsynth.columns.rules.ranges import CellsOfRows, Truth, possible
from dpsynth.columns.rules.rule import Rules, Tie


def satisfied(
    formula: Expression, layout: Layout, codes: Mapping[str, Codes], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Rows with given cells, and values drawn inside them, for which a formula is true, bool[rows].

    Args:
        formula: a formula over these columns, and over derived ones that are computed from them.
        layout: the layout.
        codes: int64[rows] of each of the columns.
        rng: draws the values.
    """
    columns = {c.name: c for c in layout.columns}
    operands: dict[str, Operand] = {}
    for name, code in codes.items():
        values = columns[name].decode(code.astype(np.int64), rng)
        operands[name] = Operand(layout.kinds[name], values, columns[name].codec.text(values))
    return true_rows(formula, layout, operands, len(next(iter(codes.values()))))


def true_rows(
    formula: Expression, layout: Layout, operands: dict[str, Operand], rows: int
) -> NDArray[np.bool_]:
    """Rows for which a formula is true, bool[rows]; operands of derived columns are added."""
    for derived in layout.in_turn():
        if operands.keys() >= set(references(derived.formula)):
            operands[derived.name] = derived.operand(operands, rows)
    values: pa.Array = value_of(formula, operands, rows)
    return np.asarray(pc.fill_null(values, False)).astype(np.bool_)


Mask = NDArray[np.bool_]

_MOST_CELLS = 1 << 22
"""Largest number of combinations of cells of a rule that has a table of them."""

_AT_ONCE = 1 << 20
"""Combinations of rows and cells that are looked at together."""


@dataclass(frozen=True, eq=False)
class Part:
    """One rule over cells.

    Attributes:
        number: number of the rule; -1 for cells that are closed for another reason.
        columns: its columns.
        closed: closed combinations, axes as ``columns``; None if there are too many combinations.
        rows: the formula's possible values by row, where there is no table.
        formula: the formula.
    """

    number: int
    columns: Clique
    closed: Mask | None
    rows: CellsOfRows | None = None
    formula: Expression | None = None

    def broken(self, codes: Mapping[str, Codes], moving: str | None = None) -> Mask:
        """Rows in a closed combination, bool[rows, 1]; or bool[rows, cells] for each cell of one column.

        Args:
            codes: int64[rows] of each of the columns.
            moving: the column of which each row tries all cells, if any.
        """
        if self.closed is None:
            return self._broken_rows(codes, moving)
        if moving is None:
            place = np.ravel_multi_index([codes[c] for c in self.columns], self.closed.shape)
            return self.closed.reshape(-1)[place][:, None]
        axis = self.columns.index(moving)
        others = [c for c in self.columns if c != moving]
        lines = np.moveaxis(self.closed, axis, -1)
        found = lines[tuple(codes[c] for c in others)]
        return np.broadcast_to(found, (len(codes[moving]), lines.shape[-1]))

    def _broken_rows(self, codes: Mapping[str, Codes], moving: str | None) -> Mask:
        assert self.rows is not None and self.formula is not None
        rows = len(codes[self.columns[0]])
        cells = 1 if moving is None else self.rows.cells(moving)
        found = np.empty((rows, cells), dtype=np.bool_)
        step = max(_AT_ONCE // cells, 1)
        for begin in range(0, rows, step):
            some = {c: codes[c][begin : begin + step] for c in self.columns}
            truth = self.rows.possible(self.formula, some, moving)
            assert isinstance(truth, Truth)
            found[begin : begin + step] = truth.no & ~truth.yes & ~truth.missing
        return found


@dataclass(frozen=True, eq=False)
class Obedience:
    """The rules of a table over its cells.

    Attributes:
        rules: the rules.
        layout: the layout of the table, with all cells found.
        partners: the partner of each cell, by tie.
        shut: for some columns, the cells that no row may have.
    """

    rules: Rules
    layout: Layout
    partners: Sequence[tuple[Tie, Codes]] = ()
    shut: Mapping[str, Mask] = field(default_factory=dict)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All rules over cells."""
        return tuple(self._parts())

    def _parts(self) -> Iterable[Part]:
        formulas: list[tuple[int, Expression, Expression]] = [
            (c.number, c.formula, self._whole(c.formula)) for c in self.rules.conditions
        ]
        for target, total in self.rules.sums.items():
            name = Reference(target)
            sides = (total.formula, self._whole(total.formula))
            own, with_parts = (Call("==", (name, side)) for side in sides)
            formulas.append((total.number, own, with_parts))
        for number, formula, whole in formulas:
            yield self._part(number, formula)
            if whole != formula:
                # Cells may fit for each rule that don't fit for a sum and for what it is part of.
                yield self._part(number, whole)
        sizes = {c.name: (c.size, len(c.codec.labels)) for c in self.layout.columns}
        for tie, partner in self.partners:
            (left, lefts), (right, rights) = sizes[tie.left], sizes[tie.right]
            if left * right > _MOST_CELLS:
                continue
            closed = np.zeros((left, right), dtype=np.bool_)
            closed[:lefts, :rights] = True
            has = np.flatnonzero(partner != NONE)
            closed[has, partner[has]] = False
            yield Part(tie.number, (tie.left, tie.right), closed)
        named = set(self.rules.named)
        for column, closed in self.shut.items():
            if column in named:
                yield Part(-1, (column,), closed)

    def _whole(self, formula: Expression) -> Expression:
        """A formula with the formulas of sums in place of their columns."""
        if isinstance(formula, Reference) and formula.column in self.rules.sums:
            return self._whole(self.rules.sums[formula.column].formula)
        if isinstance(formula, Call):
            return replace(formula, operands=tuple(map(self._whole, formula.operands)))
        return formula

    def _part(self, number: int, formula: Expression) -> Part:
        names = self.rules.names(formula, into_sums=False)
        columns = [c for c in self.layout.columns if c.name in names]
        clique, sizes = tuple(c.name for c in columns), [c.size for c in columns]
        if prod(sizes) > _MOST_CELLS:
            return Part(number, clique, None, CellsOfRows(self.layout, clique), formula)
        found = possible(formula, self.layout, clique)
        assert isinstance(found, Truth)
        closed = found.no & ~found.yes & ~found.missing
        return Part(number, clique, np.broadcast_to(closed, sizes))

    @cached_property
    def components(self) -> tuple[tuple[Part, ...], ...]:
        """Rules that share columns, directly or through other rules."""
        left, found = [part for part in self.parts if part.columns], []
        while left:
            some, names = [left.pop(0)], set[str]()
            while True:
                names = {c for part in some for c in part.columns}
                more = [part for part in left if not names.isdisjoint(part.columns)]
                if not more:
                    break
                some += more
                left = [part for part in left if part not in more]
            found.append(tuple(some))
        return tuple(found)


def columns_of(parts: Iterable[Part]) -> Clique:
    """The columns of some rules."""
    return tuple(dict.fromkeys(c for part in parts for c in part.columns))


def broken_in(parts: Iterable[Part], codes: Mapping[str, Codes]) -> Mask:
    """Rows in which some of the rules are broken, bool[rows]."""
    return np.logical_or.reduce([part.broken(codes)[:, 0] for part in parts])
