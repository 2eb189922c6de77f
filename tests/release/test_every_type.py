"""One table with a column of every type: formats come back, and no cell reaches the schema."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.columns import public_schema
from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.config import compiled, from_mapping
from dpsynth.pipeline.result import Release
from tests.release import evidence
from tests.thinned import some

COLUMNS: Mapping[str, Mapping[str, object]] = {
    "id": {"type": "identifier", "surrogates": "P00001"},
    "seen": {"type": "date", "min": "2020-01-01", "max": "2021-12-31", "unit": "month",
             "format": "%d/%m/%Y"},
    "age": {"type": "integer", "min": 0, "max": 99, "bins": 10, "format": {"width": 3}, "missing": False},
    "pay": {
        "type": "number", "min": 0, "max": 9000, "bins": 9, "decimals": 2,
        "format": {"thousands": " ", "decimal": ",", "suffix": " €"},
        "missing": {"distinct": ["refused", "unknown"], "markers": ["?"]},
    },
    "bonus": {"type": "number", "min": -100, "max": 100, "bins": 4, "decimals": 1, "missing": False},
    "grade": {"type": "ordered", "values": ["low", "mid", "high"], "missing": "n/a"},
    "town": {"type": "category", "values": ["Ay", "Bo"], "other": "elsewhere"},
    "member": {"type": "boolean", "values": ["no", "yes"], "missing": False},
    "arrived": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31",
                "format": "%-m/%-d/%Y %-I:%M %p"},
    "woke": {"type": "time", "format": "%H:%M"},
    "waited": {"type": "duration", "min": "0:00", "max": "10:00", "unit": "hour", "format": "HH:MM"},
    "zip": {"type": "text", "pattern": "[0-9]{5}", "prefixes": ["75", "69", "01"]},
    "secret": {"type": "identifier"},
    "total": {"type": "derived", "formula": "pay + bonus", "format": {"prefix": "€", "thousands": ","}},
    "score": {"type": "derived", "formula": "grade", "map": {"low": 1, "mid": 2, "high": 5},
              "missing": "none"},
    "year": {"type": "derived", "formula": "year(seen)"},
    "department": {"type": "derived", "formula": "first(zip, 2)"},
    "minor": {"type": "derived", "formula": "if(age < 18, 'yes', 'no')"},
}  # fmt: skip

CONFIG: Mapping[str, object] = {
    "release": "every",
    "source": {"path": "table.csv"},
    "privacy": {"epsilon": 50, "delta": 1e-6},
    "structure": {"method": "mst"},
    "sample": {"rows": 400, "seed": 3},
    "publish": {"statistics": [{"mean": "waited", "by": "grade"}, {"crosstab": ["pay", "grade"]}]},
}

READ = [name for name, c in COLUMNS.items() if c["type"] not in ("identifier", "derived")]
WRITTEN = [name for name in COLUMNS if name != "secret"]

LOOKS: Mapping[str, str] = {
    "id": r"P\d{5}",
    "seen": r"(0[1-9]|[12]\d|3[01])/(0[1-9]|1[0-2])/202[01]|",
    "age": r"0\d\d",
    "pay": r"(\d|\d\d\d|\d \d\d\d),\d\d €|\d\d,\d\d €|refused|unknown|\?",
    "bonus": r"-?\d{1,3}\.\d",
    "grade": r"low|mid|high|n/a",
    "town": r"Ay|Bo|elsewhere|",
    "member": r"yes|no",
    "arrived": r"([1-9]|1[0-2])/([1-9]|[12]\d|3[01])/2020 ([1-9]|1[0-2]):[0-5]\d [AP]M|",
    "woke": r"([01]\d|2[0-3]):[0-5]\d|",
    "waited": r"(0\d:[0-5]\d)|10:00|",
    "zip": r"(75|69|01)\d{3}|",
    "total": r"-?€\d{1,3}(,\d{3})?\.\d\d|",
    "score": r"1|2|5|none",
    "year": r"2020|2021|",
    "department": r"75|69|01|",
    "minor": r"yes|no",
}


def rows(count: int) -> list[list[str]]:
    """Rows of good cells, without a missing one."""
    draw = np.random.default_rng(4)
    return [
        [
            f"{draw.integers(1, 28):02}/{draw.integers(1, 13):02}/{draw.integers(2020, 2022)}",
            f"{draw.integers(10, 90):03}",
            f"{draw.integers(1, 8)} {draw.integers(100, 999)},{draw.integers(10, 99)} €",
            f"{draw.integers(-90, 90)}.5",
            str(draw.choice(["low", "mid", "high"])),
            str(draw.choice(["Ay", "Bo"])),
            str(draw.choice(["no", "yes"])),
            f"{draw.integers(1, 13)}/{draw.integers(1, 28)}/2020 {draw.integers(1, 13)}:05 PM",
            f"{draw.integers(10, 24)}:{draw.integers(10, 60)}",
            f"0{draw.integers(0, 10)}:{draw.integers(10, 60)}",
            f"75{draw.integers(100, 1000)}",
        ]
        for _ in range(count)
    ]


EXTREMES: Mapping[str, list[str]] = {
    "a new extreme": ["31/12/2999", "9" * 30, "999 999 999,99 €", "-1e308", "high", "Ay", "yes",
                      "12/31/2999 11:59 PM", "23:59", "9999999:59", "75999"],
    "a first missing": ["", "", "refused", "", "n/a", "", "", "", "", "", ""],
    "the longest string": ["x" * 5000] * 11,
    "a new category": ["30/02/2020", "-5", "unknown", "nan", "highest", "Paris", "perhaps",
                       "13/13/2020 13:00 AM", "24:00", "-00:30", "99999"],
}  # fmt: skip


def released(folder: Path, cells: Sequence[Sequence[str]], **columns: object) -> Release:
    """A release of a table in a folder of its own."""
    folder.mkdir()
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([READ, *cells])
    spec = from_mapping(
        {
            **CONFIG,
            "source": {"path": str(folder / "table.csv")},
            "ledger": {"url": f"sqlite:///{folder / 'l.db'}", "cap": {"epsilon": 100, "delta": 1e-3}},
            "columns": {**COLUMNS, **columns},
        }
    )
    return dpsynth.release(spec, outputs=folder / "outputs")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return released(tmp_path_factory.mktemp("every") / "plain", rows(600))


def synthetic_csv(release: Release) -> list[dict[str, str]]:
    with (release.folder / "public" / "synthetic.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_column_comes_back_in_its_place_and_looks_as_in_the_table(plain: Release) -> None:
    found = synthetic_csv(plain)
    assert list(found[0]) == WRITTEN and len(found) == 400
    for name, pattern in LOOKS.items():
        strange = {row[name] for row in found if not re.fullmatch(pattern, row[name])}
        assert not strange, (name, sorted(strange)[:5])
    assert [row["id"] for row in found[:2]] == ["P00001", "P00002"]


def test_derived_cells_agree_with_the_row_that_they_stand_in(plain: Release) -> None:
    checked = 0
    for row in synthetic_csv(plain):
        assert row["score"] == {"low": "1", "mid": "2", "high": "5", "n/a": "none"}[row["grade"]]
        assert row["minor"] == ("yes" if int(row["age"]) < 18 else "no")
        assert row["department"] == row["zip"][:2] and row["year"] == row["seen"][6:]
        if row["pay"][0].isdigit():
            pay = float(row["pay"][:-2].replace(" ", "").replace(",", "."))
            total = float(row["total"].replace("€", "").replace(",", ""))
            assert total == pytest.approx(pay + float(row["bonus"]), abs=0.001)
            checked += 1
        else:
            assert row["total"] == ""
    assert checked > 100


def test_python_gets_typed_columns(plain: Release) -> None:
    table = plain.synthetic
    assert [c for c in table.columns if c != "pay (missing)"] == WRITTEN
    kinds = {name: str(table[name].dtype) for name in ("seen", "arrived", "waited", "age", "member", "total")}
    assert kinds == {
        "seen": "datetime64[ms]", "arrived": "datetime64[us]", "waited": "timedelta64[s]", "age": "Int64",
        "member": "boolean", "total": "float64",
    }  # fmt: skip
    grades = table["grade"].dtype
    assert isinstance(grades, pd.CategoricalDtype)
    assert grades.ordered and list(grades.categories) == ["low", "mid", "high"]
    apart = table["pay (missing)"]
    assert set(apart.dropna()) <= {"refused", "unknown"} and table["pay"][apart.notna()].isna().all()
    assert pq.read_table(plain.folder / "public" / "synthetic.parquet").equals(plain.table)


def test_statistics_name_the_places_in_order(plain: Release) -> None:
    assert plain.tables["grade"].table["grade"].to_pylist() == ["low", "mid", "high", "(missing)"]
    assert plain.tables["pay"].table["pay"].to_pylist()[-3:] == [
        "(missing)", "(missing: refused)", "(missing: unknown)",
    ]  # fmt: skip
    waited = plain.tables["waited by grade"].table.to_pydict()
    assert all(0 <= estimate <= 36_000 for estimate in waited["estimate"][:3])
    assert not {"id", "secret", "total", "score"} & set(plain.tables)


def public_facts(release: Release) -> bytes:
    """Whatever says of the columns what they may hold, as bytes."""
    public = release.folder / "public"
    manifest = evidence.assert_whole(release.folder)
    metadata = pq.read_schema(public / "measurements.parquet").metadata
    types = pq.read_schema(public / "synthetic.parquet")
    header = (public / "synthetic.csv").read_text(encoding="utf-8").splitlines()[0]
    labels = [table["labels"] for table in manifest["columns"] if "labels" in table]
    return json.dumps(
        [manifest["columns"], labels, metadata[b"dpsynth.columns"].decode(), str(types), header]
    ).encode()


@pytest.mark.parametrize("case", some(list(EXTREMES), 1))
def test_a_neighbour_has_the_same_schema_bytes(plain: Release, tmp_path: Path, case: str) -> None:
    """Hazards 18, 19, 25, 26."""
    other = released(tmp_path / "other", [*rows(600), EXTREMES[case]])
    assert public_facts(other) == public_facts(plain)


def test_a_place_for_missing_that_depends_on_the_data_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a column that has a place for missing cells only once it met one."""
    met: set[str] = set()
    encode, described = Column.encode, public_schema._missing

    def learning(column: Column, texts: pa.StringArray) -> Codes:
        if "" in texts.to_pylist():
            met.add(column.name)
        return encode(column, texts)

    monkeypatch.setattr(Column, "encode", learning)
    monkeypatch.setattr(public_schema, "_missing", lambda c: {**described(c), "modelled": c.name in met})
    quiet = public_facts(released(tmp_path / "quiet", rows(600)))
    told = public_facts(released(tmp_path / "told", [*rows(600), EXTREMES["a first missing"]]))
    assert quiet != told


def test_the_recipient_is_told_what_each_column_is_made_of(plain: Release) -> None:
    readme = (plain.folder / "public" / "README.md").read_text(encoding="utf-8")
    for line in (
        "| id | text | made up, from P00001 on | never |",
        "| seen | date | 2020-01 … 2021-12 (24 values) | an empty cell |",
        '| pay | number | \\[0, 1000) … \\[8000, 9000\\] (9 values) | "?", "refused" and "unknown" |',
        "| total | number | computed: pay + bonus | an empty cell |",
        '| score | integer | computed: grade | "none" |',
    ):
        assert line in readme, line
    assert "| secret |" not in readme and f"400 synthetic rows, {len(WRITTEN)} columns" in readme


def test_a_table_of_no_rows_has_the_same_columns(plain: Release) -> None:
    layout = compiled(from_mapping({**CONFIG, "columns": COLUMNS})).layout
    codes = {column.name: np.array([], dtype=np.int64) for column in layout.columns}
    table = layout.decode(codes, np.random.default_rng(0))
    assert table.schema == plain.table.schema and table.num_rows == 0
    assert list(layout.texts(table)) == WRITTEN


def test_identifiers_and_derived_columns_are_not_read(tmp_path: Path) -> None:
    """The source has none of them; and one that has is read no further."""
    spec_columns = {"secret": {"type": "identifier", "surrogates": True}}
    made = released(tmp_path / "without", rows(50), **spec_columns)
    assert [row["secret"] for row in synthetic_csv(made)][:3] == ["1", "2", "3"]
    charged = evidence.charges(evidence.records(made.folder / "private" / "journal.jsonl"))
    asked = {name for record in charged for name in record["question"].get("columns", ())}
    assert asked == set(READ)
