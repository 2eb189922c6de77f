"""The ledger's tables, and what is read from and added to them.

Invariant: rows are added, never changed or removed. Amounts are exact rationals as text
("3", "1/1000000"); nothing is rounded on the way in or out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import get_args

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    RowMapping,
    String,
    Table,
    UniqueConstraint,
    insert,
    inspect,
    select,
)

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.balance import Balance, ReleaseEntry, Reservation, State
from dpsynth.errors import ConfigError

FORMAT = 1

_tables = MetaData()
_formats = Table("dpsynth_ledger", _tables, Column("format", Integer, primary_key=True))
_datasets = Table(
    "dpsynth_datasets",
    _tables,
    Column("dataset", String, primary_key=True),
    Column("unit", String, nullable=False),
    Column("neighbours", String, nullable=False),
    Column("cap_epsilon", String, nullable=False),
    Column("cap_delta", String, nullable=False),
    Column("created", String, nullable=False),
)
_entries = Table(
    "dpsynth_entries",
    _tables,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("release_id", String, nullable=False),
    Column("dataset", String, nullable=False, index=True),
    # 0 for the reservation, 1 for the end: at most one of each a release, whoever else writes.
    Column("step", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("epsilon", String, nullable=False),
    Column("delta", String, nullable=False),
    Column("events", String, nullable=False),
    Column("created", String, nullable=False),
    UniqueConstraint("release_id", "step"),
)


def prepare(connection: Connection, name: str, *, own_file: bool) -> None:
    """Make the tables where there are none yet.

    Args:
        connection: within a transaction.
        name: the ledger's, for messages.
        own_file: whether the database has no place for tables of others.

    Raises:
        ConfigError: the file holds something else, or a format of another version.
    """
    present = inspect(connection).get_table_names()
    if _formats.name not in present:
        if present and own_file:
            raise ConfigError(
                f"The file of {name} is a database of something else, and no ledger. "
                "Name another file in ledger.url."
            )
        _tables.create_all(connection)
        connection.execute(insert(_formats).values(format=FORMAT))
        return
    found = connection.scalar(select(_formats.c.format))
    if found != FORMAT:
        raise ConfigError(
            f"The ledger {name} is in format {found}, and this version of dpsynth reads format {FORMAT}."
        )


def history(connection: Connection, release_id: str) -> list[ReleaseEntry]:
    """A release's reservation, then its end if it has one; ConfigError on a damaged entry."""
    rows = connection.execute(
        select(_entries).where(_entries.c.release_id == release_id).order_by(_entries.c.step)
    )
    return [_entry(row) for row in rows.mappings()]


def balance(connection: Connection, dataset: str) -> Balance | None:
    """A dataset's account, or None; ConfigError on a damaged entry."""
    head = (
        connection.execute(select(_datasets).where(_datasets.c.dataset == dataset)).mappings().one_or_none()
    )
    if head is None:
        return None
    rows = connection.execute(
        select(_entries).where(_entries.c.dataset == dataset).order_by(_entries.c.step, _entries.c.number)
    )
    latest: dict[str, ReleaseEntry] = {}
    for entry in (_entry(row) for row in rows.mappings()):
        reserved = latest.get(entry.release_id, entry)
        latest[entry.release_id] = replace(entry, created=reserved.created)
    cap = _amount(head["cap_epsilon"], head["cap_delta"], f"cap of dataset '{dataset}'")
    return Balance(dataset, head["unit"], head["neighbours"], cap, tuple(latest.values()))


def add_dataset(connection: Connection, account: Balance) -> None:
    """Record a dataset with its unit, relation and cap."""
    connection.execute(
        insert(_datasets).values(
            dataset=account.dataset,
            unit=account.unit,
            neighbours=account.neighbours,
            cap_epsilon=str(account.cap.epsilon),
            cap_delta=str(account.cap.delta),
            created=_today(),
        )
    )


def add_reservation(connection: Connection, entry: Reservation) -> None:
    """Record that a release counts in full from now on."""
    _add(connection, entry.release_id, entry.dataset, "reserved", entry.cost, ())


def add_end(
    connection: Connection,
    reserved: ReleaseEntry,
    state: State,
    charge: Amount,
    events: Sequence[Mapping[str, object]],
) -> None:
    """Record what a reserved release is charged in the end, with its journal's events."""
    _add(connection, reserved.release_id, reserved.dataset, state, charge, events)


def _add(
    connection: Connection,
    release_id: str,
    dataset: str,
    state: State,
    charge: Amount,
    events: Sequence[Mapping[str, object]],
) -> None:
    connection.execute(
        insert(_entries).values(
            release_id=release_id,
            dataset=dataset,
            step=0 if state == "reserved" else 1,
            state=state,
            epsilon=str(charge.epsilon),
            delta=str(charge.delta),
            events=json.dumps([dict(event) for event in events], sort_keys=True),
            created=_today(),
        )
    )


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _entry(row: RowMapping) -> ReleaseEntry:
    what = f"entry of release {row['release_id']}"
    cost = _amount(row["epsilon"], row["delta"], what)
    if row["state"] not in get_args(State):
        raise _damaged(what)
    try:
        created = date.fromisoformat(row["created"])
    except (TypeError, ValueError) as error:
        raise _damaged(what) from error
    return ReleaseEntry(row["release_id"], row["dataset"], row["state"], cost.epsilon, cost.delta, created)


def _amount(epsilon: str, delta: str, what: str) -> Amount:
    try:
        return Amount(Fraction(epsilon), Fraction(delta))
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise _damaged(what) from error


def _damaged(what: str) -> ConfigError:
    return ConfigError(
        f"The ledger is damaged at the {what}. Restore it from a copy that has every release in it."
    )
