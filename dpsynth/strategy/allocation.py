"""Allocation of a budget: the gain of measuring a marginal, and the shares of those measured together.

A cell measured at a cost B has an expected error of c B^-q (``Measure.error_power``): q = 1/2 for Gaussian
noise, and for Laplace noise under zCDP; q = 1 for Laplace noise in pure epsilon. Among all costs B_i of the
same sum, the sum of w_i n_i B_i^-q over marginals of weight w and n cells is least for B_i ~ (w_i
n_i)^(1/(1+q)).

A marginal at a distance e from the model gains

    w (e - n c B^-q) - L B

at a cost B, if a unit of the budget brings L elsewhere. That is largest at B = (w n c q/L)^(1/(1+q)), where
it is w e - (1 + 1/q) L B. The right price L is the one at which all marginals of positive gain, and the
single columns that are measured again, use up the budget: then no shift of budget gains anything (SWIFT, in
google/dpsynth, allocates like this among all cliques of its tree).

Invariant: public arithmetic on public numbers and noisy answers; every share is positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.workload import Workload
from dpsynth.plan.questions import Door
from dpsynth.strategy.strategy import Problem, Selection

Floats = NDArray[np.float64]

_STEPS = 200

_LEAST = 1e-9
"""The smallest share of the budget that a clique or column has, so that it can grow again."""


@dataclass(frozen=True, eq=False)
class Trade:
    """The trade of cost for error, and the earlier measurements of single columns.

    Attributes:
        unit: expected error of a cell, in rows, at a cost of 1.
        power: q above.
        budget: cost of everything that is measured together.
        known: float64[columns], the cost at which each column was measured before.
        burdens: float64[columns], weight x values of each column.
        merged: float64[columns], the part of ``burdens`` that only the column's own counts tell: its values
            less their groups, where values count in groups in every other marginal. Left out: none.
    """

    unit: float
    power: float
    budget: float
    known: Floats
    burdens: Floats
    merged: Floats | float = 0.0

    def error(self, cost: float) -> float:
        return self.unit * cost**-self.power

    def costs(self, burdens: Floats, price: float) -> Floats:
        return np.asarray((burdens * self.unit * self.power / price) ** (1 / (1 + self.power)))

    def gains(self, weighted: Floats, burdens: Floats, price: float) -> Floats:
        """Gain of each marginal at its best cost, from its weighted distance in rows."""
        return weighted - (1 + 1 / self.power) * price * self.costs(burdens, price)

    def price(self, weighted: Floats, burdens: Floats) -> float:
        """The price at which all marginals of positive gain use up the budget."""

        def taken(price: float) -> float:
            gaining = self.gains(weighted, burdens, price) > 0
            again = np.maximum(self.costs(self.burdens, price) - self.known, 0)
            return float(self.costs(burdens, price)[gaining].sum() + again.sum())

        low, high = 1e-300, 1e300
        for _ in range(_STEPS):
            middle = float(np.sqrt(low) * np.sqrt(high))
            low, high = (middle, high) if taken(middle) > self.budget else (low, middle)
        return high


@dataclass(frozen=True, eq=False)
class Split:
    """The cost of each column and clique, and what a unit of the budget takes off the weighted error."""

    columns: Floats
    cliques: Floats
    price: float


def shared(
    trade: Trade, sizes: Floats, members: Sequence[Sequence[int]], weights: Floats, rounds: int = 400
) -> Split:
    """The shares of columns and chosen cliques for which the expected weighted error is least.

    A clique's sums measure its columns too: at a cost B it is worth a cost of B x n_c/n to a column of n_c
    places; but not to values that count in groups there. The sum of weighted errors is convex in the costs.
    Each of 400 rounds multiplies every cost by a power of the decrease in error that a unit brings there;
    only the minimum is left unchanged by this.

    Args:
        sizes: float64[columns], number of places, as in the cliques.
        members: the columns of each clique.
        weights: float64[cliques], weight of each clique.
    """
    d, k, q = len(sizes), len(members), trade.power
    clique = np.repeat(np.arange(k), [len(m) for m in members])
    column = np.array([c for m in members for c in m], dtype=np.intp)
    cells = np.array([np.prod(sizes[list(m)]) for m in members])
    part = sizes[column] / cells[clique]
    costs = np.full(d + k, trade.budget / (d + k))
    bring = costs
    for _ in range(rounds):
        alone = trade.known + costs[:d]
        precise = alone + np.bincount(column, costs[d:][clique] * part, minlength=d)
        of_groups = q * trade.unit * (trade.burdens - trade.merged) * precise ** (-q - 1)
        of_merged = q * trade.unit * trade.merged * alone ** (-q - 1)
        of_cliques = q * trade.unit * weights * cells * costs[d:] ** (-q - 1)
        bring = np.concatenate(
            [of_groups + of_merged, of_cliques + np.bincount(clique, of_groups[column] * part, minlength=k)]
        )
        costs = costs * bring**0.6
        costs = np.maximum(costs * (trade.budget / costs.sum()), trade.budget * _LEAST)
    costs *= trade.budget / costs.sum()
    return Split(costs[:d], costs[d:], float(bring.max()))


MEASURED_A_COLUMN = Fraction(5, 2)
"""Expected number of measured pairs for each column."""

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

    If there are no cliques, the single columns are measured once more, so that nothing is left over. The
    cliques and answers that were measured ``before`` are part of the selection.
    """
    measured = tuple(c for c, _ in before), tuple(m for _, m in before)
    if not cliques:
        columns = problem.values.columns
        parts = [Fraction(burden(door.measure, problem.values.cells((c,)))) for c in columns]
        singles = door.singles(columns, door.remaining, parts)
        return Selection(*measured, singles=tuple(m for m in singles if m is not None))
    parts = cost_weights(problem, door.measure, cliques)
    answers = door.marginals(cliques, door.remaining, parts)
    return Selection((*measured[0], *cliques), (*measured[1], *answers))


FARTHEST = 1 << 40
"""The largest penalty in rows. A door takes no larger one, and a larger one could not matter."""


_FINEST = 1000
"""The largest whole weight; the other weights are rounded to thousandths of it."""


def whole_weights(weights: Sequence[float] | NDArray[np.float64]) -> list[int]:
    """Weights as whole numbers, so that a weighted score has an exact sensitivity: the largest of them.

    Equal weights become 1; others become thousandths of the largest, and 0 only if they were 0.
    """
    given = np.asarray(weights, dtype=np.float64)
    most = given.max(initial=0.0)
    if most <= 0 or given.min() == most:
        return [1] * len(given)
    rounded = np.maximum(np.rint(given * (_FINEST / most)), given > 0)
    return [int(w) for w in rounded]


def penalty(error: float, cells: int) -> int:
    """The expected L1 error, in whole rows, of a marginal whose cells have this error each."""
    return round(min(error * cells, FARTHEST))
