"""The forecast of a collection: what respondents are asked, and the errors to expect; for ``dpsynth plan``.

Invariant: made of the contract and of a number of respondents that the config states or the caller assumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import pi, sqrt
from typing import Any

from dpsynth.cli.printing import json_text
from dpsynth.columns.domain import Clique
from dpsynth.config import Spec
from dpsynth.wings.local.collecting import contract_for
from dpsynth.wings.local.collection import in_words, shuffled_guarantee
from dpsynth.wings.local.contract import Contract
from dpsynth.wings.local.randomisers import mean_variance


def print_plan(spec: Spec, respondents: int | None, *, detail: bool, as_json: bool) -> None:
    """Print what a collection would protect, ask and tell.

    Args:
        spec: a config with ``trust: local``.
        respondents: their number, if it is known.
        detail: True for every question too.
        as_json: True for the facts as JSON.
    """
    facts = local_forecast(contract_for(spec), respondents)
    if as_json:
        print(json_text(facts))
        return
    for line in local_plan_in_words(facts, detail=detail):
        print(line)
    print("No data was read." if detail else "No data was read. More with --detail: every question.")


def local_plan_in_words(facts: Mapping[str, Any], *, detail: bool) -> Iterator[str]:
    """The sentences of a forecast."""
    questions = facts["questions"]
    ways = Counter(question["randomiser"] for question in questions)
    errors = sorted(facts["expected_errors"], key=lambda error: error["share_moved"])
    groups = (
        (kind, [e for e in errors if len(e["columns"]) == of])
        for kind, of in (("column", 1), ("pair of columns", 2))
    )
    more = {
        "by": ", ".join(f"{many} by {name}" for name, many in ways.items()),
        "errors": [(kind, some) for kind, some in groups if some],
        "detail": detail,
    }
    yield from in_words("plan", {**facts, **more})
    for question in questions if detail else ():
        yield (
            f"  {' with '.join(question['columns'])}: {question['cells']:,} cells, "
            f"{question['randomiser']}, odds of an answer exactly {question['odds']}"
        )


def expected_variances(contract: Contract, respondents: int) -> dict[Clique, float]:
    """The expected variance of a cell on average, of each question and single column, in respondents squared.

    Counts of a column are reconciled from all questions that hold it. Shares are taken to be equal.
    """
    domain, asked = contract.domain, len(contract.questions)
    part = 1 / asked if contract.one else 1.0
    pairs: dict[Clique, float] = {}
    precision, reached = (dict.fromkeys(domain.columns, 0.0) for _ in range(2))
    for question in contract.questions:
        cells = domain.cells(question.columns)
        noise = respondents / part * mean_variance(question.randomiser)
        pairs[question.columns] = noise + _sampling(respondents, cells, part)
        for column in question.columns:
            precision[column] += domain.sizes[column] / (cells * noise)
            reached[column] += part
    singles: dict[Clique, float] = {
        (c,): 1 / p + _sampling(respondents, domain.sizes[c], min(reached[c], 1.0))
        for c, p in precision.items()
    }
    return {**singles, **{clique: v for clique, v in pairs.items() if len(clique) > 1}}


def _sampling(respondents: int, cells: int, part: float) -> float:
    """Variance of a cell because a random part of the respondents was asked."""
    return respondents * (1 / part - 1) / cells * (1 - 1 / cells)


def local_forecast(contract: Contract, respondents: int | None = None) -> dict[str, object]:
    """The forecast as plain JSON values.

    Args:
        contract: the contract.
        respondents: number of respondents; None: that of the config.
    """
    number = contract.section.respondents if respondents is None else respondents
    variances = expected_variances(contract, number)
    randomisers = {q.columns: q.randomiser for q in contract.questions}
    shuffled = shuffled_guarantee(contract, number)
    return {
        "release": contract.compiled.spec.release,
        "trust": "local",
        "contract": contract.digest,
        "epsilon_per_respondent": float(contract.epsilon),
        "respondents": number,
        "answers_a_report": "one" if contract.one else "all",
        "questions": [
            {
                "columns": list(columns),
                "cells": randomiser.cells,
                "randomiser": randomiser.name,
                "own": str(randomiser.own),
                "other": str(randomiser.other),
                "odds": str(randomiser.odds),
            }
            for columns, randomiser in randomisers.items()
        ],
        "expected_errors": [
            {
                "columns": list(columns),
                "standard_deviation": sqrt(variance),
                "share_moved": min(
                    contract.domain.cells(columns) * sqrt(2 * variance / pi) / 2 / number, 1.0
                ),
            }
            for columns, variance in variances.items()
        ],
        "shuffled": None if shuffled is None else shuffled.to_json(),
    }
