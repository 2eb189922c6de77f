"""Parts of moments: measured as columns of their own, and drawn so that a moment has those of its row."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.calendar import CalendarCodec
from dpsynth.columns.finished_table import Reading
from dpsynth.columns.layout import DrawnRows, Layout
from dpsynth.columns.moment_parts import Parted, parts_of
from dpsynth.columns.public_schema import public_schema, published_layout
from dpsynth.config import compiled
from dpsynth.errors import ConfigError
from tests.columns.declared import dates, datetimes
from tests.examples import examples
from tests.specs import spec_of

QUICK = examples(150)
YEAR = {"type": "datetime", "min": "2015-01-01", "max": "2015-12-31", "format": "%Y-%m-%d %H:%M"}
HOURS = YEAR | {"parts": ["hour", "weekday"]}


def layout(**declared):
    return compiled(spec_of({"seen": declared})).layout


def drawn(whole, rng, rows=300):
    """Rows of cells that are drawn without regard to each other, and the codes of what is written of them."""
    codes = {c.name: rng.integers(0, c.size, rows) for c in whole.columns}
    found = whole.reconciled(codes, rng)
    table = whole.decode(codes, np.random.default_rng(3))
    read = {c.name: Reading(c).codes(DrawnRows(table, {})) for c in whole.columns}
    return codes, found, read, table


@given(datetimes() | dates(), st.integers(0, 2**32))
@QUICK
def test_every_moment_has_the_unit_and_the_parts_of_its_row_or_is_missing_with_them(column, seed):
    whole = Layout((column,))
    rng = np.random.default_rng(seed)
    codes = {c.name: rng.integers(0, c.size, 200) for c in whole.columns}
    found = whole.reconciled(codes, np.random.default_rng(seed))
    table = whole.decode(codes, np.random.default_rng(seed))
    assert table.column_names[0] == column.name and len(table.column_names) == 1 + bool(column.distinct)
    read = {c.name: Reading(c).codes(DrawnRows(table, {})) for c in whole.columns}
    values = len(column.codec.labels)
    # A moment that a marker spells is missing.
    kept = (found[column.name] >= values) | (read[column.name] < values)
    assert kept.all() or column.markers
    for name, own in found.items():
        if not column.markers and not column.distinct and column.missing:
            assert (read[name][kept] == own[kept]).all()


@given(datetimes() | dates(), st.integers(0, 2**32))
@QUICK
def test_rows_that_are_read_from_a_table_stay_as_they_are(column, seed):
    rng = np.random.default_rng(seed)
    first, last = column.codec.ends.astype(np.int64)
    moments = rng.integers(first, last + 1, 100).astype(column.codec.ends.dtype)
    texts = column.codec.form.write(moments)
    whole = Layout((column,))
    codes = {c.name: c.encode(texts) for c in whole.columns}
    if not (codes[column.name] < len(column.codec.labels)).all():
        return
    found = whole.reconciled(codes, rng)
    assert all((found[name] == own).all() for name, own in codes.items())


def test_a_moment_that_is_drawn_without_its_parts_would_be_noticed(monkeypatch):
    """The planted fault: a moment is any of its unit."""

    def anywhere(self, codes, rng):
        return self.column.decode(codes[self.column.name].astype(np.int64), rng)

    monkeypatch.setattr(Parted, "values", anywhere)
    _, found, read, _ = drawn(layout(**HOURS), np.random.default_rng(1))
    assert (found["hour(seen)"] != read["hour(seen)"]).mean() > 0.5


def test_a_part_that_alone_is_missing_is_that_of_another_row():
    whole = layout(**HOURS)
    codes = {c.name: np.zeros(1000, np.int64) for c in whole.columns}
    codes["seen"] += 20
    codes["hour(seen)"][::2] = 24
    codes["hour(seen)"][1::2] = 7
    found = whole.reconciled(codes, np.random.default_rng(0))
    assert set(found["hour(seen)"].tolist()) == {7}


def test_a_part_is_missing_where_its_moment_is():
    _, found, read, table = drawn(layout(**HOURS), np.random.default_rng(1), rows=3000)
    gone = np.asarray(table.column("seen").combine_chunks().is_null())
    assert gone.any() and (found["seen"] == 53).tolist() == gone.tolist()
    assert (read["hour(seen)"] == 24).tolist() == (read["weekday(seen)"] == 7).tolist() == gone.tolist()


def test_a_monday_before_the_first_day_becomes_one_of_the_next_week():
    """1 January 2015 is a Thursday."""
    whole = layout(**HOURS)
    codes = {"seen": np.zeros(7), "weekday(seen)": np.arange(7), "hour(seen)": np.full(7, 5)}
    found = whole.reconciled(codes, np.random.default_rng(0))
    assert found["seen"].tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert found["weekday(seen)"].tolist() == list(range(7))


def test_a_month_that_a_year_lacks_is_one_of_the_year_that_has_it():
    ends = {"min": "2019-03-01", "max": "2020-02-29"}
    whole = layout(type="date", unit="year", parts=["month", "weekday"], **ends)
    codes = {"seen": np.arange(24) % 2, "month(seen)": np.arange(24) // 2, "weekday(seen)": np.full(24, 6)}
    found = whole.reconciled(codes, np.random.default_rng(0))
    assert found["month(seen)"].tolist() == codes["month(seen)"].tolist()
    assert found["seen"].tolist() == [1] * 4 + [0] * 20


def test_days_of_a_unit_and_times_of_an_hour_are_drawn_evenly():
    whole = layout(**HOURS, step="15 minutes")
    codes = {
        "seen": np.full(40_000, 8),
        "weekday(seen)": np.full(40_000, 2),
        "hour(seen)": np.full(40_000, 13),
    }
    table = whole.decode(codes, np.random.default_rng(0))
    moments = np.asarray(table.column("seen")).astype("M8[m]")
    values, counts = np.unique(moments, return_counts=True)
    assert [str(v) for v in values] == [f"2015-02-25T13:{m:02}" for m in (0, 15, 30, 45)]
    assert abs(counts / 10_000 - 1).max() < 0.05


@pytest.mark.parametrize("step, size", [("minute", 60), ("5 minutes", 300), ("hour", 3600), ("day", 86_400)])
def test_all_moments_lie_at_whole_steps(step, size):
    whole = layout(type="datetime", min="2015-01-01", max="2015-12-31", step=step)
    codes = {"seen": np.random.default_rng(0).integers(0, 53, 1000)}
    moments = np.asarray(whole.decode(codes, np.random.default_rng(0)).column("seen")).astype("M8[s]")
    assert set((moments.astype(np.int64) % size).tolist()) == {0}
    assert len(set(moments.tolist())) > 250


def test_times_of_day_lie_at_whole_steps():
    whole = layout(type="time", step="15 minutes", format="%H:%M")
    texts = whole.texts(whole.decode({"seen": np.arange(24)}, np.random.default_rng(0)))["seen"].to_pylist()
    assert {text[3:] for text in texts} <= {"00", "15", "30", "45"}


@pytest.mark.parametrize(
    "declared, words",
    [
        ({"parts": ["month"], "unit": "week"}, "cuts across weeks; leave it out, or use unit: year"),
        ({"parts": ["weekday"], "unit": "day"}, "follows from a day"),
        ({"parts": ["hour"], "unit": "minute"}, "follows from a minute"),
        ({"parts": ["hour", "hour"]}, "each part once"),
        ({"parts": ["hour"], "step": "day"}, "midnight"),
        ({"unit": "minute", "step": "5 minutes"}, "is finer than step, 5 minutes; use "),
        ({"parts": ["minute"]}, "month, weekday or hour"),
        ({"step": "7 minutes"}, "step"),
    ],
)
def test_parts_and_steps_that_the_units_hold_already_are_refused(declared, words):
    with pytest.raises(ConfigError, match=words):
        layout(**(YEAR | declared))


@pytest.mark.parametrize(
    "parts, years, unit",
    [
        (["hour"], 1, "week"),
        (["hour", "weekday"], 1, "week"),
        (["hour", "weekday"], 5, "month"),
        (["hour", "weekday", "month"], 5, "year"),
    ],
)
def test_the_unit_that_is_left_out_is_the_finest_that_holds_all_parts(parts, years, unit):
    whole = layout(type="datetime", min="2011-01-01", max=f"{2010 + years}-12-31", parts=parts)
    assert whole.columns[0].codec.unit == unit


def test_a_name_that_a_part_has_is_refused():
    with pytest.raises(ConfigError, match="hour"):
        spec_of({"seen": HOURS, "hour(seen)": {"type": "integer", "min": 0, "max": 5}})


@given(datetimes() | dates())
@QUICK
def test_a_published_schema_gives_the_parts_back(column):
    import json
    from decimal import Decimal

    schema = public_schema(Layout((column,)))
    again = published_layout(json.loads(json.dumps(schema), parse_float=Decimal))
    assert [(c.name, c.labels, c.part_of) for c in again.columns] == [
        (c.name, c.labels, c.part_of) for c in Layout((column,)).columns
    ]


def test_a_column_without_parts_is_recorded_as_before_there_were_any():
    """Journals and ledgers hold digests of these keys."""
    (plain,) = layout(**YEAR).columns
    assert plain.recorded["places"].keys() == {"form", "unit", "first", "last"}
    assert "part_of" not in plain.recorded
    seen, weekday, hour = layout(**HOURS).columns
    assert seen.recorded["places"]["parts"] == ("weekday", "hour") and hour.recorded["part_of"] == "seen"
    assert weekday.recorded != hour.recorded


def test_an_unusable_cell_has_the_parts_of_the_default_s_unit():
    whole = layout(**HOURS, missing=False, default="2015-06-01T13:30")
    texts = pa.array(["never", None])
    codes = {c.name: c.encode(texts) for c in whole.columns}
    found = whole.reconciled(codes, np.random.default_rng(0))
    assert all((found[name] == own).all() for name, own in codes.items())


def test_a_column_of_another_kind_has_no_parts():
    assert parts_of(layout(type="integer", min=0, max=3).columns[0]) == ()
    assert not isinstance(layout(type="integer", min=0, max=3).columns[0].codec, CalendarCodec)
