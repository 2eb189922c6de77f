"""The schedule of a release: a cron line and a time zone.

Invariant: every schedule has a next tick. Ticks are instants in order, none twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from dpsynth.config.scalars import Text
from dpsynth.config.section import Section, nearest, refused

_NAMES = re.compile("JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|SUN|MON|TUE|WED|THU|FRI|SAT|L", re.I)


@dataclass(frozen=True)
class _Cron(Text):
    """Five fields that croniter and Prefect read alike, with a tick still to come."""

    def check(self, value: object) -> str:
        """The fields."""
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
        """Its name."""
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
        """The time zone."""
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
