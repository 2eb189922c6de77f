"""The end of a release that will not be finished, charged with what its journal says.

Invariant: a release that has asked something is never charged less than its journal says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.accounting.cost import Cost
from dpsynth.errors import ConfigError
from dpsynth.lifecycle.release_run import spent_by

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
        cost: what the journal charges; None without one: all that was reserved.
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
        entry = self.entry
        charge = entry.reserved.amount if self.cost is None else self.cost.amount
        source = (
            "all that it reserved, for no journal was found" if self.path is None else f"as {self.path} says"
        )
        return (
            f"Release {entry.release_id} of dataset '{entry.dataset}' reserved "
            f"{entry.reserved.amount.shown()}. Abandoned, it counts for {charge.shown()}, {source}. It can't "
            "be resumed afterwards."
        )

    def enter(self, why: str) -> None:
        """Enter the end in the ledger."""
        entry = self.entry
        holder = None if self.cost is None else entry.holder
        self.book.abandon(entry.release_id, self.cost, self.events, why, holder)
