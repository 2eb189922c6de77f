"""A rough forecast of the time and memory that a release needs.

Both are linear in the number of columns, the model's cells and the rows of the table. Rows are
private, so their part is given for each million. The rates are those of one ordinary
core on tables of 15 to 200 columns; expect a factor of two either way.

Invariant: a forecast is public. It decides no question after the table is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

START_SECONDS = 1.0
"""Imports, the ledger, the journal, and writing the bundle."""
FIT_SECONDS = 0.1
FIT_COLUMN_SECONDS = 0.01
FIT_CELL_SECONDS = 2.5e-7
"""One fit of the model: constant part, for each column, for each cell."""
ROWS_COLUMN_SECONDS = 0.2
ROWS_PAIR_SECONDS = 0.003
"""For each million rows: reading and writing a column, counting a pair of columns to choose by."""

START_MEGABYTES = 280.0
CELL_MEGABYTES = 3e-5
ROWS_COLUMN_MEGABYTES = 50.0
"""For each million rows and column: texts, codes, and synthetic rows, at the peak."""

_NUMBER = 4
"""Bytes of a number of steps, or of a text's number."""
_MILLION = 1e6

LEAST_CELLS = 100_000
"""Cells of a model that every hint allows."""


@dataclass(frozen=True)
class Forecast:
    """Time and memory of a release, roughly.

    Attributes:
        seconds, megabytes: without rows.
        seconds_per_million_rows, megabytes_per_million_rows: the part that grows with the rows.
    """

    seconds: float
    megabytes: float
    seconds_per_million_rows: float
    megabytes_per_million_rows: float

    def of_rows(self, rows: int, *, held: int, coded: int) -> Forecast:
        """The same with the part of so many rows in the first two figures.

        Args:
            rows: their number.
            held: most bytes of coded rows that are held in memory.
            coded: bytes of all coded rows. What is beyond memory lies in a file and takes none of it.
        """
        share = min(1.0, held / coded) if coded else 1.0
        return replace(
            self,
            seconds=self.seconds + self.seconds_per_million_rows * rows / _MILLION,
            megabytes=self.megabytes + self.megabytes_per_million_rows * rows * share / _MILLION,
        )


def bytes_of_row(sizes: Sequence[int | None], summed: int, *, person: bool) -> int:
    """Bytes of a coded row: of each column's code the least integer type, of sums and searches four more.

    Args:
        sizes: number of codes of each column; None for a column whose domain is to be found, whose texts are
            numbered.
        summed: number of columns that are summed.
        person: True if the unit is a person, whose code has eight bytes.
    """
    codes = sum(_NUMBER if size is None else np.min_scalar_type(size - 1).itemsize for size in sizes)
    return codes + _NUMBER * summed + 8 * person


def forecast_of(columns: int, cells: int, fits: int, *, chooses: bool) -> Forecast:
    """Time and memory of a release.

    Args:
        columns: number of columns of the table.
        cells: number of cells of the model.
        fits: number of fits of the model.
        chooses: True if pairs of columns are compared with the table.
    """
    fit = FIT_SECONDS + FIT_COLUMN_SECONDS * columns + FIT_CELL_SECONDS * cells
    pairs = columns * (columns - 1) / 2 if chooses else 0
    return Forecast(
        seconds=START_SECONDS + fits * fit,
        megabytes=START_MEGABYTES + CELL_MEGABYTES * cells,
        seconds_per_million_rows=ROWS_COLUMN_SECONDS * columns + ROWS_PAIR_SECONDS * pairs,
        megabytes_per_million_rows=ROWS_COLUMN_MEGABYTES * columns,
    )


def cells_within(seconds: float, columns: int, fits: int) -> int:
    """Cells of the largest model that is forecast to be fitted so many times within some seconds.

    At least ``LEAST_CELLS``: the shortest hint still gets a model.
    """
    left = (seconds - START_SECONDS) / fits - FIT_SECONDS - FIT_COLUMN_SECONDS * columns
    return max(LEAST_CELLS, int(left / FIT_CELL_SECONDS))
