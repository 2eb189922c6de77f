"""Codec of dates, datetimes and times of day: the days, weeks, months, hours ... between two ends.

Invariant: a decoded moment lies in its unit and between the ends, at the resolution of the
format, and its text is read back into the same unit.

Parts of moments: the hour, weekday and month of a column of dates or datetimes, measured as columns.

A part is read from the same cell as the moment itself, so a row is in one cell of each part, and a part costs
what any other column costs. A part is a column of the model alone. In the synthetic table a moment is drawn
from those moments of its unit that have the parts of its row.

Invariant: a drawn moment has the parts of its row. A row gets other parts first where no moment has them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import INVALID, Codes, Intervals, Readings, clipped, drawn_between
from dpsynth.columns.column import Column
from dpsynth.columns.expression import Call, Expression, Kind, Reference
from dpsynth.columns.moment_formats import GRAINS, MomentFormat, MomentKind, Moments

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
"""Units of a cell, from coarse to fine; a week begins on Monday."""

_NUMPY = {"year": "Y", "quarter": "M", "month": "M", "week": "D", "day": "D", "hour": "h", "minute": "m"}

PARTS = ("month", "weekday", "hour")
"""Parts of moments that can be measured as columns of their own, and no unit holds two of them."""

FINER: Mapping[str, tuple[str, ...]] = {
    "month": ("year",),
    "weekday": ("year", "quarter", "month", "week"),
    "hour": ("year", "quarter", "month", "week", "day"),
}
"""For each part the units of which each holds all of its values, but for units that the ends cut short."""

STEPS = {"second": 1, "minute": 60, "5 minutes": 300, "10 minutes": 600, "15 minutes": 900,
         "30 minutes": 1800, "hour": 3600, "day": 86_400}  # fmt: skip
"""Steps of a clock, in seconds."""

_GRAINS_A_SECOND = {"s": Fraction(1), "us": Fraction(1_000_000), "m": Fraction(1, 60), "h": Fraction(1, 3600)}

# 1970-01-01 was a Thursday.
_TO_MONDAY = 3


def fine_enough(grain: str, unit: str) -> bool:
    """True if a format of a grain distinguishes units."""
    return GRAINS.index(grain) >= GRAINS.index(_NUMPY[unit])


def unit_number(moments: Moments, unit: str) -> NDArray[np.int64]:
    """The unit that holds each moment, counted from the one of 1970-01-01."""
    number = moments.astype(f"M8[{_NUMPY[unit]}]").astype(np.int64)
    if unit == "week":
        return (number + _TO_MONDAY) // 7
    return number // 3 if unit == "quarter" else number


def _unit_start(numbers: NDArray[np.int64], unit: str, grain: str) -> Moments:
    """The first moment of units."""
    if unit == "week":
        numbers = numbers * 7 - _TO_MONDAY
    elif unit == "quarter":
        numbers = numbers * 3
    return numbers.astype(f"M8[{_NUMPY[unit]}]").astype(f"M8[{grain}]")


@dataclass(frozen=True)
class CalendarCodec:
    """Units of the calendar or the clock, the first and the last one perhaps cut short.

    Moments before the first are taken as the first, and those after the last as the last. A
    moment decodes to a uniform draw from those of its unit that the format can write, at whole steps of the
    clock.

    Attributes:
        form: the format of the cells.
        unit: one of UNITS, no finer than the format's grain.
        first: the first moment, in grains since 1970-01-01.
        last: the last moment, in grains since 1970-01-01.
        parts: parts of the moments that are measured as columns of their own, of PARTS.
        step: the step of the clock, of STEPS; "": whatever the format can write.

    >>> days = MomentFormat("date", "%d/%m/%Y")
    >>> p = CalendarCodec(days, "month", first=0, last=40)
    >>> p.labels
    ('1970-01', '1970-02')
    >>> p.encode(pa.array(["31/01/1970", "01/02/1970", "05/08/2021", "29/02/1970"])).tolist()
    [0, 1, 1, -1]
    """

    form: MomentFormat
    unit: str
    first: int
    last: int
    parts: tuple[str, ...] = ()
    step: str = ""

    def __post_init__(self) -> None:
        """Reject ends out of order, and units that the format can't distinguish."""
        if self.first > self.last or not fine_enough(self.form.grain, self.unit):
            raise ValueError("the ends must not be out of order, nor the unit finer than the format")

    @property
    def _kind(self) -> MomentKind:
        return self.form.kind

    def _moments(self, grains: NDArray[np.int64]) -> Moments:
        return grains.astype(f"M8[{self.form.grain}]")

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """Numbers of the first and last unit."""
        first, last = unit_number(self._moments(np.array([self.first, self.last])), self.unit).tolist()
        return first, last

    @cached_property
    def _grid(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last grain of each unit, at whole steps where it has any."""
        first, last = self._ends
        starts = _unit_start(np.arange(first, last + 2), self.unit, self.form.grain).astype(np.int64)
        return self._stepped(np.maximum(starts[:-1], self.first), np.minimum(starts[1:] - 1, self.last))

    def _stepped(
        self, low: NDArray[np.int64], high: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Grains from one to another, cut to whole steps; as they are where no step lies between them."""
        first, last = -(-low // self._size) * self._size, high // self._size * self._size
        return np.where(first > last, low, first), np.where(first > last, high, last)

    @property
    def _size(self) -> int:
        """Grains of a step."""
        if not self.step:
            return 1
        return max(1, int(STEPS[self.step] * _GRAINS_A_SECOND[self.form.grain]))

    @property
    def ends(self) -> Moments:
        """The first and the last moment."""
        return self._moments(np.array([self.first, self.last]))

    @property
    def first_moments(self) -> Moments:
        """The first moment of each unit."""
        return self._moments(self._grid[0])

    @property
    def kind(self) -> Kind:
        """Dates, datetimes or times."""
        return Kind(self._kind)

    @property
    def arrow_type(self) -> pa.DataType:
        """date32; or timestamp or time of day in microseconds, which Parquet stores as they are."""
        return {"date": pa.date32(), "datetime": pa.timestamp("us"), "time": pa.time64("us")}[self._kind]

    @property
    def _stored(self) -> tuple[str, pa.DataType]:
        """The unit that values of the Arrow type count, and the type of the integers that count it."""
        return ("D", pa.int32()) if self._kind == "date" else ("us", pa.int64())

    @property
    def ordered(self) -> bool:
        """True."""
        return True

    @property
    def closed(self) -> bool:
        """False."""
        return False

    @property
    def catch_all(self) -> tuple[int, ...]:
        """The first and last unit, which take what lies beyond them; none of a whole day's."""
        return () if self._kind == "time" else (0, len(self.labels) - 1)

    @property
    def continuous(self) -> bool:
        """False."""
        return False

    @property
    def schema(self) -> dict[str, object]:
        """Unit, ends, format, and the step where there is one."""
        ends = [str(end) for end in self._moments(np.array([self.first, self.last]))]
        bounds = {} if self._kind == "time" else {"min": ends[0], "max": ends[1]}
        step = {"step": self.step} if self.step else {}
        return {"unit": self.unit, **bounds, "format": self.form.pattern, **step}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Units as ISO 8601 writes them: 2020, 2020-Q1, 2020-01, 2020-W05, 2020-01-31, 2020-01-31T13."""
        first, last = self._ends
        starts = _unit_start(np.arange(first, last + 1), self.unit, "s")
        return tuple(unit_label(start, self.unit, self._kind) for start in starts)

    @property
    def centres(self) -> None:
        """None: moments are no numbers."""
        return None

    @property
    def half_widths(self) -> None:
        """None: moments are no numbers."""
        return None

    @property
    def cell_values(self) -> Intervals:
        """From the first to the last moment of each unit, in microseconds since 1970-01-01 or midnight."""
        first, last = (self._moments(g).astype("M8[us]").astype(np.float64) for g in self._grid)
        grains = _GRAINS_A_SECOND.get(self.form.grain)
        # Months and years are as long as they are; rules move moments of these by days.
        spacing = 1e6 * float(self._size / grains) if grains else 1e6 * STEPS["day"]
        return Intervals(first, last, spacing)

    @property
    def steps(self) -> None:
        """None: moments are no numbers."""
        return None

    def encode(self, texts: pa.StringArray) -> Codes:
        """Unit of each moment; clipped to the first and last."""
        return self.codes_of(self.form.read(texts))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """Moments of the column's type."""
        moments = self.form.read(texts)
        return self.typed(moments, np.isnat(moments))

    def readings(self, texts: pa.StringArray) -> Readings:
        """Readings of moments by the first and the last."""
        moments = self.form.read(texts)
        grains = np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64))
        return clipped(grains, self.first, self.last)

    def codes_of(self, moments: Moments) -> Codes:
        """Unit of each moment, INVALID for NaT."""
        units = unit_number(self.within_ends(moments), self.unit)
        return np.where(np.isnat(moments), INVALID, units - self._ends[0])

    def within_ends(self, moments: Moments) -> Moments:
        """The moments, clipped to the first and last; the first for NaT."""
        first, last = self.ends
        return np.clip(np.where(np.isnat(moments), first, moments), first, last)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A uniform draw from the moments of each unit."""
        return self.typed(self.moments_of(codes, rng))

    def moments_of(self, codes: Codes, rng: np.random.Generator) -> Moments:
        """A uniform draw from the moments of each unit, before it has the type of the column."""
        return self._moments(self._drawn(*self._grid, codes, rng))

    def within_hours(
        self, begin: NDArray[np.int64], past: NDArray[np.int64], rng: np.random.Generator
    ) -> Moments:
        """A uniform draw from the moments of each span of hours, from one to before another.

        Args:
            begin: hours since 1970-01-01; the span and the ends have moments in common.
            past: hours since then, or days for a format without hours.
            rng: generator of post-processing.
        """
        low, high = (
            hours.astype("M8[h]").astype(f"M8[{self.form.grain}]").astype(np.int64) for hours in (begin, past)
        )
        low, high = np.maximum(low, self.first), np.minimum(high - 1, self.last)
        return self._moments(self._drawn(*self._stepped(low, high), np.arange(len(low)), rng))

    def _drawn(
        self, low: NDArray[np.int64], high: NDArray[np.int64], at: Codes, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """A grain for each place, from the lowest there to the highest, at whole steps where these are."""
        whole = (low % self._size == 0) & (high % self._size == 0)
        size = np.where(whole, self._size, 1)
        return drawn_between(low // size, high // size, at, rng) * size[at]

    def typed(self, moments: Moments, none: NDArray[np.bool_] | None = None) -> pa.Array:
        """Moments as values of the Arrow type, null where there is none."""
        unit, whole = self._stored
        counted = moments.astype(f"M8[{unit}]").astype(np.int64)
        return pc.cast(pa.array(counted, whole, mask=none), self.arrow_type)

    def text(self, values: pa.Array) -> pa.StringArray:
        """Moments in the format."""
        unit, whole = self._stored
        counted = np.asarray(pc.fill_null(pc.cast(values, whole), 0), dtype=np.int64)
        texts = self.form.write(counted.astype(f"M8[{unit}]"))
        return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))

    def with_density(self, counts: NDArray[np.float64], least: float) -> CalendarCodec:
        """The codec itself: moments of a unit are equally likely."""
        del counts, least
        return self


def unit_label(start: np.datetime64, unit: str, kind: MomentKind) -> str:
    """The name of the unit of a moment, as ISO 8601 writes it; of times of day the hour and minute."""
    text = str(start)
    if kind == "time":
        return f"{text[11:13]}:00 to {text[11:13]}:59" if unit == "hour" else text[11:16]
    if unit == "week":
        year, week, _ = start.astype("M8[D]").item().isocalendar()
        return f"{year}-W{week:02}"
    if unit == "quarter":
        return f"{text[:4]}-Q{(int(text[5:7]) + 2) // 3}"
    return text[: {"year": 4, "month": 7, "day": 10, "hour": 13, "minute": 16}[unit]]


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
class PartCodec:
    """A part of moments as whole numbers, one a cell: months 1 to 12, weekdays 1 to 7, hours 0 to 23.

    Texts are those of the moments, and 1 is Monday. A moment before the first or after the last is taken as
    that one.

    Attributes:
        of: the codec of the moments.
        part: a part of moments, of ``calendar_codec.PARTS``.
    """

    of: CalendarCodec
    part: str

    @property
    def _first(self) -> int:
        return _FIRST[self.part]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The numbers."""
        return tuple(str(self._first + code) for code in range(_MANY[self.part]))

    @property
    def kind(self) -> Kind:
        """Whole numbers."""
        return Kind("number")

    @property
    def arrow_type(self) -> pa.DataType:
        """int64."""
        return pa.int64()

    @property
    def ordered(self) -> bool:
        """True."""
        return True

    @property
    def closed(self) -> bool:
        """False: a cell of the table holds a moment."""
        return False

    @property
    def catch_all(self) -> tuple[int, ...]:
        """The parts of the first and the last moment, which take what lies beyond them."""
        first, last = part_number(self.of.ends, self.part).tolist()
        return tuple(sorted({first, last}))

    @property
    def continuous(self) -> bool:
        """False: no rule computes a part."""
        return False

    @property
    def schema(self) -> Mapping[str, object]:
        """The part; all else is of the moments."""
        return {"part": self.part}

    @property
    def cell_values(self) -> Intervals:
        """The numbers, one a cell."""
        return Intervals(self.centres, self.centres)

    @property
    def centres(self) -> NDArray[np.float64]:
        """The numbers."""
        return np.arange(_MANY[self.part], dtype=np.float64) + self._first

    @property
    def half_widths(self) -> NDArray[np.float64]:
        """Zeros: each cell has one value."""
        return np.zeros(_MANY[self.part])

    @property
    def steps(self) -> None:
        """None: sums of parts follow from their cells."""
        return None

    def encode(self, texts: pa.StringArray) -> Codes:
        """The part of each moment, INVALID for a text that is none."""
        moments = self.of.form.read(texts)
        return np.where(np.isnat(moments), INVALID, part_number(self.of.within_ends(moments), self.part))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """The part of each moment as it stands."""
        moments = self.of.form.read(texts)
        none = np.isnat(moments)
        known = np.where(none, self.of.ends[0], moments)
        return pa.array(part_number(known, self.part) + self._first, pa.int64(), mask=none)

    def readings(self, texts: pa.StringArray) -> Readings:
        """Readings of the moments."""
        return self.of.readings(texts)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """The number of each cell."""
        del rng
        return pa.array(codes + self._first, pa.int64())

    def text(self, values: pa.Array) -> pa.StringArray:
        """Numbers as texts."""
        return pc.cast(values, pa.string())

    def with_density(self, counts: NDArray[np.float64], least: float) -> PartCodec:
        """The codec itself: each cell has one value."""
        del counts, least
        return self


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


def invents_time_of_day(column: Column) -> bool:
    """True if all hours are equally likely in a column of moments, as none was measured."""
    codec = column.codec
    if not isinstance(codec, CalendarCodec) or codec.form.kind != "datetime" or codec.step == "day":
        return False
    measured = codec.unit in ("hour", "minute") or "hour" in codec.parts
    return fine_enough(codec.form.grain, "hour") and not measured


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
    """A column of moments with the columns of its parts.

    Attributes:
        column: the column of the moments.
        parts: the columns of its parts.
    """

    column: Column
    parts: tuple[Column, ...]

    @property
    def _codec(self) -> CalendarCodec:
        assert isinstance(self.column.codec, CalendarCodec)
        return self.column.codec

    @property
    def unit(self) -> str:
        """The unit of the column's own cells."""
        return self._codec.unit

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The column of each part."""
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
        """The group of days of each unit, weekday and month."""
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
            rng: generator of post-processing.
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
            rng: generator of post-processing.
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
