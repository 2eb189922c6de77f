"""The files that are changed, and the tests that may kill a mutant.

Left out are protocols without code, and what only lays out.
"""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]

_ROOMS = {
    "accountants": "dpsynth/wings/proof/accountants/*.py",
    "accounting": "dpsynth/accounting/*.py",
    "curator": "dpsynth/curator/**/*.py",
    "cluster": "dpsynth/wings/cluster/*.py",
    "columns": "dpsynth/columns/identifier.py",
    "ledger": "dpsynth/ledger/*.py",
    "local": "dpsynth/wings/local/shuffling.py",
    "proof": "dpsynth/wings/proof/loss_pairs.py",
}
_LEFT_OUT = {"__init__.py", "of_a_plan.py"}

FILES = {
    room: tuple(
        str(path.relative_to(_ROOT)) for path in sorted(_ROOT.glob(files)) if path.name not in _LEFT_OUT
    )
    for room, files in _ROOMS.items()
}

TESTS = {
    "accountants": ("tests/wings/proof/accountants", "tests/accounting"),
    "accounting": ("tests/accounting", "tests/curator/test_unit_codes.py"),
    "cluster": ("tests/wings/cluster",),
    "columns": ("tests/columns/test_person_ids.py",),
    "curator": ("tests/curator", "tests/guarantee"),
    "ledger": ("tests/ledger",),
    "local": ("tests/wings/local/test_shuffling.py",),
    "proof": ("tests/wings/proof/test_loss_pairs.py", "tests/accounting/test_guesses.py"),
}
"""What is measured of each room's tests. Others are named on the command line."""
