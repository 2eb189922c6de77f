"""The accounts that the ledger's rows add up to.

Invariant: a row that can't follow the rows before it is refused, whatever it holds, in words that begin with
its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from dpsynth.accounting.cost import Cost
from dpsynth.accounting.measures import MEASURES
from dpsynth.ledger.balance import Balance, CapChange, ReleaseEntry, UnitChange
from dpsynth.ledger.chain import Row
from dpsynth.ledger.contents import (
    UNREADABLE,
    MalformedContent,
    cap_of,
    ended,
    facts,
    read,
    reserved,
    resumed,
    unit_of,
)
from dpsynth.ledger.privacy_filter import (
    NOTHING_COUNTED,
    Counted,
    Figures,
    Filter,
    bound,
    figures,
    plus,
    total_of,
    within,
)


class InvalidRow(ValueError):
    """A row that can't follow the rows before it; the text begins with the row's number."""


@dataclass
class _Account:
    """An account while rows are entered.

    Attributes:
        checked: true to check that each reservation kept to the cap that was in force.
        everyone: the filter's sums over the releases that are about the whole table, if that is checked.
        kept: true if all sums were within the cap at the last check.
    """

    dataset: str
    unit: str
    neighbours: str
    filter: Filter
    caps: list[CapChange]
    opened: date
    checked: bool
    everyone: Figures = NOTHING_COUNTED
    kept: bool = False
    releases: dict[str, ReleaseEntry] = field(default_factory=dict)
    parts: dict[str, Counted] = field(default_factory=dict)
    changed: UnitChange | None = None

    def change_unit(self, change: UnitChange) -> None:
        """Count all releases for another unit from now on."""
        unfinished = next((r.release_id for r in self.releases.values() if r.state == "reserved"), None)
        if unfinished is not None:
            raise MalformedContent(f"changes the unit while release {unfinished} is under way")
        self.unit, self.changed, self.parts, self.everyone = change.unit, change, {}, NOTHING_COUNTED
        self.kept = False
        for name, entry in self.releases.items():
            self.releases[name] = replace(entry, changed=change)
            if self.checked:
                self.everyone = plus(self.everyone, self._figures(self.releases[name].counted.cost))

    def count(self, entry: ReleaseEntry) -> None:
        """Replace the cost of a release by that of its new entry."""
        before, found = self.releases.get(entry.release_id), self._figures(entry.cost)
        self.releases[entry.release_id] = entry
        if entry.parallel:
            self.parts[entry.release_id] = entry.counted
        elif self.checked:
            self.everyone = plus(self.everyone, found)
            if before is not None:
                self.everyone = plus(self.everyone, tuple(-f for f in self._figures(before.cost)))

    def _figures(self, cost: Cost) -> Figures:
        found = figures(self.filter, cost)
        if found is None:
            raise MalformedContent("costs what the filter can't count")
        return found

    def keeps_to_its_cap(self, last: ReleaseEntry) -> bool:
        """True if all sums are within the cap, given that only the last release raised some."""
        part = last.counted.part
        near: Iterable[Counted] = self.parts.values()
        if self.kept and part is not None:
            # Only the sums of the persons in this part have grown.
            near = [c for c in near if c.part is not None and c.part.overlaps(part)]
        total = plus(self.everyone, total_of(self.filter, near))
        self.kept = within(total, bound(self.filter, self.caps[-1].cap, self.caps[-1].approximate_share))
        return self.kept

    def copy(self) -> _Account:
        return replace(self, caps=list(self.caps), releases=dict(self.releases), parts=dict(self.parts))

    def balance(self) -> Balance:
        return Balance(
            self.dataset,
            self.unit,
            self.neighbours,
            self.filter,
            tuple(self.caps),
            tuple(self.releases.values()),
            self.opened,
            self.changed,
        )


class Book:
    """Rows, entered one by one, and the accounts that they add up to."""

    def __init__(self, *, checking_caps: bool = False) -> None:
        """An empty book.

        Args:
            checking_caps: true to check that each reservation kept to the cap that was in force.
        """
        self._checking_caps = checking_caps
        self._accounts: dict[str, _Account] = {}
        self._dataset_of: dict[str, str] = {}
        self._last = date.min

    def copy(self) -> Book:
        """A book with the same rows, to which others may be added."""
        other = Book(checking_caps=self._checking_caps)
        other._accounts = {name: account.copy() for name, account in self._accounts.items()}
        other._dataset_of, other._last = dict(self._dataset_of), self._last
        return other

    def enter(self, row: Row) -> None:
        """Enter a row.

        Args:
            row: the next one.

        Raises:
            InvalidRow: the row can't follow the rows before it.
        """
        try:
            created = date.fromisoformat(row.created)
            if created.isoformat() != row.created:
                raise MalformedContent("has no plain date")
            early, self._last = created < self._last, max(created, self._last)
            self._enter(row, facts(row), created)
        except UNREADABLE as error:
            # A parser's message may be long.
            words = str(error) if isinstance(error, MalformedContent) else "can't be read"
            raise InvalidRow(f"row {row.number}: it {words}") from error
        if early:
            raise InvalidRow(f"row {row.number}: it is dated before the row before")
        if self._checking_caps and row.kind == "reserved":
            account = self._accounts[row.dataset]
            if not account.keeps_to_its_cap(account.releases[str(row.release_id)]):
                what = f"for release {row.release_id} what the cap did not allow"
                raise InvalidRow(f"row {row.number}: it reserves {what}")

    def balance(self, dataset: str) -> Balance | None:
        """A dataset's account."""
        account = self._accounts.get(dataset)
        return None if account is None else account.balance()

    def balances(self) -> tuple[Balance, ...]:
        """All accounts, in the order of their opening."""
        return tuple(account.balance() for account in self._accounts.values())

    def release(self, release_id: str) -> ReleaseEntry | None:
        """A release's entry; None where there is none."""
        dataset = self._dataset_of.get(release_id)
        return None if dataset is None else self._accounts[dataset].releases[release_id]

    def _enter(self, row: Row, content: Mapping[str, object], created: date) -> None:
        if (row.release_id is None) != (row.kind in ("dataset", "cap", "unit")):
            raise MalformedContent("is not about what its kind is about")
        if row.kind == "dataset":
            self._open(row, content, created)
            return
        account = self._accounts.get(row.dataset)
        if account is None:
            raise MalformedContent(f"is about the dataset {row.dataset!r}, which no row before it opens")
        if row.kind == "cap":
            account.caps.append(cap_of(content, created, read(content, "reason", str), account.filter))
            account.kept = False
        elif row.kind == "unit":
            account.change_unit(unit_of(content, created, account.unit, account.neighbours))
        elif row.kind == "reserved":
            if row.release_id in self._dataset_of:
                raise MalformedContent(f"reserves for release {row.release_id} a second time")
            entry = reserved(row, content, created)
            if entry.parallel and account.neighbours != "add_remove":
                raise MalformedContent(f"counts for a part only, under {account.neighbours}")
            account.count(entry)
            self._dataset_of[str(row.release_id)] = row.dataset
        elif row.kind == "resumed":
            account.count(resumed(row, content, account.releases.get(str(row.release_id))))
        else:
            account.count(ended(row, content, created, account.releases.get(str(row.release_id))))

    def _open(self, row: Row, content: Mapping[str, object], created: date) -> None:
        if row.dataset in self._accounts:
            raise MalformedContent(f"opens the dataset {row.dataset!r} a second time")
        kind = next((m for m in MEASURES if m.accountant == content["filter"]), None)
        if kind is None:
            raise MalformedContent("names no known filter")
        self._accounts[row.dataset] = _Account(
            row.dataset,
            read(content, "unit", str),
            read(content, "neighbours", str),
            kind,
            [cap_of(content, created, "", kind)],
            created,
            self._checking_caps,
        )


def problems_of(rows: Iterable[Row]) -> list[str]:
    """The rows that can't stand, each in words that begin with the row's number."""
    book, found = Book(checking_caps=True), []
    for row in rows:
        try:
            book.enter(row)
        except InvalidRow as error:
            found.append(str(error))
    return found
