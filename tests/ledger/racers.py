"""Processes that all ask one ledger at the same instant, as often as wanted.

Started as ``python -m tests.ledger.racers`` by ``test_ledger_races``: a job as its argument, the
outcomes on stdout. They are forked from one process that has imported everything, and wait for each other
before every round.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from fractions import Fraction
from multiprocessing.synchronize import Barrier
from typing import Any

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.cost import planned
from dpsynth.accounting.measures import PURE
from dpsynth.errors import BudgetRefused, DpsynthError
from dpsynth.ledger import store as ledger_store
from dpsynth.ledger.balance import Reservation
from dpsynth.ledger.ledger import Ledger

Job = dict[str, Any]


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
    """What the ledger says to one process in one round."""
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


def race(job: Job, racer: int, together: Barrier, told: Any) -> None:
    """One process: all rounds."""
    for number in range(job["rounds"]):
        together.wait(timeout=120)
        told.put((number, outcome(job, number, racer)))


def main() -> None:
    """Run the job and print the outcomes of each round."""
    job: Job = json.loads(sys.argv[1])
    if job["fault"] == "no lock":
        for kind in ledger_store._ALONE:
            ledger_store._ALONE[kind] = "SELECT 1"
    forks = multiprocessing.get_context("fork")
    together, told = forks.Barrier(job["processes"]), forks.SimpleQueue()
    racers = [forks.Process(target=race, args=(job, i, together, told)) for i in range(job["processes"])]
    for racer in racers:
        racer.start()
    outcomes: list[list[str]] = [[] for _ in range(job["rounds"])]
    for _ in range(job["rounds"] * len(racers)):
        number, what = told.get()
        outcomes[number].append(what)
    for racer in racers:
        racer.join()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
