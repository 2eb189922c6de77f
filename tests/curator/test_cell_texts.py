"""Cells of Arrow's rarer types, written as text."""

import pyarrow as pa
import pytest

from dpsynth.curator.rows.cell_texts import distinct_cells, text_of


@pytest.mark.parametrize(("unit", "of_second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_a_duration_is_as_long_in_each_unit(unit: str, of_second: int) -> None:
    texts = text_of(pa.array([90 * of_second, -of_second, None], pa.duration(unit))).to_pylist()
    assert texts == ["PT90S", "-PT1S", None]


def test_an_interval_counts_years_of_365_days_and_months_of_30() -> None:
    cells = pa.array([(14, 3, 0), (0, 0, 1_500), (11, 0, 2_000), None], pa.month_day_nano_interval())
    days = pa.array([365 + 60 + 3], pa.int64())
    (whole,) = text_of(pa.array([days[0].as_py() * 86_400 * 10**6], pa.duration("us"))).to_pylist()
    (nanos,) = text_of(pa.array([1_500], pa.duration("ns"))).to_pylist()
    (months,) = text_of(pa.array([11 * 30 * 86_400 * 10**6 + 2], pa.duration("us"))).to_pylist()
    assert text_of(cells).to_pylist() == [whole, nanos, months, None]


def test_a_row_without_an_entry_of_the_dictionary_is_missing() -> None:
    cells = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1], pa.int8()), pa.array(["x", "y"]))
    found = distinct_cells(cells)
    assert found.texts.take(pa.array(found.index)).to_pylist() == ["y", None, "x", "y"]
