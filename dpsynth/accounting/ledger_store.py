"""Where a ledger stands: one database, one writer at a time, nothing lost once committed.

Invariant: a transaction sees all that was committed before it began and no other
transaction runs beside it, so what it checks still holds when it writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpsynth.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection

BUSY_SECONDS = 30

_ALONE = {
    "sqlite": "BEGIN IMMEDIATE",
    # Any fixed number will do: it names the lock within the database.
    "postgresql": "SELECT pg_advisory_xact_lock(7311994550872311)",
}

_GRAMMAR = "Write ledger.url as sqlite:///ledger.db, or as postgresql://user@host/database."


class Store:
    """A database that can hold a ledger, not yet opened."""

    def __init__(self, url: str) -> None:
        """Check the URL and, for SQLite, that its file is or can be made writable.

        Raises:
            ConfigError: saying which of these failed.
        """
        place = _parsed(url)
        self.name = place.render_as_string(hide_password=True)
        self._file: Path | None = None
        options: dict[str, Any] = {}
        if place.get_backend_name() == "sqlite":
            self._file = _checked_file(place, self.name)
            options["connect_args"] = {"timeout": BUSY_SECONDS}
        else:
            # Under a stricter level the snapshot would be older than the lock.
            options["isolation_level"] = "READ COMMITTED"
        try:
            self._engine = create_engine(place, poolclass=NullPool, **options)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"A ledger at {self.name} needs psycopg. Install it with: pip install 'dpsynth[postgres]'"
            ) from error
        if self._file is not None:
            event.listen(self._engine, "connect", _prepare_sqlite)
        event.listen(self._engine, "begin", _begin_alone)

    @property
    def own_file(self) -> bool:
        """Whether the database is a file of the ledger's own, where no other tables belong."""
        return self._file is not None

    @property
    def exists(self) -> bool:
        """Whether there is something to open; an empty file is nothing yet."""
        return self._file is None or (self._file.exists() and self._file.stat().st_size > 0)

    def create(self) -> None:
        """Make a SQLite ledger's file, for its owner's eyes only, and the folders above it.

        Raises:
            ConfigError: they can't be made.
        """
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise ConfigError(f"The ledger {self.name} can't be made: {error.strerror}.") from error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction beside which no other runs, committed on leaving without an error.

        Raises:
            ConfigError: the database can't be opened, is damaged, or stays locked.
        """
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
            reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0].rstrip(".")
            raise ConfigError(f"The ledger {self.name} can't be used: {reason}.") from error


def _parsed(url: str) -> URL:
    try:
        place = make_url(url)
    except (ArgumentError, ValueError) as error:
        # The text isn't repeated: it may hold a password.
        raise ConfigError(f"The ledger's URL can't be read. {_GRAMMAR}") from error
    if place.drivername in ("postgresql", "postgres"):
        return place.set(drivername="postgresql+psycopg")
    if place.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise ConfigError(f"A ledger can't be kept in '{place.drivername}'. {_GRAMMAR}")
    return place


def _checked_file(place: URL, name: str) -> Path:
    if place.query or not place.database or place.database == ":memory:":
        raise ConfigError(f"The ledger {name} is no file, so it would not outlive the process. {_GRAMMAR}")
    file = Path(place.database)
    if file.is_dir():
        raise ConfigError(f"The ledger {name} is a folder; name a file in it.")
    try:
        present = file.exists()
    except OSError as error:
        raise ConfigError(f"The ledger {name} can't be reached: {error.strerror}.") from error
    if present:
        if not os.access(file, os.R_OK | os.W_OK):
            raise ConfigError(f"The ledger {name} can't be read and written by this user.")
        return file
    above = next(folder for folder in file.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ConfigError(f"The ledger {name} can't be made: this user may not write to {above}.")
    return file


def _prepare_sqlite(connection: DBAPIConnection, _record: object) -> None:
    # The driver would begin transactions by itself, and only at the first write.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA fullfsync = ON")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_alone(connection: Connection) -> None:
    connection.exec_driver_sql(_ALONE[connection.dialect.name])
