"""Columns of durations, in cells of seconds, minutes, hours, days or weeks.

Invariant: the cells follow from the declaration alone, and the format distinguishes them. A decoded duration
lies in its cell and between the ends, at the resolution of the format, and its text is read back into the
same cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from dpsynth.columns.codec import INVALID, Codec, Codes, Intervals, Readings, clipped, drawn_between
from dpsynth.columns.declaration import (
    MAX_DOMAIN_SIZE,
    ONE_A_VALUE,
    CellText,
    Declared,
    Expected,
    Missing,
    Modelled,
    check_default,
)
from dpsynth.columns.expression import Kind
from dpsynth.columns.number_texts import parse_numbers
from dpsynth.columns.section import Choice, refused

UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""Lengths of a cell, in seconds."""

_NUMBERS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}

_CLOCKS = {
    "HH:MM:SS": (1, r"^(?P<sign>[+-]?)(?P<h>[0-9]{1,7}):(?P<m>[0-5]?[0-9]):(?P<s>[0-5]?[0-9])(?:\.[0-9]*)?$"),
    "HH:MM": (60, r"^(?P<sign>[+-]?)(?P<h>[0-9]{1,7}):(?P<m>[0-5]?[0-9])$"),
    "MM:SS": (1, r"^(?P<sign>[+-]?)(?P<m>[0-9]{1,9}):(?P<s>[0-5]?[0-9])(?:\.[0-9]*)?$"),
}

_ISO = (
    r"^(?P<sign>[+-]?)P(?:(?P<w>[0-9]{1,6})W)?(?:(?P<d>[0-9]{1,7})D)?"
    r"(?:T(?:(?P<h>[0-9]{1,8})H)?(?:(?P<m>[0-9]{1,9})M)?(?:(?P<s>[0-9]{1,19})(?:[.,][0-9]*)?S)?)?$"
)

_MOST_GRAINS = 1e12
"""Durations beyond it are no values of formulas."""

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}

FORMATS = ("iso", *_CLOCKS, *_NUMBERS)
"""Notations: ISO 8601 (P1DT2H3M4S), a clock, or a number of a unit. ISO 8601 is read with each."""


@dataclass(frozen=True)
class DurationCodec(Codec):
    """Stretches of time of equal length, the first and the last one perhaps cut short.

    Durations below the first are taken as the first, and those above the last as the last. A
    duration decodes to a uniform draw from those of its cell that the format can write.
    Fractions of a grain are cut off.

    Attributes:
        unit: one of UNITS, a whole number of grains.

    >>> p = DurationCodec("HH:MM", "hour", first=30, last=150)
    >>> p.labels
    ('00:30 to 00:59', '01:00 to 01:59', '02:00 to 02:30')
    >>> p.encode(pa.array(["0:45", "01:00", "99:00", "1:75"])).tolist()
    [0, 1, 2, -1]
    """

    form: str
    unit: str
    first: int
    last: int

    kind = Kind("duration")
    arrow_type = pa.duration("s")
    ordered = True

    def __post_init__(self) -> None:
        if self.first > self.last or UNITS[self.unit] % self.grain:
            raise ValueError("the ends must not be out of order, nor the unit finer than the format")

    @property
    def grain(self) -> int:
        return grain_of(self.form)

    @cached_property
    def _grid(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        width = UNITS[self.unit] // self.grain
        starts = np.arange(self.first // width, self.last // width + 2) * width
        return np.maximum(starts[:-1], self.first), np.minimum(starts[1:] - 1, self.last)

    @property
    def schema(self) -> dict[str, object]:
        first, last = (write_duration(self.form, end) for end in (self.first, self.last))
        means = self.form if self.form in _NUMBERS else "seconds"
        return {"unit": self.unit, "min": first, "max": last, "format": self.form, "means_in": means}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        ends = zip(*(end.tolist() for end in self._grid), strict=True)
        texts = ((write_duration(self.form, a), write_duration(self.form, b)) for a, b in ends)
        return tuple(a if a == b else f"{a} to {b}" for a, b in texts)

    @property
    def _scale(self) -> int:
        return 1 if self.form in _NUMBERS else self.grain

    @property
    def centres(self) -> NDArray[np.float64]:
        """Mean of the durations of each cell: in the unit that the format counts, otherwise in seconds."""
        low, high = self._grid
        return np.asarray((low + high) / 2.0 * self._scale)

    @property
    def half_widths(self) -> NDArray[np.float64]:
        low, high = self._grid
        return np.asarray((high - low) / 2.0 * self._scale)

    @property
    def cell_values(self) -> Intervals:
        shortest, longest = (grains.astype(np.float64) * (self.grain * 1e6) for grains in self._grid)
        return Intervals(shortest, longest)

    def encode(self, texts: pa.StringArray) -> Codes:
        return self.codes_of(read_durations(self.form, texts))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        grains = read_durations(self.form, texts)
        known = np.abs(grains) < _MOST_GRAINS
        whole = np.where(known, grains, 0.0).astype(np.int64) * self.grain
        return pc.cast(pa.array(whole, pa.int64(), mask=~known), self.arrow_type)

    def readings(self, texts: pa.StringArray) -> Readings:
        return clipped(read_durations(self.form, texts), self.first, self.last)

    def codes_of(self, grains: NDArray[np.float64]) -> Codes:
        width = UNITS[self.unit] // self.grain
        whole = np.floor(np.clip(np.nan_to_num(grains, nan=0.0), self.first, self.last)).astype(np.int64)
        return np.where(np.isnan(grains), INVALID, whole // width - self.first // width)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        grains = drawn_between(*self._grid, codes, rng)
        return pc.cast(pa.array(grains * self.grain, pa.int64()), self.arrow_type)

    def text(self, values: pa.Array) -> pa.StringArray:
        distinct = pc.cast(values, pa.int64()).dictionary_encode()
        found = distinct.dictionary.to_pylist()
        texts = [write_duration(self.form, seconds // self.grain) for seconds in found]
        return pa.array(texts, pa.string()).take(distinct.indices)


def grain_of(form: str) -> int:
    """Seconds of the finest step that a format writes."""
    return _NUMBERS[form] if form in _NUMBERS else _CLOCKS[form][0] if form in _CLOCKS else 1


def read_durations(form: str, texts: pa.StringArray) -> NDArray[np.float64]:
    """Durations of stripped texts in whole grains, NaN for every other text.

    ISO 8601 is read with every format, because the durations of a Parquet file have it. A number
    too large for a double becomes an infinity, which clipping then bounds.
    """
    found = _seconds(_ISO, texts) // grain_of(form)
    if form == "iso":
        return found
    own = (
        np.floor(parse_numbers(texts))
        if form in _NUMBERS
        else _seconds(_CLOCKS[form][1], texts) // grain_of(form)
    )
    return np.where(np.isnan(own), found, own)


def _seconds(pattern: str, texts: pa.StringArray) -> NDArray[np.float64]:
    """Whole seconds of texts that a pattern matches, NaN for all others."""
    found = pc.extract_regex(texts, pattern)
    total = np.zeros(len(texts))
    given = np.zeros(len(texts), dtype=np.bool_)
    for i, field in enumerate(found.type):
        part = found.field(i)
        if field.name == "sign":
            sign = np.where(np.asarray(pc.equal(part, "-")), -1.0, 1.0)
            continue
        here = np.asarray(pc.not_equal(part, ""))
        given |= here
        numbers = pc.cast(pc.replace_with_mask(part, pa.array(~here), pa.scalar("0")), pa.float64())
        total += np.asarray(numbers) * _SECONDS[field.name]
    return np.where(given & np.asarray(found.is_valid()), sign * total, np.nan)


def write_duration(form: str, grains: int) -> str:
    """A duration of so many grains in a format."""
    sign, count = ("-", -grains) if grains < 0 else ("", grains)
    if form in _NUMBERS:
        return f"{sign}{count}"
    write: Callable[[int], str] = {
        "HH:MM:SS": lambda s: f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}",
        "HH:MM": lambda m: f"{m // 60:02}:{m % 60:02}",
        "MM:SS": lambda s: f"{s // 60:02}:{s % 60:02}",
        "iso": _iso,
    }[form]
    return sign + write(count)


def _iso(seconds: int) -> str:
    """ISO 8601 in days, hours, minutes and seconds.

    >>> _iso(93784), _iso(0), _iso(7200)
    ('P1DT2H3M4S', 'PT0S', 'PT2H')
    """
    days, rest = divmod(seconds, 86_400)
    parts = ((rest // 3600, "H"), (rest // 60 % 60, "M"), (rest % 60, "S"))
    clock = "".join(f"{number}{letter}" for number, letter in parts if number)
    if not clock and days:
        return f"P{days}D"
    return f"P{f'{days}D' if days else ''}T{clock or '0S'}"


_LONGEST = 10**12


_Cell = Annotated[str, CellText("a duration as the table's cells spell it, such as PT2H30M")]


class DurationColumn(Modelled):
    """Lengths of time. Durations below min or above max count as min or max."""

    STAND_INS: ClassVar[Declared] = {"min": "PT0S", "max": "PT1S"}

    type: Literal["duration"] = Field(description="Kind of column.")
    min: _Cell | None = Field(default=None, description="Shortest duration, in the format of the cells.")
    max: _Cell | None = Field(default=None, description="Longest duration, in the format of the cells.")
    unit: Annotated[str, Choice(tuple(UNITS))] | None = Field(
        default=None,
        description=f"What counts as one value. Left out: the finest unit of at most {ONE_A_VALUE} values.",
    )
    format: Annotated[str, Choice(FORMATS)] = Field(
        default="iso",
        description="iso: ISO 8601, such as P1DT2H30M. A clock, such as HH:MM. Or what a number counts.",
    )
    missing: Missing = True
    expected: Expected = None
    default: _Cell | None = Field(
        default=None, description="With missing: false, the duration of unusable cells. Left out: min."
    )

    def model_post_init(self, context: object, /) -> None:
        check_default(self.missing, self.default)
        first, last = self._grains("min", self.min), self._grains("max", self.max)
        if first > last:
            raise refused(f"must not be above max; it is {self.min}, and max is {self.max}", "min")
        if self.default is not None and not first <= self._grains("default", self.default) <= last:
            raise refused(f"must lie between {self.min} and {self.max}", "default")
        self.codec()

    def _grains(self, key: str, text: str | None) -> int:
        if text is None:
            raise refused("is missing; give min and max, from public knowledge", key)
        grains = read_durations(self.format, pa.array([text], pa.string()))[0]
        if np.isnan(grains) or abs(grains) > _LONGEST:
            raise refused(f"must be a duration in the format {self.format}, or as P1DT2H30M", key)
        return int(grains)

    def codec(self) -> DurationCodec:
        first, last = self._grains("min", self.min), self._grains("max", self.max)
        grain = grain_of(self.format)
        able = [unit for unit, seconds in UNITS.items() if seconds % grain == 0]

        def cells(unit: str) -> int:
            width = UNITS[unit] // grain
            return last // width - first // width + 1

        if self.unit is None:
            found = next((unit for unit in able if cells(unit) <= ONE_A_VALUE), able[-1])
        elif self.unit not in able:
            raise refused(f"is finer than the format {self.format}; use {', '.join(able)}", "unit")
        else:
            found = self.unit
        if cells(found) > MAX_DOMAIN_SIZE:
            words = f"makes {cells(found):,} cells, more than {MAX_DOMAIN_SIZE:,}; use a coarser unit"
            raise refused(words, "unit")
        return DurationCodec(self.format, found, first, last)

    def fallback(self) -> int:
        if self.default is None:
            return 0
        return int(self.codec().codes_of(np.array([float(self._grains("default", self.default))]))[0])
