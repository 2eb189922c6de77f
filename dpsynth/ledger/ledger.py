"""The durable ledger: the budget spent on each dataset, and the privacy filter that refuses more.

Invariants, at every instant and whatever process dies:

- The recorded cost of a release is at least that of every answer it may have drawn. A release reserves its
  whole budget before the table is opened; only an end, at the cost of its journal, lowers its cost.
- The costs of a dataset's releases keep to its cap, by its filter.
- Each release has one holder: the run that reserved it or resumed it last. Only the holder closes it, once,
  with one digest of all answers.
- Every row is chained to the row before. Each use of the ledger checks the whole chain; the one exception is
  the check of the holder before each question, which reads one row.

A release may end below its reservation where the costs of its answers add up by themselves, for whoever ends
it may have seen them. The (epsilon, delta) of a release that isn't pure does not add up so, and is charged as
it was reserved (``dpsynth.accounting.cost.charge``).

Amounts are exact. A caller that converts a float rounds a cost up and a cap down.

SQLAlchemy takes a third of a second to import: import this module where it is needed. Its arguments and
results are values of ``dpsynth.ledger.balance``, without SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.cost import Cost, charge
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.ledger import contents, tables
from dpsynth.ledger.balance import Balance, ReleaseEntry, Reservation, State, first_balance
from dpsynth.ledger.book import problems_of
from dpsynth.ledger.chain import FIRST, Row, broken_links
from dpsynth.ledger.head_file import HeadFile
from dpsynth.ledger.reading import Reading
from dpsynth.ledger.refusals import (
    check_cap,
    check_end,
    check_holder,
    check_reason,
    check_unit,
    taken_over,
)
from dpsynth.ledger.sessions import Page, Sessions, damaged
from dpsynth.ledger.store import Store

__all__ = ["Balance", "Ledger", "ReleaseEntry", "Reservation", "Row", "State", "Verified"]


@dataclass(frozen=True)
class Verified:
    """The result of a check of the whole ledger.

    Attributes:
        rows: number of rows.
        hash: hash of the last row; zeros where there is none.
        problems: the faults in words; empty where there are none.
    """

    rows: int
    hash: str
    problems: tuple[str, ...]


class Ledger:
    """The ledger in a database, by URL: ``sqlite:///ledger.db`` or ``postgresql://user@host/name``.

    Reading changes nothing: a SQLite file (with mode 0600), tables and the head file are made by the first
    reservation. Every reading and every change checks the whole chain against the head file. No connection is
    kept in between.
    """

    def __init__(self, url: str, head: str | Path | None = None) -> None:
        """Check that the URL can hold a ledger. The ledger itself is not opened.

        Args:
            url: URL of the database.
            head: path of the head file, if one is kept.

        Raises:
            ConfigError: the URL is malformed or of another kind, the file can't be written, or the head
                file is the ledger itself.
        """
        self._store = Store(url)
        self._head = None if head is None else Path(head)
        if self._head is not None:
            try:
                self._head.exists()
                same = self._store.stands_at(self._head)
            except (OSError, RuntimeError):
                # A name that is too long, or links in a circle.
                raise ConfigError(
                    f"The ledger's head file {self._head} can't be reached. Correct ledger.head."
                ) from None
            if same:
                raise ConfigError(
                    f"The head file {self._head} is the ledger itself. Keep it elsewhere, best on another "
                    "disk."
                )
        self._sessions = Sessions(self._store, self._head)

    @property
    def name(self) -> str:
        """The name for people: the URL without a password."""
        return self._store.name

    def reserve(self, entry: Reservation) -> ReleaseEntry:
        """Count a release's whole budget against its dataset, or refuse and change nothing.

        A resumed release asks again and gets its own entry, reserved or closed; nothing changes. A closed
        release has no budget to draw with. Nothing changes either where a release of the same dataset, name,
        part and occasion is recorded under another id and was not abandoned: an occasion is released once.

        The cap is the one in force for the dataset. A lower cap in the config holds for this reservation; a
        higher cap has no effect.

        Returns:
            The entry of the release, or that of its occasion.

        Raises:
            BudgetRefused: with this release in full, the costs of the dataset would exceed the cap.
            ConfigError: the source has another account; the dataset is recorded with another unit, relation
                or filter, the id belongs to another release or an abandoned one, or the ledger can't be used.
        """
        self._sessions.refuse_if_lost()
        self._store.create()
        with self._sessions.changing(create=True) as page:
            now = self._as_read(page)
            entry = now.named(entry)
            if stands := now.standing(entry):
                return stands
            if page.book.balance(entry.dataset) is None:
                opened = first_balance(entry, tables.today())
                page.add("dataset", entry.dataset, None, contents.of_dataset(entry, opened.approximate_share))
            page.add("reserved", entry.dataset, entry.release_id, contents.of_reservation(entry))
            made = page.book.release(entry.release_id)
            assert made is not None
            return made

    def take(self, release_id: str, holder: str) -> ReleaseEntry:
        """Make another run the holder of a release.

        Raises:
            TakenOver: the release has ended.
            DpsynthError: it was never reserved.
            ConfigError: the ledger can't be used.
        """
        with self._sessions.changing() as page:
            recorded = self._recorded(release_id, page)
            if recorded.state != "reserved":
                raise taken_over(release_id, recorded.state)
            if recorded.holder != holder:
                page.add("resumed", recorded.dataset, release_id, contents.of_resumption(holder))
            return self._recorded(release_id, page)

    def check_holder(self, release_id: str, holder: str) -> None:
        """Check that a run is still the holder of a release; one row is read, not the chain.

        Raises:
            TakenOver: another run is the holder, or the release has ended.
            ConfigError: the ledger can't be read.
        """
        with self._store.glance() as connection:
            last = tables.last_of(connection, release_id)
        if last is None:
            raise ConfigError(f"The ledger {self.name} can't be used: it has no release {release_id}.")
        try:
            said = contents.holder_of(last)
        except contents.UNREADABLE as error:
            raise damaged(self.name, f"row {last.number}: it can't be read") from error
        if said != holder:
            raise taken_over(release_id, contents.state_after(last))

    def settle(
        self,
        release_id: str,
        cost: Cost | None,
        events: Sequence[Mapping[str, object]],
        holder: str = "",
        digest: str = "",
    ) -> None:
        """Close a release at the cost of its journal; the rest of its reservation is free again.

        The same cost and digest a second time change nothing, whichever run gives them.

        Args:
            release_id: id of the release.
            cost: the cost of its journal; None where only its reservation bounds it.
            events: the events of its journal.
            holder: the run that asks.
            digest: digest of all questions and answers.

        Raises:
            TakenOver: another run is the holder; or the release has ended with another digest.
            DpsynthError: the cost exceeds the reservation (which then stands), the release
                has ended otherwise, was never reserved, or the ledger can't be used.
        """
        with self._ending(release_id) as (page, recorded):
            if recorded.state == "closed" and recorded.digest not in ("", digest):
                raise taken_over(release_id, recorded.state)
            said = recorded.reserved if cost is None else cost
            charged = charge(recorded.reserved, said)
            if (recorded.state, recorded.cost) == ("closed", charged):
                return
            if recorded.state != "closed":
                check_holder(recorded, holder)
            check_end(recorded, "closed", said)
            page.add("closed", recorded.dataset, release_id, contents.of_end(charged, events, "", digest))

    def abandon(
        self,
        release_id: str,
        cost: Cost | None,
        events: Sequence[Mapping[str, object]],
        reason: str = "",
        holder: str | None = None,
    ) -> None:
        """End a release that will not be finished, charged with the cost of its journal.

        Without a journal, or where nothing less bounds the release, the whole reservation is charged. A run
        that is still under way can neither ask nor settle from then on.

        Args:
            release_id: id of the release.
            cost: the cost of its journal; None without one, or where only its reservation bounds it.
            events: the events of its journal.
            reason: the reason why it is given up.
            holder: the run whose journal it is; None without a journal.

        Raises:
            DpsynthError: it was resumed since, so that the cost may be too low; or as ``settle``.
        """
        with self._ending(release_id) as (page, recorded):
            said = recorded.reserved if cost is None else cost
            charged = charge(recorded.reserved, said)
            if (recorded.state, recorded.cost) == ("abandoned", charged):
                return
            check_end(recorded, "abandoned", said)
            if holder is not None and holder != recorded.holder:
                raise DpsynthError(
                    f"Release {release_id} has been resumed since its journal was read, so it may have been "
                    "asked more. Nothing was changed. See whether it is running, and decide again."
                )
            page.add("abandoned", recorded.dataset, release_id, contents.of_end(charged, events, reason, ""))

    def change_cap(
        self, dataset: str, cap: Amount, reason: str, approximate_share: Fraction | None = None
    ) -> Balance:
        """Put another cap in force, for a reason that stays on record.

        A cap below the sum that is counted already is allowed: it refuses all further spending. The cap in
        force, with its own reason, changes nothing.

        Args:
            dataset: name of the dataset.
            cap: (epsilon, delta).
            reason: the reason for it.
            approximate_share: the share of delta to be kept for approximate deltas, below 1; None where it
                stays as it is.

        Returns:
            The account under the new cap.

        Raises:
            ConfigError: no reason is given, the dataset is unknown, its filter can't keep to such a cap, or
                the ledger can't be used.
        """
        reason = check_reason(reason, "a cap")
        with self._sessions.changing() as page:
            account = self._account(dataset, page, "cap")
            share = account.approximate_share if approximate_share is None else approximate_share
            check_cap(cap, account, share)
            last = account.caps[-1]
            if (last.cap, last.approximate_share, last.reason) == (cap, share, reason):
                return account
            page.add("cap", dataset, None, contents.of_cap(cap, share, reason))
            changed = page.book.balance(dataset)
            assert changed is not None
            return changed

    def change_unit(self, dataset: str, near: Neighbours, most_rows: int | None, reason: str) -> Balance:
        """Go on with persons in an account that protected rows, for a reason that stays on record.

        Releases so far count for a person as a change of ``most_rows`` rows from now on. Where nobody knows
        that number, they count as they did, and nothing is claimed of them for persons. The unit in force
        changes nothing.

        Args:
            dataset: name of the dataset.
            near: the relation and the unit from now on.
            most_rows: the most rows that a unit has in any release so far; None where nobody knows.
            reason: the reason for it, and how that number is known.

        Returns:
            The account with the unit.

        Raises:
            ConfigError: no reason is given, the dataset is unknown, protects something else than rows, or has
                releases that have not ended; or the ledger can't be used.
        """
        reason = check_reason(reason, "a unit")
        with self._sessions.changing() as page:
            account = self._account(dataset, page, "unit")
            last = account.changed
            if last is not None and (last.unit, last.most_rows, last.reason) == (
                near.unit,
                most_rows,
                reason,
            ):
                return account
            check_unit(near, most_rows, account)
            page.add("unit", dataset, None, contents.of_unit(near.unit, most_rows, reason))
            changed = page.book.balance(dataset)
            assert changed is not None
            return changed

    def _account(self, dataset: str, page: Page, what: str) -> Balance:
        """A dataset's account, which is to be changed."""
        account = page.book.balance(dataset)
        if account is None:
            recorded = ", ".join(f"'{a.dataset}'" for a in page.book.balances()) or "none"
            raise ConfigError(
                f"The ledger {self._store.name} has no dataset '{dataset}'; it has: {recorded}. A new "
                f"dataset's {what} is that of the config of its first release."
            )
        return account

    def read(self) -> Reading:
        """The ledger as it is now, for several questions; ConfigError as ``balance``."""
        return self._as_read(self._sessions.reading())

    def balance(self, dataset: str) -> Balance | None:
        """A dataset's account, or None where the ledger has none of it.

        Raises:
            ConfigError: the ledger can't be used, is damaged, or is older than its head file.
        """
        return self.read().balance(dataset)

    def balances(self) -> tuple[Balance, ...]:
        """Every dataset's account, in the order of their opening; ConfigError as ``balance``."""
        return self.read().balances()

    def release(self, release_id: str) -> ReleaseEntry | None:
        """The entry of a release, or None; ConfigError as ``balance``."""
        return self.read().release(release_id)

    def state(self, release_id: str) -> State | None:
        """The state of a release, or None where it was never reserved; ConfigError as ``balance``."""
        found = self.release(release_id)
        return None if found is None else found.state

    def rows(self) -> tuple[Row, ...]:
        """The rows as they are stored; ConfigError as ``balance``."""
        return tuple(self.read().rows)

    def begin_head(self) -> None:
        """Start the head file from the recorded rows, or add the last of them to a head file that matches.

        Raises:
            ConfigError: no head file is named, it contradicts the ledger, or the ledger is empty or
                damaged.
        """
        if self._head is None:
            raise ConfigError("Name the head file: with --head, or with ledger.head in the config.")
        page = self._sessions.reading(checking_head=False)
        if not page.rows:
            raise ConfigError(
                f"There is nothing in the ledger {self.name} yet; its first release makes the file."
            )
        with HeadFile(self._head, create=True) as head:
            self._sessions.refuse(next(head.problems(page.rows, head.lines()), None))
            head.add(page.rows)

    def verify(self) -> Verified:
        """Check everything that can be checked. Faults are reported, not raised, and end no check."""
        if not self._store.exists:
            problems = self._sessions.against_head([]) if self._sessions.lost else []
            return Verified(0, FIRST, tuple(problems))
        rows: list[Row] = []
        try:
            problems = self._store.damage()
            with self._store.transaction() as connection:
                if tables.present(connection, self.name, own_file=self._store.own_file):
                    found = tables.stored(connection)
                    rows = [Row(*fields) for fields in found.rows]
                    problems += [*broken_links(rows, found.counted, found.hashed), *problems_of(rows)]
                problems += self._sessions.against_head(rows)
        except ConfigError as error:
            return Verified(0, FIRST, (str(error),))
        last = str(rows[-1].hash) if rows else FIRST
        return Verified(len(rows), last, tuple(dict.fromkeys(problems)))

    @contextmanager
    def _ending(self, release_id: str) -> Iterator[tuple[Page, ReleaseEntry]]:
        """The ledger and a release that is to end; an error says that its reservation stands."""
        try:
            with self._sessions.changing() as page:
                yield page, self._recorded(release_id, page)
        except ConfigError as error:
            raise DpsynthError(f"{error} What release {release_id} reserved stays reserved.") from error

    def _as_read(self, page: Page) -> Reading:
        return Reading(self.name, page.rows, page.book)

    def _recorded(self, release_id: str, page: Page) -> ReleaseEntry:
        recorded = page.book.release(release_id)
        if recorded is None:
            raise DpsynthError(f"Release {release_id} was never reserved in the ledger {self.name}.")
        return recorded
