"""Where a public table is that tells which values go together.

Invariant: says where to look, and opens nothing.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Self

from pydantic import Field, model_validator

from dpsynth.spec.publication import Format
from dpsynth.spec.scalars import Choice, Text
from dpsynth.spec.section import Section, refused
from dpsynth.spec.source import ENDINGS


class Public(Section):
    """A table that is public already: a sample of the same population, or an earlier synthetic table."""

    path: Annotated[str, Text("the path of a file", longest=4000)] = Field(
        description="A .csv or .parquet file with some or all of the columns, spelt as in the private table. "
        "Its rows must be public: what they say goes into the release as it is, and nothing protects them. "
        "Never the private table, nor a part of it."
    )
    format: Annotated[Format, Choice(("csv", "parquet"))] | None = Field(
        default=None, description="Left out: by the ending of path."
    )

    @classmethod
    def _written_out(cls, values: object) -> object:
        return {"path": values} if isinstance(values, str) else values

    @classmethod
    def _completed(cls, values: dict[str, object]) -> dict[str, object]:
        path = values.get("path")
        if values.get("format") is None and isinstance(path, str):
            values["format"] = ENDINGS.get(PurePath(path).suffix.lower())
        return values

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.format is None:
            raise refused("must end in .csv or .parquet; or say which it is with format: csv", "path")
        return self
