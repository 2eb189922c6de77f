"""The kinds of columns that a configuration may declare, each registered once.

From ``KINDS`` follow the grammar of a column, its JSON Schema, its errors, and what ``dpsynth init`` reads
back and fills in. A new kind is a file beside this one, with the declaration and the codec, and one line
here; ``test_registry_of_kinds.py`` names each part that is missing.

Invariant: the members of ``Declaration`` hold all that the grammar, its JSON Schema and ``dpsynth init`` need
of a kind of column; no other file asks for the kind of a column.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Annotated, ClassVar, Protocol

from pydantic import BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from dpsynth.columns.calendar import DateColumn, DatetimeColumn, TimeColumn
from dpsynth.columns.category import BooleanColumn, CategoryColumn, OrderedColumn
from dpsynth.columns.declaration import Declared, Described, Modelled
from dpsynth.columns.derived import DerivedColumn
from dpsynth.columns.duration import DurationColumn
from dpsynth.columns.identifier import IdentifierColumn
from dpsynth.columns.layout import Layout, Part
from dpsynth.columns.numeric import IntegerColumn, NumberColumn
from dpsynth.columns.section import Section, one_of, refused
from dpsynth.columns.text import TextColumn
from dpsynth.errors import nearest


class Declaration(Protocol):
    """One column as a configuration declares it."""

    STAND_INS: ClassVar[Declared]
    """Harmless values of keys that only the owner of the table can give, for checks of all other keys."""

    @property
    def type(self) -> str: ...

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """The declaration, but for missing cells, of a column of a published schema; None of other kinds."""

    def part(self, name: str) -> Part | None:
        """The column of the synthetic table, if the declaration makes one."""


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
        choices = {f"@{kind}": handler.generate_schema(declared) for kind, declared in KINDS.items()}
        return core_schema.tagged_union_schema(choices, _kind)


ColumnSpec = Annotated[Declaration, _OfItsKind(), BeforeValidator(_with_kind)]
"""One column's declaration."""


def layout_of(declared: Mapping[str, ColumnSpec], counted: Container[str] = ()) -> Layout:
    """The columns of the synthetic table, in the order of their declarations.

    Args:
        counted: columns that have the model's own cells, where their declaration leaves them open.
    """
    parts = (
        (column.counted() if name in counted and isinstance(column, Modelled) else column).part(name)
        for name, column in declared.items()
    )
    return Layout(tuple(part for part in parts if part is not None))
