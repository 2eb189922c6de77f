"""Every type of column becomes what its declaration says, and what can't be is refused in words."""

import pyarrow as pa
import pytest

from dpsynth.columns.column import Column
from dpsynth.columns.public_schema import public_schema
from dpsynth.config import compiled, from_mapping
from dpsynth.errors import ConfigError

YEAR = "{type: date, min: 2020-01-01, max: 2020-12-31"
CODE = r"{type: text, pattern: '\d{5}'"
DIGIT = "{type: integer, min: 0, max: 9, format: "


def spec_of(**columns):
    return from_mapping(
        {"release": "r", "source": {"path": "t.csv"}, "privacy": {"epsilon": 1}, "columns": columns}
    )


def encoded(column, *cells):
    return column.encode(pa.array(cells, pa.string())).tolist()


@pytest.mark.parametrize(
    ("declared", "cells", "first", "last"),
    [
        ("{type: date, min: 2020-01-01, max: 2026-12-31}", 84, "2020-01", "2026-12"),
        ("{type: date, min: 2020-01-01, max: 2020-04-30}", 121, "2020-01-01", "2020-04-30"),
        ("{type: date, min: 1900-01-01, max: 2020-12-31}", 121, "1900", "2020"),
        ("{type: date, min: 1000-01-01, max: 2020-12-31}", 1021, "1000", "2020"),
        (YEAR + ", format: '%m/%Y'}", 12, "2020-01", "2020-12"),
        (YEAR + ", unit: quarter}", 4, "2020-Q1", "2020-Q4"),
        ("{type: datetime, min: 2020-01-01, max: 2020-01-02}", 48, "2020-01-01T00", "2020-01-02T23"),
        (
            "{type: datetime, min: 2020-01-01T08:00, max: 2020-01-01T09:00}",
            61,
            "2020-01-01T08:00",
            "2020-01-01T09:00",
        ),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-02, format: '%Y-%m-%d %H'}",
            48,
            "2020-01-01T00",
            "2020-01-02T23",
        ),
        ("{type: time}", 24, "00:00 to 00:59", "23:00 to 23:59"),
        ("{type: time, unit: minute, format: '%-I:%M %p'}", 1440, "00:00", "23:59"),
        ("{type: duration, min: PT0S, max: PT90S}", 91, "PT0S", "PT1M30S"),
        ("{type: duration, min: 0, max: 600, format: minutes}", 11, "0 to 59", "600"),
        (
            "{type: duration, min: '0:00', max: '23:59', format: HH:MM}",
            24,
            "00:00 to 00:59",
            "23:00 to 23:59",
        ),
        (CODE + r", keep: 2}", 100, "00***", "99***"),
        (r"{type: text, pattern: 'FR-[A-C]\d', keep: 4}", 3, "FR-A*", "FR-C*"),
        (CODE + r", prefixes: [75, '069']}", 2, "75***", "069**"),
        ("{type: ordered, values: [low, mid, high]}", 3, "low", "high"),
        (DIGIT + "{width: 3}}", 10, "0", "9"),
    ],
)
def test_the_cells_of_each_type(load_column, declared, cells, first, last):
    labels = load_column(declared).codec.labels
    assert (len(labels), labels[0], labels[-1]) == (cells, first, last)


@pytest.mark.parametrize(
    ("declared", "label"),
    [
        (YEAR + ", unit: month, default: 2020-03-05, missing: false}", "2020-03"),
        (YEAR + ", unit: month, format: '%Y-%d-%m', default: 2020-03-05, missing: false}", "2020-03"),
        (YEAR + ", unit: month, missing: false}", "2020-01"),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-02, default: 2020-01-02T05:30, missing: false}",
            "2020-01-02T05",
        ),
        ("{type: time, default: '13:45', format: '%-I:%M %p', missing: false}", "13:00 to 13:59"),
        (
            "{type: duration, min: 0, max: 90, unit: hour, format: minutes, default: 75, missing: false}",
            "60 to 90",
        ),
        (r"{type: text, pattern: '\d{3}', keep: 1, default: '512', missing: false}", "5**"),
        ("{type: ordered, values: [a, b], default: b, missing: false}", "b"),
        (
            "{type: number, min: 0, max: 4, bins: 2, format: {decimal: ','}, default: 2.5, missing: false}",
            "[2, 4]",
        ),
    ],
)
def test_unusable_cells_become_the_default_whatever_the_format(load_column, declared, label):
    column = load_column(declared)
    (code,) = encoded(column, "unusable")
    assert column.labels[code] == label


def test_markers_told_apart_are_declared_once_and_have_places(load_column):
    column = load_column("{type: integer, min: 0, max: 3, missing: {distinct: [refused, -9], markers: '?'}}")
    assert (column.missing, column.distinct, column.markers) == (True, ("refused", "-9"), ("?",))
    assert encoded(column, "?", "refused", "-9", "") == [4, 5, 6, 4]


AGE = {"type": "integer", "min": 0, "max": 9}


def test_only_what_is_read_is_modelled_and_the_table_has_what_is_declared():
    spec = spec_of(
        id={"type": "identifier"},
        key={"type": "identifier", "surrogates": True},
        age=AGE,
        older={"type": "derived", "formula": "age + 1"},
    )
    assert [c.name for c in compiled(spec).columns] == ["age"]
    assert [part.name for part in compiled(spec).layout.parts] == ["key", "age", "older"]
    assert compiled(spec).workload.columns == ("age",)
    schema = public_schema(compiled(spec).layout)
    assert schema[0] == {"name": "key", "type": "integer", "made_up_from": "1"}
    assert schema[2] == {
        "name": "older", "type": "integer", "computed_from": "age + 1", "missing_is_written": "",
    }  # fmt: skip


def test_what_is_not_read_changes_no_question_and_so_no_fingerprint():
    plain = spec_of(age=AGE)
    more = spec_of(id={"type": "identifier"}, age=AGE, older={"type": "derived", "formula": "age + 1"})
    assert compiled(plain).fingerprint == compiled(more).fingerprint
    assert (
        compiled(plain).fingerprint
        != compiled(spec_of(age={**AGE, "missing": {"distinct": ["?"]}})).fingerprint
    )


def test_a_table_of_nothing_that_is_read_is_refused():
    with pytest.raises(ConfigError, match="at least one that is read from the source"):
        spec_of(id={"type": "identifier", "surrogates": True})


def test_the_persons_column_may_be_an_identifier_without_a_word(load_with):
    person = ("epsilon: 1.0", "epsilon: 1.0, unit: {column: age, max_rows: 2}")
    (warned,) = load_with(replace=person).warnings()
    assert "says whose row it is" in warned
    spec = spec_of(age={"type": "identifier"}, sex={"type": "boolean"})
    assert spec.warnings() == ()


def test_a_name_that_markers_told_apart_need_is_refused():
    with pytest.raises(ConfigError, match=r"the column for the missing markers of 'age'; rename it"):
        spec_of(**{"age": {**AGE, "missing": {"distinct": ["?"]}}, "age (missing)": {"type": "boolean"}})


def test_the_public_schema_says_what_each_type_needs_to_be_read():
    facts = {
        "d": ({"type": "date", "min": "2020-01-01", "max": "2020-12-31", "format": "%d/%m/%Y", "unit": "day"},
              {"type": "date", "unit": "day", "min": "2020-01-01", "format": "%d/%m/%Y"}),
        "t": ({"type": "time"}, {"type": "time", "unit": "hour", "format": "%H:%M:%S"}),
        "u": ({"type": "duration", "min": 0, "max": 9, "format": "days"},
              {"type": "duration", "unit": "day", "min": "0", "max": "9", "means_in": "days"}),
        "o": ({"type": "ordered", "values": ["a", "b"]}, {"type": "text", "ordered": True}),
        "c": ({"type": "category", "values": ["a", "b"]}, {"type": "text", "ordered": False}),
        "z": ({"type": "text", "pattern": "[01]{2}", "keep": 1}, {"type": "text", "pattern": "[01]{2}"}),
        "n": ({**AGE, "format": {"width": 3}}, {"type": "integer", "format": {"width": 3}}),
    }  # fmt: skip
    layout = compiled(spec_of(**{name: declared for name, (declared, _) in facts.items()})).layout
    schema = {column["name"]: column for column in public_schema(layout)}
    for name, (_, expected) in facts.items():
        assert expected.items() <= schema[name].items()


def test_columns_that_are_equal_in_the_config_are_equal_values():
    one, two = (
        compiled(spec_of(d={"type": "date", "min": "2020-01-01", "max": "2020-12-31"})).columns for _ in "12"
    )
    assert one == two and isinstance(one[0], Column)
