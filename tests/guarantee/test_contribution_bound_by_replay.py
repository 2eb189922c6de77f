"""Finding how many rows of a person to use, on neighbouring tables: only journalled answers may differ.

Whole releases are replayed on neighbours, and the planted faults are told apart from the sound release.
"""

from dataclasses import replace
from itertools import islice
from math import inf
from pathlib import Path

import numpy as np
import pytest

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.column import domain_of
from dpsynth.columns.measurement import UnitsByRows, ranges_of_rows
from dpsynth.config import compiled
from dpsynth.curator.loaded_rows import LoadedRows
from dpsynth.errors import DpsynthError
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.measuring import Stage
from dpsynth.plan.plan import Found, make_plan
from dpsynth.strategy import strategy_of
from dpsynth.strategy.discovery import contribution_bound, noise_per_row
from dpsynth.wings.proof.audit.replay import Transcript, faults
from tests.guarantee.wild_tables import (
    NOISES,
    RELATIONS,
    base_table,
    neighbours,
    on_neighbour,
    privacy_of,
    recorded,
)
from tests.thinned import thinned

AT_MOST = 12
NEIGHBOURS_A_KIND = 8


def sought(relation: str, noise: str) -> dict[str, object]:
    """A privacy section that has the bound found; with this budget it comes to fewer rows than the most."""
    unit = {"column": "who", "max_rows": "private", "at_most": AT_MOST}
    split = {"domain": 0.2, "one_way": 0.2, "structure": 0.2, "marginals": 0.4}
    return {**privacy_of(relation, "person", noise), "unit": unit, "epsilon": 10, "split": split}


def replayed(
    tmp_path: Path, relation: str, noise: str, tries: int, *, enough: float = inf
) -> tuple[Transcript, list[str], int]:
    """The record, what neighbours gave away, and by how much the first answer moved in L1 at most.

    It ends where so many things are given away.
    """
    rng, rows, spec, record = recorded(tmp_path, sought(relation, noise))
    found, moved = [], 0
    for changed in islice(neighbours(rows, relation, "person", rng), tries):
        try:
            after = on_neighbour(tmp_path, spec, record, changed)
        except DpsynthError:
            return record, [*found, "refused"], moved
        found += faults(record, after)
        if len(found) >= enough:
            break
        moved = max(moved, int(np.abs(record.asked[0].exact - after.asked[0].exact).sum()))
    return record, found, moved


@pytest.mark.parametrize(("relation", "noise"), thinned(RELATIONS, NOISES, strength=1))
def test_a_neighbour_changes_nothing_but_answers_and_those_within_the_declared_sensitivity(
    tmp_path: Path, relation: str, noise: str
) -> None:
    record, found, moved = replayed(tmp_path, relation, noise, NEIGHBOURS_A_KIND)
    assert found == []
    ranges = list(ranges_of_rows(AT_MOST, each=True))
    assert record.asked[0].question == {"ask": "rows", "from": ranges}
    assert moved == (2 if relation == "replace_one" else 1)


def finds(tmp_path: Path, relation: str = "add_remove", noise: str = "gaussian") -> bool:
    """Whether the harness notices something wrong on the farthest neighbours, which come within five."""
    return bool(replayed(tmp_path, relation, noise, 5, enough=1)[1])


def test_a_bound_that_comes_from_exact_numbers_is_caught(tmp_path, monkeypatch) -> None:
    def nosy(inputs, unbounded):
        # As told, any bound does; this one changes with each person.
        door, plan = unbounded.door, inputs.plan
        most = 1 + int(door._rows.rows_of_units((1,))[0]) % AT_MOST
        bounded = replace(plan, neighbours=replace(plan.neighbours, max_rows=most))
        layout = inputs.compiled.layout
        again = make_plan(inputs.compiled, inputs.strategy, Found(bounded, layout.columns))
        return Stage(door.bounded(most), again, layout)

    monkeypatch.setattr(pipeline, "bound_contributions", nosy)
    assert finds(tmp_path)


def test_rows_counted_where_persons_should_be_are_caught(tmp_path, monkeypatch) -> None:
    sound = LoadedRows.rows_of_units
    monkeypatch.setattr(LoadedRows, "rows_of_units", lambda self, first: sound(self, first) * np.array(first))
    assert finds(tmp_path)


def test_a_person_who_is_exchanged_but_charged_as_one_who_comes_is_caught(tmp_path, monkeypatch) -> None:
    mistaken = property(lambda self: replace(self, relation="add_remove", max_rows=1))
    monkeypatch.setattr(Neighbours, "counted_once", mistaken)
    assert finds(tmp_path, "replace_one")


def test_a_table_that_keeps_more_rows_than_its_noise_is_for_is_caught(tmp_path, monkeypatch) -> None:
    sound = LoadedRows.bounded
    monkeypatch.setattr(LoadedRows, "bounded", lambda self, most, key: sound(self, most + 1, key))
    assert finds(tmp_path)


def test_the_question_is_paid_for_and_asked_once(tmp_path) -> None:
    _, _, spec, record = recorded(tmp_path, sought("add_remove", "laplace"))
    asked = [a.question["ask"] for a in record.asked]
    assert asked[0] == "rows" and asked.count("rows") == 1
    ranges = compiled(spec).ranges_of_rows
    assert len(record.disclosed[0]) == len(ranges) and ranges[:AT_MOST] == tuple(range(1, AT_MOST + 1))
    strategy = strategy_of(spec.structure.method, ())
    plan = make_plan(compiled(spec), strategy)
    # Laplace noise without delta: epsilon is l1/scale, and no more than the plan's price.
    assert 0 < record.asked[0].event.epsilon <= plan.bound_price
    assert record.asked[0].event.epsilon > plan.bound_price * 999 / 1000
    # What comes after is asked with the bound that was found, and not with the most.
    units = UnitsByRows(ranges, np.array(record.disclosed[0]), "laplace", 1.0).up_to(AT_MOST)
    most = contribution_bound(units, noise_per_row(plan, domain_of(compiled(spec).columns)))
    assert {a.event.l1 for a in record.asked[1:] if hasattr(a.event, "l1")} == {most}


def test_the_base_table_has_persons_on_both_sides_of_the_bound() -> None:
    import random

    rows = [r[0] for r in base_table(random.Random(0))]
    assert max(rows.count(p) for p in rows) > AT_MOST > min(rows.count(p) for p in rows)
