"""Private table in a database: the rows of a query, batch by batch, by one reader for each kind of database.

The query is read as it stands, within a query that selects the columns that are needed. PostgreSQL is read
through ADBC and DuckDB by itself, both as Arrow batches with the types of the query's columns. Any other
database, SQLite among them, is read through SQLAlchemy. A cell of SQLite has a type of its own; ADBC would
take that of a column's first cells for all, so one row would decide how others are read.

Invariant: nothing is written, and no table is held whole. A cell's text follows from the cell and its own
type, as that of a table in memory does. Broken structure (no such column, no such table) is a clear error; no
message quotes a cell, an address with its password, or the words of a database, which may quote either:
``DatabaseTable`` alone calls the readers, and withholds their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dpsynth.config.files.header import require_columns, spelling_advice
from dpsynth.config.files.opening import iso_duration
from dpsynth.curator.rows.cell_texts import Batch, readable
from dpsynth.curator.rows.memory_table import cells_of_objects
from dpsynth.errors import SourceError

if TYPE_CHECKING:
    from sqlalchemy import URL


Found = TypeVar("Found")

_SOCKETS = Path("/var/run/postgresql")
"""The folder in which Debian's PostgreSQL listens; the library that comes with ADBC knows /tmp alone."""

_ROWS = 1 << 16

_CONNECT_SECONDS = 10

_NOT_IN_ARROW = {"money", "oid"}
"""PostgreSQL's types whose cells ADBC gives as integers that mean something else: cents, signed numbers."""

_INTERVAL = pa.month_day_nano_interval()

_PARTS = {"year": 365 * 86_400, "month": 30 * 86_400, "day": 86_400, "hour": 3_600, "minute": 60}
"""Seconds of each part of an interval; a year has 365 days, as a duration of any other source has."""

_MICROSECONDS = "".join(
    f"EXTRACT({part} FROM {{0}})::numeric * {seconds}000000 + " for part, seconds in _PARTS.items()
)


_MICROSECONDS += "EXTRACT(microseconds FROM {0})::numeric"


class DatabaseReader(Protocol):
    """A connection that reads the rows of one query."""

    def header(self) -> list[str]:
        """The names of the query's columns; no row is read."""

    def rows(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns of all rows, which one statement reads: they are as of one moment."""

    def close(self) -> None:
        """End the connection."""


def reader_of(address: str, query: str) -> DatabaseReader:
    """A connection to the database at an address.

    Args:
        address: a URL of SQLAlchemy's form, with its password.

    Raises:
        ImportError: the driver isn't installed.
        FileNotFoundError: the database is a file that isn't there.
        Exception: whatever the database says.
    """
    from sqlalchemy import make_url

    if address.startswith("duckdb:"):
        return _DuckDBRows(address, query)
    url = make_url(address)
    return (
        _PostgreSQLRows(url, query) if url.get_backend_name() == "postgresql" else _SQLAlchemyRows(url, query)
    )


def _within(query: str, wanted: str) -> str:
    # A line feed ends a comment in the last line of the query.
    return f"SELECT {wanted} FROM (\n{query.strip().rstrip(';')}\n) AS dpsynth_rows"  # noqa: S608


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _PostgreSQLRows:
    """Rows that PostgreSQL copies out in its binary form, in a transaction that may not write."""

    def __init__(self, url: URL, query: str) -> None:
        from adbc_driver_postgresql import dbapi

        self._query, self._connection = query, dbapi.connect(_for_libpq(url))
        self._cursor = self._connection.cursor()
        # A driver that waits for the server hears no signal, so another thread than this one waits.
        self._thread = ThreadPoolExecutor(1)
        self._waited(self._cursor.execute, "SET TRANSACTION READ ONLY")

    def _waited(self, act: Callable[..., Found], *given: object) -> Found:
        return self._thread.submit(act, *given).result()

    def header(self) -> list[str]:
        names: list[str] = self._schema("*").names
        return names

    def _schema(self, wanted: str) -> pa.Schema:
        return self._waited(self._cursor.adbc_execute_schema, _within(self._query, wanted))

    def rows(self, columns: Sequence[str]) -> Iterator[Batch]:
        schema = self._schema(", ".join(map(_quoted, columns)))
        # Types that can't be read are seen before any row is.
        yield {column: pa.nulls(0, kind) for column, kind in zip(columns, schema.types, strict=True)}
        self._waited(self._cursor.execute, _within(self._query, ", ".join(map(_in_arrow, schema))))
        batches = self._cursor.fetch_record_batch()
        spans = [field.type == _INTERVAL for field in schema]
        while (batch := self._waited(next, batches, None)) is not None:
            cells = (_spans(c) if span else c for c, span in zip(batch.columns, spans, strict=True))
            yield dict(zip(columns, cells, strict=True))

    def close(self) -> None:
        """End the connection, and what the server still does for it; nothing is committed."""
        with suppress(Exception):
            self._connection.adbc_cancel()
        self._thread.shutdown()
        self._connection.close()


def _for_libpq(url: URL) -> str:
    dialect = url.set(drivername="postgresql+psycopg").get_dialect()
    _, told = dialect().create_connect_args(url)
    given = {"connect_timeout": _CONNECT_SECONDS, **told}
    said = {"host", "hostaddr", "service"} & told.keys()
    if not said and not {"PGHOST", "PGHOSTADDR", "PGSERVICE"} & environ.keys() and _SOCKETS.is_dir():
        given["host"] = f"{_SOCKETS},/tmp"
    escaped = {key: str(value).replace("\\", "\\\\").replace("'", "\\'") for key, value in given.items()}
    return " ".join(f"{key}='{value}'" for key, value in escaped.items())


def _in_arrow(field: pa.Field) -> str:
    """The words that select a column of PostgreSQL's as cells that Arrow has a type for, or else as text.

    ADBC gives cells of types that it doesn't know as the bytes that the server sends. It stops at an interval
    of more than 2^63 nanoseconds, so the server writes intervals as numbers of microseconds.
    """
    name = _quoted(field.name)
    if field.type == _INTERVAL:
        return f"trunc({_MICROSECONDS.format(name)})::text"
    stored = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    is_bytes = pa.types.is_binary(stored) or pa.types.is_fixed_size_binary(stored)
    if kind not in _NOT_IN_ARROW and (kind == "bytea" or not is_bytes):
        return name
    # As the database's own client writes it: a cast to text may write more, such as the mask of an address.
    return f"CASE WHEN {name} IS NOT NULL THEN format('%s', {name}) END"


def _spans(counts: pa.Array) -> pa.StringArray:
    """Durations by ISO 8601 of whole microseconds, which are written as text."""
    return pa.array([c and iso_duration(int(c), 6) for c in counts.to_pylist()], pa.string())


class _DuckDBRows:
    def __init__(self, address: str, query: str) -> None:
        import duckdb

        path = Path(address.removeprefix("duckdb:").removeprefix("///"))
        if not path.is_file():
            raise FileNotFoundError
        self._query, self._connection = query, duckdb.connect(str(path), read_only=True)
        # As PostgreSQL's come: this machine's time zone changes no cell.
        self._connection.execute("SET TimeZone = 'UTC'")

    def header(self) -> list[str]:
        found = self._connection.execute(_within(self._query, "*") + " WHERE 1 = 0")
        return [column[0] for column in found.description or ()]

    def rows(self, columns: Sequence[str]) -> Iterator[Batch]:
        found = self._connection.sql(_within(self._query, ", ".join(map(_quoted, columns))))
        for batch in found.to_arrow_reader(_ROWS):
            yield dict(zip(columns, batch.columns, strict=True))

    def close(self) -> None:
        self._connection.close()


class _SQLAlchemyRows:
    """Rows of any database that SQLAlchemy knows, as objects of its driver."""

    def __init__(self, url: URL, query: str) -> None:
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        if url.get_backend_name() == "sqlite":
            if not url.database or not Path(url.database).is_file():
                raise FileNotFoundError
            # The reader of batches may be closed by another thread than it was opened in.
            url = url.set(
                database=f"file:{Path(url.database).absolute()}",
                query={"mode": "ro", "uri": "true", "check_same_thread": "false"},
            )
        self._query = query
        self._engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
        self._connection = self._engine.connect().execution_options(stream_results=True)
        if url.get_backend_name() == "sqlite":
            # SQLite's texts are any bytes, and its driver stops at those that are not UTF-8.
            driver: Any = self._connection.connection.driver_connection
            driver.text_factory = bytes

    def _result(self, wanted: str, end: str = "") -> Any:
        from sqlalchemy import text

        # A colon in the query is no parameter of ours.
        whole = _within(self._query, wanted) + end
        return self._connection.execute(text(whole.replace("\\", "\\\\").replace(":", "\\:")))

    def header(self) -> list[str]:
        return list(self._result("*", " WHERE 1 = 0").keys())

    def rows(self, columns: Sequence[str]) -> Iterator[Batch]:
        quote = self._engine.dialect.identifier_preparer.quote_identifier
        # The driver's own rows: SQLAlchemy's take as long again.
        cursor = self._result(", ".join(map(quote, columns))).cursor
        while rows := cursor.fetchmany(_ROWS):
            cells = zip(*rows, strict=True)
            yield {name: cells_of_objects(_objects(c)) for name, c in zip(columns, cells, strict=True)}

    def close(self) -> None:
        self._connection.close()
        self._engine.dispose()


def _objects(cells: Sequence[object]) -> np.ndarray[Any, np.dtype[np.object_]]:
    # Element by element: numpy would make a matrix of cells that are lists.
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


@dataclass(frozen=True, eq=False)
class DatabaseTable:
    """The rows of a query.

    Attributes:
        address: a URL of SQLAlchemy's form, with its password. Secret: it is never shown.
        named: the words for the database in messages.
    """

    address: str = field(repr=False)
    query: str = field(repr=False)
    named: str

    @property
    def names(self) -> list[str]:
        """The names of the query's columns.

        Raises:
            SourceError: the database can't be reached, or refuses the query.
        """
        with self._opened() as reader:
            return reader.header()

    def check(self, columns: Sequence[str]) -> None:
        """Raise SourceError if the query's columns show that ``batches`` would."""
        names = self.names
        require_columns(columns, names, f"The query of {self.named}", lambda a: _advice(a, names))

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns, batch by batch, each of any type that can be written as text.

        Raises:
            SourceError: the database can't be reached, refuses the query, or lacks a column.
        """
        self.check(columns)
        with self._opened() as reader:
            for batch in reader.rows(columns):
                nested = [c for c in columns if not readable(batch[c].type)]
                if nested:
                    raise SourceError(
                        f"Column '{nested[0]}' of the query of {self.named} holds lists or records. Write "
                        "them as text in the query, or leave the column out."
                    )
                yield batch

    @contextmanager
    def _opened(self) -> Iterator[DatabaseReader]:
        """A connection; whatever goes wrong within is said without the database's own words."""
        try:
            reader = reader_of(self.address, self.query)
        except (ModuleNotFoundError, ImportError) as error:
            raise SourceError(
                f"{self.named} needs a driver that isn't installed: {error.name}. PostgreSQL's comes with "
                "pip install 'dpsynth[postgres]', DuckDB's with pip install 'dpsynth[duckdb]'; for any other "
                "database install the one that its URL names."
            ) from None
        except FileNotFoundError:
            raise SourceError(
                f"{self.named} is no file that is there. Relative paths start at the working directory."
            ) from None
        except Exception as error:
            raise SourceError(
                f"{self.named} can't be reached ({type(error).__name__}). See to its URL, to the server and "
                "to the user's rights; the words of the database are withheld, as they may hold secrets."
            ) from None
        try:
            yield reader
        except SourceError:
            raise
        except Exception as error:
            raise SourceError(
                f"{self.named} refuses source.query, or broke off ({type(error).__name__}). The query must "
                "be one SELECT that this user may read; try it with the database's own client, whose words "
                "are withheld here, as they may quote cells."
            ) from None
        finally:
            with suppress(Exception):
                reader.close()


def _advice(absent: Sequence[str], names: Sequence[str]) -> str:
    spelt = spelling_advice(absent, names)
    return f'{spelt} In SQL an alias names a column: SELECT birth AS "{absent[0]}".'
