"""Whole releases of linked tables on neighbours: a household comes, goes or is exchanged, with all its rows.

Whatever its keys and cells are, and however many rows it has, it moves no answer by more than one row of a
single table would, and nothing but answers: given the same answers, every byte that is published is the same.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.accounting.neighbours import Neighbours
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
from tests.thinned import some
from tests.wings.tables.linked import TABLES, frames
from tests.wings.tables.test_wide_rows import wide_of

Frames = dict[str, pd.DataFrame]


def spec_of(folder: Path, given: Frames, noise: str, relation: str = "add_remove") -> Spec:
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
            "privacy": {"epsilon": 2, "noise": noise, "on_empty": "go", "neighbours": relation}
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


def houses_of(given: Frames) -> list[str]:
    return sorted({canonical_id(key) for key in given["households"].house.dropna()} - {""})


def neighbours(given: Frames) -> Iterator[Frames]:
    rng = np.random.default_rng(5)
    houses = houses_of(given)
    seed = 0
    while True:
        for kind in KINDS:
            seed += 1
            yield beside(given, household("new", rng, kind), seed)
            yield without(given, houses[rng.integers(len(houses))])


def exchanged(given: Frames) -> Iterator[Frames]:
    """A household in the place of another one, with all rows of both; at times its key is missing."""
    rng = np.random.default_rng(6)
    houses = houses_of(given)
    seed = 0
    while True:
        for kind in KINDS:
            seed += 1
            left = without(given, houses[rng.integers(len(houses))])
            other = household("new", rng, kind)
            yield beside(left, other, seed)
            yield beside(left, {name: rows.assign(house=None) for name, rows in other.items()}, seed)


@dataclass(frozen=True)
class Recorded:
    """A release of linked tables, whose answers are given to their neighbours."""

    tables: Frames
    spec: Spec
    outputs: Path
    transcript: Transcript

    def on(self, changed: Frames, folder: Path) -> Transcript:
        near = str(self.spec.privacy.neighbours)
        other = spec_of(folder / "y", changed, str(self.spec.privacy.noise), near)
        return replay(other, self.transcript, self.outputs, folder / "again")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Recorded]:
    """One such release for each noise and relation."""

    @cache
    def made(noise: str, relation: str = "add_remove") -> Recorded:
        folder, given = tmp_path_factory.mktemp("recorded"), frames(60, wild=True)
        spec = spec_of(folder / "x", given, noise, relation)
        return Recorded(given, spec, folder / "out", observe(spec, folder / "out"))

    return made


@pytest.mark.parametrize("noise", some(NOISES, 1))
def test_a_household_moves_no_answer_by_more_than_one_row_would(
    tmp_path: Path, noise: str, recorded: Callable[..., Recorded]
) -> None:
    made = recorded(noise)
    plan, record = inputs_of(made.spec).plan, made.transcript
    largest, dearest = 0, 0.0
    for changed in islice(neighbours(made.tables), cases(48, part=8, least=6)):
        after = made.on(changed, tmp_path)
        assert list(faults(record, after)) == []
        dearest = max(dearest, exact_cost(record, after).share_of(plan.measure, plan.whole.budget))
        for a, b in zip(record.asked, after.asked, strict=True):
            if a.question["ask"] == "marginal":
                largest = max(largest, int(gaps(a.exact, b.exact).sum()))
    assert largest == 1
    # The exact loss of the whole transcript: never above the budget, and most of it.
    assert 0.5 < dearest <= 1 + 1e-9


@pytest.mark.parametrize("noise", some(reversed(NOISES), 1))
def test_an_exchanged_household_moves_no_answer_by_more_than_an_exchanged_row_would(
    tmp_path: Path, noise: str, recorded: Callable[..., Recorded]
) -> None:
    """Also where there is a root less then, as the other one's key is missing, or that of another root."""
    made = recorded(noise, "replace_one")
    plan, record = inputs_of(made.spec).plan, made.transcript
    # The number of roots is a charged answer as well.
    assert not plan.neighbours.rows_public and any(not a.question["columns"] for a in record.asked)
    largest, dearest = 0, 0.0
    for changed in islice(exchanged(made.tables), cases(48, part=16, least=3)):
        after = made.on(changed, tmp_path)
        assert list(faults(record, after)) == []
        dearest = max(dearest, exact_cost(record, after).share_of(plan.measure, plan.whole.budget))
        for a, b in zip(record.asked, after.asked, strict=True):
            if a.question["ask"] == "marginal":
                largest = max(largest, int(gaps(a.exact, b.exact).sum()))
    assert largest == 2
    assert 0.4 < dearest <= 1 + 1e-9


def test_no_exchange_of_small_households_moves_a_marginal_further_and_some_move_it_so_far() -> None:
    """All pairs of households of up to three persons of two kinds, in all pairs of columns."""
    homes = [
        (region, persons) for region in "NS" for many in range(4) for persons in product("ab", repeat=many)
    ]
    tables = {
        "homes": {"key": "house", "columns": {"region": {"type": "category", "values": ["N", "S"]}}},
        "persons": {
            "parent": {"table": "homes", "key": "house", "max_children": 3, "roles": 2},
            "columns": {"sort": {"type": "category", "values": ["a", "b"], "missing": False}},
        },
    }
    wide = {home: wide_row(tables, home) for home in homes}
    near = Neighbours("replace_one", "house", linked=True)
    columns = range(len(wide[homes[0]]))
    furthest = 0
    for one, other in product(homes, repeat=2):
        for clique in ((), *((c,) for c in columns), *combinations(columns, 2)):
            first, second = (tuple(wide[home][c] for c in clique) for home in (one, other))
            moved = Counter([first])
            moved.subtract([second])
            distance, squares = (sum(abs(n) ** power for n in moved.values()) for power in (1, 2))
            assert distance <= near.l1 and squares <= near.l2_squared
            assert clique or distance == 0
            furthest = max(furthest, distance)
    assert furthest == near.l1 == near.l2_squared == 2


def wide_row(tables: dict[str, object], home: tuple[str, tuple[str, ...]]) -> tuple[object, ...]:
    """The cells of a household as the curator reads them, beside a neighbour who changes nothing in them."""
    region, persons = home
    given = {
        "homes": pd.DataFrame([("x", region), ("y", "S")], columns=["house", "region"]),
        "persons": pd.DataFrame([("x", p) for p in persons] + [("y", "b")], columns=["house", "sort"]),
    }
    read = wide_of(given, tables)
    (batch,) = read.batches(read.names)
    rows = list(zip(*(batch[name].to_pylist() for name in read.names[1:]), strict=True))
    assert len(rows) == 2
    return rows[0]


def test_rows_of_the_root_that_are_counted_twice_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wide_rows, "_firsts_of", lambda codes, without: np.flatnonzero(codes != without))
    given = frames(60, wild=True)
    spec = spec_of(tmp_path / "x", given, "gaussian", "add_remove")
    made = Recorded(given, spec, tmp_path / "out", observe(spec, tmp_path / "out"))
    after = (made.on(changed, tmp_path) for changed in islice(neighbours(given), 12))
    assert any(list(faults(made.transcript, one)) for one in after)


def test_the_same_answers_make_the_same_tables(tmp_path: Path, recorded: Callable[..., Recorded]) -> None:
    made = recorded("gaussian")
    spec, record = made.spec, made.transcript
    assert record.release_id

    def published(spec: Spec, folder: Path) -> dict[str, bytes]:
        shutil.copytree(made.outputs, folder)
        public = pipeline.run(spec, Request(folder, record.release_id)).folder / "public"
        return {p.relative_to(public).as_posix(): p.read_bytes() for p in public.rglob("*") if p.is_file()}

    original = published(spec, tmp_path / "original")
    assert {"tables/households.csv", "tables/persons.csv", "tables/trips.csv"} <= original.keys()
    for i, changed in enumerate(islice(neighbours(made.tables), cases(12, part=6, least=2))):
        found = published(spec_of(tmp_path / f"y{i}", changed, "gaussian"), tmp_path / f"other{i}")
        assert {n for n in original.keys() | found if original.get(n) != found.get(n)} == set()
