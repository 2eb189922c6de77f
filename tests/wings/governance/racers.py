"""Processes that all run a release under one approval at the same instant.

Started as ``python -m tests.wings.governance.racers`` by ``test_races``, as ``tests.ledger.racers`` is.
"""

import json
import sys

from dpsynth.errors import DpsynthError, NotApproved
from dpsynth.ledger.ledger import Ledger
from tests.ledger.racers import Job, raced
from tests.wings.governance.boards import wanted


def outcome(job: Job, number: int, racer: int) -> str:
    """What the ledger says to one process in one round."""
    try:
        Ledger(job["url"], job["head"]).reserve(wanted(f"r{number}-{racer}"))
    except NotApproved:
        return "refused"
    except DpsynthError as error:
        return str(error)
    return "won"


if __name__ == "__main__":
    print(json.dumps(raced(json.loads(sys.argv[1]), outcome)))
