"""MST: a spanning tree of column pairs (McKenna, Miklau and Sheldon 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import Shares, StrategyOutline
from dpsynth.strategy.allocation import UNASKED, measure_all, penalty, whole_weights
from dpsynth.strategy.candidates import Forest
from dpsynth.strategy.strategy import Problem, Selection, Strategy

_SHARES = Shares(Fraction(3, 10), Fraction(1, 10), Fraction(6, 10))


class MaximumSpanningTree:
    """The algorithm MST, in ten lines; D is the private table, d the number of columns.

    ```text
     1  measure every column                                  before: problem.singles
     2  p := the model of independent columns                 before: problem.start
     3  T := the wanted pairs
     4  repeat d - 1 - |T| times, each at an equal price
     5      C := the pairs that join two components of T
     6      q(r) := w_r (|M_r(D) - M_r(p)|_1 - penalty_r)     for each r of C
     7      r := the exponential mechanism's choice from C by the score q
     8      T := T and r
     9  measure every pair of T
    10  fit a model to all answers, and draw the table        after: the pipeline
    ```

    Lines 4 to 8 are Kruskal's algorithm with a private choice for each edge. The paper's T starts
    empty, and its score is the distance alone. Three things are added, all of them public:

    - Wanted pairs (line 3) are those that requested statistics are about. They cost no choice.
    - The penalty is the error that measuring the pair would bring, as in AIM (McKenna et al. 2022): a
      pair of thousands of cells has to earn its noise. Where ``max_cells`` is reached, C is empty.
    - The weight w_r is the weight of the pair in the workload.

    So the sensitivity of a score is that of the distance, times the largest weight.
    """

    name = "mst"
    max_cells = 50_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        descending = sorted(sizes.values(), reverse=True)
        edges = len(descending) - 1
        # A tree of edges to the largest column has the most cells.
        cells = max(descending[0] * sum(descending[1:]), sum(descending))
        chosen = edges - len(wanted)
        return StrategyOutline(1, max(chosen, 0), 0, edges, cells, _SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        """Lines 3 to 9."""
        tree = [*problem.wanted]
        choices = len(problem.domain.columns) - 1 - len(tree)
        if choices > 0:
            tree += _chosen_edges(door, problem, choices)
        return measure_all(door, problem, tree)


STRATEGY: type[Strategy] = MaximumSpanningTree


def _chosen_edges(door: Door, problem: Problem, choices: int) -> list[Clique]:
    """Lines 4 to 8: the edges that are chosen privately."""
    domain = problem.domain
    a, b = np.triu_indices(len(domain.columns), 1)
    pairs = list(combinations(domain.columns, 2))
    tree = Forest(domain.shape(domain.columns))
    place = {c: i for i, c in enumerate(domain.columns)}
    for first, second in problem.wanted:
        tree.join(place[first], place[second])

    def joining(chosen: Sequence[int]) -> NDArray[np.bool_]:
        if chosen:
            tree.join(a[chosen[-1]], b[chosen[-1]])
        return tree.disconnected(a, b) & (tree.cells_with(a, b) <= problem.max_cells)

    error = door.cell_error((door.remaining - problem.structure) / (len(domain.columns) - 1))
    chosen = door.choose_in_turn(
        pairs,
        problem.start.model,
        price=problem.structure / choices,
        most=choices,
        admissible=joining,
        penalties=[penalty(error, domain.cells(pair)) for pair in pairs],
        weights=whole_weights(np.maximum(problem.workload.pair_weights()[a, b], UNASKED)),
    )
    return [pairs[i] for i in chosen]
