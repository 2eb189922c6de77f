"""The end of a release that will not be finished, charged with what bounds it at that end.

Invariant: a release that has asked something is never charged less than its journal says; nor less than it
reserved, where only that bounds it (``dpsynth.accounting.cost.charge``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.accounting.cost import Cost
from dpsynth.errors import ConfigError
from dpsynth.ledger.views import share_in_words
from dpsynth.pipeline.release_run import spent_by

if TYPE_CHECKING:
    from dpsynth.ledger.balance import ReleaseEntry
    from dpsynth.ledger.ledger import Ledger


@dataclass(frozen=True)
class Ending:
    """The end of a release that will not be finished, before it is entered in the ledger.

    Attributes:
        book: the ledger.
        entry: the release.
        path: its journal; None where there is none.
        cost: the cost of the journal; None without one, or where only the reservation bounds the release.
        events: the journal's events.
    """

    book: Ledger
    entry: ReleaseEntry
    path: Path | None
    cost: Cost | None
    events: list[dict[str, object]]

    @classmethod
    def of(cls, book: Ledger, release_id: str, journal: Callable[[], Path | None]) -> Ending:
        """The end of a release that the ledger has as reserved.

        Raises:
            ConfigError: the ledger has no such release, it has ended, or its journal can't be used.
        """
        entry = book.release(release_id)
        if entry is None:
            raise ConfigError(f"The ledger has no release {release_id}; dpsynth ledger show lists them.")
        if entry.state != "reserved":
            raise ConfigError(
                f"Release {release_id} has ended: it is {entry.state} at {entry.cost.amount.shown()}. Only "
                "one that is reserved can be abandoned."
            )
        path = journal()
        if path is None:
            return cls(book, entry, None, None, [])
        return cls(book, entry, path, *spent_by(path, release_id, entry.holder))

    @property
    def sentence(self) -> str:
        """What the release counts for once it is abandoned."""
        entry, account = self.entry, self.book.balance(self.entry.dataset)
        assert account is not None
        reserved, left = entry.reserved, self.cost
        if self.path is None:
            counts = "all of that, for no journal was found"
        elif left is None or not (account.filter.needs_delta or left.pure):
            counts = "all of that: its ε at its δ is that of the release as a whole, wherever it ends"
        else:
            counts = f"{share_in_words(account.share_of(left))} of the cap, as {self.path} says"
        return (
            f"Release {entry.release_id} of dataset '{entry.dataset}' reserved {reserved.amount.shown()}: "
            f"{share_in_words(account.share_of(reserved))} of the cap. Abandoned, it counts for {counts}. "
            "It can't be resumed afterwards."
        )

    def enter(self, why: str) -> None:
        """Enter the end in the ledger."""
        entry = self.entry
        holder = None if self.path is None else entry.holder
        self.book.abandon(entry.release_id, self.cost, self.events, why, holder)
