"""Guesses of columns of dates, datetimes and times of day: their format, with whole years as bounds.

Invariant: a format that is guessed reads all cells that were seen. Where two different ones do, none is
guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import product

import pyarrow as pa

from dpsynth.curator.number_guesses import Guess, is_whole
from dpsynth.curator.reach import Reach
from dpsynth.domain.moment_formats import HHMM, ISO, MomentFormat, MomentKind

_DAYS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
_NAMED = ("%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
_MONTHS = ("%Y-%m", "%m/%Y", "%b-%Y", "%b %Y", "%B %Y")
_CLOCKS = ("%H:00:00", "%H:%M:00", "%H:%M:%S", "%H:00", "%H:%M", "%I:%M %p", "%I:%M:%S %p")
"""Formats of a clock; those that write zeros come before those that could write other minutes."""
_TAILS = ("", "Z", "+00:00", " UTC")
_FORMATS: tuple[tuple[MomentKind, str], ...] = (
    *(("date", day) for day in (*_DAYS, *_NAMED, *_MONTHS)),
    *(
        ("datetime", f"{day}{sign}{clock}{tail}")
        for day, sign, clock, tail in product((*_DAYS, *_NAMED), ("T", " "), _CLOCKS, _TAILS)
    ),
    *(("time", clock) for clock in _CLOCKS),
)
_DIGITS = {8: "%Y%m%d", 6: "%Y%m"}
_YEARS = (1900, 2100)
_FEWEST_TIMES = 30
_FEWEST_ZEROS = 10
"""Different texts from which on a clock that always shows zero minutes or seconds is taken to write zeros."""
_SAMPLE = 50
"""Cells that a format has to read before all of them are tried."""


def moment_guess(spelt: Sequence[str], reach: Reach) -> Guess | None:
    """The common format of all texts; no format if two fit that order day and month differently."""
    # A fraction of a second is cut off.
    texts = [re.sub(r"(:[0-9]{2})\.[0-9]+(?=Z|\+00:00|$)", r"\1", text) for text in spelt]
    if not all(any(c.isdigit() for c in text) for text in texts[:_SAMPLE]):
        return None
    few, all_ = pa.array(texts[:_SAMPLE], pa.string()), pa.array(texts, pa.string())
    able = [
        (kind, pattern)
        for kind, pattern in _FORMATS
        if (len(set(texts)) >= _FEWEST_ZEROS or ":00" not in pattern.replace("+00:00", ""))
        and MomentFormat(kind, pattern).fits(few)
        and MomentFormat(kind, pattern).fits(all_)
    ]
    if not able:
        return None
    kind, pattern = able[0]
    if kind == "time":
        return {"type": "time"} | _format(kind, pattern)
    if any(_order(other) != _order(pattern) for _, other in able[1:]):
        return {"type": kind, "min": None, "max": None, "format": None}
    years = _years(MomentFormat(kind, pattern), all_)
    return {"type": kind, **_whole_years(years, spelt, reach), **_format(kind, pattern)}


def _order(pattern: str) -> list[str]:
    """The order of day, month and year in a format."""
    return re.findall("%-?[dmbYy]", pattern.replace("%B", "%b"))


def _format(kind: MomentKind, pattern: str) -> Guess:
    return {} if pattern == ISO[kind] else {"format": pattern}


def _years(form: MomentFormat, texts: pa.StringArray) -> list[str]:
    """The year of each moment, in four digits."""
    return [str(year) for year in form.read(texts).astype("M8[Y]")]


def _whole_years(years: Sequence[str], spelt: Sequence[str], reach: Reach) -> Guess:
    """The years that many units reach; null for both if they are too few."""
    found = sorted(zip(years, spelt, strict=True))
    first, last = reach.first(found), reach.first(found[::-1])
    if first is None or last is None:
        return {"min": None, "max": None}
    low, high = sorted((first, last))
    return {"min": f"{low}-01-01", "max": f"{high}-12-31"}


def clock_or_day_guess(numbers: Sequence[Decimal], reach: Reach) -> Guess | None:
    """Numbers that are times of day (517) or days of the calendar (20240131); None for other numbers."""
    if not numbers or not all(number >= 0 and is_whole(number) for number in numbers):
        return None
    found = sorted({int(number) for number in numbers})
    if found[-1] <= 2400 and _are_times(found):
        return {"type": "time", "format": HHMM}
    pattern = _DIGITS.get(len(str(found[0])))
    if pattern is None or len(str(found[-1])) != len(str(found[0])):
        return None
    texts = pa.array([str(number) for number in found], pa.string())
    form = MomentFormat("date", pattern)
    if not _YEARS[0] <= found[0] // 10 ** (len(str(found[0])) - 4) <= _YEARS[1] or not form.fits(texts):
        return None
    if found[-1] // 10 ** (len(str(found[0])) - 4) >= _YEARS[1]:
        return None
    years = [str(int(number))[:4] for number in numbers]
    return {"type": "date", **_whole_years(years, list(reach.counts), reach), "format": pattern}


def _are_times(numbers: Sequence[int]) -> bool:
    """True if different numbers are likely times of day: many, no 60th minute, and minutes of all kinds."""
    minutes, hours = {number % 100 for number in numbers}, {number // 100 for number in numbers}
    varied = len(minutes) >= 4 and max(minutes) >= 45 and len(hours) >= 6
    return len(numbers) >= _FEWEST_TIMES and max(minutes) < 60 and varied
