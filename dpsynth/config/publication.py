"""The publication: rows, formats, statistics and views.

All of it is made from noisy answers; none of it costs any budget.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dpsynth.config.scalars import Checked, Choice, ColumnName, JsonSchema, Text, Whole
from dpsynth.config.section import Later, Section, refused, unrepeated
from dpsynth.config.statistic_kinds import Statistic

Format = Literal["csv", "csv.gz", "csv.zst", "parquet"]
_FORMATS: tuple[Format, ...] = ("csv", "csv.gz", "csv.zst", "parquet")
_USUAL: tuple[Format, ...] = ("csv", "parquet")


class KAnonymity(Section):
    """A view of the release in which each combination of some columns occurs k times."""

    k: Annotated[int, Whole(at_least="2", at_most="1000000")] = Field(description="Fewest equal rows.")
    quasi_identifiers: tuple[ColumnName, ...] = Field(description="The columns.", min_length=1)


class Publish(Section):
    """Contents of the bundle."""

    formats: tuple[Annotated[Format, Choice(_FORMATS)], ...] = Field(
        default=_USUAL,
        description="Formats of the synthetic table; csv.gz is compressed with gzip, csv.zst with Zstandard.",
        min_length=1,
    )
    rows_a_file: Annotated[int, Whole(at_least="1", at_most="1000000000")] | None = Field(
        default=None,
        description="Rows of each Parquet file; synthetic.parquet is then a folder of such files, which "
        "programs read as one table. Left out: one file.",
    )
    statistics: tuple[Statistic, ...] = Field(
        default=(), description="Tables of statistics with standard errors."
    )
    minimum_set_size: Annotated[int, Whole(at_least="2", at_most="1000000000")] | None = Field(
        default=None,
        description="Fewest estimated rows that an answer of dpsynth query rests on; others are withheld. A "
        "rule of courtesy, not of privacy: the noise protects persons, and all files can be computed on.",
    )
    sign: Annotated[str, Text("the path of a file", longest=4000)] | None = Field(
        default=None,
        description="File of the key that signs the bundle, made by dpsynth keygen. Left out: that of the "
        "environment variable DPSYNTH_SIGNING_KEY, if there is one.",
    )
    suppress_below: Later[Annotated[int, Whole(at_least="1", at_most="1000000000")]] = Field(
        default=None, description="Not yet supported. Leave out estimated counts below this."
    )
    k_anonymity: Later[KAnonymity] = Field(default=None, description="Not yet supported. A k-anonymous view.")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        unrepeated(self.formats, "formats")
        for i, statistic in enumerate(self.statistics):
            if statistic in self.statistics[:i]:
                raise refused("is listed twice", "statistics", i)
        return self


class Rows(Checked):
    """A number of rows, or "same"."""

    def check(self, value: object) -> int | str:
        """The number or the word."""
        if value == "same":
            return "same"
        return Whole(at_least="1", at_most="1000000000", advice="or the word same").check(value)

    def json_schema(self) -> JsonSchema:
        """The word or an integer."""
        return {"anyOf": [{"const": "same"}, {"type": "integer", "minimum": 1, "maximum": 10**9}]}


class Sample(Section):
    """The synthetic rows."""

    rows: Annotated[Literal["same"] | int, Rows()] = Field(
        default="same", description="Number of rows; same: as many as the noisy count of the private table."
    )
    seed: Annotated[int, Whole(at_least="0", at_most=str(2**63 - 1))] | None = Field(
        default=None, description="Makes sampling from the model repeatable. It never reaches the noise."
    )
