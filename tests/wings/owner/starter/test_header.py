"""From a header alone: what it says, and not one cell more."""

import datetime as dt

import pyarrow as pa
import pytest
from pyarrow import parquet

from dpsynth.config import from_mapping
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError, SourceError
from dpsynth.wings.owner.starter import draft_of, starter_text
from tests.wings.owner.starter.reviewing import filled, taken_over, to_review

CANARY = "K4N4RY"


def started(path, **options):
    return starter_text(draft_of(path, **options), "t", "schemas", "dpsynth init")


def test_every_column_of_a_csv_header_is_a_stub_for_review(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfage,"city, or town",getting in/out\r\n1,2,3\r\n')
    text = started(path)
    names = ["age", "city, or town", "getting in/out"]
    assert taken_over(text) == {name: {"type": None} for name in names}
    assert to_review(text) == ["privacy", *(f"columns.{name}" for name in names)]
    assert "its first line. No row of the table was read." in " ".join(text.split("\n# "))


def test_no_cell_of_a_table_reaches_the_starter(tmp_path):
    def text_with(rows):
        path = tmp_path / "t.csv"
        path.write_text("a,b\n" + "".join(f"{row},{row}\n" for row in rows))
        return started(path)

    assert text_with([CANARY] * 10) == text_with([]) == text_with(["1e9", "", "'"])


def test_the_schema_of_a_parquet_file_says_types_and_its_cells_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    columns = {
        "age": pa.array([17], pa.int16()),
        "pay": pa.array([1.5]),
        "member": pa.array([True]),
        "seen": pa.array([dt.date(2020, 1, 1)]),
        "at": pa.array([dt.datetime(2020, 1, 1)]),
        "clock": pa.array([dt.time(1)]),
        "sex": pa.array([CANARY]).dictionary_encode(),
        "name": pa.array([CANARY]),
        "tags": pa.array([[CANARY]]),
    }
    parquet.write_table(pa.table(columns), path)
    monkeypatch.setattr(parquet, "ParquetFile", None)
    text = started(path)
    ends = {"min": None, "max": None}
    assert taken_over(text) == {
        "age": {"type": "integer", **ends},
        "pay": {"type": "number", **ends},
        "member": {"type": "boolean"},
        "seen": {"type": "date", **ends},
        "at": {"type": "datetime", **ends},
        "clock": {"type": "time"},
        "sex": {"type": "category", "values": None},
        "name": {"type": None},
        "tags": {"type": None},
    }
    assert CANARY not in text
    assert len(filled(taken_over(text)).columns) == 9


def test_columns_without_a_name_of_their_own_are_left_out_and_told_of(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",age,twice,twice\n")
    text = started(path)
    assert list(taken_over(text)) == ["age"]
    assert "without a name, or with that of another column, were left out" in " ".join(text.split("\n# "))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty: its first line must be a header"),
        (b"\n1\n", "is empty: its first line must be a header"),
        (b",\n1,2\n", "no column with a name"),
        (b"17,2000,K4N4RY\n", "row of values and not a header"),
        (b"\xff\xfe\0\xd8K4N4RY", "not UTF-16 text"),
        (b"a\0,K4N4RY\n", "not UTF-8 text. Save the table as a .csv file again"),
        (b'a,"K4N4RY\n', "in line 1 quotes begin that do not end there"),
        (b'a;"b\n(K4N4RY)";c\n1;2;3\n4;5;6\n', "in line 1 quotes begin that do not end there"),
        (b'Visits\na;b;"c\n(K4N4RY)";d\n1;2;3;4\n', "in line 2 quotes begin that do not end there"),
        (b'Visits\na;b, c, d;"e\n(K4N4RY)"\nx;y;z\nx;y;z\n', "in line 2 quotes begin that do not end there"),
        (b",".join(b"c%d" % i for i in range(2001)), "a configuration can declare 2,000"),
    ],
)
def test_what_is_no_header_is_refused_without_quoting_it(tmp_path, content, words):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=words) as raised:
        draft_of(path)
    assert CANARY not in str(raised.value) and "\n" not in str(raised.value)


def test_a_missing_or_foreign_table_is_one_plain_error(tmp_path):
    with pytest.raises(SourceError, match=r"There is no file .* Relative paths start"):
        draft_of(tmp_path / "t.csv")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(SourceError, match="can't be read as a Parquet file"):
        draft_of(tmp_path / "t.parquet")
    with pytest.raises(ConfigError, match="There is no file"):
        draft_of(tmp_path / "t.json")
    (tmp_path / "t.csv").write_text("a\n")
    with pytest.raises(ConfigError, match="is a table itself"):
        draft_of(tmp_path / "t.csv", table=tmp_path / "t.csv")


@pytest.mark.parametrize(("sign", "word"), [(";", '";"'), ("\t", "tab"), ("|", '"|"')])
def test_a_table_with_another_separator_is_recognised_and_the_starter_says_so(tmp_path, sign, word):
    path = tmp_path / "t.csv"
    path.write_text(f"age{sign}sex\n1{sign}F\n")
    text = started(path)
    assert f"separator: {word}}}" in text
    assert list(taken_over(text)) == ["age", "sex"]
    spec = from_mapping({
        "release": "r", "source": parse_yaml(text, "t").values["source"], "privacy": {"epsilon": 1},
        "columns": {"age": {"type": "integer", "min": 0, "max": 9}},
    })  # fmt: skip
    assert spec.source.separator == sign


def test_a_table_of_another_ending_is_read_as_told_and_the_starter_says_so(tmp_path):
    (tmp_path / "t.txt").write_text("a,b\n")
    text = started(tmp_path / "t.txt", form="csv")
    assert 't.txt", format: csv}' in text
    assert filled(taken_over(text)).columns.keys() == {"a", "b"}
