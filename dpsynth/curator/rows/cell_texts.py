"""Cells of any Arrow type as text, the way a CSV file would spell them.

Invariant: the type of a column alone decides if its cells can be written as text; no cell is an error,
whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.config.files.opening import iso_duration

_PARTS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimals of a second in each unit of Arrow's durations."""
_BITS = {"halffloat": pa.int16(), "float": pa.int32(), "double": pa.int64()}
"""Integers of the width of each of Arrow's floats."""
_INTERVAL = Struct("<iiq")
"""Arrow's intervals: months, days, nanoseconds."""


Kind = TypeVar("Kind", bound=np.generic)

Batch = Mapping[str, pa.Array]
"""Cells of some rows by column, of any ``readable`` types."""


@dataclass(frozen=True, eq=False, repr=False)
class DistinctCells:
    """The cells of a column, those that are alike written as text once. Private.

    Attributes:
        texts: string[texts]; a text may stand there twice, and null is a missing cell.
        index: int32[rows], the text of each row.
    """

    texts: pa.StringArray
    index: NDArray[np.int32]

    def each(self, read: Callable[[pa.StringArray], NDArray[Kind]]) -> NDArray[Kind]:
        """Results of a function of texts, for each row; each distinct text is read once."""
        return np.asarray(read(self.texts)[self.index])

    def of_rows(self, kept: NDArray[np.bool_]) -> DistinctCells:
        return DistinctCells(self.texts, self.index[kept])


def distinct_cells(column: pa.Array) -> DistinctCells:
    """The cells of any readable Arrow column; a text is that of ``text_of``.

    Raises:
        ArrowException: the type is not ``readable``.
    """
    column = _plain(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        known, found = text_of(column.dictionary), column.indices
        if found.null_count:
            known = pa.concat_arrays([known, pa.nulls(1, pa.string())])
            found = pc.fill_null(pc.cast(found, pa.int64()), len(known) - 1)
        return DistinctCells(known, found.to_numpy(zero_copy_only=False).astype(np.int32, copy=False))
    plain = _BITS.get(str(kind))
    try:
        # Bits and not values: Arrow holds 0.0 and -0.0 for one number, and writes them differently.
        found = pc.dictionary_encode(column if plain is None else column.view(plain), null_encoding="encode")
        known = text_of(found.dictionary if plain is None else found.dictionary.view(kind))
    except pa.ArrowNotImplementedError:
        found = pc.dictionary_encode(text_of(column), null_encoding="encode")
        known = found.dictionary
    return DistinctCells(known, found.indices.to_numpy(zero_copy_only=False))


def of_rows(batch: Batch, kept: pa.BooleanArray) -> dict[str, pa.Array]:
    """Some rows of a batch."""
    return {name: _plain(cells).filter(kept) for name, cells in batch.items()}


def _plain(column: pa.Array) -> pa.Array:
    """A column of views as one of bytes: Arrow can neither filter views nor code their nulls."""
    views = pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type)
    return pc.cast(column, pa.binary()) if views else column


def as_texts(batches: Iterable[Batch]) -> Iterator[dict[str, pa.StringArray]]:
    """Batches of cells, all of them written as text."""
    for batch in batches:
        yield {name: text_of(cells) for name, cells in batch.items()}


def readable(kind: pa.DataType) -> bool:
    """True if cells of a type are single values that can be written as text."""
    try:
        text_of(pa.nulls(1, kind))
    except pa.ArrowException:
        # Lists and records; an unknown time zone.
        return False
    return True


def text_of(column: pa.Array) -> pa.StringArray:
    """Any Arrow column as text; bytes that are not UTF-8 become replacement characters.

    Raises:
        ArrowException: the type is not ``readable``.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return _each(column.storage, lambda cell: str(UUID(bytes=cell)))
        return text_of(column.storage)
    if pa.types.is_dictionary(kind):
        return text_of(column.dictionary).take(column.indices)
    if pa.types.is_duration(kind):
        decimals = _PARTS[kind.unit]
        return _each(pc.cast(column, pa.int64()), lambda count: iso_duration(count, decimals))
    if kind == pa.month_day_nano_interval():
        return _each(column.view(pa.binary(_INTERVAL.size)), _interval)
    if is_text(kind):
        # Arrow takes the bytes of a text for UTF-8 unless they are read as bytes first.
        cells = pc.cast(column, pa.binary())
        try:
            return pc.cast(cells, pa.string())
        except pa.ArrowInvalid:
            return _each(cells, lambda cell: cell.decode("utf-8", "replace"))
    return pc.cast(column, pa.string())


def is_text(kind: pa.DataType) -> bool:
    """True if cells of a type are texts, or bytes."""
    of = pa.types
    tests = (
        of.is_string, of.is_large_string, of.is_string_view,
        of.is_binary, of.is_large_binary, of.is_binary_view, of.is_fixed_size_binary,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _interval(cell: bytes) -> str:
    """A duration of months, days and nanoseconds; a year has 365 days, and a month of what is left has 30."""
    months, days, count = _INTERVAL.unpack(cell)
    years, months = divmod(months, 12)
    count += (365 * years + 30 * months + days) * 86_400 * 10**9
    return iso_duration(count, 9) if count % 1_000 else iso_duration(count // 1_000, 6)


def _each(column: pa.Array, convert: Callable[..., str]) -> pa.StringArray:
    coded = pc.dictionary_encode(column)
    texts = [convert(cell) for cell in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)
