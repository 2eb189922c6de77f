"""Processes that all run a release under one approval at the same instant.

Started as ``python -m tests.wings.governance.racers`` by ``test_races``, as ``tests.ledger.racers`` is: they
wait for each other before they ask, and again between their reading of the ledger and their first row.
"""

import json
import multiprocessing
import sys
from multiprocessing.synchronize import Barrier
from typing import Any

from dpsynth.errors import DpsynthError, NotApproved
from dpsynth.ledger import store as ledger_store
from dpsynth.ledger.ledger import Ledger
from tests.ledger.racers import PATIENCE, Job, writing_after
from tests.wings.governance.boards import wanted


def outcome(job: Job, racer: int) -> str:
    """What the ledger says to one process."""
    try:
        Ledger(job["url"], job["head"]).reserve(wanted(f"r{racer}"))
    except NotApproved:
        return "refused"
    except DpsynthError as error:
        return str(error)
    return "won"


def race(job: Job, racer: int, together: Barrier, all_read: Barrier, told: Any) -> None:
    """One process."""
    together.wait(timeout=120)
    with writing_after(all_read, PATIENCE[job["fault"]]):
        told.put(outcome(job, racer))


def main() -> None:
    """Run the job and print the outcomes."""
    job: Job = json.loads(sys.argv[1])
    if job["fault"] == "no lock":
        for kind in ledger_store._ALONE:
            ledger_store._ALONE[kind] = "SELECT 1"
    forks = multiprocessing.get_context("fork")
    together, all_read, told = (
        forks.Barrier(job["processes"]),
        forks.Barrier(job["processes"]),
        forks.SimpleQueue(),
    )
    racers = [
        forks.Process(target=race, args=(job, i, together, all_read, told)) for i in range(job["processes"])
    ]
    for racer in racers:
        racer.start()
    outcomes = [told.get() for _ in racers]
    for racer in racers:
        racer.join()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
