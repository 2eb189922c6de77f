"""The publication: rows, formats, statistics and views.

All of it is made from noisy answers; none of it costs any budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Protocol, get_args

from pydantic import Field

from dpsynth.columns.section import Checked, Choice, JsonSchema, Section, Text, Whole, refused, unrepeated
from dpsynth.columns.statistic_kinds import Statistic
from dpsynth.config.document import OfWing

Format = Literal["csv", "csv.gz", "csv.zst", "parquet"]

_USUAL: tuple[Format, ...] = ("csv", "parquet")


class NamesColumns(Protocol):
    """A declaration that names columns."""

    @property
    def named(self) -> Iterable[tuple[str, tuple[str | int, ...]]]:
        """Each column that is named, with its path below the declaration."""


class Publish(Section):
    """Contents of the bundle."""

    formats: tuple[Annotated[Format, Choice(get_args(Format))], ...] = Field(
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
    terms: Annotated[str, Text("the terms of use, on one line", longest=4000)] | None = Field(
        default=None,
        description="Terms of use for recipients. They stand in the first lines of the bundle, and dpsynth "
        "query and sample show them.",
    )
    suppress_below: Annotated[int, Whole(at_least="2", at_most="1000000000")] | None = Field(
        default=None,
        description="In views of the tables of counts, leave out counts from 1 to below this, and as many "
        "more as keep them from being computed from margins. It adds nothing to the guarantee.",
    )
    rounding: Annotated[object | None, OfWing("publish.rounding", optional=True)] = Field(
        default=None,
        description="In views of the tables of counts, round to a base: 5, or {base: 5, method: unbiased}. "
        "It adds nothing to the guarantee.",
    )
    k_anonymity: Annotated[NamesColumns | None, OfWing("publish.k_anonymity", optional=True)] = Field(
        default=None,
        description="A k-anonymous view of the synthetic table. It adds nothing to the guarantee.",
    )

    @property
    def views(self) -> bool:
        return not (self.suppress_below is None and self.rounding is None and self.k_anonymity is None)

    def model_post_init(self, context: object, /) -> None:
        unrepeated(self.formats, "formats")
        for i, statistic in enumerate(self.statistics):
            if statistic in self.statistics[:i]:
                raise refused("is listed twice", "statistics", i)


class Rows(Checked):
    """A number of rows, or "same"."""

    def check(self, value: object) -> int | str:
        if value == "same":
            return "same"
        return Whole(at_least="1", at_most="1000000000", advice="or the word same").check(value)

    def json_schema(self) -> JsonSchema:
        return {"anyOf": [{"const": "same"}, {"type": "integer", "minimum": 1, "maximum": 10**9}]}


class Sample(Section):
    """The synthetic rows."""

    rows: Annotated[Literal["same"] | int, Rows()] = Field(
        default="same", description="Number of rows; same: as many as the noisy count of the private table."
    )
    seed: Annotated[int, Whole(at_least="0", at_most=str(2**63 - 1))] | None = Field(
        default=None, description="Makes sampling from the model repeatable. It never reaches the noise."
    )
