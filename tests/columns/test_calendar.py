"""Dates, datetimes and times of day: read and written as strptime would, drawn evenly from their unit."""

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsynth.columns.calendar import CalendarCodec, unit_number
from dpsynth.columns.column import Column
from dpsynth.columns.moment_formats import ISO, MomentFormat
from tests.columns.declared import DATE_FORMATS, TIME_FORMATS, column
from tests.examples import examples
from tests.thinned import some

QUICK = examples(400)
MINUTES = "%Y-%m-%d %H:%M"
DATETIME_FORMATS = [f"{day} {clock}" for day in DATE_FORMATS if "d" in day for clock in TIME_FORMATS]


def read(kind, pattern, *texts):
    """The moments of texts as Python has them, None where there is none."""
    found = MomentFormat(kind, pattern).read(pa.array(texts, pa.string())).astype("M8[us]")
    return [None if np.isnat(m) else m.item() for m in found]


@given(st.sampled_from(DATETIME_FORMATS), st.datetimes(dt.datetime(1969, 1, 1), dt.datetime(2068, 12, 31)))
@QUICK
def test_moments_are_written_and_read_as_python_does(pattern, moment):
    expected = moment.strftime(pattern)
    form = MomentFormat("datetime", pattern)
    cut = np.array([moment], dtype="M8[us]").astype(f"M8[{form.grain}]")
    assert form.write(cut).to_pylist() == [expected]
    assert form.read(pa.array([expected]))[0] == cut[0]
    assert cut[0].astype("M8[us]").item() == dt.datetime.strptime(expected, pattern.replace("%-", "%"))


@given(
    st.sampled_from(["%Y-%m-%d", "%d/%m/%Y", "%-m/%-d/%Y", "%m/%Y", "%Y"]),
    st.text("0123456789/-.", min_size=4, max_size=11),
    st.dates(dt.date(1969, 1, 1), dt.date(2068, 12, 31)),
    st.integers(0, 10),
    st.sampled_from("0123456789/-."),
)
@example("%d/%m/%Y", "29/02/2100", dt.date(2000, 1, 1), 0, "0")
@QUICK
def test_a_text_is_a_date_just_where_python_takes_it_for_one(pattern, text, day, spot, letter):
    written = day.strftime(pattern)
    changed = written[:spot] + letter + written[spot + 1 :]
    for candidate in (text, changed):
        try:
            expected = dt.datetime.strptime(candidate, pattern.replace("%-", "%"))
        except ValueError:
            expected = _iso(candidate)
        grain = MomentFormat("date", pattern).grain
        cut = (
            None
            if expected is None
            else np.datetime64(expected, "us").astype(f"M8[{grain}]").astype("M8[us]")
        )
        assert read("date", pattern, candidate) == [None if cut is None else cut.item()]


def _iso(text):
    """What a text that does not fit the pattern may still be."""
    shaped = re.fullmatch(r"\d{4}-\d\d-\d\d", text)
    try:
        return dt.datetime.fromisoformat(text) if shaped else None
    except ValueError:
        return None


def test_a_reader_without_a_calendar_would_be_noticed(monkeypatch):
    """The planted fault: every month has 31 days."""
    assert read("date", "%d/%m/%Y", "30/02/2020", "31/04/2020", "29/02/2020") == [
        None,
        None,
        dt.datetime(2020, 2, 29),
    ]
    fields = MomentFormat._of_fields

    def careless(self, found):
        moments = fields(self, found)
        day = found.field(0).cast(pa.int64()).to_numpy()
        moments[np.isnat(moments) & (day <= 31)] = np.datetime64("2020-03-01")
        return moments

    monkeypatch.setattr(MomentFormat, "_of_fields", careless)
    assert read("date", "%d/%m/%Y", "30/02/2020") != [None]


@pytest.mark.parametrize(
    ("kind", "pattern", "text", "expected"),
    [
        ("date", "%-m/%-d/%Y", "1/5/2020", dt.datetime(2020, 1, 5)),
        ("date", "%m/%d/%Y", "1/5/2020", dt.datetime(2020, 1, 5)),
        ("date", "%d %b %Y", "05 jan 2020", dt.datetime(2020, 1, 5)),
        ("date", "%d %B %Y", "5 JANUARY 2020", dt.datetime(2020, 1, 5)),
        ("date", "%d %b %Y", "05 Foo 2020", None),
        ("date", "%Y%m%d", "2020015", None),
        ("date", "%d.%m.%y", "05.01.68", dt.datetime(2068, 1, 5)),
        ("date", "%d.%m.%y", "05.01.69", dt.datetime(1969, 1, 5)),
        ("date", "%m/%Y", "01/2020", dt.datetime(2020, 1, 1)),
        ("date", "%d/%m/%Y", "2020-01-05", dt.datetime(2020, 1, 5)),
        ("date", "%d/%m/%Y", "2020-01-05 13:45:00.000000000", dt.datetime(2020, 1, 5)),
        ("date", "%Y-%d-%m", "2020-05-01", dt.datetime(2020, 1, 5)),
        ("date", "%Y-%d-%m", "2020-01-15", None),
        ("datetime", ISO["datetime"], "2020-01-05", dt.datetime(2020, 1, 5)),
        ("datetime", ISO["datetime"], "2020-01-05 13:45", dt.datetime(2020, 1, 5, 13, 45)),
        ("datetime", ISO["datetime"], "2020-01-05T13:45:10.9Z", dt.datetime(2020, 1, 5, 13, 45, 10)),
        ("datetime", ISO["datetime"], "2020-01-05T13:45:10+02:00", dt.datetime(2020, 1, 5, 13, 45, 10)),
        ("datetime", ISO["datetime"], "2020-01-05T24:00:00", None),
        ("datetime", "%-m/%-d/%Y %-I:%M %p", "1/5/2020 12:05 am", dt.datetime(2020, 1, 5, 0, 5)),
        ("datetime", "%-m/%-d/%Y %-I:%M %p", "1/5/2020 13:05 PM", None),
        ("datetime", f"{MINUTES}:%S.%f", "2020-01-05 0:00:00.5", dt.datetime(2020, 1, 5, 0, 0, 0, 500000)),
        ("time", "%H:%M", "7:05", dt.datetime(1970, 1, 1, 7, 5)),
        ("time", "%H:%M", "07:05:59", dt.datetime(1970, 1, 1, 7, 5)),
        ("time", "%I%p", "12AM", dt.datetime(1970, 1, 1)),
        ("time", ISO["time"], "23:59:60", None),
    ],
)  # fmt: skip
def test_what_is_read(kind, pattern, text, expected):
    assert read(kind, pattern, text) == [expected]


@pytest.mark.parametrize(
    ("kind", "pattern", "words"),
    [
        ("date", "%d/%m", "must have %Y"),
        ("date", "%Y-%d", "must have %Y"),
        ("date", "%Y-%m-%d %H", "must have %Y"),
        ("date", "", "must have %Y"),
        ("date", "%Y-%m-%q", "has the code %q; those known are"),
        ("date", "%Y-%m-%", "has the code %"),
        ("date", "20%y-%m-%d", "must not hold a digit of its own"),
        ("date", "%Y-%m-%d %b", "says something twice"),
        ("date", "%-m%d%Y", "must have something between %-m and %d"),
        ("date", "%d%b%B%Y", "says something twice"),
        ("datetime", "%Y-%m-%d", "at least, and no gap"),
        ("datetime", "%Y-%m-%d %H:%S", "at least, and no gap"),
        ("time", "%M:%S", "must have %H at least"),
        ("time", "%I:%M", "must have %I (hour of 12) and %p"),
        ("time", "%H:%M %p", "%H is the hour of 24"),
    ],
)
def test_a_format_that_cant_say_a_moment_in_one_way_is_refused(kind, pattern, words):
    with pytest.raises(ValueError, match=r".") as caught:
        MomentFormat(kind, pattern)
    assert words in str(caught.value)


def test_dates_outside_go_to_the_first_and_last_unit():
    made = column(type="date", min="2020-02-10", max="2020-04-20", unit="month", missing=False)
    cells = ["0001-01-01", "2020-02-01", "2020-02-29", "2020-03-01", "2020-04-30", "9999-12-31", "never"]
    assert made.encode(pa.array(cells)).tolist() == [0, 0, 0, 1, 2, 2, 0]


@pytest.mark.parametrize(
    ("unit", "labels"),
    [
        ("year", ("2019", "2020")),
        ("quarter", ("2019-Q4", "2020-Q1")),
        ("month", ("2019-12", "2020-01")),
        ("week", ("2020-W01", "2020-W02")),
        ("day", ("2019-12-30", "2019-12-31", "2020-01-01")),
    ],
)
def test_units_are_labelled_as_iso_8601_does_and_a_week_begins_on_monday(unit, labels):
    made = column(type="date", min="2019-12-30", max="2020-01-06", unit=unit)
    assert made.codec.labels[: len(labels)] == labels


@given(st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)))
@QUICK
def test_a_week_holds_the_days_from_monday_to_sunday(day):
    monday = day - dt.timedelta(day.weekday())
    week = [np.datetime64(monday) + i for i in range(-1, 8)]
    numbers = unit_number(np.array(week, dtype="M8[D]"), "week")
    assert len(set(numbers[1:8])) == 1 and numbers[0] + 1 == numbers[1] == numbers[8] - 1


@pytest.mark.parametrize(
    ("declared", "sides"),
    some([
        ({"type": "date", "min": "2020-02-01", "max": "2020-03-31", "unit": "month"}, (29, 31)),
        ({"type": "date", "min": "2020-01-01", "max": "2021-12-31", "unit": "year", "format": "%Y%m"},
         (12, 12)),
        ({"type": "date", "min": "2020-02-20", "max": "2020-03-10", "unit": "month"}, (10, 10)),
        ({"type": "datetime", "min": "2020-01-01T10:30", "max": "2020-01-01T11:29:59"}, (60,) * 60),
        ({"type": "datetime", "min": "2020-01-01", "max": "2020-01-02", "unit": "day", "format": MINUTES},
         (1440, 1440)),
        ({"type": "time", "format": "%H:%M"}, (60,) * 24),
        ({"type": "duration", "min": "PT0S", "max": "PT2H", "unit": "hour"}, (3600, 3600, 1)),
    ], 3),
)  # fmt: skip
def test_each_moment_of_a_unit_is_drawn_as_often_as_any_other(declared, sides):
    """A chi-squared test; that it rejects is shown by leaving out one moment in ten."""
    made = column(**declared)
    assert len(made.codec.labels) == len(sides)
    for code, size in enumerate(sides[:3]):
        draws = made.decode(np.full(40 * size, code), np.random.default_rng(code)).to_pylist()
        _, seen = np.unique(np.array(draws, dtype=object).astype(str), return_counts=True)
        assert uneven(seen, size, 40 * size) < 5
        if size >= 10:
            assert uneven(seen[: -(size // 10)], size, int(seen[: -(size // 10)].sum())) > 5


def uneven(seen, sides, draws):
    """How many standard deviations the chi-squared statistic is above its mean."""
    expected = draws / sides
    statistic = np.square(seen - expected).sum() / expected + (sides - len(seen)) * expected
    return (statistic - (sides - 1)) / np.sqrt(2 * max(sides - 1, 1))


def test_dates_and_times_have_arrows_own_types():
    for kind, more, arrow in (
        ("date", {"min": "2020-01-01", "max": "2020-12-31"}, pa.date32()),
        ("datetime", {"min": "2020-01-01", "max": "2020-12-31"}, pa.timestamp("us")),
        ("time", {}, pa.time64("us")),
        ("duration", {"min": "PT0S", "max": "PT9H"}, pa.duration("s")),
    ):
        made = column(type=kind, **more)
        assert made.decode(np.array([0, made.size - 1]), np.random.default_rng(0)).type == arrow
        assert made.decode(np.array([], dtype=np.int64), np.random.default_rng(0)).type == arrow


def test_a_unit_finer_than_the_format_is_refused():
    form = MomentFormat("date", "%m/%Y")
    with pytest.raises(ValueError, match="finer"):
        CalendarCodec(form, "day", 0, 10)
    assert Column("x", CalendarCodec(form, "quarter", 0, 10)).size == 5
