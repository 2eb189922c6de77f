"""The import contracts hold, and catch what they are there to catch."""

from __future__ import annotations

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
    )


@pytest.mark.parametrize(
    ("file", "planted", "broken"),
    [
        ("structure/planted.py", "import dpsynth.curator.journal", "no other room reaches"),
        (
            "publish/planted.py",
            "def late():\n    from dpsynth.curator import door",
            "no other room reaches",
        ),
        ("planted.py", "import dpsynth.curator", "only the pipeline opens the door"),
        ("starter/planted.py", "import dpsynth.curator.source", "no other room reaches"),
        ("lifecycle/forecast.py", "import dpsynth.assess.profiling", "by commands for its owner alone"),
        ("pipeline.py", "import dpsynth.curator.profiling", "handed to its owner alone"),
        ("domain/planted.py", "import dpsynth.model", "Imports run down"),
        ("curator/planted.py", "import prefect", "A release runs without Prefect"),
    ],
)
def test_an_import_that_breaks_a_law_is_caught(tmp_path: Path, file: str, planted: str, broken: str) -> None:
    for part in ("dpsynth", "flows"):
        shutil.copytree(REPOSITORY / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    (tmp_path / "dpsynth" / file).write_text(planted + "\n")
    result = lint(tmp_path)
    assert result.returncode == 1
    assert any(broken in line and line.endswith("BROKEN") for line in result.stdout.splitlines()), (
        result.stdout + result.stderr
    )
