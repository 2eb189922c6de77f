"""What the owner is told before a release that they may not expect."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.ledger.balance import Reservation, first_balance
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.refusals import hints
from tests.ledger.reservations import ASK, EVENTS, asking, cost


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")


def told(ledger: Ledger, wanted: Reservation, bundles: Path = Path("outputs/yearly")) -> list[str]:
    return list(hints(wanted, wanted.dataset or "people", ledger.balances(), bundles))


def test_nothing_is_said_of_a_first_release(ledger: Ledger) -> None:
    assert told(ledger, ASK) == []


def test_the_same_config_twice_is_said_to_be_charged_twice(ledger: Ledger, tmp_path: Path) -> None:
    ledger.reserve(ASK)
    ledger.settle("r1", cost("0.1", "1e-7"), EVENTS)
    again = replace(ASK, release_id="r2")
    (hint,) = told(ledger, again)
    assert "as r1. This is a further release, number 2 of dataset 'people'" in hint
    assert hint.endswith("is charged ε = 0.1, δ = 1e-7 once more.")
    (tmp_path / "r1").mkdir()
    (hint,) = told(ledger, again, tmp_path)
    assert f"its bundle is {tmp_path / 'r1'}" in hint


@pytest.mark.parametrize("other", [{"spec": "1" * 64}, {"occasion": "2026-01"}])
def test_another_config_or_period_is_no_repetition(ledger: Ledger, other: dict[str, str]) -> None:
    ledger.reserve(ASK)
    ledger.settle("r1", cost("0.1", "1e-7"), EVENTS)
    assert told(ledger, replace(ASK, release_id="r2", **other)) == []  # type: ignore[arg-type]


def test_a_release_that_is_unfinished_or_was_given_up_is_not_repeated(ledger: Ledger) -> None:
    ledger.reserve(ASK)
    assert told(ledger, replace(ASK, release_id="r2")) == []
    ledger.abandon("r1", None, [])
    assert told(ledger, replace(ASK, release_id="r2")) == []


def test_a_cap_above_the_recorded_one_is_said_to_change_nothing_and_how_it_would(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", occasion="2026-01"))
    higher = asking("r2", occasion="2026-02", cap=Amount(Fraction(5), Fraction(1, 10**5)))
    (hint,) = told(ledger, higher)
    assert "ledger.cap in this configuration, ε = 5, δ = 1e-5, is above the recorded ε = 1, δ = 1e-6" in hint
    command = "dpsynth ledger cap 'people' --epsilon 5 --delta 1e-5 --config CONFIG --reason WHY"
    assert hint.endswith(f"the recorded one holds. If it may be raised: {command}")
    assert told(ledger, replace(higher, cap_declared=False)) == []
    (hint,) = told(ledger, replace(higher, cap=Amount(Fraction(5), ASK.cap.delta)))
    assert "--epsilon 5 --config" in hint
    (hint,) = told(ledger, replace(higher, cap=Amount(ASK.cap.epsilon, Fraction(1, 10**5))))
    assert "dpsynth ledger cap 'people' --delta 1e-5 --config" in hint


def test_a_new_account_beside_others_and_a_new_source_in_an_account_are_said(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", source="/srv/a.csv", occasion="1"))
    (hint,) = told(ledger, asking("r2", dataset="staff", source="/srv/staff.csv", occasion="1"))
    assert "opens dataset 'staff'" in hint and "beside 'people'" in hint
    (hint,) = told(ledger, asking("r2", dataset="", source="/srv/b.csv", occasion="2"))
    assert "/srv/b.csv is new to dataset 'people', which has '/srv/a.csv'" in hint
    # Whoever names the dataset knows.
    assert told(ledger, asking("r2", source="/srv/b.csv", occasion="2")) == []
    assert told(ledger, asking("r2", dataset="", source="/srv/a.csv", occasion="2")) == []


@pytest.mark.parametrize(("number", "more"), [(5, ""), (6, " and others")])
def test_five_names_are_listed_at_most(number: int, more: str) -> None:
    some = [first_balance(replace(ASK, dataset=f"d{i}"), date(2026, 11, 22)) for i in range(number)]
    (hint,) = hints(ASK, "people", some, Path())
    assert f"beside 'd0', 'd1', 'd2', 'd3', 'd4'{more}. If" in hint
