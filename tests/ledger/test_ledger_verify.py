"""A damaged ledger is refused rather than guessed at, and ``verify`` says all that is wrong."""

from dataclasses import replace

import pytest
from sqlalchemy import text, update

from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.ledger import store as tables
from dpsynth.ledger.chain import FIRST
from dpsynth.ledger.ledger import Ledger
from tests.databases import Postgres
from tests.ledger.forging import Rows, seven_rows, store
from tests.ledger.reservations import ASK, USES, asking, cost
from tests.thinned import thinned

CHANGED = "it was changed after it was written"
FOLLOWS = "it does not follow the row before, so one of them was exchanged"


@pytest.fixture
def ledger(database: str) -> Ledger:
    ledger = Ledger(database)
    seven_rows(ledger)
    return ledger


def test_what_was_done_to_a_row_is_said_of_that_row(ledger: Ledger) -> None:
    r: Rows = list(ledger.rows())
    for done, said in (
        ([*r[:3], *r[4:]], ["row 4: it is missing"]),
        ([*r[:2], *r[5:]], ["row 3: it and all up to 5 is missing"]),
        (r[1:], ["row 1: it is missing"]),
        ([*r[:4], replace(r[4], content="{}"), *r[5:]], [f"row 5: {CHANGED}"]),
        ([*r[:4], replace(r[4], hash=FIRST), *r[5:]], [f"row 5: {CHANGED}", f"row 6: {FOLLOWS}"]),
        (
            [r[0], replace(r[2], number=2), replace(r[1], number=3), *r[3:]],
            [*(f"row {i}: {what}" for i in (2, 3) for what in (FOLLOWS, CHANGED)), f"row 4: {FOLLOWS}"],
        ),
    ):
        store(ledger, done)
        # Then come those that make no sense without what is missing.
        assert list(ledger.verify().problems[: len(said)]) == said
        with pytest.raises(ConfigError, match=f"is damaged at {said[0]}"):
            ledger.balance("people")
    store(ledger, r)
    assert ledger.verify().problems == ()


def test_rows_that_are_missing_at_the_end_are_found_by_the_record_of_the_last(ledger: Ledger) -> None:
    rows = list(ledger.rows())
    for length in range(7):
        store(ledger, rows[:length])
        # The planted fault is a record that was made to match: only a head file shows that.
        assert ledger.verify().problems == ()
        with ledger._store.transaction() as connection:
            connection.execute(update(tables._ledger).values(rows=7, hash=rows[-1].hash))
        (problem,) = ledger.verify().problems
        assert problem.startswith(
            f"row {length}: it should not be the last. The ledger's record is of 7 rows"
        )
        for use in USES:
            with pytest.raises(DpsynthError, match=f"is damaged at row {length}: it should not be the last"):
                use(ledger)


@pytest.mark.parametrize(
    ("database", "column"),
    thinned(["sqlite", "postgresql"], [column.name for column in tables._rows.columns], strength=1),
    indirect=["database"],
)
def test_a_cell_that_is_changed_by_hand_is_found(ledger: Ledger, column: str) -> None:
    with ledger._store.transaction() as connection:
        value = "70" if column == "number" else f"substr({column}, 2)"
        connection.execute(text(f"UPDATE dpsynth_rows SET {column} = {value} WHERE number = 4"))
    assert ledger.verify().problems
    for use in USES:
        with pytest.raises(DpsynthError, match=r"is damaged at row [45]"):
            use(ledger)


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ("DROP TABLE dpsynth_rows", "dpsynth_rows"),
        ("DROP TABLE dpsynth_ledger", "the table dpsynth_ledger is gone"),
        ("DELETE FROM dpsynth_ledger", r"format \?"),
        ("INSERT INTO dpsynth_ledger VALUES (7, 0, '')", r"format \?"),
        (
            "UPDATE dpsynth_ledger SET format = 8",
            "is in format 8, and this version of dpsynth reads formats 6 and 7",
        ),
        (
            "UPDATE dpsynth_ledger SET rows = 6",
            "row 7: it should not be the last. The ledger's record is of 6 rows",
        ),
        ("UPDATE dpsynth_ledger SET hash = ''", "row 7: it should not be the last"),
        ("ALTER TABLE dpsynth_rows RENAME COLUMN content TO contents", "content"),
    ],
)
def test_tables_that_are_changed_by_hand_are_found(ledger: Ledger, done: str, said: str) -> None:
    with ledger._store.transaction() as connection:
        connection.execute(text(done))
    (problem,) = ledger.verify().problems
    for use in USES:
        with pytest.raises(DpsynthError, match=said) as error:
            use(ledger)
        assert "\n" not in str(error.value)
    assert "\n" not in problem


def test_a_ledger_that_is_not_there_has_no_rows_and_no_problems(database: str) -> None:
    ledger = Ledger(database)
    found = ledger.verify()
    assert (found.rows, found.hash, found.problems) == (0, FIRST, ())
    assert ledger.rows() == () and ledger.balances() == () and ledger.read().clock_behind is None


def test_looking_makes_no_tables(postgres: Postgres) -> None:
    """A reader of a PostgreSQL database may have no right to make any."""
    url = postgres.make()
    ledger = Ledger(url)
    assert ledger.balance("people") is None and ledger.verify().problems == ()
    assert postgres.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'dpsynth%'", url) == [(0,)]
    with pytest.raises(DpsynthError, match="never reserved"):
        ledger.settle("r1", cost("0.1"), [])
    ledger.reserve(ASK)
    assert postgres.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'dpsynth%'", url) == [(2,)]
    postgres.empty(url)


def test_a_role_that_may_add_rows_and_change_none_is_enough(postgres: Postgres) -> None:
    url = postgres.make()
    seven_rows(Ledger(url))
    postgres.execute(
        "CREATE ROLE adder LOGIN; GRANT USAGE ON SCHEMA public TO adder; "
        "GRANT SELECT, INSERT ON dpsynth_rows TO adder; "
        "GRANT SELECT, UPDATE ON dpsynth_ledger TO adder",
        url,
    )
    adder = Ledger(url.replace("dpsynth@", "adder@"))
    adder.reserve(asking("r4"))
    adder.settle("r4", cost("0.1"), [])
    assert adder.verify().problems == () and adder.verify().rows == 9
    for change in ("DELETE FROM dpsynth_rows", "UPDATE dpsynth_rows SET created = '2000-01-01'"):
        with pytest.raises(ConfigError, match="permission denied"), adder._store.transaction() as connection:
            connection.execute(text(change))
    postgres.execute("DROP OWNED BY adder; DROP ROLE adder", url)
    postgres.empty(url)


def test_a_schema_that_is_made_later_does_not_hide_the_ledger(postgres: Postgres) -> None:
    """PostgreSQL looks into a schema of the user's name first, and would make new tables there."""
    url = postgres.make()
    rows = seven_rows(Ledger(url))
    postgres.execute("CREATE SCHEMA dpsynth", url)
    assert Ledger(url).rows() == tuple(rows)
    Ledger(url).reserve(asking("r4"))
    postgres.execute("DROP SCHEMA dpsynth", url)
    assert Ledger(url).verify().rows == 8
    postgres.empty(url)
