"""Repair of rows whose cells break a rule, so that the table's marginals stay as they were.

The rows as they were drawn are the aim: the counts of each column that a rule names, and of its pairs with
other columns, coarsened where they are large. A row that breaks a rule takes another cell in one column, or
all cells of the rule's columns from a row that obeys, whichever lowers

    L = sum over aims of weight x sum over cells (rows - aim)^2

most. So many rows that move the same way displace others: afterwards rows that obey move in the same two
ways, among cells that obey, as long as L falls.

Invariant: residuals are whole numbers, so a table and a generator give the same repaired table on every
machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.rules.grids import Mask, Obedience, Part, broken_in, columns_of

Integers = Mapping[str, NDArray[np.integer]]

_UNIT = 16
"""Parts of a row to which aims are rounded."""
_MEASURED, _TOGETHER, _OTHER = 16, 4, 2
"""Weights: of a measured pair, of one whose columns a rule relates, of any other."""
_SINGLE = 3
"""Weight of a column's own counts, relative to all its pairs together."""
_INSIDE_CELL = 0.1
"""Weight of counts inside the table's cells, relative to those of cells: the draw has them by a guess."""
_AVOIDED = 2.0**46
"""Score of a cell that only rows take which find no other, above every sum of residuals."""
_COARSE, _SMALL = 32, 40
"""Groups of a column's cells in pairs, and the cells up to which each is a group of its own."""
_LEVELS = ((1, 2), (2, 1), (4, 1))
"""Levels of the aim of a pair: the number of neighbouring groups that are one, and the weight.

Alone, counts of single groups would cost a move to a near cell as much as one to a far cell. Noise is smaller
in counts of several groups, which only moves to far cells change."""
_INSIDE_PAIR = 2
"""Weight of the finest level, inside the table's cells, of a pair of which both columns have finer cells: the
draw places these together. Of one finer column it knows nothing but a guess inside its cells."""
_MOST_PARTNERS = 24
"""Pairs that a column is scored in, at most."""
_DONORS = 8
"""Rows that obey whose cells a row is offered at once."""
_BATCHES, _LEAST, _MOST = 100, 64, 4096
"""Number of batches of all rows, and bounds on the rows of a batch."""
_LAPS = 24
"""Laps of refinement at most; one that lowers L by less than ``_ENOUGH`` of what is left is the last."""
_ENOUGH = 0.01
_WORK = 4e8
"""Scores of all laps of a refinement together; of more rows than one lap does with it, as many move."""
_SCORED = 30_000
"""Rows that break a rule of which each cell is scored; more of them take the cells of rows that obey."""
_ANYWAY = 4
"""Every so many laps all moves are tried, and otherwise those that lowered L by more than the mean of all."""
_DONATED = ""
"""The name of moves to the cells of other rows, among the names of columns."""
_WORTH = 0.02
"""Rows that a cell may be off for each row that depends on another column, before that one is changed."""
_RAKED = 20
"""Rounds in which the aim of a pair with closed cells is fitted to its columns' aims."""


@dataclass(frozen=True)
class RuleRepairs:
    """The work of rules on the rows of a table, from public values alone.

    Attributes:
        broken: for each rule, in the order of the config, the rows that broke it as they were drawn.
        changed: for each column, the rows whose cell rules changed.
    """

    rows: int = 0
    broken: tuple[int, ...] = ()
    changed: Mapping[str, int] = field(default_factory=dict)

    def with_more(self, more: RuleRepairs) -> RuleRepairs:
        if not self.rows:
            return more
        columns = dict.fromkeys((*self.changed, *more.changed))
        return RuleRepairs(
            self.rows + more.rows,
            tuple(a + b for a, b in zip(self.broken, more.broken, strict=True)),
            {c: self.changed.get(c, 0) + more.changed.get(c, 0) for c in columns},
        )

    @property
    def shares_changed(self) -> Mapping[str, float]:
        return {c: changed / max(self.rows, 1) for c, changed in self.changed.items()}


def repaired(
    obedience: Obedience,
    codes: Integers,
    begun: Integers,
    rng: np.random.Generator,
    measured: Collection[frozenset[str]] = (),
    cell_of: Mapping[str, Codes] = MappingProxyType({}),
    kept: Collection[str] = (),
) -> tuple[dict[str, Codes], tuple[int, ...]]:
    """Rows in open combinations of cells, as far as any were found; for each rule the rows that broke it.

    Rules that share columns are repaired together, and no row leaves them again.

    Args:
        codes: integers[rows] of every modelled column, as they were drawn.
        begun: the same, with cells that rows begin with in place of those.
        measured: pairs of columns that were measured.
        cell_of: for columns of which the codes are finer than the table's, the table's code of each.
        kept: columns of which no row changes its cell.
    """
    names = [c.name for c in obedience.layout.columns]
    other = {c for c in names if begun[c] is not codes[c]}
    drawn, begun = ({c: some[c].astype(np.int64, copy=False) for c in names} for some in (codes, begun))
    rows = len(drawn[names[0]])
    broken = [0] * len(obedience.rules.written)
    waiting: list[tuple[tuple[Part, ...], Clique, Mask]] = []
    for parts in obedience.components_beside(kept):
        those = np.zeros(rows, dtype=np.bool_)
        for number in {part.number for part in parts}:
            own = [part for part in parts if part.number == number]
            as_drawn = broken_in(own, drawn)
            those |= broken_in(own, begun) if other.intersection(columns_of(own)) else as_drawn
            if number >= 0:
                broken[number] += int(as_drawn.sum())
        free = tuple(c for c in columns_of(parts) if c not in kept)
        if free and (those.any() or other.intersection(columns_of(parts))):
            waiting.append((parts, free, those))
    if not waiting:
        return drawn, tuple(broken)
    moving = list(dict.fromkeys(c for parts, *_ in waiting for c in columns_of(parts)))
    aims = _Aims.of(obedience, drawn, begun, moving, measured, cell_of)
    for parts, free, those in waiting:
        _Repair(aims, parts, free, rng).run(np.flatnonzero(those))
    return drawn | {c: aims.codes(c) for c in moving}, tuple(broken)


@dataclass(frozen=True, eq=False)
class _Aim:
    """Counts that are to stay: of a pair by group of cells, or of one column by cell, at one or more levels.

    Attributes:
        columns: the pair, or the column.
        places: int64[levels, *cells], the place among the residuals of each cell at each level.
        weight: that of a level.
        dependence: rows that depend on both columns of a pair.
    """

    columns: Clique
    places: NDArray[np.int64]
    weight: int
    dependence: float = 0.0


@dataclass
class _Residuals:
    """The residuals of all aims, one after another, as they are put down; the first is that of no aim."""

    values: list[NDArray[np.float64]] = field(default_factory=lambda: [np.zeros(1)])
    weights: list[NDArray[np.float64]] = field(default_factory=lambda: [np.ones(1)])
    size: int = 1

    def placed(self, cells: NDArray[np.int64], weight: int, off: NDArray[np.float64]) -> NDArray[np.int64]:
        """The places of cells, of which some may be one, that are off by parts of a row."""
        merged = weight * np.bincount(cells.reshape(-1), weights=off.reshape(-1)).astype(np.float64)
        self.values.append(merged)
        self.weights.append(np.full(merged.size, float(weight)))
        self.size += merged.size
        return cells + (self.size - merged.size)


@dataclass(frozen=True, eq=False)
class _Table:
    """The aims over some columns, the cells of each after those of the one before.

    The cell of a row is offset + first x size + second; of a column's own counts, size is 0.

    Attributes:
        places: int64[levels, cells], 0 where an aim has fewer levels.
        first, second: int64[aims], lines of ``_Aims.lines``.
        weight: that of all levels of all aims together.
    """

    places: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    size: NDArray[np.int64]
    offset: NDArray[np.int64]
    weight: float

    def cells(self, lines: Codes) -> NDArray[np.int64]:
        """The cell of each row by aim, int64[aims, rows], of lines int64[lines, rows]."""
        return lines[self.first] * self.size[:, None] + lines[self.second] + self.offset[:, None]


@dataclass(frozen=True, eq=False)
class _Aims:
    """A table of codes, and how far it is from its aims.

    A pair has aims at several levels, over its cells and over larger ones that neighbouring cells make up. A
    column and the measured pairs thus keep their counts as far as rows that obey can have them; of a pair
    that nobody measured the draw knows little, so it counts little.

    Attributes:
        lines: int64[lines, rows], which change: each column by group of cells, each moving one by cell too.
        coarse, line: the two lines of a column.
        groups: the group of each cell, by column.
        aims: for each moving column the aims of its pairs, and last of its own counts.
        labels: number of cells of each moving column that are not missing.
        residuals: float64, weight x (rows - aim) in parts of a row, of all aims one after another.
        weights: float64, the weight of each residual.
        rows: float64, room for the rows that enter each cell in a move, less those that leave it.
    """

    lines: Codes
    coarse: Mapping[str, int]
    line: Mapping[str, int]
    groups: Mapping[str, Codes]
    aims: Mapping[str, Sequence[_Aim]]
    labels: Mapping[str, int]
    residuals: NDArray[np.float64]
    weights: NDArray[np.float64]
    rows: NDArray[np.float64]
    tables: dict[Clique, _Table] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        obedience: Obedience,
        drawn: Mapping[str, Codes],
        begun: Mapping[str, Codes],
        moving: Sequence[str],
        measured: Collection[frozenset[str]],
        cell_of: Mapping[str, Codes],
    ) -> _Aims:
        columns = {c.name: c for c in obedience.layout.columns}
        counts = {c: np.bincount(drawn[c], minlength=columns[c].size) for c in columns}
        groups, whole = {}, {}
        for c, column in columns.items():
            groups[c], whole[c] = _grouped(counts[c], len(column.codec.labels), cell_of.get(c))
        sizes = {c: int(g.max()) + 1 for c, g in groups.items()}
        aimed, lines = (
            np.stack([*(groups[c][some[c]] for c in columns), *(some[c] for c in moving)])
            for some in (drawn, begun)
        )
        coarse = {c: place for place, c in enumerate(columns)}
        levels = [(own, {c: _merged(columns[c], whole[c], many) for c in columns}) for many, own in _LEVELS]
        inner = (_INSIDE_PAIR, {c: np.arange(size) for c, size in sizes.items()})
        inside = [set(columns_of(parts)) for parts in obedience.components]
        closed = _closed_pairs(obedience, groups)
        listed: dict[frozenset[str], _Aim] = {}
        residuals = _Residuals()
        of: dict[str, list[_Aim]] = {c: [] for c in moving}
        for a in moving:
            scored: list[tuple[bool, float, str, NDArray[np.int64]]] = []
            for b in columns:
                known = frozenset((a, b)) in measured
                if a == b or (not known and any(a in some and b in some for some in inside)):
                    continue
                shape = sizes[a], sizes[b]
                table = _crossed(aimed[coarse[a]], aimed[coarse[b]], shape)
                scored.append((known, _dependence(table), b, table))
            for known, dependence, b, table in sorted(scored, key=lambda s: (s[0], s[1]), reverse=True)[
                :_MOST_PARTNERS
            ]:
                key = frozenset((a, b))
                if key not in listed:
                    aim = _raked(table, closed[a, b]) if (a, b) in closed else table
                    together = any(a in some and b in some for some in inside)
                    weight = _OTHER if not known else _TOGETHER if together else _MEASURED
                    now = _crossed(lines[coarse[a]], lines[coarse[b]], table.shape)
                    off = np.subtract(_UNIT * now, np.rint(_UNIT * aim), dtype=np.float64)
                    places: list[NDArray[np.int64]] = []
                    before = None
                    for own, at in (inner, *levels) if a in cell_of and b in cell_of else levels:
                        cells = at[a][:, None] * (at[b][-1] + 1) + at[b]
                        if before is None or not np.array_equal(cells, before):
                            places.append(residuals.placed(cells, weight * own, off))
                        before = cells
                    listed[key] = _Aim((a, b), np.stack(places), weight, dependence)
                    of[a].append(listed[key])
                    if b in of:
                        of[b].append(listed[key])
        for c in moving:
            weight = max(round(_SINGLE * sum(aim.weight for aim in of[c])), 1)
            counted = [(np.arange(columns[c].size), weight)]
            if c in cell_of:
                counted = [(counted[0][0], max(round(_INSIDE_CELL * weight), 1)), (cell_of[c], weight)]
            off = np.bincount(begun[c], minlength=columns[c].size) - counts[c]
            placed = [residuals.placed(cells, own, _UNIT * off.astype(np.float64)) for cells, own in counted]
            of[c].append(_Aim((c,), np.stack(placed), weight))
        return cls(
            lines,
            coarse,
            {c: len(columns) + place for place, c in enumerate(moving)},
            groups,
            of,
            {c: len(columns[c].codec.labels) for c in moving},
            np.concatenate(residuals.values),
            np.concatenate(residuals.weights),
            np.zeros(residuals.size),
        )

    def codes(self, column: str) -> Codes:
        return self.lines[self.line[column]]

    def table(self, columns: Clique) -> _Table:
        """The aims over some moving columns; of one column alone, it is the second of each pair."""
        if columns not in self.tables:
            aims = list(dict.fromkeys(aim for c in columns for aim in self.aims[c]))
            own = [next(c for c in columns if c in aim.columns) for aim in aims]
            places = [
                aim.places.swapaxes(1, 2) if aim.columns[-1] != c else aim.places
                for c, aim in zip(own, aims, strict=True)
            ]
            ends = np.cumsum([place[0].size for place in places])
            every = np.zeros((max(map(len, places)), ends[-1]), dtype=np.int64)
            for end, place in zip(ends, places, strict=True):
                every[: len(place), end - place[0].size : end] = place.reshape(len(place), -1)
            lines = [
                (
                    self.coarse[next(other for other in aim.columns if other != c)],
                    self.coarse[c],
                    place.shape[2],
                )
                if len(aim.columns) > 1
                else (self.line[c], self.line[c], 0)
                for c, aim, place in zip(own, aims, places, strict=True)
            ]
            weight = sum(float(self.weights[place.reshape(len(place), -1)[:, 0]].sum()) for place in places)
            first, second, size = np.array(lines).T
            offset = np.concatenate([[0], ends[:-1]])
            self.tables[columns] = _Table(every, first, second, size, offset, weight)
        return self.tables[columns]

    def _values(self, table: _Table) -> NDArray[np.float64]:
        """The residuals of all levels of each cell, together."""
        found = self.residuals.take(table.places[0])
        for places in table.places[1:]:
            found += self.residuals.take(places)
        return found

    def scores(self, column: str, rows: Codes) -> NDArray[np.float64]:
        """The residuals that each cell of a column has for some rows, float64[rows, cells]."""
        table = self.table((column,))
        *offsets, begin = table.offset
        groups = self.groups[column]
        values = self._values(table)
        of_pairs, own = values[:begin].reshape(-1, int(groups.max()) + 1), values[begin:]
        found = np.zeros((rows.size, of_pairs.shape[1]))
        for first, offset in zip(table.first, offsets, strict=False):
            found += of_pairs.take(self.lines[first][rows] + offset // of_pairs.shape[1], axis=0)
        scores = np.asarray(found[:, groups] + own)
        # No row becomes missing to obey a rule, but in place of another one.
        more = np.flatnonzero(own[self.labels[column] :] >= 0) + self.labels[column]
        scores[:, more] += np.where(self.codes(column)[rows][:, None] == more, 0.0, _AVOIDED)
        return scores

    def worth(self, column: str) -> float:
        """Score of a change of a column: the more rows depend on it, the sooner another one is changed."""
        return float(round(_UNIT * _WORTH * sum(aim.weight * aim.dependence for aim in self.aims[column])))

    def standing(self, columns: Clique, rows: Codes, codes: Mapping[str, Codes]) -> NDArray[np.float64]:
        """The residuals of rows that have some codes in some columns, together, float64[*shape of codes].

        Args:
            rows: int64[rows], places of the rows.
            codes: for each of the columns, int64[rows, tries].
        """
        table = self.table(columns)
        values, lines = self._values(table), self._changed(columns, self.lines[:, rows], codes)
        found = np.zeros(lines.shape[1:])
        for first, second, size, offset in zip(
            table.first, table.second, table.size, table.offset, strict=True
        ):
            found += values.take(lines[first] * size + lines[second] + offset)
        return found

    def _changed(self, columns: Clique, lines: Codes, codes: Mapping[str, Codes]) -> Codes:
        """Lines of rows that have some codes in some columns, int64[lines, *shape of codes]."""
        many = codes[columns[0]].shape[1:]
        lines = lines.copy() if not many else np.repeat(lines[:, :, None], many[0], axis=2)
        for c in columns:
            lines[self.coarse[c]] = self.groups[c][codes[c]]
            lines[self.line[c]] = codes[c]
        return lines

    def moved(
        self, columns: Clique, rows: Codes, new: Mapping[str, Codes], rng: np.random.Generator | None
    ) -> float:
        """Give rows other codes in some columns.

        Args:
            rows: int64[rows], none twice.
            new: int64[rows] for each of the columns.
            rng: chooses the rows that move, each with the probability at which the expected L is least, as in
                ``model.refinement``; None if all move.

        Returns:
            By how much L falls.
        """
        table, old = self.table(columns), self.lines[:, rows]
        lines = self._changed(columns, old, new)
        before, after = table.cells(old), table.cells(lines)
        aim, who = np.nonzero(before != after)
        left, entered = (table.places[:, cells[aim, who]] for cells in (before, after))
        moves = left != entered
        left, entered, who = left[moves], entered[moves], np.broadcast_to(who, moves.shape)[moves]
        weights = self.weights[left]
        fall = float((self.residuals[left] - self.residuals[entered]).sum())
        alone = 2.0 * float(weights.sum())
        np.add.at(self.rows, entered, 1.0)
        np.subtract.at(self.rows, left, 1.0)
        together = float((weights * (self.rows[entered] - self.rows[left])).sum())
        self.rows[entered] = self.rows[left] = 0.0
        slope, curve = 2.0 * fall / _UNIT - alone, 2.0 * (together - alone)
        lowered = slope - curve / 2
        if rng is not None and slope < curve:
            best = max(slope / curve, 0.0) if curve > 0 else 0.0
            goes = rng.random(rows.size) < best
            left, entered, weights = (some[goes[who]] for some in (left, entered, weights))
            rows, lines = rows[goes], lines[:, goes]
            lowered = best * slope / 2
        np.add.at(self.residuals, entered, _UNIT * weights)
        np.subtract.at(self.residuals, left, _UNIT * weights)
        self.lines[:, rows] = lines
        return lowered

    @property
    def loss(self) -> float:
        weights, which = np.unique(self.weights, return_inverse=True)
        return float((np.bincount(which, weights=np.square(self.residuals)) / weights).sum()) / _UNIT**2


@dataclass(frozen=True, eq=False)
class _Repair:
    aims: _Aims
    parts: Sequence[Part]
    free: Clique
    rng: np.random.Generator

    @property
    def columns(self) -> Clique:
        return columns_of(self.parts)

    def run(self, broken: Codes) -> None:
        rows = self.aims.lines.shape[1]
        obeys = np.ones(rows, dtype=np.bool_)
        obeys[broken] = False
        left = broken[self.rng.permutation(broken.size)]
        for _ in range(2):
            tried = 0
            for batch in _batches(left, rows):
                donors = np.flatnonzero(obeys)
                obeys[batch] = self._forced(batch, donors, cells=tried < _SCORED or not donors.size)
                tried += batch.size
            left = left[~obeys[left]]
        self._refined(np.flatnonzero(obeys))

    def _forced(self, rows: Codes, donors: Codes, *, cells: bool = True) -> Mask:
        """Rows that obey after each took the best cells found: donors', and with ``cells`` single ones."""
        # A row that breaks several rules mends one after another, before it takes all cells of a donor.
        several = rows[self._breaks(rows) > 1] if cells else rows[:0]
        while several.size:
            several = several[self._mended(several, several[:0], partly=True)]
            several = several[self._breaks(several) > 1]
        return self._mended(rows, donors, cells=cells)

    def _breaks(self, rows: Codes) -> Codes:
        codes = self._codes(rows)
        return np.hstack([part.broken(codes) for part in self.parts]).sum(axis=1)

    def _mended(self, rows: Codes, donors: Codes, *, cells: bool = True, partly: bool = False) -> Mask:
        # Single cells that mend all, or with ``partly`` those that mend some and leave some.
        aims, codes = self.aims, self._codes(rows)
        best = np.full(rows.size, np.inf)
        new = {c: own.copy() for c, own in codes.items()}
        broken = {part: part.broken(codes) for part in self.parts} if cells else {}
        for column in self.free if cells else ():
            closed = self._closed(codes, column, broken, partly)
            scores = aims.scores(column, rows)
            was = np.take_along_axis(scores, codes[column][:, None], 1)[:, 0]
            scores[closed] = np.inf
            cell = scores.argmin(axis=1)
            gain = np.take_along_axis(scores, cell[:, None], 1)[:, 0] - was
            gain += aims.worth(column)
            better = gain < best
            best[better] = gain[better]
            for c, own in codes.items():
                new[c][better] = own[better]
            new[column][better] = cell[better]
        if donors.size:
            self._offered(rows, donors, best, new, worth=True)
        found = np.isfinite(best)
        changed = tuple(c for c in self.free if (new[c] != codes[c]).any())
        if changed:
            aims.moved(changed, rows[found], {c: new[c][found] for c in changed}, None)
        return found

    def _offered(
        self,
        rows: Codes,
        donors: Codes,
        best: NDArray[np.float64],
        new: dict[str, Codes],
        *,
        worth: bool = False,
    ) -> None:
        aims, columns = self.aims, self.free
        tried = self.rng.choice(donors, (rows.size, _DONORS))
        codes = self._codes(rows)
        # Its own cells come first, so that all are scored at once.
        theirs = {c: np.column_stack([codes[c], aims.codes(c)[tried]]) for c in columns}
        scores = aims.standing(columns, rows, theirs)
        theirs, before, after = {c: own[:, 1:] for c, own in theirs.items()}, scores[:, 0], scores[:, 1:]
        if worth:
            for c in columns:
                after = after + np.where(theirs[c] != codes[c][:, None], aims.worth(c), 0.0)
        if columns != self.columns:
            whole = {c: np.broadcast_to(own[:, None], tried.shape) for c, own in codes.items()} | theirs
            broken = broken_in(self.parts, {c: own.reshape(-1) for c, own in whole.items()})
            after = np.where(broken.reshape(tried.shape), np.inf, after)
        which = after.argmin(axis=1)
        gain = after[np.arange(rows.size), which] - before
        better = gain < best
        best[better] = gain[better]
        for c in columns:
            new[c][better] = theirs[c][better, which[better]]

    def _refined(self, good: Codes) -> None:
        aims, columns = self.aims, self.free
        a_row = sum(
            (len(aims.aims[c]) - 1) * (int(aims.groups[c].max()) + 1) + len(aims.groups[c]) for c in columns
        )
        a_row += _DONORS * sum(len(aims.aims[c]) for c in columns)
        most = max(int(_WORK // a_row), _LEAST)
        if good.size > most:
            # Rows are alike by the thousands, so that some of them bring the counts near to the aims.
            good = good[self.rng.permutation(good.size)[:most]]
        laps = min(_LAPS, max(int(_WORK // (a_row * max(good.size, 1))), 1))
        loss = aims.loss
        falls = dict.fromkeys((*columns, _DONATED), np.inf)
        for lap in range(laps):
            tried = [
                c
                for c, fall in falls.items()
                if lap % _ANYWAY == 0 or fall * len(falls) > sum(falls.values())
            ]
            now = dict.fromkeys(tried, 0.0)
            for batch in _batches(self.rng.permutation(good), good.size):
                for column in tried:
                    moved = (
                        self._donor_moves(batch, good)
                        if column is _DONATED
                        else self._single_moves(batch, column)
                    )
                    now[column] += moved
            falls |= now
            loss -= sum(now.values())
            if lap % _ANYWAY == 0 and sum(now.values()) < _ENOUGH * loss:
                break

    def _single_moves(self, rows: Codes, column: str) -> float:
        aims, codes = self.aims, self._codes(rows)
        scores = aims.scores(column, rows)
        was = np.take_along_axis(scores, codes[column][:, None], 1)[:, 0]
        tables = [p for p in self.parts if column in p.columns and p.closed is not None]
        for part in tables:
            scores[part.broken(codes, column)] = np.inf
        cell = scores.argmin(axis=1)
        falls = was - np.take_along_axis(scores, cell[:, None], 1)[:, 0]
        movers = self._first(falls, (column,))
        rest = [p for p in self.parts if column in p.columns and p.closed is None]
        if rest and movers.size:
            tried = {c: own[movers] for c, own in codes.items()} | {column: cell[movers]}
            movers = movers[~broken_in(rest, tried)]
        return self._taken((column,), rows, {column: cell}, movers)

    def _donor_moves(self, rows: Codes, good: Codes) -> float:
        best = np.zeros(rows.size)
        new = self._codes(rows)
        self._offered(rows, good, best, new)
        return self._taken(self.free, rows, new, self._first(-best, self.free))

    def _first(self, falls: NDArray[np.float64], columns: Clique) -> Codes:
        """The third that lowers L most, of rows that lower it if each moves alone."""
        movers = np.flatnonzero(falls > _UNIT * self.aims.table(columns).weight)
        return movers[np.argsort(-falls[movers], kind="stable")[: -(-movers.size // 3)]]

    def _taken(self, columns: Clique, rows: Codes, new: Mapping[str, Codes], movers: Codes) -> float:
        if not movers.size:
            return 0.0
        return self.aims.moved(columns, rows[movers], {c: new[c][movers] for c in columns}, self.rng)

    def _codes(self, rows: Codes) -> dict[str, Codes]:
        return {c: self.aims.codes(c)[rows] for c in self.columns}

    def _closed(self, codes: dict[str, Codes], column: str, broken: dict[Part, Mask], partly: bool) -> Mask:
        """Cells of a column that mend no rule, or leave a broken one near, bool[rows, cells]."""
        worse, mends = np.zeros((2, len(codes[column]), len(self.aims.groups[column])), np.bool_)
        moved = {part: part.broken(codes, column) for part in self.parts if column in part.columns}
        after = {**broken, **moved}
        for part, now in moved.items():
            mended = broken[part] & ~now
            mends |= mended
            worse |= now & ~broken[part]
            if mended.any():
                for near in (p for p in self.parts if not set(p.columns).isdisjoint(part.columns)):
                    worse |= mended & after[near]
        closed = worse | ~mends
        return closed | ~reduce(np.logical_or, after.values()) if partly else closed


def _crossed(first: Codes, second: Codes, shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape)


def _batches(rows: Codes, whole: int) -> Iterator[Codes]:
    size = min(max(_LEAST, whole // _BATCHES), _MOST)
    return (rows[begin : begin + size] for begin in range(0, rows.size, size))


def _grouped(counts: NDArray[np.int64], cells: int, cell_of: Codes | None) -> tuple[Codes, NDArray[np.int64]]:
    """The group of each code, and for each group that of the table's cells; missing ones stay apart.

    Neighbouring cells of about as many rows each are a group, and inside of these neighbouring finer cells.
    """
    if cell_of is None:
        groups = _even(counts, cells)
        return groups, np.arange(int(groups[-1]) + 1)
    outer = _even(np.bincount(cell_of, weights=counts).astype(np.int64), int(cell_of[cells - 1]) + 1)
    pairs = np.stack([outer[cell_of], _even(counts, cells)])
    found, groups = np.unique(pairs, axis=1, return_inverse=True)
    return groups.reshape(-1), found[0]


def _even(counts: NDArray[np.int64], cells: int) -> Codes:
    """The group of each code: neighbouring cells of about as many rows each; missing ones stay apart."""
    if len(counts) <= _SMALL:
        return np.arange(len(counts))
    below = np.cumsum(counts[:cells]) - counts[:cells] / 2
    steps = np.floor(below * _COARSE / max(counts[:cells].sum(), 1)).astype(np.int64)
    _, groups = np.unique(np.minimum(steps, _COARSE - 1), return_inverse=True)
    return np.concatenate([groups, groups.max() + 1 + np.arange(len(counts) - cells)])


def _merged(column: Column, whole: NDArray[np.int64], many: int) -> Codes:
    """The place of each group at a level at which so many neighbouring groups of ordered cells are one.

    Args:
        whole: for each group that of the table's cells.
        many: the number of groups.
    """
    if not column.codec.ordered:
        return whole
    missing = column.size - len(column.codec.labels)
    cells = len(whole) - missing
    merged = whole[:cells] // many
    return np.concatenate([merged, merged[-1] + 1 + np.arange(missing)])


def _closed_pairs(obedience: Obedience, groups: Mapping[str, Codes]) -> dict[Clique, Mask]:
    """Pairs of columns with closed groups of cells, both ways round."""
    found: dict[Clique, Mask] = {}
    for part in obedience.parts:
        if part.closed is None:
            continue
        for first, second in combinations(part.columns, 2):
            axes = tuple(i for i, c in enumerate(part.columns) if c not in (first, second))
            merged = np.ones((int(groups[first].max()) + 1, int(groups[second].max()) + 1), dtype=np.bool_)
            places = groups[first][:, None], groups[second][None, :]
            np.logical_and.at(merged, places, part.closed.all(axis=axes))
            merged |= found.get((first, second), np.zeros_like(merged))
            found[first, second], found[second, first] = merged, merged.T
    return found


def _raked(table: NDArray[np.int64], closed: Mask) -> NDArray[np.float64]:
    """Counts without rows in closed cells, with the sums of a table as far as open cells can have them."""
    found = np.where(closed, 0.0, table + 1e-3)
    for _ in range(_RAKED):
        for axis in (0, 1):
            sums = found.sum(axis=axis, keepdims=True)
            found *= np.divide(
                table.sum(axis=axis, keepdims=True), sums, out=np.zeros_like(sums), where=sums > 0
            )
    return found


def _dependence(table: NDArray[np.int64]) -> float:
    """Total variation between a pair's counts and those of independent columns, in rows."""
    even = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
    return float(np.abs(table - even).sum()) / 2
