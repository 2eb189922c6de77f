"""The forecast of a collection: what respondents are asked, and the errors to expect.

Invariant: made of the contract and of a number of respondents that the config states or the caller assumes.
"""

from __future__ import annotations

from math import pi, sqrt

from dpsynth.columns.domain import Clique
from dpsynth.wings.local.collection import shuffled_guarantee
from dpsynth.wings.local.contract import Contract
from dpsynth.wings.local.randomisers.randomiser import mean_variance


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
