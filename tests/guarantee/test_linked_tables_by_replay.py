"""Whole releases of linked tables on neighbours: a household comes or goes, with all that is its own.

Whatever its keys and cells are, and however many rows it has, it moves no answer by more than one row of a
single table would, and nothing but answers: given the same answers, every byte that is published is the same.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.columns.identifier import canonical_id
from dpsynth.config import Spec, from_mapping
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.wings.proof.audit.losses import exact_cost
from dpsynth.wings.proof.audit.replay import Transcript, faults, gaps, observe, replay
from dpsynth.wings.tables import wide_rows
from tests.examples import cases
from tests.guarantee.wild_tables import NOISES, WILD
from tests.wings.tables.linked import TABLES, frames

Frames = dict[str, pd.DataFrame]


def spec_of(folder: Path, given: Frames, noise: str) -> Spec:
    folder.mkdir(exist_ok=True)
    tables = {name: dict(table) for name, table in TABLES.items()}
    # One of further persons stands for these: another row of the same household, whoever else is there. Of
    # five or more persons four in a row are used, by its key too.
    own = {"max_children": 4, "roles": 2, "keep": "window"}
    tables["persons"]["parent"] = {**tables["persons"]["parent"], **own}
    tables["trips"]["parent"] = {**tables["trips"]["parent"], "keep": "window"}
    for name, frame in given.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
        tables[name]["source"] = {"path": str(folder / f"{name}.csv")}
    return from_mapping(
        {
            "release": "homes",
            "tables": tables,
            "privacy": {"epsilon": 2, "noise": noise, "on_empty": "go"}
            | ({"delta": 1e-6} if noise == "gaussian" else {}),
            "ledger": {"url": f"sqlite:///{folder}/ledger-{random.randrange(10**9)}.db", "dataset": "homes"},
            "sample": {"seed": 3},
        }
    )


def household(key: str, rng: np.random.Generator, kind: str) -> Frames:
    """The rows of one household: few or far too many, usual or wild, or broken in their keys."""
    many = {"crowded": 60, "lonely": 0}.get(kind, 3)
    cell = lambda usual: WILD[rng.integers(len(WILD))] if kind == "wild" else usual  # noqa: E731
    homes = [(key, cell("S"), cell("999"))]
    persons = [(key, str(i), cell("99"), cell("m")) for i in range(many)]
    trips = [(key, str(i), cell("car")) for i in range(many) for _ in range(many)]
    if kind == "doubled":
        homes, persons, trips = homes * 3, persons * 4, trips * 2
    if kind == "spelled":
        homes += [(f" {key.upper()} ", "N", "1"), (f"{key}\t", "N", "2")]
        persons = [(f" {key.upper()}" if i % 2 else key, str(i), "5", "f") for i in range(4)]
    return {
        "households": pd.DataFrame(homes, columns=["house", "region", "rent"]),
        "persons": pd.DataFrame(persons, columns=["house", "number", "age", "sex"]),
        "trips": pd.DataFrame(trips, columns=["house", "number", "mode"]),
    }


KINDS = ("usual", "crowded", "lonely", "wild", "doubled", "spelled")


def without(given: Frames, house: str) -> Frames:
    kept = {}
    for name, frame in given.items():
        own = [canonical_id(key if isinstance(key, str) else None) == house for key in frame.house]
        kept[name] = frame[~np.array(own, bool)]
    return kept


def beside(given: Frames, more: Frames, seed: int) -> Frames:
    """With a household more, whose rows lie anywhere between those of others, which keep their order."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, frame in given.items():
        rows, own = frame.to_numpy().tolist(), more[name].to_numpy().tolist()
        for row in own:
            rows.insert(int(rng.integers(len(rows) + 1)), row)
        found[name] = pd.DataFrame(rows, columns=frame.columns)
    return found


def neighbours(given: Frames) -> Iterator[Frames]:
    rng = np.random.default_rng(5)
    houses = sorted({canonical_id(key) for key in given["households"].house.dropna()} - {""})
    seed = 0
    while True:
        for kind in KINDS:
            seed += 1
            yield beside(given, household("new", rng, kind), seed)
            yield without(given, houses[rng.integers(len(houses))])


def recorded(tmp_path: Path, noise: str) -> tuple[Frames, Spec, Transcript]:
    given = frames(60, wild=True)
    spec = spec_of(tmp_path / "x", given, noise)
    return given, spec, observe(spec, tmp_path / "out")


def on(tmp_path: Path, changed: Frames, record: Transcript, noise: str) -> Transcript:
    other = spec_of(tmp_path / "y", changed, noise)
    return replay(other, record, tmp_path / "out", tmp_path / "again")


@pytest.mark.parametrize("noise", NOISES)
def test_a_household_moves_no_answer_by_more_than_one_row_would(tmp_path: Path, noise: str) -> None:
    given, spec, record = recorded(tmp_path, noise)
    plan = inputs_of(spec).plan
    largest, dearest = 0, 0.0
    for changed in islice(neighbours(given), cases(48, part=8, least=6)):
        after = on(tmp_path, changed, record, noise)
        assert list(faults(record, after)) == []
        dearest = max(dearest, exact_cost(record, after).share_of(plan.measure, plan.whole.budget))
        for a, b in zip(record.asked, after.asked, strict=True):
            if a.question["ask"] == "marginal":
                largest = max(largest, int(gaps(a.exact, b.exact).sum()))
    assert largest == 1
    # The exact loss of the whole transcript: never above the budget, and most of it.
    assert 0.5 < dearest <= 1 + 1e-9


def test_rows_of_the_root_that_are_counted_twice_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wide_rows, "_firsts_of", lambda codes, without: np.flatnonzero(codes != without))
    given, _, record = recorded(tmp_path, "gaussian")
    after = (on(tmp_path, changed, record, "gaussian") for changed in islice(neighbours(given), 12))
    assert any(list(faults(record, one)) for one in after)


def test_the_same_answers_make_the_same_tables(tmp_path: Path) -> None:
    given, spec, record = recorded(tmp_path, "gaussian")
    assert record.release_id

    def published(spec: Spec, folder: Path) -> dict[str, bytes]:
        shutil.copytree(tmp_path / "out", folder)
        public = pipeline.run(spec, Request(folder, record.release_id)).folder / "public"
        return {p.relative_to(public).as_posix(): p.read_bytes() for p in public.rglob("*") if p.is_file()}

    original = published(spec, tmp_path / "original")
    assert {"tables/households.csv", "tables/persons.csv", "tables/trips.csv"} <= original.keys()
    for i, changed in enumerate(islice(neighbours(given), cases(12, part=6, least=2))):
        found = published(spec_of(tmp_path / f"y{i}", changed, "gaussian"), tmp_path / f"other{i}")
        assert {n for n in original.keys() | found if original.get(n) != found.get(n)} == set()
