"""The source section: the file of the private table.

Invariant: the section names the file and its form, and never opens it. What is not declared has a fixed
meaning: a release infers nothing from the table.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from dpsynth.config.scalars import EMPTY, Checked, Choice, Flag, JsonSchema, Text
from dpsynth.config.section import Later, Section, refused
from dpsynth.files.encodings import USUAL, encoding_named
from dpsynth.files.form import COMPRESSIONS, KINDS, SEPARATORS, Compression, FileForm, Kind, named_form


class Separator(Checked):
    """The separator of cells in a CSV file."""

    def check(self, value: object) -> str:
        """The sign itself."""
        if value is None:
            raise refused(EMPTY)
        if isinstance(value, str) and value in (*SEPARATORS, *SEPARATORS.values()):
            return SEPARATORS.get(value, value)
        raise refused("must be ',', ';', '|' or tab")

    def json_schema(self) -> JsonSchema:
        """An enumeration."""
        return {"type": "string", "enum": list(SEPARATORS)}


class Encoding(Checked):
    """The encoding of a CSV file."""

    def check(self, value: object) -> str:
        """The encoding's name, as Python's codecs call it."""
        if value is None:
            raise refused(EMPTY)
        found = encoding_named(value) if isinstance(value, str) else None
        if found is None:
            raise refused(
                f"must be {', '.join(USUAL)} or another encoding that docs/reading.md lists; save a file "
                "of any other encoding as UTF-8"
            )
        return found

    def json_schema(self) -> JsonSchema:
        """A string, as encodings have many spellings."""
        return {"type": "string", "examples": list(USUAL)}


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

    @classmethod
    def _completed(cls, values: dict[str, object]) -> dict[str, object]:
        path = values.get("path")
        if isinstance(path, str):
            kind, compression, separator = named_form(path)
            if values.get("format") is None:
                values["format"] = kind
            if values["format"] == "csv":
                if values.get("compression") is None:
                    values["compression"] = compression
                if separator != ",":
                    values.setdefault("separator", separator)
        return values

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
        if self.format != "xlsx" and self.sheet is not None:
            raise refused("is for .xlsx files: remove it", "sheet")

    @property
    def form(self) -> FileForm:
        """The form of the file.

        Raises:
            ValueError: the format isn't known.
        """
        if self.format is None:
            raise ValueError("a file of no format")
        return FileForm(
            self.format, self.separator, self.encoding, self.compression, self.multiline, self.sheet
        )


class Source(TableFile):
    """The file of the private table."""

    in_memory: ClassVar[bool] = False
    """True if there is no file, and the table is handed over in Python."""

    path: Annotated[str, Text("the path of a file", longest=4000)] | None = Field(
        default=None,
        description="A .csv, .tsv, .parquet or .xlsx file; a relative path starts at the working directory.",
    )
    url: Later[Annotated[str, Text("the address of a database", longest=4000)]] = Field(
        default=None, description="Not yet supported. Database that holds the table."
    )
    query: Later[Annotated[str, Text("a query", longest=100_000)]] = Field(
        default=None, description="Not yet supported. The query whose rows are the table."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.in_memory:
            return self
        if self.path is None:
            raise refused("is missing: give the path of a .csv, .parquet or .xlsx file", "path")
        self.check_format()
        return self


class InMemory(Source):
    """The section of a configuration whose table is handed over in memory, in Python; no file says it."""

    in_memory: ClassVar[bool] = True
