"""The ledger's promises when processes die, disks fill up and databases go away.

Hazard 28. Races are in ``test_ledger_races``.
"""

import contextlib
import os
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import event

from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError
from dpsynth.ledger import ledger as reading
from dpsynth.ledger import refusals
from dpsynth.ledger import store as ledger_store
from dpsynth.ledger import store as ledger_tables
from dpsynth.ledger.ledger import Ledger
from tests.databases import Postgres
from tests.ledger.reservations import EVENTS, USES, account, asking, cost
from tests.thinned import thinned

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@contextmanager
def forked(what: Callable[[Callable[[str], None]], None]) -> Iterator[tuple[int, int]]:
    """Run something in a process of its own, which tells lines through a pipe; its id and the pipe's end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            what(lambda line: print(line, file=os.fdopen(writer, "w", closefd=False), flush=True))
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    try:
        yield child, reader
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def lines(reader: int) -> list[str]:
    """All that was told until the pipe's other end was closed."""
    told = b""
    while chunk := os.read(reader, 1 << 16):
        told += chunk
    # A line that is not whole was not told.
    return told.decode().split("\n")[:-1]


def releasing(url: str, head: Path, begun: int) -> Callable[[Callable[[str], None]], None]:
    """Reserve and settle one release after another, telling of each when the ledger has answered."""

    def run(tell: Callable[[str], None]) -> None:
        ledger = Ledger(url, head)
        for number in range(begun, begun + 10_000):
            ledger.reserve(asking(f"r{number}", "0.0001"))
            tell(f"reserved r{number}")
            ledger.settle(f"r{number}", cost("0.00005"), EVENTS)
            tell(f"closed r{number}")

    return run


def kill_at_random(url: str, head: Path, kills: int, seed: int) -> int:
    """Kill such a process again and again; how many times it had told more than the ledger then knew."""
    chance, forgotten, begun = Random(seed), 0, 0
    for _ in range(kills):
        with forked(releasing(url, head, begun)) as (child, reader):
            select.select([reader], [], [], 30)
            time.sleep(chance.random() * 0.1)
            os.kill(child, signal.SIGKILL)
            told = lines(reader)
        ledger = Ledger(url, head)
        assert ledger.verify().problems == ()
        state = {r.release_id: r.state for r in account(ledger).releases}
        for line in told:
            said, name = line.split()
            forgotten += (
                state.get(name) not in ({"reserved": ("reserved", "closed"), "closed": ("closed",)}[said])
            )
        # What was asked last may stand without having been told of; what comes next has another name.
        begun = len(state)
        # No lock is left behind, nor half a row.
        started = time.monotonic()
        ledger.reserve(asking(f"r{begun}", "0.0001"))
        assert time.monotonic() - started < ledger_store.BUSY_SECONDS / 2
        begun += 1
    return forgotten


def test_what_the_ledger_has_answered_outlives_any_kill(database: str, tmp_path: Path) -> None:
    assert kill_at_random(database, tmp_path / "head", kills=7, seed=1) == 0


@pytest.mark.slow
def test_what_the_ledger_has_answered_outlives_three_hundred_kills(database: str, tmp_path: Path) -> None:
    assert kill_at_random(database, tmp_path / "head", kills=300, seed=2) == 0


def test_a_ledger_that_answers_before_it_commits_is_caught(tmp_path: Path) -> None:
    """The planted fault."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"

    def run(tell: Callable[[str], None]) -> None:
        threading.Thread(target=Ledger(url).reserve, args=(asking("r1"),)).start()
        tell("reserved r1")
        time.sleep(5)

    Ledger(url).reserve(asking("r0"))
    with sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with forked(run) as (child, reader):
            assert os.read(reader, 100) == b"reserved r1\n"
            os.kill(child, signal.SIGKILL)
        other.execute("ROLLBACK")
    assert Ledger(url).state("r1") is None


def killed_at(ledger: Ledger, place: str, change: Callable[[Ledger], object]) -> None:
    """Make a change of a ledger in a process of its own, which is killed at a place of it."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def run(tell: Callable[[str], None]) -> None:
        append = ledger_tables.append
        if place == "before the row":
            ledger_tables.append = die  # type: ignore[assignment]
        elif place == "after the row":
            ledger_tables.append = lambda *a: (append(*a), die())  # type: ignore[assignment, func-returns-value]
        elif place == "before the commit":
            event.listen(ledger._store._engine, "commit", die)
        else:
            # The next that is written is the head file's line.
            os.write = die  # type: ignore[assignment]
        change(ledger)
        tell("lived")

    with forked(run) as (_, reader):
        assert lines(reader) == []


@pytest.mark.parametrize(
    ("database", "place", "change"),
    thinned(
        ["sqlite", "postgresql"],
        ["before the row", "after the row", "before the commit", "after the commit"],
        range(4),
        strength=1,
    ),
    indirect=["database"],
)
def test_a_process_killed_at_a_change_has_made_it_whole_or_not_at_all(
    database: str, tmp_path: Path, place: str, change: int
) -> None:
    ledger = Ledger(database, tmp_path / "head")
    ledger.reserve(asking("r1"))
    before = ledger.rows()

    killed_at(ledger, place, USES[change])
    after = Ledger(database, tmp_path / "head").rows()
    assert after[:2] == before
    assert len(after) == (3 if place == "after the commit" else 2)
    assert ledger.verify().problems == ()
    # Whoever comes next makes it, or finds it made.
    USES[change](ledger)
    assert len(ledger.rows()) == 3


@pytest.mark.parametrize(
    ("begin", "winners"), [("BEGIN IMMEDIATE", 1), pytest.param("SELECT 1", 2, id="planted fault: no lock")]
)
def test_nothing_comes_between_the_check_and_the_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str, winners: int
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    # Half the budget fits once.
    Ledger(url).reserve(asking("r0", "0.1"))
    # Under the lock the second one can't come; without it, it does, however late.
    meeting = threading.Barrier(2, timeout=1.0 if winners == 1 else 60.0)

    def check_and_wait(*arguments: Any) -> None:
        refusals.check_allowed(*arguments)
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait()

    def compete(release_id: str) -> str:
        try:
            Ledger(url).reserve(asking(release_id, "0.5"))
        except (BudgetRefused, ConfigError) as error:
            return type(error).__name__
        return "won"

    monkeypatch.setitem(ledger_store._ALONE, "sqlite", begin)
    monkeypatch.setattr(reading, "check_allowed", check_and_wait)
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(compete, ["r1", "r2"]))
    # Without the lock both pass the check; then the row's number keeps one of them out.
    assert meeting.broken == (winners == 1)
    assert sorted(told) == (["BudgetRefused", "won"] if winners == 1 else ["ConfigError", "won"])


def grow(ledger: Ledger) -> tuple[int, Exception | None]:
    """Reserve until something is refused; how many, and why."""
    for number in range(10_000):
        try:
            ledger.reserve(asking(f"r{number}", "0.0001"))
        except Exception as error:
            return number, error
    return number, None


def test_a_full_disk_refuses_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    prepare = ledger_store._prepare_sqlite

    def small(connection: Any, record: object) -> None:
        prepare(connection, record)
        connection.execute("PRAGMA max_page_count = 8")

    with monkeypatch.context() as patch:
        patch.setattr(ledger_store, "_prepare_sqlite", small)
        ledger = Ledger(url)
        number, error = grow(ledger)
        assert isinstance(error, ConfigError) and number > 5
        assert "can't be used: database or disk is full. Nothing was changed; make room" in str(error)
        before = ledger.rows()
        with pytest.raises(DpsynthError, match=r"disk is full.* What release r1 reserved stays reserved"):
            ledger.settle("r1", cost("0.0001"), EVENTS * 100)
        assert ledger.rows() == before and ledger.verify().problems == ()
    roomy = Ledger(url)
    roomy.settle("r1", cost("0.0001"), EVENTS * 100)
    roomy.reserve(asking(f"r{number}"))


def test_a_file_that_may_not_grow_refuses_and_changes_nothing(tmp_path: Path) -> None:
    """As on a full disk: the system itself refuses to write, in the middle of a transaction."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    Ledger(url).reserve(asking("first"))

    def run(tell: Callable[[str], None]) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
        number, error = grow(Ledger(url))
        tell(f"{number} {type(error).__name__} {error}")

    with forked(run) as (_, reader):
        (told,) = lines(reader)
    number, kind, said = told.split(" ", 2)
    assert kind == "ConfigError" and "can't be used" in said
    ledger = Ledger(url)
    assert ledger.verify().problems == ()
    assert len(account(ledger).releases) == 1 + int(number)
    ledger.reserve(asking("last", "0.0001"))


def test_a_ledger_that_another_holds_is_waited_for_and_then_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ledger.db"
    Ledger(f"sqlite:///{file}").reserve(asking("r1"))
    monkeypatch.setattr(ledger_store, "BUSY_SECONDS", 0.5)
    ledger = Ledger(f"sqlite:///{file}")
    with sqlite3.connect(file, isolation_level=None, check_same_thread=False) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigError, match="database is locked"):
            ledger.reserve(asking("r2"))
        threading.Timer(0.2, lambda: other.execute("ROLLBACK")).start()
        ledger.reserve(asking("r2"))


@pytest.mark.parametrize("flags", [os.O_EXCL, pytest.param(0, id="planted fault: opened though it is there")])
def test_a_thread_that_comes_second_does_not_undo_the_lock_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: int
) -> None:
    """A process that closes a file loses all its locks on it, whichever thread has them."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    Ledger(url).reserve(asking("r1"))
    monkeypatch.setattr(ledger_store.os, "O_EXCL", flags)
    monkeypatch.setattr(ledger_store, "BUSY_SECONDS", 0.5)
    ledger = Ledger(url)

    with ledger._sessions.changing(), ThreadPoolExecutor(1) as pool:
        assert isinstance(pool.submit(ledger.reserve, asking("r2")).exception(), ConfigError)
        # Not a fork: SQLite would think in it that it has the locks of this process.
        begin = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0.2).execute('BEGIN IMMEDIATE')"
        place = url.removeprefix("sqlite:///")
        came_in = subprocess.run([sys.executable, "-c", begin, place], capture_output=True).returncode == 0
    assert came_in == (flags == 0)


def test_a_server_that_is_away_is_a_plain_error_and_all_is_there_when_it_is_back(postgres: Postgres) -> None:
    url = postgres.make()
    ledger = Ledger(url)
    ledger.reserve(asking("r1"))
    rows = ledger.rows()
    postgres.stop("immediate")
    for use in USES:
        with pytest.raises(DpsynthError, match="can't be used") as error:
            use(ledger)
        assert "\n" not in str(error.value)
    (problem,) = ledger.verify().problems
    assert "can't be used" in problem
    postgres.start()
    assert ledger.rows() == rows
    ledger.settle("r1", cost("0.1"), EVENTS)
    assert postgres.sessions(url) == 0
    postgres.empty(url)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_connection_that_breaks_at_the_commit_leaves_it_to_the_ledger_to_tell(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    url = postgres.make()
    ledger = Ledger(url)
    ledger.reserve(asking("r1"))

    def breaking(connection: Any) -> None:
        """The session ends before the server hears of the commit, or before its answer is heard."""
        if lost == "after":
            connection.commit()
        others = "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        postgres.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM {others}", url)
        connection.execute("SELECT 1")

    with monkeypatch.context() as patch:
        patch.setattr(ledger._store._engine.dialect, "do_commit", breaking)
        with pytest.raises(ConfigError, match="it can't be told whether it was"):
            ledger.reserve(asking("r2"))
    assert ledger.state("r2") == ("reserved" if lost == "after" else None)
    ledger.reserve(asking("r2"))
    assert len(ledger.rows()) == 3 and ledger.verify().problems == ()
    postgres.empty(url)


def test_a_client_that_stands_still_gives_up_the_lock(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.make()
    ledger = Ledger(url)
    ledger.reserve(asking("r1"))
    manners = ledger_store._SETTINGS["postgresql"]
    impatient = manners.replace(f"'{ledger_store.IDLE_SECONDS}s'", "'1s'")
    assert impatient != manners
    monkeypatch.setitem(ledger_store._SETTINGS, "postgresql", impatient)

    def run(tell: Callable[[str], None]) -> None:
        with ledger._sessions.changing():
            tell("inside")
            os.kill(os.getpid(), signal.SIGSTOP)

    with forked(run) as (_, reader):
        assert os.read(reader, 100) == b"inside\n"
        started = time.monotonic()
        ledger.reserve(asking("r2"))
        assert time.monotonic() - started < 20
    waiting = manners.replace(f"'{ledger_store.BUSY_SECONDS}s'", "'1s'")
    monkeypatch.setitem(ledger_store._SETTINGS, "postgresql", waiting)
    with forked(run) as (_, reader):
        assert os.read(reader, 100) == b"inside\n"
        with pytest.raises(ConfigError, match="lock timeout"):
            ledger.reserve(asking("r3"))
    postgres.empty(url)


def test_what_is_committed_is_on_disk_whatever_the_database_is_set_to(postgres: Postgres) -> None:
    url = postgres.make()
    ledger = Ledger(url)
    for default, held in (("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")):
        postgres.execute(f"ALTER ROLE dpsynth SET synchronous_commit = {default}")
        with ledger._store.transaction() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == held
    postgres.execute("ALTER ROLE dpsynth RESET synchronous_commit")
    postgres.empty(url)


def test_a_sqlite_ledger_syncs_all_that_a_loss_of_power_could_undo(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.reserve(asking("r1"))
    with ledger._store.transaction() as connection:
        # 3 is EXTRA: the folder as well, once the journal is deleted.
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"


def test_no_connection_is_kept_between_uses(postgres: Postgres) -> None:
    url = postgres.make()
    ledger = Ledger(url)
    ledger.reserve(asking("r1"))
    for use in USES:
        with contextlib.suppress(DpsynthError):
            use(ledger)
        # The server needs a moment to see that a client has gone; one that is kept never goes.
        end = time.monotonic() + 60
        while (left := postgres.sessions(url)) and time.monotonic() < end:
            time.sleep(0.01)
        assert left == 0
    postgres.empty(url)
