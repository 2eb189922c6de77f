"""The files that are changed, and the tests that may kill a mutant.

Left out are protocols without code, and of the ledger what only draws and lays out.
"""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]

_ROOMS = {
    "accounting": "dpsynth/accounting/*.py",
    "curator": "dpsynth/curator/*.py",
    "cluster": "dpsynth/wings/cluster/*.py",
    "columns": "dpsynth/columns/surrogates.py",
    "ledger": "dpsynth/ledger/*.py",
}
_LEFT_OUT = {"__init__.py", "engine.py", "chart.py", "page.py", "terminal.py"}

FILES = {
    room: tuple(
        str(path.relative_to(_ROOT)) for path in sorted(_ROOT.glob(files)) if path.name not in _LEFT_OUT
    )
    for room, files in _ROOMS.items()
}

TESTS = {
    "accounting": ("tests/accounting", "tests/curator/test_unit_codes.py"),
    "cluster": ("tests/wings/cluster",),
    "columns": ("tests/columns/test_person_ids.py",),
    "curator": ("tests/curator", "tests/guarantee"),
    "ledger": ("tests/ledger",),
}
"""What is measured of each room's tests. Others are named on the command line."""
