"""Readings and changes of the ledger: every row checked, and committed rows noted in the head file.

Invariant: no caller reads or changes a ledger whose chain is broken, whose rows contradict each other, or
which its head file contradicts; and committed rows are in the head file before further rows are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from dpsynth.errors import ConfigError
from dpsynth.ledger import tables
from dpsynth.ledger.book import Book, InvalidRow
from dpsynth.ledger.chain import FIRST, Fields, Kind, Row, broken_links
from dpsynth.ledger.head_file import HeadFile
from dpsynth.ledger.store import Store
from dpsynth.ledger.tables import Stored


class Page:
    """The ledger as it is read or changed.

    Attributes:
        rows: as stored, and those that are added.
        book: the accounts that they add up to.
    """

    def __init__(self, connection: Connection | None, rows: list[Row], book: Book) -> None:
        """Open the book of these rows."""
        self._connection = connection
        self.rows = rows
        self.book = book

    def add(self, kind: Kind, dataset: str, release_id: str | None, content: Mapping[str, object]) -> None:
        """Add a row, to the database too."""
        assert self._connection is not None
        last = self.rows[-1] if self.rows else None
        row = tables.append(self._connection, last, kind, dataset, release_id, content)
        self.book.enter(row)
        self.rows.append(row)


@dataclass(frozen=True)
class _Checked:
    """Committed rows in which no fault was found, and their accounts; none of them is changed.

    Attributes:
        stored: the fields of the rows.
        rows: the rows.
        book: their accounts.
    """

    stored: Sequence[Fields]
    rows: Sequence[Row]
    book: Book


class Sessions:
    """Sessions of a ledger, each for one reading or one change; no connection is kept in between.

    Each reads all rows. Those that are equal to the rows of the session before aren't hashed and added up
    again, so that a run of a release pays for that once, however long its ledger is.
    """

    def __init__(self, store: Store, head: Path | None) -> None:
        """Name a ledger and its head file, if one is kept. Neither is opened."""
        self._store = store
        self._head = head
        self._checked = _Checked([], [], Book())

    def reading(self, *, checking_head: bool = True) -> Page:
        """The ledger to be read, checked against its head file if ``checking_head``.

        Others wait only while the rows are fetched, not while they are checked and added up.
        """
        if not self._store.exists:
            self.refuse_if_lost()
            return Page(None, [], Book())
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
    def changing(self, *, create: bool = False) -> Iterator[Page]:
        """The ledger to be changed: committed if no error leaves the block, then noted in the head file."""
        if not create and not self._store.exists:
            self.refuse_if_lost()
            yield Page(None, [], Book())
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

    def _page(self, connection: Connection | None, stored: Stored) -> Page:
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
        return Page(connection, list(rows), book.copy())

    def against_head(self, rows: Sequence[Row]) -> list[str]:
        """The contradictions between the head file and the rows, in words."""
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
        """ConfigError of a problem, if there is one."""
        if problem is not None:
            raise damaged(self._store.name, problem)


def damaged(name: str, problem: str) -> ConfigError:
    """The error of a damaged ledger; the problem begins with the number of its row."""
    return ConfigError(
        f"The ledger {name} is damaged at {problem}. Restore it from a copy that has every release in it; "
        "dpsynth ledger verify says all that is wrong."
    )
