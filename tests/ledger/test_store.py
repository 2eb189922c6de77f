"""Where a ledger can't be kept it says so, in words without a password; whoever glances doesn't wait."""

import os
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpsynth.errors import ConfigError
from dpsynth.ledger import store as module
from dpsynth.ledger.store import Store


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def test_a_password_is_not_shown() -> None:
    assert "hush" not in Store("postgresql://somebody:hush@nowhere.invalid/ledger").name
    found = Store("postgresql://somebody@nowhere.invalid/ledger?password=hush&sslpassword=hush&port=7").name
    assert "hush" not in found and found.endswith("somebody@nowhere.invalid/ledger?port=7")


def test_a_database_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="can't be kept in 'mysql'"):
        Store("mysql://somebody@nowhere.invalid/ledger")


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("psycopg")

    monkeypatch.setattr(module, "create_engine", missing)
    with pytest.raises(ConfigError, match="needs psycopg"):
        Store("postgresql://somebody@nowhere.invalid/ledger")


@pytest.mark.parametrize("denied", [os.R_OK, os.W_OK])
def test_a_file_is_one_to_read_and_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denied: int
) -> None:
    (tmp_path / "ledger.db").touch()
    monkeypatch.setattr(module.os, "access", lambda path, mode: not mode & denied)
    with pytest.raises(ConfigError, match="can't be read and written"):
        Store(url(tmp_path / "ledger.db"))


@pytest.mark.parametrize("denied", [os.W_OK, os.X_OK])
def test_a_new_file_lies_where_one_may_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denied: int
) -> None:
    monkeypatch.setattr(module.os, "access", lambda path, mode: not mode & denied)
    with pytest.raises(ConfigError, match="may not write"):
        Store(url(tmp_path / "new" / "ledger.db"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file, and no folder"):
        Store(url(tmp_path / "file" / "ledger.db"))


def test_a_file_that_can_not_be_made_is_an_error_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    store = Store(url(tmp_path / "ledger.db"))
    monkeypatch.setattr(module.os, "open", full)
    with pytest.raises(ConfigError, match="can't be made: No space left"):
        store.create()


def test_who_glances_reads_while_another_writes_and_finds_no_new_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.05)
    one, other = (Store(url(tmp_path / "ledger.db")) for _ in range(2))
    with pytest.raises(ConfigError, match="it is gone"), one.glance():
        pass
    one.create()
    with one.transaction() as connection:
        connection.exec_driver_sql("CREATE TABLE told (number)")
    with one.transaction(), other.glance() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM told").scalar() == 0
    with one.transaction(), pytest.raises(ConfigError, match="locked"), other.transaction():
        pass


def test_no_other_thread_opens_a_new_file_before_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To close it would undo the locks that SQLite has on it for that thread."""
    close, held = os.close, []

    def closing(file: int) -> None:
        held.append(module._MAKING.locked())
        close(file)

    monkeypatch.setattr(module.os, "close", closing)
    Store(url(tmp_path / "ledger.db")).create()
    assert held == [True] and not module._MAKING.locked()


def test_a_damaged_text_is_read_as_one(tmp_path: Path) -> None:
    store = Store(url(tmp_path / "ledger.db"))
    store.create()
    with store.transaction() as connection:
        assert connection.exec_driver_sql("SELECT CAST(x'61ff' AS TEXT)").scalar() == "a\udcff"


def test_only_a_connection_that_breaks_at_the_end_leaves_it_open_what_was_written() -> None:
    broken = DBAPIError("COMMIT", None, Exception("server closed"), connection_invalidated=True)
    whole = DBAPIError("COMMIT", None, Exception("server closed"))
    assert "can't be told" in module._reason(broken, True)
    for error, ending in ((broken, False), (whole, True), (SQLAlchemyError("server closed"), True)):
        assert module._reason(error, ending) == "server closed."
