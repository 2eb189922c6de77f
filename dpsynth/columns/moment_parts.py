"""Parts of moments: the hour, weekday and month of a column of dates or datetimes, measured as columns.

A part is read from the same cell as the moment itself, so a row is in one cell of each part, and a part costs
what any other column costs. A part is a column of the model alone. In the synthetic table a moment is drawn
from those moments of its unit that have the parts of its row.

Invariant: a drawn moment has the parts of its row. A row gets other parts first where no moment has them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.calendar import CalendarCodec, unit_number
from dpsynth.columns.codec import INVALID, Codec, Codes, Intervals, Readings
from dpsynth.columns.column import Column
from dpsynth.columns.expression import Call, Expression, Kind, Reference
from dpsynth.columns.moment_formats import Moments

_FIRST = {"month": 1, "weekday": 1, "hour": 0}


_MANY = {"month": 12, "weekday": 7, "hour": 24}


def part_name(part: str, column: str) -> str:
    """Name of the column of a part, as formulas write it.

    >>> part_name("hour", "seen")
    'hour(seen)'
    """
    return f"{part}({column})"


def part_number(moments: Moments, part: str) -> NDArray[np.int64]:
    """The part of each moment, counted from 0: January, Monday or midnight."""
    if part == "month":
        return unit_number(moments, "month") % 12
    if part == "weekday":
        return (unit_number(moments, "day") + 3) % 7
    return unit_number(moments, "hour") % 24


@dataclass(frozen=True)
class PartCodec(Codec):
    """A part of moments as whole numbers, one a cell: months 1 to 12, weekdays 1 to 7, hours 0 to 23.

    Texts are those of the moments, and 1 is Monday. A moment before the first or after the last is taken as
    that one.

    Attributes:
        part: a part of moments, of ``calendar.PARTS``.
    """

    of: CalendarCodec
    part: str

    kind = Kind("number")
    arrow_type = pa.int64()
    ordered = True

    @property
    def _first(self) -> int:
        return _FIRST[self.part]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(str(self._first + code) for code in range(_MANY[self.part]))

    @property
    def catch_all(self) -> tuple[int, ...]:
        first, last = part_number(self.of.ends, self.part).tolist()
        return tuple(sorted({first, last}))

    @property
    def schema(self) -> Mapping[str, object]:
        return {"part": self.part}

    @property
    def cell_values(self) -> Intervals:
        return Intervals(self.centres, self.centres)

    @property
    def centres(self) -> NDArray[np.float64]:
        return np.arange(_MANY[self.part], dtype=np.float64) + self._first

    def encode(self, texts: pa.StringArray) -> Codes:
        moments = self.of.form.read(texts)
        return np.where(np.isnat(moments), INVALID, part_number(self.of.within_ends(moments), self.part))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        moments = self.of.form.read(texts)
        none = np.isnat(moments)
        known = np.where(none, self.of.ends[0], moments)
        return pa.array(part_number(known, self.part) + self._first, pa.int64(), mask=none)

    def readings(self, texts: pa.StringArray) -> Readings:
        return self.of.readings(texts)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        return pa.array(codes + self._first, pa.int64())


def measured_parts(column: Column) -> tuple[str, ...]:
    """The parts of a column of moments that are measured; () of any other column."""
    return column.codec.parts if isinstance(column.codec, CalendarCodec) else ()


def parts_of(column: Column) -> tuple[Column, ...]:
    """The columns of the parts of a column of moments; () of any other column."""
    if not isinstance(column.codec, CalendarCodec):
        return ()
    whole, fallback = replace(column.codec, parts=()), 0
    found = []
    for part in measured_parts(column):
        if not column.missing:
            fallback = int(part_number(whole.first_moments, part)[column.fallback])
        found.append(
            replace(
                column,
                name=part_name(part, column.name),
                codec=PartCodec(whole, part),
                fallback=fallback,
                part_of=column.name,
            )
        )
    return tuple(found)


def of_parts(formula: Expression, columns: Container[str]) -> Expression:
    """A formula in which the measured parts of moments stand as columns."""
    if not isinstance(formula, Call):
        return formula
    if len(formula.operands) == 1 and isinstance(formula.operands[0], Reference):
        name = part_name(formula.operation, formula.operands[0].column)
        if name in columns:
            return Reference(name)
    return replace(formula, operands=tuple(of_parts(operand, columns) for operand in formula.operands))


@dataclass(frozen=True, eq=False)
class Parted:
    """A column of moments with the columns of its parts."""

    column: Column
    parts: tuple[Column, ...]

    @property
    def _codec(self) -> CalendarCodec:
        assert isinstance(self.column.codec, CalendarCodec)
        return self.column.codec

    @property
    def unit(self) -> str:
        return self._codec.unit

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return dict(zip(self._codec.parts, (part.name for part in self.parts), strict=True))

    @cached_property
    def _units(self) -> int:
        return len(self._codec.labels)

    @cached_property
    def _days(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The days from the first to the last, by unit, weekday and month; and where each group begins."""
        first, last = self._codec.ends.astype("M8[D]")
        days = np.arange(first, last + np.timedelta64(1, "D"))
        units = unit_number(days, self._codec.unit)
        keys = self._keys(units - units[0], {part: part_number(days, part) for part in self._names})
        order = np.argsort(keys, kind="stable")
        groups = self._units * self._many("weekday") * self._many("month")
        return days.astype(np.int64)[order], np.searchsorted(keys[order], np.arange(groups + 1))

    def _many(self, part: str) -> int:
        return _MANY[part] if part in self._names else 1

    def _keys(self, units: Codes, parts: Mapping[str, Codes]) -> Codes:
        for part in ("weekday", "month"):
            if part in self._names:
                units = units * _MANY[part] + parts[part]
        return units

    def _groups(self, units: Codes, parts: Mapping[str, Codes]) -> tuple[Codes, Codes]:
        """The first and one past the last place, among the days, of those with a unit and all parts."""
        days, starts = self._days
        keys = self._keys(units, parts)
        first, past = starts[keys], starts[keys + 1]
        if "hour" in parts:
            # The first and the last day may be cut short.
            ends = self._codec.ends
            begin, finish = part_number(ends, "hour")
            day, final = ends.astype("M8[D]").astype(np.int64)
            some = past > first
            first = first + (some & (days[np.minimum(first, len(days) - 1)] == day) & (parts["hour"] < begin))
            past = past - (some & (days[past - 1] == final) & (parts["hour"] > finish))
        return first, np.maximum(past, first)

    def reconciled(self, codes: Mapping[str, Codes], rng: np.random.Generator) -> dict[str, Codes]:
        """The codes of the column and its parts, changed where no moment has them all.

        A part is missing where the moment is. A part that alone is missing is that of another row. Where no
        moment of the unit has the parts, as of the first week a Monday that lies before ``min``, the row
        moves to the next unit that has such a moment.

        Args:
            codes: the codes of each column, one a row.
        """
        units = codes[self.column.name].astype(np.int64)
        at = np.flatnonzero(units < self._units)
        parts = {part: codes[name].astype(np.int64) for part, name in self._names.items()}
        own = {part: self._present(part, some[at], rng) for part, some in parts.items()}
        moved = self._possible(units[at], own, rng)
        for part, some in parts.items():
            # Codes of missing cells stand in one order behind the values.
            some[:] = units - self._units + _MANY[part]
            some[at] = own[part]
        units[at] = moved
        return {self.column.name: units, **{self._names[part]: some for part, some in parts.items()}}

    @staticmethod
    def _present(part: str, some: Codes, rng: np.random.Generator) -> Codes:
        lacking = some >= _MANY[part]
        if lacking.any():
            donors = some[~lacking] if not lacking.all() else np.arange(_MANY[part])
            some[lacking] = donors[rng.integers(0, donors.size, int(lacking.sum()))]
        return some

    def _possible(self, units: Codes, parts: dict[str, Codes], rng: np.random.Generator) -> Codes:
        """Units in which there is a moment with the parts; where none is, the parts become those of one."""
        moved, middle = units.copy(), (self._units - 1) / 2
        for _ in range((self._units + 1) // 2):
            first, past = self._groups(moved, parts)
            none = past == first
            if not none.any():
                return moved
            # Only the ends of a calendar lack parts, so the next unit lies towards its middle.
            moved = moved + none * np.sign(middle - moved).astype(np.int64)
        first, past = self._groups(moved, parts)
        left = np.flatnonzero(past == first)
        if left.size:
            moved[left] = units[left]
            moments = self._codec.moments_of(units[left], rng)
            for part, some in parts.items():
                some[left] = part_number(moments, part)
        return moved

    def values(self, codes: Mapping[str, Codes], rng: np.random.Generator) -> pa.Array:
        """A moment for each row, of its unit and with its parts; null where it is missing.

        Args:
            codes: codes that ``reconciled`` made.
        """
        column, codec = self.column, self._codec
        units = codes[column.name]
        gone = units >= self._units
        at = np.flatnonzero(~gone)
        parts = {part: codes[name][at] for part, name in self._names.items()}
        first, past = self._groups(units[at], parts)
        days = self._days[0][first + (rng.random(at.size) * (past - first)).astype(np.int64)]
        hours = parts.get("hour")
        begin = days * 24 if hours is None else days * 24 + hours
        moments = np.full(len(units), codec.ends[0])
        moments[at] = codec.within_hours(begin, begin + (24 if hours is None else 1), rng)
        values = codec.typed(moments, gone)
        if column.markers_may_be_drawn:
            marks = pa.array([*column.markers, *column.distinct], pa.string())
            values = pc.if_else(pc.is_in(codec.text(values), marks), None, values)
        return values
