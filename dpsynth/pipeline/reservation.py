"""The request of a release to the ledger: its occasion, its table, and the reservation of its whole budget.

Invariant: a reservation is public, and at least the cost of the release: what is charged keeps to the plan.
An occasion (a slice of the table, a tick of the schedule, or none) follows from config, instant and label
alone, never from data or earlier releases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import islice, takewhile

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.measures import PURE, measure_named
from dpsynth.accounting.slices import Slice
from dpsynth.config import Spec
from dpsynth.config.compiled import CompiledSpec
from dpsynth.config.files.place import resolved
from dpsynth.config.period import Period, Schedule, last_whole, slice_named, slice_of, ticks
from dpsynth.errors import ConfigError
from dpsynth.ledger.balance import BETWEEN, Reservation, Table
from dpsynth.plan.plan import Plan

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

    The schedule gives the instants; without a schedule the period does, as each slice is released when it has
    ended. Occasions whose labels were released cost nothing again.

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
    period, schedule = spec.period, spec.schedule
    if period is None:
        if schedule is not None:
            yield from ((tick, _minute(tick)) for tick in ticks(schedule, after))
    elif period.every != "value":
        moments = _midnights(period, after) if schedule is None else ticks(schedule, after)
        yield from ((moment, last_whole(period, moment.date()).label) for moment in moments)


def _midnights(period: Period, after: datetime) -> Iterator[datetime]:
    day = after.astimezone(UTC).date()
    while True:
        stop = slice_of(period, day).stop
        assert stop is not None
        day = stop
        yield datetime(day.year, day.month, day.day, tzinfo=UTC)


def _minute(tick: datetime) -> str:
    return tick.isoformat(timespec="minutes")


def table_of(spec: Spec) -> Table:
    """The private table, or the linked ones, as the ledger knows it: links in its path are followed."""
    paths, section = [resolved(own.path) for own in spec.sources if own.path is not None], spec.ledger
    return Table(section.dataset, BETWEEN.join(paths), spec.release, section.other_people)


def reservation_of(compiled: CompiledSpec, plan: Plan, occasion: Occasion, release_id: str) -> Reservation:
    """The reservation of a release's whole budget."""
    spec, table = compiled.spec, table_of(compiled.spec)
    return Reservation(
        release_id=release_id,
        dataset=table.dataset,
        unit=plan.neighbours.unit,
        neighbours=plan.neighbours.relation,
        cap=Amount(Fraction(spec.ledger.cap.epsilon), Fraction(spec.ledger.cap.delta)),
        filter=None if spec.ledger.filter == "auto" else measure_named(spec.ledger.filter),
        # Only (epsilon, delta) is amplified by a sample: a new account adds these up.
        suits=plan.measure if plan.sampling is None else PURE,
        cost=plan.cost,
        release=spec.release,
        spec=compiled.whole_fingerprint,
        occasion=occasion.label,
        part=occasion.part,
        parallel=spec.period is not None and spec.period.composition == "parallel",
        source=table.source,
        other_people=table.other_people,
        cap_declared="cap" in spec.ledger.model_fields_set,
        audiences=tuple((t.audience, t.epsilon) for t in plan.tiers if t.audience),
        config=compiled.digest,
        plan=plan.digest,
    )
