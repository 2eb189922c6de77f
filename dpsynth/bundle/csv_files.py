"""CSV files by RFC 4180: UTF-8, commas, LF, quotes only where a cell needs them.

The writer of pyarrow.csv would quote every text or none; a synthetic table should look like the private
table.

Invariant: every text and every column name has passed ``neutralise``.

Neutral text cells, which no spreadsheet can take for a formula.

A spreadsheet runs a cell of a CSV file that begins with = + - or @ (their full-width
forms included, and white space or invisible characters in front of them), and splits one
that begins with a tab or a line break. Such a text gets an apostrophe in front, which
spreadsheets show as text. So that the rule can be undone, a text that begins with an
apostrophe gets one more. Numbers are left as they are, "-5", "-$1,234.50" and "-00:30" among
them: digits and their separators are no formula.

Invariant: ``restore(neutralise(texts))`` is ``texts``, for every text.

Tables as frames of the library that their reader uses: pandas, Polars or pyarrow.

Invariant: a missing cell stays missing, whatever the column's type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.columns.number_texts import parse_numbers

if TYPE_CHECKING:
    import pandas as pd


Library = Literal["pandas", "polars", "pyarrow"]
"""Libraries whose tables come back as their own; all others get frames of pandas."""


def frame_of(table: pa.Table, library: Library = "pandas") -> pd.DataFrame:
    """A table as a frame of a library; by its annotation, one of pandas.

    In pandas types are nullable if cells may be missing, dates are datetime64, ordered categories an ordered
    Categorical, times of day datetime.time.
    """
    if library == "pyarrow":
        return cast("pd.DataFrame", table)
    if library == "polars":
        import polars  # type: ignore[import-not-found,unused-ignore]

        return cast("pd.DataFrame", polars.from_arrow(table))
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get, date_as_object=False)


GUARD = "'"

_RISKY = "^(?:'|[\\t\\r\\n]|[\\s\\p{Z}\\p{C}]*[=+\\-@\uff1d\uff0b\uff0d\uff20])"

_SPELT_NUMBER = "^[+-][$€£¥]?[0-9][0-9.,:' _\u00a0\u202f]*[%€£¥$]?$"


def neutralise(texts: pa.StringArray) -> pa.StringArray:
    """Texts with an apostrophe in front of those that a spreadsheet might run; null stays null."""
    risky = pc.match_substring_regex(texts, _RISKY)
    if not pc.any(risky).as_py():
        return texts
    plain_number = pa.array(~np.isnan(parse_numbers(texts)))
    harmless = pc.or_(plain_number, pc.match_substring_regex(texts, _SPELT_NUMBER))
    guarded = pc.binary_join_element_wise(GUARD, texts, "")
    return pc.if_else(pc.and_not(risky, harmless), guarded, texts)


def restore(texts: pa.StringArray) -> pa.StringArray:
    """The texts that ``neutralise`` was given: the first apostrophe of each is dropped."""
    return pc.if_else(pc.starts_with(texts, GUARD), pc.utf8_slice_codeunits(texts, 1), texts)


_NEEDS_QUOTES = r'[",\r\n]|^\s|\s$'

_ROWS_AT_ONCE = 100_000

_BYTES_AT_ONCE = 1 << 30
"""Bytes of lines that are made at a time, at most; an array of texts has fewer than 2^31."""

_PARTS = 1 << 13
"""Distinct parts of lines that are made beforehand, at most: they stay in the processor's cache."""

_DIGITS = 9


def _quoted(texts: pa.StringArray) -> pa.StringArray:
    doubled = pc.replace_substring(texts, '"', '""')
    wrapped = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(texts, _NEEDS_QUOTES), wrapped, texts)


def _cells(columns: Sequence[pa.DictionaryArray]) -> list[pa.DictionaryArray]:
    """Columns of texts as they are written in the file; in a table of one column, empty is written as ""."""
    # All at once: to make ready the patterns that are looked for takes longer than a short column.
    written = _quoted(neutralise(pa.concat_arrays([column.dictionary for column in columns])))
    if len(columns) == 1:
        # Readers skip a line with nothing on it, and would lose the row.
        written = pc.if_else(pc.equal(written, ""), '""', written)
    ends = list(accumulate((len(column.dictionary) for column in columns), initial=0))
    return [
        pa.DictionaryArray.from_arrays(column.indices, written.slice(start, end - start))
        for column, (start, end) in zip(columns, pairwise(ends), strict=True)
    ]


def write_csv(path: Path, names: Sequence[str], columns: Sequence[pa.StringArray]) -> None:
    """Write one file of text columns without nulls, all of one length, under the given names."""
    with path.open("wb") as file:
        file.write(csv_header(names))
        for lines in csv_lines([column.dictionary_encode() for column in columns]):
            file.write(lines)


def csv_header(names: Sequence[str]) -> bytes:
    """The first line of a file."""
    texts = _cells([pa.array([name], pa.string()).dictionary_encode() for name in names])
    return (",".join(text[0].as_py() for text in texts) + "\n").encode()


def csv_lines(columns: Sequence[pa.DictionaryArray]) -> Iterator[memoryview]:
    """The lines of some rows, piece by piece.

    Args:
        columns: texts without nulls, each distinct one once or more, all of one length.
    """
    if not columns:
        return
    ready = _cells(columns)
    last = pc.binary_join_element_wise(ready[-1].dictionary, "\n", "")
    ready[-1] = pa.DictionaryArray.from_arrays(ready[-1].indices, last)
    longest = sum(1 + (pc.max(pc.binary_length(column.dictionary)).as_py() or 0) for column in ready)
    step = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // longest))
    joined = _joined(ready)
    for start in range(0, len(ready[0]), step):
        yield _lines([column.slice(start, step) for column in joined])


def _joined(columns: Sequence[pa.DictionaryArray]) -> list[pa.DictionaryArray]:
    """Neighbouring columns of few distinct texts as one column, whose texts are parts of lines."""
    found = [columns[0]]
    for column in columns[1:]:
        before, few = found[-1], len(column.dictionary)
        if len(before.dictionary) * few > min(_PARTS, len(column)):
            found.append(column)
            continue
        both = np.arange(len(before.dictionary) * few)
        texts = pc.binary_join_element_wise(
            before.dictionary.take(pa.array(both // few)), column.dictionary.take(pa.array(both % few)), ","
        )
        index = before.indices.to_numpy().astype(np.int32)
        index *= few
        index += column.indices.to_numpy()
        found[-1] = pa.DictionaryArray.from_arrays(pa.array(index), texts)
    return found


def _lines(columns: Sequence[pa.DictionaryArray]) -> memoryview:
    """Whole lines: the content of the Arrow array whose elements they are."""
    texts = [column.dictionary.take(column.indices) for column in columns]
    whole = pc.binary_join_element_wise(*texts, ",")
    _, offsets, content = whole.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)
    return memoryview(content)[int(ends[whole.offset]) : int(ends[whole.offset + len(whole)])]


def number_texts(values: pa.Array) -> pa.StringArray:
    """Numbers as text with at most nine significant digits of the largest number; null becomes empty.

    Further digits are rounding errors of the arithmetic; they would make equal files differ.
    """
    numbers = values.to_numpy(zero_copy_only=False)
    largest = float(np.nanmax(np.abs(numbers), initial=0.0))
    digits = _DIGITS - 1 - floor(log10(largest)) if largest > 0.0 else 0
    rounded = pa.array(np.round(numbers, digits), pa.float64(), from_pandas=True)
    return pc.fill_null(pc.cast(rounded, pa.string()), "")
