"""One fault after another, planted in a copy of the product, and whether the tests notice.

    python -m tests.faults [--only PART] [--list]

First the tests of all faults are run on the copy as it is: all must pass. Then each fault by itself is
planted and its own tests are run, up to the first that fails, which the table names. The exit code is 1 if a
fault is not noticed, if its piece of code does not occur exactly once, or if a test fails without a fault.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.faults.faults import FAULTS, Fault
from tests.scopes import occurrences

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("dpsynth", "flows", "tests", "configs", "schemas", "docs")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_LONGEST = 900.0
"""Seconds that one run of pytest may take; one that takes longer proves nothing."""


def copy_into(root: Path) -> None:
    """Copy what the tests need; its modules are compiled so that a file that changes is read again."""
    for name in _COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, root)
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    subprocess.run([*command, "dpsynth", "flows"], cwd=root, check=True)


def tested(root: Path, tests: Sequence[str]) -> tuple[int, str]:
    """The exit code of pytest in a copy, and what it printed."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", "--hypothesis-profile=unshrunk"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(root)}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return 2, f"no end after {_LONGEST:g} s"
    return done.returncode, done.stdout + done.stderr


def caught_by(root: Path, fault: Fault) -> str | None:
    """The test that notices a fault; None where none does."""
    found = occurrences(root, fault.where, fault.old)
    if len(found) != 1:
        return None
    [(path, start)] = found
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole[:start] + fault.new + whole[start + len(fault.old) :], encoding="utf-8")
    try:
        code, printed = tested(root, fault.tests)
    finally:
        path.write_text(whole, encoding="utf-8")
    failed = _FAILED.search(printed)
    # Any other code says that pytest itself could not do its work, and proves nothing.
    return failed[1] if code == 1 and failed is not None else None


def main() -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="faults with this in their name, or in that of a test")
    parser.add_argument("--list", action="store_true", help="print names and what each breaks")
    args = parser.parse_args()
    faults = [fault for fault in FAULTS if any(args.only in name for name in (fault.name, *fault.tests))]
    if not faults:
        parser.error(f"no fault, and no test of one, has {args.only!r} in its name")
    if args.list:
        for fault in faults:
            print(f"{fault.name}: {fault.breaks}")
        return 0
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_into(root)
        began = time.perf_counter()
        code, printed = tested(root, sorted({test for fault in faults for test in fault.tests}))
        print(
            f"without a fault: {'all pass' if code == 0 else 'FAILS'} ({time.perf_counter() - began:.0f} s)"
        )
        if code:
            print(printed)
            return 1
        print(f"{'fault':48} {'seconds':>7}  caught by", flush=True)
        for fault in faults:
            began = time.perf_counter()
            found = caught_by(root, fault)
            if found is None:
                missed.append(fault.name)
            print(f"{fault.name:48} {time.perf_counter() - began:7.1f}  {found or 'NOT CAUGHT'}", flush=True)
    print(f"{len(faults) - len(missed)} of {len(faults)} faults caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
