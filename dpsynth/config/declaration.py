"""Declarations of columns: the members that every kind has, and the column made from one.

Invariant: the members of ``Declaration`` hold all that the grammar, its JSON Schema and ``dpsynth init``
need of a kind of column; no other file asks for the kind of a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from dpsynth.columns.codec import Codec
from dpsynth.columns.column import Column
from dpsynth.columns.layout import Part
from dpsynth.columns.search import Search
from dpsynth.config.missing import Rule, distinct_of, markers_of
from dpsynth.config.yaml_reader import Value

Declared = dict[str, Value]
"""Keys of one column's declaration, in the order in which they are written."""

Described = Mapping[str, Value]
"""One column as the public schema of a release has it."""


class Declaration(Protocol):
    """One column as a configuration declares it."""

    STAND_INS: ClassVar[Declared]
    """Harmless values of keys that only the owner of the table can give, for checks of all other keys."""

    @property
    def type(self) -> str:
        """The kind of column."""
        ...

    @classmethod
    def from_schema(cls, described: Described) -> Declared | None:
        """The declaration, but for missing cells, of a column of a published schema; None of other kinds."""
        ...

    def part(self, name: str) -> Part | None:
        """The column of the synthetic table, if the declaration makes one."""
        ...


class Modelled(Protocol):
    """A declaration of a column that is read from the table, and modelled."""

    @property
    def missing(self) -> Rule:
        """The rule for missing cells."""
        ...

    def codec(self) -> Codec:
        """The codec of the values, or a stand-in for one that is to be found."""
        ...

    def fallback(self) -> int:
        """The code of unusable cells where nothing may be missing."""
        ...


def column_of(
    name: str, declared: Modelled, *, search: Search | None = None, uniform: bool = False
) -> Column:
    """The column of the domain that a declaration describes.

    Args:
        name: the name in the header of the source.
        declared: the declaration, which gives the codec and the rule for missing cells.
        search: the private search for the codec, if it has one.
        uniform: True if all values of a bin of numbers are equally likely.
    """
    return Column(
        name,
        declared.codec(),
        missing=declared.missing is not False,
        markers=markers_of(declared.missing),
        fallback=declared.fallback() if declared.missing is False else 0,
        distinct=distinct_of(declared.missing),
        search=search,
        uniform=uniform,
    )
