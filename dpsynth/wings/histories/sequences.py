"""Rows of units in order, and what holds from row to row of each.

A column that never changes has one cell and one value in all rows of a unit. The values of one that never
falls are put in order within the unit; as its cells are in order, no value leaves its cell for that.

Invariant: values change places within a unit, or are copies of one of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    """

    unit: Codes
    order: str
    constant: Clique
    rising: Clique

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

    def values(self, codes: Mapping[str, Codes], values: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Values in these cells that never change or fall, as far as their cells don't."""
        found = dict(values)
        for column in self.kept:
            by_row = np.lexsort((codes[column], self.unit))
            if column in self.constant:
                unit, cell = self.unit[by_row], codes[column][by_row]
                new = (np.diff(unit, prepend=-1) != 0) | (np.diff(cell, prepend=-1) != 0)
                order = by_row[np.maximum.accumulate(np.where(new, np.arange(unit.size), 0))]
            else:
                order = np.lexsort((_ranks(values[column], codes[column]), codes[column], self.unit))
            taken = np.empty_like(by_row)
            taken[by_row] = order
            found[column] = values[column].take(pa.array(taken))
        return found

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


def _ranks(values: pa.Array, codes: Codes) -> Codes:
    """The place of each value in the order of its column, int64[rows]; of texts, that of their cells."""
    if pa.types.is_string(values.type) or pa.types.is_dictionary(values.type):
        return codes
    return np.asarray(pc.rank(values, sort_keys="ascending", tiebreaker="dense"), np.int64)
