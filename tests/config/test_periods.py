"""A label names one slice of the calendar that has ended, and the slices of a period never overlap."""

from datetime import date, timedelta
from itertools import pairwise

import pytest

from dpsynth.accounting.slices import Slice, span_of
from dpsynth.config import Period
from dpsynth.config.period import last_whole, slice_named, slice_of
from dpsynth.errors import ConfigError
from tests.thinned import some

CALENDAR = ["day", "week", "month", "quarter", "year"]
TODAY = date(2026, 3, 14)


def period(every, column="visited"):
    return Period(column=column, every=every)


@pytest.mark.parametrize("every", some(CALENDAR, 2))
def test_each_day_is_in_exactly_one_slice_and_slices_follow_one_another(every):
    days = [date(2019, 12, 1) + timedelta(days=n) for n in range(2_700)]
    slices = list(dict.fromkeys(slice_of(period(every), day) for day in days))
    assert all(a.stop == b.start for a, b in pairwise(slices))
    assert all(not a.overlaps(b) for a, b in pairwise(slices))
    for day in days:
        part = slice_of(period(every), day)
        assert part.start <= day < part.stop
        assert span_of(part.label) == (part.start, part.stop)


@pytest.mark.parametrize("every", some(CALENDAR, 2))
def test_the_last_whole_slice_has_ended_and_the_next_has_not(every):
    for n in range(1_500):
        today = date(2022, 11, 1) + timedelta(days=n)
        part = last_whole(period(every), today)
        assert part.stop <= today
        assert slice_of(period(every), part.stop).stop > today


@pytest.mark.parametrize(
    ("every", "label"),
    [
        ("day", "2026-03-13"),
        ("week", "2026-W10"),
        ("month", "2026-02"),
        ("quarter", "2025-Q4"),
        ("year", "2025"),
    ],
)
def test_the_last_whole_slice_is_the_one_that_people_would_name(every, label):
    part = last_whole(period(every), TODAY)
    assert part.label == label
    assert slice_named(period(every), label, TODAY) == part == Slice("visited", label, *span_of(label))


def test_a_week_is_of_the_iso_year_of_its_thursday():
    weekly = period("week")
    assert (
        slice_of(weekly, date(2027, 1, 1)).label == slice_of(weekly, date(2026, 12, 28)).label == "2026-W53"
    )
    assert slice_of(weekly, date(2024, 12, 30)).label == "2025-W01"


@pytest.mark.parametrize(
    ("every", "label"),
    [
        ("day", "2026-02-30"), ("day", "2026-02"), ("day", "14.02.2026"), ("day", ""),
        ("week", "2025-W53"), ("week", "2026-W7"), ("week", "2026W07"), ("week", "2026-02-09"),
        ("month", "2026-3"), ("month", "2026-13"), ("month", "2026"), ("month", "2025-Q4"),
        ("month", "02/2026"), ("month", " 2026-02"), ("month", "2026-02-01"), ("month", "latest"),
        ("month", "\u0662026-02"),
        ("quarter", "2025Q4"), ("quarter", "2025-Q5"), ("quarter", "2025-10"),
        ("year", "25"), ("year", "2025.0"), ("year", "2025-Q4"), ("year", "0000"), ("year", "2025\x1b[0m"),
    ],
)  # fmt: skip
def test_a_label_that_is_malformed_or_of_another_length_is_refused_with_an_example(every, label):
    with pytest.raises(ConfigError) as caught:
        slice_named(period(every), label, TODAY)
    message = str(caught.value)
    assert f"--period must name a {every}, such as {last_whole(period(every), TODAY).label[:2]}" in message
    assert message.isprintable()


@pytest.mark.parametrize(
    ("every", "label", "last"),
    [
        ("day", "2026-03-14", "2026-03-14"), ("day", "2026-03-15", "2026-03-15"),
        ("week", "2026-W11", "2026-03-15"), ("month", "2026-03", "2026-03-31"),
        ("quarter", "2026-Q1", "2026-03-31"), ("year", "2026", "2026-12-31"), ("year", "9998", "9998-12-31"),
    ],
)  # fmt: skip
def test_a_slice_that_has_not_ended_is_refused_for_a_later_run_would_see_more_rows(every, label, last):
    with pytest.raises(
        ConfigError, match=f"--period {label} has not ended: its last day is {last}, and today is"
    ):
        slice_named(period(every), label, TODAY)
    after = date.fromisoformat(last) + timedelta(days=1)
    assert slice_named(period(every), label, after).label == label


def test_a_value_is_named_by_one_spelling():
    assert slice_named(period("value", "site"), " 007.0 ", TODAY) == Slice("site", "7")
    assert slice_named(period("value", "site"), "Kyiv", TODAY) == Slice("site", "Kyiv")
    assert slice_named(period("value", "site"), "2099-01", TODAY).start is None


@pytest.mark.parametrize("label", ["", "  ", "a\nb", "x" * 201])
def test_a_value_that_can_not_be_shown_is_refused(label):
    with pytest.raises(
        ConfigError, match="--period must be one value of the column site, a text of 1 to 200"
    ):
        slice_named(period("value", "site"), label, TODAY)
