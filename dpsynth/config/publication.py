"""The publication: rows, formats, statistics and views.

All of it is made from noisy answers; none of it costs any budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from dpsynth.config.scalars import Checked, Choice, ColumnName, JsonSchema, Text, Whole
from dpsynth.config.section import Later, Section, nearest, not_yet, refused, unrepeated

Format = Literal["csv", "parquet"]
_FORMATS: tuple[Format, ...] = ("csv", "parquet")


class Crosstab(Section):
    """Counts over the combinations of some columns."""

    crosstab: tuple[ColumnName, ...] = Field(description="One to four columns.", min_length=1, max_length=4)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        unrepeated(self.crosstab, "crosstab")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the statistic."""
        return self.crosstab


class Mean(Section):
    """The mean of a numeric column, in all rows or by group."""

    mean: ColumnName = Field(description="A column of integers, numbers, booleans or integer categories.")
    by: ColumnName | None = Field(
        default=None, description="Column of the groups. Left out: the mean over all rows."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.by == self.mean:
            raise refused("must be another column than the one averaged", "by")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the statistic."""
        return (self.mean,) if self.by is None else (self.mean, self.by)


class FittedModel(Section):
    """A statistical model fitted to the release. Not yet supported."""

    model: Annotated[str, Text("the name of a model")] = Field(description="Such as logistic_regression.")
    target: ColumnName = Field(description="The column to explain.")

    @model_validator(mode="after")
    def _later(self) -> Self:
        raise not_yet(f"model: {self.model}", "crosstab, mean")


_FORMS = {"crosstab": Crosstab, "mean": Mean, "model": FittedModel}


def _with_form(value: object) -> object:
    if isinstance(value, Crosstab | Mean | FittedModel):
        return value
    if not isinstance(value, dict):
        raise refused("must be a mapping such as {crosstab: [age, sex]} or {mean: income, by: city}")
    if not any(key in value for key in _FORMS):
        guess = next((g for key in value if (g := nearest(key, tuple(_FORMS)))), "")
        raise refused(f"must have the key crosstab or mean{guess}")
    return value


def _form(value: object) -> str:
    return "@" + next(key for key, form in _FORMS.items() if isinstance(value, form) or _has(value, key))


def _has(value: object, key: str) -> bool:
    return isinstance(value, dict) and key in value


if TYPE_CHECKING:  # a FittedModel is refused, so none is ever kept
    Statistic = Crosstab | Mean
else:
    Statistic = Annotated[
        Annotated[Crosstab, Tag("@crosstab")]
        | Annotated[Mean, Tag("@mean")]
        | Annotated[FittedModel, Tag("@model")],
        Discriminator(_form),
        BeforeValidator(_with_form),
    ]
"""One table of statistics."""


class KAnonymity(Section):
    """A view of the release in which each combination of some columns occurs k times."""

    k: Annotated[int, Whole(at_least="2", at_most="1000000")] = Field(description="Fewest equal rows.")
    quasi_identifiers: tuple[ColumnName, ...] = Field(description="The columns.", min_length=1)


class Publish(Section):
    """Contents of the bundle."""

    formats: tuple[Annotated[Format, Choice(_FORMATS)], ...] = Field(
        default=_FORMATS, description="Formats of the synthetic table.", min_length=1
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
