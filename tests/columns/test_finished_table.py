"""The codes of a finished table are those of its published texts, whether known beforehand or read."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns import finished_table
from dpsynth.columns.column import Column, codes_of
from dpsynth.columns.finished_table import CodedRows, FinishedTable, Reading, read_back
from dpsynth.columns.layout import DrawnRows, Layout
from dpsynth.columns.numeric import NumericCodec
from tests.columns.declared import COLUMNS, column
from tests.examples import examples

KNOWN = (
    {"type": "integer", "min": 0, "max": 99, "bins": 10},
    {"type": "number", "min": 0, "max": 1, "bins": 7, "decimals": 3},
    {"type": "number", "min": -5, "max": 99_999, "bins": 4, "format": {"thousands": ",", "prefix": "$"}},
    {"type": "category", "values": ["a", "b"], "other": "rest"},
    {"type": "category", "values": ["low", "high"], "missing": {"distinct": ["refused"]}},
    {"type": "category", "values": [3, 1, 2], "missing": ["NA"]},
    {"type": "boolean", "values": ["no", "yes"]},
)


def rows_of(made: Column, codes: np.ndarray, seed: int) -> tuple[Layout, DrawnRows]:
    layout = Layout((made,))
    return layout, DrawnRows(layout.decode({"x": codes}, np.random.default_rng(seed)), {"x": codes})


def published(layout: Layout, rows: DrawnRows) -> list[int]:
    """The codes of the texts of a CSV file, cell by cell."""
    return codes_of(layout.columns[0], layout.texts(rows.table)["x"]).tolist()


@given(COLUMNS, st.integers(0, 2**32), st.booleans())
@examples(100)
def test_codes_are_those_of_the_published_texts(made, seed, computed) -> None:
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(made.size), 3))
    layout, rows = rows_of(made, codes, seed)
    known = DrawnRows(rows.table, {} if computed else rows.codes)
    found = Reading(layout.columns[0]).codes(known)
    assert found.tolist() == published(layout, rows)
    assert found.dtype == np.min_scalar_type(made.size - 1)


@pytest.mark.parametrize("declared", KNOWN, ids=lambda d: str(d["type"]))
def test_of_usual_columns_the_codes_are_known_and_no_text_is_read(declared, monkeypatch) -> None:
    made = column(**declared)
    assert read_back(made)
    codes = np.repeat(np.arange(made.size), 20)
    layout, rows = rows_of(made, codes, 5)
    expected = published(layout, rows)
    reading = Reading(made)
    reading.codes(rows)
    monkeypatch.setattr(Layout, "text_of", lambda *_: pytest.fail("a text was read"))
    assert reading.codes(rows).tolist() == expected


NARROW = Column("x", NumericCodec((0.0, 0.2, 0.4, 1.0, 5.0), 0, integer=False))
"""Without a decimal the bin from 0.2 to 0.4 has no value of its own: it writes 1, which lies further up."""


def test_a_bin_without_a_value_of_its_own_is_read_as_it_is_written() -> None:
    layout, rows = rows_of(NARROW, np.arange(4), 0)
    assert not read_back(NARROW)
    assert Reading(NARROW).codes(rows).tolist() == published(layout, rows) != [0, 1, 2, 3]


def test_a_code_that_is_taken_for_known_is_caught(monkeypatch) -> None:
    """The planted fault: every drawn code is believed."""
    monkeypatch.setattr(finished_table, "read_back", lambda _: True)
    layout, rows = rows_of(NARROW, np.arange(4), 0)
    assert Reading(NARROW).codes(rows).tolist() != published(layout, rows)


def pieces(coded: CodedRows) -> CodedRows:
    rng = np.random.default_rng(0)
    for rows in (3, 0, 5, 4):
        coded.add({"a": rng.integers(0, 9, rows, np.uint8), "b": rng.integers(0, 900, rows, np.uint16)})
    return coded


@pytest.mark.parametrize("in_memory", [0, 10, 20])
def test_codes_in_a_file_are_those_in_memory(tmp_path, in_memory) -> None:
    kept, filed = pieces(CodedRows()), pieces(CodedRows(tmp_path, in_memory))
    assert filed.rows == kept.rows == 12 and not list(tmp_path.iterdir())
    for name, codes in kept.whole().items():
        assert codes.tolist() == filed.whole()[name].tolist() and codes.dtype == filed.whole()[name].dtype
    assert FinishedTable(kept, 2).sha256 == FinishedTable(filed, 2).sha256
    assert FinishedTable(kept, 2).sha256 != FinishedTable(kept, 3).sha256


def test_a_table_in_memory_is_read_whole() -> None:
    made = column(type="category", values=["a", "b"])
    layout = Layout((made,))
    table = layout.decode({"x": np.array([0, 1, 2, 1])}, np.random.default_rng(0))
    assert FinishedTable.of(layout, table, 1).coded.whole()["x"].tolist() == [0, 1, 2, 1]
    assert isinstance(table, pa.Table)
