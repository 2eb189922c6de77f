"""The public schema of a release as plain JSON values, and the columns that are read back from one.

``dpsynth init`` declares them for the next release; a recipient's commands need their codecs.

Invariant: each column that is read goes through the grammar of the configuration, whoever wrote the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from dpsynth.columns.column import Column
from dpsynth.columns.declaration import Declared, Described, value_labels
from dpsynth.columns.derived import Derived
from dpsynth.columns.expression import Kind
from dpsynth.columns.identifier import Surrogates
from dpsynth.columns.kinds import KINDS, ColumnSpec
from dpsynth.columns.layout import FormulaRefused, Layout, Part
from dpsynth.columns.moment_parts import parts_of
from dpsynth.columns.section import Value


class UnknownColumn(ValueError):
    """A column of a public schema that no declaration describes; the message gives the reason."""


def declared_from(described: Described) -> Declared | None:
    """The declaration of a column of a published schema; None if it is of no kind that is known."""
    found = (declaration.from_schema(described) for declaration in KINDS.values())
    declared = next((one for one in found if one is not None), None)
    return None if declared is None else {**declared, **_missing_as_declared(described)}


def _missing_as_declared(described: Described) -> Declared:
    missing = described.get("missing")
    if not isinstance(missing, dict):
        return {}
    markers, distinct = value_labels(missing.get("markers")), value_labels(missing.get("distinct_markers"))
    if missing.get("modelled") is False:
        return {"missing": False}
    if distinct:
        return {"missing": cast(Value, {"distinct": distinct} | ({"markers": markers} if markers else {}))}
    return {"missing": cast(Value, markers)} if markers else {}


def published_layout(schema: Sequence[Described]) -> Layout:
    """The layout that a public schema describes, without densities inside bins.

    Args:
        schema: the manifest's ``columns``, numbers with decimals as ``Decimal``.

    Raises:
        UnknownColumn: a column can't be read.
    """
    adapter: TypeAdapter[ColumnSpec] = TypeAdapter(ColumnSpec)
    parts = [_part(adapter, described) for described in schema]
    layout = Layout(tuple(parts))
    try:
        named = len({part.name for part in parts}) == len(parts)
        if not named or not layout.columns or not layout.kinds:
            raise UnknownColumn("names a column twice, or none")
    except FormulaRefused as error:
        raise UnknownColumn(f"has the column {error.column!r}, which {error}") from None
    return layout


def _part(adapter: TypeAdapter[ColumnSpec], described: Described) -> Part:
    name = described.get("name")
    declared = declared_from(described)
    if not isinstance(name, str) or declared is None:
        raise UnknownColumn(f"has the column {name!r}, of no kind that is known")
    try:
        part = adapter.validate_python(declared).part(name)
    except ValidationError as error:
        words = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise UnknownColumn(f"has the column {name!r}, which {words}") from None
    if part is None or (isinstance(part, Column) and list(part.labels) != described.get("labels")):
        raise UnknownColumn(f"has the column {name!r}, whose labels are not those of its values")
    if isinstance(part, Column) and not part.missing:
        return replace(part, fallback=_fallback(part, described))
    return part


def _fallback(column: Column, described: Described) -> int:
    missing = described.get("missing")
    label = missing.get("unusable_cells_become") if isinstance(missing, dict) else None
    return column.labels.index(label) if label in column.labels else 0


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
