"""The ledger's tables: their form, the format that is read, and what a row is made of."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine, update

from dpsynth.errors import ConfigError
from dpsynth.ledger import store as tables
from dpsynth.ledger.chain import FIRST, Row


@pytest.fixture
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as made:
        tables.make(made)
        yield made


def append(connection: Connection, **content: object) -> Row:
    return tables.append(connection, None, "dataset", "people", None, content)


def test_new_tables_are_of_format_6_and_without_rows(connection: Connection) -> None:
    assert tables.stored(connection) == ([], 0, FIRST)
    assert connection.exec_driver_sql("SELECT format FROM dpsynth_ledger").scalars().all() == [6]


def test_only_the_id_of_a_release_may_be_missing_and_numbers_stand_once(connection: Connection) -> None:
    form = {
        (table, name): (bool(needed), bool(key))
        for table in ("dpsynth_ledger", "dpsynth_rows")
        for _, name, _, needed, _, key in connection.exec_driver_sql(f"PRAGMA table_info({table})")
    }
    assert {column for column, (_, key) in form.items() if key} == {
        ("dpsynth_ledger", "format"),
        ("dpsynth_rows", "number"),
    }
    assert {column for column, (needed, _) in form.items() if not needed} == {("dpsynth_rows", "release_id")}


@pytest.mark.parametrize("number", [5, 8])
def test_a_ledger_of_another_format_is_refused(connection: Connection, number: int) -> None:
    append(connection)
    assert tables.present(connection, "ledger.db", own_file=True)
    connection.execute(update(tables._ledger).values(format=number))
    with pytest.raises(ConfigError, match=f"in format {number}, and this version of dpsynth reads formats 6"):
        tables.present(connection, "ledger.db", own_file=True)


def test_the_facts_of_a_row_are_written_in_one_way_and_are_numbers(connection: Connection) -> None:
    assert append(connection, b=1, a=[1, 2]).content == '{"a":[1,2],"b":1}'
    with pytest.raises(ValueError, match="JSON compliant"):
        append(connection, a=float("nan"))
