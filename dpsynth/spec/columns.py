"""The kinds of columns a configuration may declare, and the column each becomes.

A new kind is one class here or in a file beside it, and one line in ``ColumnSpec``.
"""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
from pydantic import BeforeValidator, Discriminator, Tag

from dpsynth.domain.column import Column
from dpsynth.errors import ConfigError
from dpsynth.spec.category_columns import BooleanColumn, CategoryColumn
from dpsynth.spec.missing import markers_of
from dpsynth.spec.numeric_columns import DateColumn, IntegerColumn, NumberColumn
from dpsynth.spec.scalars import one_of
from dpsynth.spec.section import nearest, not_yet, refused

_KINDS = ("integer", "number", "boolean", "category")
_LATER = ("date", "datetime", "time", "ordered", "text")


def _kind_stated(value: object) -> object:
    if isinstance(value, IntegerColumn | NumberColumn | BooleanColumn | CategoryColumn | DateColumn):
        return value
    if not isinstance(value, dict):
        raise refused("must be a mapping such as {type: integer, min: 0, max: 110}")
    kind = value.get("type")
    if kind in _KINDS or kind == "date":
        return value
    if isinstance(kind, str) and kind in _LATER:
        raise not_yet(f"{kind} columns", ", ".join(_KINDS))
    if kind is None:
        raise refused(f"is missing; it is one of {one_of(_KINDS)}", "type")
    raise refused(f"must be one of {one_of(_KINDS)}{nearest(kind, (*_KINDS, *_LATER))}", "type")


def _kind(value: object) -> str:
    return "@" + str(value["type"] if isinstance(value, dict) else getattr(value, "type", ""))


ColumnSpec = Annotated[
    Annotated[IntegerColumn, Tag("@integer")]
    | Annotated[NumberColumn, Tag("@number")]
    | Annotated[BooleanColumn, Tag("@boolean")]
    | Annotated[CategoryColumn, Tag("@category")]
    | Annotated[DateColumn, Tag("@date")],
    Discriminator(_kind),
    BeforeValidator(_kind_stated),
]
"""One column's declaration. The tags start with @ so that messages can leave them out."""


def column_of(name: str, declared: ColumnSpec) -> Column:
    """The column of the domain that a declaration describes."""
    if isinstance(declared, DateColumn):
        raise ConfigError(f"not yet supported: columns.{name}.type: date.")
    places = declared.places()
    fallback = 0
    if declared.missing is False and declared.default is not None:
        text = declared.default
        if isinstance(declared, BooleanColumn) and isinstance(text, bool):
            text = declared.values[text]
        fallback = int(places.encode(pa.array([str(text)], pa.string()))[0])
    return Column(
        name,
        places,
        missing=declared.missing is not False,
        markers=markers_of(declared.missing),
        fallback=fallback,
    )
