"""The import contracts hold, and catch what they are there to catch."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (REPOSITORY / "pyproject.toml").is_file(), reason="the contracts stand in a checkout's pyproject.toml"
)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        # A long name stays on its line.
        env={**os.environ, "COLUMNS": "400"},
    )


PLANTED = {
    "strategy/planted.py": ("import dpsynth.curator.journal", "no other room reaches"),
    "bundle/planted.py": ("def late():\n    from dpsynth.curator import door", "no other room reaches"),
    "planted.py": ("import dpsynth.curator", "only the pipeline opens the door"),
    "wings/owner/starter/planted.py": ("import dpsynth.curator.rows.files", "no other room reaches"),
    "pipeline/forecast.py": ("import dpsynth.wings.owner.assess.profiling", "The core works without wings"),
    "pipeline/spine.py": ("import dpsynth.wings.owner.assess.column_guesses", "handed to its owner alone"),
    "wings/proof/planted.py": ("import dpsynth.wings.local.contract", "A wing needs no other wing"),
    "columns/planted.py": ("import dpsynth.model", "Imports run down"),
    "curator/planted.py": ("import prefect", "A release runs without Prefect"),
}
"""Imports that break a law, and a part of its name, by file."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each law that is broken where all are, by its name."""
    folder = tmp_path_factory.mktemp("broken")
    for part in ("dpsynth", "flows"):
        shutil.copytree(REPOSITORY / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    for file, (planted, _) in PLANTED.items():
        (folder / "dpsynth" / file).write_text(planted + "\n")
    result = lint(folder)
    assert result.returncode == 1, result.stderr
    _, _, told = result.stdout.partition("\nBroken contracts\n")
    names = re.findall(r"^(.*) BROKEN(?: \(.*\))?$", result.stdout, flags=re.MULTILINE)
    parts = re.split("^(" + "|".join(map(re.escape, names)) + ")$", told, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("file", PLANTED)
def test_an_import_that_breaks_a_law_is_caught(broken: dict[str, str], file: str) -> None:
    module = f"dpsynth.{file.removesuffix('.py').replace('/', '.')}"
    (law,) = (name for name in broken if PLANTED[file][1] in name)
    assert f"{module} -> " in broken[law], broken
