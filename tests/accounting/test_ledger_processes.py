"""The ledger's promises across processes: races, and death between two steps."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsynth.accounting import balance as balance_module
from dpsynth.accounting import ledger as ledger_module
from dpsynth.accounting import ledger_store
from dpsynth.accounting.ledger import Ledger, Reservation
from dpsynth.errors import BudgetRefused

REPOSITORY = Path(__file__).parents[2]

RACER = """
import sys
from fractions import Fraction
from dpsynth.accounting.ledger import Ledger, Reservation
from dpsynth.errors import BudgetRefused
url, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for i in range(rounds):
    ask = Reservation(f"{i}-{name}", f"table {i}", "one row", "add_remove", Fraction(1), Fraction(0),
                      Fraction(3, 5), Fraction(0))
    try:
        Ledger(url).reserve(ask)
        print("won", i, flush=True)
    except BudgetRefused:
        print("refused", i, flush=True)
"""

MORTAL = """
import sys, time
from fractions import Fraction
from dpsynth.accounting.ledger import Ledger, Reservation
ledger = Ledger(sys.argv[1])
ledger.reserve(Reservation("r1", "people", "one row", "add_remove", Fraction(1), Fraction(0), Fraction(1, 2),
                           Fraction(0)))
print("reserved", flush=True)
time.sleep(60)
ledger.settle("r1", Fraction(0), Fraction(0), [])
"""

MIDWAY = """
import os, signal, sys
from fractions import Fraction
from dpsynth.accounting import ledger_tables
from dpsynth.accounting.ledger import Ledger, Reservation
write = ledger_tables.add_reservation
def write_and_die(connection, entry):
    write(connection, entry)
    os.kill(os.getpid(), signal.SIGKILL)
ledger_tables.add_reservation = write_and_die
Ledger(sys.argv[1]).reserve(Reservation("r1", "people", "one row", "add_remove", Fraction(1), Fraction(0),
                                        Fraction(1, 2), Fraction(0)))
"""


def half(release_id: str, epsilon: Fraction = Fraction(1, 2)) -> Reservation:
    """Half a budget of 1, of which a tenth is gone where two halves must not fit."""
    return Reservation(
        release_id, "people", "one row", "add_remove", Fraction(1), Fraction(0), epsilon, Fraction(0)
    )


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )


def test_sixteen_processes_race_for_a_budget_that_one_can_have(tmp_path: Path) -> None:
    url, rounds = f"sqlite:///{tmp_path}/ledger.db", 3
    racers = [start(RACER, url, str(i), str(rounds)) for i in range(16)]
    for racer in racers:
        assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [line for racer in racers for line in racer.communicate(timeout=120)[0].splitlines()]
    assert [racer.returncode for racer in racers] == [0] * 16
    for i in range(rounds):
        assert (said.count(f"won {i}"), said.count(f"refused {i}")) == (1, 15)
        balance = Ledger(url).balance(f"table {i}")
        assert balance is not None and balance.reserved.epsilon == Fraction(3, 5)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_process_killed_before_settling_leaves_its_reservation_standing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    process = start(MORTAL, url)
    assert process.stdout is not None and process.stdout.readline() == "reserved\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    ledger = Ledger(url)
    balance = ledger.balance("people")
    assert ledger.state("r1") == "reserved"
    assert balance is not None and balance.left.epsilon == Fraction(1, 2)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_process_killed_within_its_reservation_leaves_a_usable_ledger(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    process = start(MIDWAY, url)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert Ledger(url).state("r1") is None
    ledger = Ledger(url)
    ledger.reserve(half("r2"))
    assert ledger.balance("people") is not None


@pytest.mark.parametrize(
    ("begin", "winners"), [("BEGIN IMMEDIATE", 1), pytest.param("SELECT 1", 2, id="planted fault: no lock")]
)
def test_nothing_comes_between_the_check_and_the_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str, winners: int
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    Ledger(url).reserve(half("r0", Fraction(1, 10)))
    meeting = threading.Barrier(2, timeout=1.0)

    def check_and_wait(*arguments: Any) -> None:
        balance_module.check_allowed(*arguments)
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait()

    def compete(release_id: str) -> bool:
        try:
            Ledger(url).reserve(half(release_id))
        except BudgetRefused:
            return False
        return True

    monkeypatch.setitem(ledger_store._ALONE, "sqlite", begin)
    monkeypatch.setattr(ledger_module, "check_allowed", check_and_wait)
    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(compete, ["r1", "r2"])) == winners
