"""The ledger as it was at one time, in memory: what it knows, and what it would answer to a release.

Invariant: all answers follow from the same rows. Only a reservation decides, within its own transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from dpsynth.ledger import tables
from dpsynth.ledger.balance import Balance, ReleaseEntry, Reservation, first_balance
from dpsynth.ledger.book import Book
from dpsynth.ledger.chain import Row
from dpsynth.ledger.identity import Table, dataset_of
from dpsynth.ledger.refusals import check_allowed, check_counted, check_protection, check_resumed


@dataclass(frozen=True, eq=False)
class Reading:
    """One reading of the ledger.

    Attributes:
        name: name of the ledger, for messages.
        rows: the rows as they were stored.
        book: the accounts that they add up to.
    """

    name: str
    rows: Sequence[Row]
    book: Book

    def balance(self, dataset: str) -> Balance | None:
        """A dataset's account, or None where the ledger has none of it."""
        return self.book.balance(dataset)

    def balances(self) -> tuple[Balance, ...]:
        """Every dataset's account, in the order of their opening."""
        return self.book.balances()

    def release(self, release_id: str) -> ReleaseEntry | None:
        """The entry of a release, or None where it was never reserved."""
        return self.book.release(release_id)

    def dataset_of(self, table: Table) -> str:
        """The name of a table's account, recorded or new.

        Raises:
            ConfigError: the table has an account of another name, or it can't be told which account it has.
        """
        return dataset_of(table, self.balances(), self.name)

    @property
    def clock_behind(self) -> date | None:
        """The date of the last row where the clock shows an earlier one, else None."""
        last = date.fromisoformat(self.rows[-1].created) if self.rows else date.min
        return last if last > tables.today() else None

    def foreseen(self, entry: Reservation) -> ReleaseEntry | None:
        """The entry that a reservation would return, or None where it would make one.

        Raises:
            BudgetRefused, ConfigError: where ``Ledger.reserve`` would.
        """
        return self.standing(self.named(entry))

    def named(self, entry: Reservation) -> Reservation:
        """The request with the name of its account; a recorded release keeps its own."""
        recorded = self.release(entry.release_id)
        if recorded is not None:
            return replace(entry, dataset=entry.dataset or recorded.dataset)
        return replace(entry, dataset=self.dataset_of(entry.table))

    def standing(self, entry: Reservation) -> ReleaseEntry | None:
        """As ``foreseen``, for a request with the name of its account."""
        account = self.balance(entry.dataset)
        if account is not None:
            check_protection(entry, account)
        if recorded := self.release(entry.release_id):
            check_resumed(entry, recorded)
            return recorded
        if account is not None and (earlier := _of_occasion(entry, account)):
            return earlier
        today = tables.today()
        opened = account or first_balance(entry, today)
        check_counted(entry, opened)
        check_allowed(entry, opened, self.name, today)
        return None


def _of_occasion(entry: Reservation, account: Balance) -> ReleaseEntry | None:
    """The release that an occasion has had already."""
    if entry.occasion is None:
        return None
    wanted = (entry.release, entry.occasion, entry.part)
    same = (r for r in account.releases if (r.release, r.occasion, r.part) == wanted)
    return next((r for r in same if r.state != "abandoned"), None)
