"""The figures and sentences of an account, for a terminal, for the ledger's page, and as JSON.

Invariant: everything comes from the ledger, which holds nothing private. Costs and shares of the cap are
shown rounded up, caps and remainders rounded down. In JSON a share of a cap of 0 is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from math import isfinite

from dpsynth.accounting.amount import digits, float_down, float_up
from dpsynth.accounting.composition import Cost
from dpsynth.accounting.events import LOCAL_REPORTS, RecordedEvent, from_json
from dpsynth.accounting.neighbours import protected
from dpsynth.figures import NOTHING, rounded_up
from dpsynth.ledger.balance import Balance, CapChange, ReleaseEntry, Runway, Ticks, UnitChange, runway


@dataclass(frozen=True)
class Composed:
    """One of several releases.

    Attributes:
        events: its answers; empty where only the cost is recorded, as while it is reserved.
    """

    cost: Cost
    events: tuple[RecordedEvent, ...] = ()


@dataclass(frozen=True)
class Statement:
    """An accountant's guarantee for several releases together.

    Attributes:
        name: its name in words.
        epsilon: rounded up; None where the accountant has none.
        delta: the one asked for; that of "sequential" is the sum of the releases' own. The nearest float,
            which is how it is printed.
        adaptive: true if it holds also where noise and budgets were chosen from earlier answers.
        why: one sentence: the condition under which it holds, or the reason why there is no epsilon.
    """

    accountant: str
    name: str
    epsilon: float | None
    delta: float
    adaptive: bool
    why: str


Accountants = Callable[[Sequence[Sequence[Composed]], Fraction], tuple[Statement, ...]]
"""Each accountant's statement on releases, in groups of those that one person may be in, at a delta."""


def least(found: Sequence[Statement]) -> Statement:
    """The least epsilon that holds also where noise and budgets were chosen from earlier answers.

    A statement whose delta exceeds the delta asked for ("sequential" may) comes last.
    """
    asked = min((s.delta for s in found if s.accountant != "sequential"), default=1.0)
    sound = [(s.delta > asked, s.epsilon, s) for s in found if s.adaptive and s.epsilon is not None]
    return min(sound, key=lambda entry: entry[:2])[2]


@dataclass(frozen=True)
class Line:
    """One release in the list of them.

    Attributes:
        share, so_far: its share of the cap by itself, and with all releases before it.
        asked: number of answers of each mechanism that it is charged for.
    """

    entry: ReleaseEntry
    share: float
    so_far: float
    asked: tuple[tuple[str, int], ...]

    @property
    def delta(self) -> str:
        return digits(self.entry.cost.amount.delta, up=True)


@dataclass(frozen=True)
class AccountView:
    """An account with its derived figures.

    Attributes:
        settled: share of the cap that releases which have ended take.
        statements: the guarantee of all releases together, by every accountant that is installed.
    """

    account: Balance
    lines: tuple[Line, ...]
    settled: float
    statements: tuple[Statement, ...]
    runway: Runway | None

    @property
    def unfinished(self) -> tuple[ReleaseEntry, ...]:
        return tuple(r for r in self.account.releases if r.state == "reserved")

    @property
    def least(self) -> Statement:
        """The statement of least epsilon, of those that hold however budgets were chosen."""
        return least(self.statements)


def account_view(
    account: Balance, today: date, ticks: Ticks | None = None, accountants: Accountants | None = None
) -> AccountView:
    """The view of an account as of a UTC date; a schedule's dates are for the runway.

    Without accountants the one statement is that of the account's own filter.
    """
    releases = account.releases
    lines = tuple(
        Line(entry, account.share_of(entry.counted.cost), _share(account, releases[: i + 1]), _asked(entry))
        for i, entry in enumerate(releases)
    )
    return AccountView(
        account,
        lines,
        _share(account, tuple(r for r in releases if r.state != "reserved")),
        _statements(account) if accountants is None else accountants(_composed(account), account.cap.delta),
        runway(account, today, ticks),
    )


def _share(account: Balance, releases: tuple[ReleaseEntry, ...]) -> float:
    return replace(account, releases=releases).share_used


def _statements(account: Balance) -> tuple[Statement, ...]:
    own, kind = account.of_unit, account.filter
    epsilon, delta = float_up(own.epsilon_used), float_up(own.delta_used)
    why = f"The figures of the account's filter added up: {kind.composition}."
    return (Statement(kind.accountant, kind.composition, epsilon, delta, True, why),)


def _composed(account: Balance) -> list[list[Composed]]:
    """The sets of releases that one unit may be in, without those that nothing bounds for it."""
    composed = {r.release_id: _of_unit(r) for r in account.releases}
    groups = [[composed[r.release_id] for r in group] for group in account.together()]
    return [[found for found in group if found is not None] for group in groups]


def _of_unit(entry: ReleaseEntry) -> Composed | None:
    if entry.cost_of_unit is None or entry.changed is not None:
        # Its answers are those of rows.
        return None if entry.cost_of_unit is None else Composed(entry.cost_of_unit)
    events = (e for e in entry.events if e.get("mechanism") != LOCAL_REPORTS)
    return Composed(entry.cost, tuple(map(from_json, events)))


def _asked(entry: ReleaseEntry) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(str(event.get("mechanism")) for event in entry.events).most_common())


def share_in_words(share: float) -> str:
    """A share of the cap in per cent, rounded up.

    >>> share_in_words(0.12301), share_in_words(1e-7), share_in_words(0.0)
    ('12.4 %', '< 0.01 %', '0 %')
    """
    if not isfinite(share):
        return "\N{INFINITY} %"
    return "< 0.01 %" if 0 < share < 1e-4 else f"{rounded_up(100 * share, 3)} %"


def figure(value: Fraction) -> str:
    """A cost in four digits, rounded up.

    >>> figure(Fraction("0.98")), figure(Fraction(1, 3)), figure(Fraction(1, 10**7))
    ('0.98', '0.3334', '1e-7')
    """
    near = float(value)
    # The shortest decimal of a float, as it was written in a config, is no less exact than the float.
    exact = Fraction(near) == value or Fraction(repr(near)) >= value
    return rounded_up(near if exact else float_up(value))


def sources_in_words(account: Balance) -> Iterator[str]:
    """The tables of an account, and why they may have another account too, as sentences."""
    if account.sources:
        yield f"Released tables: {', '.join(sorted(account.sources))}."
    for reason in dict.fromkeys(r.other_people for r in account.releases if r.other_people):
        yield f"Declared to be about other people than another dataset of the same table: {reason}"


def audiences_in_words(account: Balance) -> Iterator[str]:
    """The audiences of each release that has some, as sentences."""
    for entry in account.releases:
        if entry.audiences:
            each = ", ".join(f"{name} (ε = {figure(epsilon)})" for name, epsilon in entry.audiences)
            yield (
                f"Release {entry.release_id} has bundles for {each}: each ε is of all that the audience "
                "sees, and together they cost the largest."
            )


def cap_in_words(account: Balance) -> str:
    """The cap of an account, and the rule by which its filter refuses, in words."""
    cap = f"The cap is {account.cap.shown(up=False)}."
    if not account.filter.needs_delta:
        return (
            f"{cap} The ε of all releases are added up, and so are their δ. A release is refused if either "
            "sum would exceed the cap."
        )
    budget, approximate_share = account.bound
    what, room = account.filter.symbol, digits(budget, up=False)
    added = f"{cap} Releases are added up as {what} ({account.filter.composition})."
    if not account.approximate_share:
        return f"{added} The cap has room for {what} = {room}; a release that would exceed it is refused."
    kept, used = digits(approximate_share, up=False), digits(approximate_share - account.left[1], up=True)
    return (
        f"{added} Of the cap's δ, {kept} is kept for finding values, and {used} of that is used. The rest of "
        f"its δ has room for {what} = {room}. A release that would exceed either is refused."
    )


def guarantee_in_words(view: AccountView) -> str:
    """The guarantee of all releases together, by the accountant with the least epsilon, in words."""
    if not view.account.releases:
        return "Nothing has been released."
    found, account = view.least, view.account
    unbounded = account.changed is not None and account.of_unit.releases != account.releases
    which = f"Releases since {account.changed.created}" if account.changed and unbounded else "All releases"
    return (
        f"{which} together{', unfinished ones in full,' if view.unfinished else ''} are "
        f"ε = {epsilon_of(found)}, δ = {delta_of(found)} for {view.account.unit} "
        f"({view.account.neighbours}), by {found.name}. Some accountants hold even if somebody "
        "chose noise after reading earlier answers, and of those this is the least."
    )


_SIZES = (2, 5, 20)
"""Numbers of rows whose loss by releases of rows is stated where nobody knows the rows of a unit."""


def unit_change_in_words(account: Balance) -> tuple[str, ...]:
    """The promises of releases from before a change of the unit, as sentences; none where there are none."""
    change = account.changed
    if change is None:
        return ()
    earlier = tuple(r for r in account.releases if r.changed is not None)
    number = f"{len(earlier):,} release{'s' * (len(earlier) != 1)}"
    of_rows = _together(account, earlier, replace(change, most_rows=1))
    first = f"Releases until {change.created} protect {change.before}: {number}, together {of_rows}."
    whom = protected(change.unit)
    if change.most_rows is not None:
        comes_to = _together(account, earlier, change)
        return (
            f"{first} It was declared that nobody has more than {change.most_rows:,} rows in any of them, so "
            f"by group privacy they come to {comes_to} for {whom}.",
        )
    unknown = (
        f"{first} How many rows others have in them is not known, so nothing bounds what they tell of {whom}."
    )
    counted = "Under the cap they count as for somebody with one row."
    if account.neighbours != "add_remove":
        return (f"{unknown} {counted}",)
    sizes = [f"{n} rows {_together(account, earlier, replace(change, most_rows=n))}" for n in _SIZES]
    return (
        f"{unknown} Of somebody who has that many rows in each they tell at most: {'; '.join(sizes)}.",
        counted,
    )


def _together(account: Balance, earlier: tuple[ReleaseEntry, ...], change: UnitChange) -> str:
    found = tuple(replace(entry, changed=change) for entry in earlier)
    if any(entry.cost_of_unit is None for entry in found):
        return "no bound that says anything"
    alone = replace(account, releases=found)
    return f"ε = {figure(alone.epsilon_used)}, δ = {digits(alone.delta_used, up=True)}"


def epsilon_of(statement: Statement) -> str:
    """The epsilon of a statement, or a dash where it has none."""
    return NOTHING if statement.epsilon is None else rounded_up(statement.epsilon)


def delta_of(statement: Statement) -> str:
    """The delta of a statement."""
    return digits(Fraction(repr(statement.delta)), up=True)


def runway_in_words(view: AccountView) -> tuple[str, ...]:
    """The runway of the cap, as sentences."""
    account, forecast = view.account, view.runway
    if forecast is None:
        return ("No release counts for anything yet, so there is nothing to go by.",)
    like, approximate_delta = forecast.like.reserved.amount, forecast.like.reserved.approximate_delta
    needs_delta = account.filter.needs_delta
    if not forecast.fits and needs_delta and account.left[1] < approximate_delta:
        first = (
            f"No more release like the last one ({like.shown()}) fits: of the δ for finding values it takes "
            f"{digits(approximate_delta, up=True)}, and "
            f"{digits(max(account.left[1], Fraction(0)), up=False)} is left."
        )
    elif not forecast.fits:
        delta = like.delta - approximate_delta if needs_delta else like.delta
        largest = account.largest_epsilon(delta, account.filter)
        first = (
            f"No more release like the last one ({like.shown()}) fits. With that δ, one of at most "
            f"ε = {digits(largest, up=False)} does."
        )
    else:
        more = f"{forecast.fits:,} more release{'s' if forecast.fits != 1 else ''}"
        first = f"{more} like the last one ({like.shown()} reserved){_dated(forecast)}."
    if not forecast.disjoint:
        return (first,)
    return (
        "The last release was of one part of the table. Parts that don't overlap are counted as the dearest "
        "of them: another one like it, of a part that was not released before, adds nothing.",
        f"Of parts that were released before: {first[0].lower()}{first[1:]}",
    )


def _dated(forecast: Runway) -> str:
    verb = "fits" if forecast.fits == 1 else "fit"
    if forecast.disjoint or not forecast.due:
        return f" {verb}"
    pace = (
        "by the config's calendar"
        if forecast.every is None
        else f"at the present pace, one {_every(forecast.every)}"
    )
    if forecast.last is None:
        return f" {verb}; {pace}, that lasts beyond {forecast.due[-1]}"
    if forecast.refused is None:
        return f" {verb}; {pace}, the last is due on {forecast.last}"
    return (
        f" {verb}; {pace}, the last is due on {forecast.last} and the first to be refused on "
        f"{forecast.refused}"
    )


def _every(days: float) -> str:
    return "a day" if days <= 1 else f"every {days:.3g} days"


def facts(view: AccountView) -> dict[str, object]:
    """An account as plain JSON values; costs rounded up to doubles, caps rounded down."""
    account, forecast = view.account, view.runway
    return {
        "dataset": account.dataset,
        "unit": account.unit,
        "neighbours": account.neighbours,
        "unit_changed": None
        if account.changed is None
        else {
            "since": account.changed.created.isoformat(),
            "before": account.changed.before,
            "most_rows": account.changed.most_rows,
            "reason": account.changed.reason,
            "in_words": list(unit_change_in_words(account)),
        },
        "opened": account.opened.isoformat(),
        "sources": sorted(account.sources),
        "filter": account.filter.accountant,
        "cap": _cap(account.caps[-1]),
        "caps": [
            {"since": change.created.isoformat(), **_cap(change), "reason": change.reason}
            for change in account.caps
        ],
        "epsilon_used": float_up(account.epsilon_used),
        "share_used": _finite_or_none(account.share_used),
        "guarantees": [
            {"accountant": s.accountant, "epsilon": s.epsilon, "delta": s.delta, "adaptive": s.adaptive}
            for s in view.statements
        ],
        "least": view.least.accountant,
        "releases": [_release(line, account) for line in view.lines],
        "runway": None
        if forecast is None
        else {
            "like": forecast.like.release_id,
            "fits": forecast.fits,
            "other_parts_free": forecast.disjoint,
            "every_days": forecast.every,
            "last": None if forecast.last is None else forecast.last.isoformat(),
            "refused": None if forecast.refused is None else forecast.refused.isoformat(),
        },
    }


def _cap(change: CapChange) -> dict[str, object]:
    return {
        "epsilon": float_down(change.cap.epsilon),
        "delta": float_down(change.cap.delta),
        "approximate_share": float_down(change.approximate_share),
    }


def _finite_or_none(share: float) -> float | None:
    return share if isfinite(share) else None


def _release(line: Line, account: Balance) -> dict[str, object]:
    entry = line.entry
    amount, part = entry.cost.amount, entry.part
    return {
        "id": entry.release_id,
        "release": entry.release,
        "period": entry.occasion,
        "part": None if part is None else part.to_json(),
        "parallel": entry.parallel,
        "state": entry.state,
        "epsilon": float_up(amount.epsilon),
        "delta": float_up(amount.delta),
        "unit": account.unit if entry.changed is None else entry.changed.before,
        "epsilon_of_unit": None
        if entry.cost_of_unit is None
        else float_up(entry.cost_of_unit.amount.epsilon),
        "approximate_delta": float_up(entry.cost.approximate_delta),
        "share": _finite_or_none(line.share),
        "share_so_far": _finite_or_none(line.so_far),
        "answers": dict(line.asked),
        "reserved": entry.created.isoformat(),
        "ended": None if entry.ended is None else entry.ended.isoformat(),
        "reason": entry.reason,
        "source": ", ".join(entry.sources),
        "other_people": entry.other_people,
        "audiences": {name: float_up(epsilon) for name, epsilon in entry.audiences},
    }
