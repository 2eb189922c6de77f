"""The ledger as one page for its owner: ``dpsynth ledger report``.

Invariant: the page shows every name and reason as text, whatever it holds. It runs no script and fetches
nothing; its content security policy forbids both. Everything on it is in the ledger, which holds nothing
private; no bundle holds the page. On every day the line of its picture shows the sum that the ledger counted
on that day, a reservation in full until its release had ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import ceil, floor, isfinite, log10

from markupsafe import Markup, escape

from dpsynth.accounting.amount import digits
from dpsynth.ledger import views
from dpsynth.ledger.balance import Balance, CapChange, Runway
from dpsynth.ledger.filters import bound, total_of
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.views import AccountView, Statement, share_in_words
from dpsynth.page_templates import environment

_SHORTEST = 30
"""Least number of days of a picture."""

_AHEAD = 1.5
"""Largest ratio of days ahead to days behind at which the picture shows every release that fits."""

_DOTS = 60

_HEADROOM = 1.12

_FAR = 3
"""Largest ratio of a former cap to the highest sum, and to today's cap, at which the picture shows it."""

_LEVELS = 5

_TICKS = 7

_DAYS = (1, 2, 7, 14)

_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)


@dataclass(frozen=True)
class Mark:
    """A position along one side, from 0 to 100, and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Dot:
    """A point of the picture, from the left and from the bottom, and its label."""

    across: float
    up: float
    label: str


@dataclass(frozen=True)
class Chart:
    """A picture 100 wide and 100 high, of shares of today's cap.

    Attributes:
        line: path of the counted sum.
        area: the area below the line.
        ahead: path of the sum if releases go on like the last one; "" without a forecast.
        cap: path of the cap.
        cap_at: height of today's cap; None where it lies above the picture.
        today: position of today, from the left.
        ticks, levels: marks along the bottom and along the side.
        dots: one a release, where there are not too many.
        refused: the first release that would not fit, where the picture reaches so far.
    """

    line: str
    area: str
    ahead: str
    cap: str
    cap_at: float | None
    today: float
    ticks: tuple[Mark, ...]
    levels: tuple[Mark, ...]
    dots: tuple[Dot, ...]
    refused: Mark | None


def chart(view: AccountView, today: date) -> Chart | None:
    """The picture of an account; None where there is nothing to draw: no release, or a cap of nothing."""
    account = view.account
    counted = _counted(account)
    caps = [(change.created, _relative(change, account)) for change in account.caps]
    if not account.releases or not all(isfinite(share) for _, share in counted + caps):
        return None
    now = max(today, counted[-1][0], caps[-1][0])
    used = counted[-1][1]
    until = _until(view.runway, account.opened, now)
    ahead = _ahead(view, used, until)
    scale = _Scale(
        account.opened, until, _top(max(share for _, share in counted + ahead), max(c for _, c in caps))
    )
    line = scale.steps([(account.opened, 0.0), *counted, (now, used)])
    cap = scale.steps([*caps, (until, caps[-1][1])])
    refused = None if view.runway is None else view.runway.refused
    return Chart(
        line=line,
        area=f"{line}V100H{scale.across(account.opened):.3f}Z",
        ahead=scale.steps([(now, used), *ahead]) if ahead else "",
        cap=cap,
        cap_at=scale.up(1.0) if scale.top >= 1.0 else None,
        today=scale.across(now),
        ticks=tuple(Mark(scale.across(day), label) for day, label in _ticks(account.opened, until)),
        levels=tuple(Mark(scale.up(level), _percent(level)) for level in _levels(scale.top)),
        dots=_dots(view, scale),
        refused=None if refused is None or refused > until else Mark(scale.across(refused), str(refused)),
    )


def as_of(account: Balance, day: date) -> Balance:
    """An account as it stood at the end of a day, under today's cap."""
    releases = (
        entry
        if entry.ended is not None and entry.ended <= day
        else replace(entry, state="reserved", cost=entry.reserved, ended=None)
        for entry in account.releases
        if entry.created <= day
    )
    return replace(account, releases=tuple(releases))


def _counted(account: Balance) -> list[tuple[date, float]]:
    """Shares of today's cap, from each day on which they changed."""
    days = {day for r in account.releases for day in (r.created, r.ended) if day is not None}
    return [(day, as_of(account, day).share_used) for day in sorted(days)] or [(account.opened, 0.0)]


def _relative(change: CapChange, account: Balance) -> float:
    """A cap relative to today's, in the figure of which most is used."""
    total = total_of(account.filter, [r.counted for r in account.releases])
    then, now = bound(account.filter, change.cap, change.approximate_share), account.bound
    shares = [used / most if most else used for used, most in zip(total, now, strict=True)]
    fullest = shares.index(max(shares))
    return float(then[fullest] / now[fullest]) if now[fullest] else float("inf")


def _until(forecast: Runway | None, opened: date, now: date) -> date:
    """The last day of the picture: not much more lies ahead than behind."""
    span = max((now - opened).days, _SHORTEST)
    margin = ceil(span / 12)
    due = () if forecast is None else forecast.due
    wanted = max((due[-1] - now).days, 0) + margin if due else margin
    days = wanted if wanted <= _AHEAD * span else span
    return now + timedelta(days=min(max(days, span - (now - opened).days), (date.max - now).days))


def _ahead(view: AccountView, used: float, until: date) -> list[tuple[date, float]]:
    """The sums if releases go on like the last one, for those that fit and lie within the picture."""
    forecast = view.runway
    if forecast is None or not forecast.due:
        return []
    each = 0.0 if forecast.disjoint else view.account.share_of(forecast.like.cost)
    fitting = [day for day in forecast.due[: None if forecast.disjoint else forecast.fits] if day <= until]
    steps = [(day, used + each * (i + 1)) for i, day in enumerate(fitting)]
    # Level until the first that is refused, or to the edge.
    refused = None if forecast.disjoint else forecast.refused
    last = until if refused is None or refused > until else refused
    return [*steps, (last, steps[-1][1] if steps else used)]


def _percent(level: float) -> str:
    """A level in per cent, without an exponent.

    >>> _percent(0.125), _percent(200.0), _percent(1e-5)
    ('12.5 %', '20,000 %', '0.001 %')
    """
    return f"{float(f'{100 * level:.4g}'):,f}".rstrip("0").rstrip(".") + " %"


def _top(most: float, cap: float) -> float:
    """The height of the picture: above the caps where releases come near, else just above the releases.

    A former cap far above today's is left out of the picture: it would press all else to the bottom.
    """
    if _HEADROOM * most > 0.3:
        near = cap if cap <= _FAR * max(most, 1.0) else 0.0
        return max(near, most, 1.0) * _HEADROOM
    step = _step(_HEADROOM * most or 1.0, 4)
    return step * ceil(_HEADROOM * most / step) if most else _HEADROOM


def _step(most: float, number: int) -> float:
    """The least step of 1, 2, 5, 10 ... of which so many reach a height."""
    size: float = 10.0 ** floor(log10(most / number))
    return next(factor * size for factor in (1, 2, 5, 10) if factor * size * number >= most * (1 - 1e-9))


def _levels(top: float) -> Iterator[float]:
    step = _step(top, _LEVELS)
    return (i * step for i in range(floor(top / step + 1e-9) + 1))


@dataclass(frozen=True)
class _Scale:
    """Positions of days and of shares in the picture."""

    opened: date
    until: date
    top: float

    def across(self, day: date) -> float:
        whole = (self.until - self.opened).days
        margin = 0.02 * whole
        return 100 * ((day - self.opened).days + margin) / (whole + margin)

    def up(self, share: float) -> float:
        return 100 * share / self.top

    def steps(self, points: list[tuple[date, float]]) -> str:
        """A path that keeps its height until the day on which it changes."""
        day, share = points[0]
        rest = (f"H{self.across(at):.3f}V{100 - self.up(to):.3f}" for at, to in points[1:])
        return f"M{self.across(day):.3f} {100 - self.up(share):.3f}{''.join(rest)}"


def _dots(view: AccountView, scale: _Scale) -> tuple[Dot, ...]:
    if len(view.lines) > _DOTS:
        return ()
    return tuple(
        Dot(
            scale.across(line.entry.created),
            scale.up(as_of(view.account, line.entry.created).share_used),
            f"{line.entry.occasion or line.entry.release_id}: {share_in_words(line.so_far)}",
        )
        for line in view.lines
    )


def _ticks(opened: date, until: date) -> list[tuple[date, str]]:
    """Days, or first days of months or of years, few enough to be legible."""
    days = (until - opened).days
    step = next((n for n in _DAYS if days / n < _TICKS), None)
    if step is not None:
        found = (opened + timedelta(days=i) for i in range(0, days, step))
        return [(day, f"{day:%m-%d}") for day in found]
    months = next((n for n in _MONTHS if days / (30.4 * n) < _TICKS), _MONTHS[-1])
    first, last = (day.year * 12 + day.month - 1 for day in (opened, until))
    numbers = range(-(-first // months) * months, last + 1, months)
    starts = (date(n // 12, n % 12 + 1, 1) for n in numbers if 12 <= n < 12 * 10_000)
    shown = "%Y" if months % 12 == 0 else "%Y-%m"
    return [(day, f"{day:{shown}}") for day in starts if opened <= day <= until]


_LINES_SHOWN = 24

_LONGEST = 4.5
"""Length of the longest bar in the list of releases, in widths of a letter."""


@dataclass(frozen=True)
class Chain:
    """The state of the chain of the ledger's rows.

    Attributes:
        name: the ledger's name, without a password.
        rows: number of rows.
        head: the hash of the last row.
        problems: the faults in words; none where it is intact.
        head_file: true if the chain was compared with a head file.
    """

    name: str
    rows: int
    head: str
    problems: tuple[str, ...]
    head_file: bool


def page_of_ledger(accounts: Sequence[AccountView], book: Ledger, today: date) -> str:
    """The page of some accounts, with the chain of the whole ledger as it stands now."""
    found = book.verify()
    return ledger_html(
        accounts, Chain(book.name, found.rows, found.hash, found.problems, book.has_head_file), today
    )


def ledger_html(accounts: Sequence[AccountView], chain: Chain, today: date) -> str:
    """The page.

    Args:
        accounts: one for each dataset to show.
        chain: of all rows of the ledger.
        today: a UTC date.
    """
    pages = environment("wings/owner")
    pages.filters["share"] = views.share_in_words
    pages.filters["up"] = views.figure
    pages.filters["epsilon"] = views.epsilon_of
    pages.filters["delta"] = views.delta_of
    pages.filters["six"] = lambda value: digits(value, up=True)
    pages.filters["down"] = lambda value: digits(value, up=False)
    pages.filters["at"] = lambda value: f"{value:.2f}%"
    pages.filters["unbroken"] = unbroken
    pages.filters["rem"] = lambda value: f"{value:.2f}rem"
    shown = [_shown(view, today) for view in accounts]
    return pages.get_template("ledger.html.j2").render(
        accounts=shown, chain=chain, today=today, lines_shown=_LINES_SHOWN
    )


def unbroken(text: str) -> Markup:
    """A sentence as HTML in which no line ends within an equation or a date."""
    whole = str(escape(text)).replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    return Markup(re.sub(r"\b\d{4}-\d\d-\d\d\b", r'<span class="day">\g<0></span>', whole))


def _shown(view: AccountView, today: date) -> dict[str, object]:
    picture: Chart | None = chart(view, today)
    return {
        "view": view,
        "account": view.account,
        "chart": picture,
        "gauge": _gauge(view),
        "bars": _bars(view),
        "guarantee": views.guarantee_in_words(view),
        "runway": views.runway_in_words(view),
        "cap": views.cap_in_words(view.account),
        "sources": (*views.unit_change_in_words(view.account), *views.sources_in_words(view.account)),
        "length": _lengths(view),
        "asked": {line.entry.release_id: _asked_in_words(line) for line in view.lines},
    }


_SHORT = {
    "discrete Laplace": "Laplace",
    "discrete Gaussian": "Gaussian",
    "exponential mechanism": "choices",
    "partition selection": "finding values",
    "discrete Gaussian threshold": "finding values",
}


def _asked_in_words(line: views.Line) -> str:
    """The answers that a release is charged for, by mechanism, in words."""
    return ", ".join(f"{number:,} {_SHORT.get(mechanism, mechanism)}" for mechanism, number in line.asked)


def _gauge(view: AccountView) -> tuple[float, float]:
    """Per cent of the cap of ended releases, and of unfinished ones."""
    settled, used = (100 * min(share, 1.0) for share in (view.settled, view.account.share_used))
    return settled, max(used - settled, 0.0)


def _lengths(view: AccountView) -> dict[str, float]:
    """Lengths of the releases' bars; the dearest release has the longest."""
    most = max((line.share for line in view.lines), default=0.0)
    measurable = isfinite(most) and most > 0
    return {line.entry.release_id: _LONGEST * line.share / most if measurable else 0.0 for line in view.lines}


def _bars(view: AccountView) -> list[tuple[Statement, bool, float]]:
    """Each accountant's statement, True for the least one, and its length in per cent of the longest."""
    longest = max((s.epsilon or 0.0 for s in view.statements), default=0.0) or 1.0
    return [(s, s is view.least, 100 * (s.epsilon or 0.0) / longest) for s in view.statements]
