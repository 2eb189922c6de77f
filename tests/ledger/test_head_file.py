"""A ledger put back from an older copy is refused, as its head file knows of rows that it lacks.

Hazard 32.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.ledger import chain
from dpsynth.ledger import chain as head_file
from dpsynth.ledger import store as ledger_tables
from dpsynth.ledger.chain import FIRST
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.store import Store
from tests.databases import Postgres
from tests.ledger.reservations import ASK, EVENTS, USES, account, asking, cost


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def head(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere"


@pytest.fixture
def ledger(file: Path, head: Path) -> Ledger:
    return Ledger(f"sqlite:///{file}", head)


def files(head: Path) -> list[tuple[str, bytes]]:
    return sorted((path.name, path.read_bytes()) for path in head.parent.iterdir() if path.is_file())


def assert_refused(ledger: Ledger, head: Path, said: str) -> None:
    """However it is used, and nothing is changed by it."""
    before = files(head)
    for use in USES:
        with pytest.raises(DpsynthError, match=said):
            use(ledger)
    assert said in " ".join(ledger.verify().problems)
    assert files(head) == before


def test_every_row_is_known_elsewhere_before_the_next_is_added(ledger: Ledger, head: Path) -> None:
    ledger.reserve(asking("r1"))
    ledger.settle("r1", cost("0.1"), EVENTS)
    ledger.change_cap("people", Amount(), "a test")
    rows = ledger.rows()
    assert head.read_text().splitlines() == [f"{rows[i].number} {rows[i].hash}" for i in (1, 2, 3)]
    assert ledger.verify().problems == ()


@pytest.mark.parametrize("use", ["reserves", "verifies"])
def test_a_ledger_that_another_process_makes_meanwhile_is_not_taken_for_lost(
    use: str, ledger: Ledger, file: Path, head: Path, monkeypatch
) -> None:
    """A ledger that is made, with its head file, between the looks for the one and for the other."""
    looked = []

    def exists(store: Store) -> bool:
        if not looked:
            looked.append(store)
            Ledger(f"sqlite:///{file}", head).reserve(asking("r1"))
            return False
        return file.exists()

    monkeypatch.setattr(Store, "exists", property(exists))
    if use == "reserves":
        ledger.reserve(asking("r2"))
    assert ledger.verify().problems == ()


def test_an_older_copy_is_refused(ledger: Ledger, file: Path, head: Path) -> None:
    copies = []
    for i in range(3):
        ledger.reserve(asking(f"r{i}"))
        copies.append(file.read_bytes())
    for older in copies[:-1]:
        file.write_bytes(older)
        assert_refused(ledger, head, "restored from an older copy")
    file.write_bytes(copies[-1])
    ledger.reserve(asking("r3"))
    # The planted fault: without the head file nothing is amiss.
    file.write_bytes(copies[0])
    unguarded = Ledger(f"sqlite:///{file}")
    assert unguarded.verify().problems == ()
    unguarded.reserve(asking("r4"))


def test_an_older_copy_that_has_grown_since_is_refused(ledger: Ledger, file: Path, head: Path) -> None:
    ledger.reserve(asking("r1"))
    older = file.read_bytes()
    for i in range(2, 4):
        ledger.reserve(asking(f"r{i}"))
    file.write_bytes(older)
    for i in range(4, 9):
        Ledger(f"sqlite:///{file}").reserve(asking(f"r{i}"))
    assert_refused(ledger, head, "is another than the head file")


@pytest.mark.parametrize("gone", ["unlinked", "emptied"])
def test_a_ledger_that_is_gone_is_not_begun_anew(ledger: Ledger, file: Path, head: Path, gone: str) -> None:
    ledger.reserve(asking("r1"))
    file.unlink()
    if gone == "emptied":
        file.touch()
    assert_refused(ledger, head, "has it, and the ledger has 0 rows")


def test_an_older_copy_in_postgresql_is_refused(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.make()
    ledger = Ledger(url, tmp_path / "head")
    ledger.reserve(asking("r1"))
    first = ledger.rows()[-1]
    ledger.reserve(asking("r2"))
    postgres.execute("DELETE FROM dpsynth_rows WHERE number = 3", url)
    postgres.execute(f"UPDATE dpsynth_ledger SET rows = 2, hash = '{first.hash}'", url)
    with pytest.raises(ConfigError, match="older copy"):
        ledger.reserve(asking("r3"))
    assert Ledger(url).verify().problems == ()
    postgres.execute("DROP TABLE dpsynth_rows, dpsynth_ledger", url)
    with pytest.raises(ConfigError, match="the ledger has 0 rows"):
        ledger.reserve(asking("r3"))
    postgres.empty(url)


def test_a_missing_head_file_is_not_begun_anew_but_by_a_command(ledger: Ledger, head: Path) -> None:
    ledger.reserve(asking("r1"))
    head.unlink()
    assert_refused(ledger, head, "is missing")
    ledger.begin_head()
    last = ledger.rows()[-1]
    assert head.read_text() == f"{last.number} {last.hash}\n"
    ledger.begin_head()
    assert len(head.read_text().splitlines()) == 1
    ledger.reserve(asking("r2"))


def test_a_head_file_is_begun_only_beside_a_ledger_that_it_does_not_contradict(
    ledger: Ledger, file: Path, head: Path
) -> None:
    with pytest.raises(ConfigError, match="nothing in the ledger"):
        ledger.begin_head()
    with pytest.raises(ConfigError, match="Name the head file"):
        Ledger(f"sqlite:///{file}").begin_head()
    assert not head.exists()
    ledger.reserve(asking("r1"))
    head.write_text(f"1 {FIRST}\n")
    with pytest.raises(ConfigError, match="is another than the head file"):
        ledger.begin_head()
    head.write_text("# heads\n")
    with pytest.raises(ConfigError, match=r"line 1 of the head file .* was changed"):
        ledger.begin_head()


def test_a_head_file_that_lags_or_was_cut_short_is_caught_up(ledger: Ledger, file: Path, head: Path) -> None:
    """A process may die between its commit and its line, or within its line."""
    for i in range(10):
        ledger.reserve(asking(f"r{i}", "0.01"))
    whole, copy = head.read_bytes(), file.read_bytes()
    last, end = ledger.rows()[-1], len(whole)
    # Of the last two lines, "10 ..." and "11 ...", in their numbers, their hashes and at their ends.
    for length in (
        0,
        *(end - 68 - back for back in (69, 68, 67, 66, 65, 40, 2, 1)),
        *range(end - 68, end, 9),
        end,
    ):
        head.write_bytes(whole[:length])
        file.write_bytes(copy)
        ledger.settle("r1", cost("0.01"), [])
        lines = head.read_text().splitlines()
        assert f"{last.number} {last.hash}" in lines, length
        assert lines[-1] == f"{last.number + 1} {ledger.rows()[-1].hash}"
        assert ledger.verify().problems == ()
        # Nothing is changed that is there, so the file may stand where nobody can change it.
        assert head.read_bytes().startswith(whole[:length])


def test_every_bit_of_the_head_file_that_flips_is_found(ledger: Ledger, head: Path) -> None:
    for i in range(3):
        ledger.reserve(asking(f"r{i}"))
    rows, whole = ledger.rows(), head.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << bit
            head.write_bytes(flipped)
            with head_file.HeadFile(head, create=False) as opened:
                assert list(opened.problems(rows, opened.lines())), (place, bit)


def test_a_head_file_that_cannot_be_written_stops_a_release_before_it_is_charged(
    file: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    for place, said in (
        ("nowhere/head", "can't be made"),
        ("folder", "can't be used"),
        ("", "can't be used"),
    ):
        with pytest.raises(ConfigError, match=said):
            Ledger(f"sqlite:///{file}", tmp_path / place).reserve(ASK)
        assert Ledger(f"sqlite:///{file}").balance("people") is None


def test_a_head_file_that_no_disk_takes_is_a_plain_error(file: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for place in ("loop", "x" * 300):
        with pytest.raises(ConfigError):
            Ledger(f"sqlite:///{file}", tmp_path / place).reserve(ASK)
    assert not file.exists()


def test_the_ledger_is_no_head_file_of_its_own(file: Path) -> None:
    with pytest.raises(ConfigError, match="is the ledger itself"):
        Ledger(f"sqlite:///{file}", file.parent / "." / file.name)
    assert not file.exists()


def full(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """No line can be written from the one after so many on, as on a full disk."""
    written = 0

    def write(file: int, text: bytes, inner: Callable[[int, bytes], int] = os.write) -> int:
        nonlocal written
        written += 1
        return inner(file, text) if written <= after else inner(file, text[:5])

    monkeypatch.setattr(head_file.os, "write", write)


def test_a_full_disk_under_the_head_file_refuses_and_changes_nothing(
    ledger: Ledger, head: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.reserve(asking("r1"))
    with monkeypatch.context() as patch:
        full(patch, after=0)
        # Committed, and not known elsewhere: that is for the next to make up for.
        ledger.reserve(asking("r2"))
        before = ledger.rows()
        for change in USES[:4]:
            with pytest.raises(DpsynthError, match=r"head file .* can't be written: .* is full"):
                change(ledger)
        assert ledger.rows() == before and account(ledger).releases[-1].release_id == "r2"
    ledger.reserve(asking("r3"))
    assert head.read_text().splitlines()[-1].split()[0] == "4"
    assert f"3 {before[-1].hash}" in head.read_text().splitlines()
    assert ledger.verify().problems == ()


def test_nothing_is_noted_that_is_not_committed(
    ledger: Ledger, head: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault, a line for a row that was never committed, would lock the ledger for good."""
    ledger.reserve(asking("r1"))
    noted, append = head.read_bytes(), ledger_tables.append

    def interrupted(*arguments: Any) -> None:
        append(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger_tables, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.reserve(asking("r2"))
    assert head.read_bytes() == noted
    assert ledger.state("r2") is None
    head.write_bytes(noted + f"3 {FIRST}\n".encode())
    assert_refused(ledger, head, "restored from an older copy")


def row() -> chain.Row:
    return chain.chained(None, "reserve", "visits", "r", "{}", "2026-01-02T03:04:05+00:00")


def test_a_line_is_synced_with_its_folder_and_only_the_owner_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_ino))
    path = tmp_path / "head"
    opened = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with head_file.HeadFile(path, create=True) as head:
            head.add([row()])
    assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == f"1 {row().hash}\n"
    assert len(list(Path("/proc/self/fd").iterdir())) < opened + 10


def test_a_file_system_that_syncs_no_folders_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = os.fsync

    def only_files(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(22, "folders can't be synced")
        sound(number)

    monkeypatch.setattr(os, "fsync", only_files)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(20):
        with head_file.HeadFile(tmp_path / str(number), create=True) as head:
            head.add([row()])
    assert len(list(Path("/proc/self/fd").iterdir())) < opened + 10


def test_a_head_file_that_breaks_off_is_an_error_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with head_file.HeadFile(tmp_path / "head", create=True) as head:
        head.add([row()])
        monkeypatch.setattr(os, "read", broken)
        with pytest.raises(ConfigError, match="can't be read: Input/output error"):
            head.lines()


def test_a_ledger_with_rows_is_not_read_without_its_head_file(ledger: Ledger, head: Path) -> None:
    ledger.reserve(asking("r1"))
    head.unlink()
    with pytest.raises(ConfigError, match="is missing"):
        ledger.balances()
