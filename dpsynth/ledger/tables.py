"""The ledger's tables in a database: their rows, read and added.

Invariant: rows are added, never changed or removed, and each is chained to the row before. The number and
the hash of the last row are stored as well, so that a missing last row is detected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from datetime import UTC, date, datetime
from typing import NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    case,
    insert,
    inspect,
    select,
    update,
)

from dpsynth.errors import ConfigError
from dpsynth.ledger.chain import FIRST, Fields, Kind, Row, chained

FORMAT = 5
FORMAT_OF_UNITS = 6
FORMATS = (2, 3, 4, FORMAT, FORMAT_OF_UNITS)
"""Formats that are read. Format 2 has no approximate deltas, format 3 no holders and digests, and format 4 no
sources of tables; the first row that is added makes each of them format 5. A ledger in which a unit was
changed is of format 6. No earlier version reads it: it would count releases of rows as those of persons."""

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
        connection: a connection within a transaction.
        name: name of the ledger, for messages.
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
    if len(formats) != 1 or formats[0] not in FORMATS:
        stated = formats[0] if len(formats) == 1 else "?"
        raise ConfigError(
            f"The ledger {name} is in format {stated}, and this version of dpsynth reads formats "
            f"{FORMATS[0]} to {FORMATS[-1]}. Use the version that wrote it, or begin another ledger, with "
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
        rows: the fields of all rows, in order.
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
    # An older version would omit approximate deltas from its sums, would settle for any run, and would open
    # an account for each name of a config.
    least = FORMAT_OF_UNITS if kind == "unit" else FORMAT
    kept = case((_ledger.c.format > least, _ledger.c.format), else_=least)
    connection.execute(update(_ledger).values(format=kept, rows=row.number, hash=row.hash))
    return row


def today() -> date:
    """The clock's date, UTC."""
    return datetime.now(UTC).date()
