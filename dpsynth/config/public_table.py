"""The section of a public table, which gives evidence of the relations between columns.

Invariant: the section names the file and never opens it.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from dpsynth.config.scalars import Text
from dpsynth.config.source import TableFile


class PublicTableSpec(TableFile):
    """A table that is public already: a sample of the same population, or an earlier synthetic table."""

    path: Annotated[str, Text("the path of a file", longest=4000)] = Field(
        description="A .csv, .parquet or .xlsx file with some or all of the columns, spelt as in the private "
        "table. Its rows must be public: what they say goes into the release as it is, and nothing "
        "protects them. Never the private table, nor a part of it."
    )

    @classmethod
    def _written_out(cls, values: object) -> object:
        return {"path": values} if isinstance(values, str) else values

    @model_validator(mode="after")
    def _sound(self) -> Self:
        self.check_format()
        return self
