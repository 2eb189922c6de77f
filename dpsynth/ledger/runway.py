"""The runway of a cap: the number of further releases like the last one that fit, and their dates.

Invariant: it is a forecast, made of the account and the calendar alone. No decision depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from dpsynth.columns.slices import Slice
from dpsynth.ledger.balance import Balance, ReleaseEntry

FARTHEST = 500
"""Largest number of releases that are given dates."""

_GAPS = 12
Ticks = Callable[[int], Sequence[date]]
"""The dates of the next so many runs of a schedule."""


@dataclass(frozen=True)
class Runway:
    """The releases that the cap still allows.

    Attributes:
        like: the last release of the account that counts; the forecast is of releases like it.
        fits: number of further releases that fit.
        disjoint: true if further releases are of new, disjoint parts of the table, which cost no more than
            the dearest part does already. Their number has no limit then, and ``fits`` is the number of
            further releases of the parts that were released before.
        every: days from one release to the next: the mean over the last dozen; None where a schedule gives
            the dates, or where there have not been two releases on two days.
        due: dates of the next releases, the first that does not fit included; FARTHEST of them at most.
    """

    like: ReleaseEntry
    fits: int
    disjoint: bool
    every: float | None
    due: tuple[date, ...]

    @property
    def last(self) -> date | None:
        """The date of the last release that fits; None where none fits, or where it has no date."""
        return self.due[self.fits - 1] if 0 < self.fits <= len(self.due) else None

    @property
    def refused(self) -> date | None:
        """The date of the first release that does not fit; None where it has no date."""
        return self.due[self.fits] if self.fits < len(self.due) else None


def runway(account: Balance, today: date, ticks: Ticks | None = None) -> Runway | None:
    """The forecast of an account; None where no release of it counts for anything.

    Args:
        account: the account.
        today: nothing is due before it.
        ticks: dates by a schedule; left out, releases go on as often as they came.
    """
    counted = [r for r in account.releases if r.state != "abandoned" and r.reserved.amount.epsilon > 0]
    if not counted:
        return None
    like = counted[-1]
    fits = _fits(account, like)
    disjoint = like.counted.part is not None and _fits_disjoint(account, like, like.counted.part)
    wanted = min(fits + 1, FARTHEST)
    if ticks is not None:
        return Runway(like, fits, disjoint, None, tuple(ticks(wanted)))
    every = _every([r.created for r in counted])
    return Runway(like, fits, disjoint, every, _dates(like.created, every, today, wanted))


def _fits(account: Balance, like: ReleaseEntry) -> int:
    """The number of releases that fit if each reserves and in the end costs as much as the last one."""
    if account.fits(like.reserved) < 1:
        return 0
    one_more = replace(like, state="reserved", cost=like.reserved, part=None, parallel=False, changed=None)
    return 1 + replace(account, releases=(*account.releases, one_more)).fits(like.cost)


def _fits_disjoint(account: Balance, like: ReleaseEntry, part: Slice) -> bool:
    """True if a release like the last one fits, of a part that overlaps with none before."""
    stops = [r.part.stop for r in account.releases if r.part is not None and r.part.stop is not None]
    if part.stop is None:
        labels = {r.part.label for r in account.releases if r.part is not None}
        later = Slice(part.column, max(labels, key=len) + "~")
    elif max(stops) < date.max:
        later = Slice(part.column, "later", max(stops), date.max)
    else:
        return False
    return account.allows(like.reserved, later)


def _every(created: Sequence[date]) -> float | None:
    recent = created[-(_GAPS + 1) :]
    days = (recent[-1] - recent[0]).days
    return days / (len(recent) - 1) if days > 0 else None


def _dates(last: date, every: float | None, today: date, wanted: int) -> tuple[date, ...]:
    if every is None:
        return ()
    first = max(every, float((today - last).days))
    days = (first + i * every for i in range(wanted))
    return tuple(last + timedelta(days=ahead) for ahead in days if ahead <= (date.max - last).days)
