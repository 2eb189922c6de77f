"""Exclusive ors of three to five columns of two places, found by a scan of parities.

A column that is the exclusive or of others depends on them in a way that shows in no smaller set of columns.
Then the parity of all of them is the number of rows, or its negative. The parities of all sets are one
question: a row moves each by 1, so m of them have sqrt(m) times the noise of one, which the parity of most
rows exceeds where the table is large. Of the sets whose parity lies far from the model's, the farthest ones
are measured as marginals.

Invariant: whether the scan is asked, of which sets and at what price follows from the columns, the budget,
the noisy number of rows and noisy distances of pairs. It is asked only where the exclusive or of most rows
would stand out, and for no more than that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import Estimates
from dpsynth.columns.parities import FEWEST, number_of_sets, parity_sets
from dpsynth.columns.workload import Workload
from dpsynth.model import MarkovRandomField, sampled_parities
from dpsynth.plan.questions import Door

Floats = NDArray[np.float64]

TWO, WIDEST = 2, 5
"""Places of each column, and columns of the largest sets: their marginals have 32 cells."""
FEWEST_COLUMNS = 4
"""A table of three such columns has one triple, which the distances of triples tell."""
SHOWN = 0.25
"""Noisy distance of a pair from independence, as a share of the rows, above which neither column is scanned:
the exclusive or of three coins or more, fair or not, never shows so far in a pair."""
MOST_SHARE = Fraction(1, 25)
"""Largest share of the rest of the budget for a scan."""
BEYOND, SURE = 0.25, 2.4
"""Standard deviations of noise: those beyond the largest one to be expected from which a parity counts as
found, and those by which the parity of an exclusive or that always holds lies above that."""
MOST_SETS, MOST_WORK = 1 << 19, 1 << 39
"""Largest number of sets, and of sets times rows: about 15 s of one processor."""
MOST_FOUND = 10
"""Largest number of sets that are measured."""
_LEAST_PART = 1e-3
"""Least precision of a scan, as a part of what its largest price buys."""
_TRIED = 40
"""Sets far from a sample of the model that are compared with what is known of it."""


@dataclass(frozen=True)
class Scan:
    """A question about the parities of all sets of three to ``most`` of some columns."""

    columns: Clique
    most: int
    price: Fraction

    def asked(self, door: Door) -> NoisyParities:
        return NoisyParities(self, *door.parities(self.columns, self.most, self.price))


@dataclass(frozen=True, eq=False)
class NoisyParities:
    """The answer to a scan.

    Attributes:
        values: int64[sets], in the order of ``parity_sets``.
        stddev: standard deviation of the noise of each.
    """

    scan: Scan
    values: NDArray[np.int64]
    stddev: float

    def exclusive_ors(self, model: MarkovRandomField, estimates: Estimates) -> dict[Clique, float]:
        """The sets whose parity lies beyond noise from what is known, and by how many rows; farthest first.

        Of two sets, one of which holds the other, the nearer one is left out: each column that leans to one
        value makes another such set of every exclusive or.

        Args:
            model: the model of the tree; a sample of it shows which sets to compare with ``estimates``.
            estimates: what is known, also beside the tree.
        """
        columns, most = self.scan.columns, self.scan.most
        apart = np.abs(self.values - sampled_parities(model, columns, most))
        least = self.stddev * _stands_out(len(apart))
        sets = list(parity_sets(columns, most))
        found: dict[Clique, float] = {}
        for i in np.argsort(-apart, kind="stable")[:_TRIED].tolist():
            clique = sets[i]
            if apart[i] <= least or len(found) == MOST_FOUND:
                break
            if any(set(clique) <= set(c) or set(c) <= set(clique) for c in found):
                continue
            beyond = abs(float(self.values[i]) - _parity(estimates.marginal(clique)))
            if beyond > least:
                found[clique] = beyond
        return found


def scan_of(
    sizes: Mapping[str, int],
    workload: Workload,
    rows: float,
    budget: Fraction,
    error: Callable[[Fraction, int], float],
) -> Scan | None:
    """The scan of the largest sets that a budget allows; None if it allows none.

    Args:
        sizes: number of places of each column.
        workload: without a scan if it leaves out a pair, or all sets of three columns.
        rows: number of rows, public or noisy.
        budget: rest of the budget.
        error: from a price and a number of parities to the standard deviation of each, in rows.
    """
    columns = tuple(c for c, size in sizes.items() if size == TWO)
    found, dearest = None, budget * MOST_SHARE
    few = len(columns) < FEWEST_COLUMNS or rows < 1 or workload.widest < FEWEST
    if few or workload.pair_weights().min() <= 0:
        return None
    for most in range(FEWEST, min(WIDEST, len(columns)) + 1):
        number = number_of_sets(len(columns), most)
        times = error(dearest, number) * (_stands_out(number) + SURE) / rows
        if times > 1 or number > MOST_SETS or number * rows > MOST_WORK:
            break
        # The price of noise grows with the square of its precision; it is never 0.
        found = Scan(columns, most, dearest * Fraction(max(times, _LEAST_PART) ** 2))
    return found


def _stands_out(number: int) -> float:
    """Standard deviations of noise above which one of so many parities stands out of the noise of all."""
    return sqrt(2 * log(number)) + BEYOND


def _parity(counts: Floats) -> float:
    """The parity of a marginal of columns of two places."""
    for _ in range(counts.ndim):
        counts = counts[0] - counts[1]
    return float(counts)
