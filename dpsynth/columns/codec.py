"""Codecs: the partition of a column's values into cells, with the coding of texts and the decoding of cells.

Each kind of column has a file of its own: ``numeric``, ``category``, ``calendar``, ``duration``, ``text``.
Other rooms depend on the properties of ``Codec`` alone, so that a new kind changes none of them.

Invariant: cells are declared or were paid for, never read off the table, and every text has
a code: that of a cell, or INVALID. Encoding never raises on a value. How a text is read (``Reading``) follows
from it and the declaration alone, and tells codes that several kinds of texts share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.expression import Kind
from dpsynth.columns.sums import Steps


@dataclass(frozen=True, eq=False)
class Intervals:
    """Numbers, or moments and durations in microseconds, between two ends.

    Attributes:
        low, high: float64[cells], the ends, which are values themselves.
        spacing: of moments, the distance of neighbouring values in microseconds; None of all others.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    spacing: float | None = None

    @property
    def single(self) -> bool:
        return bool((self.low == self.high).all())


@dataclass(frozen=True, eq=False)
class Truths:
    """Truth values, bool[cells]."""

    true: NDArray[np.bool_]

    single: ClassVar[bool] = True
    """Each cell has one value."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts.

    Attributes:
        holding: for a text, the cells that may hold it, bool[cells].
        exact: the one text of each cell, where each has but one.
    """

    holding: Callable[[str], NDArray[np.bool_]]
    exact: tuple[str, ...] | None = None

    @property
    def single(self) -> bool:
        return self.exact is not None


CellValues = Intervals | Truths | Texts


def exact_texts(texts: tuple[str, ...]) -> Texts:
    """One text a cell.

    >>> exact_texts(("F", "M")).holding("M").tolist()
    [False, True]
    """
    return Texts(lambda text: np.array([own == text for own in texts], dtype=np.bool_), texts)


Readings = NDArray[np.int8]
"""A ``Reading`` for each text, int8[texts]."""


class Reading(IntEnum):
    """The outcome of a codec's reading of a text."""

    VALUE = 0
    """As the value that it says."""
    BELOW = 1
    """As the first value, which it lies below."""
    ABOVE = 2
    """As the last value, which it lies above."""
    OTHER = 3
    """As one of all other values."""
    NONE = 4
    """As no value of the column."""


def clipped(numbers: NDArray[np.float64], low: float, high: float) -> Readings:
    """Readings of numbers, of which NaN is no value.

    >>> clipped(np.array([1.0, 2.0, 9.0, np.nan]), 2.0, 5.0).tolist()
    [1, 0, 2, 4]
    """
    choices = [np.isnan(numbers), numbers < low, numbers > high]
    readings = [Reading.NONE, Reading.BELOW, Reading.ABOVE]
    return np.select(choices, readings, Reading.VALUE).astype(np.int8)


INVALID = -1
"""Code of a text that is no value of the column: an empty, a malformed or an undeclared one."""

Codes = NDArray[np.int64]


def drawn_between(
    low: NDArray[np.int64], high: NDArray[np.int64], codes: Codes, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A uniform whole number from each code's first to its last, int64[codes].

    Args:
        codes: none negative.
    """
    found = low[codes]
    if np.array_equal(low, high):
        return found
    span = (high - low + 1)[codes]
    # A product with a large span may be rounded up to it.
    found += np.minimum((rng.random(len(codes)) * span).astype(np.int64), span - 1)
    return found


def patched(values: pa.Array, rows: NDArray[np.integer], others: pa.Array) -> pa.Array:
    """Values of rows, with others in their order at some of the rows."""
    order = np.arange(len(values))
    order[rows] = len(values) + np.arange(len(rows))
    return pa.concat_arrays([values, others]).take(pa.array(order))


class Codec(ABC):
    """The partition of one kind of column: its cells, their values, and their coding.

    A member with a default holds for a kind without order or numbers, whose labels are not its values.
    """

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """One public name a cell, for people and for tables of statistics."""

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """The kind of the values in formulas, with the decimals of numbers."""

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """Type of decoded values."""

    @property
    def schema(self) -> Mapping[str, object]:
        """Facts of the public schema beside type and labels, as JSON values.

        Journals and measurement files hold digests of them, so an existing fact never changes.
        """
        return {}

    @property
    @abstractmethod
    def cell_values(self) -> CellValues:
        """The values of each cell, for rules."""

    @abstractmethod
    def encode(self, texts: pa.StringArray) -> Codes:
        """Code of each stripped text's cell, INVALID where it has none."""

    @abstractmethod
    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """Typed values of texts as they stand, without clipping; null where a text is no value."""

    def readings(self, texts: pa.StringArray) -> Readings:
        """The ``Reading`` of each stripped text; of null NONE. Codes agree: NONE where INVALID.

        As it stands, it follows from the codes: OTHER is a text in a cell of undeclared ones that isn't its
        label. Codecs that clip have their own.
        """
        codes = self.encode(texts)
        found = np.where(codes == INVALID, Reading.NONE, Reading.VALUE)
        for cell in self.catch_all:
            named = np.asarray(pc.fill_null(pc.equal(texts, self.labels[cell]), False))
            found = np.where((codes == cell) & ~named, Reading.OTHER, found)
        return found.astype(np.int8)

    @abstractmethod
    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A value for each code (none negative), of type ``arrow_type``."""

    def text(self, values: pa.Array) -> pa.StringArray:
        """Decoded values as they are written in a CSV file; null stays null."""
        return pc.cast(values, pa.string())

    @property
    def ordered(self) -> bool:
        return False

    @property
    def closed(self) -> bool:
        """True if the labels are the values: each cell holds one declared text."""
        return False

    @property
    def catch_all(self) -> tuple[int, ...]:
        """Codes of cells that also take undeclared values: those of ``other``, or the ends of bins."""
        return (0, len(self.labels) - 1) if self.ordered and not self.closed else ()

    @property
    def continuous(self) -> bool:
        """True if each number from the first cell's low end to the last cell's high end is a value.

        Numbers are those with the decimals of ``kind``. Counts of neighbouring cells are then related, and
        the column may be a sum of other columns.
        """
        return False

    @property
    def centres(self) -> NDArray[np.float64] | None:
        """Expected decoded value of each cell, or None where values are not numbers."""
        return None

    @property
    def half_widths(self) -> NDArray[np.float64] | None:
        """Largest distance of a cell's values from its centre, or None where values are not numbers."""
        return None if self.centres is None else np.zeros(len(self.centres))

    @property
    def steps(self) -> Steps | None:
        """The steps in which numbers are summed, or None where only their cells are known."""
        return None

    def with_density(self, counts: NDArray[np.float64], least: float) -> Codec:
        """The same cells, each with the density that the counts of all cells suggest.

        The codec itself where all values of a cell are equally likely.

        Args:
            counts: float64[cells], noisy counts of rows.
            least: lower bound on the rows of a cell, above 0.
        """
        return self


def recorded_name(codec: Codec) -> str:
    """Name of a kind of codec in digests. Journals and ledgers hold it, so it never changes.

    >>> from dpsynth.columns.category import BooleanCodec
    >>> recorded_name(BooleanCodec())
    'BooleanPlaces'
    """
    return type(codec).__name__.removesuffix("Codec") + "Places"
