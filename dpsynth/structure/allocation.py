"""How a budget is shared among marginals that are measured together.

A cell measured at a cost B has an expected error of c B^-p: p = 1/2 for Gaussian noise, and for
Laplace noise under zCDP; p = 1 for Laplace noise in pure epsilon. Over all costs B_i of the same sum, the
sum of weight_i cells_i B_i^-p is least for B_i ~ (weight_i cells_i)^(1/(1+p)): set the derivatives
equal. So with B_i ~ (weight_i cells_i sqrt(2/pi))^(2/3) for Gaussian noise.

Invariant: every share is positive, whatever the workload leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from dpsynth.accounting.measures import Measure
from dpsynth.domain.domain import Clique
from dpsynth.domain.measurement import Measurement
from dpsynth.domain.workload import Workload
from dpsynth.plan.questions import Door
from dpsynth.structure.strategy import Problem, Selection

UNASKED = 1 / 16
"""What a pair counts of which the workload has no use; the average pair counts 1."""


def importance(workload: Workload, clique: Clique) -> float:
    """What a row of error in a measured clique counts: the mean weight of its pairs; 1 for a column."""
    pairs = list(combinations(clique, 2))
    if not pairs:
        return 1.0
    return max(sum(map(workload.weight, pairs)) / len(pairs), UNASKED)


def burden(measure: Measure, weighted_cells: float) -> float:
    """A clique's part of a budget that is shared: (weight x cells)^(1/(1+p))."""
    return float(weighted_cells ** (1 / (1 + measure.error_power)))


def parts_of(problem: Problem, measure: Measure, cliques: Sequence[Clique]) -> list[Fraction]:
    """For each clique a positive number: its part of a budget that all of them share."""
    return [
        Fraction(burden(measure, importance(problem.workload, c) * problem.domain.cells(c))) for c in cliques
    ]


def measured(
    door: Door,
    problem: Problem,
    cliques: Sequence[Clique],
    before: Sequence[tuple[Clique, Measurement | None]] = (),
) -> Selection:
    """Have cliques measured with everything that the door has left, each at its part.

    Where there are none the single columns are measured once more: nothing is left over.

    Args:
        door: the curator's answers.
        problem: what is being solved.
        cliques: what to measure.
        before: what was measured already, to be part of the selection.
    """
    earlier = tuple(c for c, _ in before), tuple(m for _, m in before)
    if not cliques:
        columns = problem.values.columns
        parts = [Fraction(burden(door.measure, problem.values.cells((c,)))) for c in columns]
        singles = door.singles(columns, door.remaining, parts)
        return Selection(*earlier, singles=tuple(m for m in singles if m is not None))
    parts = parts_of(problem, door.measure, cliques)
    answers = door.marginals(cliques, door.remaining, parts)
    return Selection((*earlier[0], *cliques), (*earlier[1], *answers))
