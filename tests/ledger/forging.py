"""A ledger whose rows are put in place by somebody who knows how they are stored and hashed."""

from collections.abc import Sequence
from fractions import Fraction

from sqlalchemy import delete, insert, update

from dpsynth.accounting.amount import Amount
from dpsynth.ledger import store as tables
from dpsynth.ledger.chain import FIRST, Row, chained
from dpsynth.ledger.ledger import Ledger
from tests.ledger.reservations import EVENTS, asking, cost

Rows = list[Row]


def seven_rows(ledger: Ledger) -> Rows:
    """Begin a ledger: a dataset, three reservations, two ends, another cap."""
    for name in ("r1", "r2", "r3"):
        ledger.reserve(asking(name))
    ledger.settle("r2", cost("0.05"), EVENTS)
    ledger.abandon("r3", None, [], "lost")
    ledger.change_cap("people", Amount(Fraction(2), Fraction(1, 10**6)), "agreed")
    rows = list(ledger.rows())
    assert len(rows) == 7
    return rows


def store(ledger: Ledger, rows: Sequence[Row]) -> None:
    """Put rows in place of those that are there, with a record of the last that matches."""
    last = rows[-1].hash if rows else FIRST
    with ledger._store.transaction() as connection:
        connection.execute(delete(tables._rows))
        for row in rows:
            connection.execute(insert(tables._rows), row.to_json())
        connection.execute(update(tables._ledger).values(rows=len(rows), hash=last))


def chained_anew(rows: Sequence[Row], start: int = 0) -> Rows:
    """Rows with numbers and hashes as they would be had they been written like that from one of them on."""
    chain = list(rows[:start])
    for row in rows[start:]:
        last = chain[-1] if chain else None
        chain.append(chained(last, row.kind, row.dataset, row.release_id, row.content, row.created))  # type: ignore[arg-type]
    return chain
