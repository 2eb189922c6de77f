"""The durable ledger: the budget spent on each dataset, and the privacy filter that refuses more.

Invariants, at every instant and whatever process dies:

- The recorded cost of a release is at least that of every answer it may have drawn. A release reserves its
  whole budget before the table is opened; only an end, at the cost of its journal, lowers its cost.
- The costs of a dataset's releases keep to its cap, by its filter.
- Each release has one holder: the run that reserved it or resumed it last. Only the holder closes it, once,
  with one digest of all answers.
- Every row is chained to the row before. Each use of the ledger checks the whole chain against its rows and
  its head file; the one exception is the check of the holder before each question, which reads one row.
- Committed rows are in the head file before further rows are added.
- All answers of one reading follow from the same rows. Only a reservation decides, within its transaction.

A release may end below its reservation where the costs of its answers add up by themselves, for whoever ends
it may have seen them. The (epsilon, delta) of a release that isn't pure does not add up so, and is charged as
it was reserved (``dpsynth.accounting.composition.charge``).

Amounts are exact. A caller that converts a float rounds a cost up and a cap down.

SQLAlchemy takes a third of a second to import: import this module where it is needed. Its arguments and
results are values of ``dpsynth.ledger.balance``, without SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path

from sqlalchemy import Connection

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost, charge
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, Interrupted
from dpsynth.ledger import contents
from dpsynth.ledger import store as tables
from dpsynth.ledger.balance import Balance, ReleaseEntry, Reservation, State, Table, dataset_of, first_balance
from dpsynth.ledger.chain import FIRST, GOVERNING, Fields, HeadFile, Kind, Row, broken_links
from dpsynth.ledger.contents import Book, InvalidRow, problems_of
from dpsynth.ledger.refusals import (
    check_allowance,
    check_allowed,
    check_cap,
    check_counted,
    check_end,
    check_holder,
    check_protection,
    check_reason,
    check_resumed,
    check_unit,
    hints,
    taken_over,
)
from dpsynth.ledger.store import Store, Stored


@dataclass(frozen=True, eq=False)
class Reading:
    """One reading of the ledger: its name, its rows as stored, and the accounts that they add up to.

    Attributes:
        connection: that of the transaction in which the ledger is changed; None where it is only read.
    """

    name: str
    rows: list[Row]
    book: Book
    connection: Connection | None = None

    def add(self, kind: Kind, dataset: str, release_id: str | None, content: Mapping[str, object]) -> None:
        assert self.connection is not None
        last, policy = self.rows[-1] if self.rows else None, self.book.policy
        if policy is not None and kind not in GOVERNING:
            content = policy.sealed(last, kind, dataset, release_id, content, self.day, self.release)
        row = tables.append(self.connection, last, kind, dataset, release_id, content)
        self.book.enter(row)
        self.rows.append(row)

    def recorded(self, release_id: str) -> ReleaseEntry:
        """The entry of a release; DpsynthError where it was never reserved."""
        found = self.release(release_id)
        if found is None:
            raise DpsynthError(f"Release {release_id} was never reserved in the ledger {self.name}.")
        return found

    def account(self, dataset: str, what: str = "cap") -> Balance:
        """A dataset's account; ConfigError where the ledger has none of it, whose ``what`` was to change."""
        found = self.balance(dataset)
        if found is None:
            names = ", ".join(f"'{a.dataset}'" for a in self.balances()) or "none"
            raise ConfigError(
                f"The ledger {self.name} has no dataset '{dataset}'; it has: {names}. A new dataset's "
                f"{what} is that of the config of its first release."
            )
        return found

    def balance(self, dataset: str) -> Balance | None:
        return self.book.balance(dataset)

    def balances(self) -> tuple[Balance, ...]:
        return self.book.balances()

    def release(self, release_id: str) -> ReleaseEntry | None:
        return self.book.release(release_id)

    def dataset_of(self, table: Table) -> str:
        """The name of a table's account, recorded or new.

        Raises:
            ConfigError: the table has an account of another name, or it can't be told which account it has.
        """
        return dataset_of(table, self.balances(), self.name)

    def account_of(self, table: Table, release_id: str | None = None) -> Balance | None:
        """The account of a release that is recorded, else of its table; None where the ledger has none of it.

        Raises:
            ConfigError: as ``dataset_of``.
        """
        recorded = None if release_id is None else self.release(release_id)
        return self.balance(self.dataset_of(table) if recorded is None else recorded.dataset)

    def hints(self, wanted: Reservation, bundles: Path) -> Iterator[str]:
        """Sentences about a new release, with its bundles in a folder, that its owner may not expect."""
        return hints(wanted, self.dataset_of(wanted.table), self.balances(), bundles)

    @property
    def day(self) -> date:
        """The date of a row that is added now: never before that of the last one."""
        return self.clock_behind or tables.today()

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
        if recorded := self.release(entry.release_id):
            entry = replace(entry, dataset=entry.dataset or recorded.dataset)
        return replace(entry, dataset=self.dataset_of(entry.table))

    def standing(self, entry: Reservation) -> ReleaseEntry | None:
        """As ``foreseen``, for a request with the name of its account."""
        account = self.balance(entry.dataset)
        if account is not None:
            check_protection(entry, account)
        if recorded := self.release(entry.release_id):
            check_resumed(entry, recorded)
            self._check_policy(entry, recorded)
            return recorded
        if account is not None and (earlier := _of_occasion(entry, account)):
            return earlier
        today = tables.today()
        opened = account or first_balance(entry, today)
        check_counted(entry, opened)
        check_allowance(entry, opened)
        check_allowed(entry, opened, self.name, today)
        self._check_policy(entry, None)
        return None

    def _check_policy(self, entry: Reservation, recorded: ReleaseEntry | None) -> None:
        if self.book.policy is not None:
            self.book.policy.check(entry, recorded, self.day, self.release, self.name)


def _of_occasion(entry: Reservation, account: Balance) -> ReleaseEntry | None:
    if entry.occasion is None:
        return None
    wanted = (entry.release, entry.occasion, entry.part)
    # Under an allowance each configuration, as of another question, is a release of its own.
    any_spec = entry.allowance is None
    about = (r for r in account.releases if any_spec or r.spec == entry.spec)
    same = (r for r in about if (r.release, r.occasion, r.part) == wanted)
    return next((r for r in same if r.state != "abandoned"), None)


@dataclass(frozen=True)
class _Checked:
    """Committed rows without a fault, their fields, and their accounts; none of them is changed."""

    stored: Sequence[Fields]
    rows: Sequence[Row]
    book: Book


class Sessions:
    """Sessions of a ledger, each for one reading or one change; no connection is kept in between.

    Each reads all rows. Those that are equal to the rows of the session before aren't hashed and added up
    again, so that a run of a release pays for that once, however long its ledger is.
    """

    def __init__(self, store: Store, head: Path | None) -> None:
        self._store = store
        self._head = head
        self._checked = _Checked([], [], Book())

    def reading(self, *, checking_head: bool = True) -> Reading:
        """The ledger to be read, checked against its head file if ``checking_head``.

        Others wait only while the rows are fetched, not while they are checked and added up.
        """
        if not self._store.exists:
            self.refuse_if_lost()
            return Reading(self._store.name, [], Book())
        with ExitStack() as stack:
            head, lines = None, list[bytes]()
            with self._store.transaction() as connection:
                stored = self._stored(connection)
                if self._head is not None and checking_head and (stored.rows or self._head.exists()):
                    head = stack.enter_context(HeadFile(self._head, create=False))
                    # Later lines may name later rows.
                    lines = head.lines()
            page = self._page(None, stored)
            if head is not None:
                self.refuse(next(head.problems(page.rows, lines), None))
            return page

    @contextmanager
    def changing(self, *, create: bool = False) -> Iterator[Reading]:
        """The ledger to be changed: committed if no error leaves the block, then noted in the head file.

        Under a policy a refusal is entered too, in a transaction of its own.
        """
        try:
            with self._changing(create=create) as page:
                yield page
        except BudgetRefused as error:
            self.note(error, page)
            raise

    def note(self, refusal: BudgetRefused, seen: Reading) -> None:
        """Enter a refusal if a policy was in force; it stands even if it can't be entered."""
        if seen.book.policy is not None:
            with suppress(ConfigError), self._changing() as page:
                page.add("refused", "", None, {"why": str(refusal)})

    @contextmanager
    def _changing(self, *, create: bool = False) -> Iterator[Reading]:
        if not create and not self._store.exists:
            self.refuse_if_lost()
            yield Reading(self._store.name, [], Book())
            return
        with ExitStack() as stack:
            head = None
            with self._store.transaction() as connection:
                page = self._page(connection, self._stored(connection, create=create))
                if self._head is not None:
                    head = stack.enter_context(HeadFile(self._head, create=not page.rows))
                    self.refuse(next(head.problems(page.rows, head.lines()), None))
                    # What was committed before must be known elsewhere before anything comes on top of it.
                    head.add(page.rows)
                yield page
            if head is not None:
                # The rows are committed already: the next session adds the line that can't be added now.
                with suppress(ConfigError):
                    head.add(page.rows)

    def _stored(self, connection: Connection, *, create: bool = False) -> Stored:
        if tables.present(connection, self._store.name, own_file=self._store.own_file):
            return tables.stored(connection)
        if create:
            tables.make(connection)
        return Stored([], 0, FIRST)

    def _page(self, connection: Connection | None, stored: Stored) -> Reading:
        before = self._checked
        known = len(before.rows)
        if stored.rows[:known] != before.stored:
            before, known = _Checked([], [], Book()), 0
        rows = [*before.rows, *(Row(*fields) for fields in stored.rows[known:])]
        self.refuse(next(broken_links(rows, stored.counted, stored.hashed, known), None))
        book = before.book.copy()
        for row in rows[known:]:
            try:
                book.enter(row)
            except InvalidRow as error:
                raise damaged(self._store.name, str(error)) from error
        self._checked = _Checked(stored.rows, rows, book)
        return Reading(self._store.name, list(rows), book.copy(), connection)

    def against_head(self, rows: Sequence[Row]) -> list[str]:
        if self._head is None or not (rows or self._head.exists()):
            return []
        try:
            with HeadFile(self._head, create=False) as head:
                return list(head.problems(rows, head.lines()))
        except ConfigError as error:
            return [str(error)]

    @property
    def lost(self) -> bool:
        """True if there is no ledger, but its head file.

        The head file is looked for first. Another process may make both meanwhile, the ledger before that.
        """
        return self._head is not None and self._head.exists() and not self._store.exists

    def refuse_if_lost(self) -> None:
        """ConfigError where there is no ledger, but its head file names rows."""
        if self._head is not None and self.lost:
            with HeadFile(self._head, create=False) as head:
                self.refuse(next(head.problems([], head.lines()), None))

    def refuse(self, problem: str | None) -> None:
        if problem is not None:
            raise damaged(self._store.name, problem)


def damaged(name: str, problem: str) -> ConfigError:
    """The error of a damaged ledger; the problem begins with the number of its row."""
    return ConfigError(
        f"The ledger {name} is damaged at {problem}. Restore it from a copy that has every release in it; "
        "dpsynth ledger verify says all that is wrong."
    )


__all__ = ["Balance", "Ledger", "ReleaseEntry", "Reservation", "Row", "State", "Verified"]


@dataclass(frozen=True)
class Verified:
    """The result of a check of the whole ledger.

    Attributes:
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

    @property
    def has_head_file(self) -> bool:
        return self._head is not None

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
        with self.changing(create=True) as page:
            entry = page.named(entry)
            if stands := page.standing(entry):
                return stands
            if page.balance(entry.dataset) is None:
                opened = first_balance(entry, tables.today())
                page.add("dataset", entry.dataset, None, contents.of_dataset(entry, opened.approximate_share))
            content = contents.of_reservation(entry, governed=page.book.policy is not None)
            page.add("reserved", entry.dataset, entry.release_id, content)
            return page.recorded(entry.release_id)

    def changing(self, *, create: bool = False) -> AbstractContextManager[Reading]:
        """The ledger, to add rows to it; committed if no error leaves the block.

        Args:
            create: True to make one if there is none, which has no rows.

        Raises:
            ConfigError: the ledger can't be used.
        """
        if create:
            self._sessions.refuse_if_lost()
            self._store.create()
        return self._sessions.changing(create=create)

    def foreseen(self, page: Reading, entry: Reservation) -> ReleaseEntry | None:
        """As ``Reading.foreseen``; a refusal under a policy is entered."""
        try:
            return page.foreseen(entry)
        except BudgetRefused as error:
            self._sessions.note(error, page)
            raise

    def take(self, release_id: str, holder: str) -> ReleaseEntry:
        """Make another run the holder of a release.

        Raises:
            TakenOver: the release has ended.
            DpsynthError: it was never reserved.
            ConfigError: the ledger can't be used.
        """
        with self._sessions.changing() as page:
            recorded = page.recorded(release_id)
            if recorded.state != "reserved":
                raise taken_over(release_id, recorded.state)
            if recorded.holder != holder:
                page.add("resumed", recorded.dataset, release_id, contents.of_resumption(holder))
            return page.recorded(release_id)

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

    def fence(self, release_id: str, holder: str) -> None:
        """As ``check_holder``, before a charge: nothing is asked while the ledger can't be read.

        Raises:
            Interrupted: the ledger can't be read.
        """
        try:
            self.check_holder(release_id, holder)
        except ConfigError as error:
            raise Interrupted(
                f"{error} Nothing is asked of the table unless the ledger says that no other run went on."
            ) from None

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
            cost: the cost of its journal; None where only its reservation bounds it.

        Raises:
            TakenOver: another run is the holder; or the release has ended with another digest.
            DpsynthError: the cost exceeds the reservation (which then stands), the release
                has ended otherwise, was never reserved, or the ledger can't be used.
        """
        with self._ending(release_id) as (page, recorded):
            if recorded.state == "closed" and recorded.digest != digest:
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
            cost: the cost of its journal; None without one, or where only its reservation bounds it.
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
        """Put another cap (epsilon, delta) in force, for a reason that stays on record.

        A cap below the sum that is counted already is allowed: it refuses all further spending. The cap in
        force, with its own reason, changes nothing. The share of delta that is kept for approximate deltas
        stays as it is unless it is given.

        Raises:
            ConfigError: no reason is given, the dataset is unknown, its filter can't keep to such a cap, or
                the ledger can't be used.
        """
        reason = check_reason(reason, "a cap")
        with self._sessions.changing() as page:
            account = page.account(dataset, "cap")
            share = account.approximate_share if approximate_share is None else approximate_share
            check_cap(cap, account, share)
            last = account.caps[-1]
            if (last.cap, last.approximate_share, last.reason) == (cap, share, reason):
                return account
            page.add("cap", dataset, None, contents.of_cap(cap, share, reason))
            return page.account(dataset)

    def change_unit(self, dataset: str, near: Neighbours, most_rows: int | None, reason: str) -> Balance:
        """Go on with persons in an account that protected rows, for a reason that stays on record.

        Releases so far count for a person as a change of ``most_rows`` rows from now on. Where nobody knows
        that number (None), they count as they did, and nothing is claimed of them for persons. The reason
        says how the number is known. The unit in force changes nothing.

        Raises:
            ConfigError: no reason is given, the dataset is unknown, protects something else than rows, or has
                releases that have not ended; or the ledger can't be used.
        """
        reason = check_reason(reason, "a unit")
        with self._sessions.changing() as page:
            account = page.account(dataset, "unit")
            last = account.changed
            asked = (near.unit, most_rows, reason)
            if last is not None and (last.unit, last.most_rows, last.reason) == asked:
                return account
            check_unit(near, most_rows, account)
            page.add("unit", dataset, None, contents.of_unit(near.unit, most_rows, reason))
            return page.account(dataset)

    def read(self) -> Reading:
        """The ledger as it is now, for several questions; ConfigError as ``balance``."""
        return self._sessions.reading()

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
    def _ending(self, release_id: str) -> Iterator[tuple[Reading, ReleaseEntry]]:
        try:
            with self._sessions.changing() as page:
                yield page, page.recorded(release_id)
        except ConfigError as error:
            raise DpsynthError(f"{error} What release {release_id} reserved stays reserved.") from error
