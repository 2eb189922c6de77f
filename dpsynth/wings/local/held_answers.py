"""The choice among pairs that are answered already: which of them the model holds.

Respondents are asked everything at once, so many pairs are answered that are worth nothing: their noise
exceeds their relation. A pair's answer improves an estimate that takes its columns to be independent if the
squared relation is above its squared noise; the squared distance exceeds the squared relation by that noise,
so it must be twice the noise (Akaike's criterion). That alone would hold a sixth of pairs of pure noise, and
the table would be worse than one of independent columns. So most of the distance must be relation, besides,
as far as one can tell: how frequent relations of which strength are is learnt from all answers by empirical
Bayes, with a prior that leans to none (Stephens 2016). Such pairs are held by the model in the order of what
they improve, as far as its size allows. The synthetic table is refined to the others.

Invariant: post-processing of answers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import Fit, Triangulation
from dpsynth.model.factor import Array
from dpsynth.model.least_squares import centred
from dpsynth.strategy.strategy import Selection

HELD_CELLS = 125_000
"""Most cells of the model, if the config states no bound."""
LEAST_SIGNAL = 0.5
"""Least share of signal in the observed relation of a pair that is held."""
_MOST_TRIED = 400
_RELATIONS = np.concatenate([[0.0], np.geomspace(0.003, 1.0, 12)])
"""The shares of the respondents that a relation may move."""
_ROUNDS = 60
_WITHOUT = 9.0
"""Pairs without a relation that are taken to have been seen beforehand."""


def held_answers(
    domain: Domain, answers: Sequence[Measurement], start: Fit, listed: bool, max_cells: int
) -> Selection:
    """The selection of answered cliques, those that the model can't hold beside it.

    Args:
        domain: the columns.
        answers: noisy marginals of several columns.
        start: a fit of the single columns, which are independent in it.
        listed: True if the config lists the cliques, which are all held then.
        max_cells: largest number of cells of the model.
    """
    squares = np.array([_square(answer, start) for answer in answers])
    freedoms = np.array([np.prod([size - 1.0 for size in a.values.shape]) for a in answers])
    cells = np.array([a.values.size for a in answers])
    variances = np.array([a.variance for a in answers])
    found = signals(squares, freedoms, variances, start.model.total / cells) if answers else np.zeros(0)
    # The approximate decrease of the squared L1 error of each clique by its answer.
    gains = (squares - 2 * freedoms * variances) * cells
    clear = (gains > 0) & (found > LEAST_SIGNAL)
    worth = [int(i) for i in np.argsort(-gains, kind="stable") if listed or clear[i]]
    tree = Triangulation.of(domain, [(c,) for c in domain.columns])
    beside: list[Clique] = []
    for tried, answer in enumerate(answers[i] for i in worth):
        if tried >= _MOST_TRIED or tree.cells_with(answer.clique) > max_cells:
            beside.append(answer.clique)
            continue
        tree = tree.with_clique(answer.clique)
    return Selection(
        tuple(answers[i].clique for i in worth),
        tuple(answers[i] for i in worth),
        start,
        beside=tuple(beside),
    )


def signals(squares: Array, freedoms: Array, variances: Array, cell: Array) -> Array:
    """The share of signal in each observed relation, float64[answers].

    Args:
        squares: float64[answers], sums of squares of the observed relations.
        freedoms: float64[answers], their degrees of freedom.
        variances: float64[answers], the variance of the noise of a cell.
        cell: float64[answers], respondents of a cell on average.
    """
    prior = np.square(np.outer(_RELATIONS, cell))
    total = prior + variances
    likelihood = -0.5 * (freedoms * np.log(total) + squares / total)
    likelihood = np.exp(likelihood - likelihood.max(axis=0))
    frequencies = np.full(len(_RELATIONS), 1 / len(_RELATIONS))
    for _ in range(_ROUNDS):
        kinds = frequencies[:, None] * likelihood
        kinds /= kinds.sum(axis=0)
        frequencies = kinds.sum(axis=1)
        frequencies[0] += _WITHOUT
        frequencies /= frequencies.sum()
    return np.asarray((kinds * prior / total).sum(axis=0))


def _square(answer: Measurement, start: Fit) -> float:
    """The sum of squares of an answer's relation beyond independent columns."""
    return float(np.square(centred(answer.values - start.model.marginal(answer.clique))).sum())
