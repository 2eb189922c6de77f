"""Lines of CSV files are the same however cells come: as values or codes, alone or in parts of lines."""

import csv
import io
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.bundle import row_files
from dpsynth.bundle.row_files import csv_lines
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.layout import Layout
from dpsynth.columns.numeric import NumericCodec

RNG = np.random.default_rng(5)
WORDS = ["a", 'b "b"', "c, c", "", " d", "=e", "f\ng"]


def columns(sizes: list[int], rows: int) -> list[pa.DictionaryArray]:
    return [
        pa.DictionaryArray.from_arrays(
            pa.array(RNG.integers(0, size, rows), pa.int32()),
            pa.array([f"{WORDS[i % len(WORDS)]}{i}" for i in range(size)]),
        )
        for size in sizes
    ]


@pytest.mark.parametrize("sizes", [[2, 3], [1, 1, 1], [40, 50, 60, 70], [300, 2, 2, 300, 5, 7], [9000, 3]])
def test_columns_of_few_texts_are_joined_to_the_same_lines(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, rows = columns(sizes, 500), 500
    joined = b"".join(bytes(lines) for lines in csv_lines(made))
    monkeypatch.setattr(row_files, "_PARTS", 0)
    assert joined == b"".join(bytes(lines) for lines in csv_lines(made))
    read = list(csv.reader(io.StringIO(joined.decode(), newline="")))
    assert len(read) == rows and {len(row) for row in read} == {len(sizes)}


def test_texts_by_code_are_the_texts_of_the_values() -> None:
    """For every kind of column: one text a code, or values inside bins, which are read as they are."""
    layout = Layout(
        (
            Column("one", NumericCodec((0.0, 1.0, 2.0, 2.5), 0, True), markers=("none",)),
            Column("bins", NumericCodec((0.0, 10.0, 90.0), 1, False)),
            Column("words", CategoryCodec(("x", "y", "z"))),
            Column("marked", NumericCodec((0.0, 1.0, 1.5), 0, True), markers=("1",)),
            Column("distinct", CategoryCodec(("u", "v")), distinct=("refused",)),
        )
    )
    sizes = [c.size for c in layout.columns]
    cells = np.array(list(product(*map(range, sizes)))).T
    codes = dict(zip((c.name for c in layout.columns), cells, strict=True))
    table = layout.decode(codes, np.random.default_rng(1))
    by_value, by_code = layout.written(table), layout.written(table, codes)
    for name, texts in by_value.items():
        assert by_code[name].dictionary_decode().equals(texts.dictionary_decode()), name
    assert [c.one_text_a_code for c in layout.columns] == [True, False, True, False, False]
