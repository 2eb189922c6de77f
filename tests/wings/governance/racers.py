"""Processes that all run a release under one approval, or answer questions, at the same instant.

Started as ``python -m tests.wings.governance.racers`` by ``test_races``, as ``tests.ledger.racers`` is.
"""

import json
import sys
from dataclasses import replace
from fractions import Fraction

from dpsynth.errors import BudgetRefused, DpsynthError
from dpsynth.ledger.ledger import Ledger
from tests.ledger.racers import Job, raced
from tests.wings.governance.boards import wanted


def outcome(job: Job, number: int, racer: int) -> str:
    """The word of the ledger to one process in one round."""
    asked = wanted(f"r{number}-{racer}")
    if job["contest"] == "questions":
        asked = replace(asked, release="people-questions", allowance=Fraction(1, 4))
    try:
        Ledger(job["url"], job["head"]).reserve(asked)
    except BudgetRefused:
        return "refused"
    except DpsynthError as error:
        return str(error)
    return "won"


if __name__ == "__main__":
    print(json.dumps(raced(json.loads(sys.argv[1]), outcome)))
