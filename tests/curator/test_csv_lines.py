"""A row is read by itself: what one row holds moves no other row, whatever it holds."""

import random
from collections import Counter

import pytest

from dpsynth.config.files import FileForm
from dpsynth.config.files.form import ENCODINGS, WIDE
from dpsynth.curator.rows import csv_lines
from dpsynth.curator.rows.csv_lines import BrokenRows, Marks, piece_end
from dpsynth.curator.rows.files import read_batches
from tests.thinned import some

WIDTH = 3
LINES, RECORDS = FileForm(multiline=False), FileForm()
NASTY = (
    '1,"abc,x', '"', '""', '"""', '1,"', '",",', ',"",', '"a"b,c,d', 'a"b,"c,"d', '6" x 4",2,3', '"\r",1,2',
    "1,2\r3,4,5", "\r", "", ",", ",,", ",,,", '"1","2","3"', '"1""",2,"""3"', "1,2", '"a,b",c,d', '1,2,"x\r"',
    '1,"2"x,3', '"1,2,3\r', "\0,1,2", "\ufeff,2,3", '\ufeff"1",2,3', '"x""', '1,"",""', 'a,"b""c,d',
)  # fmt: skip


def alphabet(chance: random.Random) -> str:
    return "".join(chance.choice('"",,ab\r1 é') for _ in range(chance.randrange(12)))


def a_line(chance: random.Random) -> str:
    return chance.choice((chance.choice(NASTY), alphabet(chance), "1,2,3", '"1","2","3"'))


def expected(line: str) -> list[str] | None:
    """The cells of a line by the rule of the docstring, sign by sign; None for a broken row."""
    line = line.removesuffix("\r")
    cells, cell, within, at = [], "", False, 0
    fresh = True
    while at < len(line):
        sign = line[at]
        if within and line.startswith('""', at):
            cell, at = cell + '"', at + 1
        elif within and sign == '"':
            within = False
        elif within:
            cell += sign
        elif sign == '"' and fresh:
            within, fresh = True, False
        elif sign == ",":
            cells, cell, fresh = [*cells, cell], "", True
        elif sign == "\r":
            return None
        else:
            cell, fresh = cell + sign, False
        at += 1
    cells.append(cell)
    return None if within or len(cells) != WIDTH else cells


@pytest.fixture
def read(tmp_path):
    def run(lines, form=LINES, end="\n", header="a,b,c"):
        path = tmp_path / "t.csv"
        encoding = form.encoding if form.encoding in WIDE else "utf-8"
        path.write_bytes(end.join([header, *lines, ""]).encode(encoding))
        found = read_batches(path, ["a", "b", "c"], form, keep_broken=True)
        return [row for batch in found for row in zip(*(batch[c].to_pylist() for c in "abc"), strict=True)]

    return run


@pytest.mark.parametrize("block", some([1, 40, 1 << 20], 1))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_line_is_one_row_by_the_rule_whatever_stands_around_it(read, monkeypatch, block, end):
    monkeypatch.setattr(csv_lines, "BLOCK", block)
    monkeypatch.setattr(csv_lines, "PIECE", 64)
    chance = random.Random(7)
    for _ in range(30):
        lines = [a_line(chance) for _ in range(30)]
        told = [expected(line) for line in lines if line.strip("\r")]
        whole = [tuple(cells) for cells in told if cells is not None]
        assert read(lines, end=end) == whole + [(None,) * WIDTH] * (len(told) - len(whole))


@pytest.mark.parametrize("encoding", some(["utf-8", "utf-16", "cp1252"], 1))
def test_a_row_that_comes_or_goes_moves_no_other_row(read, monkeypatch, encoding):
    monkeypatch.setattr(csv_lines, "BLOCK", 50)
    form, chance = FileForm(encoding=encoding, multiline=False), random.Random(11)
    for _ in range(60):
        lines = [a_line(chance) for _ in range(12)]
        spot, line = chance.randrange(13), chance.choice((*NASTY, alphabet(chance)))
        without, with_it = (
            Counter(read(lines, form)),
            Counter(read([*lines[:spot], line, *lines[spot:]], form)),
        )
        assert without <= with_it and (with_it - without).total() <= 1


def test_a_reader_whose_quotes_run_on_is_caught(read, monkeypatch):
    monkeypatch.setattr(csv_lines, "_mended", lambda block, *rest: block)
    with pytest.raises(AssertionError):
        test_a_row_that_comes_or_goes_moves_no_other_row(read, monkeypatch, "utf-8")


@pytest.mark.parametrize("form", [LINES, RECORDS])
def test_an_unclosed_quote_costs_its_own_row_and_is_counted(tmp_path, form):
    path, broken = tmp_path / "t.csv", BrokenRows()
    rows = [f'{i},"x, y",{i}' for i in range(1000)]
    rows[500] = '500,"x, y,500'
    path.write_text("\n".join(["a,b,c", *rows, "1,2", "\u00e9" * 3]) + "\n", encoding="latin-1")
    found = read_batches(path, ["a"], form, keep_broken=True, broken=broken)
    texts = [text for batch in found for text in batch["a"].to_pylist()]
    assert texts == [f"{i}" for i in range(1000) if i != 500] + [None] * 3
    assert (broken.unclosed, broken.uneven, broken.overlong, broken.undecodable) == (1, 2, 0, 1)


@pytest.mark.parametrize("encoding", [e for e in ENCODINGS if e not in WIDE])
def test_an_encoding_spells_ascii_as_ascii_does_and_ends_no_character_with_a_line_end(encoding):
    ascii_ = bytes(range(128))
    assert ascii_.decode(encoding) == ascii_.decode("ascii")
    chance = random.Random(encoding)
    for _ in range(300):
        data = bytes(chance.choice((10, 34, 44, 65, chance.randrange(256))) for _ in range(12))
        lines = [line.decode(encoding, "replace") for line in data.split(b"\n")]
        assert all("\n" not in line for line in lines)
        assert csv_lines._as_utf8(data, encoding, BrokenRows()).decode() == "\n".join(lines)


@pytest.mark.parametrize("line", ['a","', 'a","a', '"",a","', '""""a","'])
def test_a_quote_that_opens_behind_others_costs_its_own_row(read, line):
    assert read(['"x",1,2', line, "4,5,6"]) == [("x", "1", "2"), ("4", "5", "6"), (None,) * WIDTH]


def test_a_line_longer_than_a_piece_is_looked_at_by_itself(monkeypatch):
    bad = b'a","a\n'
    monkeypatch.setattr(csv_lines, "PIECE", 4)
    for block, lines in ((bad, [0]), (bad[:-1], [0]), (bad + bad, [0, 1])):
        assert Marks.of(block).suspicious(ord(",")).tolist() == lines


@pytest.mark.parametrize(
    ("start", "size", "end"), [(0, 4, 4), (2, 4, 6), (2, 1, 4), (4, 1, 6), (6, 1, 13), (6, 6, 13), (6, 9, 15)]
)
def test_a_piece_ends_with_a_line_and_is_no_longer_than_needed(start, size, end):
    assert piece_end(b"a\nb\nc\naaaaaa\nz\n", start, size) == end
    assert piece_end(b"aaaaaa", 0, 3) == 6


def test_broken_rows_are_those_that_are_not_read():
    assert BrokenRows(1, 2, 4, 8).rows == 7
