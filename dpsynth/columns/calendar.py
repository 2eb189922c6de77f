"""Columns of dates, datetimes and times of day: the days, weeks, months, hours ... between two ends.

Invariant: the units follow from the declaration alone, and the format distinguishes them. A decoded moment
lies in its unit and between the ends, at the resolution of the format, and its text is read back into the
same unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from dpsynth.columns.codec import INVALID, Codec, Codes, Intervals, Readings, clipped, drawn_between
from dpsynth.columns.column import Column
from dpsynth.columns.declaration import (
    MAX_DOMAIN_SIZE,
    ONE_A_VALUE,
    Declared,
    Expected,
    Missing,
    Modelled,
    check_default,
)
from dpsynth.columns.expression import Kind
from dpsynth.columns.moment_formats import GRAINS, ISO, MomentFormat, MomentKind, Moments
from dpsynth.columns.section import Checked, Choice, JsonSchema, Text, one_of, refused

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
    if unit == "week":
        numbers = numbers * 7 - _TO_MONDAY
    elif unit == "quarter":
        numbers = numbers * 3
    return numbers.astype(f"M8[{_NUMPY[unit]}]").astype(f"M8[{grain}]")


@dataclass(frozen=True)
class CalendarCodec(Codec):
    """Units of the calendar or the clock, the first and the last one perhaps cut short.

    Moments before the first are taken as the first, and those after the last as the last. A
    moment decodes to a uniform draw from those of its unit that the format can write, at whole steps of the
    clock.

    Attributes:
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

    ordered = True

    def __post_init__(self) -> None:
        if self.first > self.last or not fine_enough(self.form.grain, self.unit):
            raise ValueError("the ends must not be out of order, nor the unit finer than the format")

    @property
    def _kind(self) -> MomentKind:
        return self.form.kind

    def _moments(self, grains: NDArray[np.int64]) -> Moments:
        return grains.astype(f"M8[{self.form.grain}]")

    @cached_property
    def _ends(self) -> tuple[int, int]:
        first, last = unit_number(self.ends, self.unit).tolist()
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
        if not self.step:
            return 1
        return max(1, int(STEPS[self.step] * _GRAINS_A_SECOND[self.form.grain]))

    @property
    def ends(self) -> Moments:
        return self._moments(np.array([self.first, self.last]))

    @property
    def first_moments(self) -> Moments:
        return self._moments(self._grid[0])

    @property
    def kind(self) -> Kind:
        return Kind(self._kind)

    @property
    def arrow_type(self) -> pa.DataType:
        """date32; or timestamp or time of day in microseconds, which Parquet stores as they are."""
        return {"date": pa.date32(), "datetime": pa.timestamp("us"), "time": pa.time64("us")}[self._kind]

    @property
    def _stored(self) -> tuple[str, pa.DataType]:
        return ("D", pa.int32()) if self._kind == "date" else ("us", pa.int64())

    @property
    def catch_all(self) -> tuple[int, ...]:
        """The first and last unit, which take what lies beyond them; none of a whole day's."""
        return () if self._kind == "time" else super().catch_all

    @property
    def schema(self) -> dict[str, object]:
        ends = [str(end) for end in self.ends]
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
    def cell_values(self) -> Intervals:
        """From the first to the last moment of each unit, in microseconds since 1970-01-01 or midnight."""
        first, last = (self._moments(g).astype("M8[us]").astype(np.float64) for g in self._grid)
        grains = _GRAINS_A_SECOND.get(self.form.grain)
        # Months and years are as long as they are; rules move moments of these by days.
        spacing = 1e6 * float(self._size / grains) if grains else 1e6 * STEPS["day"]
        return Intervals(first, last, spacing)

    def encode(self, texts: pa.StringArray) -> Codes:
        return self.codes_of(self.form.read(texts))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        moments = self.form.read(texts)
        return self.typed(moments, np.isnat(moments))

    def readings(self, texts: pa.StringArray) -> Readings:
        moments = self.form.read(texts)
        grains = np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64))
        return clipped(grains, self.first, self.last)

    def codes_of(self, moments: Moments) -> Codes:
        units = unit_number(self.within_ends(moments), self.unit)
        return np.where(np.isnat(moments), INVALID, units - self._ends[0])

    def within_ends(self, moments: Moments) -> Moments:
        first, last = self.ends
        return np.clip(np.where(np.isnat(moments), first, moments), first, last)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
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
        unit, whole = self._stored
        counted = moments.astype(f"M8[{unit}]").astype(np.int64)
        return pc.cast(pa.array(counted, whole, mask=none), self.arrow_type)

    def text(self, values: pa.Array) -> pa.StringArray:
        unit, whole = self._stored
        counted = np.asarray(pc.fill_null(pc.cast(values, whole), 0), dtype=np.int64)
        texts = self.form.write(counted.astype(f"M8[{unit}]"))
        return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


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


def invents_time_of_day(column: Column) -> bool:
    """True if all hours are equally likely in a column of moments, as none was measured."""
    codec = column.codec
    if not isinstance(codec, CalendarCodec) or codec.form.kind != "datetime" or codec.step == "day":
        return False
    measured = codec.unit in ("hour", "minute") or "hour" in codec.parts
    return fine_enough(codec.form.grain, "hour") and not measured


_FORMAT_HELP = "How cells are written, in strptime's codes such as %d/%m/%Y. Left out: ISO 8601, {iso}."

_LONGEST_FORMAT = 60

_CLOCK = r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?"

_SHAPES: dict[MomentKind, str] = {
    "date": r"\d{4}-\d\d-\d\d([T ]00:00:00)?",
    "datetime": rf"\d{{4}}-\d\d-\d\d([T ]{_CLOCK})?",
    "time": _CLOCK,
}

_EXAMPLES = {"date": "2020-01-31", "datetime": "2020-01-31T13:45:00", "time": "13:45:00"}


@dataclass(frozen=True)
class Moment(Checked):
    """A date, datetime or time of day in ISO 8601, kept as text."""

    kind: MomentKind

    def check(self, value: object) -> str:
        words = f"must be a {self.kind} written as {_EXAMPLES[self.kind]}"
        if isinstance(value, date | datetime | time):
            value = value.isoformat()
        if not isinstance(value, str) or not re.fullmatch(_SHAPES[self.kind], value, re.ASCII):
            raise refused(words)
        try:
            moment = _read(self.kind, value)
        except ValueError:
            raise refused(words) from None
        if moment < np.datetime64("0001-01-01"):
            raise refused(words)
        # A program's date is often the moment at which the day begins.
        return value[:10] if self.kind == "date" else value

    def json_schema(self) -> JsonSchema:
        return {"type": "string", **({"format": "date"} if self.kind == "date" else {})}


def _read(kind: MomentKind, text: str) -> np.datetime64:
    return np.datetime64(f"1970-01-01T{text}" if kind == "time" else text, "us")


def _form(kind: MomentKind, pattern: str | None) -> MomentFormat:
    if pattern is not None and pattern != pattern.strip():
        raise refused("must not begin or end in a blank; cells are read without", "format")
    try:
        return MomentFormat(kind, pattern or ISO[kind])
    except ValueError as error:
        raise refused(str(error), "format") from None


def _grains(form: MomentFormat, moment: np.datetime64) -> int:
    return int(moment.astype(f"M8[{form.grain}]").astype(np.int64))


def _short_years_suffice(form: MomentFormat, first: np.datetime64, last: np.datetime64) -> None:
    if "%y" in form.pattern:
        for key, end in (("min", first), ("max", last)):
            if not 1969 <= end.astype("M8[Y]").astype(int) + 1970 <= 2068:
                raise refused("must lie in 1969 to 2068, the years that %y stands for", key)


def _unit(form: MomentFormat, asked: _Asked, first: int, last: int, choices: tuple[str, ...]) -> str:
    """The declared unit; otherwise the finest with few enough cells, or the coarsest."""
    unit = asked.unit
    ends: Moments = np.array([first, last]).astype(f"M8[{form.grain}]")

    def cells(of: str) -> int:
        low, high = unit_number(ends, of).tolist()
        return int(high - low + 1)

    able = [u for u in choices if fine_enough(form.grain, u) and _holds_step(u, asked.step)]
    if unit in able:
        _parts_suit(asked.parts, unit)
    able = [u for u in able if all(u in FINER[part] for part in asked.parts)]
    if unit is None:
        return next((u for u in reversed(able) if cells(u) <= ONE_A_VALUE), able[0])
    if unit not in able:
        finer = f"the format {form.pattern}" if not fine_enough(form.grain, unit) else f"step, {asked.step}"
        raise refused(f"is finer than {finer}; use {one_of(tuple(able))}", "unit")
    if cells(unit) > MAX_DOMAIN_SIZE:
        words = f"makes {cells(unit):,} cells, more than {MAX_DOMAIN_SIZE:,}; use a coarser unit"
        raise refused(words, "unit")
    return unit


@dataclass(frozen=True)
class _Asked:
    """Facts of a declaration about cells: their unit, the parts of moments, and the step of the clock."""

    unit: str | None
    parts: tuple[str, ...] = ()
    step: str | None = None


def _holds_step(unit: str, step: str | None) -> bool:
    return step is None or STEPS[step] <= {"hour": 3600, "minute": 60}.get(unit, 86_400)


def _parts_suit(parts: tuple[str, ...], unit: str) -> None:
    for part in parts:
        if unit not in FINER[part]:
            across = part == "month" and unit == "week"
            why = "cuts across weeks" if across else f"follows from a {unit}, or nearly"
            raise refused(
                f"must not have {part}, which {why}; leave it out, or use unit: {one_of(FINER[part])}",
                "parts",
            )


def _parts(form: MomentFormat, parts: list[str], step: str | None) -> tuple[str, ...]:
    if len(set(parts)) < len(parts):
        raise refused("must name each part once", "parts")
    for part in parts:
        unit = "hour" if part == "hour" else "day"
        if not fine_enough(form.grain, unit):
            raise refused(f"must not have {part}: the format {form.pattern} writes no {unit}s", "parts")
        if part == "hour" and step == "day":
            raise refused("must not have hour: with step: day all moments lie at midnight", "parts")
    return tuple(part for part in PARTS if part in parts)


_DATE_UNITS = ("year", "quarter", "month", "week", "day")

_TIME_UNITS = ("hour", "minute")

_DATE_PARTS = ("month", "weekday")

_PARTS_HELP = (
    "Parts that are measured as columns of their own, such as hour(seen). Month needs unit: year, weekday a "
    "unit of a week or more, hour one of a day or more. Left out: none, so that {unsaid}."
)

_STEP_HELP = "Step of the clock at which all moments lie. Left out: the finest that the format can write."

_UNIT_HELP = (
    f"What counts as one value. Left out: the finest unit of at most {ONE_A_VALUE} values. A week begins on "
    "Monday."
)


class _MomentColumn(Modelled):
    if TYPE_CHECKING:
        type: MomentKind
        format: str | None
        default: str | None

        def codec(self) -> CalendarCodec: ...

    def model_post_init(self, context: object, /) -> None:
        if isinstance(self, DateColumn | DatetimeColumn):
            _check_ends(self.type, self.min, self.max, self.default)
        check_default(self.missing, self.default)
        self.codec()

    def _between(
        self, low: str | None, high: str | None, asked: _Asked, choices: tuple[str, ...]
    ) -> CalendarCodec:
        assert low is not None and high is not None
        form = _form(self.type, self.format)
        first, last = _read(self.type, low), _last(self.type, high)
        _short_years_suffice(form, first, last)
        ends = _grains(form, first), _grains(form, last)
        parts = _parts(form, list(asked.parts), asked.step)
        return CalendarCodec(form, _unit(form, asked, *ends, choices), *ends, parts, asked.step or "")

    def fallback(self) -> int:
        if self.default is None:
            return 0
        codec = self.codec()
        moment = _read(self.type, self.default).astype(f"M8[{codec.form.grain}]")
        return int(codec.codes_of(np.array([moment]))[0])


class DateColumn(_MomentColumn):
    """Calendar dates. Days before min or after max count as min or max."""

    STAND_INS: ClassVar[Declared] = {"min": "2020-01-01", "max": "2020-01-02"}

    type: Literal["date"] = Field(description="Kind of column.")
    min: Annotated[str, Moment("date")] | None = Field(default=None, description="First day, as YYYY-MM-DD.")
    max: Annotated[str, Moment("date")] | None = Field(default=None, description="Last day, as YYYY-MM-DD.")
    unit: Annotated[str, Choice(_DATE_UNITS)] | None = Field(default=None, description=_UNIT_HELP)
    parts: list[Annotated[str, Choice(_DATE_PARTS)]] = Field(
        default=[], description=_PARTS_HELP.format(unsaid="all days of a unit are equally likely")
    )
    format: Annotated[str, Text("a format such as %d/%m/%Y", longest=_LONGEST_FORMAT)] | None = Field(
        default=None, description=_FORMAT_HELP.format(iso="YYYY-MM-DD")
    )
    missing: Missing = True
    expected: Expected = None
    default: Annotated[str, Moment("date")] | None = Field(
        default=None, description="With missing: false, the day of unusable cells. Left out: min."
    )

    def codec(self) -> CalendarCodec:
        return self._between(self.min, self.max, _Asked(self.unit, tuple(self.parts)), _DATE_UNITS)


class DatetimeColumn(_MomentColumn):
    """Days with a time. Moments before min or after max count as min or max."""

    STAND_INS: ClassVar[Declared] = {"min": "2020-01-01", "max": "2020-01-02"}

    type: Literal["datetime"] = Field(description="Kind of column.")
    min: Annotated[str, Moment("datetime")] | None = Field(
        default=None, description="First moment, as YYYY-MM-DDTHH:MM:SS; a day alone means its start."
    )
    max: Annotated[str, Moment("datetime")] | None = Field(
        default=None, description="Last moment; a day alone means its end."
    )
    unit: Annotated[str, Choice(UNITS)] | None = Field(default=None, description=_UNIT_HELP)
    parts: list[Annotated[str, Choice(PARTS)]] = Field(
        default=[], description=_PARTS_HELP.format(unsaid="all moments of a unit are equally likely")
    )
    step: Annotated[str, Choice(tuple(STEPS))] | None = Field(default=None, description=_STEP_HELP)
    format: Annotated[str, Text("a format such as %d/%m/%Y %H:%M", longest=_LONGEST_FORMAT)] | None = Field(
        default=None, description=_FORMAT_HELP.format(iso="YYYY-MM-DDTHH:MM:SS")
    )
    missing: Missing = True
    expected: Expected = None
    default: Annotated[str, Moment("datetime")] | None = Field(
        default=None, description="With missing: false, the moment of unusable cells. Left out: min."
    )

    def codec(self) -> CalendarCodec:
        return self._between(self.min, self.max, _Asked(self.unit, tuple(self.parts), self.step), UNITS)


class TimeColumn(_MomentColumn):
    """Times of day, from midnight to midnight."""

    type: Literal["time"] = Field(description="Kind of column.")
    unit: Annotated[str, Choice(_TIME_UNITS)] = Field(default="hour", description="Length of one value.")
    step: Annotated[str, Choice(tuple(STEPS)[:-1])] | None = Field(default=None, description=_STEP_HELP)
    format: Annotated[str, Text("a format such as %H:%M", longest=_LONGEST_FORMAT)] | None = Field(
        default=None, description=_FORMAT_HELP.format(iso="HH:MM:SS")
    )
    missing: Missing = True
    expected: Expected = None
    default: Annotated[str, Moment("time")] | None = Field(
        default=None, description="With missing: false, the time of unusable cells. Left out: midnight."
    )

    def codec(self) -> CalendarCodec:
        return self._between("00:00", "23:59:59.999999", _Asked(self.unit, (), self.step), _TIME_UNITS)


def _check_ends(kind: MomentKind, low: str | None, high: str | None, default: str | None) -> None:
    for key, end in (("min", low), ("max", high)):
        if end is None:
            raise refused("is missing; give min and max, from public knowledge", key)
    assert low is not None and high is not None
    first, last = _read(kind, low), _last(kind, high)
    if first > last:
        raise refused(f"must not be after max; it is {low}, and max is {high}", "min")
    if default is not None and not first <= _read(kind, default) <= last:
        raise refused(f"must lie between {low} and {high}", "default")


def _last(kind: MomentKind, text: str) -> np.datetime64:
    """The last moment that a text for max means; for a day alone, the end of that day."""
    moment = _read(kind, text)
    if kind == "datetime" and len(text) == len("2020-01-31"):
        return moment + np.timedelta64(86_400_000_000 - 1, "us")
    return moment
