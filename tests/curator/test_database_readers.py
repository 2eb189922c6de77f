"""Databases are read as they are: hard cells, servers that break off, signals, and words for nobody."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsynth.curator import DatabaseTable
from dpsynth.curator.rows import database_table as database_readers
from dpsynth.curator.rows.cell_texts import text_of
from dpsynth.errors import SourceError
from tests.databases import Postgres

CANARY = "canary-otter"

OF_POSTGRESQL = {
    "0.10::numeric(9,2)": "0.10",
    "123456789012345678901234567890.5": "123456789012345678901234567890.5",
    "1e-20::numeric": "0.00000000000000000001",
    "'nan'::numeric": "nan",
    "'-infinity'::numeric": "-inf",
    "9223372036854775807": "9223372036854775807",
    "0.1::real": "0.1",
    "'nan'::float8": "nan",
    "'-infinity'::float8": "-inf",
    "'Zürich 𝄞'": "Zürich 𝄞",
    "''": "",
    "NULL::numeric": None,
    "NULL::inet": None,
    r"'\xc3bc61ff'::bytea": "üa�",
    "true": "true",
    "timestamptz '2024-02-29 23:30:00.25-05'": "2024-03-01 04:30:00.250000Z",
    "timetz '13:05+02'": "13:05:00+02",
    "interval '14 months 1 day 2.5 seconds'": "PT36806402.500000S",
    "interval '-36 hours'": "-PT129600S",
    "interval '-9223372037 seconds'": "-PT9223372037S",
    "make_interval(hours => 2147483647, secs => 0.5)": "PT7730941129200.500000S",
    "interval '-178000000 years -3 months 2 days'": "-PT5613408007603200S",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "'{\"a\": 1}'::jsonb": '{"a": 1}',
    "inet '10.0.0.1'": "10.0.0.1",
    "12.5::money": "$12.50",
    "4294967295::oid": "4294967295",
    "B'101'": "101",
    "int4range(1, 5)": "[1,5)",
    "'sad'::mood": "sad",
    "'1010'::postcode": "1010",
}
"""The text of each cell: a Parquet file's for the same cell or, without one, that of PostgreSQL's client."""


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    found = postgres.make()
    yield found
    end = time.monotonic() + 60
    while postgres.sessions(found):
        # The server may end a session some time after its client.
        assert time.monotonic() < end, "a connection stayed open"
        time.sleep(0.01)
    postgres.empty(found)


def texts(table: DatabaseTable, *columns: str) -> list[list[str | None]]:
    """Cells of each column."""
    found: list[list[str | None]] = [[] for _ in columns]
    for batch in table.batches(columns):
        for cells, column in zip(found, columns, strict=True):
            cells.extend(text_of(batch[column]).to_pylist())
    return found


def test_cells_of_postgresql_have_the_texts_that_they_have_elsewhere(postgres: Postgres, url: str) -> None:
    postgres.execute("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN postcode AS text", url)
    cells = [f'{cell} AS "{place}: ""%"' for place, cell in enumerate(OF_POSTGRESQL)]
    table = DatabaseTable(url, f"SELECT {', '.join(cells)} -- $1 ? :a", "It")
    assert texts(table, *table.names) == [[text] for text in OF_POSTGRESQL.values()]


def test_a_cell_that_no_calendar_holds_stops_no_run(url: str) -> None:
    """Its text is that of no moment, so the cell is missing, as in a file; the row beside it is read."""
    days = "date 'infinity', date '-infinity', date '0044-03-15 BC', date '5874897-12-31', date '2024-02-29'"
    times = "timestamp 'infinity', '-infinity', '0044-03-15 BC', '294276-12-31', '2024-02-29 08:00'"
    table = DatabaseTable(
        url, f"SELECT * FROM unnest(ARRAY[{days}], ARRAY[{times}]) AS rows(day, moment)", "It"
    )
    day, moment = texts(table, "day", "moment")
    assert day[-1] == "2024-02-29" and moment[-1] == "2024-02-29 08:00:00.000000"
    assert not [cell for cell in day[:4] + moment[:4] if cell is None or cell[:4].isdigit()]


def test_lists_and_records_are_refused(url: str) -> None:
    for cell in ("ARRAY[1, 2]", "ROW(1, 2)", "ARRAY[ROW(1, 2)]"):
        with pytest.raises(SourceError, match="lists or records"):
            texts(DatabaseTable(url, f"SELECT {cell} AS a", "It"), "a")


def broken_off(postgres: Postgres, url: str) -> None:
    """The client's session ends while its rows are sent."""
    postgres.end_sessions(url)


def restarted(postgres: Postgres, url: str) -> None:
    """The server is stopped as by a loss of power, and started again."""
    postgres.stop("immediate")
    postgres.start()


@pytest.mark.parametrize("breaks", [broken_off, pytest.param(restarted, marks=pytest.mark.slow)])
def test_a_server_that_breaks_off_is_an_error_and_a_later_reading_is_whole(
    postgres: Postgres, url: str, breaks: Callable[[Postgres, str], None]
) -> None:
    """No batch that was read before is taken for the table."""
    postgres.execute(
        f"CREATE TABLE visits AS SELECT '{CANARY}' || i AS a FROM generate_series(1, 1500) i", url
    )
    # More than what the client and the server's socket hold.
    table = DatabaseTable(url, "SELECT a || repeat('x', 20000) AS a FROM visits", "It")
    batches = table.batches(["a"])
    while not (read := len(next(batches)["a"])):
        pass
    breaks(postgres, url)
    with pytest.raises(SourceError, match="broke off") as refused:
        list(batches)
    assert 0 < read < 1500 and CANARY not in str(refused.value) and refused.value.__cause__ is None
    assert len(texts(table, "a")[0]) == 1500


def test_a_statement_that_takes_too_long_for_the_server_is_an_error(url: str) -> None:
    table = DatabaseTable(
        f"{url}&options=-c%20statement_timeout%3D50", "SELECT pg_sleep(60)::text AS a", "It"
    )
    with pytest.raises(SourceError, match="broke off"):
        texts(table, "a")


def test_what_a_server_says_while_it_reads_is_shown_to_nobody(
    postgres: Postgres, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    raised = " ".join(f"RAISE {level} '{CANARY}';" for level in ("NOTICE", "WARNING", "INFO"))
    postgres.execute(
        f"CREATE FUNCTION said(stops bool) RETURNS int LANGUAGE plpgsql AS $$ BEGIN {raised} "
        f"IF stops THEN RAISE EXCEPTION '{CANARY}'; END IF; RETURN 1; END $$",
        url,
    )
    assert texts(DatabaseTable(url, "SELECT said(false) AS a", "It"), "a") == [["1"]]
    with pytest.raises(SourceError) as refused:
        texts(DatabaseTable(url, "SELECT said(true) AS a", "It"), "a")
    assert CANARY not in str(refused.value) + "".join(capfd.readouterr())


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_is_heard_while_the_server_is_waited_for_and_ends_its_work(
    postgres: Postgres, url: str, number: signal.Signals
) -> None:
    table = DatabaseTable(url, "SELECT pg_sleep(600)::text AS a", "It")
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

    def interrupt() -> None:
        end = time.monotonic() + 60
        while not postgres.execute(waiting) and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    before = signal.signal(number, signal.default_int_handler)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            texts(table, "a")
    finally:
        signal.signal(number, before)
    assert not postgres.execute(waiting)


def test_a_moment_of_duckdb_is_in_utc_whatever_the_time_zone_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setenv("TZ", "America/Lima")
    duckdb.connect(str(tmp_path / "t.duckdb")).close()
    cells = "timestamptz '2024-02-29 23:30:00-05' AS a, interval '1 day 2 seconds' AS b"
    table = DatabaseTable(f"duckdb:///{tmp_path / 't.duckdb'}", f"SELECT {cells}", "It")
    assert texts(table, "a", "b") == [["2024-03-01 04:30:00.000000Z"], ["PT86402S"]]


def test_an_odd_password_reaches_the_server_as_it_is() -> None:
    psycopg, sqlalchemy = pytest.importorskip("psycopg"), pytest.importorskip("sqlalchemy")
    text = "postgresql+psycopg2://me:a%20'%5Cb+@/clinic?host=one:5433&host=two:5434&options=-c%20x%3D1"
    assert psycopg.conninfo.conninfo_to_dict(database_readers._for_libpq(sqlalchemy.make_url(text))) == {
        "user": "me",
        "password": "a '\\b+",
        "dbname": "clinic",
        "host": "one,two",
        "port": "5433,5434",
        "options": "-c x=1",
        "connect_timeout": "10",
    }


@pytest.mark.parametrize(("rest", "host"), [("", "{sockets},/tmp"), ("?host=/run/pg", "/run/pg")])
def test_a_server_without_a_host_is_looked_for_where_debian_has_it(
    rest: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg, sqlalchemy = pytest.importorskip("psycopg"), pytest.importorskip("sqlalchemy")
    monkeypatch.setattr(database_readers, "_SOCKETS", tmp_path)
    monkeypatch.delenv("PGHOST", raising=False)
    text = database_readers._for_libpq(sqlalchemy.make_url(f"postgresql:///clinic{rest}"))
    assert psycopg.conninfo.conninfo_to_dict(text)["host"] == host.format(sockets=tmp_path)
    monkeypatch.setenv("PGHOST", "elsewhere")
    text = database_readers._for_libpq(sqlalchemy.make_url("postgresql:///clinic"))
    assert "host" not in psycopg.conninfo.conninfo_to_dict(text)
