"""Guesses of columns of dates, datetimes and times of day: their format, with whole years as bounds.

Of a datetime hour and weekday are proposed as parts, and the step of the clock that all cells keep to.

Invariant: a format that is guessed reads all cells that were seen. Where two different ones do, none is
guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa

from dpsynth.columns.calendar import UNITS, unit_number
from dpsynth.columns.moment_formats import HHMM, ISO, MomentFormat, MomentKind, Moments
from dpsynth.wings.owner.assess.number_guesses import Guess, is_whole
from dpsynth.wings.owner.assess.reach import Reach

_DAYS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
_NAMED = ("%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
_MONTHS = ("%Y-%m", "%m/%Y", "%b-%Y", "%b %Y", "%B %Y")
_CLOCKS = ("%H:00:00", "%H:%M:00", "%H:%M:%S", "%H:00", "%H:%M", "%I:%M %p", "%I:%M:%S %p")
"""Formats of a clock; those that write zeros come before those that could write other minutes."""
_TAILS = ("", "Z", "+00:00", " UTC")
_FORMATS: tuple[tuple[MomentKind, str], ...] = (
    *(("date", day) for day in (*_DAYS, *_NAMED, *_MONTHS)),
    *(
        ("date", f"{day}{sign}{clock}")
        for day, sign, clock in product((*_DAYS, *_NAMED), ("T", " "), ("00:00:00", "00:00"))
    ),
    *(
        ("datetime", f"{day}{sign}{clock}{tail}")
        for day, sign, clock, tail in product((*_DAYS, *_NAMED), ("T", " "), _CLOCKS, _TAILS)
    ),
    *(("time", clock) for clock in _CLOCKS),
)
_DIGITS = {8: "%Y%m%d", 6: "%Y%m"}
_YEARS = (1900, 2100)
_STEPS = (("30 minutes", 30), ("15 minutes", 15), ("10 minutes", 10), ("5 minutes", 5))
_MANY_UNITS = 128
"""Values up to which a unit is taken if none is declared."""
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
    form = MomentFormat(kind, pattern)
    step = _step(form.read(all_), len(set(texts))) if kind != "date" and "%M" in pattern else {}
    if kind == "time":
        return {"type": "time"} | _format(kind, pattern) | step
    if any(_order(other) != _order(pattern) for _, other in able[1:]):
        return {"type": kind, "min": None, "max": None, "format": None}
    parts: Guess = {"parts": ["hour", "weekday"]} if kind == "datetime" else {}
    ends = _whole_years(_years(form, all_), spelt, reach)
    return {"type": kind, **ends, **_format(kind, pattern), **parts, **step}


def _step(moments: Moments, different: int) -> Guess:
    """The longest step at which all moments lie, of those longer than a minute; none of a few moments."""
    minutes = moments.astype("M8[m]").astype(np.int64)
    whole = bool((moments == moments.astype("M8[m]")).all()) and different >= _FEWEST_ZEROS
    found = next((name for name, size in _STEPS if whole and not (minutes % size).any()), None)
    return {} if found is None else {"step": found}


def with_one_unit(guesses: Mapping[str, Guess]) -> dict[str, Guess]:
    """The same guesses, with one unit for dates that are likely compared: those of periods much alike.

    Admission by week and discharge by month could not be set in order. Periods are much alike if they share
    a year and none is more than twice as long as another. A date of birth keeps a unit of its own.
    """
    spans = {}
    for name, guess in guesses.items():
        if guess.get("type") in ("date", "datetime") and guess.get("min") and guess.get("max"):
            spans[name] = int(str(guess["min"])[:4]), int(str(guess["max"])[:4]) + 1
    found, left = dict(guesses), sorted(spans, key=lambda name: spans[name][1] - spans[name][0])
    while left:
        first, past = spans[left[0]]
        group = [
            name
            for name in left
            if min(past, spans[name][1]) > max(first, spans[name][0])
            and spans[name][1] - spans[name][0] <= 2 * (past - first)
        ]
        left = [name for name in left if name not in group]
        units = {name: default_unit(guesses[name], *spans[name]) for name in group}
        coarsest = min(units.values(), key=UNITS.index)
        found |= {name: {**found[name], "unit": coarsest} for name in group if units[name] != coarsest}
    return found


def default_unit(guess: Guess, first: int, past: int) -> str:
    """The unit that a column has if none is declared: the finest of few values that the format writes."""
    years = np.array([f"{first:04}-01-01", f"{past - 1:04}-12-31"], "M8[D]")
    coarse = "%d" not in str(guess.get("format") or "%d")
    able = [u for u in UNITS[: UNITS.index("month" if coarse else "day") + 1] if u != "week" or not coarse]
    return next((u for u in reversed(able) if np.diff(unit_number(years, u))[0] < _MANY_UNITS), "year")


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
