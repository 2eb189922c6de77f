"""Rows that software has quoted are read one by one; a broken quote costs its own row."""

import csv
import io
import random
from collections import Counter

import pytest

from dpsynth.config.files import FileForm
from dpsynth.curator.rows import csv_lines
from dpsynth.curator.rows import csv_lines as csv_records
from dpsynth.curator.rows.csv_lines import sound_records
from dpsynth.curator.rows.files import read_batches

SIGNS = ("\n", "\r\n", "\r", '"', ",", "x", "a b", "", '""', "\n\n", "1,2,3\n", '\n"1","2","3"\n')
MISSING = (None, None, None)


@pytest.fixture
def read(tmp_path):
    def run(text, form=FileForm(), **options):  # noqa: B008
        path = tmp_path / "t.csv"
        path.write_bytes(text.encode(form.encoding))
        found = read_batches(path, ["a", "b", "c"], form, keep_broken=True, **options)
        return [row for batch in found for row in zip(*(batch[c].to_pylist() for c in "abc"), strict=True)]

    return run


@pytest.fixture(params=[(60, 64, 1 << 12), (1 << 20, 64, 1 << 12), (300, 1 << 20, 1 << 12)])
def small(request, monkeypatch):
    """Blocks, pieces and rows so small that files have many."""
    block, piece, row = request.param
    monkeypatch.setattr(csv_lines, "BLOCK", block)
    monkeypatch.setattr(csv_records, "PIECE", piece)
    monkeypatch.setattr(csv_records, "LONGEST_ROW", row)


def written(rows, end="\r\n", quoting=csv.QUOTE_MINIMAL):
    made = io.StringIO(newline="")
    csv.writer(made, lineterminator=end, quoting=quoting).writerows([["a", "b", "c"], *rows])
    return made.getvalue()


def a_row(chance, number):
    return (f"{number}", *("".join(chance.choices(SIGNS, k=chance.randrange(5))) for _ in "bc"))


# With bare line feeds Python leaves a carriage return unquoted.
@pytest.mark.parametrize(
    ("end", "quoting"), [("\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL)]
)
def test_what_a_program_has_quoted_is_read_as_it_meant_it(read, small, end, quoting):
    chance = random.Random(3)
    for _ in range(4):
        rows = [a_row(chance, i) for i in range(30)]
        assert read(written(rows, end, quoting)) == rows
        assert read(written(rows, end, quoting).removesuffix(end)) == rows


def test_a_quoted_row_that_comes_or_goes_moves_one_row(read, small):
    """Also if it has too few or too many cells, with line breaks in them."""
    chance = random.Random(5)
    for _ in range(20):
        rows = [a_row(chance, i) for i in range(8)]
        odd = tuple(
            chance.choice(("x\ny", "\n\n\n", '"\n', "z", ",")) for _ in range(chance.choice((1, 2, 4, 9)))
        )
        spot, row = chance.randrange(11), chance.choice((odd, a_row(chance, 99)))
        without, with_it = (
            Counter(read(written(rows))),
            Counter(read(written([*rows[:spot], row, *rows[spot:]]))),
        )
        assert without <= with_it and (with_it - without).total() == 1, row


def test_a_reader_that_takes_lines_for_rows_is_caught(read, small, monkeypatch):
    monkeypatch.setattr(csv_records._Rows, "_end_of_row", lambda rows, line: line + 1)
    monkeypatch.setattr(csv_records._Rows, "_sound_beginning", lambda rows: 0)
    with pytest.raises(AssertionError):
        test_a_quoted_row_that_comes_or_goes_moves_one_row(read, small)


BROKEN = ('7,"open,9', '"', '7,"9"x,1', '"open', '7,8,"', '7,"8",9"', '7,8"9', '"7,8,9"""')


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_quote_costs_its_own_row_among_quoted_and_among_plain_ones(read, small, line):
    several = [line for i in range(30) for line in (f'{i},"two', f'lines",{i}', f'"{i}","","x, y"')]
    plain = [f"{i},{i},x" for i in range(60)]
    for lines in (several, plain):
        whole = read("\n".join(["a,b,c", *lines, ""]))
        assert len(whole) == 60 and MISSING not in whole
        for spot in (0, 45, len(lines)):
            if lines is plain or spot % 3 == 0:
                found = read("\n".join(["a,b,c", *lines[:spot], line, *lines[spot:], ""]))
                assert [row for row in found if row in whole] == whole and len(found) == 61, spot


def test_two_broken_quotes_take_no_rows_with_them_that_would_be_of_another_width(read):
    lines = ['1,"open,3', *(f"{i},{i},x" for i in range(500)), '8,9,closed"']
    found = read("\n".join(["a,b,c", *lines, ""]))
    assert len(found) == 502 and found.count(MISSING) == 1


def test_a_row_of_several_lines_has_so_many_bytes_and_no_more(read, monkeypatch):
    monkeypatch.setattr(csv_records, "LONGEST_ROW", 100)
    for block in (20, 1 << 20):
        monkeypatch.setattr(csv_lines, "BLOCK", block)
        for bytes_ in (100, 101):
            cell = "x" + "\n" * (bytes_ - len('1,"x",3\n'))
            found = read(f'a,b,c\n1,"{cell}",3\n4,5,6\n')
            kept = [("1", cell, "3"), ("4", "5", "6")]
            assert found == (kept if bytes_ == 100 else [("4", "5", "6"), MISSING]), (block, bytes_)


# Beyond the last limit the lines of a cell would be anybody's rows.
@pytest.mark.parametrize(("lines", "rows"), [(10, 2), (90, 2), (200, 202)])
def test_a_long_quoted_row_whose_lines_look_like_rows_is_one_broken_row(read, monkeypatch, lines, rows):
    monkeypatch.setattr(csv_lines, "LONGEST_ROW", 50)
    monkeypatch.setattr(csv_lines, "LONGEST_LINE", 600)
    for block in (20, 1 << 20):
        monkeypatch.setattr(csv_lines, "BLOCK", block)
        cell = "".join(f"{i % 10},7,7\n" for i in range(lines))
        found = read(f'a,b,c\n1,"{cell}",3\n4,5,6\n')
        assert len(found) == rows and ("4", "5", "6") in found, block
        assert found.count(MISSING) == (1 if rows == 2 else rows - 1 - (lines - 1)), block


def test_a_file_of_open_quotes_takes_no_longer_than_its_lines(read):
    """A line is looked at some times, however many open quotes there are before it."""

    class Looks(csv_records._Rows):
        looks = 0

        def _between(self, line, end):
            Looks.looks += end - line
            return super()._between(line, end)

    original, csv_records._Rows = csv_records._Rows, Looks
    try:
        blocks = [b'1,"open,3\n1,2,3\n' * 1000]
        list(sound_records(blocks, FileForm(), 3, csv_lines.BrokenRows()))
    finally:
        csv_records._Rows = original
    assert Looks.looks < 6 * 2000


def test_a_row_that_goes_on_in_the_next_block_is_waited_for_behind_a_broken_one(monkeypatch):
    """However much of its block lies before it: only its own bytes count."""
    monkeypatch.setattr(csv_records, "LONGEST_ROW", 60)
    blocks = [b'1,"x"y,3\n' * 10 + b'7,"open\n', b'end",9\n']
    broken = csv_lines.BrokenRows()
    found = b"".join(sound_records(blocks, FileForm(), 3, broken))
    assert found.endswith(b'7,"open\nend",9\n') and broken.rows == 0


def test_the_longest_row_is_as_long_behind_a_broken_one(read, monkeypatch):
    monkeypatch.setattr(csv_records, "LONGEST_ROW", 100)
    for bytes_ in (100, 101):
        cell = "x" + "\n" * (bytes_ - len('1,"x",3\n'))
        found = read(f'a,b,c\n7,"9"x,1\n1,"{cell}",3\n')
        assert (("1", cell, "3") in found) == (bytes_ == 100)


@pytest.mark.parametrize(
    ("lines", "whole", "broken"),
    [
        # No line within the row of five cells is a row by itself, though the one before it is.
        (("1,2,3", '4,"a', 'b",5,6,7'), [("1", "2", "3")], 1),
        (("1,2,3", '4,"a', 'x",1,"y,2,3', 'b",5'), [("1", "2", "3")], 1),
        # The first line within it is a row by itself, so that the open quote costs its own line.
        (('4,"a', "1,2,3", 'b",5,6'), [("1", "2", "3"), ('b"', "5", "6")], 1),
        (('4,"a', "1,2,3", 'b",5,6,7'), [("1", "2", "3")], 2),
        (('4,"a', "1,2,3", "x,y", 'b",5,6'), [("1", "2", "3"), ('b"', "5", "6")], 2),
    ],
)
def test_a_row_of_another_width_takes_lines_with_it_unless_one_is_a_row(read, lines, whole, broken):
    assert read("\n".join(["a,b,c", *lines, ""])) == whole + [MISSING] * broken
