"""The database of a ledger: one writer at a time, nothing lost once committed.

Invariant: a transaction sees everything that was committed before it began, and no other transaction runs at
the same time, so its checks still hold when it writes. A glance sees committed rows, changes nothing, and
waits for no lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpsynth.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection

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
        self.name = address.render_as_string(hide_password=True)
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
        """True if a path is that of the database's own file."""
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
    connection.text_factory = _text
    cursor = connection.cursor()
    # FULL would let a loss of power bring a journal back that was already deleted, and undo a commit.
    cursor.execute("PRAGMA synchronous = EXTRA")
    cursor.execute("PRAGMA fullfsync = ON")
    cursor.execute("PRAGMA cell_size_check = ON")
    cursor.execute("PRAGMA trusted_schema = OFF")
    cursor.close()


def _text(stored: bytes) -> str:
    return stored.decode(errors="surrogateescape")


def _begin_alone(connection: Connection) -> None:
    if connection.get_execution_options().get(_GLANCE):
        return
    kind = connection.dialect.name
    if settings := _SETTINGS[kind]:
        connection.exec_driver_sql(settings)
    connection.exec_driver_sql(_ALONE[kind])
