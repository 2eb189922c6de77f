"""The section of linked tables: its keys, and the names that rows have in the wide table.

Invariant: public, and made of the configuration alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from dpsynth.columns.kinds import ColumnSpec
from dpsynth.columns.section import (
    Checked,
    Choice,
    ColumnName,
    Flag,
    JsonSchema,
    Section,
    Text,
    Whole,
    by_word,
    refused,
)
from dpsynth.config.source import Source
from dpsynth.errors import nearest

MOST_CHILDREN = 1_000
_FEW_CHILDREN, _TOLD_APART = 5, 2
"""The most child rows that are all told apart, and how many of more are, where nobody says."""
_TABLE = Text("a plain word of letters, digits and _, such as persons", pattern=r"[^\W\d]\w*", longest=60)


class Key(Checked):
    """One column, or several that tell a row together."""

    def check(self, value: object) -> tuple[str, ...]:
        listed = value if isinstance(value, list | tuple) else [value]
        if not listed:
            raise refused("must be the name of a column, or a list of them")
        text = Text("the name of a column, or a list of them")
        names = tuple(text.check(name) for name in listed)
        if len(set(names)) < len(names):
            raise refused("lists a column twice")
        return names

    def json_schema(self) -> JsonSchema:
        name: JsonSchema = {"type": "string", "minLength": 1}
        return {"anyOf": [name, {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}]}


class Parent(Section):
    """The table whose rows those of this one belong to."""

    table: Annotated[str, Text("the name of a table")] = Field(description="Name of the parent table.")
    key: Annotated[tuple[str, ...], Key()] = Field(
        description="Column of this table, or list of columns, that holds the key of the parent's row."
    )
    max_children: Annotated[int, Whole(at_least="1", at_most=str(MOST_CHILDREN))] = Field(
        description="Most rows of this table that are used of one parent's row. From public knowledge."
    )
    keep: Annotated[Literal["first", "window"], Choice(("first", "window"))] = Field(
        default="first",
        description="Rows that are used where one parent's row has more than max_children: the first ones, "
        "or a window of rows in their order, from a random one on.",
    )
    roles: Annotated[int, Whole(at_least="1", at_most=str(MOST_CHILDREN))] | None = Field(
        default=None,
        description="Number of first rows that are told apart, as the first and the second member of a "
        "household; of all further ones a random one stands for each. Left out: max_children up to 5, and "
        "otherwise 2.",
    )

    def model_post_init(self, context: object, /) -> None:
        if self.roles is not None and self.roles > self.max_children:
            raise refused(f"must be at most max_children, {self.max_children}", "roles")


class Aggregate(Section):
    """A column of a table that is computed from the synthetic rows that belong to each of its rows."""

    where: Annotated[str, Text("a condition such as age < 18", longest=400)] | None = Field(
        default=None, description="Condition on a row of the child table. Left out: all rows count."
    )

    kind: ClassVar[str]
    """The key that names the child table."""

    @property
    def table(self) -> str:
        """The child table."""
        return str(getattr(self, self.kind))


class Count(Aggregate):
    """The number of child rows that meet a condition."""

    kind = "count"
    count: Annotated[str, Text("the name of a table")] = Field(description="Child table.")


class AnyOf(Aggregate):
    """'yes' where some child row meets a condition, otherwise 'no'."""

    kind = "any"
    any: Annotated[str, Text("the name of a table")] = Field(description="Child table.")


class Figure(Aggregate):
    """A figure of a column of those rows that meet a condition and have a value."""

    of: Annotated[str, Text("the name of a column")] = Field(description="Column of the child table.")


class SumOf(Figure):
    """The sum of numbers; 0 without any."""

    kind = "sum"
    sum: Annotated[str, Text("the name of a table")] = Field(description="Child table.")


class MeanOf(Figure):
    """The mean of numbers, to two decimals more than these have; missing without any."""

    kind = "mean"
    mean: Annotated[str, Text("the name of a table")] = Field(description="Child table.")


class MinOf(Figure):
    """The least number, or the first date or time; missing without any."""

    kind = "min"
    min: Annotated[str, Text("the name of a table")] = Field(description="Child table.")


class MaxOf(Figure):
    """The largest number, or the last date or time; missing without any."""

    kind = "max"
    max: Annotated[str, Text("the name of a table")] = Field(description="Child table.")


if TYPE_CHECKING:
    AnyAggregate = Count | AnyOf | SumOf | MeanOf | MinOf | MaxOf
else:
    _AGGREGATES = (Count, AnyOf, SumOf, MeanOf, MinOf, MaxOf)
    AnyAggregate = by_word({each.kind: each for each in _AGGREGATES}, "{count: persons, where: age < 18}")


class LinkedTable(Section):
    """One of several linked tables."""

    source: Source | None = Field(
        default=None, description="Where the table is. Left out: it is handed over in Python."
    )
    key: Annotated[tuple[str, ...], Key()] | None = Field(
        default=None,
        description="Column, or list of columns, that tells a row. The table at the root, and each that is a "
        "parent, needs it. Synthetic rows get new keys.",
    )
    unit: Annotated[Literal["person", "household"], Choice(("person", "household"))] | None = Field(
        default=None, description="At the root: whom a row stands for; the guarantee is worded so."
    )
    parent: Parent | None = Field(
        default=None, description="The table above. Left out: this is the table at the root."
    )
    order_by: ColumnName | None = Field(
        default=None,
        description="Column by which the rows of one parent's row follow each other; by its declared order, "
        "or else as numbers and texts. Left out: as in the table.",
    )
    distinct: Annotated[bool, Flag()] = Field(
        default=False,
        description="The rows of one parent's row have different values of order_by, as rows a year have. "
        "Public knowledge; private rows that repeat one are used like others.",
    )
    columns: Mapping[str, ColumnSpec] = Field(description="The columns to use, by name, without keys.")
    derived: Mapping[str, AnyAggregate] = Field(
        default={},
        description="Columns computed from the synthetic rows of child tables, such as {minors: {count: "
        "persons, where: age < 18}} or {spent: {sum: visits, of: cost}}. They are not read.",
    )
    at_most_one: tuple[Annotated[str, Text("a condition such as role == 'head'", longest=400)], ...] = Field(
        default=(), description="Conditions that at most one of the rows of one parent's row meets."
    )
    constraints: tuple[Annotated[str, Text("a rule such as admitted <= discharged", longest=1000)], ...] = (
        Field(
            default=(),
            description="Rules that every synthetic row obeys. At a parent they may name child tables, which "
            "stand for the numbers of their rows, and columns of single child rows, such as persons_1_age. "
            "Below, they may name those of tables above, such as patients.birth <= admitted.",
        )
    )

    def model_post_init(self, context: object, /) -> None:
        if not self.columns:
            words = (
                "must declare at least one column beside the key. Leave out a table of keys alone; the one "
                "above it may have a column that says how many rows there are"
            )
            raise refused(words, "columns")
        for name in self.keys:
            if getattr(self.columns.get(name), "type", "") not in ("", "identifier"):
                words = "is a key, and keys are made anew: take it out of columns"
                raise refused(words, "columns", name)
        for name in (*self.keys, self.order_by or ""):
            if name in self.derived:
                raise refused("is also a key, or order_by: give it another name", "derived", name)
        if self.parent is None:
            for key in ("order_by", "distinct", "at_most_one"):
                if getattr(self, key):
                    raise refused("is for tables with a parent: remove it", key)
            if self.key is None:
                raise refused("is missing: name the column that tells the rows at the root apart", "key")
        elif self.unit is not None:
            raise refused("is for the table at the root: remove it", "unit")

    @property
    def keys(self) -> tuple[str, ...]:
        """Its columns of keys: its own, and those of its parent's."""
        return (*(self.key or ()), *(self.parent.key if self.parent else ()))


def _tree(tables: Mapping[str, LinkedTable]) -> Mapping[str, LinkedTable]:
    for name, table in tables.items():
        try:
            _TABLE.check(name)
        except PydanticCustomError as error:
            raise refused(f"as a name {(error.context or {})['words']}", name) from None
        if any(name != other and name.lower() == other.lower() for other in tables):
            raise refused("is another table's name but for capitals, and both name files: rename one", name)
        above = table.parent
        if above is None:
            continue
        if above.table not in tables:
            words = f"names '{above.table}', which is none of tables{nearest(above.table, tables)}"
            raise refused(words, name, "parent", "table")
        of_parent = tables[above.table].key
        if of_parent is None or len(of_parent) != len(above.key):
            words = f"must name as many columns as tables.{above.table}.key"
            raise refused(words, name, "parent", "key")
        higher = tables[above.table].parent
        if higher is not None and of_parent[: len(higher.key)] != higher.key:
            words = (
                f"must begin with the columns of tables.{above.table}.parent.key, so that each row says by "
                "itself whose it is; add them to the table, or to the query that gives it"
            )
            raise refused(words, above.table, "key")
    roots = [name for name, table in tables.items() if table.parent is None]
    if len(roots) != 1:
        found = "none has" if not roots else f"{', '.join(roots)} have"
        raise refused(f"must have one table without a parent, at the root; {found} no parent")
    if len(tables) == 1:
        raise refused("has one table; describe it with source and columns in place of tables")
    reached = {*_below(tables, roots[0])}
    for name in tables:
        if name not in reached:
            raise refused("belongs to itself by way of its parents", name, "parent", "table")
    return tables


LinkedTables = Annotated[Mapping[str, LinkedTable], AfterValidator(_tree)]
"""The tables of the configuration, by name: a tree."""


def _below(tables: Mapping[str, LinkedTable], name: str) -> Iterator[str]:
    yield name
    for child in children_of(tables, name):
        yield from _below(tables, child)


def root_of(tables: Mapping[str, LinkedTable]) -> str:
    """The name of the table at the root."""
    return next(name for name, table in tables.items() if table.parent is None)


def children_of(tables: Mapping[str, LinkedTable], name: str) -> list[str]:
    """The names of the tables right below one."""
    return [child for child, table in tables.items() if table.parent and table.parent.table == name]


def tables_above(tables: Mapping[str, LinkedTable], name: str) -> list[str]:
    """The names of the tables above one, the nearest first."""
    above = tables[name].parent
    return [] if above is None else [above.table, *tables_above(tables, above.table)]


DOTTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|([^\W\d]\w*)(\s*\.\s*)(?:`((?:[^`]|``)+)`|([^\W\d]\w*))")
"""A text, a name in backticks, or a table's name with that of a column."""


def undotted(formula: str) -> str:
    """A formula in which a table and a column are one name.

    >>> undotted("persons.`born in` < year(seen)")
    '`persons.born in` < year(seen)'
    """
    return DOTTED.sub(lambda m: f"`{m[1]}.{m[3] or m[4]}`" if m[1] else m[0], formula)


def most_of(table: LinkedTable) -> int:
    """The most rows that are used of one row of the parent."""
    assert table.parent is not None
    return table.parent.max_children


def roles_of(table: LinkedTable) -> int:
    """The number of first rows that are told apart."""
    assert table.parent is not None
    most = table.parent.max_children
    return table.parent.roles or (most if most <= _FEW_CHILDREN else _TOLD_APART)


OTHER = "other"


def slots(most: int, roles: int) -> list[tuple[str, int]]:
    """The child rows that stand beside a parent's row, and the number of rows from which each is there.

    >>> slots(4, 2)
    [('1', 1), ('2', 2), ('other', 3)]
    """
    return [(str(i), i) for i in range(1, roles + 1)] + ([(OTHER, roles + 1)] if roles < most else [])


def slots_of(table: LinkedTable) -> list[tuple[str, int]]:
    """The same of a table."""
    return slots(most_of(table), roles_of(table))


def key_column(tables: Mapping[str, LinkedTable]) -> str:
    """The column of the wide table that holds the key of its row."""
    return ", ".join(tables[root_of(tables)].key or ())


def slot(prefix: str, child: str, name: str) -> str:
    """What stands before the names of columns of a child row in the wide table.

    >>> slot("", "persons", "2")
    'persons_2_'
    """
    return f"{prefix}{child}_{name}_"
