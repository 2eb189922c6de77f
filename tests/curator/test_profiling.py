"""A look guesses types and bounds, rounds and withholds, and is no part of a release."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dpsynth.config.columns import ColumnSpec
from dpsynth.curator import profiling as looking
from dpsynth.curator.profiling import guesses
from dpsynth.starter import Draft, Sketch, guessed
from dpsynth.starter.writing import values_of
from tests.examples import examples
from tests.starter.reviewing import filled

GRAMMAR = TypeAdapter(ColumnSpec)


def guess(*cells, times=1, batches=1):
    texts = pa.array([str(c) if c is not None else None for c in cells for _ in range(times)], pa.string())
    size = -(-len(texts) // batches)
    parts = [{"a": texts.slice(i * size, size)} for i in range(batches)]
    return guesses(parts, ["a"])["a"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([17, 91, 33], {"type": "integer", "min": 0, "max": 100}),
        ([1820, 1934], {"type": "integer", "min": 1800, "max": 2000}),
        ([-5, "7.0", "+3"], {"type": "integer", "min": -10, "max": 10}),
        (["0.25", "99.5", 3], {"type": "number", "min": Decimal(0), "max": Decimal(100), "decimals": 2}),
        (["1e400", "2.5"], {"type": "number", "min": None, "max": None}),
        (["Yes", "no"], {"type": "boolean", "values": ["no", "Yes"]}),
        ([0, 1], {"type": "boolean", "values": ["0", "1"]}),
        (["2020-02-29", "2021-12-01"], {"type": "date", "min": "2020-01-01", "max": "2021-12-31"}),
        (
            ["31.12.2020", "01.02.1999"],
            {"type": "date", "min": "1999-01-01", "max": "2020-12-31", "format": "%d.%m.%Y"},
        ),
        (["01/02/2020", "03/04/2020"], {"type": "date", "min": None, "max": None, "format": None}),
        (
            ["2020-01-01 10:00:00.25", "2020-01-02 11:00:00.000"],
            {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "format": "%Y-%m-%d %H:%M:%S"},
        ),
        (["10:30", "23:59"], {"type": "time", "format": "%H:%M"}),
        (["b", "a", "c"], {"type": "category", "values": ["a", "b", "c"]}),
        (["", None, "NA"], {"type": None}),
    ],
)
def test_a_column_is_guessed_from_its_cells(cells, expected):
    found = guess(*cells, times=10)
    assert found == expected
    if None not in expected.values():
        GRAMMAR.validate_python(found)


def test_usual_marks_of_missing_cells_are_told():
    assert guess(1, 2, "?", times=10)["missing"] == "?"
    assert guess("a", "b", "NA", "null", times=10)["missing"] == ["NA", "null"]
    assert "missing" not in guess(1, 2, "", None, times=10)


def test_values_that_few_rows_have_are_not_listed():
    often = [value for value in ("a", "b", "c") for _ in range(10)]
    assert guess(*often, *["rare"] * 9)["values"] == ["a", "b", "c"]
    assert guess(*often, *["rare"] * 10)["values"] == ["a", "b", "c", "rare"]
    assert guess(*["a"] * 50, "rare") == {"type": "category", "values": None}


def test_many_values_are_not_listed_at_all():
    assert guess(*(f"v{'x' * (i % 7)}{i}" for i in range(101)), times=20) == {
        "type": "category",
        "values": None,
    }


def test_cells_that_never_repeat_are_identifiers():
    assert guess(*(f"person {i}" for i in range(100)))["type"] == "identifier"
    assert guess(*range(1000, 1100))["type"] == "identifier"
    assert guess(*range(0, 10**6, 10**4))["type"] == "integer"


def test_codes_of_digits_keep_their_leading_zeros():
    codes = [f"{i:05}" for i in range(0, 90000, 89)]
    assert guess(*codes, times=2) == {"type": "text", "pattern": "[0-9][0-9][0-9][0-9][0-9]", "keep": 1}
    assert guess(*(f"{i:03}" for i in range(5)), times=20)["type"] == "category"


def test_a_table_of_many_batches_is_guessed_as_a_whole(monkeypatch):
    cells = [*range(5000), "x"]
    whole = guess(*cells, times=2)
    monkeypatch.setattr(looking, "_MOST_KNOWN", 50)
    assert whole["type"] == guess(*cells, times=2, batches=7)["type"] == "category"
    far = guess(*range(5000), 10**6, -(10**6), times=2, batches=7)
    assert far == {"type": "integer", "min": -(10**6), "max": 10**6}


@pytest.mark.parametrize("low", [-(10**12), -17, 0, 3, 99, 10**6 + 1])
@pytest.mark.parametrize("span", [0, 1, 7, 10**3, 10**9])
def test_bounds_contain_what_was_seen_and_are_not_it(low, span):
    found = guess(low, low + span, times=10)
    if found["type"] == "integer":
        assert found["min"] <= low <= low + span <= found["max"]
        assert abs(found["min"]) < 100 or found["min"] % 10 == 0


def test_what_is_found_in_a_column_does_not_depend_on_the_others():
    batch = {"a": pa.array(["1", "2"]), "b": pa.array(["x", "y"])}
    assert guesses([batch], ["a"]) == {"a": guesses([batch], ["a", "b"])["a"]}


CELLS = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.integers().map(str),
        st.floats().map(str),
        st.dates().map(str),
        st.sampled_from(
            ["1e9999999999999999999", "1e-9999999999999999999", "9" * 5000, "NaN", "00", "-", "\x00"]
        ),
    ),
    max_size=30,
)


@given(cells=CELLS, times=st.sampled_from([1, 10]))
@examples(300)
def test_whatever_cells_hold_they_end_in_a_starter_that_loads_once_filled(cells, times):
    stub = Draft((), (Sketch("a", {"type": None}), Sketch("b", {"type": "boolean"})))
    columns = values_of(guessed(stub, {"a": guess(*cells, times=times)}))
    assert len(filled(columns).columns) == len(columns)
