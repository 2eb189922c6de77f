"""Private contribution bound: rows used of each person, from noisy numbers of persons by their rows.

Invariant: public post-processing of one answer and the plan.
"""

from __future__ import annotations

from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import mean_absolute_error
from dpsynth.plan.plan import Plan


def contribution_bound(units: NDArray[np.int64], noise: float) -> int:
    """The bound under which a table of counts has the least expected error.

    With a bound of k, each row that is left out is missing from one cell of every table, and the noise of
    all its cells grows with k. So the error of a table, summed over its cells, is at most

        sum_j max(j - k, 0) units_j + k noise

    and the bound minimises this. In other words: the bound rises by one row as long as more persons have
    that row than it adds noise. The persons in the last cell of ``units``, who may have any number of
    rows, count the same for all bounds.

    Args:
        units: int64[rows], noisy numbers of persons with 1, 2, ... rows; the last number includes persons
            with more rows.
        noise: expected absolute error, in rows, of all cells of a table together, for each row of the bound.
    """
    rows = np.arange(1, len(units) + 1)
    lost = np.maximum(rows - rows[:, None], 0) @ units
    return int(rows[np.argmin(lost + noise * rows)])


def noise_per_row(plan: Plan, domain: Domain) -> float:
    """Expected absolute error of a table of one column, for each row of the bound: the mean over columns.

    Pairs lose as many rows and have more noise, but the fit of the model removes most of it: over all pairs
    about as much is left as in single columns (benchmarks/persons.py).

    Args:
        plan: the plan under the largest possible bound.
        domain: the domain of the same plan.
    """
    (singles,) = (step for step in plan.steps if step.step == "one_way")
    errors = (
        domain.sizes[column] * mean_absolute_error(plan.noise, scale)
        for column, scale in singles.scale_of.items()
        if column in domain.sizes
    )
    return fmean(errors) / plan.neighbours.max_rows
