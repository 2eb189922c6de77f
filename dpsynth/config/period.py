"""Times of releases: the period, the slice of the table that a release is about, and the schedule.

Invariant: the slice follows from the config, the clock and the command line alone. Every schedule has a next
tick; ticks are instants in order, none twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Annotated, Literal, get_args
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from dpsynth.accounting.slices import Slice, label_of, span_of, value_of
from dpsynth.columns.section import Choice, ColumnName, Flag, Section, Text, refused
from dpsynth.errors import ConfigError, nearest

_NAMES = re.compile("JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|SUN|MON|TUE|WED|THU|FRI|SAT|L", re.I)


@dataclass(frozen=True)
class _Cron(Text):
    """Five fields that croniter and Prefect read alike, with a tick still to come."""

    def check(self, value: object) -> str:
        from croniter import CroniterBadDateError, CroniterError, croniter

        fields = super().check(value)
        if not all(_NAMES.fullmatch(word) for word in re.findall("[A-Za-z]+", fields)):
            raise refused(f"must be {self.words}; of letters it may hold names such as MON and JAN, and L")
        try:
            croniter(fields, datetime(2000, 1, 1)).get_next(datetime)
        except CroniterBadDateError:
            raise refused("never comes: no month that it names has such a day") from None
        except (CroniterError, ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise refused(
                f"must be {self.words}: minute 0-59, hour 0-23, day 1-31, month 1-12, day of the week 0-7"
            ) from None
        return fields


@dataclass(frozen=True)
class _Zone(Text):
    """A time zone that this machine knows."""

    def check(self, value: object) -> str:
        name = super().check(value)
        if name not in _zones():
            raise refused(f"must be {self.words}; '{name}' is not known here{nearest(name, _zones())}")
        return name


@cache
def _zones() -> frozenset[str]:
    """Names that mean the same on every machine."""
    return frozenset(available_timezones() - {"localtime", "Factory"})


_FIELD = "[0-9A-Za-z*/,#-]+"

_FIELDS = _Cron("five cron fields in quotes, such as '0 3 1 * *'", f"{_FIELD}( +{_FIELD}){{4}}")

_ZONE = _Zone("the name of a time zone, such as Europe/Paris or UTC", r"[A-Za-z0-9_+/-]+")


class Schedule(Section):
    """The schedule of a release."""

    cron: Annotated[str, _FIELDS] = Field(
        description="Minute, hour, day of month, month, day of week, by the clock of the time zone. A time "
        "that the clock skips in spring comes an hour earlier; one that it shows twice in autumn, the first "
        "time."
    )
    timezone: Annotated[str, _ZONE] = Field(
        description="Time zone of the schedule, such as Europe/Paris. A period ends at its midnight too."
    )

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)


def ticks(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """The ticks after an instant, in order and without end, each in the schedule's time zone.

    The cron line runs on a clock without summer time. Its times are then read as times of the time zone. The
    ticks don't depend on the start.
    """
    from croniter import croniter

    zone = schedule.zone
    clock = croniter(schedule.cron, after.astimezone(zone).replace(tzinfo=None))
    last = after.astimezone(UTC)
    while True:
        shown: datetime = clock.get_next(datetime)
        # A time that occurs twice means its first occurrence. A skipped time is moved earlier by the gap:
        # Prefect runs it then or later, by the version of Python, and must not find the occasion before it.
        tick = min(shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if tick > last:
            last = tick
            yield tick.astimezone(zone)


Every = Literal["day", "week", "month", "quarter", "year", "value"]

Composition = Literal["sequential", "parallel"]

_EXAMPLES: Mapping[str, str] = {
    "day": "2026-03-14",
    "week": "2026-W07",
    "month": "2026-03",
    "quarter": "2026-Q1",
    "year": "2026",
}

LONGEST_LABEL = 200
"""Longest value that names a slice, in characters."""


class Period(Section):
    """The slice of the table that a release is about: the rows of one month, say."""

    column: ColumnName = Field(
        description="Column that says which slice a row is in: dates, or with every: value any texts or "
        "numbers. It need not be among columns. A row whose cell is no date is in no slice."
    )
    every: Annotated[Every, Choice(get_args(Every))] = Field(
        description="Length of a slice; a week is Monday to Sunday. value: all rows with one value of the "
        "column, which is named with --period. Otherwise a run is about the last slice that has ended, or "
        "about the one that --period names."
    )
    composition: Annotated[Composition, Choice(get_args(Composition))] = Field(
        default="sequential",
        description="sequential: the costs of all slices add up. parallel: the slice that costs most counts, "
        "since each is about other units. That holds only if all rows of one unit, of all time, lie in one "
        "slice. A row does; for persons you declare it here, and nothing can check it.",
    )


class Reuse(Section):
    """Earlier answers of the dataset that serve as evidence. They were paid for, so reuse is free."""

    same_period: Annotated[bool, Flag()] = Field(
        default=False,
        description="true: answers about the same slice from earlier releases are averaged in. Only sound if "
        "the slice's rows have not changed since.",
    )
    earlier_periods: Annotated[bool, Flag()] = Field(
        default=False,
        description="true: answers about the last 24 earlier slices go into the model, at a discount by how "
        "far single columns have changed, and choices of marginals are compared with them.",
    )


def slice_of(period: Period, day: date) -> Slice:
    """The slice of the calendar that a day is in; not for ``every: value``."""
    label = label_of(period.every, day)
    span = span_of(label)
    assert span is not None
    return Slice(period.column, label, *span)


def last_whole(period: Period, today: date) -> Slice:
    """The last slice that ended before a day began; not for ``every: value``."""
    start = slice_of(period, today).start
    assert start is not None
    return slice_of(period, start - timedelta(days=1))


def slice_named(period: Period, label: str, today: date) -> Slice:
    """The slice that a label names.

    Args:
        today: today's date in the time zone of the schedule.

    Raises:
        ConfigError: the label names no slice, or one that has not ended (a later run would read more rows).
    """
    if period.every == "value":
        value = value_of(label)
        if not value or not value.isprintable() or len(value) > LONGEST_LABEL:
            raise ConfigError(
                f"--period must be one value of the column {period.column}, a text of 1 to {LONGEST_LABEL} "
                "printable characters."
            )
        return Slice(period.column, value)
    example = _EXAMPLES[period.every]
    span = span_of(label)
    if span is None or slice_of(period, span[0]).label != label:
        shown = f"'{label}'" if label.isprintable() and len(label) <= LONGEST_LABEL else "what is given"
        raise ConfigError(
            f"--period must name a {period.every}, such as {example}, since the config has period.every: "
            f"{period.every}; {shown} is none."
        )
    if span[1] > today:
        raise ConfigError(
            f"--period {label} has not ended: its last day is {span[1] - timedelta(days=1)}, and today is "
            f"{today}. A period is released once, when all of its rows are there. Wait, or name an earlier "
            "one."
        )
    return Slice(period.column, label, *span)
