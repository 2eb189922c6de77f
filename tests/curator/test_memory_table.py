"""A table in memory has the cells of the same table in a file, each by itself, and shows none of them."""

import copy
import datetime as dt
import pickle
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.config import compiled
from dpsynth.config.files import FileForm
from dpsynth.curator import MemoryTable, as_texts, read_batches
from dpsynth.curator.rows import memory_table as module
from dpsynth.errors import SourceError
from dpsynth.testing import load_table
from tests.examples import examples
from tests.specs import spec_of

CANARY = "canary-4711"


def texts(table: object) -> dict[str, list[str | None]]:
    """The cells of each column as the reader of memory has them."""
    memory = MemoryTable(table)
    return joined(memory.batches(memory.names))


def joined(batches: Iterable[Mapping[str, pa.StringArray]]) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for batch in as_texts(batches):
        for name, cells in batch.items():
            found.setdefault(name, []).extend(cells.to_pylist())
    return found


def texts_in_file(frame: pd.DataFrame, kind: str) -> dict[str, list[str | None]]:
    """The cells of each column of a frame that was written to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{kind}"
        if kind == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)
        return joined(read_batches(path, list(frame.columns), FileForm(kind), keep_broken=True))


def of(cells: Iterable[object]) -> list[str | None]:
    """The texts of Python objects in one column."""
    return texts(pd.DataFrame({"x": pd.Series(list(cells), dtype=object)}))["x"]


def codes(cells: list[str | None], declared: dict[str, object]) -> list[int]:
    """The codes of cells as a release loads them."""
    columns = compiled(spec_of({"x": declared})).columns
    batch = {"x": pa.array(cells, pa.string())}
    return load_table([batch], columns, Neighbours("add_remove"), b"k" * 32).codes["x"].tolist()


class Streamed:
    """A table of a library that is no more than its Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


# Every kind of column: the cells, how pandas holds them, and a declaration that reads them.

DAYS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(lambda d: d.replace(microsecond=0))
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=6)
NUMBER = {"type": "number", "min": -100, "max": 100, "bins": 40}
INTEGER = {"type": "integer", "min": -100, "max": 100, "bins": 40}
CATEGORY = {"type": "category", "values": ["a", "b", "é"], "other": "else"}
MOMENT = {"type": "datetime", "min": "1950-01-01T00:00:00", "max": "2050-01-01T00:00:00", "unit": "month"}
DURATION = {"type": "duration", "min": "PT0S", "max": "PT100H", "unit": "hour"}
FLOATS = st.floats(-150, 150) | st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 1e300, 5e-324])
SPANS = st.timedeltas(dt.timedelta(days=-3), dt.timedelta(days=9))

KINDS = {
    "int64": (st.integers(-200, 200), "int64", INTEGER),
    "uint8": (st.integers(0, 255), "uint8", INTEGER),
    "Int64": (st.none() | st.integers(-200, 200), "Int64", INTEGER),
    "float64": (FLOATS, "float64", NUMBER),
    "float32": (FLOATS.filter(lambda v: not abs(v) > 1e38 or np.isinf(v)), "float32", NUMBER),
    "whole floats": (st.integers(-200, 200).map(float) | st.just(np.nan), "float64", INTEGER),
    "Float64": (st.none() | st.floats(-150, 150), "Float64", NUMBER),
    "bool": (st.booleans(), "bool", {"type": "boolean"}),
    "boolean": (st.none() | st.booleans(), "boolean", {"type": "boolean"}),
    "truths as objects": (st.none() | st.booleans(), "object", {"type": "boolean"}),
    "str": (st.none() | TEXTS, "str", CATEGORY),
    "string[pyarrow]": (st.none() | TEXTS, "string[pyarrow]", CATEGORY),
    "texts as objects": (st.none() | TEXTS | st.just(np.nan), "object", CATEGORY),
    "category": (st.none() | st.sampled_from("abcé"), "category", CATEGORY),
    "category of whole numbers": (st.integers(0, 3), "category", {"type": "category", "values": [0, 1, 2]}),
    "integers as objects": (st.none() | st.integers(-(2**60), 2**60), "object", INTEGER),
    "floats as objects": (st.none() | FLOATS, "object", NUMBER),
    "datetime64": (st.none() | DAYS, "datetime64[us]", MOMENT),
    "datetime64[ns]": (st.none() | DAYS, "datetime64[ns]", MOMENT),
    "moments as objects": (DAYS, "object", MOMENT),
    "moments with a zone as objects": (DAYS.map(lambda d: d.replace(tzinfo=dt.UTC)), "object", MOMENT),
    "dates as objects": (st.none() | DAYS.map(dt.datetime.date), "object", {**MOMENT, "type": "date",
        "min": "1950-01-01", "max": "2050-01-01"}),
    "times as objects": (st.none() | st.times(), "object", {"type": "time"}),
    "timedelta64": (st.none() | SPANS, "timedelta64[us]", DURATION),
    "spans as objects": (SPANS, "object", DURATION),
    "ArrowDtype": (st.none() | st.integers(-200, 200), pd.ArrowDtype(pa.int16()), INTEGER),
}  # fmt: skip


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """A frame with a column of every kind."""
    rows = draw(st.integers(1, 6))
    drawn = {k: draw(st.lists(cells, min_size=rows, max_size=rows)) for k, (cells, _, _) in KINDS.items()}
    return pd.DataFrame({k: pd.Series(cells, dtype=KINDS[k][1]) for k, cells in drawn.items()})


SPELT_OTHERWISE = ("category of whole numbers", "whole floats", "timedelta64", "spans as objects")
"""Kinds that pandas writes into a CSV file in other words: 1.0 for 1, and durations in English."""


@given(frame=frames())
@examples(120)
def test_a_cell_in_memory_is_the_cell_of_a_file(frame: pd.DataFrame) -> None:
    found, in_parquet, in_csv = texts(frame), texts_in_file(frame, "parquet"), texts_in_file(frame, "csv")
    assert found == in_parquet == texts(pa.Table.from_pandas(frame))
    for kind, (_, _, declared) in KINDS.items():
        if kind not in SPELT_OTHERWISE:
            assert codes(found[kind], declared) == codes(in_csv[kind], declared), kind


def test_decimals_are_read_as_in_a_parquet_file_but_for_trailing_zeros() -> None:
    cells = [Decimal("1.5"), None, Decimal("2.25"), Decimal("-7")]
    assert of(cells) == ["1.5", None, "2.25", "-7"]
    filed = texts_in_file(pd.DataFrame({"x": cells}), "parquet")["x"]
    assert codes(of(cells), NUMBER) == codes(filed, NUMBER)


def test_times_in_a_zone_are_read_as_in_a_parquet_file() -> None:
    moments = pd.to_datetime(["2020-01-01 05:00", None, "2020-07-01 23:59"]).tz_localize("Europe/Paris")
    frame = pd.DataFrame({"x": moments})
    assert texts(frame) == texts_in_file(frame, "parquet")
    assert texts(frame)["x"][0].endswith("+0100")


OBJECTS = [
    1, True, "x", 2.5, None, pd.NA, pd.NaT, np.nan, Decimal("1.50"), Decimal("NaN"), [1], {"a": 1},
    dt.date(2020, 1, 1), "\ud800", 10**5000, -(10**5000), np.float32(0.1), np.int8(3), Decimal("1e99999"),
    np.datetime64("2020-01-01T05"), np.datetime64("NaT"), np.timedelta64(5, "s"), uuid.UUID(int=5),
    pd.Timestamp("2020-01-01"), pd.Timedelta("1s"), b"\xff", object, 1j, np.str_("q"), np.array([1, 2]),
]  # fmt: skip


def test_a_cell_of_any_type_is_read_by_itself_whatever_stands_beside_it() -> None:
    alone = [of([cell])[0] for cell in OBJECTS]
    assert alone[:9] == ["1", "true", "x", "2.5", None, None, None, None, "1.50"]
    assert of(OBJECTS) == alone
    for i in range(len(OBJECTS)):
        assert of(OBJECTS[:i] + OBJECTS[i + 1 :]) == alone[:i] + alone[i + 1 :]


def test_a_reader_that_guesses_a_type_for_a_whole_column_would_be_seen(monkeypatch) -> None:
    sound = module.texts_of_objects

    def guessing(cells: np.ndarray) -> pa.StringArray:
        fractions = any(type(cell) is float for cell in cells)
        whole = [f"{cell}.0" if fractions and type(cell) is int and cell == 1 else cell for cell in cells]
        return sound(np.array([*whole, None], dtype=object)[:-1])

    monkeypatch.setattr(module, "texts_of_objects", guessing)
    with pytest.raises(AssertionError):
        test_a_cell_of_any_type_is_read_by_itself_whatever_stands_beside_it()


class Hostile:
    """An object that fails wherever it is looked at."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)

    __repr__ = __eq__ = __hash__ = __bool__ = __str__


def test_a_cell_that_fails_is_missing() -> None:
    assert of([Hostile(), "a"]) == [None, "a"]


def test_a_table_of_another_library_is_read_through_its_arrow_stream() -> None:
    table = pa.table({"x": pa.array(["a", None], pa.string_view()), "y": [1, 2]})
    assert texts(Streamed(table)) == {"x": ["a", None], "y": ["1", "2"]}


def test_a_long_table_comes_in_batches(monkeypatch) -> None:
    monkeypatch.setattr(module, "_BATCH_ROWS", 3)
    frame = pd.DataFrame({"x": pd.Categorical(list("abcdefgh")), "n": range(8)})
    batches = list(MemoryTable(frame).batches(["n", "x"]))
    assert [len(b["x"]) for b in batches] == [3, 3, 2]
    assert texts(frame) == texts(pa.Table.from_pandas(frame)) == {
        "x": list("abcdefgh"), "n": [str(n) for n in range(8)]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (5, "a value of type int is no table"),
        ({"x": [1]}, "of type dict is no table"),
        (np.zeros((2, 2)), "of type ndarray is no table"),
        (pd.Series([1], name="x"), "is no table"),
        (pd.DataFrame({"y": [CANARY]}), "has no column 'x'"),
        (pd.DataFrame({"x": [CANARY]}).set_index("x"), "'x' is in the frame's index"),
        (pd.DataFrame([[1, CANARY]], columns=["x", "x"]), "more than one column named 'x'"),
        (pa.table({"x": [[CANARY]]}), "holds lists or records"),
    ],
)
def test_what_is_no_table_or_lacks_a_column_is_refused_without_a_cell(table: object, words: str) -> None:
    with pytest.raises(SourceError) as refused:
        MemoryTable(table).check(["x"])
    assert words.casefold() in str(refused.value).casefold()
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_stream_that_fails_is_refused_without_its_words() -> None:
    class Failing:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            raise RuntimeError(CANARY)

    with pytest.raises(SourceError) as refused:
        MemoryTable(Failing())
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__context__ is None


def test_a_table_in_memory_is_neither_shown_nor_copied_nor_pickled() -> None:
    table = MemoryTable(pd.DataFrame({"x": [CANARY]}))
    assert CANARY not in repr(table) and CANARY not in str(table) and CANARY not in f"{table!r:>50}"
    for leaking in (pickle.dumps, copy.copy, copy.deepcopy, vars):
        with pytest.raises(TypeError):
            leaking(table)


def test_texts_that_pandas_keeps_in_several_chunks_of_arrow_are_read() -> None:
    chunks = pa.chunked_array([["a", None], ["b"]], pa.large_string())
    texts = pd.Series(pd.arrays.ArrowExtensionArray(chunks))
    (batch,) = MemoryTable(pd.DataFrame({"x": texts})).batches(["x"])
    assert batch["x"].to_pylist() == ["a", None, "b"]


def test_a_number_that_is_none_is_missing() -> None:
    assert texts(pd.DataFrame({"a": [1.5, float("nan")]})) == {"a": ["1.5", None]}


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_the_rows_that_are_read_are_told(make, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(module, "telling", lambda *whole: told.append(whole) or told.append)
    monkeypatch.setattr(module, "_BATCH_ROWS", 2)
    texts(make({"a": [1, 2, 3, 4]}))
    assert told == [("reading", 4), 2, 2]
