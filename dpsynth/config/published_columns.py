"""The columns of a release, read back from its public schema.

``dpsynth init`` declares them for the next release; a recipient's commands need their codecs.

Invariant: each column goes through the grammar of the configuration, whoever wrote the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from pydantic import TypeAdapter, ValidationError

from dpsynth.columns.column import Column
from dpsynth.columns.layout import FormulaRefused, Layout, Part
from dpsynth.config.columns import KINDS, ColumnSpec
from dpsynth.config.declaration import Declared, Described
from dpsynth.config.schema_reading import value_labels
from dpsynth.config.yaml_reader import Value


class UnknownColumn(ValueError):
    """A column of a public schema that no declaration describes; the message gives the reason."""


def declared_from(described: Described) -> Declared | None:
    """The declaration of a column of a published schema; None if it is of no kind that is known."""
    found = (declaration.from_schema(described) for declaration in KINDS.values())
    declared = next((one for one in found if one is not None), None)
    return None if declared is None else {**declared, **_missing(described)}


def _missing(described: Described) -> Declared:
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
