"""A dataset's account: its cap, the costs of its releases, how long the cap lasts, and whose account it is.

Invariant: a release counts for its whole reservation until it has ended, and from then on for what bounds
it at that end (``dpsynth.accounting.composition.charge``). The used, the remaining and the fitting budget all
follow the account's privacy filter (``dpsynth.ledger.filters``), with costs rounded up and remainders rounded
down. The runway is a forecast, made of the account and the calendar alone; no decision depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import chain
from math import inf, isqrt
from pathlib import PurePath
from typing import Literal

from dpsynth.accounting.amount import Amount, digits, float_down, float_up
from dpsynth.accounting.calibration import LAPLACE
from dpsynth.accounting.composition import Cost, charge, group_cost, planned
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.slices import Slice
from dpsynth.config.files.place import same_table
from dpsynth.errors import ConfigError
from dpsynth.ledger.filters import (
    Counted,
    Figures,
    Filter,
    bound,
    epsilon_at,
    figures,
    together,
    total_of,
    within,
)

_UNCHARGED = "Nothing was read and nothing was charged."

BETWEEN = "\0"
"""The character between the sources of linked tables, which no path has."""

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")


@dataclass(frozen=True)
class Table:
    """A private table, as a configuration presents it to the ledger.

    Attributes:
        dataset: the declared name of its account; "" where none is.
        source: its resolved path or address, or that of each linked table; "" for a table in memory.
        other_people: the reason why it may have an account beside that of its source; "" where none is given.
    """

    dataset: str
    source: str
    release: str
    other_people: str = ""


def dataset_of(table: Table, accounts: Sequence[Balance], ledger: str) -> str:
    """The name of a table's account, recorded or new, among all accounts of a ledger.

    A table is known by what it is, not by the name of a configuration's file: a copy of a configuration
    counts in the account of its table. The ledger has the source of each release, and looks for the account
    in this order:

    1.  by ``ledger.dataset``, if the configuration declares it;
    2.  by the source: the account that has releases of it;
    3.  by the release's name: the account that has releases of that name, as where the same configuration is
        run on the next file. If the files are about other people, that counts more than is needed, never
        less;
    4.  a new account, named after the file.

    A second account for a source, or for that of one of linked tables, is refused, as it would give the same
    people a second cap. The one exception is declared, with its reason, and stays on record: the release is
    about other people (``ledger.other_people``).

    A source is the same however it is spelt: links, hard links and URLs of this machine lead to one account
    (``same_table``). A copy of a file is another source. The rows of a query have no source at all. Both are
    known by nothing but the name that the owner declares. The answer follows from the configuration, the
    ledger's rows and the files that these name, within the transaction that reserves, so that two first
    releases of one source get one account.

    Raises:
        ConfigError: the table has an account of another name, or it can't be told which account it has.
    """
    held = {
        own: [a.dataset for a in accounts if any(same_table(own, s) for s in a.sources)]
        for own in filter(None, table.source.split(BETWEEN))
    }
    if not table.dataset:
        return _found(table, held.get(table.source, ()), accounts, ledger)
    for own, of_source in held.items():
        if not of_source or table.dataset in of_source or table.other_people:
            continue
        without = "" if BETWEEN in table.source else ", or leave it out"
        raise ConfigError(
            f"{own} has an account in the ledger {ledger}, {_listed(of_source)}, and this configuration "
            f"names '{table.dataset}', which would give the same people a second cap. Write ledger.dataset: "
            f"{of_source[0]}{without}. Only if nobody in this release is in the releases of that dataset, "
            f"say why with ledger.other_people, for the record. {_UNCHARGED}"
        )
    return table.dataset


def _found(table: Table, of_source: Sequence[str], accounts: Sequence[Balance], ledger: str) -> str:
    if not table.source:
        raise ConfigError(
            "ledger.dataset is missing: a table in memory has no path by which the ledger could know it. "
            "Give it a name, the same in all releases of the same people."
        )
    of_release = [a.dataset for a in accounts if any(r.release == table.release for r in a.releases)]
    for found in (of_source, of_release):
        if len(found) == 1:
            return found[0]
        if found:
            what = table.source if found is of_source else f"Release '{table.release}'"
            raise ConfigError(
                f"{what} has several accounts in the ledger {ledger}: {_listed(found)}. Name the one that "
                f"this release counts in with ledger.dataset. {_UNCHARGED}"
            )
    name = name_of(table.source)
    taken = next((a for a in accounts if a.dataset == name), None)
    if taken is not None:
        of = ", ".join(sorted(taken.sources)) or "a table that is not recorded"
        raise ConfigError(
            f"The ledger {ledger} does not know {table.source}, and has a dataset '{name}' of {of}. "
            "If the same people are in it, as where a table was moved or renamed, write its name as "
            "ledger.dataset; if this table is about other people, give it a name of its own there. "
            f"{_UNCHARGED}"
        )
    return name


def name_of(source: str) -> str:
    """The name of a new account, from the name of a file.

    >>> name_of("/srv/data/Visits of 2026.csv.gz")
    'Visits-of-2026'
    """
    path = PurePath(source)
    stem = PurePath(path.stem).stem if path.suffix.lower() in _COMPRESSED else path.stem
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.")[:100] or "table"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


__all__ = ["Balance", "CapChange", "Filter", "ReleaseEntry", "Reservation", "State"]

State = Literal["reserved", "closed", "abandoned"]
"""A reserved release counts in full; a closed or abandoned one counts for its charge."""

Audiences = tuple[tuple[str, Fraction], ...]
"""Names of audiences, each with the epsilon of all that it sees."""

MOST_APPROXIMATE = Fraction(1, 2)
"""Largest share of its delta that an account keeps for approximate deltas by default."""

MOST = 1_000_000
"""Largest number of fitting releases that is reported."""


@dataclass(frozen=True)
class ReleaseFacts:
    """A release as its config has it, in the request and in the ledger.

    Attributes:
        dataset: the name of the table's account; in a request the declared one, "" where the ledger is to
            find it.
        spec: a digest of everything in the config that decides the bundle.
        occasion: a period or a tick of a schedule, which is released once; None where each run is new.
        part: the rows that it is about; None if it is about all.
        parallel: true if the part is composed in parallel with disjoint parts.
        holder: the run that may ask and settle; of a request the run that asks.
        source: the table's resolved path or address, or that of each linked table; "" for a table in memory.
        other_people: the reason why the source may have another account; "" where none is given.
        audiences: the name and the epsilon of each audience, in rising order; () for a release of one bundle.
    """

    release_id: str
    dataset: str
    release: str = ""
    spec: str = ""
    occasion: str | None = None
    part: Slice | None = None
    parallel: bool = False
    holder: str = ""
    source: str = ""
    other_people: str = ""
    audiences: Audiences = ()

    @property
    def sources(self) -> list[str]:
        return self.source.split(BETWEEN) if self.source else []


@dataclass(frozen=True, kw_only=True)
class Reservation(ReleaseFacts):
    """A release's request to a dataset's budget, made before it may open the table.

    Attributes:
        unit: the privacy unit in words.
        neighbours: "add_remove" or "replace_one".
        cap: the cap in the config or its default, not rounded up; that of a new account.
        filter: the filter that the config names; None where it takes the recorded one.
        suits: the filter of a dataset that is not recorded yet, where the config names none.
        cost: the most that the release can cost, not rounded down.
        cap_declared: true if the config states its cap, which then holds for the release where it is lower.
        config, plan: digests of all that the config says, and of the plan; recorded where a policy asks for
            approval.
        allowance: the most epsilon that all releases of its name may cost together; None without a bound.

    Raises:
        ValueError: parallel without a part, or under another relation than add_remove; or the cap's
            delta is not below 1.
    """

    unit: str
    neighbours: str
    cap: Amount
    filter: Filter | None
    suits: Filter
    cost: Cost
    cap_declared: bool = True
    config: str = ""
    plan: str = ""
    allowance: Fraction | None = None

    def __post_init__(self) -> None:
        if self.parallel and (self.part is None or self.neighbours != "add_remove"):
            raise ValueError("only parts of a table, under add_remove, are counted apart")
        if self.cap.delta >= 1:
            raise ValueError("the delta of a cap is below 1")

    def cap_under(self, recorded: Amount) -> Amount:
        """The cap for this release: the recorded one, or that of its config where it states a lower one."""
        return recorded.capped(self.cap) if self.cap_declared else recorded

    @property
    def table(self) -> Table:
        return Table(self.dataset, self.source, self.release, self.other_people)

    @property
    def approximate_share(self) -> Fraction:
        """The share of delta that the release may take for approximate deltas; at most a half."""
        delta = self.cost.amount.delta
        return min(self.cost.approximate_delta / delta, MOST_APPROXIMATE) if delta else Fraction(0)


@dataclass(frozen=True)
class UnitChange:
    """A change of an account's unit, from rows to those who may have several.

    Releases before it protect one row. For somebody with several rows, group privacy bounds them if the most
    rows of a unit are known. Otherwise nothing bounds them.

    Attributes:
        before, unit: the unit before, in words, a row or an event; and the unit since.
        most_rows: the most rows that one unit has in any release before; None where nobody knows.
        reason: the reason for it, and how the number of rows is known.
    """

    before: str
    unit: str
    most_rows: int | None
    created: date
    reason: str


@dataclass(frozen=True, kw_only=True)
class ReleaseEntry(ReleaseFacts):
    """A release as the ledger has it: what it reserved, and since then.

    Attributes:
        cost: the cost that counts: its reservation while reserved, its charge afterwards.
        created, ended: UTC dates of the reservation and of the end.
        events: of its journal; empty until it has ended, or where no journal was found.
        digest: digest of the journal that it was closed with; empty where it was not closed.
        changed: the change of the account's unit that came after it; None where there was none.
    """

    state: State
    reserved: Cost
    cost: Cost
    created: date
    ended: date | None = None
    events: tuple[Mapping[str, object], ...] = field(default=(), hash=False)
    reason: str = ""
    digest: str = ""
    changed: UnitChange | None = None

    @property
    def cost_of_unit(self) -> Cost | None:
        """The cost for the account's unit as it is now; None where nothing bounds it."""
        if self.changed is None:
            return self.cost
        most = self.changed.most_rows
        if most is None:
            return None
        whole, ended = group_cost(self.reserved, most), group_cost(self.cost, most)
        return None if whole is None or ended is None else charge(whole, ended)

    @property
    def counted(self) -> Counted:
        """The cost as a filter counts it: for the account's unit, or for a row where nothing bounds that.

        Parts of a table were disjoint for rows. A person may have rows in several of them.
        """
        parted = self.parallel and self.changed is None
        return Counted(self.cost_of_unit or self.cost, self.part if parted else None)


@dataclass(frozen=True)
class CapChange:
    """A cap (epsilon, delta), and the date from which it is in force.

    Attributes:
        reason: the reason for it; empty for the first cap of a dataset.
        approximate_share: the share of delta that the filters zcdp and gdp keep for approximate deltas, below
            1.
    """

    cap: Amount
    created: date
    reason: str = ""
    approximate_share: Fraction = Fraction(0)

    def shown(self) -> str:
        """The cap in words: ``ε = 3, δ = 1e-6``, and the share for approximate deltas where there is one."""
        kept = (
            f" ({digits(self.approximate_share, up=False)} of δ for finding values)"
            if self.approximate_share
            else ""
        )
        return f"{self.cap.shown(up=False)}{kept}"


@dataclass(frozen=True)
class Balance:
    """A dataset's account.

    Attributes:
        unit, neighbours: the unit and the neighbour relation of its guarantees, as recorded.
        filter: the privacy filter that adds up its costs, as first recorded.
        caps: the first cap, then each change; the last is in force.
        opened: UTC date of the first reservation.
        changed: the change of the unit; None where it is that of the first reservation.
    """

    dataset: str
    unit: str
    neighbours: str
    filter: Filter
    caps: tuple[CapChange, ...]
    releases: tuple[ReleaseEntry, ...]
    opened: date
    changed: UnitChange | None = None

    @property
    def of_unit(self) -> Balance:
        return replace(self, releases=tuple(r for r in self.releases if r.cost_of_unit is not None))

    @property
    def cap(self) -> Amount:
        return self.caps[-1].cap

    @property
    def approximate_share(self) -> Fraction:
        """The share of the cap's delta that is kept for approximate deltas."""
        return self.caps[-1].approximate_share

    @property
    def sources(self) -> frozenset[str]:
        """The sources that were released; those of tables in memory are not known."""
        return frozenset(chain(*(r.sources for r in self.releases)))

    @property
    def bound(self) -> Figures:
        return bound(self.filter, self.cap, self.approximate_share)

    def _total(self, *more: Counted) -> Figures:
        return total_of(self.filter, [*(r.counted for r in self.releases), *more])

    def under(self, cap: Amount) -> Balance:
        return replace(
            self, caps=(*self.caps, CapChange(cap, self.opened, approximate_share=self.approximate_share))
        )

    def of_part(self, part: Slice) -> Balance:
        """The account of those who may be in a part: without the releases of disjoint parts."""
        counted = ((r, r.counted.part) for r in self.releases)
        return replace(self, releases=tuple(r for r, own in counted if own is None or own.overlaps(part)))

    @property
    def epsilon_used(self) -> Fraction:
        """The epsilon of all releases, reserved ones in full, at ``delta_used``, rounded up."""
        return epsilon_at(self.filter, self._total(), self.cap.delta * (1 - self.approximate_share))

    @property
    def delta_used(self) -> Fraction:
        """The sum of the deltas beside a sum of epsilons; else epsilon's delta and the approximate deltas."""
        for_epsilon = (
            self.cap.delta * (1 - self.approximate_share) if self.filter.needs_delta else Fraction(0)
        )
        return for_epsilon + self._total()[1]

    @property
    def share_used(self) -> float:
        """The part of the cap that is used, under the filter, rounded up; infinite for a cap of 0."""
        return _share(self._total(), self.bound)

    @property
    def left(self) -> Figures:
        """The remainder of the filter's sums; below 0 where the cap was lowered below them."""
        return tuple(b - a for a, b in zip(self._total(), self.bound, strict=True))

    def share_of(self, cost: Cost) -> float:
        """The part of the cap that a cost takes by itself, rounded up."""
        found = figures(self.filter, cost)
        return inf if found is None else _share(found, self.bound)

    def allows(self, cost: Cost, part: Slice | None = None, cap: Amount | None = None) -> bool:
        """True if one more release fits under the cap, or under another.

        Args:
            part: the part that is composed in parallel, or None.
        """
        if figures(self.filter, cost) is None:
            return False
        return within(
            self._total(Counted(cost, part)), bound(self.filter, cap or self.cap, self.approximate_share)
        )

    def fits(self, cost: Cost) -> int:
        """The number of further releases of a cost, each of the whole table, that fit; at most ``MOST``."""
        found = figures(self.filter, cost)
        if found is None or min(self.left) < 0:
            return 0
        return min([MOST, *(have // one for have, one in zip(self.left, found, strict=True) if one)])

    def largest_epsilon(self, delta: Fraction, measure: Measure) -> Fraction:
        """The largest epsilon that one more release, about the whole table, may ask for.

        Args:
            delta: its delta, but for its approximate delta; 0 for a pure one.
            measure: the measure of its own losses. Where that is zcdp and the filter gdp, its noise is
                taken to be Laplace: none of Gaussian noise fits.
        """
        left = self.left
        if min(left) < 0 or (measure.needs_delta and not delta):
            return Fraction(0)
        if not self.filter.needs_delta:
            return left[0] if delta <= left[1] else Fraction(0)
        # The cost of a release is linear in its budget; under pure epsilon-DP it grows with the square.
        budget = left[0] / self._count(measure, Fraction(1))
        if not measure.needs_delta:
            return Fraction(isqrt(int(budget * (1 << 160))), 1 << 80)
        epsilon, step = Fraction(float_down(measure.epsilon(budget, delta))), Fraction(1, 1 << 50)
        while epsilon > 0 and self._count(measure, measure.budget(epsilon, delta)) > left[0]:
            epsilon, step = max(Fraction(0), epsilon * (1 - step)), 2 * step
        return epsilon

    def _count(self, measure: Measure, budget: Fraction) -> Fraction:
        found = figures(self.filter, planned(measure, LAPLACE.name, budget, Amount()))
        assert found is not None
        return found[0]

    def together(self) -> tuple[tuple[ReleaseEntry, ...], ...]:
        """The sets of releases that one person's rows may be in: one, unless parts are composed in parallel.

        A statement on all releases together is the largest over the sets.
        """
        return together(self.releases, [r.counted.part for r in self.releases])


def _share(used: Figures, allowed: Figures) -> float:
    each = zip(used, allowed, strict=True)
    return max(0.0 if not some else float_up(some / most) if most else inf for some, most in each)


def first_balance(entry: Reservation, on: date) -> Balance:
    """The account of a dataset that is new to the ledger.

    It keeps as large a share of the cap's delta for approximate deltas as the release takes of its own delta.
    """
    kind = entry.filter or entry.suits
    first = CapChange(
        entry.cap, on, approximate_share=entry.approximate_share if kind.needs_delta else Fraction(0)
    )
    return Balance(entry.dataset, entry.unit, entry.neighbours, kind, (first,), (), on)


def first_entry(entry: Reservation, on: date) -> ReleaseEntry:
    """The entry of a release that has just reserved its budget."""
    asked = {each.name: getattr(entry, each.name) for each in fields(ReleaseFacts)}
    return ReleaseEntry(**asked, state="reserved", reserved=entry.cost, cost=entry.cost, created=on)


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
        return self.due[self.fits - 1] if 0 < self.fits <= len(self.due) else None

    @property
    def refused(self) -> date | None:
        """The date of the first release that does not fit; None where it has no date."""
        return self.due[self.fits] if self.fits < len(self.due) else None


def runway(account: Balance, today: date, ticks: Ticks | None = None) -> Runway | None:
    """The forecast of an account; None where no release of it counts for anything.

    Args:
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
    if account.fits(like.reserved) < 1:
        return 0
    one_more = replace(like, state="reserved", cost=like.reserved, part=None, parallel=False, changed=None)
    return 1 + replace(account, releases=(*account.releases, one_more)).fits(like.cost)


def _fits_disjoint(account: Balance, like: ReleaseEntry, part: Slice) -> bool:
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
