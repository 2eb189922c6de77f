"""Rows of units in order, and what holds from row to row of each.

A column that never changes has one cell and one value in all rows of a unit. The values of one that never
falls are put in order within the unit; as its cells are in order, no value leaves its cell for that.

Invariant: values change places within a unit, or are copies of one of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique


@dataclass(frozen=True, eq=False)
class UnitRows:
    """The units of some rows, of which those of a unit stand together and in order.

    Attributes:
        unit: int64[rows], which never falls.
        order: the column that rows are ordered by.
        constant: columns with one value in all rows of a unit.
        rising: columns that never fall.
        within: for columns of numbers, float64[cells], how rows move that stay in the cell of the row before:
            the share of the cell by which a rising column goes on; of another one, the share of rows that
            keep their value.
    """

    unit: Codes
    order: str
    constant: Clique
    rising: Clique
    within: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def steady(self) -> Clique:
        """The columns that never change or fall."""
        return (*self.constant, *self.rising)

    @property
    def kept(self) -> Clique:
        """The columns whose cells are one, or in order."""
        return (self.order, *self.steady)

    @cached_property
    def _first(self) -> Codes:
        """The place of the first row of each row's unit, int64[rows]."""
        first = np.flatnonzero(np.diff(self.unit, prepend=-1))
        return np.repeat(first, np.diff(first, append=self.unit.size))

    def cells(self, codes: Mapping[str, Codes], columns: Iterable[Column]) -> dict[str, Codes]:
        """Codes, int64[rows] of some columns, that never change or fall; missing cells stay missing."""
        found = dict(codes)
        for name in self.constant:
            found[name] = codes[name][self._first]
        for column in columns:
            if column.name in self.rising:
                own = codes[column.name].copy()
                rows = np.flatnonzero(own < len(column.codec.labels))
                own[rows] = own[rows[np.lexsort((own[rows], self.unit[rows]))]]
                found[column.name] = own
        return found

    def values(
        self, codes: Mapping[str, Codes], values: Mapping[str, pa.Array], rng: np.random.Generator
    ) -> dict[str, pa.Array]:
        """Values in these cells that follow the row before, and never change or fall where cells don't."""
        found = dict(values)
        for column, moves in self.within.items():
            cells = codes[column]
            if column in self.rising:
                rows = self._going_on(cells, _ranks(values[column], cells), moves, rng)
            else:
                rows = self._keeping(cells, moves, rng)
            found[column] = values[column].take(pa.array(rows))
        for column in self.kept:
            by_row = np.lexsort((codes[column], self.unit))
            if column in self.constant:
                order = by_row[_last(self._begins(codes[column][by_row]))]
            else:
                order = np.lexsort((_ranks(found[column], codes[column]), codes[column], self.unit))
            taken = np.empty_like(by_row)
            taken[by_row] = order
            found[column] = found[column].take(pa.array(taken))
        return found

    def _keeping(self, cells: Codes, shares: NDArray[np.float64], rng: np.random.Generator) -> Codes:
        """For each row itself, or the one before it in the same cell, by the share that keep their value."""
        chance = np.append(shares, 0.0)[np.minimum(cells, len(shares))]
        return _last(self._begins(cells) | (rng.random(cells.size) >= chance))

    def _going_on(
        self, cells: Codes, ranks: Codes, steps: NDArray[np.float64], rng: np.random.Generator
    ) -> Codes:
        """For each row one of its cell, so that a unit goes through the cell in equal steps.

        A unit that comes from a lower cell begins within the first step, and one that leaves for a higher one
        ends within the last.
        """
        begins = np.flatnonzero(self._begins(cells))
        lengths, cell = np.diff(begins, append=cells.size), cells[begins]
        step = np.append(steps, 0.0)[np.minimum(cell, len(steps))]
        order, held = np.lexsort((ranks, cells)), np.bincount(cells)
        start, place = np.cumsum(held) - held, np.empty(cells.size)
        place[order] = np.arange(cells.size) - start[cells[order]]
        goes = np.minimum((lengths - 1) * step, 1.0)
        room, at = 1 - goes, (place[begins] + rng.random(len(begins))) / held[cell]
        part = np.minimum(step, room)
        comes = (np.diff(self.unit[begins], prepend=-1) == 0) & (np.diff(cell, prepend=0) > 0)
        leaves = np.roll(comes, -1) & (np.roll(cell, -1) < len(steps))
        at = np.where(comes, at * part, np.where(leaves, room - (1 - at) * part, at * room))
        turn = np.arange(cells.size) - np.repeat(begins, lengths)
        at = np.repeat(at, lengths) + turn * np.repeat(goes / np.maximum(lengths - 1, 1), lengths)
        there = np.minimum((at * held[cells]).astype(np.int64), held[cells] - 1)
        return np.asarray(order[start[cells] + there], np.int64)

    def _begins(self, cells: Codes) -> NDArray[np.bool_]:
        """The rows whose cell is not that of the row before in their unit, bool[rows]."""
        return np.asarray((np.diff(self.unit, prepend=-1) != 0) | (np.diff(cells, prepend=-1) != 0))

    def replaced(
        self,
        codes: Mapping[str, Codes],
        values: Mapping[str, pa.Array],
        bad: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> Codes:
        """For each row itself, or where its unit has a bad row or step, one of a unit without, int64[rows].

        A unit is replaced by the first rows of another one with as many rows or more; it stays if there is
        none.
        """
        return self._in_place_of(bad | self.unsteady(codes, values), rng)

    def unsteady(self, codes: Mapping[str, Codes], values: Mapping[str, pa.Array]) -> NDArray[np.bool_]:
        """Rows whose value is not that of the unit's first, or falls below one before it, bool[rows]."""
        found = np.zeros(self.unit.size, np.bool_)
        for column in self.kept:
            ranks = _ranks(values[column], codes[column])
            if column in self.constant:
                found |= ranks != ranks[self._first]
            else:
                has = np.flatnonzero(np.asarray(values[column].is_valid()))
                falls = (np.diff(ranks[has]) < 0) & (np.diff(self.unit[has]) == 0)
                found[has[1:][falls]] = True
        return found

    def _in_place_of(self, bad: NDArray[np.bool_], rng: np.random.Generator) -> Codes:
        begins = np.flatnonzero(np.diff(self.unit, prepend=-1))
        lengths = np.diff(begins, append=self.unit.size)
        wrong = np.bincount(self.unit, bad, len(begins)) > 0
        donors = np.flatnonzero(~wrong)
        donors = donors[np.argsort(lengths[donors], kind="stable")]
        first = np.searchsorted(lengths[donors], lengths[wrong])
        able = first < donors.size
        to, first = np.flatnonzero(wrong)[able], first[able]
        by = donors[rng.integers(first, donors.size)] if to.size else to
        found = np.arange(self.unit.size)
        for there, here in zip(to, by, strict=True):
            found[begins[there] : begins[there] + lengths[there]] = begins[here] + np.arange(lengths[there])
        return found


def _last(true: NDArray[np.bool_]) -> Codes:
    """For each place itself if it is true, or the last one before it that is; the first one is."""
    return np.maximum.accumulate(np.where(true, np.arange(true.size), 0))


def _ranks(values: pa.Array, codes: Codes) -> Codes:
    """The place of each value in the order of its column, int64[rows]; of texts, that of their cells."""
    if pa.types.is_string(values.type) or pa.types.is_dictionary(values.type):
        return codes
    return np.asarray(pc.rank(values, sort_keys="ascending", tiebreaker="dense"), np.int64)
