"""Every mistake of ``mistakes`` ends in its paragraph and its code; it costs nothing and leaves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpsynth.config import load
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.plan.occasion import Occasion
from dpsynth.plan.reservation import reservation_of
from tests.cli.here import Command, Ended
from tests.cli.mistakes import CONFIG, MISTAKES, TABLE, Mistake


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the table and the config, and a ledger in which a release of them is reserved."""
    folder = tmp_path_factory.mktemp("spent")
    furnish(folder)
    spec = load(folder / "config.yaml", source=str(folder / "people.csv"))
    inputs = inputs_of(spec)
    wanted = reservation_of(inputs.compiled, inputs.plan, Occasion(None, None), "20260101-00000000")
    Ledger(f"sqlite:///{folder / 'ledger.db'}").reserve(replace(wanted, release="another"))
    return folder


def furnish(folder: Path) -> None:
    """Write the table and the config."""
    (folder / "people.csv").write_text(TABLE)
    (folder / "config.yaml").write_text(CONFIG)


@pytest.fixture
def made(
    spent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """The command in that folder, which is as before afterwards."""
    before = {path.name for path in spent.iterdir()}
    yield Command(spent, monkeypatch, capsys)
    for path in spent.iterdir():
        if path.name not in before:
            path.rmdir() if path.is_dir() else path.unlink()
    furnish(spent)


def committed(dpsynth: Command, mistake: Mistake) -> Ended:
    """How the command ends after a mistake."""
    (dpsynth.folder / "config.yaml").write_text(mistake.config, encoding="utf-8")
    for name, content in mistake.files.items():
        if content is None:
            (dpsynth.folder / name).mkdir()
        else:
            (dpsynth.folder / name).write_bytes(content)
    return dpsynth(*(mistake.command or ("run", "config.yaml", "--plain")), *mistake.options)


def paragraph_of(ended: Ended, folder: Path) -> str:
    """What is said after "Error: ", on a line of its own and below nothing but names of steps."""
    lines = [line for line in ended.err.splitlines() if not line.startswith("Step: ")]
    assert len(lines) == 1 and ended.err.endswith("\n") and ended.out == "", ended
    assert lines[0].startswith("Error: ") and "Traceback" not in ended.err, ended
    return lines[0].removeprefix("Error: ").replace(str(folder), "HERE")


def matches(said: str, expected: str) -> bool:
    """True if a paragraph is the expected one."""
    pattern = re.escape(expected.replace("TODAY", f"{datetime.now(UTC).date()}"))
    pattern = pattern.replace("ID:", r"\d{8}-[0-9a-f]{8}:").replace("ANY", ".*")
    return re.fullmatch(pattern, said) is not None


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_one_paragraph_that_costs_nothing(made: Command, mistake: Mistake) -> None:
    given = {"config.yaml", *mistake.files}
    before = {name: size for name, size in made.files.items() if name not in given}
    rows = (made.folder / "ledger.db").read_bytes()
    ended = committed(made, mistake)
    said = paragraph_of(ended, made.folder)
    assert (ended.code, matches(said, mistake.said)) == (mistake.code, True), said
    assert {name: size for name, size in made.files.items() if name not in given} == before
    assert (made.folder / "ledger.db").read_bytes() == rows


def test_there_are_at_least_sixty_and_each_has_a_name() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 60


def test_a_paragraph_that_says_less_would_be_seen(made: Command) -> None:
    """The planted fault: a remedy that is missing."""
    first = MISTAKES[0]
    said = paragraph_of(committed(made, first), made.folder)
    assert matches(said, first.said) and not matches(
        said.replace(" (did you mean 'epsilon'?)", ""), first.said
    )


def test_a_config_without_a_mistake_has_a_plan(made: Command) -> None:
    ended = made("plan", "config.yaml")
    assert (ended.code, ended.err) == (0, "")
