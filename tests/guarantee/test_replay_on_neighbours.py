"""Whole releases on neighbouring tables: only journalled answers may differ (hazards 7, 8, 18-21, 25-27).

The faults that this harness must catch are planted at the end. Every strategy goes through it in
``test_every_strategy_by_replay``.
"""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator import loaded_rows
from dpsynth.pipeline import inputs
from dpsynth.pipeline import spine as pipeline
from dpsynth.wings.proof.audit.replay import Transcript, faults, gaps
from tests.examples import cases
from tests.guarantee.wild_tables import (
    MAX_ROWS,
    NOISES,
    RELATIONS,
    UNITS,
    farthest,
    found_on,
    neighbours,
    on_neighbour,
    privacy_of,
    recorded,
)
from tests.thinned import some, thinned


@pytest.mark.parametrize(("relation", "unit", "noise"), thinned(RELATIONS, UNITS, NOISES, strength=1))
def test_a_neighbour_changes_nothing_but_answers_and_those_within_the_declared_sensitivity(
    tmp_path: Path, relation: str, unit: str, noise: str
) -> None:
    rng, rows, spec, record = recorded(tmp_path, privacy_of(relation, unit, noise))
    assert len(record.asked) == (4 + (relation == "add_remove" or unit == "person")) + 3 + 3 + 1 + (
        unit == "person"
    )
    assert (record.asked[0].question["ask"] == "rows") == (unit == "person")
    assert record.asked[-1].question["ask"] == "exam"
    largest = 0
    for changed in islice(neighbours(rows, relation, unit, rng), cases(38, part=5, least=7)):
        after = on_neighbour(tmp_path, spec, record, changed)
        assert list(faults(record, after)) == []
        largest = max(largest, *moved(record, after))
    # The neighbours are bad enough: the first one reaches what is declared.
    assert largest == Neighbours(relation, *(("who", MAX_ROWS) if unit == "person" else ())).l1


def moved(before: Transcript, after: Transcript) -> list[int]:
    """The measured L1 change of each marginal."""
    return [
        int(gaps(a.exact, b.exact).sum())
        for a, b in zip(before.asked, after.asked, strict=True)
        if a.question["ask"] == "marginal"
    ]


def finds(
    tmp_path: Path,
    relation: str,
    unit: str,
    noise: str,
    method: str = "mst",
    privacy: Mapping[str, object] = MappingProxyType({}),
) -> bool:
    """Whether the harness notices something wrong on one of the farthest neighbours."""
    _, rows, spec, record = recorded(tmp_path, {**privacy_of(relation, unit, noise), **privacy}, method)
    return any(found_on(tmp_path, spec, record, farthest(rows, relation, unit)))


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
    monkeypatch.setattr(loaded_rows, "rows_kept", lambda persons, k, key: np.ones(len(persons), bool))
    # The table's own check of the bound is blinded.
    monkeypatch.setattr(loaded_rows, "rows_of_each", lambda persons: np.ones(len(persons), np.int64))
    assert finds(tmp_path, "add_remove", "person", "gaussian")


@pytest.mark.parametrize("method", some(["mst", "independent"], 1))
@pytest.mark.parametrize("unit", UNITS)
def test_an_exact_row_count_under_add_remove_is_caught(tmp_path, monkeypatch, unit: str, method: str) -> None:
    monkeypatch.setattr(Neighbours, "rows_public", True)
    assert finds(tmp_path, "add_remove", unit, "gaussian", method)


@pytest.mark.parametrize("unit", UNITS)
def test_broken_rows_treated_as_the_other_unit_needs_are_caught(tmp_path, monkeypatch, unit: str) -> None:
    sound = inputs.read_cells

    def swapped(path, columns, kind, *, keep_broken, **more):
        return sound(path, columns, kind, keep_broken=not keep_broken, **more)

    monkeypatch.setattr(inputs, "read_cells", swapped)
    relation = "replace_one" if unit == "row" else "add_remove"
    # A broken row has no id, so it would be left out of persons' rows again.
    person = {"column": "who", "max_rows": MAX_ROWS, "missing": "together"}
    privacy = {} if unit == "row" else {"unit": person}
    assert finds(tmp_path, relation, unit, "gaussian", privacy=privacy)


def test_persons_exchanged_do_not_make_the_row_count_public(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Neighbours, "rows_public", property(lambda self: self.relation == "replace_one"))
    assert finds(tmp_path, "replace_one", "person", "gaussian")


def test_bounding_that_depends_on_other_people_is_caught(tmp_path, monkeypatch) -> None:
    sound = loaded_rows.rows_kept

    def by_position(persons, max_rows, key):
        return sound(persons, max_rows, key + len(persons).to_bytes(4, "big"))

    monkeypatch.setattr(loaded_rows, "rows_kept", by_position)
    assert finds(tmp_path, "add_remove", "person", "gaussian")


def test_a_question_that_depends_on_the_table_is_caught(tmp_path, monkeypatch) -> None:
    sound = pipeline.measure_one_way

    def nosy(inputs, stage, *others):
        if stage.curator._table.rows % 2:
            stage.curator.count(stage.plan.budget / 1000)
        return sound(inputs, stage, *others)

    monkeypatch.setattr(pipeline, "measure_one_way", nosy)
    assert finds(tmp_path, "add_remove", "row", "gaussian")
