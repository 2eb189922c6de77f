"""A row's own cell decides whether it is in a slice, so neighbours stay neighbours, and no cell is told."""

from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.slices import Slice, span_of
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.config.files import FileForm
from dpsynth.curator import loaded_rows, read_batches
from dpsynth.curator.loaded_rows import in_slice, rows_within
from dpsynth.testing import load_table
from tests.thinned import some

KEY = b"k" * 32
COLUMNS = (Column("sex", CategoryCodec(("F", "M"))), Column("drug", CategoryCodec(("a", "b", "c"))))
MAX_ROWS = 2
ROWS, PERSONS = Neighbours("add_remove"), Neighbours("add_remove", "who", MAX_ROWS)
NAMES = ["sex", "drug", "who", "visited"]
CELLS = ["2026-02-28", "2026-03-01", "2026-03-31T23:59:59+02:00", "2026-04-01", "2026-03", "2026", "", None,
         "x", " 2026-03-09 ", "31/03/2026"]  # fmt: skip


def dated(label):
    return Slice("visited", label, *span_of(label))


MARCH, SITE = dated("2026-03"), Slice("visited", "2026")


def texts(cells):
    return pa.array(cells, pa.string())


def inside(cells, part):
    return in_slice(texts(cells), part).to_pylist()


@pytest.mark.parametrize(
    "cell",
    [
        "2026-03-14", "2026-03-14T05:06", "2026-03-14 05:06:07", "2026-03-14T05:06:07.123456789",
        "2026-03-14T05:06:07,5", "2026-03-14T05:06:07Z", "2026-03-14T05:06:07+02:00",
        "2026-03-14 05:06:07.000+0100", "2026-03-14 05:06:07 +01", "2026-03-14T24:00",
        "2026-03-14T23:59:60z", "2026-03-14T05", "\t2026-03-14 05:06\n", "2026-03",
    ],
)  # fmt: skip
def test_iso_dates_and_times_count_by_the_date_that_is_written(cell):
    assert inside([cell], MARCH) == [True]
    assert inside([cell], dated("2026-03-14")) == [cell != "2026-03"]
    assert inside([cell], dated("2026-04")) == [False]


@pytest.mark.parametrize("zone", ["+14:00", "-12:00", "Z", ""])
def test_a_time_on_the_edge_is_of_the_day_it_names_in_any_zone(zone):
    cells = [f"2026-02-28T23:59:59{zone}", f"2026-03-01T00:00{zone}", f"2026-03-31 23:59{zone}",
             f"2026-04-01 00:00{zone}"]  # fmt: skip
    assert inside(cells, MARCH) == [False, True, True, False]


@pytest.mark.parametrize(
    "cell",
    [
        None, "", " ", "NaT", "14.03.2026", "03/14/2026", "20260314", "2026-3-14", "2026-03-32",
        "2026-02-30T05:06", "2026-03-14T25:00", "2026-03-14T05:66", "2026-03-14x", "2026-03-14T05:06 CET",
        "2026-03-14T05:06:07+2", "2026-03-14, 5 pm", "\u0662\u0660\u0662\u0666-03-14",
        "2026-03-14\n2026-03-15", "1741910400", "a" * 10_000,
    ],
)  # fmt: skip
def test_what_is_no_date_is_in_no_slice_and_no_error(cell):
    for label in ("2026-03-14", "2026-W11", "2026-03", "2026-Q1", "2026"):
        assert inside([cell], dated(label)) == [False]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("2026-03-31", [False, False, True, False, False, False]),
        ("2026-03", [False, False, True, False, True, False]),
        ("2026-Q1", [True, True, True, False, True, False]),
        ("2026", [True, True, True, True, True, True]),
    ],
)
def test_a_month_or_a_year_counts_only_where_the_slice_holds_all_of_it(label, expected):
    cells = ["2026-01-01", "2026-02-28", "2026-03-31", "2026-04-01", "2026-03", "2026"]
    assert inside(cells, dated(label)) == expected


def test_values_count_where_they_are_the_same_text_or_the_same_number():
    cells = ["7", "007", " 7.0", "7e0", "7.01", "seven", "", None, "77"]
    assert inside(cells, Slice("site", "7")) == [True] * 4 + [False] * 5
    cells = ["Kyiv", " Kyiv ", "kyiv", "Kyiv 2", "", None]
    assert inside(cells, Slice("site", "Kyiv")) == [True, True] + [False] * 4


def test_each_distinct_day_is_read_once_however_many_times_of_day_there_are(monkeypatch):
    seen = []
    sound = Slice.holds
    monkeypatch.setattr(Slice, "holds", lambda self, cell: seen.append(cell) or sound(self, cell))
    stamps = pd.date_range("2026-03-01", periods=100_000, freq="30s").strftime("%Y-%m-%d %H:%M:%S")
    found = inside(stamps.to_list(), dated("2026-03-02"))
    assert sum(found) == 2880
    assert len(seen) == len(set(seen)) == 35


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([date(2026, 3, 14), date(2026, 4, 1), None]),
        pa.array([datetime(2026, 3, 14, 23), datetime(2026, 4, 1, 0), None]),
        pa.array([datetime(2026, 3, 14, 23), datetime(2026, 4, 1, 0), None], pa.timestamp("s")),
        pa.array(
            [datetime(2026, 3, 14, 23, tzinfo=UTC), datetime(2026, 3, 31, 23, tzinfo=UTC), None],
            pa.timestamp("ns", "Europe/Paris"),
        ),
        pa.array(["2026-03-14", "2026-04-01", None]).dictionary_encode(),
    ],
    ids=lambda cells: str(cells.type),
)
def test_dates_of_a_parquet_file_are_read_whatever_their_type(tmp_path, cells):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"sex": ["F", "M", "M"], "visited": cells}), path)
    (batch,) = read_batches(path, ["sex", "visited"], FileForm("parquet"), keep_broken=True)
    assert rows_within(batch, MARCH)["sex"].to_pylist() == ["F"]


def test_broken_rows_are_in_no_slice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sex,drug,visited\nF,a,2026-03-05\nM\nM,b,2026-03-06,x\nM,c,2026-02-01\n")
    for part, expected in [(MARCH, 1), (SITE, 0), (Slice("visited", "x"), 0), (None, 4)]:
        batches = read_batches(path, ["sex", "drug", "visited"], FileForm(), keep_broken=True)
        assert load_table(batches, COLUMNS, ROWS, KEY, part).rows == expected


def batches_of(rows, size=5):
    for start in range(0, max(len(rows), 1), size):
        some = rows[start : start + size]
        yield {name: texts([row[i] for row in some]) for i, name in enumerate(NAMES)}


def random_rows(seed, count=14):
    rng = np.random.default_rng(seed)
    return [
        (str(rng.choice(["F", "M"])), str(rng.choice(["a", "b", "c"])), str(rng.integers(3)),
         CELLS[rng.integers(len(CELLS))])
        for _ in range(count)
    ]  # fmt: skip


def test_only_rows_of_the_slice_are_counted_and_they_are_counted_as_before():
    for seed in range(20):
        rows = random_rows(seed)
        for part in (MARCH, SITE, dated("2026"), dated("2031")):
            kept = [row for row in rows if row[3] is not None and in_slice(texts([row[3]]), part)[0].as_py()]
            found = load_table(batches_of(rows), COLUMNS, ROWS, KEY, part)
            alone = load_table(batches_of(kept), COLUMNS, ROWS, KEY)
            assert found.rows == len(kept)
            np.testing.assert_array_equal(found.counts(("sex", "drug")), alone.counts(("sex", "drug")))


def test_a_persons_bound_holds_within_the_slice_and_rows_outside_do_not_use_it_up():
    outside, within = ("F", "a", "Ann", "2026-02-01"), ("M", "b", "Ann", "2026-03-02")
    table = load_table(batches_of([outside] * 9 + [within] * 2), COLUMNS, PERSONS, KEY, MARCH)
    assert table.counts(("sex",)).tolist() == [0, 2, 0]
    table = load_table(batches_of([within] * 9), COLUMNS, PERSONS, KEY, MARCH)
    assert table.rows == MAX_ROWS


def largest_move(near, seeds=range(6)):
    """Largest L1 distance of a marginal of a slice when a row, or a person, is taken away."""
    largest = 0
    for seed in seeds:
        rows = random_rows(seed)
        for part in (MARCH, SITE):
            whole = load_table(batches_of(rows), COLUMNS, near, KEY, part).counts(("sex", "drug"))
            if near.person is None:
                fewer = [rows[:i] + rows[i + 1 :] for i in range(len(rows))]
            else:
                fewer = [[row for row in rows if row[2] != who] for who in {row[2] for row in rows}]
            for left in fewer:
                counts = load_table(batches_of(left), COLUMNS, near, KEY, part).counts(("sex", "drug"))
                largest = max(largest, int(np.abs(whole - counts).sum()))
    return largest


@pytest.mark.parametrize("near", some([ROWS, PERSONS], 1), ids=["row", "person"])
def test_a_unit_more_or_less_moves_counts_of_a_slice_by_no_more_than_its_own_rows(near):
    assert largest_move(near) == near.l1


def by_rank(batch, part):
    """Planted: the first rows of a batch make the slice."""
    return {name: cells[:2] for name, cells in batch.items()}


def by_the_latest_date(batch, part):
    """Planted: the slice is the last month that the data have."""
    dates = [d for d in batch[part.column].to_pylist() if d and d.startswith("2026-")]
    return rows_within(batch, dated(max(dates)[:7])) if dates else rows_within(batch, part)


def by_the_share_of_rows(batch, part):
    """Planted: a slice with few rows counts as empty."""
    found = rows_within(batch, part)
    few = len(found["sex"]) < 2
    return {name: cells[:0] for name, cells in found.items()} if few else found


@pytest.mark.parametrize("fault", some([by_rank, by_the_latest_date, by_the_share_of_rows], 1))
def test_a_slice_that_depends_on_other_rows_is_caught(monkeypatch, fault):
    monkeypatch.setattr(loaded_rows, "rows_within", fault)
    assert largest_move(ROWS) > ROWS.l1


def test_a_forgotten_slice_is_caught(monkeypatch):
    rows = [("F", "a", "Ann", "2026-02-01"), ("M", "b", "Bob", "2026-03-02")]
    assert load_table(batches_of(rows), COLUMNS, ROWS, KEY, MARCH).counts(("sex",)).tolist() == [0, 1, 0]
    monkeypatch.setattr(loaded_rows, "rows_within", lambda batch, part: batch)
    assert load_table(batches_of(rows), COLUMNS, ROWS, KEY, MARCH).counts(("sex",)).tolist() != [0, 1, 0]


def test_a_table_without_rows_of_the_slice_counts_zero_everywhere():
    for near in (ROWS, PERSONS):
        for rows in ([], random_rows(3)):
            table = load_table(batches_of(rows), COLUMNS, near, KEY, dated("2031-05"))
            assert table.rows == 0 and not table.counts(("sex", "drug")).any()
