"""Candidate cliques of a strategy, their weights and penalties, and those that fit in the model.

Invariant: all of it is made of public facts, so a list of candidates reveals nothing of the table.

The remaining capacity of a junction tree, asked for thousands of cliques after every step.

The growth that each clique would bring is remembered. It is computed anew only if twice as much would
not fit. A clique that does not fit then is excluded for good. So ``fits`` may be wrong for a clique whose
growth has more than doubled since; ``add`` refuses such a clique.

Invariant: the tree that a fit finds for the added cliques has at most ``max_cells`` cells, or as
many as at the start.

Allocation of a budget among marginals that are measured together.

A cell measured at a cost B has an expected error of c B^-p: p = 1/2 for Gaussian noise, and for
Laplace noise under zCDP; p = 1 for Laplace noise in pure epsilon. Among all costs B_i of the same sum, the
sum of weight_i cells_i B_i^-p is least for B_i ~ (weight_i cells_i)^(1/(1+p)), where its derivatives are
equal. So with B_i ~ (weight_i cells_i sqrt(2/pi))^(2/3) for Gaussian noise.

Invariant: every share is positive, even for pairs that the workload leaves out.

Blocks: one marginal of several small columns in place of many of their pairs.

The six pairs of four binary columns have 24 cells, and the four columns together have 16. A sum of four
of these 16 is as good as a pair's cell, at a quarter of the cost. Blocks also show the dependence of
three columns, which pairs do not. So chosen pairs whose columns have few places are measured by blocks
that hold them.

Invariant: all pairs of a block were chosen. So a block lies within a clique of every junction tree
that holds the pairs, as any clique of a graph does in its triangulations, and adds no cell to the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.workload import Workload
from dpsynth.model import Triangulation
from dpsynth.plan.questions import Door
from dpsynth.strategy.strategy import Problem, Selection


class Capacity:
    """A junction tree that grows clique by clique, up to a bound."""

    def __init__(
        self, domain: Domain, given: Iterable[Clique], max_cells: int, beside: Iterable[Clique] = ()
    ) -> None:
        """The tree of the cliques that it holds in any case.

        Args:
            domain: the columns.
            given: cliques that are listed with the added ones.
            max_cells: the bound on the tree's cells.
            beside: other cliques that the tree holds; they are not listed.
        """
        self._domain = domain
        self._cliques = list(given)
        self._beside = tuple(beside)
        self._tree = Triangulation.of(domain, [*self._beside, *self._cliques])
        self._bound = max(max_cells, self._tree.cells)
        self._growth: dict[Clique, int] = {}
        self._gone: set[Clique] = set()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The given cliques, then the added ones in order."""
        return tuple(self._cliques)

    def fits(self, clique: Clique) -> bool:
        """An estimate, True if the tree seems to have capacity for a clique."""
        if clique in self._gone:
            return False
        known = self._growth.get(clique)
        left = self._bound - self._tree.cells
        if known is None or 2 * known > left:
            known = self._growth[clique] = self._tree.cells_with(clique) - self._tree.cells
            if known > left:
                self._gone.add(clique)
                return False
        return True

    def add(self, clique: Clique) -> bool:
        """Add a clique if the tree of a fit has capacity for it; True if it was added."""
        grown = Triangulation.of(self._domain, [*self._beside, *self._cliques, clique])
        if grown.cells > self._bound:
            self._gone.add(clique)
            return False
        self._tree = grown
        self._cliques.append(clique)
        return True


UNASKED = 1 / 16
"""Weight of a pair that the workload leaves out; the average pair has 1."""


def importance(workload: Workload, clique: Clique) -> float:
    """Weight of a row of error in a measured clique: the mean weight of its pairs; 1 for a column."""
    pairs = list(combinations(clique, 2))
    if not pairs:
        return 1.0
    return max(sum(map(workload.weight, pairs)) / len(pairs), UNASKED)


def burden(measure: Measure, weighted_cells: float) -> float:
    """A clique's relative share of a common budget: (weight x cells)^(1/(1+p))."""
    return float(weighted_cells ** (1 / (1 + measure.error_power)))


def cost_weights(problem: Problem, measure: Measure, cliques: Sequence[Clique]) -> list[Fraction]:
    """The relative share of each clique in a common budget: a positive number."""
    return [
        Fraction(burden(measure, importance(problem.workload, c) * problem.domain.cells(c))) for c in cliques
    ]


def measure_all(
    door: Door,
    problem: Problem,
    cliques: Sequence[Clique],
    before: Sequence[tuple[Clique, Measurement | None]] = (),
) -> Selection:
    """The selection of some cliques, measured with all of the remaining budget, each at its share.

    If there are no cliques, the single columns are measured once more, so that nothing is left over.

    Args:
        door: the curator's answers.
        problem: the problem of the strategy.
        cliques: the cliques to measure.
        before: cliques and answers that were measured before; they are part of the selection.
    """
    earlier = tuple(c for c, _ in before), tuple(m for _, m in before)
    if not cliques:
        columns = problem.values.columns
        parts = [Fraction(burden(door.measure, problem.values.cells((c,)))) for c in columns]
        singles = door.singles(columns, door.remaining, parts)
        return Selection(*earlier, singles=tuple(m for m in singles if m is not None))
    parts = cost_weights(problem, door.measure, cliques)
    answers = door.marginals(cliques, door.remaining, parts)
    return Selection((*earlier[0], *cliques), (*earlier[1], *answers))


MOST_CELLS = 16
"""Cells of a block."""

_MOST_BLOCKS = 20_000
"""Number of blocks from which on larger ones are not searched; hundreds of columns have so many."""


def blocks(domain: Domain, pairs: Sequence[Clique]) -> tuple[Clique, ...]:
    """Blocks of three columns or more that hold every triple of columns of which all pairs were chosen.

    Only triples that fit in a block count. The cover is greedy: the next block is the one that holds most of
    the triples that no block holds yet. It has at most 1 + ln m times as many blocks as needed, m being the
    most triples in one block (Johnson 1974).

    Args:
        domain: the columns.
        pairs: the chosen pairs.
    """
    possible = _possible(domain, pairs)
    left = {triple for block in possible for triple in combinations(block, 3)}
    found: list[Clique] = []
    waiting = [(-comb(len(block), 3), number) for number, block in enumerate(possible)]
    heapify(waiting)
    while left:
        _, number = heappop(waiting)
        triples = left.intersection(combinations(possible[number], 3))
        if waiting and len(triples) < -waiting[0][0]:
            if triples:
                heappush(waiting, (-len(triples), number))
            continue
        found.append(possible[number])
        left -= triples
    return tuple(found)


def _possible(domain: Domain, pairs: Sequence[Clique]) -> list[Clique]:
    """All blocks of which all pairs were chosen: larger ones first, otherwise in table order.

    In this order the greedy cover of 2^k binary columns is a Steiner system: no triple lies in two blocks.
    """
    names, sizes = domain.columns, domain.shape(domain.columns)
    place = {c: i for i, c in enumerate(names)}
    after: list[set[int]] = [set() for _ in names]
    for pair in pairs:
        a, b = sorted(place[c] for c in pair)
        after[a].add(b)
    # A block, its cells, and the later columns that were chosen with each of its own.
    level: list[tuple[tuple[int, ...], int, set[int]]] = [
        ((a,), sizes[a], after[a]) for a in range(len(names))
    ]
    found: list[tuple[int, ...]] = []
    while level and len(found) < _MOST_BLOCKS:
        level = [
            ((*block, c), cells * sizes[c], open_ & after[c])
            for block, cells, open_ in level
            for c in open_
            if cells * sizes[c] <= MOST_CELLS
        ]
        found += [block for block, _, _ in level if len(block) > 2]
    return [tuple(names[i] for i in block) for block in sorted(found, key=lambda b: (-len(b), b))]


def with_blocks(
    pairs: Sequence[Clique], costs: Sequence[float], found: Sequence[Clique]
) -> tuple[list[Clique], list[float]]:
    """The cliques to measure, with their costs; a pair that lies in blocks gives its cost to them."""
    holders: dict[frozenset[str], list[int]] = {}
    for i, block in enumerate(found):
        for covered in combinations(block, 2):
            holders.setdefault(frozenset(covered), []).append(i)
    kept: list[Clique] = []
    alone: list[float] = []
    gained = [0.0] * len(found)
    for pair, cost in zip(pairs, costs, strict=True):
        of_pair = holders.get(frozenset(pair))
        if of_pair is None:
            kept.append(pair)
            alone.append(cost)
            continue
        for i in of_pair:
            gained[i] += cost / len(of_pair)
    return [*kept, *found], [*alone, *gained]


_FARTHEST = 1 << 40
"""The largest penalty in rows. A door takes no larger one, and a larger one could not matter."""

_FINEST = 1000
"""The largest whole weight; the other weights are rounded to thousandths of it."""


def whole_weights(weights: Sequence[float] | NDArray[np.float64]) -> list[int]:
    """Weights as whole numbers, so that a weighted score has an exact sensitivity: the largest of them.

    Equal weights become 1. Otherwise a weight becomes thousandths of the largest, and 0 only if it was 0.
    """
    given = np.asarray(weights, dtype=np.float64)
    most = given.max(initial=0.0)
    if most <= 0 or given.min() == most:
        return [1] * len(given)
    rounded = np.maximum(np.rint(given * (_FINEST / most)), given > 0)
    return [int(w) for w in rounded]


def penalty(error: float, cells: int) -> int:
    """The expected L1 error, in whole rows, of a marginal whose cells have this error each."""
    return round(min(error * cells, _FARTHEST))


def closure(workload: Workload, limit: int) -> list[Clique]:
    """The cliques that lie within a marginal of the workload, by size, single columns first.

    Cliques of a size at which there could be more than ``limit`` in all are left out, and so are larger
    ones. Single columns and pairs are never left out.
    """
    found: list[Clique] = []
    columns = workload.columns
    for size in range(1, workload.widest + 1):
        if size > 2 and len(found) + comb(len(columns), size) > limit:
            break
        found += [c for c in combinations(columns, size) if workload.weight(c) > 0]
    return found


def overlap(workload: Workload, cliques: Sequence[Clique]) -> list[float]:
    """The sum over the workload's marginals s of their weight times |r n s|, for each clique r.

    It equals the sum over r's columns of the weight of all marginals that hold the column.
    """
    of_column = {c: workload.weight((c,)) for c in workload.columns}
    return [sum(of_column[c] for c in clique) for clique in cliques]


def fitting(tree: Triangulation, candidates: Iterable[Clique], max_cells: int) -> list[Clique]:
    """The candidates with which the junction tree would have at most ``max_cells`` cells."""
    return [c for c in candidates if tree.cells_with(c) <= max_cells]


def most_cells(sizes: Iterable[int]) -> int:
    """An upper bound on the cells of any junction tree over columns of these sizes.

    All cliques of a tree together have no more cells than the joint table of all columns, if
    each column has two places or more: a leaf of s x r cells, s of them its separator's, hangs on a rest
    of R >= 2 s cells, and R + s r <= r R.
    """
    return prod(max(size, 2) for size in sizes)
