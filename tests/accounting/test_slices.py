"""Slices of one column are apart exactly where no cell can be in both."""

from datetime import date, timedelta
from itertools import combinations, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsynth.accounting.slices import Slice, span_of, value_of

LABELS = [
    "2024", "2025", "2026", "2025-Q1", "2025-Q4", "2026-Q1", "2026-Q2", "2025-12", "2026-01", "2026-02",
    "2026-03", "2026-04", "2025-W52", "2026-W01", "2026-W05", "2026-W09", "2026-W14", "2026-01-01",
    "2026-01-31", "2026-02-01", "2026-03-01", "2025-12-31", "2025-12-29",
]  # fmt: skip


def dated(label, column="visited"):
    span = span_of(label)
    assert span is not None, label
    return Slice(column, label, *span)


@pytest.mark.parametrize(
    ("label", "start", "stop"),
    [
        ("2026", "2026-01-01", "2027-01-01"),
        ("2026.0", "2026-01-01", "2027-01-01"),
        ("2026-Q1", "2026-01-01", "2026-04-01"),
        ("2026Q4", "2026-10-01", "2027-01-01"),
        ("2026-03", "2026-03-01", "2026-04-01"),
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2026-W01", "2025-12-29", "2026-01-05"),
        ("2026W07", "2026-02-09", "2026-02-16"),
        ("2026-W53", "2026-12-28", "2027-01-04"),
        ("2024-02-29", "2024-02-29", "2024-03-01"),
        ("2026-12-31", "2026-12-31", "2027-01-01"),
        ("0001", "0001-01-01", "0002-01-01"),
    ],
)
def test_a_span_of_the_calendar_is_the_days_of_its_name(label, start, stop):
    assert span_of(label) == (date.fromisoformat(start), date.fromisoformat(stop))


@pytest.mark.parametrize(
    "text",
    ["", " ", "2026-13", "2026-00", "2026-3", "2026-02-30", "2025-02-29", "2026-Q5", "2026-Q0", "2026-W00",
     "2026-W54", "2025-W53", "0000", "0000-01-01", "9999", "9999-12-31", "9999-12", "9999-Q4", "9999-W52",
     "26", "2026-03-14T12:00", "14/03/2026", "20260314", "2026-03-14\n", "\uff12\uff10\uff12\uff16", "-2026",
     "2026.5", "2026-03-014", "2026--03"],
)  # fmt: skip
def test_what_is_no_span_of_the_calendar_is_none(text):
    assert span_of(text) is None


def test_dated_slices_overlap_exactly_where_they_share_a_day():
    first, last = date(2023, 12, 1), date(2027, 2, 1)
    days = [first + timedelta(days=n) for n in range((last - first).days)]
    slices = [dated(label) for label in LABELS]
    inside = {s.label: {d for d in days if s.start <= d < s.stop} for s in slices}
    for a, b in product(slices, repeat=2):
        assert a.overlaps(b) == bool(inside[a.label] & inside[b.label]), (a.label, b.label)


@given(
    st.text(max_size=8)
    | st.builds("{}{}".format, st.integers(2024, 2026), st.sampled_from(("", "-01", "-12-31", "-Q1", "-W53")))
)
@example("2026-01")
@example("2026-W01")
@example("2026-01-01")
def test_no_cell_is_in_two_slices_that_do_not_overlap(cell):
    holding = [s for s in map(dated, LABELS) if s.holds(cell)]
    assert all(a.overlaps(b) for a, b in combinations(holding, 2))


VALUES = ["7", "007", "7.0", "+7", " 7 ", "70e-1", "7.5", "x", "X", "x ", "seven", "0", "-0.0", "1e400",
          "10e399", "1e-400", "2026", "nan", "inf", "\u0667", "7_0", "0x7"]  # fmt: skip


def test_values_overlap_exactly_where_they_are_the_same_value():
    same = [{"7", "007", "7.0", "+7", " 7 ", "70e-1"}, {"x", "x "}, {"0", "-0.0"}, {"1e400", "10e399"}]
    for a, b in product(VALUES, repeat=2):
        expected = a == b or any({a, b} <= group for group in same)
        assert Slice("site", a).overlaps(Slice("site", b)) == expected, (a, b)
        assert Slice("site", a).holds(b) == expected, (a, b)


@given(
    st.text(max_size=6) | st.decimals(allow_nan=False).map(str), st.text(max_size=6) | st.sampled_from(VALUES)
)
def test_a_cell_is_in_the_slice_of_one_value_only(cell, label):
    assert value_of(value_of(cell)) == value_of(cell)
    if label.strip():
        assert Slice("site", label).holds(cell) == (value_of(cell) == value_of(label))
        assert not Slice("site", label).holds("")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e19", "1" + 19 * "0"),
        ("1e20", "1E+20"),
        ("1e-19", "0." + 18 * "0" + "1"),
        ("1e-20", "1E-20"),
        (101 * "1", "1." + 99 * "1" + "E+100"),
    ],
)
def test_a_long_number_is_written_by_its_first_hundred_digits_and_its_power(text, value):
    assert value_of(text) == value


def test_slices_by_other_columns_or_of_another_kind_are_never_known_to_be_apart():
    assert dated("2024").overlaps(dated("2026", "billed"))
    assert Slice("a", "1").overlaps(Slice("b", "2"))
    assert dated("2024").overlaps(Slice("visited", "2026-05"))
    assert Slice("visited", "2026-05").overlaps(dated("2024"))


@pytest.mark.parametrize(
    ("cell", "label", "inside"),
    [
        ("2026-03-14", "2026-03", True),
        (" 2026-03-14 ", "2026-03", True),
        ("2026-03", "2026-03", True),
        ("2026-03", "2026-Q1", True),
        ("2026Q1", "2026", True),
        ("2026", "2026", True),
        ("2026", "2026-03", False),
        ("2026-03", "2026-03-14", False),
        ("2026-W05", "2026-01", False),
        ("2026-W05", "2026-Q1", True),
        ("2026-W01", "2026", False),
        ("2026-04-01", "2026-03", False),
        ("2026-02-28", "2026-03", False),
        ("March 2026", "2026-03", False),
        ("", "2026-03", False),
    ],
)
def test_a_date_is_in_a_slice_if_all_of_its_days_are(cell, label, inside):
    assert dated(label).holds(cell) is inside


@pytest.mark.parametrize(
    "part", [dated("2026-W07"), dated("2024"), Slice("site", "Kyiv"), Slice("site", "7")]
)
def test_a_slice_is_read_back_from_json_as_it_was(part):
    assert Slice.from_json(part.to_json()) == part


@pytest.mark.parametrize(
    ("label", "start", "stop"),
    [
        ("", None, None),
        (" ", None, None),
        ("2026", date(2026, 1, 1), None),
        ("2026", None, date(2026, 1, 1)),
        ("2026", date(2026, 1, 1), date(2026, 1, 1)),
        ("2026", date(2027, 1, 1), date(2026, 1, 1)),
    ],
)
def test_a_slice_without_a_label_or_a_day_is_rejected(label, start, stop):
    with pytest.raises(ValueError, match="a slice"):
        Slice("visited", label, start, stop)
