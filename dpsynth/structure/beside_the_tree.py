"""Pairs beside the tree: a second round of measurements, which the synthetic table is refined to.

A junction tree may have no room for all pairs that are worth their noise. Then a part of the budget is kept:
the model of the tree is fitted, and the noisy distances of all pairs from it are asked for. Pairs are
measured where that lowers the error most for its cost: pairs that the tree doesn't hold, and cliques of the
tree once more. A pair beside the tree is a target of the table (``model.refinement``), and is denoised about
the model's own estimate (``model.denoising``). So its noise counts for less than that of a raw answer.

Invariant: the whole budget is spent whatever comes out. If no pair is worth it, the tree's own cliques are
measured again with all that is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.measures import Measure
from dpsynth.domain.domain import Clique, Domain
from dpsynth.model import Fit
from dpsynth.plan.questions import Door
from dpsynth.structure import gain
from dpsynth.structure.strategy import Problem, Selection

Floats = NDArray[np.float64]

MOST_ASKED = 3000
"""Largest number of distances asked for; of more pairs, those of fewest cells."""
TREE_CELLS = 125_000
"""Cells of the tree if pairs beside it are measured. A larger one brought no accuracy, and takes time."""
LATER = Fraction(1, 5)
"""The part of the structure step's budget for distances from the tree's model."""
DENOISED = 0.3
"""Error of a denoised cell relative to its noise."""
CAUTION = 0.3
"""Standard deviations of noise that are taken off a noisy distance."""
LEAST_OUTSIDE = 0.02
"""Gain of the pairs outside the tree, relative to that of its own, below which there is no second round."""
LEAST_TREE, MOST_TREE = Fraction(3, 10), Fraction(9, 10)
"""Bounds on the tree's share of the budget."""


def later_distances(columns: int, measure: Measure) -> int:
    """Largest number of distances from the tree's model; 0 where there is no second round.

    In pure epsilon k distances cost k times as much as one: there all is measured at once.
    """
    return min(comb(columns, 2), MOST_ASKED) if measure.error_power < 1 else 0


def tree_share(inside: float, outside: float) -> Fraction:
    """The tree's share of the budget: its part of all gain, within bounds."""
    part = inside / max(inside + outside, 1e-300)
    return min(max(Fraction(part).limit_denominator(100), LEAST_TREE), MOST_TREE)


@dataclass(frozen=True, eq=False)
class Measured:
    """The tree's cliques, with what each has cost.

    Attributes:
        selection: the cliques and their answers.
        costs: the cost of each clique, in the release's measure.
        fit: the model fitted to them.
    """

    selection: Selection
    costs: Sequence[float]
    fit: Fit


def with_pairs_beside(
    door: Door, problem: Problem, tree: Measured, weights: Mapping[Clique, float]
) -> Selection:
    """The selection of a tree, with pairs beside it that are measured with all of the remaining budget.

    Args:
        door: the curator's answers.
        problem: the problem of the strategy.
        tree: the tree, measured.
        weights: the weight of each pair that counts.
    """
    selection, model = tree.selection, tree.fit.model
    pairs = _asked(problem.domain, weights)
    price = min(problem.structure * LATER, door.remaining / 2)
    noisy, spread = door.errors(pairs, model, price)
    distances = np.maximum(noisy.astype(np.float64), spread / 2)
    held = _held(problem.domain, [*selection.cliques, *problem.given])
    beside = [i for i, pair in enumerate(pairs) if frozenset(pair) not in held]
    gaining = np.array([noisy[i] - CAUTION * spread for i in beside]) * [weights[pairs[i]] for i in beside]
    cells = np.array([problem.domain.cells(pairs[i]) for i in beside], dtype=np.float64)
    burdens = DENOISED * cells * [weights[pairs[i]] for i in beside]
    again = _trade(door, problem, tree, weights)
    price_of_gain = again.price(gaining, burdens)
    worth = again.gains(gaining, burdens, price_of_gain) > 0
    chosen = [pairs[i] for i, pays in zip(beside, worth, strict=True) if pays]
    costs = again.costs(burdens, price_of_gain)[worth].tolist()
    more = np.maximum(again.costs(again.burdens, price_of_gain) - again.known, 0.0)
    repeated = [(c, cost) for c, cost in zip(selection.cliques, more.tolist(), strict=True) if cost > 0]
    if not chosen and not repeated:
        repeated = list(zip(selection.cliques, tree.costs, strict=True))
    asked = [*chosen, *(c for c, _ in repeated)]
    parts = [Fraction(cost) for cost in (*costs, *(cost for _, cost in repeated))]
    answers = door.marginals(asked, door.remaining, parts)
    return replace(
        selection,
        cliques=(*selection.cliques, *asked),
        answers=(*selection.answers, *answers),
        fit=tree.fit,
        beside=tuple(chosen),
        distances=dict(zip(pairs, distances.tolist(), strict=True)),
    )


def _asked(domain: Domain, weights: Mapping[Clique, float]) -> list[Clique]:
    """The pairs whose distances are asked for: all, or those of fewest cells."""
    pairs = [pair for pair in weights if min(domain.shape(pair)) > 1]
    return sorted(pairs, key=domain.cells)[:MOST_ASKED]


def _held(domain: Domain, cliques: Sequence[Clique]) -> set[frozenset[str]]:
    """Pairs within measured cliques."""
    return {frozenset(pair) for clique in cliques for pair in combinations(clique, 2)}


def _trade(door: Door, problem: Problem, tree: Measured, weights: Mapping[Clique, float]) -> gain.Trade:
    """The trade of cost for error; what is measured already are the cliques of the tree."""
    power, budget = door.measure.error_power, float(door.remaining)
    usual = Fraction(budget / max(len(tree.costs), 1))
    unit = max(door.cell_error(usual), 1e-6) * float(usual) ** power
    cliques = tree.selection.cliques
    burdens = [
        problem.domain.cells(c)
        * np.mean([weights.get(p, weights.get(p[::-1], 0.0)) for p in combinations(c, 2)])
        for c in cliques
    ]
    return gain.Trade(unit, power, budget, np.array(tree.costs, dtype=np.float64), np.array(burdens))
