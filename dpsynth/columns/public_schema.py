"""The public schema as plain JSON values: the values of each column, and the treatment of missing cells."""

from __future__ import annotations

import pyarrow as pa

from dpsynth.columns.calendar_codec import parts_of
from dpsynth.columns.column import Column
from dpsynth.columns.expression import Kind
from dpsynth.columns.layout import Derived, Layout, Part
from dpsynth.columns.surrogates import Surrogates

_TYPES = {pa.int64(): "integer", pa.float64(): "number", pa.bool_(): "boolean", pa.string(): "text"}
_KINDS = {"number": "number", "truth": "boolean", "text": "text"}


def type_name(part: Part, kind: Kind) -> str:
    """Type of a column's values in words.

    One of "integer", "number", "boolean", "text", "date", "datetime", "time", "duration".
    """
    if isinstance(part, Derived):
        return "integer" if kind == Kind("number") else _KINDS[kind.word]
    arrow_type = part.arrow_type if isinstance(part, Surrogates) else part.codec.arrow_type
    return _TYPES.get(arrow_type, kind.word)


def public_schema(layout: Layout) -> list[dict[str, object]]:
    """One mapping a column of the synthetic table, in its order.

    Every column has a name and a type. A modelled column has labels in the order of its codes, facts of its
    values (edges, unit, format, order ...), and the treatment of missing; any other column has its source.
    The parts of moments that are measured stand with their column.
    """
    return [_described(part, layout.kinds[part.name]) for part in layout.parts]


def _described(part: Part, kind: Kind) -> dict[str, object]:
    described: dict[str, object] = {"name": part.name, "type": type_name(part, kind)}
    if isinstance(part, Surrogates):
        return described | {"made_up_from": part.first}
    if isinstance(part, Derived):
        looked_up = {"map": dict(part.map), "other": part.other} if part.map else {}
        decimals = {} if part.decimals is None else {"decimals": part.decimals}
        form = {"format": part.form.facts} if part.form.facts else {}
        marker = {"missing_is_written": part.marker}
        return described | {"computed_from": part.written, **looked_up, **decimals, **form, **marker}
    parts = [_described(column, column.codec.kind) for column in parts_of(part)]
    return described | {
        **part.codec.schema,
        "labels": list(part.labels),
        "missing": _missing(part),
        **({"parts": parts} if parts else {}),
    }


def _missing(column: Column) -> dict[str, object]:
    return {
        "modelled": column.missing,
        "markers": list(column.markers),
        **({"distinct_markers": list(column.distinct)} if column.distinct else {}),
        "unusable_cells_become": column.labels[column.unusable],
    }
