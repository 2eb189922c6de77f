"""Cells of any Arrow type as text, the way a CSV file would spell them.

Invariant: the type of a column alone decides if its cells can be written as text; no cell is an error,
whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.files.workbook import iso_duration

_PARTS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimals of a second in each unit of Arrow's durations."""


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
    if _holds_bytes(kind):
        # Arrow takes the bytes of a text for UTF-8 unless they are read as bytes first.
        cells = pc.cast(column, pa.binary())
        try:
            return pc.cast(cells, pa.string())
        except pa.ArrowInvalid:
            return _each(cells, lambda cell: cell.decode("utf-8", "replace"))
    return pc.cast(column, pa.string())


def _holds_bytes(kind: pa.DataType) -> bool:
    of = pa.types
    tests = (
        of.is_string, of.is_large_string, of.is_string_view,
        of.is_binary, of.is_large_binary, of.is_binary_view, of.is_fixed_size_binary,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _each(column: pa.Array, convert: Callable[..., str]) -> pa.StringArray:
    """Texts of cells, each distinct cell converted once."""
    coded = pc.dictionary_encode(column)
    texts = [convert(cell) for cell in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)
