"""The kinds of columns that a configuration may declare, each registered once.

From ``KINDS`` follow the grammar of a column, its JSON Schema, its errors, and what ``dpsynth init`` reads
back and fills in. A new kind is a declaration in a file beside this one, a codec in ``domain`` and one line
here; ``test_registry_of_kinds.py`` names each part that is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from dpsynth.columns.layout import Layout
from dpsynth.config.calendar_columns import DateColumn, DatetimeColumn, TimeColumn
from dpsynth.config.category_columns import BooleanColumn, CategoryColumn, IdentifierColumn, OrderedColumn
from dpsynth.config.declaration import Declaration
from dpsynth.config.derived_columns import DerivedColumn
from dpsynth.config.duration_columns import DurationColumn
from dpsynth.config.numeric_columns import IntegerColumn, NumberColumn
from dpsynth.config.section import Section, nearest, one_of, refused
from dpsynth.config.text_columns import TextColumn

KINDS: Mapping[str, type[Declaration]] = {
    "integer": IntegerColumn,
    "number": NumberColumn,
    "boolean": BooleanColumn,
    "category": CategoryColumn,
    "ordered": OrderedColumn,
    "date": DateColumn,
    "datetime": DatetimeColumn,
    "time": TimeColumn,
    "duration": DurationColumn,
    "text": TextColumn,
    "identifier": IdentifierColumn,
    "derived": DerivedColumn,
}
"""Declarations by the value of the key ``type``."""


def _with_kind(value: object) -> object:
    if isinstance(value, Section):
        return value
    if not isinstance(value, dict):
        raise refused("must be a mapping such as {type: integer, min: 0, max: 110}")
    kind = value.get("type")
    if isinstance(kind, str) and kind in KINDS:
        return value
    if kind is None:
        raise refused(f"is missing; it is one of {one_of(tuple(KINDS))}", "type")
    raise refused(f"must be one of {one_of(tuple(KINDS))}{nearest(kind, KINDS)}", "type")


def _kind(value: object) -> str:
    return "@" + str(value["type"] if isinstance(value, dict) else getattr(value, "type", ""))


class _OfItsKind:
    """A mapping, read as the declaration of the kind that its key ``type`` names.

    The tags of the union start with @ so that messages can leave them out.
    """

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A union of all kinds, with ``type`` as its tag."""
        del source
        choices = {f"@{kind}": handler.generate_schema(declared) for kind, declared in KINDS.items()}
        return core_schema.tagged_union_schema(choices, _kind)


ColumnSpec = Annotated[Declaration, _OfItsKind(), BeforeValidator(_with_kind)]
"""One column's declaration."""


def layout_of(declared: Mapping[str, ColumnSpec]) -> Layout:
    """The columns of the synthetic table, in the order of their declarations."""
    parts = (column.part(name) for name, column in declared.items())
    return Layout(tuple(part for part in parts if part is not None))
