"""A rough forecast of the time and memory that a release needs.

Both are linear in the number of columns, the model's cells and the rows of the table, up to the rows that
are in work at once. Rows are private, so their part is given for each million. The rates are those of an
ordinary machine of two cores on Parquet files of 15 columns (benchmarks/table_sizes.py); reading CSV takes
some seconds more for each ten million rows.

Invariant: a forecast is public. It decides no question after the table is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from dpsynth.columns.column import Column

START_SECONDS = 2.0
"""Imports, the ledger, the journal, and writing the bundle."""
FIT_SECONDS = 0.1
FIT_COLUMN_SECONDS = 0.01
FIT_CELL_SECONDS = 2.5e-7
"""One fit of the model: constant part, for each column, for each cell."""
ROWS_COLUMN_SECONDS = 0.013
ROWS_PAIR_SECONDS, BESIDE_COUNTS = 0.0012, 4
"""For each million rows: reading a column; counting a pair of columns to choose by, which is done so many
times where answers beside the model are asked for too."""
DRAWN_COLUMN_SECONDS = 0.035
REFINED_PAIR_SECONDS, BESIDE_PAIR_SECONDS = 0.014, 0.064
"""For each million synthetic rows: drawing a column; refining a pair of columns, also to answers beside the
model."""
MOST_REFINED_SECONDS = 17.0
"""The bound on refining, which ends after so much work."""
ASKED_PAIR_SECONDS, MOST_ASKED = 0.006, 3000
"""Where answers beside the model are asked for: what a pair takes for that; and of so many pairs at most."""
REFINED_MILLIONS = 1.3
"""Millions of rows that are drawn and refined: 2^20 rows, and a last piece of average length."""
WRITTEN_COLUMN_SECONDS = 0.02
"""For each million synthetic rows: ordering, decoding, coding and writing a column."""

START_MEGABYTES = 190.0
COLUMN_MEGABYTES, ASKED_PAIR_MEGABYTES = 0.65, 0.0037
"""For each column; for each pair, where answers beside the model are asked for."""
CELL_MEGABYTES = 3e-5
READ_COLUMN_MEGABYTES = 5.0
"""For each million rows and column: what is read at once."""
READ_MILLIONS = 4.3
"""Millions of rows of which as much is in memory as ever is."""
CODES_GROWTH = 1.05
"""Coded rows in memory, relative to their bytes: arrays grow ahead of the rows."""
MADE_COLUMN_MEGABYTES = 24.0
"""For each column: synthetic rows that are drawn and written at once, of a million of them."""

_NUMBER = 4
"""Bytes of a number of steps, or of a text's number."""
TEXT = 8.0
"""Bytes of a text of which nothing is declared."""
_MILLION = 1e6

LEAST_CELLS = 100_000
"""Cells of a model that every hint allows."""


@dataclass(frozen=True)
class Forecast:
    """Time and memory of a release, roughly.

    Attributes:
        seconds, megabytes: without rows.
        seconds_per_million_rows, megabytes_per_million_rows: the part that grows with the rows.
        made_megabytes: the part of the last that stops growing at a million rows, since synthetic rows are
            drawn and written piece by piece.
        read_megabytes: the part of it that stops growing at ``READ_MILLIONS``.
        drawn_seconds: the part of ``seconds_per_million_rows`` that stops growing at ``REFINED_MILLIONS``.
        refined_seconds: refining a million rows, if it did not end at ``MOST_REFINED_SECONDS`` as it does.
    """

    seconds: float
    megabytes: float
    seconds_per_million_rows: float
    megabytes_per_million_rows: float
    made_megabytes: float = 0.0
    read_megabytes: float = 0.0
    drawn_seconds: float = 0.0
    refined_seconds: float = 0.0

    @property
    def facts(self) -> dict[str, float]:
        parts = ("made_megabytes", "read_megabytes", "drawn_seconds", "refined_seconds")
        return {key: round(value, 1) for key, value in asdict(self).items() if key not in parts}

    def of_rows(self, rows: int, *, held: int, coded: int) -> Forecast:
        """The same with the part of so many rows in the first two figures.

        Args:
            held: most bytes of coded rows that are held in memory.
            coded: bytes of all coded rows. What is beyond memory lies in a file and takes none of it.
        """
        millions = rows / _MILLION
        codes = CODES_GROWTH * min(held, coded) / _MILLION
        read = self.read_megabytes * min(millions, READ_MILLIONS)
        made = _made_seconds(self.drawn_seconds, self.refined_seconds, millions)
        made -= _made_seconds(self.drawn_seconds, self.refined_seconds, 1.0) * millions
        return replace(
            self,
            seconds=self.seconds + self.seconds_per_million_rows * millions + made,
            megabytes=self.megabytes + codes + read + self.made_megabytes * min(millions, 1.0),
        )


def bytes_of_row(sizes: Sequence[int | None], summed: int, *, person: bool) -> int:
    """Bytes of a coded row: of each column's code the least integer type, of sums and searches four more.

    Args:
        sizes: number of codes of each column; None if its domain is to be found, as its texts are numbered.
    """
    codes = sum(_NUMBER if size is None else np.min_scalar_type(size - 1).itemsize for size in sizes)
    return codes + _NUMBER * summed + 8 * person


def bytes_of_source_row(columns: Sequence[Column], others: int) -> float:
    """Bytes of a row's cells as text with a separator each: what a CSV file has of the columns.

    All values of a column count alike. Texts to be found are taken to be of ``TEXT`` bytes, and so are the
    others that are read: ids of persons, dates of periods.
    """
    known = (TEXT if column.kept_as_text else column.bytes_of_text for column in columns)
    return sum(each + 1 for each in known) + (TEXT + 1) * others


def forecast_of(
    columns: int, cells: int, fits: int, *, chooses: bool, made: int | None = None, beside: bool = False
) -> Forecast:
    """Time and memory of a release.

    Args:
        chooses: True if pairs of columns are compared with the table.
        made: number of synthetic rows; None for as many as the table has.
        beside: True if answers beside the model's tree are asked for.
    """
    rows = 0.0 if made is None else made / _MILLION
    fit = FIT_SECONDS + FIT_COLUMN_SECONDS * columns + FIT_CELL_SECONDS * cells
    possible = columns * (columns - 1) / 2
    drawing = DRAWN_COLUMN_SECONDS * columns
    refining = (BESIDE_PAIR_SECONDS if beside else REFINED_PAIR_SECONDS) * possible
    asking = ASKED_PAIR_SECONDS * min(possible, MOST_ASKED) if beside else 0.0
    pairs = possible if chooses else 0
    fixed = (
        START_MEGABYTES + COLUMN_MEGABYTES * columns + (ASKED_PAIR_MEGABYTES * possible if beside else 0.0)
    )
    written, megabytes = WRITTEN_COLUMN_SECONDS * columns, MADE_COLUMN_MEGABYTES * columns
    counted = pairs * (BESIDE_COUNTS if beside else 1)
    read = ROWS_COLUMN_SECONDS * columns + ROWS_PAIR_SECONDS * counted
    as_many = 1.0 if made is None else 0.0
    return Forecast(
        seconds=START_SECONDS + fits * fit + asking + _made_seconds(drawing, refining, rows) + written * rows,
        megabytes=fixed + CELL_MEGABYTES * cells + megabytes * min(rows, 1.0),
        seconds_per_million_rows=read + (_made_seconds(drawing, refining, 1.0) + written) * as_many,
        megabytes_per_million_rows=(READ_COLUMN_MEGABYTES + CODES_GROWTH) * columns + megabytes * as_many,
        made_megabytes=megabytes * as_many,
        read_megabytes=READ_COLUMN_MEGABYTES * columns,
        drawn_seconds=drawing * as_many,
        refined_seconds=refining * as_many,
    )


def _made_seconds(drawing: float, refining: float, millions: float) -> float:
    fresh = min(millions, REFINED_MILLIONS)
    return drawing * fresh + min(refining * fresh, MOST_REFINED_SECONDS)


def cells_within(seconds: float, columns: int, fits: int) -> int:
    """Cells of the largest model that is forecast to be fitted so many times within some seconds.

    At least ``LEAST_CELLS``: the shortest hint still gets a model.
    """
    left = (seconds - START_SECONDS) / fits - FIT_SECONDS - FIT_COLUMN_SECONDS * columns
    # Floor of a little less: what is forecast for it is rounded too.
    return max(LEAST_CELLS, int(left / FIT_CELL_SECONDS * (1 - 1e-12)))
