"""Any cell is read and no message shows one; broken structure is one clear error."""

import datetime as dt
import os
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from dpsynth.config.files import FileForm
from dpsynth.curator.rows import csv_lines
from dpsynth.curator.rows import files as source
from dpsynth.curator.rows.files import check_source, names_of, read_batches, read_row_groups, row_groups
from dpsynth.errors import SourceError

CANARY = "K4N4RY"


@pytest.fixture
def read(tmp_path):
    """Write bytes or a table, and read columns of it back as lists of texts."""

    def run(content, columns=("a", "b"), kind="csv", keep_broken=True):
        path = tmp_path / f"table.{kind}"
        if isinstance(content, pa.Table):
            parquet.write_table(content, path)
        else:
            path.write_bytes(content)
        found = {c: [] for c in columns}
        for batch in read_batches(path, list(columns), FileForm(kind), keep_broken=keep_broken):
            for column in columns:
                assert batch[column].type == pa.string()
                found[column] += batch[column].to_pylist()
        return found

    return run


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_missing_file_and_a_folder_are_refused_by_path(tmp_path, kind):
    for path in (tmp_path / "nothing.csv", tmp_path):
        with pytest.raises(SourceError, match=r"There is no file|is a folder|has no .parquet file") as raised:
            list(read_batches(path, ["a"], FileForm(kind), keep_broken=True))
        assert str(path) in str(raised.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    with pytest.raises(SourceError, match="may not be read"):
        list(read_batches(path, ["a"], FileForm(), keep_broken=True))


@pytest.mark.parametrize("content", [b"", b"\n", b"  \n1\n", b"\r\n"])
def test_an_empty_csv_file_is_refused(read, content):
    with pytest.raises(SourceError, match="is empty"):
        read(content)


@pytest.mark.parametrize(
    "content",
    [
        b"a\0,b\n1,2\n",
        b"\xff\xfea\n",
        "a,b\n1,2\n".encode("utf-16"),
        b"PK\x03\x04\xff\n",
        b"a,b\rK4N4RY,2\r3,4\r",
        b"a," + b"b" * 200_000 + b"\nK4N4RY,2\n",
    ],
)
def test_a_first_line_that_is_no_header_is_refused(read, content):
    with pytest.raises(SourceError, match="first line") as raised:
        read(content)
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_another_separator_than_the_comma_is_read(tmp_path, separator):
    path = tmp_path / "t.csv"
    path.write_text('a;"b;b"\n1,5;"x;y"\n1;2;3\n'.replace(";", separator))
    columns = ["a", f"b{separator}b"]
    (batch,) = read_batches(path, columns, FileForm(separator=separator), keep_broken=False)
    assert [batch[c].to_pylist() for c in columns] == [["1,5"], [f"x{separator}y"]]


def test_a_header_alone_is_a_table_without_rows(read):
    assert read(b"a,b") == {"a": [], "b": []}
    assert read(b"a,b\n") == {"a": [], "b": []}
    assert read(b"a,b\r\n") == {"a": [], "b": []}


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_byte_order_mark_and_either_line_end_are_read_alike(read, mark, end):
    content = mark + end.join([b"a,b", b"1,x", b"2,y"])
    assert read(content) == {"a": ["1", "2"], "b": ["x", "y"]}
    assert read(content + end) == {"a": ["1", "2"], "b": ["x", "y"]}


def test_quoted_cells_may_hold_newlines_commas_and_quotes(read):
    assert read(b'a,b\n"1\n2","x,y"\n"say ""hi""",\n') == {"a": ["1\n2", 'say "hi"'], "b": ["x,y", ""]}


def test_a_quoted_header_is_read_and_columns_come_in_the_order_asked(read):
    assert read(b'"x, y",a,b\n1,2,3\n', ("b", "x, y")) == {"b": ["3"], "x, y": ["1"]}


def test_rows_with_too_few_or_many_cells_count_as_rows_of_missing_cells_without_a_word(read, capfd, recwarn):
    content = b"a,b\nK4N4RY\n1,2\nK4N4RY,4,5\n\n3,4\nK4N4RY,,\n"
    assert read(content) == {"a": ["1", "3", None, None, None], "b": ["2", "4", None, None, None]}
    assert read(content, keep_broken=False) == {"a": ["1", "3"], "b": ["2", "4"]}
    assert capfd.readouterr() == ("", "") and not recwarn.list


def test_a_wanted_column_twice_is_refused_and_an_unwanted_one_is_not(read):
    with pytest.raises(SourceError, match="more than one column named 'a'"):
        read(b"a,b,a\nK4N4RY,2,3\n")
    assert read(b"c,a,c,b\nx,1,y,2\n") == {"a": ["1"], "b": ["2"]}


def test_an_absent_column_is_named_and_no_other_column_of_the_table_is(read):
    with pytest.raises(SourceError, match="has no column 'b', 'z'") as raised:
        read(b"a,K4N4RY\n1,2\n", ("a", "b", "z"))
    assert CANARY not in str(raised.value)


def test_bytes_that_are_no_utf8_become_replacement_characters(read):
    assert read(b"a,b\n\xff\xfe,\xe9t\xe9\nok,2\n") == {
        "a": ["\ufffd\ufffd", "ok"],
        "b": ["\ufffdt\ufffd", "2"],
    }


def test_nul_and_other_control_characters_are_cells_like_any_other(read):
    assert read(b"a,b\n\0,\x1b[31m\n1\0002,\x07\n") == {"a": ["\0", "1\x002"], "b": ["\x1b[31m", "\x07"]}


def test_texts_that_look_null_or_numeric_stay_the_texts_they_are(read):
    texts = ["NA", "null", "nan", "007", "1e3", "true", "", " x "]
    assert read(("a\n" + "\n".join(f'"{t}"' for t in texts) + "\n").encode(), ("a",)) == {"a": texts}


@pytest.mark.parametrize("junk", [b"caf\xe9,1,2", b"\xff", b"\xc3,\xc3,\x80", b"\xf0\x9f\x98\n\xed\xa0\x80"])
def test_a_broken_row_of_bytes_that_are_no_text_is_a_broken_row_like_any_other(read, junk, monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    found = read(b"a,b\n1,2\n" + junk + b"\n3,4\n", keep_broken=False)
    assert found == {"a": ["1", "3"], "b": ["2", "4"]} and told == []


@pytest.mark.parametrize("keep_broken", [True, False])
def test_rows_longer_than_a_block_are_rows_like_any_other(read, monkeypatch, keep_broken):
    rows = [b"%d,%s" % (i, b"x" * 10 ** (i % 5)) for i in range(40)] + [b"1", b"2,3,4", b'5,"a,b"'] * 9
    content = b"a,b\n" + b"\n".join(rows)
    whole = read(content, keep_broken=keep_broken)
    assert len(whole["a"]) == 49 + 18 * keep_broken
    for block in (1 << 7, 1 << 9, 1 << 15):
        monkeypatch.setattr(csv_lines, "BLOCK", block)
        assert read(content, keep_broken=keep_broken) == whole


@pytest.mark.parametrize("block", [7, 64, 100])
def test_a_row_of_too_many_bytes_is_a_broken_row_wherever_it_stands(read, monkeypatch, block):
    monkeypatch.setattr(csv_lines, "LONGEST_LINE", 100)
    monkeypatch.setattr(csv_lines, "BLOCK", block)
    longest, longer = b"1," + b"x" * 98, b"2," + b"x" * 99
    for before in range(0, 120, 13):
        content = b"a,b\n" + b"0," + b"y" * before + b"\n" + longest + b"\n" + longer + b"\n3,4\n"
        assert read(content)["a"] == ["0"] * (before <= 98) + ["1", "3", None] + [None] * (before > 98)
        assert read(content[:-5])["a"][-1] is None


def test_a_header_of_several_lines_or_without_an_end_is_refused(read):
    for content in (b'a,b,"c\nd"\n1,2,3\n', b'"a\n",b\n1,2\n', b"a,b," + b"c," * 600_000 + b"d\n1,2\n"):
        with pytest.raises(SourceError, match="no header"):
            read(content)


def test_a_file_is_read_as_it_is_whatever_its_name_says_of_compression(tmp_path):
    path = tmp_path / "table.gz"
    path.write_bytes(b"a\n1\n")
    assert [b["a"].to_pylist() for b in read_batches(path, ["a"], FileForm(), keep_broken=True)] == [["1"]]


def test_a_table_of_many_blocks_is_read_whole_and_in_order(read, monkeypatch):
    monkeypatch.setattr(csv_lines, "BLOCK", 1 << 10)
    rows = [str(i) for i in range(5000)]
    content = "a,b\n" + "".join(f'{i},"two, cells"\n' for i in rows)
    found = read(content.encode())
    assert found["a"] == rows and set(found["b"]) == {"two, cells"}


DAY, MOMENT = dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5)
UUID = uuid.UUID(int=2**128 - 7)
PLAIN = [
    (pa.array([1, -2, None], pa.int8()), ["1", "-2", None]),
    (pa.array([2**63], pa.uint64()), [str(2**63)]),
    (pa.array([3.0, 0.1, float("nan"), float("-inf"), None]), ["3", "0.1", "nan", "-inf", None]),
    (pa.array([0.5], pa.float32()), ["0.5"]),
    (pa.array([0.5], pa.float16()), ["0.5"]),
    (pa.array([True, False, None]), ["true", "false", None]),
    (pa.array(["x", "", None]), ["x", "", None]),
    (pa.array(["x"], pa.large_string()), ["x"]),
    (pa.array(["x"], pa.string_view()), ["x"]),
    (pa.array([b"x", b"\xff", None]), ["x", "\ufffd", None]),
    (pa.array([b"x", b"\xff", None], pa.large_binary()), ["x", "\ufffd", None]),
    (pa.array([b"xy", b"\xff\xff", None], pa.binary(2)), ["xy", "\ufffd\ufffd", None]),
    (pa.array([DAY, None]), ["2020-01-02", None]),
    (pa.array([MOMENT], pa.timestamp("s")), ["2020-01-02 03:04:05.000"]),
    (pa.array([MOMENT], pa.timestamp("us", "UTC")), ["2020-01-02 03:04:05.000000Z"]),
    (pa.array([dt.time(1, 2)], pa.time64("us")), ["01:02:00.000000"]),
    (pa.array([5, None], pa.duration("s")), ["PT5S", None]),
    (pa.array([-90_500, 60_000], pa.duration("ms")), ["-PT90.500S", "PT60S"]),
    (pa.array([1, -(2**63) + 1], pa.duration("ns")), ["PT0.000000001S", "-PT9223372036.854775807S"]),
    (pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)), ["1.50", None]),
    (pa.array([Decimal("-1.50")], pa.decimal256(50, 2)), ["-1.50"]),
    (pa.nulls(2), [None, None]),
    (pa.array(["x", "y", "x", None]).dictionary_encode(), ["x", "y", "x", None]),
    (pa.array([7, 8, 7]).dictionary_encode(), ["7", "8", "7"]),
    (pa.array([b"x", b"\xff"]).dictionary_encode(), ["x", "\ufffd"]),
    (pa.array([b"x\xff", None]).view(pa.string()), ["x\ufffd", None]),
    (pa.array([b"\xff"], pa.large_binary()).view(pa.large_string()), ["\ufffd"]),
    (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["[1]"])), ["[1]"]),
    (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([UUID.bytes, None], pa.binary(16))),
        [f"{UUID}", None],
    ),
]


@pytest.mark.parametrize(("cells", "texts"), PLAIN, ids=[str(c.type) for c, _ in PLAIN])
def test_every_plain_type_of_parquet_is_read_as_text(read, cells, texts):
    assert read(pa.table({"a": cells, "rest": [[1]] * len(cells)}), ("a",), "parquet") == {"a": texts}


def test_dates_and_numbers_far_outside_any_calendar_are_read_too(read):
    wild = pa.array([2**31 - 1, -(2**31)], pa.int32()).view(pa.date32())
    assert len(read(pa.table({"a": wild}), ("a",), "parquet")["a"]) == 2


@pytest.mark.parametrize("cells", [[[1]], [{CANARY: 1}], [[CANARY]]])
def test_lists_and_records_are_refused_before_anything_is_read(read, cells):
    with pytest.raises(SourceError, match="lists or records") as raised:
        read(pa.table({"a": cells}), ("a",), "parquet")
    assert CANARY not in str(raised.value)


def test_times_in_an_unknown_zone_and_arrays_are_refused_by_their_type(read):
    zoned = pa.array([], pa.timestamp("us", "Nowhere/None"))
    pairs = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([], pa.list_(pa.int8(), 2))
    )
    for cells in (zoned, pairs):
        with pytest.raises(SourceError, match="be written as text"):
            read(pa.table({"a": cells}), ("a",), "parquet")


@pytest.mark.parametrize("content", [b"", CANARY.encode(), b"PAR1" + CANARY.encode() * 9 + b"PAR1"])
def test_what_is_no_parquet_file_is_refused_without_a_word_of_it(read, content):
    with pytest.raises(SourceError, match="can't be read as a Parquet file") as raised:
        read(content, ("a",), "parquet")
    assert CANARY not in str(raised.value) and raised.value.__cause__ is None


def test_a_parquet_file_without_a_column_or_with_it_twice_is_refused(read):
    with pytest.raises(SourceError, match="has no column 'b'"):
        read(pa.table({"a": [1]}), ("a", "b"), "parquet")
    with pytest.raises(SourceError, match="more than one column named 'a'"):
        read(pa.table([[1], [2]], names=["a", "a"]), ("a",), "parquet")


def test_parquet_rows_of_many_batches_come_whole_and_in_order(read, monkeypatch):
    monkeypatch.setattr("dpsynth.curator.rows.files._BATCH_ROWS", 100)
    found = read(pa.table({"a": list(range(1000)), "b": ["x"] * 1000}), ("b", "a"), "parquet")
    assert found["a"] == [str(i) for i in range(1000)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_beginning_of_a_file_shows_what_is_wrong_with_it(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    for use in (lambda: names_of(path, FileForm(kind)), lambda: check_source(path, ["a"], FileForm(kind))):
        with pytest.raises(SourceError, match=r"There is no file|has no .parquet file"):
            use()
    if kind == "csv":
        path.write_text("a,b\n1,2\n")
    else:
        parquet.write_table(pa.table({"a": [1], "b": [2]}), path)
    assert names_of(path, FileForm(kind)) == ["a", "b"]
    check_source(path, ["a"], FileForm(kind))
    with pytest.raises(SourceError, match="'absent'"):
        check_source(path, ["a", "absent"], FileForm(kind))
    other = "parquet" if kind == "csv" else "csv"
    with pytest.raises(SourceError):
        check_source(path, ["a"], FileForm(other))


def test_row_groups_of_a_file_that_is_none_or_is_gone_are_an_error_of_the_source(tmp_path):
    path, form = tmp_path / "t.parquet", FileForm("parquet")
    parquet.write_table(pa.table({"a": list(range(6))}), path, row_group_size=2)
    groups = row_groups(path, form)
    assert [(group, rows) for _, group, rows in groups] == [(0, 2), (1, 2), (2, 2)]
    chosen = [(groups[0][0], [0, 2])]
    read = read_row_groups(path, ["a"], form, chosen)
    assert [cell for batch in read for cell in batch["a"].to_pylist()] == [0, 1, 4, 5]
    path.write_bytes(b"PAR1 broken")
    with pytest.raises(SourceError):
        list(read_row_groups(path, ["a"], form, chosen))
    with pytest.raises(SourceError):
        row_groups(path, form)


def test_the_share_of_a_parquet_file_that_is_read_is_told(tmp_path, monkeypatch):
    told = []

    def telling(what, whole):
        told.append((what, whole))
        return told.append

    monkeypatch.setattr(source, "telling", telling)
    monkeypatch.setattr(source, "_BATCH_ROWS", 4)
    monkeypatch.setattr(source, "_A_PART", 1000)
    for name, rows in (("a", 1), ("b", 8), ("c", 0)):
        parquet.write_table(pa.table({"n": list(range(rows))}), tmp_path / f"{name}.parquet")
    list(read_batches(tmp_path, ["n"], FileForm("parquet"), keep_broken=True))
    assert told == [("reading", 3000), 1000, 500, 500]


def test_a_page_whose_bits_have_turned_is_not_read(tmp_path):
    path = tmp_path / "t.parquet"
    cells = pa.table({"a": pa.array([f"{n:06}" for n in range(1000)])})
    parquet.write_table(cells, path, compression="none", use_dictionary=False, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[data.index(b"000500")] ^= 1
    path.write_bytes(data)
    with pytest.raises(SourceError):
        list(read_batches(path, ["a"], FileForm("parquet"), keep_broken=True))


def test_rows_of_a_sheet_come_whole_whatever_their_length(tmp_path, monkeypatch):
    path = tmp_path / "t.xlsx"
    path.touch()
    rows = [["a", "b"], ["1"], ["2", "3", "4"], [], ["5", "6"]]
    monkeypatch.setattr(source, "_SHEET_ROWS", 3)
    monkeypatch.setattr(source, "sheet_rows", lambda *_: iter(rows))
    form = FileForm("xlsx")
    found = list(read_batches(path, ["b", "a"], form, keep_broken=True, keep_empty=True))
    assert [batch["b"].to_pylist() for batch in found] == [[None, "3", None], ["6"]]
    assert [batch["a"].to_pylist() for batch in found] == [["1", "2", None], ["5"]]
    with pytest.raises(SourceError, match="'c'"):
        list(read_batches(path, ["c"], form, keep_broken=True))


def test_an_empty_line_is_a_missing_cell_of_a_single_column_and_no_row_of_several(read):
    assert read(b"a\n1\n\n2\n", ["a"]) == {"a": ["1", "", "2"]}
    assert read(b"a,b\n1,2\n\n3,4\n") == {"a": ["1", "3"], "b": ["2", "4"]}


def test_a_mark_at_the_beginning_of_the_first_cell_is_a_part_of_it(read):
    assert read("a,b\n\ufeff1,2\n".encode()) == {"a": ["\ufeff1"], "b": ["2"]}


@pytest.mark.parametrize(
    ("cells", "whole"), [([0, 1], True), ([0, 2], False), ([-1, 0], False), ([None], True)]
)
def test_a_cell_that_its_dictionary_has_no_text_for_is_a_broken_file(read, monkeypatch, cells, whole):
    """As in a page whose bytes were changed: Arrow's reader lets it through."""
    texts = pa.array(["K4N4RY", "x"])
    found = pa.DictionaryArray.from_arrays(pa.array(cells, pa.int32()), texts, safe=False)
    batch = pa.RecordBatch.from_arrays([found], ["a"])
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", lambda *_, **__: iter([batch]))
    table = pa.table({"a": texts})
    if whole:
        assert len(read(table, ("a",), "parquet")["a"]) == len(cells)
        return
    with pytest.raises(SourceError, match=r"can.t be read as .*, or broken") as refused:
        read(table, ("a",), "parquet")
    assert CANARY not in str(refused.value)
