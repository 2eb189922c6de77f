"""Reader of the private table: batches of text cells, whatever the cells hold.

Invariant: broken structure (no file, no such column, no table at all) is a clear error before anything is
charged; a broken cell or row is no error, and no message quotes one. The header alone decides if a CSV file
is a table.

**Reading changes no sensitivity.** The rows of a Parquet file or a sheet are stored apart. Those of a CSV
file are read one by one too: a file that is quoted by RFC 4180 can be cut into rows in one way only,
whatever its cells hold (``csv_lines``). In a file that is declared ``multiline: false`` each line is a
row, whatever bytes it holds (``csv_lines``). So two tables that differ in the rows of one unit are read as
two tables that differ in the rows of one unit. Of a file with broken quotes that is not so declared,
``csv_lines`` says what they cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from itertools import islice
from typing import BinaryIO, Literal

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import csv, parquet

from dpsynth.config.files.form import FileForm
from dpsynth.config.files.header import csv_header, header_of, missing_columns, sheet_header
from dpsynth.config.files.opening import (
    ParquetPart,
    cell_text,
    is_row,
    opened,
    parquet_parts,
    plainly,
    sheet_rows,
    unheard,
)
from dpsynth.config.files.place import Place, arrow_input, size_of
from dpsynth.curator.rows.cell_texts import Batch, as_texts, is_text, readable
from dpsynth.curator.rows.csv_lines import BrokenRows, line_blocks, sound_lines, sound_records
from dpsynth.errors import SourceError
from dpsynth.work_shares import telling

_BATCH_ROWS = 1 << 18

_SHEET_ROWS = 1 << 14

_A_PART = 1 << 20
"""Parts of the work of reading one Parquet file."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _careful(path: Place, form: FileForm) -> AbstractContextManager[None]:
    advice = (
        "Set source.path in the config, or give --source PATH; relative paths start at the working directory."
    )
    return plainly(path, form, advice)


def names_of(path: Place, form: FileForm) -> list[str]:
    """The names of a file's columns.

    Raises:
        SourceError: the file can't be opened, or is no table.
    """
    with _careful(path, form):
        return header_of(path, form)


def read_batches(
    path: Place,
    columns: Sequence[str],
    form: FileForm,
    *,
    keep_broken: bool,
    keep_empty: bool = False,
    broken: BrokenRows | None = None,
) -> Iterator[dict[str, pa.StringArray]]:
    """Some columns of a file as text, batch by batch: ``read_cells``, written as text."""
    cells = read_cells(path, columns, form, keep_broken=keep_broken, keep_empty=keep_empty, broken=broken)
    return as_texts(cells)


def read_cells(
    path: Place,
    columns: Sequence[str],
    form: FileForm,
    *,
    keep_broken: bool,
    keep_empty: bool = False,
    broken: BrokenRows | None = None,
) -> Iterator[Batch]:
    """Some columns of a file, batch by batch, each of any type that can be written as text.

    Cells are never interpreted here. A CSV row with too few or too many of them is broken.

    Args:
        keep_broken: True if a broken row becomes a row of missing cells, after all other rows; False if
            it is left out. It must be kept if a row is the unit, as the number of rows may be
            public. It must be left out if a person is the unit, as the row has no person.
        keep_empty: True if a row of a sheet without any cell is a row, as are those of all other files. It
            must be if the number of rows is public. It is False otherwise, since sheets may store
            thousands of rows behind their table that only have a colour.
        broken: counts of the broken rows of a CSV file that grow as it is read, for its owner's eyes; None
            if nobody asks.

    Raises:
        SourceError: the file can't be opened, is no table, or lacks a column.
    """
    with _careful(path, form):
        names = _with_totals(columns, form)
        if form.kind == "parquet":
            yield from _without_totals(_parquet_batches(path, names, form), columns, form)
        elif form.kind == "xlsx":
            yield from _without_totals(_sheet_batches(path, names, form, keep_empty), columns, form)
        else:
            counts = BrokenRows() if broken is None else broken
            yield from _without_totals(_csv_batches(path, names, form, counts), columns, form)
            left = counts.rows if keep_broken else 0
            while left:
                size = min(left, _BATCH_ROWS)
                yield {c: pa.nulls(size, pa.string()) for c in columns}
                left -= size


@unheard()
def check_source(path: Place, columns: Sequence[str], form: FileForm) -> None:
    """Raise SourceError if the beginning of the file shows that ``read_batches`` would.

    The header of a CSV file decides; of a Parquet file the first rows are read too.
    """
    with _careful(path, form):
        names = _with_totals(columns, form)
        if form.kind == "parquet":
            next(_parquet_batches(path, names, form), None)
        else:
            missing_columns(path, form, names, header_of(path, form))


def _with_totals(columns: Sequence[str], form: FileForm) -> list[str]:
    """The columns to read, with those by which totals are told."""
    return list(dict.fromkeys([*columns, *(name for name, _ in form.totals)]))


def _without_totals(batches: Iterable[Batch], columns: Sequence[str], form: FileForm) -> Iterator[Batch]:
    """The columns of the rows that are no totals. Each row is left out, or not, by its own cells alone."""
    for batch in batches:
        if not form.totals:
            yield batch
            continue
        texts = next(iter(as_texts([{name: batch[name] for name, _ in form.totals}])))
        hits = (
            pc.is_in(
                pc.fill_null(pc.utf8_trim_whitespace(texts[name]), ""),
                value_set=pa.array(listed, pa.string()),
            )
            for name, listed in form.totals
        )
        kept = pc.invert(reduce(pc.or_, hits))
        yield {name: batch[name].filter(kept) for name in columns}


def _parquet_batches(path: Place, columns: Sequence[str], form: FileForm) -> Iterator[Batch]:
    parts = list(parquet_parts(path))
    tell = telling("reading", len(parts) * _A_PART)
    for part in parts:
        for batch, share in _part_batches(path, part, columns, form):
            tell(int(_A_PART * share))
            yield batch


def read_row_groups(
    path: Place, columns: Sequence[str], form: FileForm, chosen: Sequence[tuple[ParquetPart, Sequence[int]]]
) -> Iterator[Batch]:
    """Some columns of some row groups of a Parquet file or folder; otherwise ``read_cells``.

    Args:
        chosen: files, each with the numbers of row groups to read.
    """
    with _careful(path, form):
        for part, groups in chosen:
            yield from (batch for batch, _ in _part_batches(path, part, columns, form, groups))


def row_groups(path: Place, form: FileForm) -> list[tuple[ParquetPart, int, int]]:
    """The row groups of a Parquet file or folder in their order: file, number in it, number of rows. Private.

    Raises:
        SourceError: a file can't be opened, or is no table.
    """
    with _careful(path, form):
        found: list[tuple[ParquetPart, int, int]] = []
        for part in parquet_parts(path):
            with arrow_input(part.path) as stream, parquet.ParquetFile(stream) as file:
                rows = (file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups))
                found += [(part, group, number) for group, number in enumerate(rows)]
        return found


def _part_batches(
    path: Place,
    part: ParquetPart,
    columns: Sequence[str],
    form: FileForm,
    groups: Sequence[int] | None = None,
) -> Iterator[tuple[Batch, float]]:
    """The rows of one file of a table, or of some of its row groups; messages name the table alone.

    Each batch comes with the share of the file's rows that it has.
    """
    schema = part.schema
    missing_columns(path, form, columns, schema.names)
    nested = [c for c in columns if not readable(schema.field(c).type)]
    if nested:
        raise SourceError(
            f"Column '{nested[0]}' of {path} holds lists or records, or cells of a type that can't be "
            "written as text, such as times in an unknown time zone."
        )
    inside = [c for c in columns if c not in part.same]
    # Texts that the file holds once are read once. Where they were a dictionary before they were written,
    # Arrow stops at bytes that are not UTF-8 unless it is asked for a dictionary.
    kinds = {c: schema.field(c).type for c in inside}
    texts = [c for c, k in kinds.items() if is_text(k.value_type if pa.types.is_dictionary(k) else k)]
    with (
        arrow_input(part.path) as stream,
        parquet.ParquetFile(stream, read_dictionary=texts, page_checksum_verification=True) as file,
    ):
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups, columns=inside):
            if any(_points_nowhere(batch.column(c)) for c in texts):
                raise pa.ArrowInvalid("a cell of a broken page")
            same = {c: pa.array([cell], pa.string()) for c, cell in part.same.items() if c in columns}
            first = pa.array(np.zeros(batch.num_rows, np.int8))
            alike = {c: pa.DictionaryArray.from_arrays(first, cell) for c, cell in same.items()}
            found = {c: alike[c] if c in alike else batch.column(c) for c in columns}
            yield found, batch.num_rows / max(file.metadata.num_rows, 1)


def _points_nowhere(column: pa.Array) -> bool:
    """True if a cell stands for a text that its dictionary hasn't, which Arrow's reader lets through."""
    if not pa.types.is_dictionary(column.type):
        return False
    reach = pc.min_max(column.indices).as_py()
    return reach["max"] is not None and not 0 <= reach["min"] <= reach["max"] < len(column.dictionary)


def _sheet_batches(
    path: Place, columns: Sequence[str], form: FileForm, keep_empty: bool
) -> Iterator[dict[str, pa.StringArray]]:
    rows = sheet_rows(path, form.sheet)
    header = sheet_header(path, form, rows)
    missing_columns(path, form, columns, header)
    spots = {name: spot for spot, name in enumerate(header)}
    rows = rows if keep_empty else filter(is_row, rows)
    while batch := list(islice(rows, _SHEET_ROWS)):
        # Cells behind a row's last one are empty.
        cells = {c: [row[spots[c]] if spots[c] < len(row) else None for row in batch] for c in columns}
        yield {c: pa.array(map(cell_text, own), pa.string()) for c, own in cells.items()}


def _csv_batches(
    path: Place, columns: Sequence[str], form: FileForm, broken: BrokenRows
) -> Iterator[dict[str, pa.StringArray]]:
    with opened(path, form, telling("reading", size_of(path))) as stream:
        header = csv_header(path, form, stream)
        missing_columns(path, form, columns, header)
        spots = {name: spot for spot, name in enumerate(header)}
        positions = [f"{spots[c]}" for c in columns]
        for batch in _csv_rows(stream, form, len(header), positions, broken):
            yield dict(zip(columns, batch.columns, strict=True))


def _csv_rows(
    stream: BinaryIO, form: FileForm, width: int, positions: Sequence[str], broken: BrokenRows
) -> Iterator[pa.RecordBatch]:
    """The rows behind the header, in batches.

    Args:
        stream: the file behind its header.
        positions: numbers of the columns to read, counted from 0.
    """

    def uneven(row: csv.InvalidRow) -> Literal["skip"]:
        del row
        broken.uneven += 1
        return "skip"

    names = [f"{position}" for position in range(width)]
    parsing = csv.ParseOptions(
        delimiter=form.separator,
        newlines_in_values=form.multiline,
        invalid_row_handler=uneven,
        ignore_empty_lines=width > 1,
    )
    # The blocks are UTF-8 already.
    converting = csv.ConvertOptions(
        column_types=dict.fromkeys(positions, pa.string()),
        include_columns=list(positions),
        strings_can_be_null=False,
        check_utf8=False,
    )
    lines = line_blocks(stream, form, broken)
    blocks = sound_records(lines, form, width, broken) if form.multiline else sound_lines(lines, form, broken)
    for block in blocks:
        if not block:
            continue
        # Arrow takes a mark at the beginning of a block for that of a file.
        marked = _BYTE_ORDER_MARK + block if block.startswith(_BYTE_ORDER_MARK) else block
        reading = csv.ReadOptions(column_names=names, block_size=len(marked) + 1, use_threads=False)
        table = csv.read_csv(pa.BufferReader(marked), reading, parsing, converting)
        yield from table.combine_chunks().to_batches()
