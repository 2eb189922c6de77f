"""Every mistake of mistakes.txt ends in its paragraph and its code; it costs nothing and leaves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpsynth.config import load
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.pipeline.reservation import Occasion, reservation_of
from tests.cli.here import Command, Ended

CONFIG = """\
source: {path: people.csv}
privacy: {epsilon: 1.0, delta: 1.0e-6}
ledger: {dataset: people, cap: {epsilon: 3, delta: 1.0e-5}}
columns:
  age: {type: integer, min: 0, max: 89}
  sex: {type: category, values: [F, M]}
  income: {type: number, min: 0, max: 1000, decimals: 1}
  seen: {type: date, min: 2024-01-01, max: 2026-12-31}
publish:
  statistics: [{mean: income, by: sex}]
"""
TABLE = "person,age,sex,income,seen\n" + "".join(
    f"p{i},{i % 90},{'FM'[i % 2]},{i}.5,2025-01-{1 + i % 28:02}\n" for i in range(60)
)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))
FILES: dict[str, tuple[str, bytes | None]] = {
    "a list at the top": ("config.yaml", b"- source: people.csv\n"),
    "an empty config": ("config.yaml", b""),
    "a role for nobody": ("policy.yaml", b"may_run: []\n"),
    "a picture for a config": ("config.yaml", PNG),
    "a folder for a config": ("folder", None),
    "a folder of tables": ("folder.csv", None),
    "a table of another kind": ("people.sav", b"x"),
    "an empty table": ("people.csv", b""),
    "a picture for a table": ("people.csv", PNG),
    "another separator": ("people.csv", TABLE.replace(",", ";").encode()),
    "no header": ("people.csv", TABLE.split("\n", 1)[1].encode()),
    "another encoding": ("people.csv", TABLE.replace("sex", "s\u00e9x").encode("cp1252")),
    "a column in capitals": ("people.csv", TABLE.replace("age", "Age", 1).encode()),
    "a column twice in the table": ("people.csv", TABLE.replace("person", "age", 1).encode()),
    "Excel that is none": ("people.xlsx", b"x"),
    "a compressed table that is none": ("people.csv.gz", b"x"),
    "a Parquet file that is none": ("people.parquet", TABLE.encode()),
    "a folder that is no bundle, to verify": ("empty", None),
    "a public key that is none": ("empty", None),
}
"""The file that is there besides, or in place of another, with some mistakes; None is a folder."""


@dataclass(frozen=True)
class Mistake:
    """A block of mistakes.txt.

    Attributes:
        name: what somebody did.
        config: the text of the config.
        command: what was called.
        code: the exit code.
        said: the paragraph on standard error.
    """

    name: str
    config: str
    command: tuple[str, ...]
    code: int
    said: str

    @staticmethod
    def of(block: str) -> Mistake:
        """Read a block."""
        name, *how, end = block.strip("\n").split("\n")
        config, command = CONFIG, ("run", "config.yaml", "--plain")
        for line in how:
            if line.startswith("  $ dpsynth "):
                command = tuple(line.split()[2:])
                continue
            old, new = line[2:].replace("\\n", "\n").split(" => ")
            assert old in config, name
            config = config.replace(old, new, 1)
        code, _, said = end.partition(" ")
        return Mistake(name, config, command, int(code), said)


BLOCKS = Path(__file__).with_name("mistakes.txt").read_text().split("\n\n")[2:]
MISTAKES = [Mistake.of(block) for block in BLOCKS]


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
    name, content = FILES.get(mistake.name, ("config.yaml", mistake.config.encode()))
    if content is None:
        (dpsynth.folder / name).mkdir()
    else:
        (dpsynth.folder / name).write_bytes(content)
    return dpsynth(*mistake.command)


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
    given = {"config.yaml", FILES.get(mistake.name, ("config.yaml", None))[0]}
    before = {name: size for name, size in made.files.items() if name not in given}
    rows = (made.folder / "ledger.db").read_bytes()
    ended = committed(made, mistake)
    said = paragraph_of(ended, made.folder)
    assert (ended.code, matches(said, mistake.said)) == (mistake.code, True), said
    assert {name: size for name, size in made.files.items() if name not in given} == before
    assert (made.folder / "ledger.db").read_bytes() == rows


def test_each_has_a_name_of_its_own_and_each_file_is_for_one_of_them() -> None:
    names = {mistake.name for mistake in MISTAKES}
    assert len(names) == len(MISTAKES) and FILES.keys() <= names


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
