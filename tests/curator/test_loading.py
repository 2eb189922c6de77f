"""Rows as they are loaded, before contribution bounding: who they are of, and which columns they have."""

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Domain
from dpsynth.config import Spec, compiled
from dpsynth.curator.loaded_rows import LoadedRows, joined, load_rows
from dpsynth.curator.rows.coded_columns import ALL_IN_MEMORY

KEY = bytes(range(32))
COLUMNS = compiled(
    Spec.from_dict(
        {
            "privacy": {"epsilon": 1, "delta": 1e-6},
            "ledger": {"dataset": "d"},
            "columns": {
                "city": {"type": "category", "open": True},
                "sex": {"type": "category", "values": ["F", "M"]},
            },
        }
    )
).columns
CITIES = ["Oslo", "Rome", "Oslo", "Bern", "Rome"]


def loaded(ids: list[str | None], near: Neighbours) -> LoadedRows:
    cells = {"id": ids, "city": CITIES[: len(ids)], "sex": ["F"] * len(ids)}
    return load_rows(
        [{name: pa.array(texts, pa.string()) for name, texts in cells.items()}], COLUMNS, near, KEY
    )


@pytest.mark.parametrize(
    ("nameless", "rows", "persons"), [("left_out", 3, [1, 1, 0, 0]), ("together", 5, [1, 2, 0, 0])]
)
def test_rows_without_an_id_are_left_out_or_are_of_one_person(nameless, rows, persons) -> None:
    found = loaded(["a", "", "b", None, "b"], Neighbours("add_remove", "id", 2, nameless))
    assert found.rows == rows
    assert found.rows_of_units((1, 2, 3, 4)).tolist() == persons


def test_columns_that_are_still_to_be_found_have_texts_and_no_codes() -> None:
    found = loaded(["a"] * 5, Neighbours("add_remove"))
    assert {*found.codes} == {*found.domain.columns} == {"sex"} and {*found.texts} == {"city"}
    texts = found.texts["city"]
    assert [texts.distinct[i].as_py() for i in texts.index] == CITIES
    with pytest.raises(ValueError, match="only a person"):
        found.rows_of_units((1, 2))


def test_a_table_without_columns_has_no_rows() -> None:
    assert LoadedRows(Domain({}), {}, {}, None).rows == 0


def test_rows_of_one_part_are_joined_as_rows_of_several() -> None:
    one = loaded(["a", "b", "a", "c", "b"], Neighbours("add_remove", "id", 2))
    for parts in ([one], [one.of_rows(np.arange(5) < 2), one.of_rows(np.arange(5) >= 2)]):
        whole = joined(parts, ALL_IN_MEMORY)
        assert whole.rows_of_units((1, 2, 3)).tolist() == [1, 2, 0]
        texts = whole.texts["city"]
        assert [texts.distinct[i].as_py() for i in texts.index] == CITIES
