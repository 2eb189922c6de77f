"""The structure section: the method that chooses the marginals to measure, and their workload.

The registry of methods has one line each, from which the checks on loading, the error messages, the JSON
Schema and the registry of strategies are made. The algorithm of a method is in the file of the same name in
``dpsynth.strategy``.

Invariant: a key that the method doesn't use is refused, so no key is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from dpsynth.columns.section import Choice, ColumnName, Number, Section, Whole, refused, unrepeated
from dpsynth.columns.workload import TARGET_WEIGHT, Workload


@dataclass(frozen=True)
class Method:
    """A structure method: the facts that the configuration and a plan need.

    Attributes:
        name: the word in the config, and the name of the file in ``dpsynth.strategy``.
        does: the rest of a sentence that begins with the name, such as "measures a tree of pairs".
        chooses: True if the structure step asks questions: private choices or noisy distances.
        measures: True if the marginals step asks questions: columns are measured together.
        lists_cliques: True if the method needs ``structure.cliques``; all other methods refuse that key.
    """

    name: str
    does: str
    chooses: bool = True
    measures: bool = True
    lists_cliques: bool = False


_LISTED = (
    Method("independent", "measures single columns only", chooses=False, measures=False),
    Method("mst", "measures a tree of pairs"),
    Method("privbayes", "measures the families of a Bayesian network"),
    Method("aim", "measures cliques one by one"),
    Method("one_shot", "measures a tree of cliques at once"),
    Method("fixed", "measures the cliques that the config lists", chooses=False, lists_cliques=True),
    Method("auto", "measures what serves most tables best"),
)

METHODS: Mapping[str, Method] = {method.name: method for method in _LISTED}
"""Methods by name, in the order in which messages list them."""

MAX_WAYS = 6
"""Largest number of columns of a marginal in a workload."""

_Weight = Annotated[Decimal, Number(at_least="1e-6", at_most="1e6")]

Names = tuple[ColumnName, ...]

Path = tuple[str | int, ...]


def _two_or_more(names: Names, *path: str | int) -> None:
    if len(names) < 2:
        raise refused("must list at least two columns; single columns are always measured", *path)
    unrepeated(names, *path)


class ListedMarginal(Section):
    """A marginal of the workload."""

    columns: Names = Field(
        description=f"Two to {MAX_WAYS} columns; single columns are always measured.", max_length=MAX_WAYS
    )
    weight: _Weight = Field(default=Decimal(1), description="Weight of its error.")

    def model_post_init(self, context: object, /) -> None:
        _two_or_more(self.columns, "columns")


class WorkloadSpec(Section):
    """The workload: marginals that should be accurate, with weights."""

    ways: Annotated[int, Whole(at_least="2", at_most=str(MAX_WAYS))] | None = Field(
        default=None,
        description="All marginals of so many columns. Left out: 3, or as many as there are; with "
        "marginals, those only.",
    )
    marginals: tuple[ListedMarginal, ...] = Field(
        default=(), description="Marginals that matter besides those of ways, or alone without ways."
    )
    weights: dict[ColumnName, _Weight] = Field(
        default={},
        description="Importance of columns, 1 where left out: a marginal counts the product of its columns'.",
    )
    targets: Names = Field(
        default=(),
        description="Columns to be predicted from others: a marginal that holds one counts target_weight "
        "times.",
    )
    target_weight: Annotated[Decimal, Number(at_least="1", at_most="1e6")] = Field(
        default=Decimal(TARGET_WEIGHT), description="Factor of the weight of a marginal with a target."
    )

    def model_post_init(self, context: object, /) -> None:
        unrepeated((frozenset(m.columns) for m in self.marginals), "marginals")
        unrepeated(self.targets, "targets")
        if "target_weight" in self.model_fields_set and not self.targets:
            raise refused("has no use without targets; name the columns to be predicted", "target_weight")


class Structure(Section):
    """The choice of the marginals to measure."""

    method: Annotated[str, Choice(tuple(METHODS))] = Field(
        default="auto", description=" ".join(f"{m.name} {m.does}." for m in METHODS.values())
    )
    workload: WorkloadSpec | None = Field(
        default=None, description="Marginals that matter most. Left out: all of three columns, equally."
    )
    cliques: tuple[Names, ...] | None = Field(
        default=None,
        description="For fixed: the lists of two columns or more to measure, such as [[age, sex]].",
        min_length=1,
    )
    max_model_mb: Annotated[Decimal, Number(at_least="0.001", at_most="1e6")] | None = Field(
        default=None, description="Largest model in megabytes, 8 bytes a cell. Left out: the method's own."
    )
    max_seconds: Annotated[Decimal, Number(at_least="1", at_most="1e6")] | None = Field(
        default=None,
        description="About how long fitting may take: keeps the model small. A hint, not a deadline.",
    )
    merge_rare: Annotated[Decimal, Number(at_least="0", at_most="1000")] = Field(
        default=Decimal(3),
        description="Values of a column are merged while choosing and fitting if their noisy count is below "
        "so many standard deviations of the noise planned for a cell of a marginal. 0: never.",
    )

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, values: object) -> object:
        return {"method": values} if isinstance(values, str) else values

    def model_post_init(self, context: object, /) -> None:
        method = METHODS[self.method]
        if self.cliques is not None and not method.lists_cliques:
            listing = ", ".join(m.name for m in METHODS.values() if m.lists_cliques)
            raise refused(f"are for method: {listing} only; remove them, or use it", "cliques")
        if self.cliques is None and method.lists_cliques:
            words = f"are missing: method {self.method} needs them, such as [[age, sex], [sex, income]]"
            raise refused(words, "cliques")
        for i, clique in enumerate(self.cliques or ()):
            _two_or_more(clique, "cliques", i)
        unrepeated((frozenset(c) for c in self.cliques or ()), "cliques")
        if self.workload is not None and not method.measures:
            raise refused(f"has no use with method {method.name}, which {method.does}", "workload")

    def workload_over(self, columns: tuple[str, ...]) -> Workload:
        """The workload over these columns; by default all marginals of three columns."""
        asked = self.workload
        if asked is None:
            return Workload(columns)
        return Workload(
            columns,
            asked.ways,
            tuple((m.columns, m.weight) for m in asked.marginals),
            tuple(asked.weights.items()),
            asked.targets,
            asked.target_weight,
        )

    def named(self) -> Iterator[tuple[str, Path]]:
        for i, clique in enumerate(self.cliques or ()):
            for j, name in enumerate(clique):
                yield name, ("cliques", i, j)
        if self.workload is None:
            return
        for i, marginal in enumerate(self.workload.marginals):
            for j, name in enumerate(marginal.columns):
                yield name, ("workload", "marginals", i, "columns", j)
        for name in self.workload.weights:
            yield name, ("workload", "weights", name)
        for i, name in enumerate(self.workload.targets):
            yield name, ("workload", "targets", i)
