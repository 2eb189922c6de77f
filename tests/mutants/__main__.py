"""Mutation testing: small changes of the product, each tried against the quick tests that pass through it.

    python -m tests.mutants [ROOM | FILE ...] [--tests PATH ...] [--most SECONDS] [--again | --new] [--list]

Without files, all that ``config/files.py`` names. Outcomes are kept in ``.mutants/``, and a rerun tries only
mutants that are new, survived, or whose function has changed. The exit code is 1 if a mutant survives that
``survivors.txt`` doesn't explain.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest

from tests.mutants.files import FILES, TESTS
from tests.mutants.mutations import Module, Mutant
from tests.mutants.session import ROOT, Covered, Outcome, Session
from tests.mutants.survivors import reason_of


def main() -> int:
    """Try mutants, print those that survive and a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="rooms, or source files from the root of the project")
    parser.add_argument("--tests", nargs="*", help="test files and folders; by default those of the room")
    parser.add_argument("--most", type=float, default=8.0, help="seconds of tests for one mutant")
    parser.add_argument("--again", action="store_true", help="try again what was killed")
    parser.add_argument("--new", action="store_true", help="try only what was never tried")
    parser.add_argument("--list", action="store_true", help="print what is known, and try nothing")
    args = parser.parse_args()
    os.chdir(ROOT)
    folder = ROOT / ".mutants"
    folder.mkdir(exist_ok=True)
    files = [file for named in args.files or FILES for file in FILES.get(named, (named,))]
    for room in FILES:
        of_room = [file for file in files if file in FILES[room]]
        if of_room and not args.list:
            tried_already = () if args.again else ("killed", "survived") if args.new else ("killed",)
            command = [args.tests or TESTS[room], args.most, tried_already]
            tried = multiprocessing.get_context("fork").Process(target=_try, args=(room, of_room, *command))
            tried.start()
            tried.join()
            if tried.exitcode:
                return 2
    return _print([Module(ROOT / file, file) for file in files], _read(folder))


def _try(room: str, files: list[str], tests: Sequence[str], most: float, over: Sequence[str]) -> None:
    """Try the mutants of files of a room, in a process that has imported nothing yet."""
    folder = ROOT / ".mutants"
    known = _read(folder)

    def wanted(mutant: Mutant) -> bool:
        return known.get(mutant.key, Outcome("new", "", 0.0)).status not in over

    def keep(mutant: Mutant, outcome: Outcome) -> None:
        with (folder / f"{room}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": mutant.key, "line": mutant.first, **vars(outcome)}) + "\n")

    covered = Covered(folder / f"{room}.json", FILES[room])
    session = Session([Module(ROOT / file, file) for file in files], covered, wanted, keep, most)
    with tempfile.TemporaryDirectory() as temporary:
        options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", f"--basetemp={temporary}/t"]
        code = pytest.main([*options, "--hypothesis-profile=unshrunk", *tests], plugins=[session])
    sys.exit(code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))


def _read(folder: Path) -> dict[str, Outcome]:
    known = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            known[row["key"]] = Outcome(row["status"], row["by"], row["seconds"])
    return known


def _print(modules: list[Module], known: dict[str, Outcome]) -> int:
    unexplained = 0
    table = []
    for module in modules:
        counted: Counter[str] = Counter()
        seconds = 0.0
        for mutant in module.mutants:
            outcome = known.get(mutant.key)
            status = outcome.status if outcome else "new"
            seconds += outcome.seconds if outcome else 0.0
            if outcome and status != "killed":
                reason = reason_of(mutant)
                status = "explained" if reason else status
                unexplained += reason is None
                where = f"{mutant.file}:{mutant.first} {mutant.function}"
                print(
                    f"{where}: {mutant.change} #{mutant.nth}: {reason or outcome.status + ', ' + outcome.by}"
                )
            counted[status] += 1
        table.append((module.file, counted, seconds))
    print(f"{'file':44} {'mutants':>7} {'killed':>6} {'explained':>9} {'survived':>8} {'seconds':>7}")
    for file, counted, seconds in table:
        left = counted["survived"] + counted["untried"] + counted["new"]
        total = counted.total()
        print(f"{file:44} {total:7} {counted['killed']:6} {counted['explained']:9} {left:8} {seconds:7.0f}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
