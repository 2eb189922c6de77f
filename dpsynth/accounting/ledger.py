"""The durable ledger: what was ever spent on each dataset, and a filter that refuses more.

Invariant: at every instant, whatever process dies, the recorded cost of a release is at
least that of every answer it may have drawn, and the costs recorded for a dataset sum to
no more than its cap. A release reserves its whole budget before the table is opened; only
an end, at the figures of its journal, lowers what it counts for.

Ending below the reservation relies on the journal's figures bounding that release by
themselves, as they do where the plan fixed the number and the cost of its questions
beforehand, or where a filter inside the release did.

Amounts are exact. Whoever converts a float must have rounded a cost up and a cap down.

SQLAlchemy takes a third of a second to import: import this module where it is needed. The
values that it takes and gives are in ``dpsynth.accounting.balance``, without SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction

from sqlalchemy import Connection

from dpsynth.accounting import ledger_tables as tables
from dpsynth.accounting.amount import Amount
from dpsynth.accounting.balance import (
    Balance,
    ReleaseEntry,
    Reservation,
    State,
    check_allowed,
    check_protection,
    check_resumed,
    first_balance,
)
from dpsynth.accounting.ledger_store import Store
from dpsynth.errors import ConfigError, DpsynthError

__all__ = ["Balance", "Ledger", "ReleaseEntry", "Reservation", "State"]


class Ledger:
    """The ledger in a database, by URL: ``sqlite:///ledger.db`` or ``postgresql://user@host/name``.

    A SQLite file is made, with mode 0600, by the first reservation and not before.
    """

    def __init__(self, url: str) -> None:
        """Check that the URL can hold a ledger.

        Raises:
            ConfigError: the URL is malformed or of another kind, the place can't be written,
                or what stands there is no ledger.
        """
        self._store = Store(url)
        if self._store.exists:
            with self._open():
                pass

    def reserve(self, entry: Reservation) -> None:
        """Count a release's whole budget against its dataset, or refuse and change nothing.

        A resumed release asks again and finds its reservation standing, or closed: the same
        id, dataset, unit, relation, epsilon and delta change nothing. A closed release has
        no budget to draw with; ``state`` says which it is.

        The cap is the one first recorded for the dataset. A lower one in the config holds
        for this reservation; a higher one raises nothing.

        Raises:
            BudgetRefused: cap < spent + reserved + this, in epsilon or in delta.
            ConfigError: the dataset is recorded with another unit or relation, the id stands
                for another release or an abandoned one, or the ledger can't be used.
        """
        account = first_balance(entry)
        self._store.create()
        with self._open() as connection:
            recorded = tables.balance(connection, entry.dataset)
            if recorded is not None:
                check_protection(entry, recorded)
            if earlier := tables.history(connection, entry.release_id):
                check_resumed(entry, earlier)
                return
            check_allowed(entry, recorded or account, self._store.name)
            if recorded is None:
                tables.add_dataset(connection, account)
            tables.add_reservation(connection, entry)

    def settle(
        self,
        release_id: str,
        epsilon: Fraction,
        delta: Fraction,
        events: Sequence[Mapping[str, object]],
    ) -> None:
        """Close a release at what its journal says; what it did not use is free again.

        The same figures a second time change nothing.

        Raises:
            DpsynthError: the figures exceed the reservation (which then stands), the release
                has ended otherwise, was never reserved, or the ledger can't be used.
            TypeError, ValueError: a figure is a float, or negative.
        """
        self._end(release_id, "closed", Amount(epsilon, delta), events)

    def abandon(
        self,
        release_id: str,
        epsilon: Fraction | None,
        delta: Fraction | None,
        events: Sequence[Mapping[str, object]],
    ) -> None:
        """End a release that will not be finished, charged with its journal's figures.

        Without figures (no journal to read) the whole reservation is charged.

        Raises:
            DpsynthError, TypeError, ValueError: as ``settle``.
        """
        figures = None if epsilon is None or delta is None else Amount(epsilon, delta)
        self._end(release_id, "abandoned", figures, events)

    def balance(self, dataset: str) -> Balance | None:
        """A dataset's account, or None where the ledger has none of it.

        Raises:
            ConfigError: the ledger can't be used.
        """
        if not self._store.exists:
            return None
        with self._open() as connection:
            return tables.balance(connection, dataset)

    def state(self, release_id: str) -> State | None:
        """Where a release stands, or None where it was never reserved.

        Raises:
            ConfigError: the ledger can't be used.
        """
        if not self._store.exists:
            return None
        with self._open() as connection:
            history = tables.history(connection, release_id)
        return history[-1].state if history else None

    def _end(
        self, release_id: str, state: State, figures: Amount | None, events: Sequence[Mapping[str, object]]
    ) -> None:
        if not self._store.exists:
            raise DpsynthError(f"Release {release_id} was never reserved in the ledger {self._store.name}.")
        try:
            with self._open() as connection:
                self._write_end(connection, release_id, state, figures, events)
        except ConfigError as error:
            raise DpsynthError(f"{error} What release {release_id} reserved stays reserved.") from error

    def _write_end(
        self,
        connection: Connection,
        release_id: str,
        state: State,
        figures: Amount | None,
        events: Sequence[Mapping[str, object]],
    ) -> None:
        history = tables.history(connection, release_id)
        if not history:
            raise DpsynthError(f"Release {release_id} was never reserved in the ledger {self._store.name}.")
        reservation, last = history[0], history[-1]
        charge = reservation.cost if figures is None else figures
        if (last.state, last.cost) == (state, charge):
            return
        if last.state != "reserved":
            raise DpsynthError(
                f"Release {release_id} is already {last.state} in the ledger at {last.cost.shown()}; it "
                f"can't become {state} at {charge.shown()}."
            )
        if not charge.within(reservation.cost):
            raise DpsynthError(
                f"The journal of release {release_id} adds up to {charge.shown()}, more than the "
                f"{reservation.cost.shown()} that it reserved. The reservation stands. This is a fault of "
                "the software; please report it as SECURITY.md says."
            )
        tables.add_end(connection, reservation, state, charge, events)

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        with self._store.transaction() as connection:
            tables.prepare(connection, self._store.name, own_file=self._store.own_file)
            yield connection
