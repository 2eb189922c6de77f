"""Readings of a ledger that fetch only the rows that came since: a soak's ledger has tens of thousands."""

from sqlalchemy import Connection, select

from dpsynth.ledger import store as tables
from dpsynth.ledger.chain import Fields
from dpsynth.ledger.store import Stored

WHOLE = tables.stored
"""The reading of all rows."""


class Grown:
    """In place of ``tables.stored``, for one ledger."""

    def __init__(self) -> None:
        """Know no rows."""
        self._rows: list[Fields] = []

    def __call__(self, connection: Connection) -> Stored:
        """The rows that are known, and those after them; the ledger's record as it is stored."""
        known, rows = self._rows, tables._rows
        later = select(rows).where(rows.c.number > len(known)).order_by(rows.c.number)
        found = [*known, *(tuple(row) for row in connection.execute(later))]
        record = connection.execute(select(tables._ledger.c.rows, tables._ledger.c.hash)).one()
        self._rows = found
        return Stored(found, *record)
