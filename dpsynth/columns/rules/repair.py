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
from functools import cached_property
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
    rng: np.random.Generator,
    measured: Collection[frozenset[str]] = (),
    cell_of: Mapping[str, Codes] = MappingProxyType({}),
) -> tuple[dict[str, Codes], tuple[int, ...]]:
    """Rows in open combinations of cells, as far as any were found; for each rule the rows that broke it.

    Rules that share columns are repaired together, and no row leaves them again.

    Args:
        codes: integers[rows] of every modelled column.
        measured: pairs of columns that were measured.
        cell_of: for columns of which the codes are finer than the table's, the table's code of each.
    """
    drawn = {c.name: codes[c.name].astype(np.int64, copy=False) for c in obedience.layout.columns}
    rows = len(next(iter(drawn.values())))
    broken = [0] * len(obedience.rules.written)
    waiting: list[tuple[tuple[Part, ...], Mask]] = []
    for parts in obedience.components:
        those = np.zeros(rows, dtype=np.bool_)
        for number in {part.number for part in parts}:
            own = broken_in([part for part in parts if part.number == number], drawn)
            those |= own
            if number >= 0:
                broken[number] += int(own.sum())
        if those.any():
            waiting.append((parts, those))
    if not waiting:
        return drawn, tuple(broken)
    moving = list(dict.fromkeys(c for parts, _ in waiting for c in columns_of(parts)))
    aims = _Aims.of(obedience, drawn, moving, measured, cell_of)
    for parts, those in waiting:
        _Repair(aims, parts, rng).run(np.flatnonzero(those))
    return drawn | {c: aims.codes[c] for c in moving}, tuple(broken)


@dataclass(frozen=True, eq=False)
class _Aims:
    """A table of codes, and how far it is from its aims.

    A pair has aims at several levels, over its cells and over larger ones that neighbouring cells make up. A
    column and the measured pairs thus keep their counts as far as rows that obey can have them; of a pair
    that nobody measured the draw knows little, so it counts little.

    The residuals of all aims lie one after another: of pairs over groups of cells at each level, of columns
    over all cells.

    Attributes:
        codes: int64[rows] of each moving column, which change.
        coarse: the same of all columns by group of cells, which change.
        groups: the group of each cell, by column.
        pairs: for each moving column its pairs.
        singles: for each moving column the aims of its own counts: of the table's cells, and of finer ones.
        sizes: number of groups of each column.
        labels: number of cells of each moving column that are not missing.
        residuals: float64, weight x (rows - aim) in parts of a row.
        weights: weight by place of the first residual.
    """

    codes: dict[str, Codes]
    coarse: dict[str, Codes]
    groups: Mapping[str, Codes]
    pairs: Mapping[str, Sequence[_Pair]]
    singles: Mapping[str, Sequence[_Single]]
    sizes: Mapping[str, int]
    labels: Mapping[str, int]
    residuals: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        obedience: Obedience,
        drawn: Mapping[str, Codes],
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
        coarse = {c: groups[c][drawn[c]] for c in columns}
        levels = [(own, {c: _merged(columns[c], whole[c], many) for c in columns}) for many, own in _LEVELS]
        inner = (_INSIDE_PAIR, {c: np.arange(size) for c, size in sizes.items()})
        inside = [set(columns_of(parts)) for parts in obedience.components]
        closed = _closed_pairs(obedience, groups)
        listed: dict[frozenset[str], _Pair] = {}
        tables: list[NDArray[np.float64]] = []
        begin = 0
        of: dict[str, list[_Pair]] = {c: [] for c in moving}
        for a in moving:
            scored: list[tuple[bool, float, str, NDArray[np.int64]]] = []
            for b in columns:
                known = frozenset((a, b)) in measured
                if a == b or (not known and any(a in some and b in some for some in inside)):
                    continue
                flat = np.bincount(coarse[a] * sizes[b] + coarse[b], minlength=sizes[a] * sizes[b])
                table = flat.reshape(sizes[a], sizes[b])
                scored.append((known, _dependence(table), b, table))
            for known, dependence, b, table in sorted(scored, key=lambda s: (s[0], s[1]), reverse=True)[
                :_MOST_PARTNERS
            ]:
                key = frozenset((a, b))
                if key not in listed:
                    aim = _raked(table, closed[a, b]) if (a, b) in closed else table
                    together = any(a in some and b in some for some in inside)
                    weight = _OTHER if not known else _TOGETHER if together else _MEASURED
                    off = _UNIT * table - np.rint(_UNIT * aim)
                    parts: list[_Level] = []
                    for own, at in (inner, *levels) if a in cell_of and b in cell_of else levels:
                        if (
                            parts
                            and np.array_equal(at[a], parts[-1].first)
                            and np.array_equal(at[b], parts[-1].second)
                        ):
                            continue
                        parts.append(_Level(begin, weight * own, at[a], at[b]))
                        merged = np.zeros(parts[-1].shape)
                        np.add.at(merged, np.ix_(at[a], at[b]), off)
                        tables.append(parts[-1].weight * merged.reshape(-1))
                        begin += merged.size
                    listed[key] = _Pair(a, b, tuple(parts), weight, dependence)
                    of[a].append(listed[key])
                    if b in of:
                        of[b].append(listed[key])
        singles: dict[str, list[_Single]] = {c: [] for c in moving}
        for c in moving:
            weight = max(round(_SINGLE * sum(p.weight for p in of[c])), 1)
            found = [(np.arange(columns[c].size), weight)]
            if c in cell_of:
                found = [(found[0][0], max(round(_INSIDE_CELL * weight), 1)), (cell_of[c], weight)]
            for cells, own in found:
                singles[c].append(_Single(begin, own, cells))
                begin += int(cells.max()) + 1
                tables.append(np.zeros(int(cells.max()) + 1))
        codes = {c: drawn[c].copy() for c in moving}
        labels = {c: len(columns[c].codec.labels) for c in moving}
        return cls(codes, coarse, groups, of, singles, sizes, labels, np.concatenate(tables))

    def scores(self, column: str, rows: Codes) -> NDArray[np.float64]:
        """The residuals that each cell of a column has for some rows, float64[rows, cells]."""
        found = np.zeros((rows.size, self.sizes[column]))
        for pair in self.pairs[column]:
            other = pair.other(column)
            table = pair.together(self.residuals)
            lines = table.T if column == pair.first else table
            found += lines[self.coarse[other][rows]]
        own = self._own(column)
        scores = np.asarray(found[:, self.groups[column]] + own)
        # No row becomes missing to obey a rule, but in place of another one.
        more = np.flatnonzero(own[self.labels[column] :] >= 0) + self.labels[column]
        scores[:, more] += np.where(self.codes[column][rows][:, None] == more, 0.0, _AVOIDED)
        return scores

    def worth(self, column: str) -> float:
        """Score of a change of a column: the more rows depend on it, the sooner another one is changed."""
        return float(round(_UNIT * _WORTH * sum(p.weight * p.dependence for p in self.pairs[column])))

    def standing(self, columns: Clique, rows: Codes, codes: Mapping[str, Codes]) -> NDArray[np.float64]:
        """The residuals of rows that have some codes in some columns, together, float64[*shape of codes].

        Args:
            rows: int64[rows], places of the rows.
            codes: for each of the columns, int64[rows] or int64[rows, tries].
        """
        found = np.zeros(np.broadcast_shapes(*(codes[c].shape for c in columns)))
        for pair, groups in self._groups_of(columns, rows, codes):
            found += pair.together(self.residuals).reshape(-1).take(groups)
        for c in columns:
            found += self._own(c).take(codes[c])
        return found

    def _groups_of(
        self, columns: Clique, rows: Codes, codes: Mapping[str, Codes]
    ) -> Iterator[tuple[_Pair, NDArray[np.int64]]]:
        shape = np.broadcast_shapes(*(codes[c].shape for c in columns))
        wide = (slice(None),) + (None,) * (len(shape) - 1)
        coarse = {c: self.groups[c][codes[c]] for c in columns}
        for pair in dict.fromkeys(p for c in columns for p in self.pairs[c]):
            first, second = (
                coarse[c] if c in coarse else self.coarse[c][rows][wide] for c in (pair.first, pair.second)
            )
            yield pair, first * self.sizes[pair.second] + second

    def _own(self, column: str) -> NDArray[np.float64]:
        own = np.zeros(len(self.groups[column]))
        for single in self.singles[column]:
            own += self.residuals[single.begin + single.cells]
        return own

    def weight(self, columns: Clique) -> float:
        pairs = dict.fromkeys(p for c in columns for p in self.pairs[c])
        singles = (single.weight for c in columns for single in self.singles[c])
        return float(sum(level.weight for p in pairs for level in p.levels) + sum(singles))

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
        changes = self._changes(columns, rows, new)
        fall = -sum(float((c.rows * c.of(self.residuals)).sum()) for c in changes)
        alone = 2.0 * sum(float(c.weight * c.movers) for c in changes)
        together = sum(float(c.weight * np.square(c.rows).sum()) for c in changes)
        slope, curve = 2.0 * fall / _UNIT - alone, 2.0 * (together - alone)
        lowered = slope - curve / 2
        if rng is not None and slope < curve:
            best = max(slope / curve, 0.0) if curve > 0 else 0.0
            go = np.flatnonzero(rng.random(rows.size) < best)
            rows, new = rows[go], {c: new[c][go] for c in columns}
            changes = self._changes(columns, rows, new)
            lowered = best * slope / 2
        for change in changes:
            change.of(self.residuals)[:] += _UNIT * change.weight * change.rows
        for c in columns:
            self.codes[c][rows] = new[c]
            self.coarse[c][rows] = self.groups[c][new[c]]
        return lowered

    def _changes(self, columns: Clique, rows: Codes, new: Mapping[str, Codes]) -> list[_Change]:
        old = {c: self.codes[c][rows] for c in columns}
        found: list[_Change] = []
        both = zip(self._groups_of(columns, rows, old), self._groups_of(columns, rows, new), strict=True)
        for (pair, before), (_, after) in both:
            moves = before != after
            left, entered = before[moves], after[moves]
            found += [level.change(left, entered) for level in pair.levels]
        for c in columns:
            moves = old[c] != new[c]
            left, entered = old[c][moves], new[c][moves]
            found += [single.change(left, entered) for single in self.singles[c]]
        return found

    @property
    def loss(self) -> float:
        found = 0.0
        for pair in dict.fromkeys(p for pairs in self.pairs.values() for p in pairs):
            for level in pair.levels:
                found += float(np.square(level.residuals(self.residuals)).sum()) / level.weight
        for single in (single for some in self.singles.values() for single in some):
            own = self.residuals[single.begin : single.begin + int(single.cells.max()) + 1]
            found += float(np.square(own).sum()) / single.weight
        return found / _UNIT**2


@dataclass(frozen=True, eq=False)
class _Change:
    """The change of an aim's counts.

    Attributes:
        begin: place of its first residual.
        rows: float64[cells], rows that enter less rows that leave.
        movers: number of rows that change cells.
    """

    begin: int
    weight: int
    rows: NDArray[np.float64]
    movers: int

    @classmethod
    def of_moves(cls, begin: int, weight: int, cells: Codes, left: Codes, entered: Codes) -> _Change:
        size = int(cells[-1]) + 1
        was, now = cells[left], cells[entered]
        counts = np.bincount(now, minlength=size) - np.bincount(was, minlength=size)
        return cls(begin, weight, counts.astype(np.float64), int(np.count_nonzero(was != now)))

    def of(self, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
        return residuals[self.begin : self.begin + self.rows.size]


@dataclass(frozen=True, eq=False)
class _Level:
    """An aim over two columns at one level: its place among the residuals, its weight, and its cells.

    Attributes:
        first, second: the place of each group along each axis.
    """

    begin: int
    weight: int
    first: Codes
    second: Codes

    @cached_property
    def shape(self) -> tuple[int, int]:
        return int(self.first[-1]) + 1, int(self.second[-1]) + 1

    @cached_property
    def _place(self) -> NDArray[np.int64]:
        """The flat index of its cell for each combination of groups."""
        return np.asarray(self.first[:, None] * self.shape[1] + self.second).reshape(-1)

    def change(self, left: Codes, entered: Codes) -> _Change:
        return _Change.of_moves(self.begin, self.weight, self._place, left, entered)

    def by_group(self, every: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.residuals(every).reshape(-1).take(self._place)

    def residuals(self, every: NDArray[np.float64]) -> NDArray[np.float64]:
        shape = self.shape
        return every[self.begin : self.begin + shape[0] * shape[1]].reshape(shape)


@dataclass(frozen=True, eq=False)
class _Pair:
    """An aim over two columns: its levels, the finest first, its weight, and the rows that depend on it."""

    first: str
    second: str
    levels: tuple[_Level, ...]
    weight: int
    dependence: float

    def other(self, column: str) -> str:
        return self.second if column == self.first else self.first

    def together(self, every: NDArray[np.float64]) -> NDArray[np.float64]:
        """The residuals of all levels by group, axes as the columns."""
        shape = len(self.levels[0].first), len(self.levels[0].second)
        return np.asarray(sum(level.by_group(every) for level in self.levels)).reshape(shape)


@dataclass(frozen=True, eq=False)
class _Single:
    """An aim over one column: its place among the residuals, its weight, and the cell of each code."""

    begin: int
    weight: int
    cells: Codes

    def change(self, left: Codes, entered: Codes) -> _Change:
        return _Change.of_moves(self.begin, self.weight, self.cells, left, entered)


@dataclass(frozen=True, eq=False)
class _Repair:
    aims: _Aims
    parts: Sequence[Part]
    rng: np.random.Generator

    @property
    def columns(self) -> Clique:
        return columns_of(self.parts)

    def run(self, broken: Codes) -> None:
        rows = len(next(iter(self.aims.codes.values())))
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
            if not left.size:
                break
        good = np.flatnonzero(obeys)
        self._refined(good)

    def _forced(self, rows: Codes, donors: Codes, *, cells: bool = True) -> Mask:
        """Rows that obey after each took the best cells found: donors', and with ``cells`` single ones."""
        aims, codes = self.aims, self._codes(rows)
        best = np.full(rows.size, np.inf)
        new = {c: own.copy() for c, own in codes.items()}
        for column in self.columns if cells else ():
            closed = self._closed(codes, column)
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
        some = rows[found]
        changed = tuple(c for c in self.columns if (new[c] != codes[c]).any())
        if changed:
            aims.moved(changed, some, {c: new[c][found] for c in changed}, None)
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
        aims, columns = self.aims, self.columns
        tried = self.rng.choice(donors, (rows.size, _DONORS))
        theirs = {c: aims.codes[c][tried] for c in columns}
        before = aims.standing(columns, rows, self._codes(rows))
        after = aims.standing(columns, rows, theirs)
        if worth:
            codes = self._codes(rows)
            for c in columns:
                after = after + np.where(theirs[c] != codes[c][:, None], aims.worth(c), 0.0)
        which = after.argmin(axis=1)
        gain = after[np.arange(rows.size), which] - before
        better = gain < best
        best[better] = gain[better]
        for c in columns:
            new[c][better] = theirs[c][better, which[better]]

    def _refined(self, good: Codes) -> None:
        aims, columns = self.aims, self.columns
        a_row = sum(len(aims.pairs[c]) * aims.sizes[c] + len(aims.groups[c]) for c in columns)
        a_row += _DONORS * sum(len(aims.pairs[c]) + 1 for c in columns)
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
        return self._taken(self.columns, rows, new, self._first(-best, self.columns))

    def _first(self, falls: NDArray[np.float64], columns: Clique) -> Codes:
        """The third that lowers L most, of rows that lower it if each moves alone."""
        movers = np.flatnonzero(falls > _UNIT * self.aims.weight(columns))
        return movers[np.argsort(-falls[movers], kind="stable")[: -(-movers.size // 3)]]

    def _taken(self, columns: Clique, rows: Codes, new: Mapping[str, Codes], movers: Codes) -> float:
        if not movers.size:
            return 0.0
        return self.aims.moved(columns, rows[movers], {c: new[c][movers] for c in columns}, self.rng)

    def _codes(self, rows: Codes) -> dict[str, Codes]:
        return {c: self.aims.codes[c][rows] for c in self.columns}

    def _closed(self, codes: Mapping[str, Codes], column: str) -> Mask:
        """Cells of a column that don't mend a row, bool[rows, cells]."""
        found: Mask | None = None
        for part in self.parts:
            own = part.broken(codes, column if column in part.columns else None)
            found = own if found is None else found | own
        assert found is not None
        rows = len(codes[column])
        return np.broadcast_to(found, (rows, len(self.aims.groups[column])))


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
