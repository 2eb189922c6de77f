"""Processes that race for an approval or an answer, and processes that are killed as they ask or approve."""

import os
import select
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from dpsynth.errors import BudgetRefused, DpsynthError, NotApproved
from dpsynth.ledger import store as ledger_tables
from dpsynth.ledger.ledger import Ledger
from dpsynth.wings.governance.asking import set_policy
from tests.ledger import racers
from tests.ledger.reservations import EVENTS, cost
from tests.ledger.test_ledger_processes import forked, killed_at, lines
from tests.thinned import thinned
from tests.wings.governance.boards import (
    approved,
    asked,
    governed,
    granted,
    key,
    kinds,
    now,
    policy,
    reserved,
    state,
    wanted,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


FEW = 6
RACERS = pytest.mark.parametrize("processes", [FEW, pytest.param(32, marks=pytest.mark.slow)])


def raced(url: str, contest: str, processes: int, fault: str | None = None) -> Counter[str]:
    """What processes were told that all ran one approved release, or all answered a question."""
    job = {"url": url, "head": None, "processes": processes, "fault": fault, "contest": contest, "rounds": 1}
    (told,) = racers.raced(job, outcome)
    return Counter(told)


def outcome(job: racers.Job, number: int, racer: int) -> str:
    """The word of the ledger to one process."""
    wants = wanted(f"r{number}-{racer}")
    if job["contest"] == "questions":
        wants = replace(wants, release="people-questions", allowance=Fraction(1, 4))
    try:
        Ledger(job["url"]).reserve(wants)
    except BudgetRefused:
        return "refused"
    except DpsynthError as error:
        return str(error)
    return "won"


@RACERS
def test_of_many_processes_one_has_the_approval(database: str, processes: int) -> None:
    ledger = governed(database)
    granted(ledger)
    assert raced(database, "approval", processes) == {"won": 1, "refused": processes - 1}
    assert ledger.verify().problems == ()
    found = Counter(kinds(ledger))
    assert (found["reserved"], found["refused"]) == (1, processes - 1)


def test_a_ledger_that_lets_processes_in_together_loses_the_race(database: str) -> None:
    """The planted fault: no lock. More than one process has read the ledger before any writes."""
    granted(governed(database))
    assert raced(database, "approval", FEW, fault="no lock") != {"won": 1, "refused": FEW - 1}


@RACERS
def test_of_many_answers_at_once_two_have_the_standing_budget_for_two(database: str, processes: int) -> None:
    assert raced(database, "questions", processes) == {"won": 2, "refused": processes - 2}
    assert Ledger(database).verify().problems == ()
    (account,) = Ledger(database).balances()
    assert len(account.releases) == 2


def test_answers_that_are_let_in_together_spend_more_than_the_standing_budget(database: str) -> None:
    """The planted fault: no lock, as when the budget was looked up before the reservation."""
    granted(governed(database), release="others")
    assert raced(database, "questions", FEW, fault="no lock") != {"won": 2, "refused": FEW - 2}


def ask_once(ledger: Ledger) -> None:
    asked(ledger)


def approve_second(ledger: Ledger) -> None:
    (request,) = state(ledger).requests.values()
    if state(ledger).lacking(request):
        approved(ledger, request, "clara")


def run_approved(ledger: Ledger) -> None:
    reserved(ledger, "r1")


def ask_for_a_policy(ledger: Ledger) -> None:
    # The second time it is refused, as long as nobody approved it.
    with suppress(NotApproved):
        set_policy(ledger, policy(approvals=1), key("anna"), "few", now())


CHANGES: dict[str, tuple[int, Callable[[Ledger], None]]] = {
    "ask": (0, ask_once),
    "approve": (1, approve_second),
    "run": (2, run_approved),
    "ask for a policy": (0, ask_for_a_policy),
}
"""What is killed, and how many approvals there are before."""


@pytest.mark.parametrize(
    ("database", "place", "change"),
    thinned(
        ["sqlite", "postgresql"],
        ["before the row", "after the row", "before the commit", "after the commit"],
        CHANGES,
        strength=1,
    ),
    indirect=["database"],
)
def test_a_process_killed_at_a_change_has_made_it_whole_or_not_at_all(
    database: str, tmp_path: Path, place: str, change: str
) -> None:
    approvals, use = CHANGES[change]
    set_policy(Ledger(database, tmp_path / "head"), policy(), key("boris"), "agreed", now())
    ledger = Ledger(database, tmp_path / "head")
    if approvals:
        approved(ledger, asked(ledger), *("boris", "clara")[:approvals])
    before = ledger.rows()

    killed_at(ledger, place, use)
    after = Ledger(database, tmp_path / "head")
    made = place == "after the commit"
    assert after.rows()[: len(before)] == before and (len(after.rows()) > len(before)) == made
    assert after.verify().problems == ()
    # Whoever comes next makes it, or finds it made.
    use(after)
    assert after.verify().problems == ()
    if change == "run":
        with pytest.raises(NotApproved):
            reserved(after, "r2")


def governing(url: str, head: Path, begun: int) -> Callable[[Callable[[str], None]], None]:
    """Ask, approve and run one release after another, telling of each when the ledger has answered."""

    def run(tell: Callable[[str], None]) -> None:
        ledger = Ledger(url, head)
        for number in range(begun, begun + 10_000):
            name = f"r{number}"
            request = asked(ledger, epsilon="0.0001", release=name)
            tell(f"requested {request.id}")
            approved(ledger, request, "boris", "clara")
            tell(f"approved {request.id}")
            reserved(ledger, name, epsilon="0.0001", release=name)
            tell(f"reserved {name}")
            ledger.settle(name, cost("0.00005"), EVENTS, "run")

    return run


def kill_at_random(url: str, head: Path, kills: int, seed: int) -> None:
    """Kill such a process again and again: what it told is there, and each release has its own approval."""
    chance, begun = Random(seed), 0
    set_policy(Ledger(url, head), policy(), key("boris"), "agreed", now())
    for _ in range(kills):
        with forked(governing(url, head, begun)) as (child, reader):
            select.select([reader], [], [], 30)
            time.sleep(chance.random() * 0.2)
            os.kill(child, signal.SIGKILL)
            told = [line.split() for line in lines(reader)]
        ledger = Ledger(url, head)
        assert ledger.verify().problems == ()
        found = state(ledger)
        for what, name in told:
            if what == "reserved":
                assert ledger.state(name) is not None
            else:
                assert what == "requested" or not found.lacking(found.requests[name])
        used = [name for request in found.requests.values() for name in request.releases]
        assert len(used) == len({*used}) == sum(len(b.releases) for b in ledger.balances())
        assert all(len(request.releases) <= 1 for request in found.requests.values())
        begun = 1 + max(
            (int(name[1:]) for _, name in told if name.startswith("r") and name[1:].isdigit()), default=begun
        )


def test_no_kill_makes_a_release_of_nothing_or_two_of_one_approval(database: str, tmp_path: Path) -> None:
    kill_at_random(database, tmp_path / "head", kills=5, seed=1)


@pytest.mark.slow
def test_no_kill_of_two_hundred_does(database: str, tmp_path: Path) -> None:
    kill_at_random(database, tmp_path / "head", kills=200, seed=2)


def test_a_refusal_that_can_not_be_entered_stays_a_refusal(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or a database that went away, lets nothing through."""
    ledger = governed(database)

    def full(*_: object) -> None:
        raise ledger_tables.SQLAlchemyError("database or disk is full")

    monkeypatch.setattr(ledger_tables, "append", full)
    with pytest.raises(DpsynthError) as refused:
        reserved(ledger)
    assert refused.value.exit_code == 3
    monkeypatch.undo()
    assert kinds(ledger) == ["policy"]
