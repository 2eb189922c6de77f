"""A ledger that is kept open adds up only new rows, and still reads and compares all of them."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from dpsynth.errors import BudgetRefused, ConfigError
from dpsynth.ledger import store
from dpsynth.ledger import store as tables
from dpsynth.ledger.chain import FIRST
from dpsynth.ledger.contents import Book
from dpsynth.ledger.ledger import Ledger
from tests.ledger.reservations import EVENTS, asking, cost


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(file: Path) -> Ledger:
    """A ledger that was used, with six rows."""
    ledger = Ledger(f"sqlite:///{file}")
    for name in ("r1", "r2", "r3"):
        ledger.reserve(asking(name))
    ledger.settle("r1", cost("0.05"), EVENTS)
    ledger.settle("r2", cost("0.05"), EVENTS)
    assert ledger.balance("people") is not None
    return ledger


def executed(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def test_rows_that_were_read_before_are_not_added_up_again(ledger: Ledger, monkeypatch) -> None:
    sound, entered = Book.enter, []

    def counted(book, row, **how):
        entered.append(row.number)
        sound(book, row, **how)

    monkeypatch.setattr(Book, "enter", counted)
    ledger.balance("people")
    ledger.rows()
    assert entered == []
    ledger.reserve(asking("r4"))
    ledger.balance("people")
    # Once when it is added, once when it is read.
    assert entered == [7, 7]


def test_what_others_do_in_between_is_counted(file: Path, ledger: Ledger) -> None:
    other = Ledger(f"sqlite:///{file}")
    for number in range(7):
        other.reserve(asking(f"s{number}"))
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r4", "0.2"))
    ledger.settle("s0", cost("0.01"), EVENTS)
    assert ledger.balances() == other.balances() == Ledger(f"sqlite:///{file}").balances()


def test_nobody_waits_while_a_reading_is_added_up(file: Path, ledger: Ledger, monkeypatch) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.1)
    sound, others = Book.enter, [Ledger(f"sqlite:///{file}")]

    def meanwhile(book, row):
        if others:
            others.pop().settle("r3", cost("0.05"), EVENTS)
        sound(book, row)

    known = Ledger(f"sqlite:///{file}")
    monkeypatch.setattr(Book, "enter", meanwhile)
    read = known.read()
    assert read.release("r3").state == "reserved" and len(read.rows) == 6
    assert known.state("r3") == "closed" and others == []


def test_a_session_that_changes_nothing_after_all_leaves_no_trace(ledger: Ledger) -> None:
    before = ledger.balances()
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r4", "5"))
    with pytest.raises(RuntimeError), ledger._sessions.changing() as page:
        page.add("resumed", "people", "r3", {"holder": "somebody"})
        assert page.book.balance("people") != before[0]
        raise RuntimeError
    assert ledger.balances() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dpsynth_rows SET content = replace(content, '1/20', '1/30') WHERE number = 5",
        "UPDATE dpsynth_rows SET created = '2001-01-01' WHERE number = 2",
        "UPDATE dpsynth_rows SET hash = previous WHERE number = 3",
        "DELETE FROM dpsynth_rows WHERE number = 1",
        "DELETE FROM dpsynth_rows WHERE number = 6",
        "UPDATE dpsynth_ledger SET rows = 5",
        "UPDATE dpsynth_ledger SET hash = 'ab'",
    ],
)
def test_a_row_that_is_changed_after_it_was_read_is_found(file: Path, ledger: Ledger, statement: str) -> None:
    executed(file, statement)
    with pytest.raises(ConfigError, match="damaged at row"):
        ledger.balance("people")
    with pytest.raises(ConfigError, match="damaged at row"):
        ledger.reserve(asking("r4"))


def test_an_older_copy_is_read_as_it_is(file: Path, ledger: Ledger) -> None:
    """Without a head file nobody can tell that it is older; its own sums count."""
    older = file.read_bytes()
    ledger.reserve(asking("r4"))
    ledger.balance("people")
    file.write_bytes(older)
    assert ledger.balances() == Ledger(f"sqlite:///{file}").balances()
    assert ledger.release("r4") is None


def test_rows_that_are_taken_for_checked_without_a_look_would_be_seen(
    file: Path, ledger: Ledger, monkeypatch
) -> None:
    """The planted fault: known rows are not compared with those that are stored."""

    class Trusting(list):  # type: ignore[type-arg]
        def __ne__(self, other: object) -> bool:
            return False

    checked = ledger._sessions._checked
    ledger._sessions._checked = replace(checked, stored=Trusting(checked.stored))
    executed(file, "UPDATE dpsynth_rows SET created = '2001-01-01' WHERE number = 2")
    assert ledger.balance("people") is not None


def test_a_check_tells_the_number_of_rows_and_the_hash_of_the_last(ledger: Ledger, tmp_path: Path) -> None:
    rows = ledger.rows()
    found = ledger.verify()
    assert (found.rows, found.hash, found.problems) == (len(rows), rows[-1].hash, ())
    nothing = Ledger(f"sqlite:///{tmp_path / 'none.db'}").verify()
    assert (nothing.rows, nothing.hash) == (0, FIRST)


def test_a_ledger_that_can_not_be_read_has_no_rows_to_a_check(file: Path) -> None:
    file.write_bytes(b"no database" * 100)
    found = Ledger(f"sqlite:///{file}").verify()
    assert (found.rows, found.hash, len(found.problems)) == (0, FIRST, 1)


def test_whoever_reads_makes_no_tables(file: Path) -> None:
    executed(file, "PRAGMA user_version = 1")
    assert Ledger(f"sqlite:///{file}").balances() == ()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_the_clock_is_held_against_the_last_row_alone(ledger: Ledger, monkeypatch) -> None:
    today = tables.today()
    assert ledger.read().clock_behind is None
    monkeypatch.setattr(tables, "today", lambda: today + timedelta(1))
    ledger.reserve(asking("r4"))
    monkeypatch.setattr(tables, "today", lambda: today)
    assert ledger.read().clock_behind == today + timedelta(1)


def test_a_table_without_a_name_has_the_account_of_its_file(ledger: Ledger) -> None:
    unnamed = asking("r4", dataset="", source="/srv/visits.csv", release="daily")
    assert ledger.reserve(unnamed).dataset == "visits"
    assert ledger.reserve(unnamed) == ledger.release("r4")
    assert ledger.reserve(asking("r1", dataset="")).dataset == "people"


def test_a_last_row_that_can_not_be_read_names_no_holder(file: Path, ledger: Ledger) -> None:
    executed(file, "UPDATE dpsynth_rows SET content = '[' WHERE number = 4")
    with pytest.raises(ConfigError, match="damaged at row 4: it can't be read"):
        ledger.check_holder("r3", "")


def test_a_release_that_the_ledger_does_not_know_has_no_holder(ledger: Ledger) -> None:
    with pytest.raises(ConfigError, match="it has no release r9"):
        ledger.check_holder("r9", "anybody")
