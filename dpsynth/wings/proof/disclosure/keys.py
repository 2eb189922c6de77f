"""Views of a release in the form of older disclosure control: suppression, rounding, k-anonymity.

Invariant: a declaration is public. What it needs of columns is checked before anything is read, so that no
view can fail once the budget is spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from math import prod
from typing import Annotated

from pydantic import Field, model_validator

from dpsynth.columns.calendar import UNITS, CalendarCodec
from dpsynth.columns.codec import Intervals
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.section import (
    Checked,
    Choice,
    ColumnName,
    JsonSchema,
    Number,
    Section,
    Whole,
    refused,
    unrepeated,
)
from dpsynth.columns.statistic_kinds import Asked, Count, Crosstab
from dpsynth.config.publish import Publish
from dpsynth.errors import nearest
from dpsynth.wings.proof.disclosure import hierarchy as hierarchies
from dpsynth.wings.proof.disclosure.hierarchy import Hierarchy, Tree
from dpsynth.wings.proof.disclosure.linked_tables import METHODS, Method, number_of_cells

MOST_CELLS = 2_000
"""Most cells of all tables with suppressed cells, with their margins: linear programs are solved for them."""
MOST_LEVELS = 5_000
"""Most combinations of levels that the search for a k-anonymous view may have to look at."""
MOST_QUASI_IDENTIFIERS = 8
_KEYS = ("groups", "widths", "units", "prefixes")


class ValueGroups(Checked):
    """Nested groups of values: lists, or mappings from the groups' names to their members."""

    def check(self, value: object) -> tuple[Tree | str, ...]:
        """The largest groups, and values."""
        if not isinstance(value, list | tuple | dict):
            raise refused("must be a list of groups such as [[a, b], [c, d]], or a mapping of their names")
        found = tuple(_members(value, ()))
        if not hierarchies.depth_of(found):
            raise refused("must hold groups of values, such as [[a, b], [c, d]]")
        return found

    def json_schema(self) -> JsonSchema:
        return {"anyOf": [{"type": "array"}, {"type": "object"}]}


def _members(value: object, path: tuple[str | int, ...]) -> list[Tree | str]:
    if len(path) > MOST_QUASI_IDENTIFIERS:
        raise refused("holds groups in groups in groups, too many of them", *path)
    if isinstance(value, dict):
        return [(str(name), tuple(_group(inner, (*path, name)))) for name, inner in value.items()]
    assert isinstance(value, list | tuple)
    found: list[Tree | str] = []
    for i, member in enumerate(value):
        if isinstance(member, list | tuple):
            found.append((None, tuple(_group(member, (*path, i)))))
        elif isinstance(member, dict):
            found += _members(member, (*path, i))
        elif isinstance(member, str | int) and not isinstance(member, bool):
            found.append(str(member))
        else:
            raise refused("must be a value in quotes, or a group of values", *path, i)
    return found


def _group(value: object, path: tuple[str | int, ...]) -> list[Tree | str]:
    if not isinstance(value, list | tuple | dict) or not value:
        raise refused("must be a group: a list of values or of groups", *path)
    return _members(value, path)


class HierarchySpec(Section):
    """The levels to which a column may be generalised."""

    groups: Annotated[tuple[Tree | str, ...], ValueGroups()] | None = Field(
        default=None,
        description="Of named values: lists of values, or names with lists: {North: [a, b], South: [c, d]}. "
        "Groups may hold groups. A value that none holds stays by itself up to the last level.",
    )
    widths: tuple[Annotated[Decimal, Number(above="0")], ...] | None = Field(
        default=None,
        description="Of numbers: widths of intervals, rising, each a multiple of the last: [5, 10, 20].",
        min_length=1,
    )
    units: tuple[Annotated[str, Choice(UNITS)], ...] | None = Field(
        default=None,
        description="Of dates and times: units, from fine to coarse: [quarter, year].",
        min_length=1,
    )
    prefixes: tuple[Annotated[int, Whole(at_least="1", at_most="1000")], ...] | None = Field(
        default=None,
        description="Of texts: lengths of the beginnings that are kept, falling: [4, 2].",
        min_length=1,
    )

    def model_post_init(self, context: object, /) -> None:
        given = [key for key in _KEYS if getattr(self, key) is not None]
        if len(given) != 1:
            raise refused("must have one of the keys groups, widths, units and prefixes")
        for wide, wider in pairwise(self.widths or ()):
            if wider <= wide or wider % wide:
                raise refused("must rise, each a multiple of the one before, such as [5, 10, 20]", "widths")
        ranks = [UNITS.index(unit) for unit in self.units or ()]
        if ranks != sorted(set(ranks), reverse=True) or "week" in (self.units or ())[:-1]:
            words = (
                "must go from fine to coarse; week is in no month, quarter or year, and may only be the last"
            )
            raise refused(words, "units")
        if list(self.prefixes or ()) != sorted(set(self.prefixes or ()), reverse=True):
            raise refused("must fall, such as [4, 2]", "prefixes")

    @property
    def height(self) -> int:
        """Number of levels between the cells and everything."""
        groups = 0 if self.groups is None else hierarchies.depth_of(self.groups)
        return groups + len(self.widths or self.units or self.prefixes or ())

    def of(self, column: Column) -> Hierarchy:
        """The hierarchy over the cells of a column."""
        if self.groups is not None:
            return hierarchies.by_groups(column, self.groups)
        if self.widths is not None:
            return hierarchies.by_width(column, list(map(float, self.widths)))
        if self.units is not None:
            return hierarchies.by_unit(column, self.units)
        return hierarchies.by_prefix(column, self.prefixes or ())

    def suits(self, column: Column, *path: str | int) -> None:
        """Refuse a kind of levels that the column's values can't have."""
        codec = column.codec
        if self.widths is not None and (
            codec.kind.word != "number" or not isinstance(codec.cell_values, Intervals)
        ):
            raise refused(f"is for columns of numbers, and '{column.name}' has none", *path, "widths")
        if self.units is not None:
            if not isinstance(codec, CalendarCodec):
                raise refused(f"is for dates and times, and '{column.name}' has none", *path, "units")
            if UNITS.index(self.units[0]) >= UNITS.index(codec.unit):
                raise refused(f"must be coarser than the column's own unit, {codec.unit}", *path, "units", 0)
        if self.prefixes is not None and isinstance(codec.cell_values, Intervals):
            raise refused(f"is for columns of texts, and '{column.name}' has none", *path, "prefixes")
        if self.groups is not None:
            listed = hierarchies.values_of(self.groups)
            if len(set(listed)) < len(listed):
                twice = next(value for value in listed if listed.count(value) > 1)
                raise refused(f"holds the value '{twice}' twice", *path, "groups")
            unknown = [value for value in listed if value not in codec.labels]
            if unknown and column.search is None:
                guess = nearest(unknown[0], codec.labels)
                raise refused(
                    f"holds '{unknown[0]}', which is no value of '{column.name}'{guess}", *path, "groups"
                )


class LDiversity(Section):
    """Different values of sensitive columns in each group of equal rows."""

    l: Annotated[int, Whole(at_least="2", at_most="1000")] = Field(  # noqa: E741 (the field's own name)
        description="Fewest different values of each sensitive column in a group."
    )
    sensitive: tuple[ColumnName, ...] = Field(description="The sensitive columns.", min_length=1)


class KAnonymity(Section):
    """A view of the synthetic table in which each combination of some columns occurs k times or more."""

    k: Annotated[int, Whole(at_least="2", at_most="1000000")] = Field(description="Fewest equal rows.")
    quasi_identifiers: tuple[ColumnName, ...] = Field(
        description="The columns that might tell who somebody is.",
        min_length=1,
        max_length=MOST_QUASI_IDENTIFIERS,
    )
    hierarchies: Mapping[ColumnName, HierarchySpec] = Field(
        default={},
        description="How quasi-identifiers are generalised, by column. Left out: ordered values to eight, "
        "four and two groups, then to *; others to * at once.",
    )
    l_diversity: LDiversity | None = Field(
        default=None, description="Sensitive columns that must differ in each group. Left out: none."
    )
    suppress_at_most: Annotated[Decimal, Number(at_least="0", at_most="1")] = Field(
        default=Decimal("0.05"),
        description="Largest share of the rows that may be left out, in place of generalising all rows more.",
    )

    def model_post_init(self, context: object, /) -> None:
        unrepeated(self.quasi_identifiers, "quasi_identifiers")
        for name in self.hierarchies:
            if name not in self.quasi_identifiers:
                raise refused("is none of quasi_identifiers", "hierarchies", name)
        for i, name in enumerate(() if self.l_diversity is None else self.l_diversity.sensitive):
            if name in self.quasi_identifiers:
                raise refused(f"names '{name}', a quasi-identifier", "l_diversity", "sensitive", i)

    def hierarchies_of(self, columns: Mapping[str, Column]) -> tuple[Hierarchy, ...]:
        """The hierarchies of the quasi-identifiers, in their order."""
        declared = self.hierarchies
        return tuple(
            declared[name].of(columns[name]) if name in declared else hierarchies.by_default(columns[name])
            for name in self.quasi_identifiers
        )

    @property
    def named(self) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
        """Each column that is named, with its path."""
        found: list[tuple[str, tuple[str | int, ...]]] = []
        found += [(name, ("quasi_identifiers", i)) for i, name in enumerate(self.quasi_identifiers)]
        sensitive = () if self.l_diversity is None else self.l_diversity.sensitive
        return (*found, *((name, ("l_diversity", "sensitive", i)) for i, name in enumerate(sensitive)))


class Rounding(Section):
    """Counts of views rounded to a base."""

    base: Annotated[int, Whole(at_least="2", at_most="1000000")] = Field(
        description="Counts become multiples of it."
    )
    method: Annotated[Method, Choice(METHODS)] = Field(
        default="nearest",
        description="nearest: to the nearest multiple, half up. unbiased: up or down, so that the mean is "
        "the count; one cell of a release is always rounded the same way.",
    )

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, values: object) -> object:
        number = isinstance(values, int | Decimal) and not isinstance(values, bool)
        return {"base": values} if number else values


def cliques_of(statistics: Sequence[Asked]) -> tuple[Clique, ...]:
    """The columns of each table of counts over all rows, in which cells can be left out or rounded."""
    tables = [
        statistic.columns
        for statistic in statistics
        if isinstance(statistic, Crosstab) or (isinstance(statistic, Count) and statistic.where is None)
    ]
    return tuple(dict.fromkeys(tables))


def rounding_of(publish: Publish) -> Rounding | None:
    """The rounding that is asked for."""
    assert publish.rounding is None or isinstance(publish.rounding, Rounding)
    return publish.rounding


def k_anonymity_of(publish: Publish) -> KAnonymity | None:
    """The k-anonymous view that is asked for."""
    assert publish.k_anonymity is None or isinstance(publish.k_anonymity, KAnonymity)
    return publish.k_anonymity


def check_views(publish: Publish, columns: Mapping[str, Column]) -> None:
    """Refuse views that the columns can't give. Paths in errors start at the top of the configuration.

    Args:
        publish: its section, whose names of columns are known.
        columns: the columns that are read.
    """
    key = "suppress_below" if publish.suppress_below is not None else "rounding"
    if getattr(publish, key) is not None:
        cliques = cliques_of(publish.statistics)
        if not cliques:
            words = "has no use without a table of counts, such as {crosstab: [age, sex]}, among statistics"
            raise refused(words, "publish", key)
        _check_sizes(cliques, columns, key)
    if (asked := k_anonymity_of(publish)) is not None:
        _check_k_anonymity(asked, columns)


def _check_sizes(cliques: Sequence[Clique], columns: Mapping[str, Column], key: str) -> None:
    for name in dict.fromkeys(name for clique in cliques for name in clique):
        if columns[name].search is not None:
            words = (
                f"needs tables of columns whose values are declared, and those of '{name}' are to be found"
            )
            raise refused(words, "publish", key)
    cells = number_of_cells(cliques, {name: column.size for name, column in columns.items()})
    if cells > MOST_CELLS:
        words = (
            f"is about tables that have {cells:,} cells with all their margins; at most {MOST_CELLS:,} are "
            "allowed. Ask for tables of fewer columns, or of columns with fewer values"
        )
        raise refused(words, "publish", key)


def _check_k_anonymity(asked: KAnonymity, columns: Mapping[str, Column]) -> None:
    for name, declared in asked.hierarchies.items():
        declared.suits(columns[name], "publish", "k_anonymity", "hierarchies", name)
    combinations = prod(2 + _height(asked, columns[name]) for name in asked.quasi_identifiers)
    if combinations > MOST_LEVELS:
        words = (
            f"have {combinations:,} combinations of levels; at most {MOST_LEVELS:,} are allowed. Declare "
            "hierarchies of fewer levels, or fewer quasi-identifiers"
        )
        raise refused(words, "publish", "k_anonymity", "quasi_identifiers")


def _height(asked: KAnonymity, column: Column) -> int:
    declared = asked.hierarchies.get(column.name)
    if declared is not None:
        return declared.height
    return hierarchies.HALVINGS if column.codec.ordered else 0
