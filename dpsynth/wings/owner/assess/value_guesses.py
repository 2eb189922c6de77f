"""Guesses of numbers, dates, times and durations: their notation or format, bounds, decimals, bins and parts.

Invariant: bounds lie outside of what many units reach, at multiples of a round step, at whole years, or at
the ends of the calendar where a column's name says so. A format that is guessed reads all cells that were
seen. Where two different ones do, none is guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from itertools import product
from math import ceil, floor, log10
from typing import TypeVar

import numpy as np
import pyarrow as pa

from dpsynth.columns import duration
from dpsynth.columns.calendar import UNITS, unit_number
from dpsynth.columns.moment_formats import HHMM, ISO, MomentFormat, MomentKind, Moments
from dpsynth.columns.number_texts import NumberFormat
from dpsynth.wings.owner.assess.identifier_forms import calendar_ends

FEWEST_UNITS = 10
"""Fewest units of a value that is listed, and of those who reach a bound."""

V = TypeVar("V")
E = TypeVar("E", Decimal, float, str)


@dataclass(frozen=True, eq=False)
class Reach:
    """The texts of a column, with those who have them.

    Attributes:
        counts: rows of each text.
        units: units of each text, ``FEWEST_UNITS`` of them at most; None where each row is a unit.
    """

    counts: Mapping[str, int]
    units: Mapping[str, Set[int]] | None = None

    def many(self, texts: Iterable[str]) -> bool:
        return self.first([(True, text) for text in texts]) is not None

    def first(self, spelt: Iterable[tuple[V, str]]) -> V | None:
        """The first of some values, each with its text, that many units have or have passed; None if too few.

        Args:
            spelt: values with their texts, from an end on.
        """
        rows, units = 0, set[int]()
        for value, text in spelt:
            if self.units is None:
                rows += self.counts[text]
            else:
                units |= self.units[text]
            if max(rows, len(units)) >= FEWEST_UNITS:
                return value
        return None

    def ends(self, values: Iterable[E], spelt: Iterable[str]) -> tuple[E, E] | None:
        """The least and the largest of some values that many units have or have passed; None if too few."""
        found = sorted(zip(values, spelt, strict=True), key=lambda one: one[0])
        first, last = self.first(found), self.first(found[::-1])
        return None if first is None or last is None else (min(first, last), max(first, last))


Plain = str | int | bool | Decimal | None | list[str | int] | dict[str, str] | dict[str, Decimal]
"""A value of the grammar."""

Guess = dict[str, Plain]
"""Keys of a column's declaration; None for a value that can't be guessed."""

FEWEST_FOR_TREE = 1_000
"""Fewest rows of a column whose bins are found with a part of the budget."""

_ONE_A_VALUE = 128
"""Most whole numbers between two bounds of which each has a bin without being asked for."""
_MOST_POINTS = 64
"""Most values of a column of numbers that are listed."""
_ROWS_A_POINT = 30
"""Least mean number of rows of the values of a column whose values are listed."""
_GAPS = 8
"""Least range of whole numbers that are listed, in multiples of how many they are."""
_DENSE = 2
"""The same of numbers with decimals, in steps of the last decimal."""
_POINTS_COVER = 0.99
"""Least part of a column's rows that listed values have."""
_MOST_DECIMALS = 4
_STEPS = 5
"""Digits of a number, from the first of the range on, where cells have more decimals than anyone needs."""
LARGEST = 10**15
# No decimal signal raises: profiling goes on whatever a cell holds.
_NUMBERS = Context(prec=200, traps=[])


def is_whole(number: Decimal) -> bool:
    """True for a whole number that a column can hold."""
    return number.is_finite() and abs(number) <= LARGEST and number == number.to_integral_value()


def number_guess(name: str, rows: int, reach: Reach, numbers: Sequence[Decimal], form: NumberFormat) -> Guess:
    """A column of numbers.

    Args:
        name: of the column.
        rows: of the column.
        reach: the texts with their rows, or those that were kept, and what many units reach.
        numbers: the number that each of these texts is.
        form: the notation of the texts.
    """
    if not all(number.is_finite() and abs(number) <= LARGEST for number in numbers):
        return {"type": "number", "min": None, "max": None}
    notation: Guess = {"format": facts} if (facts := _facts(form)) else {}
    least, most = min(numbers), max(numbers)
    whole = all(map(is_whole, numbers))
    if whole and (parts := calendar_ends(name, int(least), int(most))):
        return {"type": "integer", "min": parts[0], "max": parts[1], **notation}
    points = _points(reach, numbers, plain=not notation)
    if points:
        return {"type": "ordered", "values": points}
    ends = reach.ends(numbers, reach.counts)
    if ends is None:
        return {"type": "integer" if whole else "number", "min": None, "max": None, **notation}
    low, high = rounded(*ends)
    if whole and high - low < _ONE_A_VALUE:
        return {"type": "integer", "min": int(low), "max": int(high), **notation}
    tree: Guess = {"edges": "tree"} if rows >= FEWEST_FOR_TREE else {}
    if whole:
        return {"type": "integer", "min": int(low), "max": int(high), **tree, **notation}
    places = _places(numbers, high - low)
    bins = {} if (high - low).scaleb(places) < _ONE_A_VALUE else tree
    return {"type": "number", "min": low, "max": high, "decimals": places, **bins, **notation}


def _facts(form: NumberFormat) -> dict[str, str]:
    """The keys of a notation."""
    found = {"thousands": form.thousands, "prefix": form.prefix, "suffix": form.suffix}
    return {key: text for key, text in found.items() if text} | (
        {"decimal": ","} if form.decimal == "," else {}
    )


def _points(reach: Reach, numbers: Sequence[Decimal], *, plain: bool) -> list[str | int]:
    """The values of a column that has few of them, in their order; empty if it has more.

    Numbers in another than plain notation are listed as texts, if each has one spelling.
    """
    rows: Counter[Decimal] = Counter()
    texts: dict[Decimal, list[str]] = {}
    for (text, count), number in zip(reach.counts.items(), numbers, strict=True):
        rows[number] += count
        texts.setdefault(number, []).append(text)
    if len(rows) > 2 * _MOST_POINTS:
        return []
    often = sorted(number for number, spelt in texts.items() if reach.many(spelt))
    few = 1 < len(often) <= _MOST_POINTS and len(rows) <= min(2 * len(often), rows.total() / _ROWS_A_POINT)
    if not few or sum(rows[n] for n in often) < _POINTS_COVER * rows.total():
        return []
    whole = all(map(is_whole, rows))
    if (often[-1] - often[0]).scaleb(_decimals(often)) < (_GAPS if whole else _DENSE) * len(often):
        return []
    if whole and plain:
        return [int(number) for number in often]
    return [texts[n][0] for n in often] if all(len(spelt) == 1 for spelt in texts.values()) else []


def _decimals(numbers: Iterable[Decimal]) -> int:
    """Decimals of the number that has most of them."""
    return max(max(0, -int(number.normalize(_NUMBERS).as_tuple().exponent)) for number in numbers)


def _places(numbers: Sequence[Decimal], span: Decimal) -> int:
    """Decimals of a column: those of its cells, or as many as its range needs if they have more."""
    places = _decimals(numbers)
    return places if places <= _MOST_DECIMALS else min(places, 9, max(0, _STEPS - floor(log10(span))))


def rounded(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds outside the range seen: multiples of a tenth of its power of ten, or 0 if near.

    >>> rounded(Decimal(17), Decimal(91))
    (Decimal('0'), Decimal('100'))
    >>> rounded(Decimal(1820), Decimal(1934))
    (Decimal('1800'), Decimal('2000'))
    """
    span = max(high - low, abs(high) / 100, abs(low) / 100, Decimal("0.000001"))
    step = Decimal(10) ** floor(log10(span))
    first = (low / step).to_integral_value("ROUND_FLOOR") * step
    last = (high / step).to_integral_value("ROUND_CEILING") * step
    if 0 <= first < 3 * step:
        first = Decimal(0)
    if first == last:
        last += step
    return _plainly(first), _plainly(last)


def _plainly(number: Decimal) -> Decimal:
    return Decimal(format(number.normalize(), "f"))


_DAYS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
_SHORT = ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%y")
_NAMED = ("%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
_MONTHS = ("%Y-%m", "%m/%Y", "%b-%Y", "%b %Y", "%B %Y")
_CLOCKS = ("%H:00:00", "%H:%M:00", "%H:%M:%S", "%H:00", "%H:%M", "%I:%M %p", "%I:%M:%S %p")
"""Formats of a clock; those that write zeros come before those that could write other minutes."""
_TAILS = ("", "Z", "+00:00", " UTC")
_FORMATS: tuple[tuple[MomentKind, str], ...] = (
    *(("date", day) for day in (*_DAYS, *_NAMED, *_MONTHS, *_SHORT)),
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
_CLOCK_STEPS = (("30 minutes", 30), ("15 minutes", 15), ("10 minutes", 10), ("5 minutes", 5))
_MANY_UNITS = 128
"""Values up to which a unit is taken if none is declared."""
_FEWEST_TIMES = 30
_FEWEST_ZEROS = 10
"""Different texts from which on a clock that always shows zero minutes or seconds is taken to write zeros."""
_FEWEST_LENGTHS = 10
"""Units from one bound of a duration to the other, at least."""
_ONE_CENTURY = 50
"""Years between dates of two digits for the year, from which on some may lie a century earlier: births do."""
_SAMPLE = 50
"""Cells that a format has to read before all of them are tried."""
_OFFSET = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]+)([+-][0-9]{2}:?[0-9]{2})")


def _shape(text: str) -> str:
    """A text, or a pattern of texts, with one sign for each word and one for each number."""
    plain = re.sub("%-?[A-Zdmy]", "0", re.sub("%[bBp]", "a", text))
    return re.sub("[0-9]+", "0", re.sub("[A-Za-z]+", "a", plain))


@cache
def _formats_like(shape: str) -> Sequence[MomentFormat]:
    return [MomentFormat(*form) for form in _FORMATS if _shape(form[1]) == shape]


def moment_guess(spelt: Sequence[str], reach: Reach) -> Guess | None:
    """The common format of all texts; no format if two fit that order day and month differently."""
    if not all(any(c.isdigit() for c in text) for text in spelt[:_SAMPLE]):
        return None
    # A fraction of a second is cut off, and an offset from UTC in ISO 8601 is dropped where it isn't UTC's.
    texts = [re.sub(r"(:[0-9]{2})\.[0-9]+(?=Z|[+-][0-9]{2}:?[0-9]{2}$|$)", r"\1", text) for text in spelt]
    if any((found := _OFFSET.fullmatch(text)) and found[2] != "+00:00" for text in texts):
        texts = [_OFFSET.sub(r"\1", text) for text in texts]
    few, all_ = pa.array(texts[:_SAMPLE], pa.string()), pa.array(texts, pa.string())
    different = len(set(texts))
    able = [
        form
        for form in _formats_like(_shape(texts[0]))
        if (different >= _FEWEST_ZEROS or ":00" not in form.pattern.replace("+00:00", ""))
        and form.fits(few)
        and form.fits(all_)
    ]
    if not able:
        return None
    form, *others = able
    kind, pattern = form.kind, form.pattern
    step = _step(form.read(all_), different) if kind != "date" and "%M" in pattern else {}
    if kind == "time":
        return {"type": "time"} | _format(kind, pattern) | step
    years = _years(form, all_)
    unsure = "%y" in pattern and int(max(years)) - int(min(years)) > _ONE_CENTURY
    if unsure or any(_order(other.pattern) != _order(pattern) for other in others):
        return {"type": kind, "min": None, "max": None, "format": None}
    parts: Guess = {"parts": ["hour", "weekday"]} if kind == "datetime" else {}
    return {"type": kind, **_whole_years(years, spelt, reach), **_format(kind, pattern), **parts, **step}


def _step(moments: Moments, different: int) -> Guess:
    """The longest step at which all moments lie, of those longer than a minute; none of a few moments."""
    minutes = moments.astype("M8[m]").astype(np.int64)
    whole = bool((moments == moments.astype("M8[m]")).all()) and different >= _FEWEST_ZEROS
    found = next((name for name, size in _CLOCK_STEPS if whole and not (minutes % size).any()), None)
    return {} if found is None else {"step": found}


def duration_guess(spelt: Sequence[str], reach: Reach) -> Guess | None:
    """Lengths of time in ISO 8601, or on a clock that passes 24 hours, and round bounds; None for others."""
    form = "HH:MM:SS" if spelt[0].count(":") == 2 else "iso"
    if form == "iso" and not spelt[0].lstrip("+-").startswith("P"):
        return None
    seconds = duration.read_durations(form, pa.array(spelt, pa.string()))
    if not (np.abs(seconds) < LARGEST).all() or (form != "iso" and seconds.max() < duration.UNITS["day"]):
        return None
    bounds: list[str | None] = [None, None]
    if ends := reach.ends(seconds.tolist(), spelt):
        low, high = ends
        size = next((s for s in reversed(duration.UNITS.values()) if high - low >= _FEWEST_LENGTHS * s), 1)
        round_ = rounded(Decimal(floor(low / size)), Decimal(ceil(high / size)))
        bounds = [duration.write_duration(form, int(end) * size) for end in round_]
    notation: Guess = {} if form == "iso" else {"format": form}
    return {"type": "duration", "min": bounds[0], "max": bounds[1], **notation}


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
    ends = reach.ends(years, spelt)
    return {"min": f"{ends[0]}-01-01", "max": f"{ends[1]}-12-31"} if ends else {"min": None, "max": None}


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
