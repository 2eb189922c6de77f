"""Reader of a private table in a database: the rows of a query, batch by batch.

SQLAlchemy connects to every database but DuckDB's files, which are read by DuckDB itself, as Arrow tables.
The query is read as it stands, within a query that selects the columns that are needed. Results come from a
cursor on the server where there is one, so no table is held whole.

Invariant: a cell's text follows from the cell and its own type, as a cell's of a table in memory does. Broken
structure (no such column, no such table) is a clear error; no message quotes a cell, an address with its
password, or the words of a database, which may quote either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth.curator.cell_texts import Batch, readable
from dpsynth.curator.memory_table import cells_of_objects
from dpsynth.errors import SourceError
from dpsynth.files.header import require_columns, spelling_advice

_ROWS = 1 << 16
_CONNECT_SECONDS = 10


@dataclass(frozen=True, eq=False)
class DatabaseTable:
    """The rows of a query.

    Attributes:
        address: a URL of SQLAlchemy's form, with its password. Secret: it is never shown.
        query: one SELECT.
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
        """Raise SourceError if the query's columns show that ``batches`` would.

        Args:
            columns: names of the columns that will be read.
        """
        names = self.names
        require_columns(columns, names, f"The query of {self.named}", lambda a: _advice(a, names))

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns, batch by batch, each of any type that can be written as text.

        Args:
            columns: names of the columns to read.

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
    def _opened(self) -> Iterator[_Rows | _DuckRows]:
        """A connection; whatever goes wrong within is said without the database's own words."""
        try:
            made = _DuckRows if self.address.startswith("duckdb:") else _Rows
            reader = made(self.address, self.query)
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


def _within(query: str, wanted: str) -> str:
    # A line feed ends a comment in the last line of the query.
    return f"SELECT {wanted} FROM (\n{query.strip().rstrip(';')}\n) AS dpsynth_rows"  # noqa: S608


class _Rows:
    """Rows of any database that SQLAlchemy knows, read without a lock and without a right to write."""

    def __init__(self, address: str, query: str) -> None:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.pool import NullPool

        url, options = make_url(address), dict[str, Any]()
        kind, path = url.get_backend_name(), url.database
        if kind == "sqlite":
            if not path or not Path(path).is_file():
                raise FileNotFoundError
            # The reader of batches may be closed by another thread than it was opened in.
            url = url.set(
                database=f"file:{Path(path).absolute()}",
                query={"mode": "ro", "uri": "true", "check_same_thread": "false"},
            )
        elif kind == "postgresql":
            if url.drivername == "postgresql":
                url = url.set(drivername="postgresql+psycopg")
            options["connect_args"] = {"connect_timeout": _CONNECT_SECONDS}
        self._query = query
        self._engine = create_engine(url, poolclass=NullPool, hide_parameters=True, **options)
        read_only = {"postgresql_readonly": True} if kind == "postgresql" else {}
        self._connection = self._engine.connect().execution_options(
            stream_results=True, max_row_buffer=_ROWS, **read_only
        )

    def _result(self, wanted: str, end: str = "") -> Any:
        from sqlalchemy import text

        # A colon in the query is no parameter of ours.
        whole = _within(self._query, wanted) + end
        return self._connection.execute(text(whole.replace("\\", "\\\\").replace(":", "\\:")))

    def header(self) -> list[str]:
        """The names of the query's columns; no row is read."""
        return list(self._result("*", " WHERE 1 = 0").keys())

    def rows(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns of all rows."""
        quote = self._engine.dialect.identifier_preparer.quote_identifier
        for rows in self._result(", ".join(map(quote, columns))).partitions(_ROWS):
            cells = zip(*rows, strict=True)
            yield {name: cells_of_objects(_objects(c)) for name, c in zip(columns, cells, strict=True)}

    def close(self) -> None:
        """End the connection; nothing is committed."""
        self._connection.close()
        self._engine.dispose()


def _objects(cells: Sequence[object]) -> np.ndarray[Any, np.dtype[np.object_]]:
    # Element by element: numpy would make a matrix of cells that are lists.
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


class _DuckRows:
    """Rows of a DuckDB file, as Arrow batches."""

    def __init__(self, address: str, query: str) -> None:
        import duckdb

        path = Path(address.removeprefix("duckdb:").removeprefix("///"))
        if not path.is_file():
            raise FileNotFoundError
        self._query, self._connection = query, duckdb.connect(str(path), read_only=True)

    def header(self) -> list[str]:
        """The names of the query's columns; no row is read."""
        found = self._connection.execute(_within(self._query, "*") + " WHERE 1 = 0")
        return [column[0] for column in found.description or ()]

    def rows(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Some columns of all rows."""
        wanted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        found = self._connection.sql(_within(self._query, wanted))
        for batch in found.to_arrow_reader(_ROWS):
            yield dict(zip(columns, batch.columns, strict=True))

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
