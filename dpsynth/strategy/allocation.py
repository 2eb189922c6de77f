"""Allocation of a budget among marginals that are measured together.

A cell measured at a cost B has an expected error of c B^-p: p = 1/2 for Gaussian noise, and for
Laplace noise under zCDP; p = 1 for Laplace noise in pure epsilon. Among all costs B_i of the same sum, the
sum of weight_i cells_i B_i^-p is least for B_i ~ (weight_i cells_i)^(1/(1+p)), where its derivatives are
equal. So with B_i ~ (weight_i cells_i sqrt(2/pi))^(2/3) for Gaussian noise.

Invariant: every share is positive, even for pairs that the workload leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.workload import Workload
from dpsynth.plan.questions import Door
from dpsynth.strategy.strategy import Problem, Selection

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
