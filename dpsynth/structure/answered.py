"""The choice among pairs that are answered already: which of them the model holds.

Respondents are asked everything at once, so many pairs are answered that are worth nothing: their noise
exceeds their relation. A pair's answer improves an estimate that takes its columns to be independent if the
squared relation is above its squared noise; the squared distance exceeds the squared relation by that noise,
so it must be twice the noise (Akaike's criterion). Such pairs are held by the model in the order of what they
improve, as far as its size allows. The synthetic table is refined to the others.

Invariant: post-processing of answers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import Measurement
from dpsynth.model import Fit, Triangulation
from dpsynth.model.least_squares import centred
from dpsynth.structure.strategy import Selection

HELD_CELLS = 125_000
"""Most cells of the model, if the config states no bound."""
_MOST_TRIED = 400


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
    gains = {answer.clique: _gain(answer, start) for answer in answers}
    worth = [a for a in answers if listed or gains[a.clique] > 0]
    worth.sort(key=lambda answer: -gains[answer.clique])
    tree = Triangulation.of(domain, [(c,) for c in domain.columns])
    beside: list[Clique] = []
    for tried, answer in enumerate(worth):
        if tried >= _MOST_TRIED or tree.cells_with(answer.clique) > max_cells:
            beside.append(answer.clique)
            continue
        tree = tree.with_clique(answer.clique)
    cliques = tuple(a.clique for a in worth)
    return Selection(cliques, tuple(worth), start, beside=tuple(beside))


def _gain(answer: Measurement, start: Fit) -> float:
    """The approximate decrease of the squared L1 error of a clique by its answer."""
    relation = centred(answer.values - start.model.marginal(answer.clique))
    freedom = float(np.prod([size - 1 for size in relation.shape]))
    excess = float(np.square(relation).sum()) - 2 * freedom * answer.variance
    return excess * relation.size
