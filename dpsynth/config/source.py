"""The source section: the file of the private table.

Invariant: the section names the file and never opens it.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from dpsynth.config.publication import Format
from dpsynth.config.scalars import EMPTY, Checked, Choice, JsonSchema, Text
from dpsynth.config.section import Later, Section, refused

ENDINGS: dict[str, Format] = {".csv": "csv", ".parquet": "parquet"}
SEPARATORS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
"""Separators of cells, by their names in a configuration."""


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


class TableFile(Section):
    """A table in a file; by default the ending of the file's name gives its format."""

    format: Annotated[Format, Choice(("csv", "parquet"))] | None = Field(
        default=None, description="Left out: by the ending of path."
    )
    separator: Annotated[str, Separator()] = Field(
        default=",", description="Separator of the cells of a .csv file."
    )

    @classmethod
    def _completed(cls, values: dict[str, object]) -> dict[str, object]:
        path = values.get("path")
        if values.get("format") is None and isinstance(path, str):
            values["format"] = ENDINGS.get(PurePath(path).suffix.lower())
        return values

    def check_format(self) -> None:
        """Refuse a file of unknown format, and a separator for a file without separators."""
        if self.format is None:
            raise refused("must end in .csv or .parquet; or say which it is with format: csv", "path")
        if self.format == "parquet" and "separator" in self.model_fields_set:
            raise refused("is for .csv files: remove it", "separator")


class Source(TableFile):
    """The file of the private table."""

    in_memory: ClassVar[bool] = False
    """True if there is no file, and the table is handed over in Python."""

    path: Annotated[str, Text("the path of a file", longest=4000)] | None = Field(
        default=None, description="A .csv or .parquet file; a relative path starts at the working directory."
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
            raise refused("is missing: give the path of a .csv or .parquet file", "path")
        self.check_format()
        return self


class InMemory(Source):
    """The section of a configuration whose table is handed over in memory, in Python; no file says it."""

    in_memory: ClassVar[bool] = True
