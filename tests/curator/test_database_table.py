"""Queries of databases without a server: what is asked of the driver, what is refused, and what is shown."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread, get_ident
from types import SimpleNamespace

import pyarrow as pa
import pytest

from dpsynth.curator.rows import database_table
from dpsynth.curator.rows import database_table as database_readers
from dpsynth.curator.rows.cell_texts import text_of
from dpsynth.curator.rows.database_table import DatabaseTable, reader_of
from dpsynth.errors import SourceError

CANARY = "canary-badger"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "visits.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('CREATE TABLE visits (age INTEGER, "a ""day""" TEXT)')
        connection.executemany("INSERT INTO visits VALUES (?, ?)", [(i, f"{i}:00") for i in range(5)])
    return path


def table(file: Path, query: str = "SELECT * FROM visits ORDER BY age;") -> DatabaseTable:
    return DatabaseTable(f"sqlite:///{file}", query, "The database")


def test_neither_the_address_nor_the_query_is_shown() -> None:
    shown = repr(DatabaseTable(f"x://me:{CANARY}1@here", f"SELECT {CANARY}2", "The database"))
    assert CANARY not in shown and "The database" in shown


def test_a_column_that_the_query_lacks_is_named_before_a_row_is_read(file: Path) -> None:
    table(file).check(["age"])
    for use in (table(file).check, lambda columns: list(table(file).batches(columns))):
        with pytest.raises(SourceError, match=r"(?s)The query of The database.*'absent'.*SELECT birth AS"):
            use(["age", "absent"])


def test_rows_come_in_batches_and_in_the_columns_asked_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_readers, "_ROWS", 2)
    assert table(file).names == ["age", 'a "day"']
    batches = list(
        table(file, "SELECT * FROM visits WHERE 'a:b' = 'a:b' -- and no more").batches(['a "day"', "age"])
    )
    assert [[*batch] for batch in batches] == [['a "day"', "age"]] * 3
    assert [cell for batch in batches for cell in batch["age"].to_pylist()] == [0, 1, 2, 3, 4]
    assert [cell for batch in batches for cell in text_of(batch['a "day"']).to_pylist()] == [
        f"{i}:00" for i in range(5)
    ]


def test_a_file_that_is_not_there_is_not_made_and_one_that_is_is_not_changed(file: Path) -> None:
    for address in (f"sqlite:///{file}.other", "sqlite://"):
        with pytest.raises(SourceError, match="is no file that is there"):
            _ = DatabaseTable(address, "SELECT 1", "The database").names
    assert not Path(f"{file}.other").exists()
    reader = reader_of(f"sqlite:///{file}", "SELECT 1")
    with pytest.raises(Exception, match="readonly"):
        reader._connection.exec_driver_sql("DELETE FROM visits")  # type: ignore[attr-defined]
    # Another thread may end it.
    ending = Thread(target=reader.close)
    ending.start()
    ending.join()
    assert reader._connection.closed  # type: ignore[attr-defined]


class Reader:
    """A reader that says what it is told to, and can't even be closed."""

    def __init__(self, cells: pa.Array) -> None:
        self.cells, self.closed = cells, 0

    def header(self) -> list[str]:
        return ["a"]

    def rows(self, columns: object) -> Iterator[dict[str, pa.Array]]:
        yield {"a": self.cells}

    def close(self) -> None:
        self.closed += 1
        raise OSError(CANARY)


def test_a_connection_that_can_not_be_closed_stops_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(pa.array([1]))
    monkeypatch.setattr(database_table, "reader_of", lambda address, query: reader)
    source = DatabaseTable("x://", "SELECT", "The database")
    assert [batch["a"].to_pylist() for batch in source.batches(["a"])] == [[1]]
    assert reader.closed == 2
    reader.cells = pa.array([[1]])
    with pytest.raises(SourceError, match="Column 'a' of the query of The database holds lists"):
        list(source.batches(["a"]))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError(CANARY, name="oracledb"), "needs a driver that isn't installed: oracledb"),
        (FileNotFoundError(CANARY), "is no file that is there"),
        (ValueError(CANARY), r"can't be reached \(ValueError\)"),
    ],
)
def test_what_is_wrong_with_a_connection_is_said_in_our_words(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def failing(address: str, query: str) -> None:
        raise error

    monkeypatch.setattr(database_table, "reader_of", failing)
    with pytest.raises(SourceError, match=words) as refused:
        _ = DatabaseTable("x://", "SELECT", "The database").names
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "arrow", "as_text"),
    [
        ("int4", pa.int32(), False),
        ("bytea", pa.binary(), False),
        ("uuid", pa.uuid(), True),
        ("inet", pa.binary(), True),
        ("point", pa.binary(16), True),
        ("money", pa.int64(), True),
        ("oid", pa.int64(), True),
        (None, pa.string(), False),
    ],
)
def test_only_cells_that_arrow_has_no_type_for_are_asked_as_text(kind, arrow, as_text) -> None:
    metadata = None if kind is None else {"POSTGRESQL:type": kind}
    asked = database_readers._in_arrow(pa.field('a "b"', arrow, metadata=metadata))
    name = '"a ""b"""'
    assert asked == (f"CASE WHEN {name} IS NOT NULL THEN format('%s', {name}) END" if as_text else name)


class Driver:
    """A stand-in for ADBC's driver and its connection and cursor."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.threads: set[int] = set()
        self.schema = pa.schema(
            [pa.field("age", pa.int32()), pa.field("paid", pa.int64(), metadata={"POSTGRESQL:type": "money"})]
        )

    def connect(self, address: str) -> Driver:
        assert "host='here'" in address and "connect_timeout=" in address
        return self

    def cursor(self) -> Driver:
        return self

    def execute(self, statement: str) -> None:
        self.threads.add(get_ident())
        self.said.append(statement)

    def adbc_execute_schema(self, statement: str) -> pa.Schema:
        self.execute(statement)
        return self.schema

    def fetch_record_batch(self) -> Iterator[pa.RecordBatch]:
        return iter(
            [pa.record_batch({"age": [1, 2], "f": ["$1", None]}), pa.record_batch({"age": [3], "f": ["$3"]})]
        )

    def adbc_cancel(self) -> None:
        self.said.append("cancel")
        raise OSError(CANARY)

    def close(self) -> None:
        self.said.append("close")


def test_a_query_is_copied_out_in_a_transaction_that_may_not_write(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", SimpleNamespace(dbapi=driver))
    reader = reader_of("postgresql://me:secret@here/db", "SELECT age, paid FROM visits -- all")
    assert driver.said == ["SET TRANSACTION READ ONLY"]
    assert reader.header() == ["age", "paid"]
    within = "FROM (\nSELECT age, paid FROM visits -- all\n) AS dpsynth_rows"
    cells = [
        {name: column.to_pylist() for name, column in batch.items()} for batch in reader.rows(["age", "paid"])
    ]
    assert cells == [
        {"age": [], "paid": []},
        {"age": [1, 2], "paid": ["$1", None]},
        {"age": [3], "paid": ["$3"]},
    ]
    money = 'CASE WHEN "paid" IS NOT NULL THEN format(\'%s\', "paid") END'
    assert driver.said[1:] == [
        f"SELECT * {within}",
        f'SELECT "age", "paid" {within}',
        f'SELECT "age", {money} {within}',
    ]
    # One thread waits for the server, and it is not this one.
    assert len(driver.threads) == 1 and get_ident() not in driver.threads
    reader.close()
    assert driver.said[-2:] == ["cancel", "close"]
    with pytest.raises(RuntimeError, match="shutdown"):
        reader.header()


def test_duckdb_is_opened_to_read_and_only_where_it_is(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE t AS SELECT range AS n, '2026-01-01 00:00:00+02'::TIMESTAMPTZ AS at FROM range(3)"
        )
    with pytest.raises(FileNotFoundError):
        reader_of(f"duckdb:///{tmp_path / 'none.duckdb'}", "SELECT 1")
    reader = reader_of(f"duckdb:///{path}", "SELECT * FROM t ORDER BY n;")
    assert reader.header() == ["n", "at"]
    assert [cell for batch in reader.rows(["n"]) for cell in batch["n"].to_pylist()] == [0, 1, 2]
    with pytest.raises(Exception, match="read-only"):
        reader._connection.execute("CREATE TABLE u (n INTEGER)")  # type: ignore[attr-defined]
    reader.close()
    with pytest.raises(Exception, match="closed"):
        reader.header()
