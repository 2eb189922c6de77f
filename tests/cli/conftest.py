"""The command in this process, in a folder of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.here import Command


@pytest.fixture
def dpsynth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, in an empty folder."""
    return Command(tmp_path, monkeypatch, capsys)
