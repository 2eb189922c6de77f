"""The list of planted faults is up to date: each piece of code is there, once, and so is each quick test."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.faults.faults import FAULTS, Fault
from tests.scopes import occurrences

ROOT = Path(__file__).resolve().parents[2]


@cache
def functions_of(file: str) -> frozenset[str]:
    """The names of a file's tests, without the slow ones: faults are tried on quick ones alone."""
    whole = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (node for node in whole.body if isinstance(node, ast.FunctionDef))
    quick = (f for f in functions if "pytest.mark.slow" not in map(ast.unparse, f.decorator_list))
    return frozenset(f.name for f in quick if f.name.startswith("test_"))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    assert len(occurrences(ROOT, fault.where, fault.old)) == 1
    assert fault.new != fault.old


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_tests_of_a_fault_are_there(fault: Fault) -> None:
    assert fault.tests
    for test in fault.tests:
        file, _, function = test.partition("::")
        assert functions_of(file)
        assert not function or function.partition("[")[0] in functions_of(file)


def test_the_cases_that_faults_name_are_quick_ones(request: pytest.FixtureRequest) -> None:
    """A product that is thinned may have made one slow since."""
    named = {test for fault in FAULTS for test in fault.tests if "[" in test}
    quick = {i.nodeid for i in request.session.items if not i.get_closest_marker("slow")}
    named -= quick
    if not named:
        # All of it was collected here, as in a run of all tests.
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not slow"]
    done = subprocess.run(
        [*command, *sorted(named)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert named <= set(done.stdout.splitlines()), done.stdout[-2000:]


def test_names_are_unique() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
