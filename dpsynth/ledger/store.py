"""The database of a ledger and the tables in it: one writer at a time, nothing lost once committed.

Invariant: a transaction sees everything that was committed before it began, and no other transaction runs at
the same time, so its checks still hold when it writes. A glance sees committed rows, changes nothing, and
waits for no lock. Rows are added, never changed or removed, and each is chained to the row before. The number
and the hash of the last row are stored as well, so that a missing last row is detected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpsynth.errors import ConfigError
from dpsynth.ledger.chain import FIRST, GOVERNING, Fields, Kind, Row, chained

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection


FORMAT, GOVERNED = 6, 7
"""The formats of the tables and of their rows' content: without and with rows of a policy or a withdrawal.

No other is read. A version that knows nothing of policies refuses the second one.
"""

_tables = MetaData()

_ledger = Table(
    "dpsynth_ledger",
    _tables,
    Column("format", Integer, primary_key=True),
    Column("rows", Integer, nullable=False),
    Column("hash", String, nullable=False),
)

_rows = Table(
    "dpsynth_rows",
    _tables,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("dataset", String, nullable=False),
    Column("release_id", String),
    Column("content", String, nullable=False),
    Column("created", String, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
)


def present(connection: Connection, name: str, *, own_file: bool) -> bool:
    """True if the database has the ledger's tables.

    Args:
        own_file: true if the database must hold no other tables.

    Raises:
        ConfigError: the file holds something else, a table is gone, or the format is of another version.
    """
    look = inspect(connection)
    # Wherever PostgreSQL's search path finds them: a schema that is put before must not hide the ledger.
    if not look.has_table(_ledger.name):
        if look.has_table(_rows.name):
            raise ConfigError(
                f"The ledger {name} is damaged: the table {_ledger.name} is gone. Restore it from a copy "
                "that has every release in it."
            )
        if own_file and look.get_table_names():
            raise ConfigError(
                f"The file of {name} is a database of something else, and no ledger. "
                "Name another file in ledger.url."
            )
        return False
    formats = list(connection.scalars(select(_ledger.c.format)))
    if formats not in ([FORMAT], [GOVERNED]):
        stated = formats[0] if len(formats) == 1 else "?"
        raise ConfigError(
            f"The ledger {name} is in format {stated}, and this version of dpsynth reads formats {FORMAT} "
            f"and {GOVERNED}. Use the version that wrote it, or begin another ledger, with "
            "caps that allow for what was spent."
        )
    return True


def make(connection: Connection) -> None:
    """Make the tables of a ledger without rows."""
    _tables.create_all(connection)
    connection.execute(insert(_ledger).values(format=FORMAT, rows=0, hash=FIRST))


class Stored(NamedTuple):
    """All that the ledger's tables hold. Damaged values may be of other types.

    Attributes:
        counted: number of rows by the ledger's record.
        hashed: hash of the last row by the ledger's record.
    """

    rows: list[Fields]
    counted: object
    hashed: object


def stored(connection: Connection) -> Stored:
    """All that the tables hold."""
    rows = [tuple(row) for row in connection.execute(select(_rows).order_by(_rows.c.number))]
    counted, hashed = connection.execute(select(_ledger.c.rows, _ledger.c.hash)).one()
    return Stored(rows, counted, hashed)


def last_of(connection: Connection, release_id: str) -> Row | None:
    """The last row about a release."""
    about = select(_rows).where(_rows.c.release_id == release_id).order_by(_rows.c.number.desc()).limit(1)
    found = connection.execute(about).one_or_none()
    return None if found is None else Row(*found)


def append(
    connection: Connection,
    last: Row | None,
    kind: Kind,
    dataset: str,
    release_id: str | None,
    content: Mapping[str, object],
) -> Row:
    """Add one row after the last. Its date is the clock's, or that of the last row if that is later.

    Raises:
        ConfigError: a name holds characters that databases don't take.
    """
    for text in (dataset, release_id or ""):
        if "\0" in text or text.encode(errors="replace").decode() != text:
            raise ConfigError(
                f"The name {text!r} holds characters that no ledger can keep. Use another name."
            )
    created = max(today().isoformat(), "" if last is None else last.created)
    facts = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    row = chained(last, kind, dataset, release_id, facts, created)
    names = [column.name for column in _rows.columns]
    connection.execute(insert(_rows).values(dict(zip(names, astuple(row), strict=True))))
    raised = {"format": GOVERNED} if kind in GOVERNING else {}
    connection.execute(update(_ledger).values(rows=row.number, hash=row.hash, **raised))
    return row


def today() -> date:
    """The clock's date, UTC."""
    return datetime.now(UTC).date()


BUSY_SECONDS = 30

CONNECT_SECONDS = 10

IDLE_SECONDS = 120

_ALONE = {
    "sqlite": "BEGIN IMMEDIATE",
    # Any fixed number will do: it names the lock within the database.
    "postgresql": "SELECT pg_advisory_xact_lock(7311994550872311)",
}

# Nobody waits for ever; a client whose machine went away gives up the lock; and what was committed is on
# disk, whatever the server's default is.
_SETTINGS = {
    "sqlite": "",
    "postgresql": (
        f"SELECT set_config('lock_timeout', '{BUSY_SECONDS}s', true), "
        f"set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', true), "
        "CASE current_setting('synchronous_commit') WHEN 'off' "
        "THEN set_config('synchronous_commit', 'on', true) END"
    ),
}

_GLANCE = "dpsynth_glance"

_MAKING = Lock()

_GRAMMAR = "Write ledger.url as sqlite:///ledger.db, or as postgresql://user@host/database."


class Store:
    """A database that can hold a ledger, not yet opened."""

    def __init__(self, url: str) -> None:
        """Check the URL and, for SQLite, that its file is or can be made writable.

        Raises:
            ConfigError: the URL is malformed, or the file can't be written.
        """
        address = _parsed(url)
        self.name = address.difference_update_query(["password", "sslpassword"]).render_as_string()
        self._file: Path | None = None
        options: dict[str, Any] = {}
        if address.get_backend_name() == "sqlite":
            self._file = _checked_file(address, self.name)
            options["connect_args"] = {"timeout": BUSY_SECONDS}
        else:
            # Under a stricter level the snapshot would be older than the lock.
            options["isolation_level"] = "READ COMMITTED"
            options["connect_args"] = {"connect_timeout": CONNECT_SECONDS}
        try:
            self._engine = create_engine(address, poolclass=NullPool, **options)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"A ledger at {self.name} needs psycopg. Install it with: pip install 'dpsynth[postgres]'"
            ) from error
        except ArgumentError as error:
            # A host in the address of a file.
            raise ConfigError(f"The ledger's URL can't be read. {_GRAMMAR}") from error
        if self._file is not None:
            event.listen(self._engine, "connect", _prepare_sqlite)
        event.listen(self._engine, "begin", _begin_alone)

    @property
    def own_file(self) -> bool:
        """True if the database is a file of the ledger's own, which holds no other tables."""
        return self._file is not None

    def stands_at(self, path: Path) -> bool:
        return self._file is not None and self._file.resolve() == path.resolve()

    @property
    def exists(self) -> bool:
        """True if there is a ledger to open; an empty file is none yet."""
        return self._file is None or (self._file.exists() and self._file.stat().st_size > 0)

    def create(self) -> None:
        """Make a SQLite ledger's file, readable by its owner only, and the folders above it.

        Raises:
            ConfigError: they can't be made.
        """
        if self._file is None:
            return
        try:
            with _MAKING:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                # A file that is there is not opened: closing it would undo the locks that SQLite has on it
                # for other threads of this process.
                with suppress(FileExistsError):
                    os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise ConfigError(f"The ledger {self.name} can't be made: {error.strerror}.") from error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """The only transaction at its time, committed if no error leaves the block.

        Raises:
            ConfigError: the database can't be opened, is damaged, full, or stays locked. Nothing was changed
                then, unless its text says that this is uncertain.
        """
        with self._database_errors() as ending, self._engine.begin() as connection:
            yield connection
            ending.append(True)

    @contextmanager
    def glance(self) -> Iterator[Connection]:
        """A connection that reads committed rows while others may be writing.

        Raises:
            ConfigError: the database can't be opened or read.
        """
        if not self.exists:
            raise ConfigError(f"The ledger {self.name} can't be used: it is gone.")
        engine = self._engine.execution_options(**{_GLANCE: True})
        with self._database_errors(), engine.connect() as connection:
            yield connection

    @contextmanager
    def _database_errors(self) -> Iterator[list[bool]]:
        """Errors of the database as ConfigError; the list has an entry once only the commit is left."""
        ending: list[bool] = []
        try:
            yield ending
        except (SQLAlchemyError, UnicodeError) as error:
            why = _reason(error, bool(ending))
            raise ConfigError(f"The ledger {self.name} can't be used: {why}") from error

    def damage(self) -> list[str]:
        """The faults that SQLite finds in its file, beyond the rows that the ledger reads."""
        if self._file is None:
            return []
        with self.transaction() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        return [] if found == ["ok"] else [str(line) for line in found]


def _reason(error: Exception, ending: bool) -> str:
    if isinstance(error, UnicodeError):
        # SQLite quotes what it can't read in its message, and the driver can't read that.
        return "its file is damaged."
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0].rstrip(".")
    if "file is not a database" in reason:
        return "its file is no database. Name another file in ledger.url."
    if "is full" in reason or "No space left" in reason:
        return f"{reason}. Nothing was changed; make room where it is kept."
    if ending and isinstance(error, DBAPIError) and error.connection_invalidated:
        return (
            f"{reason}. The connection broke just when the entry was being made, so it can't be told "
            "whether it was; the ledger tells once it is back."
        )
    return f"{reason}."


def _parsed(url: str) -> URL:
    try:
        address = make_url(url)
    except (ArgumentError, ValueError) as error:
        # The text isn't repeated: it may hold a password.
        raise ConfigError(f"The ledger's URL can't be read. {_GRAMMAR}") from error
    if address.drivername in ("postgresql", "postgres"):
        return address.set(drivername="postgresql+psycopg")
    if address.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise ConfigError(f"A ledger can't be kept in '{address.drivername}'. {_GRAMMAR}")
    return address


def _checked_file(address: URL, name: str) -> Path:
    if address.query or not address.database or address.database == ":memory:":
        raise ConfigError(f"The ledger {name} is no file, so it would not outlive the process. {_GRAMMAR}")
    file = Path(address.database)
    try:
        folder, present = file.is_dir(), file.exists()
    except OSError as error:
        raise ConfigError(f"The ledger {name} can't be reached: {error.strerror}.") from error
    if folder:
        raise ConfigError(f"The ledger {name} is a folder; name a file in it.")
    if present:
        if not os.access(file, os.R_OK | os.W_OK):
            raise ConfigError(f"The ledger {name} can't be read and written by this user.")
        return file
    above = next(folder for folder in file.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ConfigError(f"The ledger {name} can't be made: {above} is a file, and no folder.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ConfigError(f"The ledger {name} can't be made: this user may not write to {above}.")
    return file


def _prepare_sqlite(connection: DBAPIConnection, _record: object) -> None:
    # The driver would begin transactions by itself, and only at the first write.
    connection.isolation_level = None
    # A damaged text must be seen as such, not end in an error.
    connection.text_factory = lambda stored: stored.decode(errors="surrogateescape")
    cursor = connection.cursor()
    # FULL would let a loss of power bring a journal back that was already deleted, and undo a commit.
    cursor.execute("PRAGMA synchronous = EXTRA")
    cursor.execute("PRAGMA fullfsync = ON")
    cursor.execute("PRAGMA cell_size_check = ON")
    cursor.execute("PRAGMA trusted_schema = OFF")
    cursor.close()


def _begin_alone(connection: Connection) -> None:
    if connection.get_execution_options().get(_GLANCE):
        return
    kind = connection.dialect.name
    if settings := _SETTINGS[kind]:
        connection.exec_driver_sql(settings)
    connection.exec_driver_sql(_ALONE[kind])
