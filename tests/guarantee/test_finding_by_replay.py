"""Whole releases that find their places, on neighbouring tables: only journalled answers may differ.

What is found decides all that follows, so a place that came from the table by another way than an
answer shows as a question that differs.
"""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator.table import Texts
from dpsynth.pipeline import measuring
from tests.examples import cases
from tests.guarantee.wild_tables import (
    NOISES,
    RELATIONS,
    SOUGHT,
    UNITS,
    farthest,
    found_on,
    neighbours,
    privacy_of,
    recorded,
)
from tests.thinned import some, thinned


def privacy(relation: str, unit: str, noise: str) -> dict[str, object]:
    """Values are found with a delta, whatever the noise."""
    return privacy_of(relation, unit, noise) | {"delta": 1e-6}


@pytest.mark.parametrize(("relation", "unit", "noise"), some(thinned(RELATIONS, UNITS, NOISES), 2))
def test_a_neighbour_changes_nothing_but_answers_and_those_within_the_declared_sensitivity(
    tmp_path: Path, relation: str, unit: str, noise: str
) -> None:
    rng, rows, spec, record = recorded(tmp_path, privacy(relation, unit, noise), columns=SOUGHT)
    kinds = {asked.question["ask"] for asked in record.asked}
    of_persons = {"rows"} if unit == "person" else set()
    assert kinds == {"counts", "medians", "values", "marginal", "choose", "exam"} | of_persons
    changed = islice(neighbours(rows, relation, unit, rng), cases(10, least=4))
    assert list(found_on(tmp_path, spec, record, changed)) == []


def finds(tmp_path: Path, relation: str, unit: str, noise: str) -> bool:
    """Whether something wrong is noticed on one of the farthest neighbours."""
    _, rows, spec, record = recorded(tmp_path, privacy(relation, unit, noise), columns=SOUGHT)
    return any(found_on(tmp_path, spec, record, farthest(rows, relation, unit)))


def test_values_read_off_the_table_are_caught(tmp_path, monkeypatch) -> None:
    sound = measuring.discover

    def nosy(door, columns, searches):
        for search in searches:
            if search.column == "city":
                texts = door._table.texts["city"]
                here = len(texts.distinct)
                door.counts_under(columns[0], columns[0].codec, door.remaining / (1000 + here))
        return sound(door, columns, searches)

    monkeypatch.setattr(measuring, "discover", nosy)
    assert finds(tmp_path, "add_remove", "person", "gaussian")


@pytest.mark.parametrize("noise", NOISES)
def test_a_forgotten_person_factor_is_caught(tmp_path, monkeypatch, noise: str) -> None:
    monkeypatch.setattr(Neighbours, "l1", 1)
    monkeypatch.setattr(Neighbours, "l2_squared", 1)
    assert finds(tmp_path, "add_remove", "person", noise)


def test_texts_of_rows_that_were_left_out_are_caught(tmp_path, monkeypatch) -> None:
    sound = Texts.of_rows

    def unbounded(self, kept, room):
        return sound(self, np.ones(len(self.index), dtype=bool), room)

    monkeypatch.setattr(Texts, "of_rows", unbounded)
    monkeypatch.setattr(Texts, "counts", lambda self, unit, sound=Texts.counts: sound(self, None))
    assert finds(tmp_path, "add_remove", "person", "gaussian")
