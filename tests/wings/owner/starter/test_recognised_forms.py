"""``init`` infers the form of a table from its name and its header, and writes it for review."""

import gzip

import pytest

from dpsynth.config import from_mapping
from dpsynth.config.document import parse_yaml
from dpsynth.config.files import FileForm
from dpsynth.errors import SourceError
from dpsynth.wings.owner.starter import draft_of, starter_text
from tests.config.files.workbooks import write_workbook
from tests.wings.owner.starter.reviewing import taken_over

NAMES = ["größe", "age", "Paris, France"]
HEADER = '"größe";"age";"Paris, France"\n'
LATER = "1;2;3\n"


def started(path, **options):
    draft = draft_of(path, **options)
    text = starter_text(draft, "t", "schemas", "dpsynth init")
    source = parse_yaml(text, "t").values["source"]
    declared = from_mapping({
        "release": "r", "source": source, "privacy": {"epsilon": 1},
        "columns": {"age": {"type": "integer", "min": 0, "max": 9}},
    }).source  # fmt: skip
    assert declared.form == draft.form and declared.path == str(path)
    return draft.form, list(taken_over(text)), source.keys() - {"path"}


@pytest.mark.parametrize(
    ("name", "encoding", "form", "keys"),
    [
        ("t.csv", "utf-8", FileForm(), set()),
        ("t.csv", "utf-8-sig", FileForm(), set()),
        ("t.csv", "cp1252", FileForm(encoding="cp1252"), {"encoding"}),
        ("t.csv", "utf-16", FileForm(encoding="utf-16"), {"encoding"}),
        ("t.csv", "utf-16-be", FileForm(encoding="utf-16-be"), {"encoding"}),
        ("t.csv.gz", "utf-8", FileForm(compression="gz"), set()),
        ("t.gz", "utf-16", FileForm(compression="gz", encoding="utf-16"), {"encoding"}),
    ],
)
def test_encoding_and_compression_are_recognised(tmp_path, name, encoding, form, keys):
    data = (HEADER.replace(";", ",") + LATER.replace(";", ",")).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert started(tmp_path / name) == (form, NAMES, keys)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_another_separator_is_recognised_in_every_encoding(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes((HEADER + LATER).encode(encoding))
    form, names, _ = started(path)
    assert (form.separator, form.encoding) == (";", encoding)
    assert names == NAMES


def test_a_tsv_file_has_tabs_and_needs_no_key(tmp_path):
    (tmp_path / "t.tsv").write_text("age\ta,b\n1\t2\n")
    assert started(tmp_path / "t.tsv") == (FileForm(separator="\t"), ["age", "a,b"], set())


@pytest.mark.parametrize("name", ["t.txt", "t.data", "t"])
def test_a_table_of_an_unusual_ending_is_a_csv_file_and_says_so(tmp_path, name):
    (tmp_path / name).write_text("age|sex\n1|F\n")
    assert started(tmp_path / name) == (FileForm(separator="|"), ["age", "sex"], {"format", "separator"})


@pytest.mark.parametrize(
    ("begins", "word"),
    [(b"ARROW1\0\0", "Feather"), (b"r\x02\x01\0", "Stata"), (b'{"age": 1}\n', "JSON"), (b"\x1f\x8b\0", "gz")],
)
def test_a_file_that_is_no_text_is_told_by_its_first_bytes(tmp_path, begins, word):
    (tmp_path / "t.bin").write_bytes(begins + b"K4N4RY\n")
    with pytest.raises(SourceError, match=f"t.bin is no CSV file. It begins like .*{word}") as refused:
        draft_of(tmp_path / "t.bin")
    assert "K4N4RY" not in str(refused.value)
    (tmp_path / "t.csv").write_bytes(begins + b"K4N4RY\n")
    with pytest.raises(SourceError, match=f"t.csv is no CSV file. It begins like .*{word}"):
        draft_of(tmp_path / "t.csv")


def test_the_first_row_of_a_workbook_is_its_header(tmp_path):
    write_workbook(tmp_path / "t.xlsx", {"S": [["age", None, "b"], ["K4N4RY", 1, 2]]})
    assert started(tmp_path / "t.xlsx") == (FileForm("xlsx"), ["age", "b"], set())
    write_workbook(tmp_path / "t.xlsx", {"S": [[1, 2, "b"], ["K4N4RY", 1, 2]]})
    with pytest.raises(SourceError, match="row of values and not a header"):
        draft_of(tmp_path / "t.xlsx")
