"""Occasions of releases: a slice of the table, a tick of the schedule, or none.

Invariant: an occasion follows from config, instant and label alone, never from data or earlier
releases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from dpsynth.columns.slices import Slice
from dpsynth.config.grammar import Spec
from dpsynth.config.period import Period, Schedule, last_whole, slice_named, slice_of, ticks
from dpsynth.errors import ConfigError

FARTHEST = 10_000
"""Largest number of runs that are looked ahead."""

_CENTURY = timedelta(days=36_525)

_LOOK_BACK = (timedelta(days=1), timedelta(days=40), timedelta(days=400), timedelta(days=20_000))


@dataclass(frozen=True)
class Occasion:
    """The occasion of a release. An occasion with a label is released once.

    Attributes:
        label: "2026-03", a value, or the ISO minute of a tick; None if each run is a new release.
        part: the slice whose rows are read; None for the whole table.
    """

    label: str | None
    part: Slice | None


def occasion_of(spec: Spec, now: datetime, label: str | None = None) -> Occasion:
    """The occasion of a run.

    Args:
        spec: the checked config.
        now: the start of the run, with a time zone.
        label: the label of a slice, as given with --period. Left out: the last slice that has ended.

    Raises:
        ConfigError: the label is missing, has no use, or names no slice that has ended.
    """
    period, schedule = spec.period, spec.schedule
    if period is None:
        if label is not None:
            raise ConfigError(
                "--period has no use with this config, which has no key period: give one, such as "
                "period: {column: visited, every: month}, or leave out --period."
            )
        if schedule is None:
            return Occasion(None, None)
        return Occasion(_minute(latest_tick(schedule, now)), None)
    today = now.astimezone(UTC if schedule is None else schedule.zone).date()
    if label is not None:
        part = slice_named(period, label, today)
    elif period.every == "value":
        raise ConfigError(
            f"--period is missing: with period.every: value, say which value of the column {period.column} "
            "this release is about."
        )
    else:
        part = last_whole(period, today)
    return Occasion(part.label, part)


def next_ticks(schedule: Schedule, after: datetime, count: int) -> list[datetime]:
    """The first ticks after an instant, in the schedule's time zone."""
    return list(islice(ticks(schedule, after), count))


def latest_tick(schedule: Schedule, now: datetime) -> datetime:
    """The last tick at or before an instant, in the schedule's time zone.

    The search goes forward from ever earlier starts, so the result is always one of ``ticks``.
    """
    # Python compares two times of one zone by their clock times, which repeat an hour in autumn.
    instant = now.astimezone(UTC)
    for back in _LOOK_BACK:
        past = list(takewhile(lambda tick: tick <= instant, ticks(schedule, instant - back)))
        if past:
            return past[-1]
    raise ConfigError("schedule.cron has had no tick for 50 years; correct it.")


def next_releases(spec: Spec, after: datetime, count: int, released: Collection[str] = ()) -> list[datetime]:
    """Instants of the next unreleased occasions, which a budget has to last for.

    Args:
        spec: the config. Its schedule gives the instants; without a schedule its period does, as each
            slice is released when it has ended.
        after: the instant after which occasions count.
        count: number of occasions.
        released: labels of occasions that were released, which cost nothing again.

    Returns:
        The instants. They are fewer without schedule and period, or beyond the next ``FARTHEST`` runs
        and 100 years.
    """
    seen, found = set(released), list[datetime]()
    end = after.astimezone(UTC) + _CENTURY
    for moment, label in islice(_to_come(spec, after), FARTHEST):
        if len(found) >= count or moment > end:
            break
        if label not in seen:
            seen.add(label)
            found.append(moment)
    return found


def _to_come(spec: Spec, after: datetime) -> Iterator[tuple[datetime, str]]:
    """Instants of expected runs, with the labels of their occasions."""
    period, schedule = spec.period, spec.schedule
    if period is None:
        if schedule is not None:
            yield from ((tick, _minute(tick)) for tick in ticks(schedule, after))
    elif period.every != "value":
        moments = _midnights(period, after) if schedule is None else ticks(schedule, after)
        yield from ((moment, last_whole(period, moment.date()).label) for moment in moments)


def _midnights(period: Period, after: datetime) -> Iterator[datetime]:
    """Instants, in UTC, at which the next slices have ended."""
    day = after.astimezone(UTC).date()
    while True:
        stop = slice_of(period, day).stop
        assert stop is not None
        day = stop
        yield datetime(day.year, day.month, day.day, tzinfo=UTC)


def _minute(tick: datetime) -> str:
    return tick.isoformat(timespec="minutes")
