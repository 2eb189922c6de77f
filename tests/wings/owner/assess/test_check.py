"""A check finds each way in which a column is not read, and the config that it proposes reads it."""

import gzip
import random
import re
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import parquet

from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.codec import Reading
from dpsynth.columns.column import Column
from dpsynth.config import from_mapping
from dpsynth.config.files import FileForm
from dpsynth.curator.rows.files import read_batches
from dpsynth.curator.units import person_codes, rows_kept
from dpsynth.errors import SourceError
from dpsynth.pipeline.inputs import inputs_of, names_to_read
from dpsynth.testing import load_table
from dpsynth.wings.owner.assess import checking
from dpsynth.wings.owner.assess.findings import column_findings
from dpsynth.wings.owner.assess.repairs import shape
from dpsynth.wings.owner.assess.row_sample import ColumnTally
from tests.examples import examples
from tests.thinned import some
from tests.wings.owner.assess.checked import Checks, about, csv_bytes
from tests.wings.owner.assess.repeaters import PERSONS
from tests.wings.owner.assess.repeaters import visits as visits_of

COUNTS = {"type": "integer", "min": 0, "max": 1_000_000, "edges": "equal"}
AMOUNTS = {"type": "number", "min": 0, "max": 1_000_000, "edges": "log", "decimals": 2}
DAYS = {"type": "date", "min": "2020-01-01", "max": "2026-12-31"}
GROUPS = {"type": "category", "values": ["F", "M"]}
CODES = {"type": "text", "pattern": "[0-9]{5}", "keep": 2}


def test_no_values_are_to_be_listed_in_a_column_whose_declaration_has_no_such_key():
    """As of a kind of column whose values are those of a public list, such as countries."""
    cells = pa.array(["FR"] * 30 + ["de"] * 20 + ["Spain"] * 12)
    for lists in (True, False):
        tally = ColumnTally(Column("country", CategoryCodec(("DE", "FR"))), lists)
        tally.add(cells)
        found = column_findings(tally)
        assert sum(finding.cells for finding in found) == 32
        assert any("values:" in finding.write for finding in found) == lists
    assert "12 cells with no declared value, counted as missing" in found[0].what


@pytest.fixture
def checks(tmp_path):
    return Checks(tmp_path)


PROBLEMS = {
    "values under other names": (
        GROUPS, ["Female"] * 30 + ["Male"] * 20,
        "50 cells with a value that is not declared: 'Female' (30), 'Male' (20)",
        {"values": ["Female", "Male"]},
    ),
    "one value that nobody thought of": (
        GROUPS, ["F"] * 30 + ["M"] * 20 + ["X"] * 12,
        "12 cells with a value that is not declared: 'X' (12)", {"values": ["F", "M", "X"]},
    ),
    "rare values besides": (
        GROUPS, ["F"] * 30 + ["M"] * 20 + ["X"] * 12 + ["y", "z"],
        "14 cells with a value that is not declared", {"values": ["F", "M", "X"], "other": "other"},
    ),
    "too many values to list": (
        GROUPS, [f"v{i % 50}" for i in range(1000)],
        "1,000 cells with a value that is not declared", {"open": True},
    ),
    "none as a degree": (
        {"type": "category", "values": ["BA", "MA"]}, ["BA"] * 30 + ["MA"] * 20 + ["none"] * 12,
        "12 cells with a value that is not declared: 'none' (12)", {"values": ["BA", "MA", "none"]},
    ),
    "a marker besides those declared": (
        {**COUNTS, "missing": "NA"}, ["1", "2", "NA", "?"], "1 cell with a word for nothing",
        {"missing": ["NA", "?"]},
    ),
    "a marker besides distinct ones": (
        {**COUNTS, "missing": {"distinct": "refused"}}, ["1", "2", "refused", "?"], "a word for nothing",
        {"missing": {"distinct": ["refused"], "markers": ["?"]}},
    ),
    "wrong case": (
        {"type": "ordered", "values": ["low", "high"]}, ["Low"] * 30 + ["High"] * 20,
        "50 cells with a declared value in another spelling (another case)", {"values": ["Low", "High"]},
    ),
    "wrong case among all others": (
        {**GROUPS, "other": "rest"}, ["f"] * 30 + ["m"] * 20,
        "counted among all other values", {"values": ["f", "m"]},
    ),
    "accents": (
        {"type": "category", "values": ["Geneve", "Basel"]}, ["Genève"] * 15 + ["Basel"] * 15,
        "in another spelling (accents)", {"values": ["Genève", "Basel"]},
    ),
    "blanks and signs": (
        {"type": "category", "values": ["self employed", "none"]}, ["Self-employed"] * 15 + ["none"] * 15,
        "in another spelling (blanks or signs)", {"values": ["Self-employed", "none"]},
    ),
    "truths in another language": (
        {"type": "boolean"}, ["ja"] * 30 + ["nein"] * 20, "'ja' (30), 'nein' (20)",
        {"values": ["ja", "nein"]},
    ),
    "three truths": (
        {"type": "boolean"}, ["ja"] * 30 + ["nein"] * 20 + ["naja"] * 20, "a value that is not declared",
        {"type": "category", "values": ["ja", "naja", "nein"]},
    ),
    "thousands": (
        COUNTS, ["1,234", "999", "12,345", "234,567"], "numbers written with a comma between thousands",
        {"format": {"thousands": ","}},
    ),
    "European amounts": (
        AMOUNTS, ["1.234,56 EUR", "12,00 EUR", "999,99 EUR"],
        "a full stop between thousands and a comma before the decimals and ' EUR' behind",
        {"format": {"thousands": ".", "decimal": ",", "suffix": " EUR"}},
    ),
    "dollars": (
        AMOUNTS, ["$1,234.50", "$3.00", "$99"], "a comma between thousands and '$' in front",
        {"format": {"thousands": ",", "prefix": "$"}},
    ),
    "Swiss amounts": (
        AMOUNTS, ["1'234.50", "12'345.00"], "an apostrophe between thousands", {"format": {"thousands": "'"}},
    ),
    "blanks between thousands": (
        COUNTS, ["1\u202f234", "12 345"], "a blank between thousands", {"format": {"thousands": " "}},
    ),
    "per cent": (
        {"type": "number", "min": 0, "max": 100}, ["12 %", "99.5 %"], "' %' behind",
        {"format": {"suffix": " %"}},
    ),
    "decimal comma or thousands": (
        AMOUNTS, ["1,234", "5,678"], "can't be told, so ask who wrote it", {"format": {"thousands": ","}},
    ),
    "days before months": (
        DAYS, ["31/01/2024", "05/02/2023"], "dates written as %d/%m/%Y", {"format": "%d/%m/%Y"},
    ),
    "either order": (
        DAYS, ["01/02/2024", "05/04/2023"], "%d/%m/%Y or %m/%d/%Y, which can't be told from the cells",
        {"format": "%d/%m/%Y"},
    ),
    "names of months": (DAYS, ["3 Feb 2024", "14 Mar 2021"], "written as %d %b %Y", {"format": "%d %b %Y"}),
    "days without signs": (DAYS, ["20240131", "20231205"], "written as %Y%m%d", {"format": "%Y%m%d"}),
    "dates with times": (
        DAYS, ["31.01.2024 10:30", "05.02.2023 23:59"], "dates with times written as %d.%m.%Y %H:%M",
        {"type": "datetime", "format": "%d.%m.%Y %H:%M"},
    ),
    "times of twelve hours": (
        {"type": "time", "unit": "hour"}, ["10:30 PM", "1:05 AM"], "written as %I:%M %p",
        {"format": "%I:%M %p"},
    ),
    "a marker of missing cells": (
        COUNTS, ["1", "2", "n/a", "n/a"], "2 cells with a word for nothing, counted as missing: 'n/a' (2)",
        {"missing": "n/a"},
    ),
    "several markers": (DAYS, ["2024-01-01", "?", "NULL"], "a word for nothing", {"missing": ["?", "NULL"]}),
    "a marker that is a number": (
        COUNTS, ["1", "2"] * 9 + ["999999999"] * 30,
        "30 cells above max, counted as max: '999999999' (30)", {"missing": "999999999"},
    ),
    "missing cells where none may be": (
        {**COUNTS, "missing": False}, ["1", "2", "", ""],
        "2 cells without a value, counted as '0' by missing: false", {"missing": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", some(PROBLEMS, 15))
def test_a_problem_is_named_and_the_config_that_is_proposed_reads_every_cell(checks, name):
    declared, cells, words, write = PROBLEMS[name]
    found = about(checks.of_column(declared, cells), "x")
    assert len(found) == 1, found
    assert words in found[0].what
    written = yaml.safe_load("{" + found[0].write + "}")
    assert written == write
    again = checks.of_column({**declared, **written}, cells)
    assert again.columns[0].count(*Reading) == sum(cells.count(rare) for rare in ("y", "z"))
    assert not [f for f in about(again, "x") if f.remedy and "one bin" not in f.what]


@pytest.mark.parametrize(
    ("declared", "cells", "words", "remedy"),
    [
        (DAYS, ["44197", "45000.5"], "day numbers of a spreadsheet", "write the dates out in the table"),
        (DAYS, ["1700000000", "1600000000000"], "since 1970", "write the dates out in the table"),
        (CODES, ["01234", "1234"], "lost their leading zeros", "keep it a text"),
        ({**CODES, "pattern": "[A-Z]{2}"}, ["AB", "cd"], "codes in lower case", "allow it in pattern"),
        (CODES, ["12 345"], "with blanks or signs", "into pattern"),
        (GROUPS, ["F", "M", "GenÃ¨ve"], "UTF-8 that was read in another encoding", "write it again"),
        (COUNTS, ["many", "Few", "1-3"], "no number, counted as missing: 'many' (1 like it)", "another type"),
        (COUNTS, ["3", "12-"], "no number, counted as missing: '12-' (1 like it)", "have - in front"),
        (AMOUNTS, ["3.10", "(12.00)"], "no number, counted as missing: '(12.00)'", "have - in front"),
        (AMOUNTS, ["3.10", "7", "<0.5"], "no number, counted as missing: '<0.5'", "a kind of missing cell"),
        ({**COUNTS, "max": 50}, ["51", "70", "3"], "2 cells above max, counted as max", "anyone knows"),
        ({**COUNTS, "min": 5}, ["1", "-70", "9"], "2 cells below min, counted as min", "let a release find"),
        (COUNTS, ["3"] * 99 + ["900000"], "99.0% of the values are in one bin, 1 to 9999", "narrower bins"),
        (COUNTS, ["", " "], "no row has a value", "leave the column out"),
    ],
)  # fmt: skip
def test_a_problem_of_the_table_itself_is_named(checks, declared, cells, words, remedy):
    (found,) = about(checks.of_column(declared, cells), "x")
    assert words in found.what and remedy in found.remedy


@pytest.mark.parametrize(
    ("sizes", "edges", "told"),
    [
        (random.Random(1).sample(range(20, 200), 60), {}, True),
        (random.Random(1).sample(range(20, 200), 60), {"edges": "tree"}, True),
        (range(20, 200, 3), {}, False),
        ([100] * 60, {}, False),
        (random.Random(1).sample(range(1, 20), 19) * 3, {}, False),
        ([sum(random.Random(i).random() < 0.5 for _ in range(200)) for i in range(60)], {}, False),
    ],
    ids=["codes", "codes in found bins", "an order", "all alike", "few rows each", "chance"],
)
def test_numbers_in_wide_bins_that_are_likely_codes_are_named(checks, sizes, edges, told):
    """Planted: products that are declared as integers lose their groups, and nobody says so."""
    cells = [str(1000 + 17 * i) for i, size in enumerate(sizes) for _ in range(size)]
    found = about(checks.of_column({"type": "integer", "min": 0, "max": 3000, **edges}, cells), "x")
    assert ["likely codes" in f.what and "open: true" in f.remedy for f in found] == [True] * told


@pytest.mark.parametrize(
    ("declared", "common", "write"),
    [
        (GROUPS, ["F", "M"], "other: other"),
        ({**GROUPS, "other": "rest"}, ["F", "M"], ""),
        ({"type": "ordered", "values": ["F", "M"]}, ["F", "M"], ""),
        ({"type": "boolean"}, ["yes", "no"], ""),
        ({"type": "number", "bounds": "private"}, ["5", "7"], ""),
    ],
)
def test_advice_never_repeats_what_is_declared(checks, declared, common, write):
    rare = [f"1e{20 + i}" for i in range(20)]
    (found,) = about(checks.of_column(declared, common * 20 + rare), "x")
    assert found.cells == 20 and found.write == write and not found.tuned


@pytest.mark.parametrize(
    "declared",
    [
        {"type": "category", "open": True},
        {"type": "number", "bounds": "private"},
        {"type": "text", "pattern": "[0-9]{2}", "levels": [1, 2]},
        {"type": "integer", "min": 0, "max": 99, "edges": "tree"},
    ],
)
def test_nothing_is_said_of_values_that_a_release_is_to_find(checks, declared):
    found = checks.of_column(declared, ["07", "99", "33"] * 5)
    assert found.columns[0].values == 15 and not about(found, "x")


def test_bounds_that_are_public_clip_where_edges_are_to_be_found(checks):
    found = checks.of_column(
        {"type": "integer", "min": 0, "max": 99, "edges": "tree"}, ["5", "120", "-3", "a"]
    )
    tally = found.columns[0]
    assert (tally.values, tally.count(Reading.ABOVE), tally.count(Reading.BELOW)) == (1, 1, 1)
    assert tally.count(Reading.NONE) == 1


CELLS = st.lists(
    st.sampled_from(
        ["", " 7 ", "-1", "12", "999", "1e3", "abc", "NA", "1,5", "\u00a03", "x\x1b[2J", "9" * 400]
    ),
    min_size=1,
    max_size=30,
)


@examples(120, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(CELLS)
def test_cells_are_counted_as_a_release_counts_them(checks, cells):
    """The reader and the codecs are those of a release: its table has the same counts."""
    declared = {"type": "integer", "min": 0, "max": 99, "bins": 10, "missing": ["NA"]}
    found = checks.of_column(declared, cells)
    tally, path = found.columns[0], checks.folder / "t.csv"
    assert tally.cells == found.rows == len(cells)
    inputs = inputs_of(_spec(path, declared))
    batches = read_batches(path, ["x", "good"], FileForm(), keep_broken=True)
    table = load_table(batches, inputs.compiled.columns, inputs.plan.neighbours, b"k")
    assert table.counts(("x",)).tolist() == tally.places.tolist()
    assert tally.places[-1] == tally.missing + tally.count(Reading.NONE)


def _spec(path, declared):
    from dpsynth.config import from_mapping

    columns = {"x": declared, "good": {"type": "boolean"}}
    return from_mapping(
        {
            "source": {"path": str(path)},
            "privacy": {"epsilon": 1, "delta": Decimal("1e-9")},
            "columns": columns,
        }
    )


def test_a_table_that_is_read_whole_has_no_findings(checks):
    found = checks.of_column(GROUPS, ["F", "M", ""] * 9)
    assert not found.findings and (found.columns[0].values, found.columns[0].missing) == (18, 9)


# Persons


PUBLISHED = {"sex": {"type": "category", "values": ["F", "M"]}}


@pytest.mark.parametrize(
    "declared", [{}, {"f7": {"type": "category", "open": True}}], ids=["undeclared", "declared"]
)
@pytest.mark.parametrize("form", some(["prefix", "mail", "name", "NHS", "UUID"], 3))
def test_whoever_repeats_under_a_unit_of_rows_is_asked_about_and_is_no_column(checks, form, declared):
    table = visits_of(form, "f7")
    content = csv_bytes(list(table), list(zip(*(cells.to_pylist() for cells in table.values()), strict=True)))
    found = checks.of(content, {**PUBLISHED, **declared})
    rows = len(table["f7"])
    (asked,) = about(found, "privacy.unit")
    assert asked.what.startswith(f"{PERSONS:,} values of f7 come {rows:,} times: are they persons?")
    assert asked.write == "unit: {column: f7, max_rows: 10}"
    published = [finding for finding in about(found, "f7") if finding.write == "type: identifier"]
    assert len(published) == len(declared)
    # Under the unit of persons there is nothing left to ask.
    unit = {"epsilon": 1, "delta": Decimal("1e-9"), "unit": {"column": "f7", "max_rows": 8}}
    assert about(checks.of(content, PUBLISHED, privacy=unit), "privacy.unit") == []


def test_a_check_that_looks_at_declared_columns_alone_is_caught(checks, monkeypatch):
    # The planted fault: persons stand in a column that the config doesn't name.
    monkeypatch.setattr(checking, "_all_names", names_to_read)
    table = visits_of("mail", "f7")
    content = csv_bytes(list(table), list(zip(*(cells.to_pylist() for cells in table.values()), strict=True)))
    assert about(checks.of(content, PUBLISHED), "privacy.unit") == []


def test_rows_beyond_the_bound_are_those_that_a_release_leaves_out(checks):
    rng = np.random.default_rng(3)
    ids = [f"p{i}" for i in rng.integers(0, 40, 300)] + ["", "NA"]
    rows = [(person, "yes") for person in ids]
    found = checks.of(
        csv_bytes(("id", "good"), rows),
        {"good": {"type": "boolean"}},
        privacy={"epsilon": 1, "delta": Decimal("1e-9"), "unit": {"column": "id", "max_rows": 6}},
    )
    codes = person_codes(pa.array(ids[:-2], pa.string()), b"key")
    each = Counter(ids[:-2])
    persons = found.persons
    assert persons.dropped == 300 - rows_kept(codes, 6, b"key").sum() > 0
    assert persons.crowded == sum(n > 6 for n in each.values()) and persons.number == len(each)
    assert persons.spread[3] == max(each.values()) and persons.nameless == 2
    said = [finding.what for finding in about(found, "privacy.unit")]
    assert f"{persons.dropped:,} rows are left out" in said[0] and "2 rows of nobody" in said[1]


def test_columns_that_never_change_or_fall_in_the_rows_of_a_person_are_proposed_and_broken_ones_told(checks):
    rng = np.random.default_rng(5)
    rows = [
        (f"p{who}", year, 1950 + who, "abc"[who % 3], year - 1990 + who % 2, rng.integers(9))
        for who in range(60)
        for year in rng.choice(np.arange(2000, 2020), 4, replace=False)
    ]
    columns = {
        "id": {"type": "identifier", "surrogates": True},
        "year": {"type": "integer", "min": 2000, "max": 2019},
        "born": {"type": "integer", "min": 1950, "max": 2009},
        "kind": {"type": "category", "values": ["a", "b", "c"]},
        "grade": {"type": "integer", "min": 0, "max": 40},
        "mood": {"type": "integer", "min": 0, "max": 9},
    }

    def told(constraints=(), **history):
        unit = {"column": "id", "max_rows": 4, "history": {"order_by": "year", **history}}
        privacy = {"epsilon": 1, "delta": Decimal("1e-9"), "unit": unit}
        keys = {"privacy": privacy, "constraints": list(constraints)}
        found = checks.of(csv_bytes(tuple(columns), rows), columns, **keys)
        return [f for f in found.findings if f.about.startswith("privacy.unit.history")]

    (proposed,) = told()
    assert proposed.what == "from row to row of a person born and kind never change and grade never falls"
    assert proposed.write == "history: {order_by: year, constant: [born, kind], rising: [grade]}"
    assert told(constant=["born", "kind"], rising=["grade"]) == []
    broken, proposed = told(constant=["mood", "kind"], rising=["grade"])
    assert broken.about == "privacy.unit.history.constant" and "mood changes in" in broken.what
    assert "of 180 steps" in broken.what
    assert proposed.write == "history: {order_by: year, constant: [mood, kind, born], rising: [grade]}"
    assert "constraints" not in proposed.remedy
    (ruled,) = told(constraints=["born <= year"])
    assert ruled.write == "history: {order_by: year, constant: [born, kind], rising: [grade]}"
    assert "in many rows if rows are changed until they obey the constraints" in ruled.remedy


def test_owners_are_told_that_rows_of_one_person_stand_by_themselves_without_a_history(checks):
    columns = {
        "grade": {"type": "integer", "min": 0, "max": 40},
        "kind": {"type": "category", "values": ["a", "b"]},
        "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31"},
    }

    def told(each, most, columns=columns):
        rows = [(f"p{i // each}", i % 9, "ab"[i % 2], f"2020-02-{1 + i % 28:02d}") for i in range(90)]
        privacy = {"epsilon": 1, "delta": Decimal("1e-9"), "unit": {"column": "id", "max_rows": most}}
        found = checks.of(csv_bytes(("id", "grade", "kind", "seen"), rows), columns, privacy=privacy)
        return [f for f in about(found, "privacy.unit") if "stands by itself" in f.what]

    (alone,) = told(3, 4)
    assert alone.write == "history: {order_by: seen}" and "such as seen or grade, and" in alone.remedy
    assert "declare id as {type: identifier, surrogates: true}" in alone.remedy
    assert told(1, 4) == told(3, 1) == told(3, 4, {"kind": columns["kind"]}) == []


def test_a_bound_that_nobody_needs_is_told(checks):
    found = checks.of(
        csv_bytes(("id", "good"), [(f"p{i // 2}", "yes") for i in range(20)]),
        {"good": {"type": "boolean"}},
        privacy={"epsilon": 1, "delta": Decimal("1e-9"), "unit": {"column": "id", "max_rows": 9}},
    )
    (finding,) = about(found, "privacy.unit")
    assert "nobody has more than 2 rows, and max_rows is 9" in finding.what
    assert finding.write == "max_rows: private" and finding.tuned


# Periods


def test_only_the_rows_of_a_period_are_checked_and_rows_without_a_date_are_told(checks):
    rows = [("2024-03-05", "F"), ("2024-03-31T23:00:00", "X"), ("2024-04-01", "F"), ("31/03/2024", "F")]
    found = checks.of(
        csv_bytes(("day", "sex"), rows),
        {"sex": GROUPS},
        "2024-03",
        period={"column": "day", "every": "month"},
    )
    assert (found.rows, found.outside, found.period) == (2, 2, "2024-03")
    (finding,) = about(found, "day")
    assert "1 rows without a date in ISO 8601" in finding.what
    assert found.columns[0].values == 1


# Files


PLACES = {"x": {"type": "category", "values": ["Genève", "Zürich"]}, "good": {"type": "boolean"}}
TOWNS = [("Genève", "yes"), ("Zürich", "yes")] * 20


@pytest.mark.parametrize(
    ("written", "declared", "rows"),
    [("cp1252", "utf-8", 40), ("latin-1", "utf-8", 41), ("utf-8", "cp1252", 0)],
)
def test_bytes_of_another_encoding_are_told_with_the_one_that_reads_them(checks, written, declared, rows):
    towns = [*TOWNS, ("\x81", "yes")] if written == "latin-1" else TOWNS
    content = csv_bytes(("x", "good"), towns, written)
    source = {"path": str(checks.folder / "t.csv")}
    found = checks.of(content, PLACES, source={**source, "encoding": declared})
    (finding,) = about(found, "source")
    said = {"cp1252": "windows-1252", "latin-1": "latin-1", "utf-8": "utf-8"}[written]
    assert finding.cells == rows and finding.write == f"encoding: {said}"
    (cells, *_) = about(found, "x")
    assert f"{len(towns)} cells with" in cells.what and "UTF-8" in cells.what
    assert "encoding" in cells.remedy
    again = checks.of(content, PLACES, source={**source, **yaml.safe_load(f"{{{finding.write}}}")})
    assert not about(again, "source") and again.columns[0].values == 40


def test_a_compressed_file_is_checked_and_read_again_for_its_places(checks):
    content = gzip.compress(csv_bytes(("x", "good"), TOWNS, "cp1252"))
    path = checks.folder / "t.csv.gz"
    path.write_bytes(content)
    found = checks.of(b"", PLACES, source={"path": str(path)})
    assert about(found, "source")[0].write == "encoding: windows-1252"


@pytest.mark.parametrize(("sign", "word"), [(";", "';'"), ("\t", "tab"), ("|", "'|'")])
def test_another_separator_is_named(checks, sign, word):
    content = csv_bytes(("x", "good"), [("F", "yes")]).replace(b",", sign.encode())
    with pytest.raises(SourceError, match=f"set source.separator: {re.escape(word)}"):
        checks.of(content, {"x": GROUPS, "good": {"type": "boolean"}})


def test_a_name_in_another_spelling_is_told(checks):
    with pytest.raises(SourceError, match="Did you mean 'Date of_Birth'"):
        checks.of(csv_bytes(("Date of_Birth", "good"), [("1", "yes")]), {"date_of_birth": COUNTS})


def test_headers_among_the_rows_are_told_once_and_no_more(checks):
    rows = [("F", "yes"), ("x", "good"), ("M", "no"), ("x", "good")]
    found = checks.of(csv_bytes(("x", "good"), rows), {"x": GROUPS, "good": {"type": "boolean"}})
    (finding,) = found.findings
    assert finding.cells == 2 and "2 rows with the header once more" in finding.what
    assert found.rows == 2


def test_rows_with_too_few_or_too_many_cells_are_counted(checks):
    content = b"x,good\nF,yes\nM\nF,yes,1\nM,no\n"
    found = checks.of(content, {"x": GROUPS, "good": {"type": "boolean"}})
    (finding,) = found.findings
    assert finding.cells == 2 and "2 rows with too few or too many cells" in finding.what
    assert found.rows == 4 and found.columns[0].missing == 2


def test_an_unclosed_quote_is_told_with_its_line(checks):
    lines = [b"x,good"] + [b"F,yes"] * 20
    lines[7] = b'"F,yes'
    found = checks.of(b"\n".join(lines) + b"\n", {"x": GROUPS, "good": {"type": "boolean"}})
    (finding,) = about(found, "source")
    assert "1 row with a quote that is not closed; lines with an odd number of quotes are 8" in finding.what
    assert found.rows == 20 and found.columns[0].missing == 1


def test_cells_of_two_lines_are_told_and_read_as_is_proposed(checks):
    content = b'x,good,note\nF,yes,"a\nb"\nM,no,"c\nd"\n'
    columns = {"x": GROUPS, "good": {"type": "boolean"}}
    found = checks.of(content, columns, source={"path": str(checks.folder / "t.csv"), "multiline": False})
    finding = about(found, "source")[0]
    assert finding.write == "multiline: true"
    source = {"path": str(checks.folder / "t.csv"), **yaml.safe_load(f"{{{finding.write}}}")}
    again = checks.of(content, columns, source=source)
    assert again.rows == again.columns[0].values == 2 and not again.findings


def test_a_parquet_file_is_checked_too(checks):
    import pyarrow.parquet as pq

    path = checks.folder / "t.parquet"
    pq.write_table(pa.table({"x": ["F", None, "Q"], "n": [1, 2, None]}), path)
    columns = {"x": GROUPS, "n": COUNTS}
    found = checks.of(b"", columns, source={"path": str(path)})
    assert [(t.values, t.missing, t.count(Reading.NONE)) for t in found.columns] == [(1, 1, 1), (2, 1, 0)]
    assert len(about(found, "source")) == 0


def test_shapes_join_texts_that_look_alike():
    assert shape("12,345.00 EUR") == shape("98,001.55 USD") != shape("12.345,00 EUR")
    assert shape("Zoë") == shape("Max") == "Aa"


def test_a_column_that_nobody_declared_may_hold_what_no_release_reads(tmp_path):
    table = {name: cells for name, cells in visits_of("mail", "f7").items() if name != "ward"}
    nested = pa.table({**table, "notes": [[1, 2]] * len(table["f7"])})
    parquet.write_table(nested, tmp_path / "t.parquet")
    spec = from_mapping(
        {
            "source": {"path": str(tmp_path / "t.parquet")},
            "privacy": {"epsilon": 1, "delta": Decimal("1e-9")},
            "columns": PUBLISHED,
        }
    )
    assert [finding.about for finding in checking.check(spec).findings][:1] == ["privacy.unit"]
