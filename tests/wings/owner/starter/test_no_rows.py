"""Titles above a header, second headers and totals are found, proposed for review, and then not read."""

import re

import numpy as np
import pytest
import yaml

from dpsynth.config import from_mapping
from dpsynth.config.files import FileForm
from dpsynth.curator.rows.files import read_batches
from dpsynth.errors import ConfigError, SourceError
from dpsynth.wings.owner.assess.profiling import look_at
from dpsynth.wings.owner.starter import draft_of, guessed, starter_text
from tests.thinned import some

ROWS = [
    (("North", "East")[i % 3 == 0], "FM"[i % 2], 70 + i % 17, 160 + i % 30, f"2024-01-{i % 28 + 1:02}")
    for i in range(90)
]
HEADER = ("region", "sex", "weight", "height", "seen")
COLUMNS = {
    "region": {"type": "category", "values": ["North", "East", "South"]},
    "weight": {"type": "integer", "min": 0, "max": 200},
}


def csv_file(path, lines, separator=";", encoding="utf-8"):
    path.write_bytes("\n".join(separator.join(map(str, line)) for line in lines).encode(encoding))
    return path


def workbook(path, rows):
    from openpyxl import Workbook

    book = Workbook()
    for number, row in enumerate(rows, 1):
        for place, cell in enumerate(row, 1):
            book.active.cell(number, place, cell)
    book.save(path)
    return path


def source_of(path, *, look):
    """The keys of the file that init writes, the columns that it lists, and what is to be reviewed."""
    draft = draft_of(path, table=None, form=None, pick=None)
    if look:
        draft = guessed(draft, look_at(draft.table, draft.form, draft.to_look_at))
    read = yaml.safe_load(starter_text(draft, "t", None, "dpsynth init"))
    return read["source"], read["columns"], [key for key in read["review"] if key.startswith("source.")]


def rows_of(path, columns=HEADER, **keys):
    """The cells that are read of a file by a configuration's keys."""
    keys = {**({"separator": ";"} if path.suffix == ".csv" else {}), **keys}
    values = {"source": {"path": str(path), **keys}, "privacy": {"epsilon": 1}, "columns": COLUMNS}
    form = from_mapping(values).source.form
    found = {name: [] for name in columns}
    for batch in read_batches(path, columns, form, keep_broken=True):
        for name, cells in batch.items():
            found[name] += cells.to_pylist()
    return found


TITLES = {
    "a title": [("Export of the clinic",)],
    "a title, a blank line and a date": [("Export of the clinic",), (), ("made", "2024-02-01")],
    "a title with a comma": [("Weights, by region",), ()],
    "a title and empty cells": [("Export", "", "", "", "")],
    "an accent in the header's encoding": [("Höhe",), ()],
}


@pytest.mark.parametrize("name", TITLES)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_titles_above_the_header_are_found_and_proposed(tmp_path, name, kind):
    lines = [*TITLES[name], HEADER, *ROWS]
    if kind == "csv":
        path = csv_file(tmp_path / "t.csv", lines, encoding="windows-1252" if "accent" in name else "utf-8")
    else:
        path = workbook(tmp_path / "t.xlsx", lines)
    source, columns, review = source_of(path, look=False)
    assert source["header_row"] == len(TITLES[name]) + 1 and tuple(columns) == HEADER
    assert review == ["source.header_row"]
    assert rows_of(path, **{key: source[key] for key in source if key != "path"})["weight"] == [
        str(r[2]) for r in ROWS
    ]


PLAIN = {
    "a header": [HEADER, *ROWS],
    "two columns": [("region", "weight"), *(row[:3:2] for row in ROWS)],
    "one column of texts with separators": [
        ("note",), *((f'"well, on day {i}; {"so; " * (i % 5)}"',) for i in range(60))
    ],
    "one column": [("weight",), *((i,) for i in range(60))],
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_table_without_a_title_keeps_its_first_line(tmp_path, name, kind):
    path = (csv_file if kind == "csv" else workbook)(tmp_path / f"t.{kind}", PLAIN[name])
    source, columns, review = source_of(path, look=False)
    assert not {"header_row", "skip", "totals"} & source.keys() and not review
    assert len(columns) == len(PLAIN[name][0])


def test_the_summary_says_so_where_more_than_the_first_line_was_read(tmp_path):
    titled = draft_of(
        csv_file(tmp_path / "a.csv", [("Export",), HEADER, *ROWS]), table=None, form=None, pick=None
    )
    plain = draft_of(csv_file(tmp_path / "b.csv", [HEADER, *ROWS]), table=None, form=None, pick=None)
    assert (
        "its line 2, as what stands above it seems a title" in titled.summary()[0]
        and "first lines" in titled.summary()[-1]
    )
    assert plain.summary()[-1] == "No row of the table was read."


UNITS = {
    "units": [("", "", "kg", "cm", "")],
    "units with digits in them, and types": [
        ("", "F/M", "kg/m2", "cm", "date"), ("text", "text", "int", "int", "date"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("kind", some(["csv", "xlsx"], 1))
def test_second_headers_are_found_and_proposed(tmp_path, name, kind):
    path = (csv_file if kind == "csv" else workbook)(tmp_path / f"t.{kind}", [HEADER, *UNITS[name], *ROWS])
    source, columns, review = source_of(path, look=True)
    assert source["skip"] == len(UNITS[name]) and review == ["source.skip"]
    assert columns["weight"]["type"] == "integer" and columns["seen"]["type"] == "date"
    assert rows_of(path, **{key: source[key] for key in source if key != "path"})["weight"] == [
        str(r[2]) for r in ROWS
    ]


@pytest.mark.parametrize(
    "first", [("North", "F", "", "", ""), ("North", "F", "NA", "n/a", "2024-01-01"), ROWS[0]]
)
def test_a_first_row_with_missing_cells_is_no_second_header(tmp_path, first):
    source, _, review = source_of(csv_file(tmp_path / "t.csv", [HEADER, first, *ROWS]), look=True)
    assert not {"header_row", "skip", "totals"} & source.keys() and not review


def sums(rows):
    return [sum(row[2] for row in rows), sum(row[3] for row in rows)]


SOUTH = [("South", *row[1:]) for row in ROWS[:20]]
TOTALS = {
    "Total": ([*ROWS, ("Total", "", *sums(ROWS), "")], {"region": ["Total"]}),
    "Summe": ([*ROWS, *SOUTH, ("Summe", "", *sums([*ROWS, *SOUTH]), "")], {"region": ["Summe"]}),
    "subtotals and a grand total": (
        [
            *ROWS, ("Total North", "", *sums(ROWS), ""), *SOUTH, ("Total South", "", *sums(SOUTH), ""),
            ("Grand total", "", *sums([*ROWS, *SOUTH]), ""),
        ],
        {"region": ["Grand total", "Total North", "Total South"]},
    ),
    "sums that no word tells": ([*ROWS, ("", "", *sums(ROWS), "")], {"region": [""]}),
    "sums that another word tells": (
        [*ROWS, ("all wards", "", *sums(ROWS), "")], {"region": ["all wards"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOTALS)
@pytest.mark.parametrize("kind", some(["csv", "xlsx", "parquet"], 1))
def test_rows_of_totals_are_found_and_proposed_and_set_no_bound(tmp_path, name, kind):
    rows, wanted = TOTALS[name]
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = tmp_path / "t.parquet"
        cells = list(zip(*rows, strict=True))
        pq.write_table(pa.table(dict(zip(HEADER, map(list, cells), strict=True))), path, row_group_size=25)
    else:
        path = (csv_file if kind == "csv" else workbook)(tmp_path / f"t.{kind}", [HEADER, *rows])
    source, columns, review = source_of(path, look=True)
    assert source["totals"] == wanted and review == ["source.totals"]
    assert columns["weight"]["max"] <= 200 and "Total" not in columns["region"]["values"]
    read = rows_of(path, ("weight",), totals=wanted)
    assert len(read["weight"]) == sum(row[0] in ("North", "East", "South") for row in rows)


@pytest.mark.parametrize(
    "rows",
    [
        [("Total", "F", 70, 160, "2024-01-01"), *ROWS],
        [*ROWS, ("Total", "F", 99, 170, "2024-01-01")],
        [*(("Total", *row[1:]) if i % 3 else row for i, row in enumerate(ROWS))],
        [*ROWS, ("South", "M", *sums(ROWS), "2024-01-01"), ("South", "M", 1, 1, "2024-01-01")],
    ],
)
def test_a_word_that_many_rows_or_no_sums_bear_out_is_no_total(tmp_path, rows):
    source, _, review = source_of(csv_file(tmp_path / "t.csv", [HEADER, *rows]), look=True)
    assert "totals" not in source and not review


def test_a_total_is_told_by_its_own_cells_alone(tmp_path):
    """Planted: rows that come or go, before and behind, change nothing of what else is read."""
    path = csv_file(tmp_path / "t.csv", [HEADER, *ROWS, (" Total ", "", 1, 1, ""), ("total", "", 2, 2, "")])
    read = rows_of(path, totals={"region": "Total"})
    assert read["weight"] == [*(str(row[2]) for row in ROWS), "2"]
    rng = np.random.default_rng(4)
    for _ in range(20):
        kept = [row for row in [*ROWS, ("Total", "", 1, 1, "")] if rng.random() < 0.7]
        fewer = rows_of(csv_file(tmp_path / "u.csv", [HEADER, *kept]), totals={"region": "Total"})
        assert fewer["weight"] == [str(row[2]) for row in kept if row[0] != "Total"]


def test_titles_units_and_totals_together_are_read_past(tmp_path):
    lines = [("Export",), HEADER, ("", "", "kg", "cm", ""), *ROWS, ("Total", "", *sums(ROWS), "")]
    path = csv_file(tmp_path / "t.csv", lines)
    source, _, review = source_of(path, look=True)
    assert (source["header_row"], source["skip"], source["totals"]) == (2, 1, {"region": ["Total"]})
    assert review == ["source.header_row", "source.skip", "source.totals"]


REFUSED = {
    "header_row": ({"header_row": 0}, "source.header_row must be a whole number"),
    "skip": ({"skip": -1}, "source.skip must be a whole number"),
    "totals": ({"totals": ["Total"]}, "source.totals must be a mapping from columns"),
    "an empty list": ({"totals": {"region": []}}, "source.totals must be a mapping from columns"),
    "a format without lines": ({"path": "t.parquet", "header_row": 2}, "is for .csv and .xlsx files"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_keys_that_mean_nothing_are_refused(name):
    keys, words = REFUSED[name]
    values = {"source": {"path": "t.csv", **keys}, "privacy": {"epsilon": 1}, "columns": COLUMNS}
    with pytest.raises(ConfigError, match=re.escape(words)):
        from_mapping(values)


def test_totals_are_refused_where_the_number_of_rows_is_public():
    privacy = {"epsilon": 1, "neighbours": "replace_one"}
    source = {"path": "t.csv", "totals": {"region": "Total"}}
    with pytest.raises(ConfigError, match=r"source\.totals must be left out with neighbours: replace_one"):
        from_mapping({"source": source, "privacy": privacy, "columns": COLUMNS})


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_header_row_without_names_is_refused_before_anything_is_charged(tmp_path, kind):
    path = (csv_file if kind == "csv" else workbook)(tmp_path / f"t.{kind}", [("Export",), (), HEADER, *ROWS])
    with pytest.raises(SourceError, match=r"no header in (line|row) 2"):
        list(read_batches(path, HEADER, FileForm(kind, ";", header_row=2), keep_broken=True))
