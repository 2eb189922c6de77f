"""A folder with a small table, a config and a ledger of its own, and the command run in it."""

from __future__ import annotations

import copy
import csv
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dpsynth
from dpsynth.ledger.balance import Balance
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.result import Release

PACKAGES = Path(dpsynth.__file__).parents[1]
HEADER = ("person", "age", "sex", "income", "city", "smoker", "notes")

CONFIG: Mapping[str, object] = {
    "release": "people",
    "source": {"path": "people.csv"},
    # Tables of tests may be small for their noise; tests/release/test_pausing.py is about the pause.
    "privacy": {"epsilon": 1.0, "delta": 1e-6, "on_empty": "go"},
    "ledger": {"url": "sqlite:///ledger.db", "dataset": "people", "cap": {"epsilon": 1000, "delta": 0.01}},
    "columns": {
        "age": {"type": "integer", "min": 0, "max": 89, "bins": 9, "missing": False},
        "sex": {"type": "category", "values": ["F", "M"]},
        "income": {"type": "number", "min": 0, "max": 100, "bins": 4, "decimals": 1, "missing": False},
        "city": {"type": "category", "values": ["Aa", "Bb", "Cc"], "missing": "?"},
        "smoker": {"type": "boolean", "values": ["no", "yes"], "missing": False},
    },
    # With mst the number of questions is known beforehand.
    "structure": {"method": "mst"},
    "sample": {"seed": 7},
    "publish": {"statistics": [{"crosstab": ["sex", "city"]}, {"mean": "income", "by": "sex"}]},
}
BY_PERSON = {"unit": {"column": "person", "max_rows": 3}}

UNDER_WAY = re.compile("Step: |Loading Prefect|Waiting for |Note: This config was never checked ")
"""The lines of standard error that say what is under way, and one that nearly all first runs here say."""

Row = tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code, or minus the signal that killed it, and what it wrote.

    Attributes:
        err: standard error, without the lines that name what is under way.
        under_way: these lines.
    """

    code: int
    out: str
    err: str
    under_way: tuple[str, ...] = ()

    @staticmethod
    def of(code: int, out: str, err: str) -> Ended:
        """From all that it wrote."""
        lines = err.splitlines(keepends=True)
        under_way = tuple(line.rstrip() for line in lines if UNDER_WAY.match(line))
        return Ended(code, out, "".join(line for line in lines if not UNDER_WAY.match(line)), under_way)

    @property
    def folder(self) -> Path:
        """The bundle that the last line names."""
        assert self.code == 0, self
        return Path(self.out.splitlines()[-1])


def people(count: int, seed: int = 1) -> list[Row]:
    """Rows of which every cell is good, several a person."""
    chance = random.Random(seed)
    return [
        (
            f"p{chance.randrange(max(1, count // 3))}",
            f"{chance.randrange(90)}",
            chance.choice("FM"),
            f"{chance.random() * 100:.1f}",
            chance.choice(("Aa", "Bb", "Cc", "?")),
            chance.choice(("no", "yes")),
            f"note {i}",
        )
        for i in range(count)
    ]


def changed(config: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """A config with sections merged key by key; None removes a key."""
    merged = dict(copy.deepcopy(config))
    for key, value in changes.items():
        old = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            merged[key] = changed(old, value)
        else:
            merged[key] = value
    return merged


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a command: this much and nothing of the machine's own."""
    for name in ("home", "prefect", "tmp"):
        (home / name).mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.defpath,
        "PYTHONPATH": str(PACKAGES),
        "HOME": str(home / "home"),
        "PREFECT_HOME": str(home / "prefect"),
        "TMPDIR": str(home / "tmp"),
        **more,
    }


@dataclass(frozen=True)
class Place:
    """A working directory.

    Attributes:
        folder: where the command runs.
        home: where HOME, PREFECT_HOME and what tests note down lie.
        database: the ledger's URL, where it is not ledger.db in the folder.
        dataset: the dataset of its releases.
    """

    folder: Path
    home: Path
    database: str | None = None
    dataset: str = "people"

    def table(
        self, rows: Iterable[Sequence[str]], name: str = "people.csv", header: Sequence[str] = HEADER
    ) -> None:
        """Write the private table."""
        with (self.folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])

    def configure(self, **changes: object) -> None:
        """Write config.yaml: the usual one with some changes."""
        usual = CONFIG if self.database is None else changed(CONFIG, {"ledger": {"url": self.database}})
        (self.folder / "config.yaml").write_text(json.dumps(changed(usual, changes), indent=2))

    def command(self, *arguments: str) -> list[str]:
        """The command line of ``dpsynth run config.yaml`` with arguments."""
        return [sys.executable, "-m", "dpsynth", "run", "config.yaml", *arguments]

    def call(self, command: Sequence[str], **more: str) -> Ended:
        """Run a program here to its end."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment(self.home, **more),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )
        return Ended.of(done.returncode, done.stdout, done.stderr)

    def run(self, *arguments: str) -> Ended:
        """``dpsynth run config.yaml`` as a process."""
        return self.call(self.command(*arguments))

    @property
    def url(self) -> str:
        """The ledger's URL, from anywhere."""
        return self.database or f"sqlite:///{self.folder / 'ledger.db'}"

    @property
    def ledger(self) -> Ledger:
        """The ledger here, with its head file if the config names one."""
        head = json.loads((self.folder / "config.yaml").read_text())["ledger"].get("head")
        return Ledger(self.url, None if head is None else self.folder / head)

    @property
    def balance(self) -> Balance | None:
        """The dataset's account."""
        return self.ledger.balance(self.dataset)

    @property
    def files(self) -> set[str]:
        """Every file under outputs."""
        outputs = self.folder / "outputs"
        return {p.relative_to(outputs).as_posix() for p in outputs.rglob("*") if not p.is_dir()}


def furnished(folder: Path, database: str | None = None) -> Place:
    """A place in a folder: a good table of 300 rows and the usual config."""
    work = folder / "work"
    work.mkdir(parents=True)
    made = Place(work, folder, database)
    made.table(people(300))
    made.configure()
    return made


def release(place: Place, *, resume: str | None = None) -> Release:
    """A release through the Python interface, in this process."""
    config = json.loads((place.folder / "config.yaml").read_text())
    config["ledger"]["url"] = place.url
    (place.folder / "config.yaml").write_text(json.dumps(config))
    spec = dpsynth.load(place.folder / "config.yaml", source=str(place.folder / "people.csv"))
    return dpsynth.release(spec, outputs=place.folder / "outputs", resume=resume)
