"""Queries whose rows follow, each, from one row of one table, whatever its cells.

A guarantee for a row, or for a person, holds for the rows of a query only if one row of the database moves
one row of the query. LIMIT, DISTINCT, GROUP BY, joins and windows let one row move any number of others. And
an expression that fails on some cells, such as a cast, shows in the exit code that there is such a cell.

Invariant: what is let through is listed, piece by piece; all else is a doubt. So a doubt may be groundless,
and its owner may say so (``source.row_by_row``). Views of the database, its own triggers and functions are
not looked into.

The parser takes a third of a second to import: only a configuration with a query does so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_DIALECTS = {"postgresql": "postgres", "mariadb": "mysql", "mssql": "tsql", "cockroachdb": "postgres"}
"""Names of the parser's dialects, where they are not those in URLs."""
_COMPARED_BY_TYPE = ("", "postgres", "mysql", "sqlite")
"""Dialects in which no condition turns the texts of a column into numbers or truth values, and fails on
some."""


def _named(kinds: str) -> frozenset[str]:
    return frozenset(kinds.split())


_PIECES = _named(
    "Select Star From Table TableAlias Alias Identifier Column Where With CTE Subquery Order Ordered Paren "
    "Literal Boolean Null And Or Not EQ NEQ GT GTE LT LTE Is Between In Like ILike Escape Case If Coalesce "
    "Nullif Lower Upper Trim Concat DPipe TryCast DataType DataTypeParam Var"
)
_SQLITE = _named("Cast Add Sub Mul Div Mod Neg Substring Round Length")
"""Pieces that fail on no cell of SQLite's, which gives NULL or another type in place of an error."""
_COMPARISONS = _named("EQ NEQ GT GTE LT LTE Between In Nullif")
_CONDITIONS = _named("And Or Not Where Paren")
_ROWS = _named(
    "Limit Offset Fetch Distinct Group Having Join Lateral SetOperation Window Qualify TableSample UDTF "
    "Pivot AggFunc Select Subquery With MatchRecognize"
)
"""Pieces by which a row of the query may follow from several rows, or several from one."""


def dialect_of(address: str) -> str:
    """The parser's name for the kind of database of an address."""
    name = address.partition(":")[0].partition("+")[0]
    return _DIALECTS.get(name, name)


def doubt_of(query: str, dialect: str = "") -> str | None:
    """The first piece of a query that may break its row-by-row reading, in words; None if there is none.

    Args:
        query: one SELECT.
        dialect: the kind of its database; "" where it isn't known yet.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    known = sqlglot.Dialect.get(dialect) is not None
    try:
        (tree,) = (one for one in sqlglot.parse(query, dialect=dialect if known else None) if one is not None)
    except (SqlglotError, RecursionError, ValueError):
        return "can't be read as SQL that is known here"
    found = next(_doubtful(tree, dialect), None)
    if "/*!" in query:
        return "has '/*!', which MySQL reads and others pass over"
    if found is None:
        return None
    text = " ".join(found.sql(dialect=dialect if known else None).split()).lstrip(", ")
    piece = f"'{text if len(text) <= 60 else text[:57] + '...'}'"
    if any(kind.__name__ in _ROWS for kind in type(found).__mro__):
        return f"has {piece}, by which one row may decide about others"
    return f"has {piece}, which may fail on some cells, or isn't known here"


def _doubtful(tree: Expr, dialect: str) -> Iterator[Expr]:
    """The pieces that may not be in a query, from the outermost inwards."""
    allowed = _PIECES | _SQLITE if dialect == "sqlite" else _PIECES
    for piece in tree.walk():
        kind, above = type(piece).__name__, type(piece.parent).__name__
        if (
            (kind not in allowed and not _safe_cast(piece))
            or (kind == "Select" and above not in ("NoneType", "CTE", "Subquery"))
            or (kind == "Subquery" and above != "From")
            or (kind == "With" and piece.args.get("recursive"))
            or (kind == "Table" and type(piece.this).__name__ != "Identifier")
            # Of Oracle: a number that follows from the rows before.
            or (kind == "Column" and piece.name.lower() == "rownum")
            or (kind in ("Like", "ILike") and not _plain_pattern(piece))
            or (dialect not in _COMPARED_BY_TYPE and _turns_texts(piece, kind, above))
        ):
            yield piece


def _safe_cast(piece: Expr) -> bool:
    """True of a cast to text, which every cell has, and of a cast of what is written in the query."""
    if type(piece).__name__ != "Cast":
        return False
    return piece.args["to"].this.name in ("TEXT", "VARCHAR") or type(piece.this).__name__ == "Literal"


def _plain_pattern(piece: Expr) -> bool:
    pattern = piece.args["expression"]
    return bool(pattern.is_string and "\\" not in pattern.name)


def _turns_texts(piece: Expr, kind: str, above: str) -> bool:
    """True if a column's texts may be read as numbers or truth values, which some of them are not.

    So of a column that is a condition by itself, and of a comparison with more than texts as they are
    written.
    """
    if kind == "Column" and piece.parent is not None:
        tested = above == "Is" and type(piece.parent.expression).__name__ == "Boolean"
        return tested or above in _CONDITIONS or (above == "If" and piece.parent.this is piece)
    given = [one for each in piece.args.values() for one in (each if isinstance(each, list) else [each])]
    return kind in _COMPARISONS and sum(not one.is_string for one in given if one is not None) > 1
