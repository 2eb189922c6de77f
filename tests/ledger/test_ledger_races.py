"""Many processes ask one ledger at the same instant, on either database.

Hazard 29. The processes are real ones; see ``racers``.
"""

import os
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth.ledger.ledger import Ledger
from tests.ledger import racers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FEW, MANY = 6, 32
Outcomes = Sequence[Sequence[str]]


def raced(
    url: str,
    contest: str,
    rounds: int,
    *,
    processes: int = FEW,
    fault: str | None = None,
    head: Path | None = None,
) -> Outcomes:
    """What each process was told in each round of a contest."""
    job = {
        "url": url,
        "head": None if head is None else str(head),
        "contest": contest,
        "rounds": rounds,
        "processes": processes,
        "fault": fault,
    }
    if fault == "no lock":
        # Tables that many make at once would end the race before it begins.
        Ledger(url, head).reserve(racers.asked("before", "another table", None))
    return racers.raced(job)


def one_has_it(outcomes: Outcomes) -> bool:
    """Whether in each round one process got the budget and all others were refused it."""
    return all(Counter(told) == {"won": 1, "refused": len(told) - 1} for told in outcomes)


def assert_one_has_it(url: str, rounds: int, processes: int, head: Path | None = None) -> None:
    outcomes = raced(url, "budget", rounds, processes=processes, head=head)
    assert [len(told) for told in outcomes] == [processes] * rounds
    assert one_has_it(outcomes), [Counter(told) for told in outcomes]
    ledger = Ledger(url, head)
    assert ledger.verify().problems == ()
    for balance in ledger.balances():
        (winner,) = balance.releases
        assert winner.reserved.amount.epsilon == Fraction(3, 5)
    assert len(ledger.balances()) == rounds


def test_processes_race_for_a_budget_that_one_can_have(database: str) -> None:
    assert_one_has_it(database, rounds=1, processes=FEW)


@pytest.mark.slow
def test_thirty_two_processes_race_fifty_times(database: str, tmp_path: Path) -> None:
    """As above, fifty times, and with a head file that all of them write."""
    assert_one_has_it(database, rounds=50, processes=MANY, head=tmp_path / "ledger.head")


def test_a_ledger_that_lets_processes_in_together_loses_the_race(database: str) -> None:
    """The planted fault: no lock. All of them have read the ledger before any writes."""
    assert not one_has_it(raced(database, "budget", rounds=1, fault="no lock"))


def test_processes_that_ask_for_one_occasion_are_all_given_the_same_release(
    database: str, tmp_path: Path
) -> None:
    rounds, head = 2, tmp_path / "ledger.head"
    outcomes = raced(database, "occasion", rounds, head=head)
    assert [len(set(told)) for told in outcomes] == [1] * rounds
    ledger = Ledger(database, head)
    assert ledger.verify().problems == ()
    (balance,) = ledger.balances()
    assert [entry.release_id for entry in balance.releases] == [told[0] for told in outcomes]
    assert [entry.occasion for entry in balance.releases] == [f"month {i}" for i in range(rounds)]
