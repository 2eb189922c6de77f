"""Every draw is charged on disk before it happens; guarantees are made of charges (hazards 1, 5, 28)."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from dpsynth.config import from_mapping
from dpsynth.curator.charging import PrivacyFilter
from dpsynth.curator.journal import Journal
from dpsynth.errors import DpsynthError
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from tests.guarantee.draws import watched_draws
from tests.guarantee.wild_tables import base_table, privacy_of, spec_for, write
from tests.thinned import some


def draws_and_charges(monkeypatch, tmp_path: Path) -> Sequence[tuple[int, int]]:
    """For each draw of a whole release: draws so far, this one included, and charges on disk."""
    table = write(tmp_path / "x.csv", base_table(random.Random(1)))
    spec = spec_for(table, privacy_of("add_remove", "person", "gaussian"))

    def journal() -> Path:
        (path,) = (tmp_path / "out").rglob("journal.jsonl")
        return path

    seen = watched_draws(monkeypatch, journal)
    pipeline.run(spec, Request(tmp_path / "out"))
    return seen


def test_the_journal_is_never_behind_the_draws(monkeypatch, tmp_path: Path) -> None:
    seen = draws_and_charges(monkeypatch, tmp_path)
    # 5 + 3 + 3 + 1 of the columns, the structure, the marginals and the exam, and the rows that are cut off.
    assert len(seen) == 13
    assert all(charges >= draws for draws, charges in seen)


def test_a_dropped_charge_would_be_caught(monkeypatch, tmp_path: Path) -> None:
    sound = Journal._append

    def forgetful(self, *records):
        sound(self, *(r for r in records if (r["kind"], r.get("seq")) != ("charge", 4)))

    monkeypatch.setattr(Journal, "_append", forgetful)
    assert any(charges < draws for draws, charges in draws_and_charges(monkeypatch, tmp_path))


def test_a_charge_dropped_in_memory_is_caught_by_the_check_against_the_plan(
    monkeypatch, tmp_path: Path
) -> None:
    """An overspend never gets published, wherever it came from."""
    table = write(tmp_path / "x.csv", base_table(random.Random(2)))
    spec = spec_for(table, privacy_of("add_remove", "row", "gaussian"))
    monkeypatch.setattr(PrivacyFilter, "_spent", lambda self, entries: 0)
    monkeypatch.setattr(
        pipeline,
        "measure_one_way",
        lambda _, s, *__: [s.curator.count(s.plan.budget) for _ in range(2)] and (),
    )
    with pytest.raises(DpsynthError):
        pipeline.run(spec, Request(tmp_path / "out"))
    assert not list((tmp_path / "out").rglob("manifest.json"))


@pytest.mark.parametrize(
    ("method", "split"),
    some(
        [
            ("independent", {"one_way": 0.3}),
            ("independent", None),
            ("mst", {"one_way": 0.2, "structure": 0.1, "marginals": 0.4}),
            ("mst", None),
        ],
        2,
    ),
)
def test_the_last_step_takes_what_is_left_of_the_budget(tmp_path: Path, method: str, split) -> None:
    table = write(tmp_path / "x.csv", base_table(random.Random(3)))
    spec = from_mapping(
        {
            "source": {"path": str(table)},
            "privacy": {"epsilon": 2} | ({"split": split} if split else {}),
            "ledger": {"url": f"sqlite:///{tmp_path}/ledger.db"},
            "columns": {"age": {"type": "integer", "bins": [0, 20, 40, 110]}, "well": {"type": "boolean"}},
            "structure": {"method": method},
        }
    )
    release = pipeline.run(spec, Request(tmp_path / "out"))
    assert 0.999999 * 2 < release.guarantee.epsilon <= 2
