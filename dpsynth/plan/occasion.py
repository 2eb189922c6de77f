"""What a run is the release of: a slice of the table, a tick of the schedule, or nothing in particular.

Invariant: the same config at the same instant with the same label is the same occasion. No data,
and nothing of what was released before, has a part in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from dpsynth.config.grammar import Spec
from dpsynth.config.period import Period, last_whole, slice_named, slice_of
from dpsynth.config.schedule import Schedule, ticks
from dpsynth.domain.slices import Slice
from dpsynth.errors import ConfigError

FARTHEST = 10_000
"""Most runs that are looked ahead."""

_CENTURY = timedelta(days=36_525)

_LOOK_BACK = (timedelta(days=1), timedelta(days=40), timedelta(days=400), timedelta(days=20_000))


@dataclass(frozen=True)
class Occasion:
    """What a run is the release of; an occasion with a label is released once.

    Attributes:
        label: "2026-03", a value, or the ISO minute of a tick; None where each run is a new release.
        part: the slice whose rows are read; None for the whole table.
    """

    label: str | None
    part: Slice | None


def occasion_of(spec: Spec, now: datetime, label: str | None = None) -> Occasion:
    """The occasion of a run.

    Args:
        spec: the checked config.
        now: the instant at which it starts, with a time zone.
        label: of a slice, as given with --period. Left out: the last slice that has ended.

    Raises:
        ConfigError: the label is needed, has no use, or names no slice that has ended.
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

    It is found by going forward from ever earlier starts, so that it can't differ from ``ticks``.
    """
    # Two times of one zone would be compared by what its clock shows, which repeats an hour in autumn.
    instant = now.astimezone(UTC)
    for back in _LOOK_BACK:
        past = list(takewhile(lambda tick: tick <= instant, ticks(schedule, instant - back)))
        if past:
            return past[-1]
    raise ConfigError("schedule.cron has had no tick for 50 years; correct it.")


def next_releases(spec: Spec, after: datetime, count: int, released: Collection[str] = ()) -> list[datetime]:
    """When the next so many occasions come that have not been released: what a budget has to last for.

    Args:
        spec: its schedule sets the pace; without one its period does, each slice being released when
            it has ended.
        after: from when on.
        count: how many are wanted.
        released: labels of occasions that were released already, which cost nothing again.

    Returns:
        Their instants; fewer where nothing sets a pace, or where they are not within the next
        ``FARTHEST`` runs and 100 years.
    """
    known, found = set(released), list[datetime]()
    end = after.astimezone(UTC) + _CENTURY
    for moment, label in islice(_to_come(spec, after), FARTHEST):
        if len(found) >= count or moment > end:
            break
        if label not in known:
            known.add(label)
            found.append(moment)
    return found


def _to_come(spec: Spec, after: datetime) -> Iterator[tuple[datetime, str]]:
    """When runs are to be expected, and the labels of their occasions."""
    period, schedule = spec.period, spec.schedule
    if period is None:
        if schedule is not None:
            yield from ((tick, _minute(tick)) for tick in ticks(schedule, after))
    elif period.every != "value":
        moments = _midnights(period, after) if schedule is None else ticks(schedule, after)
        yield from ((moment, last_whole(period, moment.date()).label) for moment in moments)


def _midnights(period: Period, after: datetime) -> Iterator[datetime]:
    """When the slices to come have ended, in UTC."""
    day = after.astimezone(UTC).date()
    while True:
        stop = slice_of(period, day).stop
        assert stop is not None
        day = stop
        yield datetime(day.year, day.month, day.day, tzinfo=UTC)


def _minute(tick: datetime) -> str:
    return tick.isoformat(timespec="minutes")
