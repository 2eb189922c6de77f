"""The ledger refuses what exceeds a cap, and counts no less than what a release may have drawn."""

from __future__ import annotations

import sqlite3
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth.accounting.amount import Amount, digits
from dpsynth.accounting.ledger import Ledger, Reservation
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError

ASK = Reservation(
    release_id="r1",
    dataset="people",
    unit="one row",
    neighbours="add_remove",
    cap_epsilon=Fraction(1),
    cap_delta=Fraction(1, 10**6),
    epsilon=Fraction("0.1"),
    delta=Fraction(1, 10**7),
)
EVENTS = [{"mechanism": "discrete Laplace", "scale": 10.0, "l1": 1}]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(file: Path) -> Ledger:
    return Ledger(f"sqlite:///{file}")


def asking(release_id: str, epsilon: str = "0.1", delta: str = "0", **other: object) -> Reservation:
    return replace(ASK, release_id=release_id, epsilon=Fraction(epsilon), delta=Fraction(delta), **other)  # type: ignore[arg-type]


def rows(file: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(file) as connection:
        return connection.execute("SELECT * FROM dpsynth_entries").fetchall()


def test_ten_tenths_fit_a_cap_of_one_and_an_eleventh_does_not(ledger: Ledger) -> None:
    for i in range(10):
        ledger.reserve(asking(f"r{i}", delta="1e-7"))
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r10", epsilon="1e-30"))
    balance = ledger.balance("people")
    assert balance is not None
    assert balance.reserved == Amount(Fraction(1), Fraction(1, 10**6))
    assert balance.left == Amount()
    # The planted fault: the same sum in floats misses the cap.
    assert sum([0.1] * 10) != 1.0


def test_delta_is_filtered_as_epsilon_is(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", delta="6e-7"))
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r2", delta="5e-7"))
    ledger.reserve(asking("r3", delta="4e-7"))


def test_a_refusal_changes_nothing_and_says_what_stands(ledger: Ledger, file: Path) -> None:
    ledger.reserve(asking("r1", epsilon="0.7"))
    before = ledger.balance("people"), rows(file)
    with pytest.raises(BudgetRefused) as refusal:
        ledger.reserve(asking("r2", epsilon="0.5"))
    assert (ledger.balance("people"), rows(file)) == before
    assert ledger.state("r2") is None
    text = str(refusal.value)
    for said in ("r2", "people", "ε = 0.5", "ε = 0.3", "ε = 1,", "reserved: ε = 0.7", "spent: ε = 0,", "r1"):
        assert said in text
    assert "privacy.epsilon" in text


def test_a_first_reservation_over_its_own_cap_records_no_dataset(ledger: Ledger) -> None:
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r1", epsilon="1.5"))
    assert ledger.balance("people") is None


def test_settling_frees_what_was_not_spent(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.8"))
    ledger.settle("r1", Fraction("0.3"), Fraction(0), EVENTS)
    balance = ledger.balance("people")
    assert balance is not None
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (Fraction("0.3"), 0)
    assert ledger.state("r1") == "closed"
    ledger.reserve(asking("r2", epsilon="0.7"))


def test_settling_twice_at_the_same_figures_changes_nothing(ledger: Ledger, file: Path) -> None:
    ledger.reserve(ASK)
    ledger.settle("r1", Fraction("0.05"), Fraction(0), EVENTS)
    once = rows(file)
    ledger.settle("r1", Fraction("0.05"), Fraction(0), EVENTS)
    assert rows(file) == once
    with pytest.raises(DpsynthError):
        ledger.settle("r1", Fraction("0.04"), Fraction(0), EVENTS)
    with pytest.raises(DpsynthError):
        ledger.abandon("r1", Fraction("0.05"), Fraction(0), EVENTS)
    assert rows(file) == once


def test_a_release_may_cost_its_whole_reservation_and_no_more(ledger: Ledger) -> None:
    ledger.reserve(ASK)
    with pytest.raises(DpsynthError, match="more than"):
        ledger.settle("r1", ASK.epsilon + Fraction(1, 10**40), Fraction(0), EVENTS)
    assert ledger.state("r1") == "reserved"
    ledger.settle("r1", ASK.epsilon, ASK.delta, EVENTS)


def test_an_abandoned_release_is_charged_whole_unless_its_journal_says_less(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.5"))
    ledger.reserve(asking("r2", epsilon="0.5"))
    ledger.abandon("r1", None, None, [])
    ledger.abandon("r2", Fraction("0.2"), Fraction(0), EVENTS)
    balance = ledger.balance("people")
    assert balance is not None
    assert [(r.release_id, r.state, r.epsilon) for r in balance.releases] == [
        ("r1", "abandoned", Fraction("0.5")),
        ("r2", "abandoned", Fraction("0.2")),
    ]
    assert balance.spent.epsilon == Fraction("0.7")


def test_what_was_never_reserved_cannot_end(ledger: Ledger) -> None:
    for _ in range(2):
        with pytest.raises(DpsynthError, match="never reserved"):
            ledger.settle("r9", Fraction(0), Fraction(0), [])
        ledger.reserve(ASK)


def test_a_resumed_release_is_not_charged_again(ledger: Ledger, file: Path) -> None:
    ledger.reserve(ASK)
    ledger.reserve(ASK)
    Ledger(f"sqlite:///{file}").reserve(ASK)
    assert len(rows(file)) == 1
    ledger.settle("r1", ASK.epsilon, ASK.delta, EVENTS)
    ledger.reserve(ASK)
    assert ledger.state("r1") == "closed"


@pytest.mark.parametrize("change", [{"epsilon": Fraction("0.2")}, {"delta": Fraction(0)}, {"dataset": "x"}])
def test_a_release_id_stands_for_one_release(ledger: Ledger, change: dict[str, object]) -> None:
    ledger.reserve(ASK)
    with pytest.raises(ConfigError, match="already stands"):
        ledger.reserve(replace(ASK, **change))  # type: ignore[arg-type]


def test_an_abandoned_release_is_not_resumed(ledger: Ledger) -> None:
    ledger.reserve(ASK)
    ledger.abandon("r1", Fraction(0), Fraction(0), [])
    with pytest.raises(ConfigError, match="abandoned"):
        ledger.reserve(ASK)


@pytest.mark.parametrize("change", [{"unit": "one person"}, {"neighbours": "replace_one"}])
def test_costs_of_unlike_guarantees_are_not_added(ledger: Ledger, change: dict[str, object]) -> None:
    ledger.reserve(ASK)
    with pytest.raises(ConfigError, match="can't be added up"):
        ledger.reserve(asking("r2", **change))
    assert ledger.state("r2") is None


def test_datasets_do_not_share_a_cap(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="1"))
    ledger.reserve(asking("r2", epsilon="1", dataset="other", unit="one person"))


def test_a_higher_cap_in_a_config_raises_nothing(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.9"))
    with pytest.raises(BudgetRefused, match="doesn't raise"):
        ledger.reserve(asking("r2", epsilon="0.2", cap_epsilon=Fraction(100)))
    balance = ledger.balance("people")
    assert balance is not None and balance.cap.epsilon == 1


def test_a_lower_cap_in_a_config_holds_for_its_own_release(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.4"))
    with pytest.raises(BudgetRefused, match="lower than the recorded"):
        ledger.reserve(asking("r2", epsilon="0.2", cap_epsilon=Fraction("0.5")))
    ledger.reserve(asking("r3", epsilon="0.6"))


def test_amounts_are_kept_to_the_last_digit(ledger: Ledger, file: Path) -> None:
    exact = Fraction(0.1) / 3
    ledger.reserve(replace(ASK, epsilon=exact))
    balance = Ledger(f"sqlite:///{file}").balance("people")
    assert balance is not None and balance.reserved.epsilon == exact


def test_a_float_is_no_amount(ledger: Ledger) -> None:
    with pytest.raises(TypeError):
        replace(ASK, epsilon=0.1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 0"):
        replace(ASK, cap_delta=Fraction(-1))
    ledger.reserve(ASK)
    with pytest.raises(TypeError):
        ledger.settle("r1", 0.05, Fraction(0), EVENTS)  # type: ignore[arg-type]
    assert ledger.state("r1") == "reserved"


def test_shown_figures_never_flatter() -> None:
    third = Fraction(1, 3)
    assert Fraction(digits(third, up=False)) < third < Fraction(digits(third, up=True))
    assert digits(Fraction(1, 10**9), up=True) == "1e-9"
    assert digits(Fraction(0), up=True) == "0"
    assert digits(Fraction(10), up=True) == "10"
    assert digits(Fraction(12345678), up=True) == "1.23457e+7"


def test_looking_makes_no_file_and_reserving_makes_a_private_one(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "ledger.db"
    ledger = Ledger(f"sqlite:///{file}")
    assert ledger.balance("people") is None and ledger.state("r1") is None
    assert not file.parent.exists()
    ledger.reserve(ASK)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_entry_is_never_changed_or_removed(ledger: Ledger, file: Path) -> None:
    ledger.reserve(ASK)
    reserved = rows(file)
    ledger.settle("r1", Fraction(0), Fraction(0), EVENTS)
    assert rows(file)[:1] == reserved and len(rows(file)) == 2


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
        "mysql://localhost/x",
        "not a url",
        "",
        "postgresql+asyncpg://u:secret@localhost/x",
    ],
)
def test_a_url_that_keeps_no_ledger_is_a_plain_error(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        Ledger(url)
    assert "\n" not in str(error.value) and "secret" not in str(error.value)


def test_a_file_that_is_no_ledger_is_a_plain_error_and_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is no database, but long enough to be read as the head of one " * 20)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE flow_run (id INTEGER)")
    newer = tmp_path / "newer.db"
    with sqlite3.connect(newer) as connection:
        connection.execute("CREATE TABLE dpsynth_ledger (format INTEGER)")
        connection.execute("INSERT INTO dpsynth_ledger VALUES (99)")
    for file, said in (
        (text, "not a database"),
        (foreign, "no ledger"),
        (newer, "format 99"),
        (tmp_path, "folder"),
    ):
        before = file.read_bytes() if file.is_file() else b""
        with pytest.raises(ConfigError, match=said) as error:
            Ledger(f"sqlite:///{file}")
        assert "\n" not in str(error.value)
        assert not file.is_file() or file.read_bytes() == before


def test_a_place_that_cannot_hold_a_file_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError):
        Ledger(f"sqlite:///{tmp_path}/file/ledger.db")


def test_a_torn_ledger_refuses_rather_than_forgets(ledger: Ledger, file: Path) -> None:
    ledger.reserve(asking("r1", epsilon="1"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match="can't be used"):
        ledger.reserve(asking("r2", epsilon="1"))
    with pytest.raises(DpsynthError, match="stays reserved"):
        ledger.settle("r1", Fraction(0), Fraction(0), [])


@pytest.mark.parametrize("value", ["x", "1/0", "-1", ""])
def test_a_damaged_amount_refuses_rather_than_counts_as_nothing(
    ledger: Ledger, file: Path, value: str
) -> None:
    ledger.reserve(ASK)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE dpsynth_entries SET epsilon = ?", (value,))
    with pytest.raises(ConfigError, match="damaged"):
        ledger.reserve(asking("r2"))
