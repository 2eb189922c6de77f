"""Codecs: the partition of a column's values into cells, with the coding of texts and the decoding of cells.

Each kind of column has a file of its own: ``numeric_codec``, ``category_codec``,
``calendar_codec``, ``duration_codec``, ``text_codec``. Other rooms depend on the properties of ``Codec``
alone, so that a new kind changes none of them.

Invariant: cells are declared or were paid for, never read off the table, and every text has
a code: that of a cell, or INVALID. Encoding never raises on a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.cell_values import CellValues
from dpsynth.columns.formula_kinds import Kind
from dpsynth.columns.reading import Reading, Readings
from dpsynth.columns.sums import Steps

INVALID = -1
"""Code of a text that is no value of the column: an empty, a malformed or an undeclared one."""

Codes = NDArray[np.int64]


def drawn_between(
    low: NDArray[np.int64], high: NDArray[np.int64], codes: Codes, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A uniform whole number from each code's first to its last, int64[codes].

    Args:
        low: int64[cells], the first number of each cell.
        high: int64[cells], the last.
        codes: none negative.
        rng: of post-processing.
    """
    found = low[codes]
    if np.array_equal(low, high):
        return found
    span = (high - low + 1)[codes]
    # A product with a large span may be rounded up to it.
    found += np.minimum((rng.random(len(codes)) * span).astype(np.int64), span - 1)
    return found


def readings_of(
    codes: Codes, texts: pa.StringArray, labels: Sequence[str], other: str | None = None
) -> Readings:
    """Readings that follow from the codes of texts, where nothing is clipped.

    Args:
        codes: the code of each text.
        texts: the texts themselves.
        labels: the labels of the cells.
        other: the label of all other values, if they have a cell.
    """
    found = np.where(codes == INVALID, Reading.NONE, Reading.VALUE)
    if other is not None:
        named = np.asarray(pc.fill_null(pc.equal(texts, other), False))
        found = np.where((codes == labels.index(other)) & ~named, Reading.OTHER, found)
    return found.astype(np.int8)


class Codec(Protocol):
    """The partition of one kind of column: its cells, their values, and their coding."""

    @property
    def labels(self) -> tuple[str, ...]:
        """One public name a cell, for people and for tables of statistics."""
        ...

    @property
    def kind(self) -> Kind:
        """The kind of the values in formulas, with the decimals of numbers."""
        ...

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of decoded values."""
        ...

    @property
    def ordered(self) -> bool:
        """True if the order of the cells has a meaning."""
        ...

    @property
    def closed(self) -> bool:
        """True if the labels are the values: each cell holds one declared text."""
        ...

    @property
    def catch_all(self) -> tuple[int, ...]:
        """Codes of cells that also take undeclared values: those of ``other``, or bins that clip."""
        ...

    @property
    def continuous(self) -> bool:
        """True if each number from the first cell's low end to the last cell's high end is a value.

        Numbers are those with the decimals of ``kind``. Counts of neighbouring cells are then related, and
        the column may be a sum of other columns.
        """
        ...

    @property
    def schema(self) -> Mapping[str, object]:
        """Facts of the public schema beside type and labels, as JSON values.

        Journals and measurement files hold digests of them, so an existing fact never changes.
        """
        ...

    @property
    def cell_values(self) -> CellValues:
        """The values of each cell, for rules."""
        ...

    @property
    def centres(self) -> NDArray[np.float64] | None:
        """Expected decoded value of each cell, or None where values are not numbers."""
        ...

    @property
    def half_widths(self) -> NDArray[np.float64] | None:
        """Largest distance of a cell's values from its centre, or None where values are not numbers."""
        ...

    @property
    def steps(self) -> Steps | None:
        """The steps in which numbers are summed, or None where only their cells are known."""
        ...

    def encode(self, texts: pa.StringArray) -> Codes:
        """Code of each stripped text's cell, INVALID where it has none."""
        ...

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """Typed values of texts as they stand, without clipping; null where a text is no value."""
        ...

    def readings(self, texts: pa.StringArray) -> Readings:
        """The ``Reading`` of each stripped text; of null NONE. Codes agree: NONE where INVALID."""
        ...

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A value for each code (none negative), of type ``arrow_type``."""
        ...

    def text(self, values: pa.Array) -> pa.StringArray:
        """Decoded values as they are written in a CSV file; null stays null."""
        ...

    def with_density(self, counts: NDArray[np.float64], least: float) -> Codec:
        """The same cells, each with the density that the counts of all cells suggest.

        Args:
            counts: float64[cells], noisy counts of rows.
            least: lower bound on the rows of a cell, above 0.
        """
        ...


def recorded_name(codec: Codec) -> str:
    """Name of a kind of codec in digests. Journals and ledgers hold it, so it never changes.

    >>> from dpsynth.columns.category_codec import BooleanCodec
    >>> recorded_name(BooleanCodec())
    'BooleanPlaces'
    """
    return type(codec).__name__.removesuffix("Codec") + "Places"
