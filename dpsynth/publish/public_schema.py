"""The public schema as plain JSON values: what each column may hold, and where missing goes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dpsynth.domain.column import Column
from dpsynth.domain.places import NumericPlaces

_TYPES = {pa.int64(): "integer", pa.float64(): "number", pa.bool_(): "boolean", pa.string(): "text"}


def type_name(column: Column) -> str:
    """Type of the column's values in words: "integer", "number", "boolean", "text", or Arrow's name."""
    return _TYPES.get(column.places.arrow_type, str(column.places.arrow_type))


def public_schema(columns: Sequence[Column]) -> list[dict[str, object]]:
    """One mapping a column: name, type, labels in the order of their codes, edges, missing."""
    return [_described(column) for column in columns]


def _described(column: Column) -> dict[str, object]:
    described: dict[str, object] = {"name": column.name, "type": type_name(column)}
    if isinstance(column.places, NumericPlaces):
        described["edges"] = list(column.places.edges)
        described["decimals"] = column.places.decimals
    described["labels"] = list(column.labels)
    described["missing"] = {
        "has_a_place": column.missing,
        "markers": list(column.markers),
        "unusable_cells_become": column.labels[-1 if column.missing else column.fallback],
    }
    return described
