"""One shot: all cliques are chosen at once, against independent columns, and measured once.

A junction tree is grown, within the bound on its cells, from the marginals of the largest gain for their
noise. Those of them that pay are measured together. They are to maximise

    sum over i of w_i (e_i - n_i E(B_i)),    sum of B_i = B,

with e_i the noisy L1 distance of marginal i from its estimate by smaller ones, w_i its weight, n_i its cells
and E(B_i) ~ B_i^-p the expected error of a cell at a cost of B_i. For given marginals the best costs are B_i
~ (w_i n_i)^(1/(1+p)), and the errors sum to E(B) A^(1+p), A = sum of (w_i n_i)^(1/(1+p)). A marginal thus
gains w_i e_i for each unit that it adds to A, and is taken in the order of this ratio for as long as one
pays. A triple is far from independence because its pairs are, and measuring these is cheaper: so the largest
distance of its pairs is taken off.

With Gaussian noise all distances are asked for together, since the noise of k distances grows with sqrt(k).
With Laplace noise it would grow with k, so pairs are chosen one by one by the exponential mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import LAPLACE, noise_named
from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique
from dpsynth.columns.workload import Workload
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import Shares, StrategyOutline
from dpsynth.strategy.allocation import burden, importance, measure_all, penalty, whole_weights
from dpsynth.strategy.candidates import most_cells
from dpsynth.strategy.strategy import Problem, Selection, Strategy
from dpsynth.wings.methods.cliques import Capacity, closure

MOST_ASKED = 3000
"""Largest number of distances asked for; if triples would be more, only those of pairs are asked for."""
_CHOICES_A_COLUMN = 3
_WIDEST = 3
_SHARES = Shares(Fraction(5, 20), Fraction(2, 20), Fraction(13, 20))


class OneShot:
    """Noisy distances of pairs and triples, or choices of pairs; then one measurement of the best cliques."""

    name = "one_shot"
    max_cells = 200_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        """One question about all distances, or some choices; about as many cliques as choices."""
        columns, most = len(sizes), most_cells(sizes.values())
        by_distances = noise_named(noise).by_l2
        asked = len(_asked(Workload(tuple(sizes)))) if by_distances else comb(columns, 2)
        choices = min(_CHOICES_A_COLUMN * columns, asked)
        cliques = max(len(wanted), min(len(wanted) + choices, asked))
        if by_distances:
            return StrategyOutline(1, 0, asked, cliques, most, _SHARES)
        return StrategyOutline(1, choices, 0, cliques, most, _SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        laplace = any(m.noise == LAPLACE.name for m in problem.singles)
        chosen = (_by_choices if laplace else _by_distances)(door, problem)
        return measure_all(door, problem, chosen)


STRATEGY: type[Strategy] = OneShot


def _asked(workload: Workload) -> list[Clique]:
    """Pairs and triples of the workload; pairs only where that would be too many."""
    return [c for c in closure(workload, MOST_ASKED) if 2 <= len(c) <= _WIDEST]


def _by_distances(door: Door, problem: Problem) -> list[Clique]:
    domain, measure, rows = problem.domain, door.measure, problem.start.model.total
    error = door.cell_error(door.remaining - problem.structure)
    asked = [c for c in _asked(problem.workload) if domain.cells(c) * error < 2 * rows]
    if not asked:
        return list(problem.wanted)
    noisy, _ = door.errors(asked, problem.start.model, problem.structure)
    distances = dict(zip(asked, noisy.tolist(), strict=True))
    weights = [problem.workload.weight(c) for c in asked]
    gains = [w * added_distance(c, distances) for c, w in zip(asked, weights, strict=True)]
    burdens = [burden(measure, w * domain.cells(c)) for c, w in zip(asked, weights, strict=True)]

    power = 1 + measure.error_power
    chosen = list(problem.wanted)
    taken = sum(burden(measure, importance(problem.workload, c) * domain.cells(c)) for c in chosen)
    capacity = Capacity(domain, chosen, problem.max_cells, problem.given)
    for i in np.argsort(-np.array(gains) / burdens, kind="stable").tolist():
        clique, more = asked[i], taken + burdens[i]
        if clique in problem.wanted or gains[i] <= error * (more**power - taken**power):
            continue
        if capacity.fits(clique) and capacity.add(clique):
            taken = more
    return list(capacity.cliques)


def added_distance(clique: Clique, distances: Mapping[Clique, int]) -> int:
    """Distance of a marginal from independence; of a triple less the largest distance of its pairs."""
    if len(clique) <= 2:
        return distances[clique]
    return distances[clique] - max(distances.get(pair, 0) for pair in combinations(clique, 2))


def _by_choices(door: Door, problem: Problem) -> list[Clique]:
    domain, columns = problem.domain, len(problem.domain.columns)
    wanted = list(problem.wanted)
    pairs = [c for c in _asked(problem.workload) if len(c) == 2 and c not in wanted]
    choices = min(_CHOICES_A_COLUMN * columns, len(pairs))
    if not choices:
        return wanted
    capacity = Capacity(domain, wanted, problem.max_cells, problem.given)
    seen: list[int] = []

    def admissible(chosen: Sequence[int]) -> NDArray[np.bool_]:
        for i in chosen[len(seen) :]:
            seen.append(i)
            capacity.add(pairs[i])
        return np.array([capacity.fits(pair) for pair in pairs])

    error = door.cell_error((door.remaining - problem.structure) / (len(wanted) + choices))
    found = door.choose_in_turn(
        pairs,
        problem.start.model,
        problem.structure / choices,
        choices,
        admissible,
        [penalty(error, domain.cells(c)) for c in pairs],
        whole_weights([problem.workload.weight(c) for c in pairs]),
    )
    admissible(found)
    return list(capacity.cliques)
