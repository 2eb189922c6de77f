"""Python objects as cells: each is written by its own type, and missing cells are null."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpsynth.curator.rows.memory_table import MemoryTable, cells_of_objects, texts_of_objects
from dpsynth.errors import SourceError

LONGEST = (1 << 10_000) - 1
NOON = datetime(2026, 1, 2, 12, 0, 5)
TEXTS: list[tuple[object, str | None]] = [
    ("x", "x"),
    (b"ab", "ab"),
    (True, "true"),
    (np.bool_(False), "false"),
    (np.bool_(True), "true"),
    (7, "7"),
    (np.int16(-7), "-7"),
    (LONGEST, str(LONGEST)),
    (LONGEST + 1, "1e999"),
    (-LONGEST - 1, "-1e999"),
    (0.1, "0.1"),
    (np.float32(0.1), "0.1"),
    (np.float64(0.1), "0.1"),
    (float("nan"), None),
    (Decimal("1E+3"), "1000"),
    (Decimal("1E+400"), "1" + "0" * 400),
    (Decimal("1E+401"), "1E+401"),
    (Decimal("Infinity"), "Infinity"),
    (Decimal("NaN"), None),
    (NOON, "2026-01-02 12:00:05.000000"),
    (NOON.replace(tzinfo=UTC), "2026-01-02 12:00:05.000000Z"),
    (NOON.replace(tzinfo=timezone(timedelta(hours=1))), "2026-01-02 12:00:05.000000+0100"),
    (np.datetime64("2026-01-02T12:00:05"), "2026-01-02 12:00:05.000000"),
    (np.datetime64("NaT"), None),
    (date(2026, 1, 2), "2026-01-02"),
    (time(3, 4, 5), "03:04:05.000000"),
    (timedelta(days=2, seconds=3, microseconds=4), "PT172803.000004S"),
    (pd.Timedelta(days=2, seconds=3, microseconds=4, nanoseconds=5), "PT172803.000004005S"),
    (np.timedelta64(5, "s"), "PT5S"),
    (np.timedelta64("NaT"), None),
    (None, None),
    (pd.NA, None),
    (pd.NaT, None),
]


def objects(*cells: object) -> np.ndarray:
    found = np.empty(len(cells), object)
    found[:] = cells
    return found


def test_each_object_is_written_by_its_own_type() -> None:
    """All beside each other, so that none can have a type from its neighbours."""
    found = texts_of_objects(objects(*[cell for cell, _ in TEXTS])).to_pylist()
    assert dict(enumerate(found)) == dict(enumerate(text for _, text in TEXTS))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ((1, 2, None), pa.int64()),
        ((1.5, None), pa.float64()),
        ((True, False), pa.bool_()),
        ((date(2026, 1, 2),), pa.date32()),
    ],
)
def test_objects_of_one_type_keep_it(cells: tuple[object, ...], kind: pa.DataType) -> None:
    assert cells_of_objects(objects(*cells)).equals(pa.array(cells, kind))
    assert cells_of_objects(objects(*cells, "x")).equals(texts_of_objects(objects(*cells, "x")))


def test_what_stands_for_a_missing_number_is_missing_and_one_too_large_is_a_text() -> None:
    assert cells_of_objects(objects(1.5, float("nan"))).null_count == 1
    assert cells_of_objects(objects(1 << 70, 1)).to_pylist() == [str(1 << 70), "1"]
    assert cells_of_objects(objects(None, None)).to_pylist() == [None, None]


FRAME = pd.DataFrame(
    {
        "whole": [1],
        "part": [1.5],
        "nullable": pd.array([1], dtype="Int64"),
        "month": pd.period_range("2026-01", periods=1, freq="M"),
        "sparse": pd.arrays.SparseArray([1]),
        "wide": np.array([1], dtype=np.longdouble),
        "odd": pd.Series([1 + 2j]),
    }
)


def test_the_type_of_a_column_is_known_where_its_cells_have_it() -> None:
    kinds = {"whole": pa.int64(), "part": pa.float64(), "nullable": pa.int64()}
    assert MemoryTable(FRAME).types == kinds
    assert MemoryTable(pa.table({"a": [1], "b": ["x"]})).types == {"a": pa.int64(), "b": pa.string()}
    (batch,) = MemoryTable(FRAME).batches(list(FRAME.columns))
    assert {name: kinds.get(name, pa.string()) for name in FRAME} == {n: c.type for n, c in batch.items()}


def test_a_name_that_is_nowhere_is_not_looked_for_in_the_index() -> None:
    indexed = FRAME.set_index("whole")
    with pytest.raises(SourceError, match="'whole' is in the frame's index"):
        next(MemoryTable(indexed).batches(["nowhere", "whole"]))
    with pytest.raises(SourceError, match="nowhere") as refused:
        next(MemoryTable(indexed).batches(["nowhere"]))
    assert "index" not in str(refused.value)
