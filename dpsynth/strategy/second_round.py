"""Pairs and triples beside the tree: later rounds of measurements, which the synthetic table is refined to.

A junction tree may have no room for all pairs that are worth their noise, or it was made without asking of
all pairs whether they are; and three columns may depend on each other in a way that shows in no pair. Then a
part of the budget is kept. The model of the tree is fitted, and the noisy distances of all pairs from it are
asked for. Pairs are measured where that lowers the error most for its cost: pairs that the tree doesn't hold,
and cliques of the tree once more. Then the noisy distances of triples are asked for, from the model raked to
the measured pairs: what is left there shows in no pair. The rest of the budget goes to triples, and to what
was measured before. A clique beside the tree is a target of the table (``model.refinement``), and is denoised
about what was known of it, so its noise counts for less than that of a raw answer.

Invariant: the whole budget is spent whatever comes out. If no clique is worth it, those that were measured
before are measured again with all that is left. Which triples are asked about follows from noisy answers.
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
from dpsynth.columns.domain import Clique
from dpsynth.model import Fit, MarkovRandomField, RakedEstimates, Wanted, posteriors
from dpsynth.plan.questions import Door
from dpsynth.strategy.allocation import Trade
from dpsynth.strategy.candidates import MOST_CELLS
from dpsynth.strategy.exclusive_ors import NoisyParities
from dpsynth.strategy.strategy import Problem, Selection

Floats = NDArray[np.float64]

MOST_ASKED = 3000
"""Largest number of distances asked for; of more pairs, those of fewest cells."""
TREE_CELLS = 40_000
"""Cells of the tree if pairs beside it are measured; larger brought no accuracy."""
LATER = Fraction(1, 5)
"""The part of the structure step's budget for distances after the tree: half for pairs, half for triples."""
DENOISED = 0.3
"""Error of a denoised cell relative to its noise."""
LEAST_TREE, MOST_TREE = Fraction(3, 10), Fraction(9, 10)
"""Bounds on the tree's share of the budget."""
TELLING = 12
"""Noisy distances are informative if the rows are at least this many times their error."""
NOTHING = 1 / 1000
"""Cliques with less than this part of an even share are not measured: their noise would exceed all rows."""
TRIPLES = Fraction(3, 10)
"""Share of the remaining budget for triples, and for measuring again."""
TRIPLE_COUNTS = 0.5
"""Least weight of a triple, relative to its pairs: where triples are near, all marginals that hold them
are."""
MOST_TRIPLES = 500
"""Largest number of larger triples that are asked about: those whose pairs depend most."""
SMALL_OF = 25
"""Small triples are asked about, whether their pairs depend or not, in tables of at most so many columns."""
CAUTION = 3.0
"""Standard deviations of noise that are taken off the noisy distance of a small triple: there are many, and
few of them tell more than their pairs do."""
LARGER_OF = 180
"""Triples are looked for in tables of at most so many columns. With more, it takes longer than all else."""
SMALL_CELLS, LARGER_CELLS = range(1, MOST_CELLS + 1), range(MOST_CELLS + 1, 20_001)
"""Numbers of cells of small and of larger triples."""


def later_distances(sizes: Mapping[str, int], measure: Measure) -> int:
    """Largest number of distances after the tree; 0 where there is no second round.

    In pure epsilon k distances cost k times as much as one: there all is measured at once.
    """
    if measure.error_power >= 1:
        return 0
    columns = len(sizes)
    triples = comb(columns, 3) if columns <= SMALL_OF else MOST_TRIPLES if columns <= LARGER_OF else 0
    return min(comb(columns, 2), MOST_ASKED) + triples


def triples_would_tell(door: Door, problem: Problem) -> bool:
    """True if noisy distances would tell which triples depend in a way that shows in no pair.

    They are the small ones, or all where there is none and all are asked about.
    """
    asked = len(_triples(problem, SMALL_OF, SMALL_CELLS))
    if not asked and comb(len(problem.domain.columns), 3) <= MOST_TRIPLES:
        asked = len(_triples(problem, LARGER_OF, LARGER_CELLS))
    return asked > 0 and would_tell(door, problem, asked)


def would_tell(door: Door, problem: Problem, cliques: int) -> bool:
    """True if noisy distances from the tree's model would tell which of so many cliques pay."""
    error = door.cell_error(_for_distances(problem) / min(cliques, MOST_ASKED))
    return error * TELLING <= problem.start.model.total


def _for_distances(problem: Problem) -> Fraction:
    return problem.structure * LATER / 2


def tree_share(inside: float, outside: float) -> Fraction:
    """The tree's share of the budget: its part of all gain, within bounds."""
    part = inside / max(inside + outside, 1e-300)
    return min(max(Fraction(part).limit_denominator(100), LEAST_TREE), MOST_TREE)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Cliques that a round may measure.

    Attributes:
        distances: float64, noisy distances from what is known, in rows; those of small triples less caution.
        weights: float64, weight of a row of error in each.
    """

    cliques: Sequence[Clique]
    distances: Floats
    weights: Floats


_Known = Mapping[Clique, tuple[float, float]]
"""Cliques that were measured already, each once: its cost so far, and its weighted cells."""


def with_exclusive_ors(
    door: Door,
    problem: Problem,
    selection: Selection,
    costs: Sequence[float],
    fit: Fit,
    weights: Mapping[Clique, float],
    parities: NoisyParities,
) -> Selection:
    """The selection of a measured tree, with exclusive ors beside it; it spends all of the budget.

    This is the second round where distances would tell nothing. Arguments are those of ``with_pairs_beside``;
    the tree has cliques, or there is an exclusive or.
    """
    selection = replace(selection, fit=fit)
    found = parities.exclusive_ors(fit.model, fit.model)
    several = np.array([_weight_of_several(problem, c, weights) for c in found])
    candidates = _Candidates([*found], np.array([*found.values()]), several)
    known = _of_tree(problem, selection, costs, weights)
    return _round(door, problem, selection, known, candidates, door.remaining)[0]


def with_pairs_beside(
    door: Door,
    problem: Problem,
    selection: Selection,
    costs: Sequence[float],
    fit: Fit,
    weights: Mapping[Clique, float],
    parities: NoisyParities | None = None,
) -> Selection:
    """The selection of a measured tree, with pairs and triples beside it; it spends all of the budget.

    The tree comes with the cost of each clique and the model fitted to them; ``weights`` has each pair that
    counts, and ``parities`` is the answer to a scan, if one was asked.
    """
    known = _of_tree(problem, selection, costs, weights)
    varied = (pair for pair in weights if min(problem.domain.shape(pair)) > 1)
    pairs = sorted(varied, key=problem.domain.cells)[:MOST_ASKED]
    noisy, spread = door.errors(pairs, fit.model, min(_for_distances(problem), door.remaining / 2))
    distances = np.maximum(noisy.astype(np.float64), spread / 2)
    selection = replace(selection, fit=fit, distances=dict(zip(pairs, distances.tolist(), strict=True)))
    measured = (*selection.cliques, *problem.given)
    held = {frozenset(pair) for clique in measured for pair in combinations(clique, 2)}
    at = [i for i, pair in enumerate(pairs) if frozenset(pair) not in held]
    beside = [pairs[i] for i in at]
    found = _Candidates(
        beside, noisy[at].astype(np.float64), np.array([weights[c] for c in beside], dtype=np.float64)
    )
    small, larger = _triples(problem, SMALL_OF, SMALL_CELLS), _triples(problem, LARGER_OF, LARGER_CELLS)
    later = TRIPLES if small or larger or parities else Fraction(0)
    selection, known = _round(door, problem, selection, known, found, door.remaining * (1 - later))
    if not later:
        return selection
    estimates = _estimates(problem, fit.model, selection)
    scanned = parities.exclusive_ors(fit.model, estimates) if parities else {}
    small = [c for c in small if c not in scanned]
    triples = [*small, *(c for c in _strongest(estimates, larger) if c not in scanned)]
    noisy, spread = door.errors(triples, estimates, min(_for_distances(problem), door.remaining / 2))
    caution = np.where(np.arange(len(triples)) < len(small), CAUTION * spread, 0.0)
    sets = [*triples, *scanned]
    of_each = np.array([_weight_of_several(problem, c, weights) for c in sets])
    distances = np.concatenate([noisy - caution, [*scanned.values()]])
    found = _Candidates(sets, np.asarray(distances, dtype=np.float64), of_each)
    return _round(door, problem, selection, known, found, door.remaining)[0]


def _of_tree(
    problem: Problem, selection: Selection, costs: Sequence[float], weights: Mapping[Clique, float]
) -> _Known:
    return {
        c: (cost, problem.domain.cells(c) * _mean_weight(c, weights))
        for c, cost in zip(selection.cliques, costs, strict=True)
    }


def _round(
    door: Door,
    problem: Problem,
    selection: Selection,
    known: _Known,
    candidates: _Candidates,
    allowance: Fraction,
) -> tuple[Selection, _Known]:
    cells = np.array([problem.domain.cells(c) for c in candidates.cliques], dtype=np.float64)
    gaining, burdens = candidates.distances * candidates.weights, DENOISED * cells * candidates.weights
    power, budget = door.measure.error_power, float(allowance)
    usual = Fraction(budget / max(len(known), 1))
    unit = max(door.cell_error(usual), 1e-6) * float(usual) ** power
    before = np.array(list(known.values()), dtype=np.float64).reshape(-1, 2)
    trade = Trade(unit, power, budget, *np.ascontiguousarray(before.T))
    price = trade.price(gaining, burdens)
    costs = dict(zip(candidates.cliques, trade.costs(burdens, price).tolist(), strict=True))
    worth = trade.gains(gaining, burdens, price) > 0
    chosen = [c for c, pays in zip(candidates.cliques, worth, strict=True) if pays]
    more = np.maximum(trade.costs(trade.burdens, price) - trade.known, 0.0)
    repeated = {c: cost for c, cost in zip(known, more.tolist(), strict=True) if cost > 0}
    if not chosen and not repeated:
        repeated = {c: cost for c, (cost, _) in known.items()}
    if not chosen and not repeated:
        # A tree without cliques, and nothing beside it that pays.
        chosen = [candidates.cliques[int(np.argmax(gaining))]]
    paid = {c: costs[c] for c in chosen} | repeated
    least = NOTHING * sum(paid.values()) / len(paid)
    paid = {c: cost for c, cost in paid.items() if cost >= least}
    chosen = [c for c in chosen if c in paid]
    left = door.remaining if allowance >= door.remaining else allowance
    answers = door.marginals(list(paid), left, [Fraction(cost) for cost in paid.values()])
    part = float(left) / sum(paid.values())
    selection = replace(
        selection,
        cliques=(*selection.cliques, *paid),
        answers=(*selection.answers, *answers),
        beside=(*selection.beside, *chosen),
    )
    burden_of = dict(zip(candidates.cliques, burdens.tolist(), strict=True))
    after = dict(known)
    for c, cost in paid.items():
        paid_before, of_cells = known[c] if c in known else (0.0, burden_of[c])
        after[c] = paid_before + cost * part, of_cells
    return selection, after


def _mean_weight(clique: Clique, weights: Mapping[Clique, float]) -> float:
    return float(np.mean([weights.get(p, weights.get(p[::-1], 0.0)) for p in combinations(clique, 2)]))


def _weight_of_several(problem: Problem, clique: Clique, weights: Mapping[Clique, float]) -> float:
    return max(problem.workload.weight(clique), TRIPLE_COUNTS * _mean_weight(clique, weights))


def _triples(problem: Problem, most_columns: int, cells: range) -> list[Clique]:
    domain = problem.domain
    if len(domain.columns) > most_columns:
        return []
    return [
        c
        for c in combinations([c for c in domain.columns if domain.sizes[c] > 1], 3)
        if domain.cells(c) in cells and problem.workload.weight(c) > 0
    ]


def _estimates(problem: Problem, model: MarkovRandomField, selection: Selection) -> RakedEstimates:
    inside = posteriors(selection.held, problem.start.model)
    known = Wanted.of(model, {}, inside=inside, beside=selection.not_held)
    return RakedEstimates(model, known.counts)


def _strongest(estimates: RakedEstimates, triples: Sequence[Clique]) -> list[Clique]:
    """The triples whose pairs depend most on each other by what is known; ties in table order."""
    strength: dict[Clique, float] = {}
    pairs = list(dict.fromkeys(pair for triple in triples for pair in combinations(triple, 2)))
    for pair, counts in estimates.marginals(pairs).items():
        total = max(float(counts.sum()), 1e-300)
        apart = counts - counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / total
        strength[pair] = float(np.abs(apart).sum())

    def weakest_two(triple: Clique) -> float:
        return sorted(strength[pair] for pair in combinations(triple, 2))[1]

    return sorted(triples, key=lambda triple: -weakest_two(triple))[:MOST_TRIPLES]
