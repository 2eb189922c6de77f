"""Slices of a table: the rows that a release is about, by the value of one column.

Invariant: a slice is a public fact, made of the config and the calendar, never of data. A cell
lies in at most one of several slices that do not overlap, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Context

_DAY = timedelta(days=1)
# A year also as programs write it that keep whole numbers as decimals.
_SPAN = re.compile(r"([0-9]{4})(?:\.0+|-([0-9]{2})(?:-([0-9]{2}))?|-?Q([1-4])|-?W([0-9]{2}))?")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LONGEST = 20
# Nothing traps: whatever a text holds has a value.
_NUMBERS = Context(prec=100, traps=[])


@dataclass(frozen=True)
class Slice:
    """The rows whose column lies in an interval of dates, or has one value.

    Attributes:
        column: the column that decides.
        label: its name: "2026", "2026-Q1", "2026-03", "2026-W07", "2026-03-14", or the value itself.
        start: first day; None where the label is a value.
        stop: the day after the last; None where the label is a value.

    Raises:
        ValueError: the label is empty, one of the days is missing, or there is none between them.
    """

    column: str
    label: str
    start: date | None = None
    stop: date | None = None

    def __post_init__(self) -> None:
        if not self.label.strip():
            raise ValueError("a slice has a label")
        if (self.start is None) != (self.stop is None):
            raise ValueError("a slice has both a first day and a day after the last, or neither")
        if self.start is not None and self.stop is not None and self.start >= self.stop:
            raise ValueError("a slice starts before it stops")

    def overlaps(self, other: Slice) -> bool:
        """True if a row may be in both; only slices by the same column can be disjoint."""
        if self.column != other.column:
            return True
        if self.start is None and other.start is None:
            return value_of(self.label) == value_of(other.label)
        if self.start is None or self.stop is None or other.start is None or other.stop is None:
            return True
        return self.start < other.stop and other.start < self.stop

    def holds(self, cell: str) -> bool:
        """True if a row is in the slice whose cell of the column has this text.

        A date that is coarser than the slice (a month, where the slice is a day) is not in it.
        """
        if self.start is None or self.stop is None:
            return value_of(cell) == value_of(self.label)
        span = span_of(cell.strip())
        return span is not None and self.start <= span[0] and span[1] <= self.stop

    def to_json(self) -> dict[str, object]:
        days = {"start": self.start, "stop": self.stop}
        days_given = {key: day.isoformat() for key, day in days.items() if day is not None}
        return {"column": self.column, "label": self.label, **days_given}

    @staticmethod
    def from_json(values: Mapping[str, object]) -> Slice:
        """The slice that ``to_json`` wrote.

        Raises:
            KeyError, ValueError: the values are none of a slice.
        """
        start, stop = (
            None if values.get(key) is None else date.fromisoformat(str(values[key]))
            for key in ("start", "stop")
        )
        return Slice(str(values["column"]), str(values["label"]), start, stop)


def span_of(text: str) -> tuple[date, date] | None:
    """First day and the day after the last of a year, quarter, month, ISO week or day; None for other texts.

    >>> span_of("2026-Q4")
    (datetime.date(2026, 10, 1), datetime.date(2027, 1, 1))
    >>> span_of("2026-W01")
    (datetime.date(2025, 12, 29), datetime.date(2026, 1, 5))
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    year, month, day, quarter, week = (None if part is None else int(part) for part in found.groups())
    assert year is not None
    try:
        if week is not None:
            start = date.fromisocalendar(year, week, 1)
            return start, start + 7 * _DAY
        if day is not None and month is not None:
            start = date(year, month, day)
            return start, start + _DAY
        if quarter is not None:
            return _months(year, 3 * quarter - 2, 3)
        return _months(year, 1, 12) if month is None else _months(year, month, 1)
    except (ValueError, OverflowError):
        return None


def label_of(every: str, day: date) -> str:
    """The label of the day, week, month, quarter or year that a day is in.

    >>> label_of("quarter", date(2026, 3, 14)), label_of("week", date(2026, 1, 1))
    ('2026-Q1', '2026-W01')
    """
    year, week, _ = day.isocalendar()
    return {
        "day": f"{day:%Y-%m-%d}",
        "week": f"{year:04}-W{week:02}",
        "month": f"{day:%Y-%m}",
        "quarter": f"{day:%Y}-Q{(day.month + 2) // 3}",
        "year": f"{day:%Y}",
    }[every]


def label_within(every: str, text: str) -> str:
    """The label of the day, week, month, quarter or year that a date lies in; "" where it lies in none.

    >>> label_within("month", "2026-03-14"), label_within("month", "2026"), label_within("month", "soon")
    ('2026-03', '', '')
    """
    span = span_of(text)
    if span is None:
        return ""
    first, last = (label_of(every, day) for day in (span[0], span[1] - _DAY))
    return first if first == last else ""


def _months(year: int, first: int, number: int) -> tuple[date, date]:
    years, month = divmod(first - 1 + number, 12)
    return date(year, first, 1), date(year + years, month + 1, 1)


def value_of(text: str) -> str:
    """The canonical text of a value: without blanks around it, and 7 = 007 = 7.0.

    >>> value_of(" 007.50 ")
    '7.5'
    """
    plain = text.strip()
    if not _NUMBER.fullmatch(plain):
        return plain
    number = _NUMBERS.create_decimal(plain).normalize(_NUMBERS)
    if number == 0:
        return "0"
    return format(number, "f") if abs(number.adjusted()) < _LONGEST else str(number)
