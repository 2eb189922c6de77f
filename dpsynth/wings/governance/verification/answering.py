"""The owner's answer to a recipient's question: a release of its own, of the columns that are named.

    question ──► configuration of the columns it names ──► plan, ledger, door, journal ──► bundle
                                                                                              │
    answer, signed  ◄── claims beside the limits ◄── the same question, answered by that bundle

Invariant: the private table is asked by an ordinary release alone, so it is charged, recorded, and refused,
as any other. What is answered follows from that release's bundle, which is as public as the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

import numpy as np
from pydantic import Field

from dpsynth.bundle.recipient.query import Question as Parsed
from dpsynth.bundle.recipient.query import question_in
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import references
from dpsynth.columns.layout import Layout
from dpsynth.columns.moment_parts import of_parts
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.section import Number, Section, Value, refused
from dpsynth.config import Spec, compiled
from dpsynth.errors import ConfigError
from dpsynth.statistics.grouped_counts import condition_of
from dpsynth.wings.governance.verification.regression import keys_of, regression_in

SUFFIX = "-questions"
"""The end of the name of releases that answer questions."""

_KEPT = ("source", "ledger", "period", "engine")
_OF_SUMS: dict[str, Value] = {"one_way": Decimal("0.05"), "statistics": Decimal("0.95")}


class Verification(Section):
    """The standing budget for questions of recipients."""

    epsilon: Annotated[Decimal, Number(above="0", at_most="100")] = Field(
        description="The largest sum of the ε of all answers. Each is charged to the ledger besides."
    )
    question: Annotated[Decimal, Number(above="0", at_most="10")] = Field(
        description="ε of one answer; its delta is privacy.delta."
    )

    def model_post_init(self, context: object, /) -> None:
        if self.question > self.epsilon:
            raise refused("must be at most verification.epsilon, the sum of all", "question")


def verification_of(spec: Spec) -> Verification:
    """The section of a configuration.

    Raises:
        ConfigError: there is none.
    """
    found = spec.verification
    if not isinstance(found, Verification):
        raise ConfigError(
            "The configuration has no section verification, so no question of a recipient is answered. Allow "
            "some, such as verification: {epsilon: 0.5, question: 0.05}."
        )
    if spec.tables is not None:
        raise ConfigError("Questions about linked tables aren't answered. Remove verification.")
    return found


def config_of(spec: Spec, values: Mapping[str, Value], text: str) -> dict[str, Value]:
    """The configuration of the release that answers a question, as plain values.

    Args:
        spec: the configuration of the release that the question is about.
        values: the same, as it is written.

    Raises:
        ConfigError: it allows no questions, or not this one.
        QuestionRefused: the question isn't about its columns.
    """
    allowed, layout = verification_of(spec), compiled(spec).layout
    declared, privacy = values["columns"], values["privacy"]
    assert isinstance(declared, dict) and isinstance(privacy, dict)
    unit, regression = privacy.get("unit", "row"), regression_in(text, layout)
    split: Value = {"exam": 0} if regression is None else _OF_SUMS
    own = _of_query(declared, text, layout) if regression is None else keys_of(regression[0], declared)
    return {
        **{key: values[key] for key in _KEPT if key in values},
        "release": f"{spec.release}{SUFFIX}",
        "privacy": {
            **{key: value for key, value in privacy.items() if key != "split"},
            "epsilon": allowed.question,
            # The same persons are protected, whether or not their rows follow each other.
            "unit": {k: v for k, v in unit.items() if k != "history"} if isinstance(unit, dict) else unit,
            **({} if spec.privacy.sample_rate is not None else {"split": split}),
            "on_empty": "go",
        },
        "structure": "independent",
        "sample": {"rows": 1},
        **own,
    }


def _of_query(declared: dict[str, Value], text: str, layout: Layout) -> dict[str, Value]:
    """The keys of the release that answers what ``dpsynth query`` would."""
    question = question_in(text, layout)
    named = _named(question, layout)
    unknown = next((name for name in named if name not in layout.modelled), None)
    if unknown is not None:
        words = f"The question names '{unknown}', which is computed from other columns. Name those."
        raise ConfigError(words)
    sources = {layout.modelled[name].source for name in named}
    together: Value = {"method": "fixed", "cliques": [list(named)], "merge_rare": 0}
    columns = {n: _in_few_bins(d, n, question, layout) for n, d in declared.items() if n in sources}
    return {
        "columns": columns,
        "structure": together if len(named) > 1 else "independent",
        "publish": {"statistics": _statistics(question), "formats": ["csv"]},
    }


def _in_few_bins(declared: Value, name: str, question: Parsed, layout: Layout) -> Value:
    """The declaration of a column; of numbers that only conditions name, in bins between which these change.

    Each cell that is counted has noise, so a condition is counted in as few of them as it tells apart.
    """
    column = layout.modelled.get(name)
    if name in (*question.by, *question.of) or column is None or not isinstance(declared, dict):
        return declared
    conditions = [condition_of(formula, layout) for formula in (question.where, question.part)]
    if not isinstance(column.codec, NumericCodec) or any(name in found.cut for found in conditions):
        return declared
    masks = [found.masks[name] for found in conditions if name in found.masks]
    if not masks or any(name in factor.columns for found in conditions for factor in found.factors):
        return declared
    cells = np.stack(masks)[:, : len(column.codec.edges) - 1]
    starts = [0, *(np.flatnonzero((cells[:, 1:] != cells[:, :-1]).any(axis=0)) + 1).tolist()]
    bins = declared.get("bins")
    last = declared.get("max", bins[-1] if isinstance(bins, list) else None)
    edges = [Decimal(repr(column.codec.edges[start])) for start in starts]
    whole = [int(edge) if edge == edge.to_integral_value() else edge for edge in edges]
    if not isinstance(last, int | Decimal) or len(starts) < 2 or whole[-1] >= last:
        return declared
    rest = {key: value for key, value in declared.items() if key not in ("min", "max", "edges", "bins")}
    return {**rest, "bins": [*whole, last]}


def _named(question: Parsed, layout: Layout) -> Clique:
    """The columns of the model that a question is about, those of the groups first."""
    conditions = [of_parts(f, layout.named) for f in (question.part, question.where) if f is not None]
    in_conditions = [name for condition in conditions for name in references(condition)]
    return tuple(dict.fromkeys((*question.by, *question.of, *in_conditions)))


def _statistics(question: Parsed) -> list[Value]:
    """The tables that have a question of their own, so that no bins come between."""
    if question.where is not None or question.measure not in ("mean", "sum", "quantile"):
        return []
    (of,) = question.of
    asked: dict[str, Value] = {question.measure: of}
    if question.measure == "quantile":
        asked = {"quantiles": of, "at": [Decimal(repr(question.level))]}
    if question.by:
        asked["by"] = list(question.by)
    return [asked]
