"""The same cell gives the same code from every form of file; what is no such file is one plain error."""

import bz2
import datetime as dt
import gzip
import lzma
import sys
import zipfile
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dpsynth
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.kinds import layout_of
from dpsynth.config.files import FileForm
from dpsynth.config.files.form import COMPRESSIONS
from dpsynth.curator import check_source, read_batches
from dpsynth.errors import ConfigError, SourceError
from dpsynth.testing import load_table
from tests.config.files.workbooks import parts_of, write_parts, write_workbook
from tests.specs import spec_of
from tests.thinned import some

CANARY = "K4N4RY"
DAY, MOMENT, CLOCK = dt.date(2020, 3, 1), dt.datetime(2020, 3, 1, 4, 5, 6), dt.time(13, 30)
HEADER = ["age", "pay", "sex", "own", "born", "seen", "woke", "stay", "town"]
ZERO = dt.timedelta()
CELLS: list[list[object]] = [
    [7, 1234.5, "F", True, DAY, MOMENT, CLOCK, dt.timedelta(hours=30), "Orléans"],
    [89.0, 0.3, "M", False, dt.date(1999, 12, 31), dt.datetime(2020, 6, 1), dt.time(0), ZERO, "Köln"],
    [None, None, None, None, None, None, None, None, None],
    [12, -3.25, "?", True, DAY, MOMENT, dt.time(23, 59, 59), dt.timedelta(minutes=90), "Łódź"],
    [1000, 1e15, "f", False, DAY, MOMENT, CLOCK, dt.timedelta(days=400), "x, \"y\""],
]  # fmt: skip
COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 89, "bins": 90},
    "pay": {"type": "number", "min": -10, "max": 2000, "bins": 2010, "decimals": 2},
    "sex": {"type": "category", "values": ["F", "M"], "other": "rest"},
    "own": {"type": "boolean"},
    "born": {"type": "date", "min": "1990-01-01", "max": "2029-12-31"},
    "seen": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "unit": "hour"},
    "woke": {"type": "time", "unit": "minute"},
    "stay": {"type": "duration", "min": "PT0H", "max": "PT90H", "unit": "hour"},
    "town": {"type": "category", "values": ["Orléans", "Köln", "Łódź", "x, \"y\""]},
}  # fmt: skip
ACCENTS = {"town": {"type": "category", "values": ["Orléans", "Köln"], "other": "rest"}}


def typed() -> pa.Table:
    return pa.table(
        {name: pa.array(cells) for name, cells in zip(HEADER, zip(*CELLS, strict=True), strict=True)}
    )


def codes(path, form, columns=COLUMNS) -> dict[str, list[int]]:
    """Codes of the filled rows; a row without any cell is no row in some forms."""
    found = layout_of(spec_of(columns).columns).columns
    table = load_table(
        read_batches(path, list(columns), form, keep_broken=True), found, Neighbours("add_remove"), b"k" * 32
    )
    return {name: table.codes[name].tolist() for name in columns}


def filled(found: dict[str, list[int]]) -> dict[str, list[int]]:
    return {name: [*c[:2], *c[3:]] if len(c) == len(CELLS) else c for name, c in found.items()}


@pytest.fixture
def plain(tmp_path):
    """The table as a CSV file."""
    path = tmp_path / "t.csv"
    csv.write_csv(typed().set_column(7, "stay", pa.array(["PT30H", "PT0S", None, "PT90M", "P400D"])), path)
    return path


def test_the_codes_are_those_meant(plain):
    found = codes(plain, FileForm())
    assert found["age"] == [7, 89, 90, 12, 89] and found["town"][:2] == [0, 1]
    missing = {name: c[2] for name, c in found.items()}
    assert all(missing[name] == max(c) or name == "sex" for name, c in found.items())


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "iso8859-1", "cp850"]
)
def test_a_cell_gives_the_same_code_in_every_encoding(tmp_path, plain, encoding):
    path, text = tmp_path / "e.csv", plain.read_text("utf-8")
    path.write_bytes(text.encode(encoding, "replace"))
    assert codes(path, FileForm(encoding=encoding), ACCENTS) == codes(plain, FileForm(), ACCENTS)
    if encoding[:3] != "utf":
        assert codes(path, FileForm(), ACCENTS) != codes(plain, FileForm(), ACCENTS)


@pytest.mark.parametrize(
    ("mark", "encoding"), some([("utf-8-sig", "utf-8"), ("utf-16-le", "utf-16"), ("utf-16", "utf-16-le")], 1)
)
def test_a_byte_order_mark_may_stand_or_be_left_out(tmp_path, plain, mark, encoding):
    path = tmp_path / "m.csv"
    path.write_bytes(plain.read_text("utf-8").encode(mark))
    assert codes(path, FileForm(encoding=encoding)) == codes(plain, FileForm())


def packed(path, data: bytes, compression: str) -> None:
    if compression == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__MACOSX/._t.csv", b"left by a Mac")
            archive.mkdir("folder")
            archive.writestr("folder/t.csv", data)
    elif compression == "zst":
        path.write_bytes(pa.compress(data, "zstd", asbytes=True))
    else:
        path.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[compression].compress(data))


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("encoding", some(["utf-8", "utf-16"], 1))
def test_a_cell_gives_the_same_code_out_of_every_archive(tmp_path, plain, compression, encoding):
    path = tmp_path / f"t.csv.{compression}"
    packed(path, plain.read_text("utf-8").encode(encoding), compression)
    assert codes(path, declared({"path": str(path), "encoding": encoding}).form) == codes(plain, FileForm())


@pytest.mark.parametrize("compression", some(["gz", "bz2", "xz", "zst"], 2))
def test_parts_of_an_archive_one_behind_another_are_read_as_one(tmp_path, plain, compression):
    data, path = plain.read_bytes(), tmp_path / "t"
    parts = []
    for part in (data[:100], data[100:]):
        packed(path, part, compression)
        parts.append(path.read_bytes())
    path.write_bytes(b"".join(parts))
    assert codes(path, FileForm(compression=compression)) == codes(plain, FileForm())


def test_a_cell_gives_the_same_code_from_a_sheet_and_from_parquet(tmp_path, plain):
    parquet.write_table(typed(), tmp_path / "t.parquet")
    write_workbook(tmp_path / "t.xlsx", {"Visits": [HEADER, *CELLS], "Other": [["age"], [CANARY]]})
    whole = codes(plain, FileForm())
    assert codes(tmp_path / "t.parquet", FileForm("parquet")) == whole
    for sheet in (None, "Visits"):
        found = codes(tmp_path / "t.xlsx", FileForm("xlsx", sheet=sheet))
        assert filled(found) == filled(whole) and all(len(c) == 4 for c in found.values())


def test_amounts_with_signs_are_read_from_every_form(tmp_path):
    texts = ["1.234,56 EUR", "-7,5", "1.234.567,00 EUR", "0,05 EUR", "12\u00a0EUR"]
    columns = {
        "a": {"type": "number", "min": -10, "max": 2_000_000, "decimals": 2,
              "bins": [-10, 0, 1, 13, 1000, 2000, 2e6],
              "format": {"thousands": ".", "decimal": ",", "suffix": " EUR"}},
        "b": {"type": "integer", "min": 0, "max": 9999, "bins": 100, "format": {"thousands": "'"}},
    }  # fmt: skip
    francs = ["1'234", "1\u2019234", "1234", "12'34", "9'999"]
    rows = [["a", "b"], *map(list, zip(texts, francs, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(";".join(row) for row in rows))
    parquet.write_table(pa.table({"a": texts, "b": francs}), tmp_path / "t.parquet")
    write_workbook(tmp_path / "t.xlsx", {"S": rows})
    expected = codes(tmp_path / "t.csv", FileForm(separator=";"), columns)
    assert expected["a"] == [4, 0, 5, 1, 2] and expected["b"][:3] == [expected["b"][0]] * 3
    assert expected["b"][3] == 100 and expected["b"][4] == 99
    assert codes(tmp_path / "t.parquet", FileForm("parquet"), columns) == expected
    assert codes(tmp_path / "t.xlsx", FileForm("xlsx"), columns) == expected


def refusal(path, form, columns=("age",)) -> str:
    with pytest.raises(SourceError) as raised:
        check_source(path, list(columns), form)
    told = str(raised.value)
    assert CANARY not in told and told.isprintable() and told.endswith(".")
    return told


ADVICE = [
    ("age;town\n1;2\n", FileForm(), "Its first line has ';' between the names: set source.separator: ';'."),
    ("age\ttown\n", FileForm(), "set source.separator: tab."),
    ("age,town\n", FileForm(separator="|"), "set source.separator: ','."),
    ("Age,K4N4RY\n", FileForm(), "Did you mean 'Age', which it has?"),
    (" age ,K4N4RY\n", FileForm(), "Did you mean ' age ', which it has?"),
    ("K4N4RY,7\n", FileForm(), "must name every column"),
    ("age,b,age\n", FileForm(), "more than one column named 'age'"),
    ("age\né\n".encode("utf-16"), FileForm(), "It looks like utf-16: set source.encoding"),
    ("age,é\n".encode("cp1252"), FileForm(), "It looks like windows-1252: set source.encoding"),
    ("age,é\n".encode("utf-16"), FileForm(encoding="cp1252"), "It looks like utf-16: set source.encoding"),
    ("age,b\n", FileForm(encoding="utf-16"), "Its first line is utf-8 text: set source.encoding: utf-8."),
    (b"\x1f\x8b\x08\0K4N4RY", FileForm(), "set source.compression: gz."),
    (b"PAR1K4N4RY", FileForm("xlsx"), "set source.format: parquet."),
    (b"PAR1\xffK4N4RY", FileForm(), "set source.format: parquet."),
    (b"PK\x03\x04\xff\xffK4N4RY", FileForm(), "set source.compression: zip, or source.format: xlsx."),
    (b"\xd0\xcf\x11\xe0K4N4RY", FileForm("xlsx"), "save it as .xlsx or .csv."),
    *((b"age\nK4N4RY\n", FileForm(compression=c), f"it is no .{c} file, or") for c in COMPRESSIONS),
]  # fmt: skip


@pytest.mark.parametrize(("content", "form", "words"), ADVICE)
def test_a_file_of_another_form_is_refused_with_its_remedy(tmp_path, content, form, words):
    path = tmp_path / "t"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert words in refusal(path, form)


def test_a_name_of_another_encoding_is_advised_of(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,b\n".encode())
    told = refusal(path, FileForm(encoding="cp1252"), ["größe"])
    assert "set source.encoding: utf-8." in told


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_broken_archive_is_refused_whether_its_header_is_reached_or_not(tmp_path, compression):
    path, columns = tmp_path / "t", ["a"]
    packed(path, b"a\n" + b"".join(b"%d\n" % (i * i) for i in range(20_000)), compression)
    data, form = path.read_bytes(), FileForm(compression=compression)
    flipped = bytearray(data)
    for spot in range(len(data) // 2, len(data) // 2 + 60):
        flipped[spot] ^= 0xFF
    for broken in (data[:5], data[: len(data) * 2 // 3], bytes(flipped), data[:-1]):
        path.write_bytes(broken)
        with pytest.raises(SourceError, match="can't be unpacked") as raised:
            list(read_batches(path, columns, form, keep_broken=True))
        assert raised.value.__cause__ is None


def test_an_archive_of_several_files_none_or_a_locked_one_is_refused(tmp_path):
    path, form = tmp_path / "t.zip", FileForm(compression="zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.mkdir("empty")
    assert "holds 0 files" in refusal(path, form)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "age\n")
        archive.writestr(f"{CANARY}.csv", "age\n")
    assert "holds 2 files, and a table must be one" in refusal(path, form)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "age\n")
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    assert "needs a password" in refusal(path, form)


def test_workbooks_that_have_no_such_sheet_no_rows_or_a_name_twice_are_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    write_workbook(path, {CANARY: [["age", 2019, "age"], [1, 2, CANARY]], "Empty": []})
    assert "has no sheet 'Visits': set source.sheet" in refusal(path, FileForm("xlsx", sheet="Visits"))
    assert "is empty" in refusal(path, FileForm("xlsx", sheet="Empty"))
    assert "more than one column named 'age'" in refusal(path, FileForm("xlsx"))
    assert codes(path, FileForm("xlsx"), {"2019": COLUMNS["age"]}) == {"2019": [2]}
    for content in (b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), CANARY.encode()):
        path.write_bytes(content)
        assert "can't be read as an Excel workbook" in refusal(path, FileForm("xlsx"))


def test_without_its_library_a_workbook_is_refused_with_what_to_install(tmp_path, monkeypatch):
    write_workbook(tmp_path / "t.xlsx", {"S": [["age"], [1]]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert 'pip install "dpsynth[excel]".' in refusal(tmp_path / "t.xlsx", FileForm("xlsx"))


def test_an_empty_text_in_a_sheet_is_a_missing_cell_and_an_error_is_text(tmp_path):
    path = tmp_path / "t.xlsx"
    write_workbook(
        path, {"S": [[None, None, None], ["a", "b"], ["#N/A", 1], ["", 2], [None, 3], [None, None], ["x"]]}
    )
    (batch,) = read_batches(path, ["a", "b"], FileForm("xlsx"), keep_broken=True)
    assert batch["a"].to_pylist() == ["#N/A", None, None, "x"] and batch["b"].to_pylist() == [
        "1",
        "2",
        "3",
        None,
    ]


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_row_without_cells_counts_where_the_number_of_rows_is_public(tmp_path, place):
    """A respondent's row may be exchanged for an empty one; a sheet may store empty rows behind its table."""
    path, rows = tmp_path / "t.xlsx", [["a", "b"], *([f"{n}", n] for n in range(5))]
    rows[place + 1] = [None, ""]
    write_workbook(path, {"S": rows})
    lengths = {}
    for public in (True, False):
        (batch,) = read_batches(path, ["a", "b"], FileForm("xlsx"), keep_broken=True, keep_empty=public)
        lengths[public] = len(batch["a"])
    assert lengths == {True: 5, False: 4}


def test_a_sheet_of_any_stated_size_and_with_cells_far_away_is_read_as_its_rows(tmp_path):
    path = tmp_path / "t.xlsx"
    write_workbook(path, {"S": [["a", "b"], ["x", 1], ["y", 2]]})
    parts, sheet = parts_of(path), "xl/worksheets/sheet1.xml"
    stray = b'<row r="400000"><c r="XFD400000"><v>7</v></c></row></sheetData>'
    for size in (b"A1", b"A1:XFD1048576"):
        changed = parts[sheet].replace(b'ref="A1:B3"', b'ref="' + size + b'"')
        assert changed != parts[sheet]
        write_parts(path, {**parts, sheet: changed.replace(b"</sheetData>", stray)})
        (batch,) = read_batches(path, ["a", "b"], FileForm("xlsx"), keep_broken=True)
        assert batch["a"].to_pylist() == ["x", "y", None] and batch["b"].to_pylist() == ["1", "2", None]


SOURCES = [
    ({"path": "t.csv"}, FileForm()),
    ({"path": "T.TSV"}, FileForm(separator="\t")),
    ({"path": "t.csv.gz", "encoding": "Latin1"}, FileForm(compression="gz", encoding="iso8859-1")),
    ({"path": "t.zip", "separator": ";"}, FileForm(compression="zip", separator=";")),
    ({"path": "t.bin", "format": "csv", "compression": "xz"}, FileForm(compression="xz")),
    ({"path": "t.csv", "multiline": False}, FileForm(multiline=False)),
    ({"path": "t.xlsx", "sheet": "Visits 2020"}, FileForm("xlsx", sheet="Visits 2020")),
    ({"path": "t.parquet"}, FileForm("parquet")),
]  # fmt: skip


def declared(source):
    return spec_of(ACCENTS, source=source).source


@pytest.mark.parametrize(("source", "form"), SOURCES)
def test_the_form_is_what_is_declared_and_what_the_name_says(source, form):
    assert declared(source).form == form


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"path": "t.csv", "encoding": "utf-7"}, "must be utf-8, utf-16, windows-1252, latin-1 or"),
        ({"path": "t.csv", "encoding": "rot13"}, "source.encoding must be"),
        ({"path": "t.csv", "encoding": 1252}, "source.encoding must be"),
        ({"path": "t.csv", "compression": "rar"}, "source.compression must be gz, bz2, xz, zst or zip"),
        ({"path": "t.parquet", "encoding": "cp1252"}, "source.encoding is for .csv files: remove it"),
        ({"path": "t.xlsx", "multiline": True}, "source.multiline is for .csv files: remove it"),
        ({"path": "t.csv", "sheet": "x"}, "source.sheet is for .xlsx files: remove it"),
        ({"path": "t.parquet.gz"}, "source.path must end in"),
        ({"path": "t.xls"}, "source.path must end in"),
    ],
)  # fmt: skip
def test_keys_that_a_format_has_no_use_for_are_refused(source, words):
    with pytest.raises(ConfigError, match="source") as raised:
        declared(source)
    assert words in str(raised.value)


def test_the_form_of_another_file_for_the_same_config_is_its_own(tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text(
        "source: {path: t.csv.gz, separator: ';', encoding: cp1252}\nprivacy: {epsilon: 1}\n"
        "columns: {age: {type: integer, min: 0, max: 9}}\n"
    )
    forms = {
        p: dpsynth.load(config, source=p).source.form for p in ("a.csv", "a.csv.zst", "a.parquet", "a.xlsx")
    }
    cells = FileForm(separator=";", encoding="cp1252")
    assert forms == {
        "a.csv": cells, "a.csv.zst": replace(cells, compression="zst"), "a.parquet": FileForm("parquet"),
        "a.xlsx": FileForm("xlsx"),
    }  # fmt: skip
