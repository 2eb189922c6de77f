"""Formats of dates and times of day: a fixed subset of strptime's codes, and the numbers that they write.

The grain of a format is the finest unit that it writes; moments, numpy's datetime64, are counted in grains.
Times of day are moments of 1970-01-01.

Invariant: a moment that is written in a format is read back as the same moment, and a text that names no day
of the calendar is no moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Moments = NDArray[np.datetime64]

Numbers = NDArray[np.int64]

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August",
          "September", "October", "November", "December")  # fmt: skip


def whole_numbers(texts: dict[str, pa.StringArray], name: str, absent: int) -> Numbers:
    """A field as numbers; ``absent`` where the text or the pattern lacks it."""
    if name not in texts:
        return np.array([absent], dtype=np.int64)
    # The fields of a text that does not match are empty, and so are those that it leaves out.
    digits = pc.replace_with_mask(texts[name], pc.equal(texts[name], ""), pa.scalar(str(absent)))
    return np.asarray(pc.cast(digits, pa.int64()))


def months_of(names: pa.StringArray) -> Numbers:
    """1 to 12, or 0 for a word that is no month."""
    months = [name.lower() for name in MONTHS]
    lower = pc.utf8_lower(names)
    long = pc.index_in(lower, pa.array(months))
    short = pc.index_in(lower, pa.array([name[:3] for name in months]))
    spot = pc.fill_null(pc.coalesce(long, short), -1)
    return np.asarray(spot.to_numpy(zero_copy_only=False), dtype=np.int64) + 1


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of moments by format code; intermediate fields are computed once."""

    moments: Moments

    @cached_property
    def _years(self) -> Moments:
        return self._months.astype("M8[Y]")

    @cached_property
    def _months(self) -> Moments:
        return self._days.astype("M8[M]")

    @cached_property
    def _days(self) -> Moments:
        return self.moments.astype("M8[D]")

    @cached_property
    def _seconds(self) -> Numbers:
        return (self.moments.astype("M8[s]") - self._days.astype("M8[s]")).astype(np.int64)

    def of(self, code: str) -> Numbers:
        if code in ("%Y", "%y"):
            year = self._years.astype(np.int64) + 1970
            return year % 100 if code == "%y" else year
        if code in ("%m", "%b", "%B"):
            return self._months.astype(np.int64) % 12 + 1
        if code == "%d":
            return (self._days - self._months.astype("M8[D]")).astype(np.int64) + 1
        if code == "%f":
            return (self.moments - self.moments.astype("M8[s]")).astype(np.int64)
        if code in ("%H", "%I", "%p"):
            hour = self._seconds // 3600
            return hour if code == "%H" else hour // 12 if code == "%p" else (hour + 11) % 12 + 1
        return self._seconds // 60 % 60 if code == "%M" else self._seconds % 60


MomentKind = Literal["date", "datetime", "time"]

HHMM = "hhmm"
"""A format of times of day without a sign between hours and minutes, as whole numbers: 517 is 05:17."""

GRAINS = ("Y", "M", "D", "h", "m", "s", "us")
"""Units of numpy's datetime64, from coarse to fine."""

ISO: dict[MomentKind, str] = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%S", "time": "%H:%M:%S"}
"""The formats of ISO 8601."""

_PATTERNS = {
    "%Y": "(?P<year>[0-9]{4})",
    "%y": "(?P<short_year>[0-9]{2})",
    "%m": "(?P<month>[0-9]{1,2})",
    "%b": "(?P<month_name>[A-Za-z]{3})",
    "%B": "(?P<month_name>[A-Za-z]{3,9})",
    "%d": "(?P<day>[0-9]{1,2})",
    "%H": "(?P<hour>[0-9]{1,2})",
    "%I": "(?P<hour_of_12>[0-9]{1,2})",
    "%p": "(?P<half>[AaPp][Mm])",
    "%M": "(?P<minute>[0-9]{1,2})",
    "%S": "(?P<second>[0-9]{1,2})",
    "%f": "(?P<fraction>[0-9]{1,9})",
}

_UNPADDED = {"%-m": "%m", "%-d": "%d", "%-H": "%H", "%-I": "%I"}

_NUMBER_OF_TIME = r"^0*(?P<digits>[0-9]{1,4})(?:\.0*)?$"
"""A number in the format ``hhmm``, perhaps written by a program that takes it for a decimal one."""

_END_OF_DAY = "2400"

CODES = (*_PATTERNS, *_UNPADDED)
"""The codes that a format may hold; those with a hyphen write no leading zero."""

_GRAIN_OF = {"%Y": 0, "%y": 0, "%m": 1, "%b": 1, "%B": 1, "%d": 2, "%H": 3, "%I": 3, "%p": 3,
             "%M": 4, "%S": 5, "%f": 6}  # fmt: skip

_NAMES = {"%b", "%B", "%p"}

_DIGITS = set(_PATTERNS) - _NAMES

_PIECES = re.compile(r"%-?[A-Za-z%]|[^%]+|%")

_ISO_DAY = "(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"

_ISO_TIME = (
    "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
)

_ISO_PATTERNS: dict[MomentKind, str] = {
    "date": f"^{_ISO_DAY}(?:[T ].*)?$",
    "datetime": f"^{_ISO_DAY}(?:[T ]{_ISO_TIME}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?$",
    "time": f"^{_ISO_TIME}$",
}


@dataclass(frozen=True)
class MomentFormat:
    """A format of dates, datetimes or times of day.

    Attributes:
        kind: "date", "datetime" or "time".
        pattern: text with codes; or, of times, "hhmm".

    Raises:
        ValueError: the pattern can't be used; the message gives the reason, in words that follow its name.

    >>> form = MomentFormat("date", "%-d %b %Y")
    >>> days = form.read(pa.array(["1 Feb 2020", "30 Feb 2020", "2020-02-03"]))
    >>> form.write(days[[0, 2]]).to_pylist(), np.isnat(days).tolist()
    (['1 Feb 2020', '3 Feb 2020'], [False, True, False])
    """

    kind: MomentKind
    pattern: str

    def __post_init__(self) -> None:
        _check(self.kind, self._pieces)

    @property
    def _is_number(self) -> bool:
        return self.kind == "time" and self.pattern == HHMM

    @cached_property
    def _pieces(self) -> list[str]:
        return ["%H", "%M"] if self._is_number else _PIECES.findall(self.pattern)

    @cached_property
    def grain(self) -> str:
        """The finest unit that is written, one of GRAINS."""
        return GRAINS[max(_GRAIN_OF.get(_UNPADDED.get(piece, piece), 0) for piece in self._pieces)]

    @cached_property
    def _regex(self) -> str:
        codes = [_UNPADDED.get(piece, piece) for piece in self._pieces]
        found = ""
        for i, code in enumerate(codes):
            pattern = _PATTERNS.get(code, re.escape("%" if code == "%%" else code))
            if code in _DIGITS and {*codes[max(i - 1, 0) : i], *codes[i + 1 : i + 2]} & _DIGITS:
                # Between digits only a fixed number of them says where this code ends.
                pattern = pattern.replace("{1,2}", "{2}").replace("{1,9}", "{6}")
            found += pattern
        return f"^{found}$"

    def read(self, texts: pa.StringArray) -> Moments:
        """Moments of stripped texts, datetime64 of the grain; NaT for every other text.

        A text that does not match the pattern may be in ISO 8601 as well, because typed columns of Parquet
        files are. A part finer than the grain is cut off, and an offset from UTC is dropped: the local time
        counts. In the format ``hhmm``, 2400 is midnight.
        """
        if self._is_number:
            texts = _as_four_digits(texts)
        found = pc.extract_regex(texts, self._regex)
        moments = self._of_fields(found)
        unlike = np.asarray(pc.and_(pc.is_valid(texts), pc.is_null(found)))
        if unlike.any():
            others = pc.extract_regex(texts.filter(pa.array(unlike)), _ISO_PATTERNS[self.kind])
            moments[unlike] = self._of_fields(others)
        return moments

    def fits(self, texts: pa.StringArray) -> bool:
        """True if each of some stripped texts is a moment in this very format, not only in ISO 8601."""
        if self._is_number:
            texts = _as_four_digits(texts)
        alike = pc.all(pc.match_substring_regex(texts, self._regex), skip_nulls=False, min_count=0).as_py()
        return bool(alike) and not np.isnat(self._of_fields(pc.extract_regex(texts, self._regex))).any()

    def _of_fields(self, found: pa.StructArray) -> Moments:
        texts = {field.name: found.field(i) for i, field in enumerate(found.type)}
        good = np.asarray(found.is_valid())
        year = whole_numbers(texts, "year", 1970)
        if "short_year" in texts:
            short = whole_numbers(texts, "short_year", 70)
            year = np.where(short < 69, 2000 + short, 1900 + short)
        month, day = whole_numbers(texts, "month", 1), whole_numbers(texts, "day", 1)
        if "month_name" in texts:
            month = months_of(texts["month_name"])
        hour, minute, second = (whole_numbers(texts, name, 0) for name in ("hour", "minute", "second"))
        if "hour_of_12" in texts:
            of_12 = whole_numbers(texts, "hour_of_12", 12)
            good &= (of_12 >= 1) & (of_12 <= 12)
            hour = of_12 % 12 + 12 * np.asarray(pc.match_substring_regex(texts["half"], "^[Pp]"))
        good &= (year >= 1) & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
        months = ((year - 1970) * 12 + np.where(good, month, 1) - 1).astype("M8[M]")
        days = months.astype("M8[D]") + (day - 1)
        good &= (day >= 1) & (days.astype("M8[M]") == months)
        if self.grain in ("Y", "M", "D"):
            moments = days.astype(f"M8[{self.grain}]")
        else:
            moments = (days.astype("M8[s]") + (hour * 3600 + minute * 60 + second)).astype(
                f"M8[{self.grain}]"
            )
            if self.grain == "us" and "fraction" in texts:
                digits = pc.utf8_slice_codeunits(pc.utf8_rpad(texts["fraction"], 6, "0"), 0, 6)
                moments = moments + np.asarray(pc.fill_null(pc.cast(digits, pa.int64()), 0))
        moments[~good] = np.datetime64("NaT")
        return moments

    def write(self, moments: Moments) -> pa.StringArray:
        """Texts of moments, of which none is NaT and all are of years 0 to 9999."""
        fields = Fields(moments)
        if self._is_number:
            return pc.cast(pa.array(fields.of("%H") * 100 + fields.of("%M")), pa.string())
        return pc.binary_join_element_wise(*(_written(piece, fields) for piece in self._pieces), "")


def _as_four_digits(texts: pa.StringArray) -> pa.StringArray:
    """Texts with numbers of times as four digits; other texts unchanged.

    >>> _as_four_digits(pa.array(["517", "5.0", "2400", "05:17"])).to_pylist()
    ['0517', '0005', '0000', '05:17']
    """
    digits = pc.extract_regex(texts, _NUMBER_OF_TIME).field(0)
    found = pc.utf8_lpad(digits, 4, "0")
    found = pc.if_else(pc.equal(found, _END_OF_DAY), "0000", found)
    return pc.if_else(pc.fill_null(pc.match_substring_regex(texts, _NUMBER_OF_TIME), False), found, texts)


def _check(kind: MomentKind, pieces: list[str]) -> None:
    codes = [_UNPADDED.get(piece, piece) for piece in pieces]
    for code in codes:
        if code.startswith("%") and code not in _PATTERNS and code != "%%":
            raise ValueError(f"has the code {code}; those known are {', '.join(CODES)}")
    used = [_GRAIN_OF[c] * 10 + (c == "%p") for c in codes if c in _PATTERNS]
    if len(used) > len(set(used)):
        raise ValueError("says something twice, such as the month by %m and by %b")
    if ("%I" in codes) != ("%p" in codes):
        raise ValueError("must have %I (hour of 12) and %p (AM or PM) together; %H is the hour of 24")
    said = {number // 10 for number in used}
    first, least, most = {"date": (0, 0, 2), "datetime": (0, 3, 6), "time": (3, 3, 6)}[kind]
    finest = max(said, default=-1)
    if said != set(range(first, finest + 1)) or not least <= finest <= most:
        needs = {
            "date": "must have %Y, %m and %d, or be coarser: %Y and %m, or %Y",
            "datetime": "must have %Y, %m, %d and %H at least, and no gap down to its finest code",
            "time": "must have %H at least, no code of a date, and no gap down to its finest code",
        }
        raise ValueError(needs[kind])
    for piece, code, after in zip(pieces, codes, codes[1:], strict=False):
        if (code in _DIGITS and after[0].isdigit()) or (code[-1].isdigit() and after in _DIGITS):
            raise ValueError("must not hold a digit of its own beside a code that stands for digits")
        if {code, after} <= _NAMES or (piece in _UNPADDED and after in _DIGITS):
            raise ValueError(
                f"must have something between {piece} and {after}, or nobody can tell them apart"
            )


def _written(piece: str, fields: Fields) -> pa.StringArray | str:
    code = _UNPADDED.get(piece, piece)
    if code not in _PATTERNS:
        return "%" if code == "%%" else code
    numbers = fields.of(code)
    if code in _NAMES:
        names = [m[:3] for m in MONTHS] if code == "%b" else MONTHS if code == "%B" else ("AM", "PM")
        return pa.array(names, pa.string()).take(pa.array(numbers - (code != "%p")))
    if code == "%f":
        return pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 6, "0")
    width = 4 if code == "%Y" else 2 if piece == code else 1
    return _digits(width).take(pa.array(numbers))


@cache
def _digits(width: int) -> pa.StringArray:
    """Texts of the numbers from 0 on, with so many digits at least: of years, or of numbers below 100."""
    return pa.array([f"{i:0{width}}" for i in range(10_000 if width == 4 else 100)], pa.string())
