"""A look guesses types and bounds, rounds and withholds, and is no part of a release."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dpsynth.columns.kinds import ColumnSpec
from dpsynth.wings.owner.assess import column_guesses as looking
from dpsynth.wings.owner.assess.column_guesses import profile
from dpsynth.wings.owner.assess.value_guesses import default_unit, with_one_unit
from dpsynth.wings.owner.starter import Draft, Sketch, guessed
from dpsynth.wings.owner.starter.sketch import Unit
from dpsynth.wings.owner.starter.writing import values_of
from tests.examples import examples
from tests.wings.owner.starter.reviewing import filled

GRAMMAR = TypeAdapter(ColumnSpec)


def guess(*cells, times=1, batches=1):
    texts = pa.array([str(c) if c is not None else None for _ in range(times) for c in cells], pa.string())
    size = -(-len(texts) // batches)
    parts = [{"a": texts.slice(i * size, size)} for i in range(batches)]
    found = dict(profile(parts, ["a"]).columns["a"])
    # The cells here are never blank, unless a test says so.
    if found.get("missing") is False:
        del found["missing"]
    return found


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
        (["1.0", "0.0"], {"type": "boolean", "values": ["0.0", "1.0"]}),
        (["True", "False"], {"type": "boolean", "values": ["False", "True"]}),
        (["Y", "N"], {"type": "boolean", "values": ["N", "Y"]}),
        (["2020-02-29", "2021-12-01"], {"type": "date", "min": "2020-01-01", "max": "2021-12-31"}),
        (
            ["31.12.2020", "01.02.1999"],
            {"type": "date", "min": "1999-01-01", "max": "2020-12-31", "format": "%d.%m.%Y"},
        ),
        (["01/02/2020", "03/04/2020"], {"type": "date", "min": None, "max": None, "format": None}),
        (
            ["2020-01-01 10:00:00.25", "2020-01-02 11:00:00.000"],
            {
                "type": "datetime",
                "min": "2020-01-01",
                "max": "2020-12-31",
                "format": "%Y-%m-%d %H:%M:%S",
                "parts": ["hour", "weekday"],
            },
        ),
        (["10:30", "23:59"], {"type": "time", "format": "%H:%M"}),
        (["1:05 PM", "11:59 AM"], {"type": "time", "format": "%I:%M %p"}),
        (
            [f"2013-{month:02}-01T{month:02}:00:00Z" for month in range(1, 13)],
            {
                "type": "datetime",
                "min": "2013-01-01",
                "max": "2013-12-31",
                "format": "%Y-%m-%dT%H:00:00Z",
                "parts": ["hour", "weekday"],
            },
        ),
        (
            [f"2013-{month:02}-{month:02} 00:00:00" for month in range(1, 13)],
            {"type": "date", "min": "2013-01-01", "max": "2013-12-31", "format": "%Y-%m-%d 00:00:00"},
        ),
        (
            [f"{hour:02}:{minute}" for hour in range(24) for minute in ("00", "15", "45")],
            {"type": "time", "format": "%H:%M", "step": "15 minutes"},
        ),
        (
            [f"2013-01-{day:02} 10:{7 * day % 12 * 5:02}" for day in range(1, 29)],
            {
                "type": "datetime",
                "min": "2013-01-01",
                "max": "2013-12-31",
                "format": "%Y-%m-%d %H:%M",
                "parts": ["hour", "weekday"],
                "step": "5 minutes",
            },
        ),
        (
            ["Jan-2018", "Mar-2019"],
            {"type": "date", "min": "2018-01-01", "max": "2019-12-31", "format": "%b-%Y"},
        ),
        (
            ["31.01.24", "01.12.23"],
            {"type": "date", "min": "2023-01-01", "max": "2024-12-31", "format": "%d.%m.%y"},
        ),
        (["31.01.45", "01.12.83"], {"type": "date", "min": None, "max": None, "format": None}),
        (["01/02/24", "02/01/23"], {"type": "date", "min": None, "max": None, "format": None}),
        (
            ["20240131", "20231201"],
            {"type": "date", "min": "2023-01-01", "max": "2024-12-31", "format": "%Y%m%d"},
        ),
        (
            ["1.234,56 EUR", "0,50 EUR"],
            {
                "type": "number",
                "min": Decimal(0),
                "max": Decimal(2000),
                "decimals": 2,
                "format": {"thousands": ".", "suffix": " EUR", "decimal": ","},
            },
        ),
        (
            ["$1,234", "$99", "$5"],
            {"type": "integer", "min": 0, "max": 2000, "format": {"thousands": ",", "prefix": "$"}},
        ),
        (["7%", "93%", "5%"], {"type": "integer", "min": 0, "max": 90 + 10, "format": {"suffix": "%"}}),
        (
            ["0,5", "12,75"],
            {
                "type": "number",
                "min": Decimal(0),
                "max": Decimal(20),
                "decimals": 2,
                "format": {"decimal": ","},
            },
        ),
        (
            ["2020-03-28T10:30:00+01:00", "2020-03-30T10:05:07+0200", "2021-01-02T03:04:05.6+00:00"],
            {"type": "datetime", "min": "2020-01-01", "max": "2021-12-31", "parts": ["hour", "weekday"]},
        ),
        (["PT15M", "P1DT2H", "PT90S"], {"type": "duration", "min": "PT0S", "max": "P1DT6H"}),
        (["-P3D", "P40D", "PT1H"], {"type": "duration", "min": "-P10D", "max": "P40D"}),
        (["PT30S", "PT7S"], {"type": "duration", "min": "PT0S", "max": "PT30S"}),
        (
            ["0:15:00", "31:02:10"],
            {"type": "duration", "min": "00:00:00", "max": "40:00:00", "format": "HH:MM:SS"},
        ),
        (["b", "a", "c"], {"type": "category", "values": ["a", "b", "c"]}),
        (["", None, "NA"], {"type": None}),
    ],
)
def test_a_column_is_guessed_from_its_cells(cells, expected):
    found = guess(*cells, times=10)
    assert found == expected
    if None not in expected.values():
        GRAMMAR.validate_python(found)


def test_a_step_is_guessed_of_ten_different_times_that_all_keep_to_it():
    times = [f"{hour:02}:{minute:02}" for hour in range(3) for minute in (0, 10, 20, 50)]
    assert guess(*times, times=10)["step"] == "10 minutes"
    assert "step" not in guess(*times, "11:37", times=10)
    assert "step" not in guess(*times[:9], times=10)


def units(**spans):
    """The units that are written for dates from one year to another."""
    guesses = {
        name: {"type": "date", "min": f"{a}-01-01", "max": f"{b}-12-31"} for name, (a, b) in spans.items()
    }
    return {name: guess["unit"] for name, guess in with_one_unit(guesses).items() if "unit" in guess}


def test_dates_of_periods_much_alike_get_one_unit():
    """Left out, the unit is that of one's own period: a week of two years, a month of three."""
    assert units(admitted=(2020, 2021), discharged=(2020, 2022)) == {"admitted": "month"}
    assert units(a=(2012, 2021), b=(2012, 2022)) == {"a": "quarter"}
    assert units(admitted=(2020, 2021), discharged=(2020, 2021)) == {}
    assert units(born=(1920, 2021), admitted=(2020, 2021)) == {}
    assert units(a=(2000, 2001), b=(2010, 2012)) == {}


def test_the_unit_that_a_guess_counts_on_is_the_one_of_the_grammar():
    for years in (1, 2, 3, 10, 11, 32, 33, 120):
        guess = {"type": "date", "min": "1900-01-01", "max": f"{1899 + years}-12-31"}
        declared = GRAMMAR.validate_python(guess)
        assert default_unit(guess, 1900, 1900 + years) == declared.codec().unit


def test_usual_marks_of_missing_cells_are_told():
    assert guess(1, 2, "?", times=10)["missing"] == "?"
    assert guess("a", "b", "NA", "null", times=10)["missing"] == ["NA", "null"]
    assert "missing" not in guess(1, 2, "", None, times=10)


def test_values_that_few_rows_have_are_not_listed_but_counted_as_other():
    often = [value for value in ("a", "b", "c") for _ in range(10)]
    assert guess(*often, *["rare"] * 9) == {"type": "category", "values": ["a", "b", "c"], "other": "other"}
    assert guess(*often, *["rare"] * 10) == {"type": "category", "values": ["a", "b", "c", "rare"]}
    assert guess(*often, *["Other"] * 10, "rare")["other"] == "Other"
    assert guess("x", "y", "z") == {"type": "category", "values": None}


def test_codes_of_which_there_are_up_to_some_hundreds_are_listed():
    airports = [f"{a}{b}X" for a in "ABCDEFGHIJ" for b in "ABCDEFGHIJ"]
    assert guess(*airports, times=10)["values"] == airports


def test_of_many_values_those_of_many_rows_are_found_by_the_release_and_free_text_is_left_out():
    rare = [f"v{'x' * (i % 7)}{i}" for i in range(300)]
    assert guess(*rare, *rare) == {"type": "identifier"}
    assert guess(*rare, *["often"] * 400) == {"type": "category", "open": True}
    codes = [f"{a}{b}-{i}" for i in range(10) for a in "ABCDEF" for b in "ABCDEF"]
    pattern = {"type": "text", "pattern": "[A-Z][A-Z]\\-[0-9]", "levels": [1, 2, 3, 4]}
    assert guess(*codes, times=2) == pattern


def test_a_column_without_an_empty_cell_is_declared_so():
    def missing(*cells):
        return profile([{"a": pa.array(cells, pa.string())}], ["a"]).columns["a"].get("missing")

    assert missing("1", "2", "3") is False
    assert missing("1", "2", None) is None and missing("1", "2", " ") is None
    assert missing("1", "2", "?") == "?"


def test_numbers_of_which_there_are_few_are_listed():
    points = [0, "3.258096", "3.931826", "4.564348"]
    assert guess(*points, times=30) == {"type": "ordered", "values": [str(point) for point in points]}
    assert guess(0, 100, 250, 1000, times=30) == {"type": "ordered", "values": [0, 100, 250, 1000]}
    # Each number between two of them would be a value that no row has, too.
    assert guess(36, 60, times=30) == {"type": "ordered", "values": [36, 60]}
    assert guess(0, 25, 50, 95, 100, times=30) == {"type": "ordered", "values": [0, 25, 50, 95, 100]}
    # Of those between which there are no gaps, each has a bin, or the tree finds the ones that matter.
    assert guess(*range(0, 180, 3), times=30)["type"] == "integer"
    # A rare value would be missing, or would give somebody away.
    assert guess(*points, *(f"1.{i}" for i in range(100, 140)), times=10) | {"decimals": 0} == {
        "type": "number",
        "min": 0,
        "max": 5,
        "decimals": 0,
    }


def test_numbers_of_few_values_are_listed_as_their_cells_write_them():
    assert guess("0 %", "2,5 %", "5 %", times=30) == {"type": "ordered", "values": ["0 %", "2,5 %", "5 %"]}
    assert guess("$10", "$99", "$500", times=30)["values"] == ["$10", "$99", "$500"]
    # Only one of two spellings would be read.
    assert guess("0,5", "0,50", "2,5", "9,5", times=30)["type"] == "number"


@pytest.mark.parametrize("sign", [".", ","])
def test_numbers_keep_the_decimals_of_their_cells(sign):
    cells = [f"{number / 10:.1f}".replace(".", sign) for number in range(38, 95)]
    found = guess(*cells, times=50)
    assert (found["type"], found["decimals"]) == ("number", 1) and "edges" not in found
    column = GRAMMAR.validate_python(found).part("a")
    assert column.codec.text(column.codec.parsed(pa.array(["6" + sign + "1"]))).to_pylist() == [
        "6" + sign + "1"
    ]
    written = column.text(column.decode(np.arange(len(column.codec.labels)), np.random.default_rng(0)))
    assert set(cells) <= set(written.to_pylist())


def test_none_is_a_value_of_names_and_a_marker_among_numbers():
    degrees = {"type": "category", "values": ["BA", "MA", "none"]}
    assert guess("BA", "MA", "none", times=10) == degrees
    assert guess("BA", "MA", "none", "NA", times=10) == {**degrees, "missing": "NA"}
    assert guess(1, 2, 30, "none", times=10)["missing"] == "none"


def test_bins_are_found_by_the_release_where_there_are_rows_for_it():
    assert "edges" not in guess(*range(900))
    assert guess(*range(0, 5000, 7), times=2)["edges"] == "tree"
    assert "edges" not in guess(*range(100), times=20)


@pytest.mark.parametrize(
    ("name", "cells", "ends"),
    [
        ("month", range(1, 13), (1, 12)),
        ("birth_month", (3, 4), (1, 12)),
        ("DayOfWeek", range(7), (0, 6)),
        ("weekday", (1, 7), (1, 7)),
        ("hour", (5, 23), (0, 23)),
        ("hour", (5, 24), (0, 30)),
        ("months", (3, 4), (3, 4)),
        ("x", range(1, 13), (0, 20)),
    ],
)
def test_a_part_of_the_calendar_has_the_calendars_ends(name, cells, ends):
    texts = pa.array([str(cell) for cell in cells for _ in range(10)])
    found = profile([{name: texts}], [name]).columns[name]
    assert (found["min"], found["max"]) == ends


def test_clock_times_without_a_sign_between_hours_and_minutes_are_read_as_times():
    minutes = [60 * (i % 24) + 7 * i % 60 for i in range(400)]
    times = [m // 60 * 100 + m % 60 for m in minutes]
    assert guess(*times, "2400.0") == {"type": "time", "format": "hhmm"}
    assert guess(*times, 1666)["type"] == "integer"
    assert guess(*range(0, 2400, 100), times=10)["type"] != "time"


def test_persons_are_seen_where_their_rows_stand_together_or_the_name_says_so():
    def unit(*columns, **names):
        table = {name: pa.array(list(map(str, cells))) for name, cells in names.items()}
        return profile([table], list(table)).unit

    visits = [person for person in range(1000, 1200) for _ in range(1 + person % 5)]
    shuffled = list(np.random.default_rng(0).permutation(visits))
    assert unit(zper=visits, x=range(len(visits))) == Unit("zper", 5)
    assert unit(zper=shuffled) is None
    assert unit(patient_id=shuffled) == Unit("patient_id", 5)
    assert unit(patient_id=range(500)) is None
    # Sorted amounts stand together too, but some are far more frequent than others.
    amounts = sorted([1000] * 3000 + [100 + 7 * (i % 300) for i in range(900)])
    assert unit(price=amounts) is None
    days = [f"2020-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(300) for _ in range(9)]
    assert unit(day=days) is None


def test_the_persons_column_is_left_out():
    visits = pa.array([str(person) for person in range(1000, 1200) for _ in range(4)])
    assert profile([{"zper": visits}], ["zper"]).columns["zper"] == {"type": "identifier"}


def test_cells_that_never_repeat_are_identifiers():
    assert guess(*(f"person {i}" for i in range(100)))["type"] == "identifier"
    assert guess(*range(1000, 1100))["type"] == "identifier"
    assert guess(*range(0, 10**6, 10**4))["type"] == "integer"


def test_codes_of_digits_keep_their_leading_zeros():
    codes = [f"{i:05}" for i in range(0, 90000, 89)]
    pattern = {"type": "text", "pattern": "[0-9][0-9][0-9][0-9][0-9]", "levels": [1, 2, 3, 4, 5]}
    assert guess(*codes, times=2) == pattern
    assert guess(*(f"{i:03}" for i in range(5)), times=20)["type"] == "category"


def test_a_table_of_many_batches_is_guessed_as_a_whole(monkeypatch):
    cells = [*range(5000), "x"]
    whole = guess(*cells, times=2)
    monkeypatch.setattr(looking, "_MOST_KNOWN", 50)
    assert whole["type"] == guess(*cells, times=2, batches=7)["type"] == "identifier"
    far = guess(*range(5000), *[10**6, -(10**6)] * 10, times=2, batches=7)
    assert far == {"type": "integer", "min": -(10**6), "max": 10**6, "edges": "tree"}


@pytest.mark.parametrize("low", [-(10**12), -17, 0, 3, 99, 10**6 + 1])
@pytest.mark.parametrize("span", [0, 1, 7, 10**3, 10**9])
def test_bounds_contain_what_was_seen_and_are_not_it(low, span):
    found = guess(low, low + span, times=10)
    if found["type"] == "integer":
        assert found["min"] <= low <= low + span <= found["max"]
        assert abs(found["min"]) < 100 or found["min"] % 10 == 0


def test_what_is_found_in_a_column_does_not_depend_on_the_others():
    batch = {"a": pa.array(["1", "2"]), "b": pa.array(["x", "y"])}
    assert profile([batch], ["a"]).columns == {"a": profile([batch], ["a", "b"]).columns["a"]}


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
    texts = pa.array([cell for cell in cells for _ in range(times)], pa.string())
    columns = values_of(guessed(stub, profile([{"a": texts}], ["a"])))
    assert len(filled(columns).columns) == len(columns)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_a_tally_is_the_same_however_a_table_is_cut_into_batches(monkeypatch, size):
    cells = [("b", "b", "", "a ", None, None, "c", "c", "c", "b")[i % 10] for i in range(30)]
    tally = looking._Tally("a")
    for start in range(0, 30, size):
        tally.add(pa.array(cells[start : start + size], pa.string()))
    assert tally.counts == {"b": 9, "a": 3, "c": 9} and tally.whole
    assert (tally.rows, tally.blanks) == (21, 9)
    # Blank cells repeat nothing; the last cell of ten is that of the first of the next.
    assert tally.repeats == 3 * (1 + 2) + 2


def test_only_decisive_texts_are_counted_beyond_the_first_ones(monkeypatch):
    monkeypatch.setattr(looking, "_MOST_KNOWN", 3)
    # As many at each end as bounds are rounded from.
    monkeypatch.setattr(looking, "FEWEST_UNITS", 1)
    tally = looking._Tally("a")
    tally.add(pa.array(["5", "6", "7"], pa.string()))
    assert tally.whole and len(tally.counts) == 3
    # The least and the largest number, the ends of the alphabet, the longest text and what is no number.
    tally.add(pa.array(["10", "50", "2.75", "9", "x", "NA", "51"], pa.string()))
    assert not tally.whole
    assert {*tally.counts} == {"5", "6", "7", "10", "2.75", "x", "51"}
    assert looking._decisive(pa.array([], pa.string())) == []
