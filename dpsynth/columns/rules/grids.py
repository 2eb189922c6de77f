"""Rules over cells: the combinations of cells in which rows obey, violate, or may obey each rule.

A rule over few combinations of cells has a table of those that are closed. For any other rule, the possible
values of its formula are computed for the rows at hand (``possible``). A column that a rule computes stands
in its own cell here, and the rule that computes it is one more condition: the cells of all its columns fit
together. A tie closes all pairs of cells but those of partners.

Invariant: a combination is a structural zero only if every row in it violates a rule, and is marked as obeyed
only if no row in it does. A combination of cells that holds a row which obeys all rules is open, but for rows
whose tied cells are no partners. A value never has two partners; if a tie holds both ways, no two values have
the same partner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.conditions import MOST_CELLS, CellsOfRows, Truth, possible
from dpsynth.columns.domain import Clique, Compression
from dpsynth.columns.expression import Call, Expression, Reference
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import PooledCounts
from dpsynth.columns.rules.rule import Condition, Rules, Tie, connected

OBEYED, VIOLATED, DEPENDS = 0, 1, 2

UNTOLD = 2.0
"""Standard deviations of noise up to which counts tell of no missing cell but those that a rule asks for."""


@dataclass(frozen=True, eq=False)
class Grid:
    """State of a condition in each combination of cells.

    Attributes:
        columns: columns of the condition, in table order.
        state: int8, OBEYED, VIOLATED or DEPENDS (on the values), axes as ``columns``.
    """

    number: int
    columns: Clique
    state: NDArray[np.int8]

    @property
    def zeros(self) -> NDArray[np.bool_]:
        """Structural zeros: combinations that violate the rule for all values."""
        return self.state == VIOLATED

    @property
    def decided(self) -> bool:
        return not (self.state == DEPENDS).any()

    def of(self, codes: Mapping[str, Codes]) -> NDArray[np.int8]:
        spots = np.ravel_multi_index([codes[c] for c in self.columns], self.state.shape)
        return self.state.reshape(-1)[spots]


def grid_of(condition: Condition, rules: Rules, layout: Layout) -> Grid | None:
    """The grid of a condition; None if its columns have too many combinations or include a sum."""
    names = rules.names(condition.formula, into_sums=False)
    columns = tuple(c for c in layout.columns if c.name in names)
    if not columns or not rules.sums.keys().isdisjoint(names) or any(c.search is not None for c in columns):
        return None
    sizes = [c.size for c in columns]
    if prod(sizes) > MOST_CELLS:
        return None
    clique = tuple(c.name for c in columns)
    found = possible(condition.formula, layout, clique)
    assert isinstance(found, Truth)
    state = np.where(found.no, np.where(found.yes | found.missing, DEPENDS, VIOLATED), OBEYED)
    return Grid(condition.number, clique, np.broadcast_to(state, sizes).astype(np.int8))


def grids_of(rules: Rules, layout: Layout) -> tuple[Grid, ...]:
    """The grids of all conditions that have one."""
    found = (grid_of(condition, rules, layout) for condition in rules.conditions)
    return tuple(grid for grid in found if grid is not None)


def zeros_of(
    grids: Sequence[Grid], groups: Mapping[str, NDArray[np.integer]]
) -> dict[Clique, NDArray[np.bool_]]:
    """Structural zeros by clique: True for cells that no row may have, over groups of compressed columns.

    A group is a zero only if all its values are.

    Args:
        groups: for each compressed column, the group of each value.
    """
    found: dict[Clique, NDArray[np.bool_]] = {}
    for grid in grids:
        zeros = grid.zeros
        for axis, name in enumerate(grid.columns):
            if name in groups:
                zeros = _merged(zeros, axis, groups[name])
        if zeros.any():
            found[grid.columns] = found.get(grid.columns, False) | zeros
    return found


def told_only(grids: Sequence[Grid], counts: PooledCounts, missing: Mapping[str, int]) -> tuple[Grid, ...]:
    """The grids, without missing cells that they allow and no noisy count tells of.

    Where a rule asks for a missing cell in some rows and allows one in others, noise that makes too many
    goes to the others, and noise that makes too few takes rows from the first ones. So the others have none,
    unless another rule asks for some too, or the column has more of them by ``UNTOLD`` standard deviations.
    """
    every = {(g, c): _asking(g, c, missing[c]) for g in grids for c in g.columns if c in missing}
    asking = {key: asked for key, asked in every.items() if asked.any()}
    rules = Counter(column for _, column in asking)
    found = {grid: grid.state.copy() for grid in grids}
    for (grid, column), asked in asking.items():
        if rules[column] > 1 or asked.ndim != 1 or any((c,) not in counts for c in grid.columns):
            continue
        axis, place = grid.columns.index(column), missing[column]
        (own, variance), (other, of_each) = counts[column,], counts[grid.columns[1 - axis],]
        if own[place] - other[asked].sum() <= UNTOLD * sqrt(variance + asked.sum() * of_each):
            np.moveaxis(found[grid], axis, 1)[~asked, place] = VIOLATED
    return tuple(replace(grid, state=state) for grid, state in found.items())


def _asking(grid: Grid, column: str, place: int) -> NDArray[np.bool_]:
    """Cells of the other columns with which a column's cell must be the one at ``place``."""
    lines = np.moveaxis(grid.state, grid.columns.index(column), -1)
    return np.asarray(
        (np.delete(lines, place, -1) == VIOLATED).all(axis=-1) & (lines[..., place] != VIOLATED)
    )


def told_apart(compression: Compression, grids: Iterable[Grid]) -> Compression:
    """The same groups, cut where a rule tells two kinds of a column's values, and no more.

    The number of a household's members is below 3, or not, where its third member's age is missing, or not.
    """
    found = dict(compression.groups)
    for grid in grids:
        for axis, column in enumerate(grid.columns):
            lines = np.moveaxis(grid.state, axis, 0).reshape(grid.state.shape[axis], -1)
            other = (lines != lines[0]).any(axis=1)
            if column in found and other.any() and (lines[other] == lines[other][0]).all():
                both = 2 * found[column] + other
                _, first, group = np.unique(both, return_index=True, return_inverse=True)
                found[column] = np.argsort(np.argsort(first))[group]
    return Compression({c: groups for c, groups in found.items() if groups.max() + 1 < groups.size})


def _merged(zeros: NDArray[np.bool_], axis: int, groups: NDArray[np.integer]) -> NDArray[np.bool_]:
    transposed = np.moveaxis(zeros, axis, 0)
    found = np.ones((int(groups.max()) + 1, *transposed.shape[1:]), dtype=np.bool_)
    np.logical_and.at(found, groups, transposed)
    return np.moveaxis(found, 0, axis)


NONE = -1
"""The partner of a value that has none."""

Marginal = Callable[[Clique], NDArray[np.float64]]
"""A function from columns to expected rows over them, axes in the order of the columns."""


def partners(rows: NDArray[np.float64], zeros: NDArray[np.bool_], both: bool) -> Codes:
    """Partner of each value on the left, int64[left]; NONE if there is none.

    It is the value that most of its rows have by a model of noisy counts. If partners must differ, all are
    chosen together so that as many rows as possible keep theirs (the assignment problem, Kuhn 1955). This is
    post-processing of public numbers.

    Args:
        rows: float64[left, right], expected numbers of rows.
        zeros: bool[left, right], pairs that another rule forbids.
        both: True if no two values may have the same partner.

    >>> partners(np.array([[5.0, 4.0], [3.0, 0.0]]), np.zeros((2, 2), bool), both=True)
    array([1, 0])
    """
    rows_kept = np.where(zeros, -1.0 - rows.sum(), rows)
    found = np.full(len(rows), NONE, dtype=np.int64)
    if both:
        # Slow to load, and not needed to read a configuration.
        from scipy.optimize import linear_sum_assignment

        left, right = linear_sum_assignment(rows_kept, maximize=True)
    else:
        left, right = np.arange(len(rows)), rows_kept.argmax(axis=1)
    found[left] = right
    found[left[zeros[left, right]]] = NONE
    return found


def partners_of(
    rules: Rules, layout: Layout, grids: Sequence[Grid], marginal: Marginal
) -> tuple[tuple[Tie, Codes], ...]:
    """Ties with the partners of their left columns' cells, by one mapping for all ties of a number."""
    labels = {c.name: c.codec.labels for c in layout.columns}
    found: dict[Tie, Codes] = {}
    for number in dict.fromkeys(tie.number for tie in rules.ties):
        ties = rules.ties_of(number)
        sides = [dict.fromkeys(v for t in ties for v in labels[t.pair[side]]) for side in (0, 1)]
        left, right = ({v: spot for spot, v in enumerate(side)} for side in sides)
        rows = np.zeros((len(left), len(right)))
        zeros = rows > 0
        spots = {t: ([left[v] for v in labels[t.left]], [right[v] for v in labels[t.right]]) for t in ties}
        for tie, own in spots.items():
            place, here = np.ix_(*own), tuple(slice(len(values)) for values in own)
            rows[place] += marginal(tie.pair)[here]
            for grid in grids:
                if set(grid.columns) <= set(tie.pair):
                    zeros[place] |= _over(grid, tie.pair)[here]
        whole = partners(rows, zeros, ties[0].both)
        for tie, (lefts, rights) in spots.items():
            code_of = {right: code for code, right in enumerate(rights)}
            found[tie] = np.array([code_of.get(partner, NONE) for partner in whole[lefts].tolist()])
    return tuple((tie, found[tie]) for tie in rules.ties)


def _over(grid: Grid, pair: Clique) -> NDArray[np.bool_]:
    """Structural zeros of a grid, over a pair that holds its columns."""
    transposed = grid.zeros.transpose([grid.columns.index(c) for c in pair if c in grid.columns])
    return (
        transposed
        if transposed.ndim == 2
        else transposed[:, None]
        if grid.columns == pair[:1]
        else transposed[None, :]
    )


@dataclass(frozen=True)
class Enforcement:
    """The enforcement of a rule: the written rule, and the way in which it is kept."""

    rule: str
    kept: str


def enforcement_of(rules: Rules, layout: Layout) -> tuple[Enforcement, ...]:
    """The enforcement of each rule, in the order of the config."""
    kept: dict[int, str] = {}
    for total in rules.sums.values():
        kept[total.number] = (
            f"by construction: {total.target} is computed, and its parts are solved for its own counts"
        )
    for tie in rules.ties:
        left, right = (", ".join(of) for of in zip(*(t.pair for t in rules.ties_of(tie.number)), strict=True))
        one = "a value of its own" if tie.both else "one value"
        kept[tie.number] = f"by construction: each value of {left} is given {one} of {right}"
    grids = {grid.number: grid for grid in grids_of(rules, layout)}
    for condition in rules.conditions:
        grid = grids.get(condition.number)
        if grid is None or not grid.zeros.any():
            kept[condition.number] = "by repair of the rows that violate it"
            continue
        zeros = int(grid.zeros.sum())
        cells = f"{zeros:,} of {grid.zeros.size:,} cells of {', '.join(grid.columns)}"
        kept[condition.number] = f"by zeros of the model: {cells}; what they leave, by repair"
    return tuple(Enforcement(text, kept[number]) for number, text in enumerate(rules.written))


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
        closed: closed combinations, axes as ``columns``; None if there are too many combinations.
        rows: the formula's possible values by row, where there is no table.
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
            yield Part(tie.number, tie.pair, closed)
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
        return self.components_beside(())

    def components_beside(self, kept: Collection[str]) -> tuple[tuple[Part, ...], ...]:
        """The rules, of which those stand together that share a column which is not kept."""
        parts = [part for part in self.parts if part.columns]
        of = {id(part): [c for c in part.columns if c not in kept] or part.columns for part in parts}
        return tuple(map(tuple, connected(parts, lambda part: of[id(part)])))


def columns_of(parts: Iterable[Part]) -> Clique:
    """The columns of some rules."""
    return tuple(dict.fromkeys(c for part in parts for c in part.columns))


def broken_in(parts: Iterable[Part], codes: Mapping[str, Codes]) -> Mask:
    """Rows in which some of the rules are broken, bool[rows]."""
    return np.logical_or.reduce([part.broken(codes)[:, 0] for part in parts])
