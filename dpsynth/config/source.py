"""The source and engine sections: the file or the query that the private table is, and what counts it.

Invariant: the section names the table and its form, and never opens it. No password stands in it. What is not
declared has a fixed meaning: a release infers nothing from the table.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, model_validator

from dpsynth.columns.section import Checked, Choice, Flag, JsonSchema, Section, Text, Whole, refused
from dpsynth.config.files.form import (
    COMPRESSIONS,
    KINDS,
    SEPARATORS,
    USUAL,
    Compression,
    FileForm,
    Kind,
    encoding_named,
    named_form,
)
from dpsynth.config.files.place import as_path, is_url

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

    A guarantee for a row, or for a person, holds for the rows of a query only if one row of the database
    moves one row of the query. LIMIT, DISTINCT, GROUP BY, joins and windows let one row move any number of
    others. And an expression that fails on some cells, such as a cast, shows in the exit code that there is
    such a cell.

    What is let through is listed, piece by piece; all else is a doubt. So a doubt may be groundless, and its
    owner may say so (``source.row_by_row``). Views of the database, its own triggers and functions are not
    looked into. The parser takes a third of a second to import: only a configuration with a query does so.

    Args:
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


_LONGEST_QUERY = 100_000


class Separator(Checked):
    """The separator of cells in a CSV file."""

    def check(self, value: object) -> str:
        if isinstance(value, str) and value in (*SEPARATORS, *SEPARATORS.values()):
            return SEPARATORS.get(value, value)
        raise refused("must be ',', ';', '|' or tab")

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "enum": list(SEPARATORS)}


class Encoding(Checked):
    """The encoding of a CSV file."""

    def check(self, value: object) -> str:
        found = encoding_named(value) if isinstance(value, str) else None
        if found is None:
            raise refused(
                f"must be {', '.join(USUAL)} or another encoding that docs/reading.md lists; save a file "
                "of any other encoding as UTF-8"
            )
        return found

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "examples": list(USUAL)}


_SECRET = r"[A-Za-z_][A-Za-z0-9_]*|secret/[a-z0-9][a-z0-9-]*"

_SECRET_WORDS = "the name of an environment variable, or secret/NAME for a Secret block of Prefect"

_ADDRESS = re.compile(r"([a-z0-9]+(?:[+][a-z0-9_]+)?)://([^/?#]*)([^#]*)")


class DatabaseUrl(Checked):
    """The URL of a database, without a password."""

    def check(self, value: object) -> str:
        found = _ADDRESS.fullmatch(value) if isinstance(value, str) and value.isprintable() else None
        if found is None:
            raise refused(
                "must be the URL of a database, such as sqlite:///clinic.db or postgresql://reader@host/clinic"
            )
        if ":" in found[2].rpartition("@")[0] or "password" in found[3].lower():
            raise refused(
                "holds a password, and a configuration is no place for one: put the whole URL into an "
                "environment variable, and name that variable with url_from"
            )
        return found[0]

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "pattern": "^[a-z0-9]+([+][a-z0-9_]+)?://"}


class Query(Checked):
    """A query, on one line or several."""

    def check(self, value: object) -> str:
        if not isinstance(value, str) or not re.match(r"\s*(select|with)\b", value, re.IGNORECASE):
            raise refused("must be one SELECT, such as SELECT age, sex FROM visits")
        if len(value) > _LONGEST_QUERY or ";" in value.rstrip().removesuffix(";"):
            raise refused(f"must be one SELECT of at most {_LONGEST_QUERY:,} characters, without ';' in it")
        return value

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "maxLength": _LONGEST_QUERY}


_BAD_IN_FILE_URLS = (
    (r"[^/]*//[^/]*@", "holds a user's name or password, and a configuration is no place for one"),
    (r".*::", "is a chain of URLs, which may leave a copy of the table in a folder"),
    (r".*[?#]", "holds a query, and may hold a key in it"),
)


def _check_file_url(url: str) -> None:
    for pattern, wrong in _BAD_IN_FILE_URLS:
        if re.match(pattern, url):
            raise refused(
                f"{wrong}: write the file's own URL, such as s3://bucket/visits.parquet. Credentials come "
                "from the environment, or from the files of the URL's file system",
                "path",
            )


class Totals(Checked):
    """Texts that tell rows of totals, by column."""

    def check(self, value: object) -> dict[str, list[str]]:
        words = "a mapping from columns to the texts that tell a total, such as {region: [Total]}"
        if not isinstance(value, dict) or not value:
            raise refused(f"must be {words}")
        text = Text("a text as the table spells it")
        found: dict[str, list[str]] = {}
        for name, listed in value.items():
            texts = listed if isinstance(listed, list | tuple) else [listed]
            if not isinstance(name, str) or not name or not texts:
                raise refused(f"must be {words}")
            found[name] = [each if each == "" else text.check(each).strip() for each in texts]
        return found

    def json_schema(self) -> JsonSchema:
        text: JsonSchema = {"type": "string"}
        one: JsonSchema = {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]}
        return {"type": "object", "minProperties": 1, "additionalProperties": one}


class TableFile(Section):
    """A table in a file; by default the ending of the file's name gives its format and its compression."""

    format: Annotated[Kind, Choice(KINDS)] | None = Field(
        default=None, description="Left out: by the ending of path."
    )
    separator: Annotated[str, Separator()] = Field(
        default=",", description="Separator of the cells of a .csv file. Left out: tab for .tsv, else ','."
    )
    encoding: Annotated[str, Encoding()] = Field(
        default="utf-8", description="Encoding of a .csv file, such as utf-8, utf-16 or windows-1252."
    )
    compression: Annotated[Compression, Choice(COMPRESSIONS)] | None = Field(
        default=None,
        description="How a .csv file is packed; a .zip holds one file. Left out: by the ending of path.",
    )
    multiline: Annotated[bool, Flag()] = Field(
        default=True,
        description="false: each line of a .csv file is a row, whatever quotes it holds; for files whose "
        "quotes can't be trusted. Left out: quoted cells may hold line breaks.",
    )
    sheet: Annotated[str, Text("the name of a sheet", longest=100)] | None = Field(
        default=None, description="Sheet of an .xlsx file. Left out: the first one."
    )
    header_row: Annotated[int, Whole(at_least="1", at_most="1000")] | None = Field(
        default=None,
        description="Line of a .csv file, or row of a sheet, with the columns' names, from 1; what stands "
        "above it, such as a title, is not read. Left out: the first line, or the first row with any cell.",
    )
    skip: Annotated[int, Whole(at_least="0", at_most="1000")] = Field(
        default=0,
        description="Number of lines or rows below the header that are no rows, such as 1 for units.",
    )
    totals: Annotated[dict[str, list[str]], Totals()] | None = Field(
        default=None,
        description="Columns with the texts that tell a row of totals, such as {region: [Total]}; these rows "
        "are not read.",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_its_name(cls, values: object) -> object:
        if not isinstance(values, dict) or not isinstance(path := values.get("path"), str):
            return values
        kind, compression, separator = named_form(path)
        given = {key: value for key, value in values.items() if value is not None}
        found = {**values, "path": as_path(path), "format": given.get("format", kind)}
        if found["format"] == "csv":
            found["compression"] = given.get("compression", compression)
            if separator != ",":
                found.setdefault("separator", separator)
        return found

    def check_format(self) -> None:
        """Refuse a file of unknown format, and keys that its format has no use for."""
        if self.format is None:
            raise refused(
                "must end in .csv, .tsv, .parquet, .xlsx or, packed, in .csv.gz and the like; or say "
                "which it is with format: csv",
                "path",
            )
        if self.format != "csv":
            for key in ("separator", "encoding", "compression", "multiline"):
                if key in self.model_fields_set and getattr(self, key) is not None:
                    raise refused("is for .csv files: remove it", key)
        for key in ("header_row", "skip"):
            if self.format == "parquet" and getattr(self, key):
                raise refused("is for .csv and .xlsx files: remove it", key)
        if self.format != "xlsx" and self.sheet is not None:
            raise refused("is for .xlsx files: remove it", "sheet")

    @property
    def form(self) -> FileForm:
        """The form of the file; ValueError where the format isn't known."""
        if self.format is None:
            raise ValueError("a file of no format")
        return FileForm(
            self.format,
            self.separator,
            self.encoding,
            self.compression,
            self.multiline,
            self.sheet,
            self.header_row,
            self.skip,
            tuple((name, tuple(texts)) for name, texts in (self.totals or {}).items()),
        )


class Source(TableFile):
    """The file of the private table, or the query whose rows it is."""

    in_memory: ClassVar[bool] = False
    """True if there is no file, and the table is handed over in Python."""

    elsewhere: ClassVar[bool] = False
    """True if the section itself names no table."""

    path: Annotated[str, Text("the path of a file", longest=4000)] | None = Field(
        default=None,
        description="A .csv, .tsv, .parquet or .xlsx file, or a folder of .parquet files with format: "
        "parquet; a relative path starts at the working directory. Or a URL that fsspec opens, such as "
        "s3://bucket/visits.parquet.",
    )
    url: Annotated[str, DatabaseUrl()] | None = Field(
        default=None,
        description="The URL of a database, without a password, such as sqlite:///clinic.db, "
        "duckdb:///clinic.duckdb or postgresql://reader@host/clinic.",
    )
    url_from: Annotated[str, Text(_SECRET_WORDS, pattern=_SECRET)] | None = Field(
        default=None,
        description="Where the URL of a database with its password is found: the name of an environment "
        "variable, or secret/NAME for a Secret block of Prefect.",
    )
    query: Annotated[str, Query()] | None = Field(
        default=None,
        description="One SELECT, whose rows are the table. With url or url_from. Each of its rows must "
        "follow from one row of one table, and no cell may make it fail.",
    )
    row_by_row: Annotated[bool, Flag()] = Field(
        default=False,
        description="true states, of a query that can't be seen to be so, that one unit moves no more of its "
        "rows than privacy.unit allows for, and that no cell makes it fail. Nothing checks it.",
    )

    @property
    def in_database(self) -> bool:
        return self.query is not None

    @property
    def chooses_rows(self) -> bool:
        """True if a row's cells may decide whether the query has it, and nobody has stated that they don't.

        A row that is exchanged may then come or go, which only add_remove hides.
        """
        return bool(self.query and re.search(r"(?i)\bwhere\b", self.query)) and not self.row_by_row

    def doubt(self, address: str) -> str | None:
        """The reason why the query needs a statement of ``row_by_row``; None if it has or needs none.

        Args:
            address: the URL of its database; "" where it isn't known yet.
        """
        found = None if self.query is None or self.row_by_row else doubt_of(self.query, dialect_of(address))
        if found is None:
            return None
        return (
            f"{found}. Each row of the query must follow from one row of one table, and no cell may make it "
            "fail: otherwise one person may move many rows, or decide how a run ends. Leave that out. Or, if "
            "you know that one unit of privacy.unit moves no more rows of the query than the unit allows, "
            "and that no cell makes it fail, state so with source.row_by_row: true"
        )

    def model_post_init(self, context: object, /) -> None:
        if self.elsewhere:
            return
        given = [key for key in ("path", "url", "url_from") if getattr(self, key) is not None]
        if not given:
            if self.query is not None:
                raise refused("is missing: say where the database of source.query is, or use url_from", "url")
            raise refused("is missing: give the path of a .csv, .parquet or .xlsx file", "path")
        if len(given) > 1:
            raise refused(f"is given beside {given[0]}: a table has one source. Keep one of them", given[1])
        if self.row_by_row and self.query is None:
            raise refused("is about source.query: remove it", "row_by_row")
        if given == ["path"]:
            if self.path is not None and is_url(self.path):
                _check_file_url(self.path)
            if self.query is not None:
                raise refused("is for a database: give url or url_from in place of path", "query")
            self.check_format()
            return
        if self.query is None:
            raise refused(f"is missing: {given[0]} needs the SELECT whose rows are the table", "query")
        for key in TableFile.model_fields:
            if key in self.model_fields_set and getattr(self, key) is not None:
                raise refused("is for files: remove it", key)
        if (doubt := self.doubt(self.url or "")) is not None:
            raise refused(doubt, "query")


class InMemory(Source):
    """The section of a configuration whose table is handed over in memory, in Python; no file says it."""

    in_memory: ClassVar[bool] = True
    elsewhere: ClassVar[bool] = True


class InTables(Source):
    """The section of a configuration whose tables each have a source of their own."""

    elsewhere: ClassVar[bool] = True


_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?(KB|MB|GB|TB)", re.IGNORECASE)
LEAST_MEMORY, USUAL_MEMORY = 10**6, 2 * 10**9


class Memory(Checked):
    """An amount of memory, in bytes."""

    def check(self, value: object) -> int:
        found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        size = int(Decimal(found[1]) * _UNITS[found[2].upper()]) if found else 0
        if size < LEAST_MEMORY:
            raise refused("must be an amount of memory of at least 1 MB, such as 500 MB or 2 GB")
        return size

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "pattern": "^[0-9]{1,6}([.][0-9]{1,3})? ?[kKmMgGtT][bB]$"}


class Engine(Section):
    """What counts the private table."""

    memory: Annotated[int, Memory()] = Field(
        default=USUAL_MEMORY,
        description="Most memory that the coded rows take, such as 500 MB or 2 GB; rows beyond it lie in a "
        "file without a name, in the release's private folder. With dask: in each worker. Left out: 2 GB.",
        json_schema_extra={"default": "2 GB"},
    )

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, values: object) -> object:
        for key in ("dask", "tls"):
            if isinstance(values, dict) and key in values and key not in cls.model_fields:
                raise refused("needs the wing cluster, which is not installed here", key)
        return values

    @property
    def by_workers(self) -> bool:
        return False

    @property
    def in_this_process(self) -> Engine:
        return Engine(memory=self.memory) if self.by_workers else self

    @property
    def named(self) -> str:
        return "this process"
