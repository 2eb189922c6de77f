"""Gain of measuring a marginal: its distance from the model, less the noise that its cells would have.

A cell measured at a cost B has an expected error of c B^-q (``Measure.error_power``). So a
marginal of n cells, of weight w and at a distance e from the model gains

    w (e - n c B^-q) - L B

at a cost B, if a unit of the budget brings L elsewhere. That is largest at B = (w n c q/L)^(1/(1+q)),
where it is w e - (1 + 1/q) L B. The right price L is the one at which all marginals of positive gain,
and the single columns that are measured again, use up the budget: then no shift of budget gains anything
(SWIFT, in google/dpsynth, allocates like this among all cliques of its tree).

Invariant: all of it is public arithmetic on public numbers and noisy answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
        """Expected error of a cell, in rows."""
        return self.unit * cost**-self.power

    def costs(self, burdens: Floats, price: float) -> Floats:
        """The best cost of each marginal, from its weighted cells."""
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
class Shares:
    """Shares of the budget.

    Attributes:
        columns: float64[columns], cost at which each column is measured once more.
        cliques: float64[cliques], cost at which each clique is measured.
        price: decrease of the weighted error for a unit of the budget.
    """

    columns: Floats
    cliques: Floats
    price: float


def shared(
    trade: Trade, sizes: Floats, members: Sequence[Sequence[int]], weights: Floats, rounds: int = 400
) -> Shares:
    """The shares of columns and chosen cliques for which the expected weighted error is least.

    A clique's sums measure its columns too: at a cost B it is worth a cost of B x n_c/n to a column
    of n_c places; but not to values that count in groups there. The sum of weighted errors is convex in the
    costs. Each round multiplies every cost by a power of the decrease in error that a unit brings there; only
    the minimum is left unchanged by this.

    Args:
        trade: the budget, and the earlier measurements of the columns.
        sizes: float64[columns], number of places, as in the cliques.
        members: the columns of each clique.
        weights: float64[cliques], weight of each clique.
        rounds: number of adjustments of the costs.
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
    return Shares(costs[:d], costs[d:], float(bring.max()))
