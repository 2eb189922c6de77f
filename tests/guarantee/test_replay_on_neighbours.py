"""Whole releases on neighbouring tables: only journalled answers may differ (hazards 7, 8, 18-21, 25-27).

The faults that this harness must catch are planted at the end.
"""

from __future__ import annotations

import csv
import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from guarantee.replay import Transcript, excess, observe, replay, sensitivities

import dpsynth.curator.table as table_module
from dpsynth import pipeline
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.errors import DpsynthError
from dpsynth.spec import Spec, from_mapping

HEADER = ("who", "age", "pay", "city", "well", "note")
RELATIONS = ("add_remove", "replace_one")
UNITS = ("row", "person")
NOISES = ("gaussian", "laplace")
KINDS = list(product(RELATIONS, UNITS, NOISES))
MAX_ROWS = 3
NEIGHBOURS_A_KIND = 38

Row = list[str]

# Cells that no schema foresaw.
WILD = [
    "",
    "NaN",
    "inf",
    "-1e999",
    "99999999999",
    "-0",
    "\U0001f4a5",
    "x" * 5000,
    "=1+1",
    "?",
    "None",
    'a,b\n"c"',
]


def spec_for(path: Path, relation: str, unit: str, noise: str, method: str = "mst") -> Spec:
    privacy: dict[str, object] = {"epsilon": 2, "neighbours": relation, "noise": noise}
    if noise == "gaussian":
        privacy["delta"] = 1e-6
    if unit == "person":
        privacy["unit"] = {"column": "who", "max_rows": MAX_ROWS}
    columns = {
        "age": {"type": "integer", "bins": [0, 20, 40, 60, 110]},
        "pay": {"type": "number", "bins": [0, 0.5, 10, 100], "decimals": 1},
        "city": {"type": "category", "values": ["A", "B"], "other": "elsewhere", "missing": False},
        "well": {"type": "boolean"},
    }
    return from_mapping(
        {
            "release": "replay",
            "source": {"path": str(path)},
            "privacy": privacy,
            "ledger": {"url": f"sqlite:///{path.parent}/ledger-{random.randrange(10**9)}.db"},
            "columns": columns,
            "structure": {"method": method},
        }
    )


def write(path: Path, rows: list[Row]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    return path


def usual_row(rng: random.Random, who: str) -> Row:
    age = rng.choice(["5", "33", "47", "80", ""])
    pay = "0" if rng.random() < 0.5 else f"{rng.uniform(0, 90):.1f}"
    return [who, age, pay, rng.choice("ABC"), rng.choice(["true", "false"]), "n"]


def wild_row(rng: random.Random, who: str) -> Row:
    return [who, *(rng.choice(WILD) for _ in range(5))]


def broken_row(rng: random.Random, who: str) -> Row:
    """Too few cells, or too many."""
    return [who] if rng.random() < 0.5 else [*usual_row(rng, who), "one", "two"]


def base_table(rng: random.Random) -> list[Row]:
    people = [f"p{i}" for i in range(30)]
    rows = [usual_row(rng, who) for who in people for _ in range(rng.choice([1, 2, 3, 3, 6]))]
    rows += [["p0", "5", "0", "A", "true", "n"]] * 20
    rng.shuffle(rows)
    return rows


def neighbour(rows: list[Row], relation: str, unit: str, rng: random.Random) -> list[Row]:
    """A neighbour under the relation; adversarial as often as not."""
    changed = [list(r) for r in rows]
    if unit == "row":
        arriving = rng.choice([usual_row, wild_row, broken_row])(rng, rng.choice(["p0", "new", ""]))
        victim = rng.randrange(len(changed))
        if relation == "replace_one":
            changed[victim] = arriving
        elif rng.random() < 0.5:
            del changed[victim]
        else:
            changed.insert(victim, arriving)
        return changed
    people = sorted({r[0] for r in changed})
    leaving, staying = rng.choice([*people, "p0"]), relation == "add_remove" and rng.random() < 0.5
    kept = changed if staying else [r for r in changed if r[0] != leaving]
    if relation == "replace_one" or staying:
        one_cell = ["new", "110", "99", "B", "false", "y"]
        extra = [
            [one_cell] * rng.choice([1, MAX_ROWS, 200]),
            [wild_row(rng, rng.choice([" New ", "new", "NEW"])) for _ in range(rng.choice([1, 40]))],
            [usual_row(rng, "new") for _ in range(7)],
            # Broken rows come on top of as many good ones as count.
            [one_cell] * MAX_ROWS + [["new"]] * 5,
        ]
        kept = [list(r) for r in kept]
        for row in rng.choice(extra):
            kept.insert(rng.randrange(len(kept) + 1), list(row))
    return kept


def recorded(tmp_path: Path, relation: str, unit: str, noise: str, method: str = "mst"):
    rng = random.Random(f"{relation}{unit}{noise}")
    rows = base_table(rng)
    spec = spec_for(write(tmp_path / "x.csv", rows), relation, unit, noise, method)
    return rng, rows, spec, observe(spec, tmp_path / "out")


def on_neighbour(tmp_path: Path, spec: Spec, record: Transcript, rows: list[Row], *kind: str) -> Transcript:
    other = spec_for(write(tmp_path / "y.csv", rows), *kind)
    return replay(spec, other, record, tmp_path / "out", tmp_path / "again")


@pytest.mark.parametrize(("relation", "unit", "noise"), KINDS)
def test_a_neighbour_changes_nothing_but_answers_and_those_within_the_declared_sensitivity(
    tmp_path: Path, relation: str, unit: str, noise: str
) -> None:
    rng, rows, spec, record = recorded(tmp_path, relation, unit, noise)
    assert len(record.asked) == (4 + (relation == "add_remove" or unit == "person")) + 3 + 3
    largest = 0
    for _ in range(NEIGHBOURS_A_KIND):
        changed = neighbour(rows, relation, unit, rng)
        after = on_neighbour(tmp_path, spec, record, changed, relation, unit, noise)
        assert excess(record, after) == []
        largest = max(largest, *sensitivities(record, after))
    # The neighbours are bad enough: one reaches what is declared.
    assert largest == Neighbours(relation, *(("who", MAX_ROWS) if unit == "person" else ())).l1


def finds(tmp_path: Path, relation: str, unit: str, noise: str, method: str = "mst", tries: int = 12) -> bool:
    """Whether the harness notices something wrong on some of a dozen neighbours."""
    rng, rows, spec, record = recorded(tmp_path, relation, unit, noise, method)
    for _ in range(tries):
        changed = neighbour(rows, relation, unit, rng)
        try:
            after = on_neighbour(tmp_path, spec, record, changed, relation, unit, noise, method)
        except DpsynthError:
            return True
        if excess(record, after):
            return True
    return False


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("noise", NOISES)
def test_a_forgotten_person_factor_is_caught(tmp_path, monkeypatch, relation: str, noise: str) -> None:
    factor = 2 if relation == "replace_one" else 1
    monkeypatch.setattr(Neighbours, "l1", factor)
    monkeypatch.setattr(Neighbours, "l2_squared", factor)
    assert finds(tmp_path, relation, "person", noise)


@pytest.mark.parametrize("unit", UNITS)
def test_a_replace_one_sensitivity_taken_from_add_remove_is_caught(tmp_path, monkeypatch, unit: str) -> None:
    monkeypatch.setattr(Neighbours, "l1", property(lambda self: self.max_rows))
    monkeypatch.setattr(Neighbours, "l2_squared", property(lambda self: self.max_rows**2))
    assert finds(tmp_path, "replace_one", unit, "gaussian")


def test_missing_contribution_bounding_is_caught(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(table_module, "rows_kept", lambda persons, k, key: np.ones(len(persons), bool))
    monkeypatch.setattr(table_module.np, "unique", lambda *a, **k: (np.array([0]), np.array([0])))
    assert finds(tmp_path, "add_remove", "person", "gaussian")


@pytest.mark.parametrize("method", ["mst", "independent"])
@pytest.mark.parametrize("unit", UNITS)
def test_an_exact_row_count_under_add_remove_is_caught(tmp_path, monkeypatch, unit: str, method: str) -> None:
    monkeypatch.setattr(Neighbours, "rows_public", True)
    assert finds(tmp_path, "add_remove", unit, "gaussian", method)


@pytest.mark.parametrize("unit", UNITS)
def test_broken_rows_treated_as_the_other_unit_needs_are_caught(tmp_path, monkeypatch, unit: str) -> None:
    sound = pipeline.read_batches

    def swapped(path, columns, kind, *, keep_broken):
        return sound(path, columns, kind, keep_broken=not keep_broken)

    monkeypatch.setattr(pipeline, "read_batches", swapped)
    relation = "replace_one" if unit == "row" else "add_remove"
    assert finds(tmp_path, relation, unit, "gaussian", tries=40)


def test_persons_exchanged_do_not_make_the_row_count_public(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Neighbours, "rows_public", property(lambda self: self.relation == "replace_one"))
    assert finds(tmp_path, "replace_one", "person", "gaussian")


def test_bounding_that_depends_on_other_people_is_caught(tmp_path, monkeypatch) -> None:
    sound = table_module.rows_kept

    def by_position(persons, max_rows, key):
        return sound(persons, max_rows, key + len(persons).to_bytes(4, "big"))

    monkeypatch.setattr(table_module, "rows_kept", by_position)
    assert finds(tmp_path, "add_remove", "person", "gaussian", tries=30)


def test_a_question_that_depends_on_the_table_is_caught(tmp_path, monkeypatch) -> None:
    sound = pipeline.measure_singles

    def nosy(curator, domain, plan):
        if curator._table.rows % 2:
            curator.count(plan.budget / 1000)
        return sound(curator, domain, plan)

    monkeypatch.setattr(pipeline, "measure_singles", nosy)
    assert finds(tmp_path, "add_remove", "row", "gaussian")
