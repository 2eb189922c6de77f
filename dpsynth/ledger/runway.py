"""How long a cap lasts: how many more releases like the last one fit, and when they are due.

Invariant: a forecast, made of the account and the calendar alone. Nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from dpsynth.domain.slices import Slice
from dpsynth.ledger.balance import Balance, ReleaseEntry

FARTHEST = 500
"""No more than so many releases are given dates."""

_GAPS = 12
Ticks = Callable[[int], Sequence[date]]
"""The dates of the next so many runs of a schedule."""


@dataclass(frozen=True)
class Runway:
    """What the cap still allows.

    Attributes:
        like: the last release of the account that counts; the forecast is of more like it.
        fits: how many more fit.
        apart: whether those are of further parts of the table, which cost no more than the dearest part
            does already; there is no end of them then, and ``fits`` is how many more releases of the
            parts that were released before fit.
        every: days from one release to the next: the mean over the last dozen; None where a schedule says
            when, or where there have not been two releases on two days.
        due: when the next are due, the first that does not fit included; FARTHEST of them at most.
    """

    like: ReleaseEntry
    fits: int
    apart: bool
    every: float | None
    due: tuple[date, ...]

    @property
    def last(self) -> date | None:
        """When the last that fits is due; None where none fits, or nobody can say."""
        return self.due[self.fits - 1] if 0 < self.fits <= len(self.due) else None

    @property
    def refused(self) -> date | None:
        """When the first that does not fit is due; None where nobody can say."""
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
    apart = like.part is not None and like.parallel and _fits_apart(account, like, like.part)
    wanted = min(fits + 1, FARTHEST)
    if ticks is not None:
        return Runway(like, fits, apart, None, tuple(ticks(wanted)))
    every = _every([r.created for r in counted])
    return Runway(like, fits, apart, every, _dates(like.created, every, today, wanted))


def _fits(account: Balance, like: ReleaseEntry) -> int:
    """Each reserves as much as the last did, and in the end counts for as much as it does."""
    if account.fits(like.reserved) < 1:
        return 0
    one_more = replace(like, state="reserved", cost=like.reserved, part=None, parallel=False)
    return 1 + replace(account, releases=(*account.releases, one_more)).fits(like.cost)


def _fits_apart(account: Balance, like: ReleaseEntry, part: Slice) -> bool:
    """Whether a release like the last fits that is of a part which overlaps with none before."""
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
