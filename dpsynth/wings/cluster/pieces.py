"""Pieces of a private table, each of which a worker can read by itself.

A Parquet file or folder is divided between row groups. A CSV file is one piece, as quotes decide where its
rows end, and so is the query of a database, whose rows have no order of their own.

Invariant: every row is in one piece. The number of pieces is bounded by the number of workers, so it tells
nothing of a large table. The path of a file within a folder may be a cell, so no repr shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsynth.config.files.form import FileForm
from dpsynth.config.files.opening import ParquetPart
from dpsynth.config.files.place import Place
from dpsynth.curator.cell_texts import Batch
from dpsynth.curator.database_table import DatabaseTable
from dpsynth.curator.source import read_cells, read_row_groups, row_groups


@dataclass(frozen=True, repr=False)
class WholeFile:
    """A file that is read by one worker.

    Attributes: see ``read_cells``.
        start: the place of its first row in the table.
    """

    path: Place
    columns: Sequence[str]
    form: FileForm
    keep_broken: bool
    keep_empty: bool
    start: int = 0

    def batches(self) -> Iterator[Batch]:
        """All rows of the file."""
        broken, empty = self.keep_broken, self.keep_empty
        return read_cells(self.path, self.columns, self.form, keep_broken=broken, keep_empty=empty)


@dataclass(frozen=True, repr=False)
class WholeQuery:
    """The rows of a query, which one worker reads. Its repr shows nothing of the database's address.

    Attributes:
        table: the database and the query.
        columns: names of the columns to read.
        start: the place of its first row in the table.
    """

    table: DatabaseTable
    columns: Sequence[str]
    start: int = 0

    def batches(self) -> Iterator[Batch]:
        """All rows of the query."""
        return self.table.batches(self.columns)


@dataclass(frozen=True, repr=False)
class RowGroups:
    """Row groups of a Parquet file or folder that follow on one another.

    Attributes: see ``read_row_groups``.
        start: the place of their first row in the table.
    """

    path: Place
    columns: Sequence[str]
    form: FileForm
    chosen: Sequence[tuple[ParquetPart, Sequence[int]]]
    start: int

    def batches(self) -> Iterator[Batch]:
        """All rows of the groups."""
        return read_row_groups(self.path, self.columns, self.form, self.chosen)


def pieces_of_file(
    path: Place,
    columns: Sequence[str],
    form: FileForm,
    most: int,
    *,
    keep_broken: bool,
    keep_empty: bool = False,
) -> list[WholeFile] | list[RowGroups]:
    """The pieces of a file or a folder, in its order.

    Args:
        path: the file or the folder.
        columns: names of the columns to read.
        form: the form of the file, as it was declared.
        most: largest number of pieces.
        keep_broken: see ``read_cells``.
        keep_empty: see ``read_cells``.

    Raises:
        SourceError: a file can't be opened, or is no table.
    """
    # Where totals are left out, the place of a row follows from the rows before it.
    groups = row_groups(path, form) if form.kind == "parquet" and not form.totals else []
    if len(groups) < 2:
        return [WholeFile(path, columns, form, keep_broken, keep_empty)]
    whole = sum(rows for _, _, rows in groups)
    found: list[list[tuple[ParquetPart, list[int]]]] = []
    starts: list[int] = []
    before = 0
    for part, group, rows in groups:
        # As many rows in each piece, but for what a group can't be divided.
        if not found or (len(found) < most and before * most >= len(found) * whole):
            found.append([])
            starts.append(before)
        if not found[-1] or found[-1][-1][0] is not part:
            found[-1].append((part, []))
        found[-1][-1][1].append(group)
        before += rows
    return [
        RowGroups(path, columns, form, chosen, start) for chosen, start in zip(found, starts, strict=True)
    ]
