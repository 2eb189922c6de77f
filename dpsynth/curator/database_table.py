"""Private table in a database: the rows of a query, batch by batch.

The query is read as it stands, within a query that selects the columns that are needed.

Invariant: a cell's text follows from the cell and its own type, as a cell's of a table in memory does. Broken
structure (no such column, no such table) is a clear error; no message quotes a cell, an address with its
password, or the words of a database, which may quote either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from dpsynth.config.files.header import require_columns, spelling_advice
from dpsynth.curator.cell_texts import Batch, readable
from dpsynth.curator.database_readers import DatabaseReader, reader_of
from dpsynth.errors import SourceError


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
