"""The kinds of columns a configuration may declare, and what each becomes.

A new kind is one class in a file beside this one, one line in ``ColumnSpec`` and one in ``KINDS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Discriminator, Tag

from dpsynth.config.calendar_columns import DateColumn, DatetimeColumn, TimeColumn
from dpsynth.config.category_columns import BooleanColumn, CategoryColumn, OrderedColumn
from dpsynth.config.derived_columns import DerivedColumn
from dpsynth.config.duration_columns import DurationColumn
from dpsynth.config.identifier_columns import IdentifierColumn
from dpsynth.config.missing import apart_of, markers_of
from dpsynth.config.numeric_columns import IntegerColumn, NumberColumn
from dpsynth.config.scalars import one_of
from dpsynth.config.section import Section, nearest, refused
from dpsynth.config.text_columns import TextColumn
from dpsynth.domain.column import Column
from dpsynth.domain.layout import Layout, Part

KINDS = ("integer", "number", "boolean", "category", "ordered", "date", "datetime", "time", "duration",
         "text", "identifier", "derived")  # fmt: skip


def _kind_stated(value: object) -> object:
    if isinstance(value, Section):
        return value
    if not isinstance(value, dict):
        raise refused("must be a mapping such as {type: integer, min: 0, max: 110}")
    kind = value.get("type")
    if kind in KINDS:
        return value
    if kind is None:
        raise refused(f"is missing; it is one of {one_of(KINDS)}", "type")
    raise refused(f"must be one of {one_of(KINDS)}{nearest(kind, KINDS)}", "type")


def _kind(value: object) -> str:
    return "@" + str(value["type"] if isinstance(value, dict) else getattr(value, "type", ""))


ModelledSpec = (
    IntegerColumn
    | NumberColumn
    | BooleanColumn
    | CategoryColumn
    | OrderedColumn
    | DateColumn
    | DatetimeColumn
    | TimeColumn
    | DurationColumn
    | TextColumn
)
"""A declaration of a column that is read and modelled."""

_SEARCHED = IntegerColumn | NumberColumn | CategoryColumn | TextColumn
"""Kinds of which something can be found with a part of the budget."""

ColumnSpec = Annotated[
    Annotated[IntegerColumn, Tag("@integer")]
    | Annotated[NumberColumn, Tag("@number")]
    | Annotated[BooleanColumn, Tag("@boolean")]
    | Annotated[CategoryColumn, Tag("@category")]
    | Annotated[OrderedColumn, Tag("@ordered")]
    | Annotated[DateColumn, Tag("@date")]
    | Annotated[DatetimeColumn, Tag("@datetime")]
    | Annotated[TimeColumn, Tag("@time")]
    | Annotated[DurationColumn, Tag("@duration")]
    | Annotated[TextColumn, Tag("@text")]
    | Annotated[IdentifierColumn, Tag("@identifier")]
    | Annotated[DerivedColumn, Tag("@derived")],
    Discriminator(_kind),
    BeforeValidator(_kind_stated),
]
"""One column's declaration. The tags start with @ so that messages can leave them out."""


def column_of(name: str, declared: ModelledSpec) -> Column:
    """The column of the domain that a declaration describes."""
    return Column(
        name,
        declared.places(),
        missing=declared.missing is not False,
        markers=markers_of(declared.missing),
        fallback=declared.fallback() if declared.missing is False else 0,
        apart=apart_of(declared.missing),
        search=declared.search() if isinstance(declared, _SEARCHED) else None,
        even=isinstance(declared, IntegerColumn | NumberColumn) and declared.within == "even",
    )


def layout_of(declared: Mapping[str, ColumnSpec]) -> Layout:
    """The columns of the synthetic table, in the order of their declarations."""
    parts = (part_of(name, column) for name, column in declared.items())
    return Layout(tuple(part for part in parts if part is not None))


def part_of(name: str, declared: ColumnSpec) -> Part | None:
    """The column of the synthetic table, if the declaration makes one."""
    if isinstance(declared, IdentifierColumn | DerivedColumn):
        return declared.part(name)
    return column_of(name, declared)
