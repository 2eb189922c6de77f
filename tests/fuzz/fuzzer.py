"""Makes many attempts in a process of its own, which a fault may kill.

Started as ``python -m tests.fuzz.fuzzer FOLDER FIRST COUNTS``. COUNTS is JSON: how many inputs of each kind
there are, by what is done with them. Prints how many were accepted and refused, and the most memory it had,
as JSON. The attempt under way stands in ``FOLDER/now``.
"""

import json
import os
import resource
import sys
from collections import Counter
from pathlib import Path

from tests.fuzz.attempts import FUZZ, narrow, peak_megabytes

_MEMORY = 6 << 30
"""Bytes of address space: what asks for more fails, and does not take the machine with it."""


def main(folder: Path, first: int, counts: dict[str, int]) -> None:
    """Attempt so many inputs of each kind, from number ``first``."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    narrow()
    os.chdir(folder)
    now = os.open(folder / "now", os.O_CREAT | os.O_WRONLY)
    found: dict[str, dict[str, Counter[str]]] = {}
    for what, count in counts.items():
        found[what] = {kind: Counter() for kind in FUZZ[what].kinds}
        for kind, outcomes in found[what].items():
            for number in range(first, first + count):
                os.pwrite(now, f"{what}: {kind} {number:<40}\n".encode(), 0)
                outcomes[FUZZ[what](kind, number, folder)] += 1
    print(json.dumps({"outcomes": found, "megabytes": peak_megabytes()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
