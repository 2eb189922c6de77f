"""Processes that all ask one ledger at the same instant, as often as wanted.

They are forked from this process, and wait for each other twice in every round: before they ask, and again
between their reading of the ledger and their first row. A ledger that lets them in together is so read by all
before any writes, and the race is lost however the processes are scheduled. Where it lets them in one by one,
the first waits in vain, and goes on alone.
"""

import gc
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError
from typing import Any
from unittest import mock

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import planned
from dpsynth.accounting.measures import PURE
from dpsynth.errors import BudgetRefused, DpsynthError
from dpsynth.ledger import store as ledger_store
from dpsynth.ledger.balance import Reservation
from dpsynth.ledger.ledger import Ledger, Reading
from tests.ledger.test_ledger_processes import lines

Job = dict[str, Any]
Outcome = Callable[[Job, int, int], str]
"""From a job, a round and a racer to what the ledger says to it."""

PATIENCE = {None: 0.3, "no lock": 60.0}
"""Seconds that a process waits, with the ledger read, for the others to have read it, by fault."""


def asked(name: str, dataset: str, occasion: str | None, epsilon: Fraction = Fraction(3, 5)) -> Reservation:
    """Three fifths of a budget, so that there is room for one, or another part of it."""
    amount = Amount(epsilon)
    return Reservation(
        release_id=name,
        dataset=dataset,
        unit="one row",
        neighbours="add_remove",
        cap=Amount(Fraction(1)),
        filter=None,
        suits=PURE,
        cost=planned(PURE, "laplace", epsilon, amount),
        release="people",
        spec="as always",
        occasion=occasion,
        part=None,
        parallel=False,
    )


def outcome(job: Job, number: int, racer: int) -> str:
    """The word of the ledger to one process in one round."""
    alone = job["contest"] == "budget"
    occasion = None if alone else f"month {number}"
    dataset = f"table {number}" if alone else "people"
    epsilon = Fraction(3, 5) if alone else Fraction(1, 100)
    try:
        entry = Ledger(job["url"], job["head"]).reserve(
            asked(f"{number}-{racer}", dataset, occasion, epsilon)
        )
    except BudgetRefused:
        return "refused"
    except DpsynthError as error:
        return str(error)
    return "won" if alone else entry.release_id


@contextmanager
def writing_after(all_read: Barrier, patience: float) -> Iterator[None]:
    """The first row of a block is added once all processes have read the ledger, or nobody else can."""
    add, waited = Reading.add, False

    def patient(page: Reading, *row: Any) -> None:
        nonlocal waited
        if not waited:
            waited = True
            with suppress(BrokenBarrierError):
                all_read.wait(patience)
        add(page, *row)

    with mock.patch.object(Reading, "add", patient):
        yield


def race(
    outcome: Outcome, job: Job, racer: int, together: Barrier, all_read: Sequence[Barrier], told: int
) -> None:
    """One process: all rounds, of each of which it tells a line."""
    # What is not its own it doesn't look through.
    gc.disable()
    if job["fault"] == "no lock":
        ledger_store._ALONE.update(dict.fromkeys(ledger_store._ALONE, "SELECT 1"))
    for number in range(job["rounds"]):
        together.wait(timeout=120)
        with writing_after(all_read[number], PATIENCE[job["fault"]]):
            os.write(told, json.dumps([number, outcome(job, number, racer)]).encode() + b"\n")


def raced(job: Job, outcome: Outcome = outcome) -> list[list[str]]:
    """The outcomes of each round of a job, in the order in which they were told."""
    forks, processes = multiprocessing.get_context("fork"), job["processes"]
    together, *all_read = (forks.Barrier(processes) for _ in range(1 + job["rounds"]))
    reader, told = os.pipe()
    racers = [
        forks.Process(target=race, args=(outcome, job, racer, together, all_read, told))
        for racer in range(processes)
    ]
    for racer in racers:
        racer.start()
    os.close(told)
    outcomes: list[list[str]] = [[] for _ in range(job["rounds"])]
    for number, what in map(json.loads, lines(reader)):
        outcomes[number].append(what)
    os.close(reader)
    for racer in racers:
        racer.join()
    return outcomes
