"""The section accept: what a finished release must be like, declared before anything is read.

Invariant: a declaration is public, and what it needs is checked before anything is charged. The sets of
columns that it names are examined with all others, by one question of the exam.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError

from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.finished_table import Classifier, FinishedTable
from dpsynth.columns.section import (
    Checked,
    Choice,
    ColumnName,
    JsonSchema,
    Number,
    Section,
    by_word,
    json_values,
    refused,
    unrepeated,
)
from dpsynth.columns.statistic_kinds import Statistic
from dpsynth.config import Spec
from dpsynth.errors import ConfigError, nearest
from dpsynth.figures import listed
from dpsynth.plan.plan import MOST_CELLS
from dpsynth.statistics.cut_off import percent

PAIRS = "pairs"
SCORES = ("accuracy", "balanced_accuracy")
MOST_CRITERIA = 50
MOST_CLASSIFIERS = 5
"""Largest number of classifiers: together they take half of the exam's budget."""
MOST_CLASSES = 50
"""Largest number of values of a column that is guessed."""

_Share = Annotated[Decimal, Number(at_least="0", at_most="1")]


class Examined(Checked):
    """The word pairs, a column, or a list of columns."""

    def check(self, value: object) -> str | Clique:
        if value == PAIRS:
            return PAIRS
        names = (value,) if isinstance(value, str) else value
        words = "must be the word pairs, a column, or a list of columns such as [age, income]"
        if not isinstance(names, list | tuple) or not names:
            raise refused(words)
        for name in names:
            if not isinstance(name, str) or not name:
                raise refused(words)
        return tuple(names)

    def json_schema(self) -> JsonSchema:
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}


class Criterion(Section):
    """A criterion: what all kinds have.

    Attributes:
        kind: its word, which is its key in the configuration.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def words(self) -> str:
        """The criterion as a sentence."""

    @property
    def columns(self) -> Clique:
        """The columns that it names."""
        return ()

    @property
    def stated(self) -> dict[str, object]:
        """The criterion as JSON values."""
        return {key: json_values(value) for key, value in self.model_dump(exclude_defaults=True).items()}

    def check(self, spec: Spec, columns: Mapping[str, Column], *place: str | int) -> None:
        """Refuse what the configuration can't give.

        Args:
            columns: the columns that are read and modelled.
            place: the path of the criterion in the configuration.
        """
        for name in self.columns:
            if name not in columns:
                guess = nearest(name, columns)
                raise refused(f"names '{name}', which is no column that is counted{guess}", *place, self.kind)
        unrepeated(self.columns, *place, self.kind)
        if prod(columns[name].size for name in self.columns) > MOST_CELLS:
            words = f"names columns of more than {MOST_CELLS:,} combinations of values; name fewer"
            raise refused(words, *place, self.kind)


class Asked(Criterion):
    """A criterion that the exam asks the private table about."""

    confidence: Annotated[Decimal, Number(at_least="0.5", below="1")] = Field(
        default=Decimal("0.95"),
        description="How sure the release has to be to say met, or not met. One less it is the largest "
        "probability that the noise makes such a word false.",
    )

    def check(self, spec: Spec, columns: Mapping[str, Column], *place: str | int) -> None:
        super().check(spec, columns, *place)
        if spec.privacy.exam == 0:
            words = "needs the exam, which asks the private table: privacy.split.exam must not be 0"
            if spec.privacy.sample_rate is not None:
                words = "needs the exam, which there is not with privacy.sample_rate"
            raise refused(f"{words}; or ask by in_use or unique_in", *place, self.kind)
        if len(columns) == 1:
            raise refused("needs the exam, which a table of one column has not", *place, self.kind)


class ErrorOf(Asked):
    """The error of the finished table in some columns, by the exam."""

    kind = "error_of"
    error_of: Annotated[Literal["pairs"] | Clique, Examined()] = Field(
        description="pairs: the mean error of all pairs that are examined. A column, or a list of columns: "
        "the share of the rows that would have to change to make their counts those of the private table."
    )
    at_most: _Share = Field(description="Largest error, a share of the rows.")

    @property
    def words(self) -> str:
        if self.error_of == PAIRS:
            return f"The mean error of all pairs is at most {percent(float(self.at_most))} of the rows."
        about = f"{listed(self.columns)}{' together' if len(self.columns) > 1 else ''}"
        return f"At most {percent(float(self.at_most))} of the rows are off in {about}."

    @property
    def columns(self) -> Clique:
        return () if self.error_of == PAIRS else tuple(self.error_of)


class RightGuesses(Asked):
    """The score among private rows of a classifier that is trained on the synthetic rows."""

    kind = "classifier"
    classifier: ColumnName = Field(description="The column that is guessed from all others.")
    score: Annotated[Literal["accuracy", "balanced_accuracy"], Choice(SCORES)] = Field(
        default="accuracy",
        description="accuracy: the share of the rows that are guessed right. balanced_accuracy: that share "
        "for each value of the column by itself, and then their mean.",
    )
    at_least: _Share = Field(description="Least score.")

    @property
    def words(self) -> str:
        least, name = percent(float(self.at_least)), self.classifier
        rows = f"rows of each value of {name}, on average" if self.aim == "balanced accuracy" else "rows"
        return (
            f"A classifier of {name} that is trained on the synthetic rows is right for at least {least} of "
            f"the private {rows}."
        )

    @property
    def aim(self) -> str:
        """The score in words."""
        return self.score.replace("_", " ")

    @property
    def columns(self) -> Clique:
        return (self.classifier,)

    def check(self, spec: Spec, columns: Mapping[str, Column], *place: str | int) -> None:
        super().check(spec, columns, *place)
        if not 2 <= columns[self.classifier].size <= MOST_CLASSES:
            words = f"names a column that has not from two to {MOST_CLASSES} values"
            raise refused(words, *place, self.kind)


class InUse(Criterion):
    """The share of columns or pairs whose verdict is use."""

    kind = "in_use"
    in_use: Annotated[Literal["columns", "pairs"], Choice(("columns", "pairs"))] = Field(
        description="columns, or pairs of columns."
    )
    at_least: _Share = Field(description="Least share of them whose verdict is use.")

    @property
    def words(self) -> str:
        return f"The verdict is use for at least {percent(float(self.at_least))} of the {self.in_use}."


class Within(Criterion):
    """The reach of the intervals of a published table of statistics."""

    kind = "statistic"
    statistic: Statistic = Field(
        description="A table that stands under publish.statistics, such as {mean: income, by: city}."
    )
    within: Annotated[Decimal, Number(above="0", at_most="10")] = Field(
        description="The 95 % limits of each of its figures lie within this share of the figure."
    )

    @property
    def words(self) -> str:
        asked = self.statistic
        groups = f" by {listed(asked.groups)}" if asked.groups else ""
        about = f"the {asked.kind} of {listed(asked.numbers or asked.columns)}{groups}"
        return f"Each figure of {about} is known to within {percent(float(self.within))} of it."

    def check(self, spec: Spec, columns: Mapping[str, Column], *place: str | int) -> None:
        if self.statistic not in spec.publish.statistics:
            words = "is not published: list the same table under publish.statistics"
            raise refused(words, *place, self.kind)
        if self.statistic.kind == "model":
            words = "is a classifier's table, which has no figure that a share could be of"
            raise refused(words, *place, self.kind)


class UniqueIn(Criterion):
    """Synthetic rows that are the only one with their values in some columns."""

    kind = "unique_in"
    unique_in: tuple[ColumnName, ...] = Field(
        description="Columns that might tell who somebody is; numbers and dates count by their bins.",
        min_length=1,
    )
    at_most: _Share = Field(description="Largest share of the synthetic rows that are alone with theirs.")

    @property
    def words(self) -> str:
        return (
            f"At most {percent(float(self.at_most))} of the synthetic rows are the only one with their "
            f"values in {listed(self.unique_in)}."
        )

    @property
    def columns(self) -> Clique:
        return self.unique_in


KINDS: Mapping[str, type[Criterion]] = {
    kind.kind: kind for kind in (ErrorOf, RightGuesses, InUse, Within, UniqueIn)
}


if TYPE_CHECKING:
    AnyCriterion = ErrorOf | RightGuesses | InUse | Within | UniqueIn
else:
    AnyCriterion = by_word(KINDS, "{error_of: pairs, at_most: 0.05}")
"""One criterion."""


class Accept(Section):
    """Criteria that the finished release is judged by, before it is shown."""

    criteria: tuple[AnyCriterion, ...] = Field(
        description="The criteria, each judged as met, not met, or not to be told at this ε.",
        min_length=1,
        max_length=MOST_CRITERIA,
    )
    on_fail: Annotated[Literal["stop", "publish"], Choice(("stop", "publish"))] = Field(
        default="stop",
        description="stop: a release of which not all criteria are met pauses before it is shown, for its "
        "owner to decide. publish: it is shown, and says which are not met.",
    )

    def model_post_init(self, context: object, /) -> None:
        for i, criterion in enumerate(self.criteria):
            if criterion in self.criteria[:i]:
                raise refused("is listed twice", "criteria", i)
        if len(self.targets) > MOST_CLASSIFIERS:
            words = f"asks about more than {MOST_CLASSIFIERS} classifiers, which would take more than half"
            raise refused(f"{words} of the exam's budget; name fewer columns or scores", "criteria")

    @property
    def sets(self) -> tuple[Clique, ...]:
        """The sets of columns whose errors the exam has to measure."""
        errors = (c.columns for c in self.criteria if isinstance(c, ErrorOf) and c.columns)
        return tuple(dict.fromkeys(errors))

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """The columns that classifiers have to guess, and what each is trained for."""
        guessed = (c for c in self.criteria if isinstance(c, RightGuesses))
        return tuple(dict.fromkeys((c.classifier, c.aim) for c in guessed))

    def classifiers(self, table: FinishedTable, columns: Sequence[Column]) -> Iterator[Classifier]:
        """Classifiers of the targets, trained on the rows of a finished table."""
        if self.targets:
            from dpsynth.wings.governance.acceptance.training import trained

            yield from (trained(table, columns, target, aim) for target, aim in self.targets)

    @property
    def stops(self) -> bool:
        return self.on_fail == "stop"

    @property
    def stated(self) -> tuple[dict[str, object], ...]:
        """The criteria as JSON values."""
        return tuple(criterion.stated for criterion in self.criteria)

    def check(self, spec: Spec, columns: Mapping[str, Column]) -> None:
        """Refuse what the configuration can't give; paths in errors start at its top."""
        for i, criterion in enumerate(self.criteria):
            criterion.check(spec, columns, "accept", "criteria", i)


_CRITERIA: TypeAdapter[tuple[AnyCriterion, ...]] = TypeAdapter(tuple[AnyCriterion, ...])


def criteria_in(stated: Sequence[Mapping[str, object]]) -> tuple[AnyCriterion, ...]:
    """The criteria in the JSON values of a manifest.

    Raises:
        ConfigError: there are no such criteria.
    """
    try:
        return _CRITERIA.validate_python(tuple(stated))
    except ValidationError:
        raise ConfigError("a criterion is stated in a way that nobody can read.") from None
