"""One malformed input, read, started from, planned or released; and what may come of it.

An attempt ends in "accepted" or in "refused": one plain paragraph that quotes no cell. Anything else
(another exception, a charge for a table that was refused, too long a time) is a fault.
"""

import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import dpsynth
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.config import compiled, from_mapping
from dpsynth.config.files import FileForm
from dpsynth.curator import read_batches
from dpsynth.curator.rows import csv_lines
from dpsynth.curator.rows import files as source
from dpsynth.errors import ConfigError, DpsynthError, SourceError, StepFailed
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.forecast import forecast
from dpsynth.testing import load_table
from dpsynth.wings.owner.assess.profiling import look_at
from dpsynth.wings.owner.starter import draft_of, guessed, starter_text
from tests.fuzz import csvs, parquets, tables, yamls

Make = Callable[[random.Random], bytes]
Kind = Literal["csv", "parquet"]
SECONDS = 10.0
"""Of processor time, that one input may take."""


def narrow() -> None:
    """Read in blocks and batches so small that the inputs have many."""
    csv_lines.BLOCK, csv_lines.LONGEST_LINE = 1 << 14, 1 << 21
    source._BATCH_ROWS = 16


def read(path: Path, kind: Kind, chance: random.Random) -> None:
    """Code a table by person or by row."""
    by_person = chance.random() < 0.5
    spec = tables.spec(by_person, kind)
    near = Neighbours("add_remove", "person", 3) if by_person else Neighbours("add_remove")
    names = [*(c.name for c in compiled(spec).columns), *(["person"] if by_person else [])]
    batches = read_batches(path, names, FileForm(kind), keep_broken=not by_person)
    found = load_table(batches, compiled(spec).columns, near, b"k" * 32)
    for name, codes in found.codes.items():
        assert len(codes) == found.rows and (codes < found.domain.sizes[name]).all()


def start(path: Path, kind: Kind, chance: random.Random) -> None:
    """What ``dpsynth init`` does, with and without a look at the table."""
    draft = draft_of(path, form=chance.choice((None, kind)))
    if chance.random() < 0.5:
        draft = guessed(draft, look_at(draft.table, draft.form, draft.to_look_at))
    starter_text(draft, "t", "schemas", "dpsynth init")


def plan(path: Path, kind: Kind, chance: random.Random) -> None:
    """What ``dpsynth plan`` does with a configuration."""
    del kind, chance
    spec = dpsynth.load(path)
    assert len(compiled(spec).fingerprint) == len(compiled(spec).whole_fingerprint) == 64
    assert all(warning.isprintable() for warning in spec.warnings())
    forecast(spec)


def release(path: Path, kind: Kind, chance: random.Random) -> None:
    """A whole release; a table that is refused has left the ledger and the folder of bundles as they were.

    One of which the first rows can be read, and others can't, has left a reservation that was given back.
    """
    folder = path.parent
    person = {"unit": {"column": "person", "max_rows": 3}} if chance.random() < 0.5 else {}
    spec = from_mapping({
        "release": "r",
        "source": {"path": str(path), "format": kind},
        "privacy": {"epsilon": 1, "delta": 1e-9, "on_empty": "go", **person},
        "ledger": {"url": f"sqlite:///{folder / ('persons.db' if person else 'rows.db')}", "dataset": "d",
                   "cap": {"epsilon": 10**6, "delta": 0.5}},
        "columns": {name: tables.COLUMNS[name] for name in ("age", "sex", "stay", "code")},
        "structure": {"method": "independent"},
        "publish": {"formats": ["csv"]},
    })  # type: ignore[arg-type, dict-item]  # fmt: skip
    files, ledger = _files(folder), Ledger(spec.ledger.url)
    rows, used = ledger.rows(), _used(ledger)
    try:
        dpsynth.release(spec, outputs=folder / "outputs")
    except SourceError as error:
        assert str(error).endswith("Nothing was charged.")
        assert (_files(folder), _used(ledger)) == (files, used), "a charge was left behind"
        more = [row.kind for row in ledger.rows()[len(rows) :]]
        assert not more or (more[-2:] == ["reserved", "abandoned"] and _begins_well(path, kind)), more
        raise


def _files(folder: Path) -> list[str]:
    return sorted(str(path) for path in (folder / "outputs").rglob("*"))


def _used(ledger: Ledger) -> object:
    account = ledger.balance("d")
    return 0 if account is None else account.epsilon_used


def _begins_well(path: Path, kind: Kind) -> bool:
    """Whether the first rows can be read."""
    names = ["age", "sex", "stay", "code"]
    try:
        return next(read_batches(path, names, FileForm(kind), keep_broken=True), None) is not None
    except SourceError:
        return False


class Fuzz:
    """A kind of attempt: what is done with which inputs, and which of them may not be refused."""

    def __init__(
        self,
        act: Callable[[Path, Kind, random.Random], None],
        kinds: Mapping[str, Make],
        suffix: str,
        whole: Mapping[str, Make] | None = None,
    ) -> None:
        """Name the attempt, its inputs, the ending of their files, and inputs without a fault."""
        self.act, self.kinds, self.suffix, self.whole = act, kinds, suffix, whole or {}

    def __call__(self, name: str, number: int, folder: Path) -> str:
        """The outcome of one input; AssertionError, or what went wrong, where it is a fault."""
        chance = random.Random(f"{self.suffix} {name} {number}")
        path = folder / f"table.{self.suffix}"
        path.write_bytes(self.kinds[name](chance))
        begun = time.process_time()
        outcome = self._outcome(path, chance)
        assert time.process_time() - begun < SECONDS, "too long"
        assert outcome == "accepted" or name not in self.whole, outcome
        return outcome

    def _outcome(self, path: Path, chance: random.Random) -> str:
        kind: Kind = "parquet" if self.suffix == "parquet" else "csv"
        try:
            self.act(path, kind, chance)
        except StepFailed:
            raise
        except DpsynthError as error:
            text = str(error)
            expected = ConfigError if self.suffix == "yaml" else (SourceError, ConfigError)
            assert isinstance(error, expected), error
            assert text and text.isprintable() and tables.CANARY not in text, text
            assert error.__cause__ is None or isinstance(error, ConfigError)
            return "refused"
        return "accepted"


FUZZ: Mapping[str, Fuzz] = {
    "read csv": Fuzz(read, csvs.KINDS, "csv", csvs.WITHOUT_FAULT),
    "read parquet": Fuzz(read, parquets.KINDS, "parquet", parquets.WITHOUT_FAULT),
    "init csv": Fuzz(start, csvs.KINDS, "csv", csvs.WITHOUT_FAULT),
    "init parquet": Fuzz(start, parquets.KINDS, "parquet", parquets.WITHOUT_FAULT),
    "plan": Fuzz(plan, yamls.KINDS, "yaml"),
    "release csv": Fuzz(release, csvs.KINDS, "csv", csvs.WITHOUT_FAULT),
    "release parquet": Fuzz(release, parquets.KINDS, "parquet", parquets.WITHOUT_FAULT),
}


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise OSError(os.strerror(0))
