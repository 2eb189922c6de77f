"""Kinds of statistics that a configuration may ask for, each a declaration under a word of its own.

All of them are computed from noisy answers and cost nothing, but for a mean or a sum that is measured by a
noisy sum (``dpsynth.plan.questions``). ``dpsynth.statistics.computations`` has the computation of each kind.

Invariant: a declaration names public facts only; ``cliques`` are the columns that it counts together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError

from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import parse, references
from dpsynth.columns.section import (
    Checked,
    Choice,
    ColumnName,
    JsonSchema,
    Number,
    Section,
    Text,
    by_word,
    json_values,
    refused,
    unrepeated,
)
from dpsynth.errors import ConfigError

MOST_GROUPED = 3
"""Most columns of the groups."""


@dataclass(frozen=True)
class Groups(Checked):
    """One column, or several."""

    def check(self, value: object) -> Clique:
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not 1 <= len(names) <= MOST_GROUPED:
            raise refused(f"must be a column, or a list of at most {MOST_GROUPED} columns")
        for i, name in enumerate(names):
            if not isinstance(name, str) or not name:
                raise refused("must be the name of a column", i)
        return tuple(names)

    def json_schema(self) -> JsonSchema:
        several = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_GROUPED}
        return {"anyOf": [{"type": "string"}, several]}


@dataclass(frozen=True)
class Shares(Checked):
    """Shares of rows, rising."""

    def check(self, value: object) -> tuple[Decimal, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise refused("must be a list of shares between 0 and 1, such as [0.25, 0.5, 0.75]")
        share = Number(above="0", below="1")
        found = tuple(Decimal(share.check(item)) for item in value)
        if list(found) != sorted(set(found)):
            raise refused("must rise, such as [0.25, 0.5, 0.75]")
        return found

    def json_schema(self) -> JsonSchema:
        items = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
        return {"type": "array", "items": items, "minItems": 1}


class Asked(Section):
    """A kind of statistic: what all of them have.

    Attributes:
        kind: its word, which is its key in the configuration.
    """

    kind: ClassVar[str]

    @property
    def columns(self) -> Clique:
        """The columns of the statistic; those that stand under its word, if nothing else is said."""
        return getattr(self, self.kind)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The columns that are counted together, in the order of the axes."""
        return (self.columns,)

    @property
    def numbers(self) -> Clique:
        """Columns whose values must be numbers."""
        return ()

    @property
    def groups(self) -> Clique:
        return ()

    @property
    def condition(self) -> str | None:
        """The rule that the rows counted obey; None for all rows."""
        return None

    @property
    def stated(self) -> dict[str, object] | None:
        """The request as JSON values; None where the kind and the columns say it all."""
        found = self.model_dump(exclude_defaults=True)
        return {key: json_values(value) for key, value in found.items()}


class _Listed(Asked):
    def model_post_init(self, context: object, /) -> None:
        unrepeated(self.columns, self.kind)


class Crosstab(_Listed):
    """Counts over the combinations of some columns."""

    kind = "crosstab"
    crosstab: tuple[ColumnName, ...] = Field(description="One to four columns.", min_length=1, max_length=4)

    @property
    def stated(self) -> None:
        return


_BY = "Column of the groups, or a list of up to three. Left out: all rows."
_WHERE = "A rule that the rows obey, such as age >= 65 and sex == 'F'. Left out: all rows."
_Where = Annotated[str, Text("a rule about columns, such as age >= 65", longest=1000)]


class Grouped(Asked):
    """A statistic of the rows of each group, perhaps of those that obey a rule."""

    by: Annotated[Clique, Groups()] = Field(default=(), description=_BY)
    where: _Where | None = Field(default=None, description=_WHERE)

    @property
    @abstractmethod
    def of(self) -> str | None:
        """The column of numbers; None for rows."""

    def model_post_init(self, context: object, /) -> None:
        unrepeated(self.by, "by")
        if self.of in self.by:
            raise refused("must be another column than the one whose numbers are used", "by")

    @property
    def columns(self) -> Clique:
        """The groups' columns, those that the rule alone names, then the column of numbers."""
        between = [] if self.where is None else [name for name in _named(self.where) if name != self.of]
        return tuple(dict.fromkeys([*self.by, *between, *self.numbers]))

    @property
    def numbers(self) -> Clique:
        return () if self.of is None else (self.of,)

    @property
    def groups(self) -> Clique:
        return self.by

    @property
    def condition(self) -> str | None:
        return self.where


def _named(text: str) -> list[str]:
    try:
        return list(dict.fromkeys(references(parse(text))))
    except ValueError as error:
        raise refused(f"'{text}' {error}", "where") from None


class Count(Grouped):
    """The number of rows, of those that obey a rule."""

    kind = "count"
    count: Annotated[Literal["rows"], Choice(("rows",))] = Field(description="rows.")

    @property
    def of(self) -> None:
        return None

    def model_post_init(self, context: object, /) -> None:
        super().model_post_init(context)
        if not self.columns:
            raise refused("needs where or by: the number of all rows is in every release", "count")


class _OfNumbers(Grouped):
    """A statistic of the column of numbers that stands under its word."""

    @property
    def of(self) -> str:
        return getattr(self, self.kind)


_NUMBERS = "A column of integers, numbers, booleans or integer categories."


class Mean(_OfNumbers):
    """The mean of a column of numbers."""

    kind = "mean"
    mean: ColumnName = Field(description=_NUMBERS)

    @property
    def stated(self) -> dict[str, object] | None:
        """None for a mean of all rows by one column at most."""
        return None if self.where is None and len(self.by) <= 1 else super().stated


class Sum(_OfNumbers):
    """The sum of a column of numbers."""

    kind = "sum"
    sum: ColumnName = Field(description=_NUMBERS)


class Variance(_OfNumbers):
    """The variance of a column of numbers, and its root, the standard deviation."""

    kind = "variance"
    variance: ColumnName = Field(description=_NUMBERS)


class Quantiles(_OfNumbers):
    """Quantiles of a column of numbers."""

    kind = "quantiles"
    quantiles: ColumnName = Field(description="A column of integers, numbers or integer categories.")
    at: Annotated[tuple[Decimal, ...], Shares()] = Field(
        default=(Decimal("0.25"), Decimal("0.5"), Decimal("0.75")),
        description="Shares of the rows below each quantile. Left out: [0.25, 0.5, 0.75].",
    )


class _Matrix(_Listed):
    """A number for each pair of some columns."""

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return tuple(combinations(self.columns, 2))


class Correlation(_Matrix):
    """Correlations of columns of numbers."""

    kind = "correlation"
    correlation: tuple[ColumnName, ...] = Field(description="Two columns of numbers, or more.", min_length=2)

    @property
    def numbers(self) -> Clique:
        return self.correlation


class Association(_Matrix):
    """Associations of columns of any kind, by Cramer's V."""

    kind = "association"
    association: tuple[ColumnName, ...] = Field(description="Two columns, or more.", min_length=2)


class Model(Asked):
    """A regression of one column on others."""

    kind = "model"
    model: Annotated[Literal["linear", "logistic"], Choice(("linear", "logistic"))] = Field(
        description="linear: of a column of numbers. logistic: of a column of two or more values; its "
        "coefficients are a classifier."
    )
    target: ColumnName = Field(description="The column to explain.")
    on: tuple[ColumnName, ...] = Field(description="The columns that explain it.", min_length=1)

    def model_post_init(self, context: object, /) -> None:
        unrepeated(self.on, "on")
        if self.target in self.on:
            raise refused("must not hold the target", "on")

    @property
    def columns(self) -> Clique:
        """The columns that explain, then the target."""
        return (*self.on, self.target)

    @property
    def numbers(self) -> Clique:
        return (self.target,) if self.model == "linear" else ()


KINDS: Mapping[str, type[Asked]] = {
    kind.kind: kind
    for kind in (Crosstab, Count, Mean, Sum, Variance, Quantiles, Correlation, Association, Model)
}
"""All kinds by their words."""


if TYPE_CHECKING:
    Statistic = Crosstab | Count | Mean | Sum | Variance | Quantiles | Correlation | Association | Model
else:
    Statistic = by_word(KINDS, "{crosstab: [age, sex]} or {mean: income, by: city}")
"""One table of statistics."""


def request_of(asked: object) -> Asked:
    """The request in the JSON values of a manifest.

    Raises:
        ConfigError: there is no such request.
    """
    try:
        return TypeAdapter[Asked](Statistic).validate_python(asked)
    except ValidationError:
        raise ConfigError("a statistic is asked for in a way that nobody can read.") from None
