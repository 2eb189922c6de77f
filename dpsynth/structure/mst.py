"""MST: a spanning tree of column pairs (McKenna, Miklau and Sheldon 2021).

Kruskal's algorithm with a private choice a step: among the pairs that would join two
parts of the tree, the exponential mechanism picks one whose counts lie far, in L1 distance,
from what the one-way marginals would have under independence. From each distance the error
that measuring the pair would bring is taken off (as AIM does, McKenna et al. 2022): a pair
of thousands of cells has to earn its noise. Penalties and weights are public, so the
sensitivity of a score stays that of the distance, times the largest weight. Pairs that requested
statistics are about join the tree before any choice: they are named in the config, and cost no
choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import Measure
from dpsynth.domain.domain import Clique
from dpsynth.plan.outline import Outlined, Shares
from dpsynth.structure.allocation import UNASKED, measured
from dpsynth.structure.candidates import penalty, whole_weights
from dpsynth.structure.forest import Forest
from dpsynth.structure.strategy import Door, Problem, Selection, Strategy

_SHARES = Shares(Fraction(3, 10), Fraction(1, 10), Fraction(6, 10))


class MaximumSpanningTree:
    """d - 1 pairs of d columns: wanted pairs first, the others each chosen at an equal price.

    A pair's score counts as much as the pair does in the workload. Fewer pairs are measured where
    ``max_cells`` leaves none to choose.
    """

    name = "mst"
    max_cells = 50_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> Outlined:
        """A choice for each edge that is not wanted anyway."""
        del measure, noise
        descending = sorted(sizes.values(), reverse=True)
        edges = len(descending) - 1
        # A tree of edges to the largest column has the most cells.
        cells = max(descending[0] * sum(descending[1:]), sum(descending))
        chosen = edges - len(wanted)
        return Outlined(1, max(chosen, 0), 0, max(edges, 1), cells, _SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        """The edges of the tree: those wanted, then those chosen, measured together."""
        names, wanted = problem.domain.columns, problem.wanted
        choices = len(names) - 1 - len(wanted)
        if choices < 1:
            return measured(door, problem, wanted)
        place = {c: i for i, c in enumerate(names)}
        sizes = np.array(problem.domain.shape(names), dtype=np.int64)
        a, b = np.triu_indices(len(names), 1)
        forest = Forest(problem.domain.shape(names))
        for p, q in wanted:
            forest.join(place[p], place[q])

        def admissible(chosen: Sequence[int]) -> NDArray[np.bool_]:
            if chosen:
                forest.join(a[chosen[-1]], b[chosen[-1]])
            return forest.apart(a, b) & (forest.grown(a, b) <= problem.max_cells)

        pairs = [(names[i], names[j]) for i, j in zip(a.tolist(), b.tolist(), strict=True)]
        error = door.cell_error((door.remaining - problem.structure) / (len(names) - 1))
        found = door.choose_in_turn(
            pairs,
            problem.start.model,
            problem.structure / choices,
            choices,
            admissible,
            [penalty(error, cells) for cells in (sizes[a] * sizes[b]).tolist()],
            whole_weights(np.maximum(problem.workload.pair_weights()[a, b], UNASKED)),
        )
        return measured(door, problem, [*wanted, *(pairs[i] for i in found)])


STRATEGY: type[Strategy] = MaximumSpanningTree
