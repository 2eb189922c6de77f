"""Columns of dates, datetimes and times of day, in units of the calendar or the clock.

Invariant: the units follow from the declaration alone, and the format distinguishes them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dpsynth.columns.calendar_codec import (
    FINER,
    PARTS,
    STEPS,
    UNITS,
    CalendarCodec,
    fine_enough,
    unit_number,
)
from dpsynth.columns.column import Column
from dpsynth.columns.moment_formats import ISO, MomentFormat, MomentKind, Moments
from dpsynth.config.bins import MAX_DOMAIN_SIZE, ONE_A_VALUE
from dpsynth.config.declaration import (
    EXPECTED_HELP,
    MISSING_HELP,
    Declared,
    Described,
    Expected,
    Missing,
    check_default,
    column_of,
)
from dpsynth.config.schema_reading import spanned
from dpsynth.config.section import EMPTY, Checked, Choice, JsonSchema, Section, Text, one_of, refused

_FORMAT_HELP = "How cells are written, in strptime's codes such as %d/%m/%Y. Left out: ISO 8601, {iso}."
_LONGEST_FORMAT = 60
_CLOCK = r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_SHAPES: dict[MomentKind, str] = {
    "date": r"\d{4}-\d\d-\d\d",
    "datetime": rf"\d{{4}}-\d\d-\d\d([T ]{_CLOCK})?",
    "time": _CLOCK,
}
_EXAMPLES = {"date": "2020-01-31", "datetime": "2020-01-31T13:45:00", "time": "13:45:00"}


@dataclass(frozen=True)
class Moment(Checked):
    """A date, datetime or time of day in ISO 8601, kept as text."""

    kind: MomentKind

    def check(self, value: object) -> str:
        """The text."""
        if value is None:
            raise refused(EMPTY)
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
        return value

    def json_schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", **({"format": "date"} if self.kind == "date" else {})}


def _read(kind: MomentKind, text: str) -> np.datetime64:
    """A moment that was checked, in microseconds."""
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
    """Refuse a format with two digits for years that need four."""
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
    """True if each unit holds a whole number of steps."""
    return step is None or STEPS[step] <= {"hour": 3600, "minute": 60}.get(unit, 86_400)


def _parts_suit(parts: tuple[str, ...], unit: str) -> None:
    """Refuse parts that follow from the unit, or that cut across it."""
    for part in parts:
        if unit not in FINER[part]:
            across = part == "month" and unit == "week"
            why = "cuts across weeks" if across else f"follows from a {unit}, or nearly"
            raise refused(
                f"must not have {part}, which {why}; leave it out, or use unit: {one_of(FINER[part])}",
                "parts",
            )


def _parts(form: MomentFormat, parts: list[str], step: str | None) -> tuple[str, ...]:
    """The parts in the order of PARTS."""
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


class DateColumn(Section):
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
    missing: Missing = Field(default=True, description=MISSING_HELP)
    expected: Expected = Field(default=None, description=EXPECTED_HELP)
    default: Annotated[str, Moment("date")] | None = Field(
        default=None, description="With missing: false, the day of unusable cells. Left out: min."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        _check_ends("date", self.min, self.max, self.default)
        check_default(self.missing, self.default)
        self.codec()
        return self

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Unit, ends and format."""
        return spanned(described, "date")

    def part(self, name: str) -> Column:
        """The column, read from the table and modelled."""
        return column_of(name, self)

    def codec(self) -> CalendarCodec:
        """The units from min to max."""
        asked = _Asked(self.unit, tuple(self.parts))
        return _codec("date", self.format, self.min, self.max, asked, _DATE_UNITS)

    def fallback(self) -> int:
        """The code of the default."""
        return _fallback(self.codec(), self.default)


class DatetimeColumn(Section):
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
    missing: Missing = Field(default=True, description=MISSING_HELP)
    expected: Expected = Field(default=None, description=EXPECTED_HELP)
    default: Annotated[str, Moment("datetime")] | None = Field(
        default=None, description="With missing: false, the moment of unusable cells. Left out: min."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        _check_ends("datetime", self.min, self.max, self.default)
        check_default(self.missing, self.default)
        self.codec()
        return self

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Unit, ends and format."""
        return spanned(described, "datetime")

    def part(self, name: str) -> Column:
        """The column, read from the table and modelled."""
        return column_of(name, self)

    def codec(self) -> CalendarCodec:
        """The units from min to max."""
        asked = _Asked(self.unit, tuple(self.parts), self.step)
        return _codec("datetime", self.format, self.min, self.max, asked, UNITS)

    def fallback(self) -> int:
        """The code of the default."""
        return _fallback(self.codec(), self.default)


class TimeColumn(Section):
    """Times of day, from midnight to midnight."""

    STAND_INS: ClassVar[Declared] = {}

    type: Literal["time"] = Field(description="Kind of column.")
    unit: Annotated[str, Choice(_TIME_UNITS)] = Field(default="hour", description="Length of one value.")
    step: Annotated[str, Choice(tuple(STEPS)[:-1])] | None = Field(default=None, description=_STEP_HELP)
    format: Annotated[str, Text("a format such as %H:%M", longest=_LONGEST_FORMAT)] | None = Field(
        default=None, description=_FORMAT_HELP.format(iso="HH:MM:SS")
    )
    missing: Missing = Field(default=True, description=MISSING_HELP)
    expected: Expected = Field(default=None, description=EXPECTED_HELP)
    default: Annotated[str, Moment("time")] | None = Field(
        default=None, description="With missing: false, the time of unusable cells. Left out: midnight."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        check_default(self.missing, self.default)
        self.codec()
        return self

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """Unit and format."""
        return spanned(described, "time")

    def part(self, name: str) -> Column:
        """The column, read from the table and modelled."""
        return column_of(name, self)

    def codec(self) -> CalendarCodec:
        """The units of a day."""
        form = _form("time", self.format)
        last = _grains(form, np.datetime64("1970-01-01T23:59:59.999999"))
        asked = _Asked(self.unit, (), self.step)
        return CalendarCodec(form, _unit(form, asked, 0, last, _TIME_UNITS), 0, last, (), self.step or "")

    def fallback(self) -> int:
        """The code of the default."""
        return _fallback(self.codec(), self.default)


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


def _codec(
    kind: MomentKind,
    pattern: str | None,
    low: str | None,
    high: str | None,
    asked: _Asked,
    choices: tuple[str, ...],
) -> CalendarCodec:
    assert low is not None and high is not None
    form = _form(kind, pattern)
    first, last = _read(kind, low), _last(kind, high)
    _short_years_suffice(form, first, last)
    ends = _grains(form, first), _grains(form, last)
    parts = _parts(form, list(asked.parts), asked.step)
    return CalendarCodec(form, _unit(form, asked, *ends, choices), *ends, parts, asked.step or "")


def _fallback(codec: CalendarCodec, default: str | None) -> int:
    if default is None:
        return 0
    moment = _read(codec.form.kind, default).astype(f"M8[{codec.form.grain}]")
    return int(codec.codes_of(np.array([moment]))[0])
