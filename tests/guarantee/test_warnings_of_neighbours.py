"""Warnings follow from noisy answers alone: a neighbour with the same answers gets the same bytes.

A release of a misread table is recorded up to its pause. On a neighbour, with the recorded answers, the
command pauses with the same words, exit code and journal. Then it goes on to the same warnings in its bundle.
"""

import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dpsynth.curator import UnboundedCurator, samplers
from dpsynth.pipeline import measuring, pausing
from dpsynth.pipeline import pausing as examining
from dpsynth.pipeline import spine as pipeline
from tests.cli.here import Command
from tests.guarantee.wild_tables import RELATIONS, UNITS, base_table, farthest, neighbour, write
from tests.thinned import some, thinned

COLUMNS: Mapping[str, object] = {
    "age": {"type": "integer", "bins": [0, 27500, 55000, 82500, 110000], "missing": False},
    "pay": {"type": "number", "bins": [0, 25, 50, 75, 100], "decimals": 1},
    "city": {"type": "category", "values": ["a", "b", "c"]},
    "well": {"type": "boolean", "values": ["no", "yes"]},
    "note": {"type": "category", "open": True, "most": 3},
}
"""Ages are bounded in days, and cities are spelt otherwise: a column in one bin, and one that is empty."""
SMALL = 1
"""Rows of a table that seems to be empty."""


@dataclass(frozen=True)
class Said:
    """What a run has said and done.

    Attributes:
        code: its exit code.
        out, err: what it wrote.
        journal: the lines of its journal, without the names of runs.
        warnings: those of its manifest, and, where the whole release is recorded, its verdict and what it
            says of rows that were cut off.
    """

    code: int
    out: str
    err: str
    journal: list[str]
    warnings: object


class Runs:
    """The command, in this process, on tables and ledgers of one folder."""

    def __init__(
        self,
        folder: Path,
        privacy: Mapping[str, object],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        **changes: object,
    ) -> None:
        self._changes = changes
        self.folder, self._monkeypatch = folder, monkeypatch
        self._dpsynth = Command(folder, monkeypatch, capsys)
        self._privacy = {"epsilon": 30, "delta": 1e-6, **privacy}

    def run(self, rows: list[list[str]], outputs: Path, *arguments: str) -> Said:
        """Release a table, with a ledger of its own unless there is one beside the outputs."""
        config = {
            "release": "replay",
            "source": {"path": str(write(self.folder / "x.csv", rows))},
            "privacy": self._privacy,
            "ledger": {"url": f"sqlite:///{outputs}.db", "cap": {"epsilon": 1000, "delta": 1e-3}},
            "columns": COLUMNS,
            "structure": {"method": "mst"},
            **self._changes,
        }
        Path("config.yaml").write_text(json.dumps(config))
        said = self._dpsynth("run", "config.yaml", "--plain", "--out", outputs, *arguments)
        (path,) = outputs.glob("replay/*/private/journal.jsonl")
        manifest = path.parents[1] / "public" / "manifest.json"
        return Said(
            said.code,
            said.out.replace(str(outputs), "OUT"),
            said.err,
            [line for line in path.read_text().splitlines() if '"held"' not in line],
            self._warned(manifest),
        )

    def _warned(self, manifest: Path) -> object:
        if not manifest.exists():
            return None
        written = json.loads(manifest.read_text())
        return [written["warnings"], written["verdict"], written["contribution_bounding"]]

    def recorded(self, rows: list[list[str]]) -> tuple[Path, str]:
        """A release that paused, as if it had been killed just before, and its id."""
        outputs = self.folder / "out"
        with self._monkeypatch.context() as patched:
            # Noise would have it, once in some releases, that nothing is to be warned of.
            patched.setattr(samplers, "add_gaussian", lambda values, sigma: values)
            assert self.run(rows, outputs).code == 5
        (path,) = outputs.glob("replay/*/private/journal.jsonl")
        path.write_text(re.sub(r'\{"kind":"paused".*\}\n', "", path.read_text()))
        return outputs, path.parents[1].name[1:].removesuffix(".partial")

    def paused(self, rows: list[list[str]], record: tuple[Path, str], name: str) -> Said:
        """The pause, on a table that answers from the record."""
        shutil.copytree(record[0], self.folder / name)
        return self.run(rows, self.folder / name, "--resume", record[1])

    def replayed(self, rows: list[list[str]], record: tuple[Path, str], name: str) -> list[Said]:
        """The pause and what follows, on a table that answers from the record."""
        first, outputs = self.paused(rows, record, name), self.folder / name
        # What comes after the pause is drawn anew, and has nothing to do with warnings.
        then = self.run(rows, outputs, "--resume", record[1])
        warnings = then.warnings if self._changes else then.warnings[0]
        return [first, Said(then.code, "", then.err, then.journal[: len(first.journal)], warnings)]


MakeRuns = Callable[..., Runs]


@pytest.fixture
def replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MakeRuns:
    """Makes ``Runs`` in the test's folder, of a section privacy and more of the config."""
    return lambda privacy, **changes: Runs(tmp_path, privacy, monkeypatch, capsys, **changes)


def tables() -> tuple[random.Random, list[list[str]]]:
    rng = random.Random("warnings")
    return rng, base_table(rng)


def by(unit: str) -> Mapping[str, object]:
    """The unit in the section privacy."""
    return {"unit": {"column": "who", "max_rows": 3}} if unit == "person" else {}


@pytest.mark.parametrize(("relation", "unit"), thinned(RELATIONS, UNITS, strength=1))
def test_a_neighbour_with_the_same_answers_is_warned_and_paused_in_the_same_bytes(
    relation: str, unit: str, replays: MakeRuns
) -> None:
    runs = replays({"neighbours": relation, **by(unit)})
    rng, rows = tables()
    record = runs.recorded(rows)
    before = runs.replayed(rows, record, "same")
    assert [said.code for said in before] == [5, 0] and before[0].err.count("\n") >= 2
    assert before[1].warnings
    for i in range(2):
        changed = neighbour(rows, relation, unit, rng)
        assert runs.replayed(changed, record, f"other{i}") == before


def charged(said: Said) -> int:
    """The number of charges in its journal."""
    return sum('"kind":"charge"' in line for line in said.journal)


@pytest.mark.parametrize(
    ("relation", "unit"),
    some([("add_remove", "row"), ("add_remove", "person"), ("replace_one", "person")], 1),
)
def test_a_neighbour_of_a_table_that_seems_empty_is_paused_by_its_number_of_rows_in_the_same_bytes(
    relation: str, unit: str, replays: MakeRuns
) -> None:
    """Where rows are exchanged, their number is public and nothing is asked for it."""
    runs = replays({"neighbours": relation, **by(unit)})
    rng, rows = tables()
    record = runs.recorded(rows[:SMALL])
    before = runs.paused(rows[:SMALL], record, "same")
    assert (
        before.code == 5
        and "because of the table" in before.err
        and charged(before) == 1 + (unit == "person")
    )
    for i in range(4):
        assert runs.paused(neighbour(rows[:SMALL], relation, unit, rng), record, f"other{i}") == before
    # A table of many rows is no neighbour; it waits as well, since it answers the same.
    assert runs.paused(rows, record, "far") == before


def test_a_pause_by_the_exact_number_of_rows_would_be_seen(
    monkeypatch: pytest.MonkeyPatch, replays: MakeRuns
) -> None:
    """The planted fault: the table's own number of rows in place of the noisy one."""
    sound = pausing.heed_size

    def nosy(inputs, stage, run, tell):
        (total,) = stage.total
        exact = type(total)((), stage.curator._counts.of(()), total.noise, total.scale)
        sound(inputs, replace(stage, total=(exact,)), run, tell)

    monkeypatch.setattr("dpsynth.pipeline.spine.heed_size", nosy)
    runs = replays({})
    _, rows = tables()
    record = runs.recorded(rows[:SMALL])
    before = runs.paused(rows[:SMALL], record, "same")
    assert runs.paused([], record, "other") != before


def test_warnings_by_exact_counts_would_be_seen(monkeypatch: pytest.MonkeyPatch, replays: MakeRuns) -> None:
    """The planted fault: the table's own counts in place of the noisy ones."""
    sound = pausing.heed_warnings

    def nosy(inputs, stage, run, answers, tell):
        exact = [
            type(m)(m.clique, stage.curator._counts.of(m.clique), m.noise, m.scale) for m in answers.first
        ]
        return sound(inputs, stage, run, type(answers)(tuple(exact), (), (), answers.evidence, None), tell)

    monkeypatch.setattr("dpsynth.pipeline.spine.heed_warnings", nosy)
    runs = replays({})
    _, rows = tables()
    record = runs.recorded(rows)
    before = runs.replayed(rows, record, "same")
    assert runs.replayed(rows[1:], record, "other") != before


RULED: Mapping[str, object] = {
    "columns": {
        "age": {"type": "integer", "bins": [0, 20, 40, 60, 110]},
        "well": {"type": "boolean", "missing": False},
    },
    "constraints": ["age >= 60"],
}
"""A rule that most rows violate: the finished table contradicts the counts of the ages."""


@pytest.mark.parametrize(("relation", "unit"), thinned(RELATIONS, UNITS, strength=1))
def test_a_neighbour_with_the_same_answers_is_judged_and_paused_in_the_same_bytes(
    relation: str, unit: str, replays: MakeRuns
) -> None:
    runs = replays({"neighbours": relation, **by(unit)}, **RULED)
    rng, rows = tables()
    record = runs.recorded(rows)
    before = runs.replayed(rows, record, "same")
    assert [said.code for said in before] == [5, 0] and "before it is shown" in before[0].err
    assert "contradicts" in str(before[1].warnings)
    assert ("units_by_rows" in str(before[1].warnings)) == (unit == "person")
    others = [farthest(rows, relation, unit)[1], neighbour(rows, relation, unit, rng)]
    for i, changed in enumerate(others):
        assert runs.replayed(changed, record, f"other{i}") == before


def test_rows_cut_off_by_exact_numbers_of_persons_would_be_seen(
    monkeypatch: pytest.MonkeyPatch, replays: MakeRuns
) -> None:
    """The planted fault: how many persons there really are in place of the noisy numbers."""
    sound = UnboundedCurator.rows_per_unit

    def nosy(self, first, price):
        return replace(sound(self, first, price), values=self._rows.rows_of_units(first))

    monkeypatch.setattr(UnboundedCurator, "rows_per_unit", nosy)
    runs = replays(by("person"), **RULED)
    _, rows = tables()
    record = runs.recorded(rows)
    before = runs.replayed(rows, record, "same")
    others = [row for row in rows if row[0] != rows[0][0]]
    assert runs.replayed(others, record, "other") != before


def test_verdicts_by_exact_counts_would_be_seen(monkeypatch: pytest.MonkeyPatch, replays: MakeRuns) -> None:
    """The planted fault: the table's own counts in place of the noisy ones."""
    sound = examining.judge
    curators = []

    def opened(*arguments):
        stage = measuring.open_door(*arguments)
        curators.append(stage.curator)
        return stage

    def nosy(inputs, fitted, table, exam=None, cut=None, statistics=()):
        counts = curators[-1]._counts
        exact = {name: (counts.of((name,)), stddev) for name, (_, stddev) in fitted.densities.items()}
        return sound(inputs, replace(fitted, densities=exact), table, exam, cut, statistics)

    monkeypatch.setattr("dpsynth.pipeline.spine.judge", nosy)
    monkeypatch.setattr(pipeline.run, "__kwdefaults__", {**pipeline.run.__kwdefaults__, "door": opened})
    runs = replays({}, **RULED)
    _, rows = tables()
    record = runs.recorded(rows)
    before = runs.replayed(rows, record, "same")
    assert runs.replayed(rows[1:], record, "other") != before
