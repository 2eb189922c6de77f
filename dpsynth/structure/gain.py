"""What a marginal is worth: its distance from the model, against the noise that its cells would have.

A cell measured at a cost B has an expected error of c B^-q (``Measure.error_power``). So a
marginal of n cells, of weight w and at a distance e from the model gains

    w (e - n c B^-q) - L B

at a cost B, if a unit of the budget brings L elsewhere. That is largest at B = (w n c q/L)^(1/(1+q)),
where it is w e - (1 + 1/q) L B. The price L at which all marginals of positive gain, and the single
columns that are measured again, take up the budget is where no shift of budget gains anything
(SWIFT, in google/dpsynth, allocates like this among all that its tree holds).

Invariant: public arithmetic on public numbers and noisy answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 200
_LEAST = 1e-9
"""The least part of a budget that anything has, so that it can grow again."""


@dataclass(frozen=True, eq=False)
class Trade:
    """How error falls with cost, and what the single columns still lack.

    Attributes:
        unit: expected error of a cell, in rows, at a cost of 1.
        power: q above.
        budget: cost of all that is measured together.
        known: float64[columns], the cost at which each column was measured already.
        burdens: float64[columns], weight x values of each column.
    """

    unit: float
    power: float
    budget: float
    known: Floats
    burdens: Floats

    def error(self, cost: float) -> float:
        """Expected error of a cell, in rows."""
        return self.unit * cost**-self.power

    def costs(self, burdens: Floats, price: float) -> Floats:
        """The best cost of each marginal of so many weighted cells."""
        return np.asarray((burdens * self.unit * self.power / price) ** (1 / (1 + self.power)))

    def gains(self, weighted: Floats, burdens: Floats, price: float) -> Floats:
        """What each marginal gains at its best cost; weighted distances in, in rows."""
        return weighted - (1 + 1 / self.power) * price * self.costs(burdens, price)

    def price(self, weighted: Floats, burdens: Floats) -> float:
        """The price at which what is worth measuring takes up the budget."""

        def taken(price: float) -> float:
            worth = self.gains(weighted, burdens, price) > 0
            again = np.maximum(self.costs(self.burdens, price) - self.known, 0)
            return float(self.costs(burdens, price)[worth].sum() + again.sum())

        low, high = 1e-300, 1e300
        for _ in range(_STEPS):
            middle = float(np.sqrt(low) * np.sqrt(high))
            low, high = (middle, high) if taken(middle) > self.budget else (low, middle)
        return high


@dataclass(frozen=True, eq=False)
class Shares:
    """How the budget is shared.

    Attributes:
        columns: float64[columns], cost at which each column is measured once more.
        cliques: float64[cliques].
        price: what a unit of the budget brings.
    """

    columns: Floats
    cliques: Floats
    price: float


def shared(
    trade: Trade, sizes: Floats, members: Sequence[Sequence[int]], weights: Floats, rounds: int = 400
) -> Shares:
    """Share a budget among columns and chosen cliques so that the expected weighted error is least.

    A clique's sums also tell of its columns: measured at a cost B, it is worth B x n_c/n to a column
    of n_c places. The sum of weighted errors is convex in the costs; each round multiplies them
    by a power of what a unit brings there, which leaves the minimum, and nothing else, as it is.

    Args:
        trade: budget, and what is known of the columns.
        sizes: float64[columns], places as the cliques have them.
        members: the columns of each clique.
        weights: float64[cliques], weight of each clique.
        rounds: how many times costs are adjusted.
    """
    d, k, q = len(sizes), len(members), trade.power
    clique = np.repeat(np.arange(k), [len(m) for m in members])
    column = np.array([c for m in members for c in m], dtype=np.intp)
    cells = np.array([np.prod(sizes[list(m)]) for m in members])
    told = sizes[column] / cells[clique]
    costs = np.full(d + k, trade.budget / (d + k))
    bring = costs
    for _ in range(rounds):
        precise = trade.known + costs[:d] + np.bincount(column, costs[d:][clique] * told, minlength=d)
        of_columns = q * trade.unit * trade.burdens * precise ** (-q - 1)
        of_cliques = q * trade.unit * weights * cells * costs[d:] ** (-q - 1)
        bring = np.concatenate(
            [of_columns, of_cliques + np.bincount(clique, of_columns[column] * told, minlength=k)]
        )
        costs = costs * bring**0.6
        costs = np.maximum(costs * (trade.budget / costs.sum()), trade.budget * _LEAST)
    costs *= trade.budget / costs.sum()
    return Shares(costs[:d], costs[d:], float(bring.max()))
