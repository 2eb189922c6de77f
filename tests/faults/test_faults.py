"""The list of planted faults is up to date: each piece of code that it changes is there, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old) == 1
    assert fault.new != fault.old
    assert fault.tests and all((ROOT / test.split("::")[0]).is_file() for test in fault.tests)


def test_names_are_unique() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
