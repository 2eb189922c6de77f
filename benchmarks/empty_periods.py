"""The price of a period without rows, and how surely its number of rows gives it away.

    python benchmarks/empty_periods.py CONFIG...

By the plans alone, which read no table. For each config: the shares of the budget that are spent before a
release of an empty table pauses, by its number of rows, and that would be spent by the end of its single
columns; the standard deviation of the number of rows; the probabilities that a table is paused by it,
by its rows in standard deviations.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

import dpsynth
from dpsynth.accounting.calibration import Calibration, noise_named
from dpsynth.columns.measurement import Measurement
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.plan.plan import Plan
from dpsynth.statistics.single_columns import empty_table

DEVIATIONS = (0, 1, 2, 3, 4, 5, 6)


@dataclass(frozen=True)
class Look:
    """The look at the number of rows that a plan has.

    Attributes:
        scale: the parameter of its noise.
        stddev: its standard deviation, in rows.
        chances: the probability of each value of the noise.
        limit: the largest noisy number of rows at which a table seems to be empty.
    """

    scale: float
    stddev: float
    chances: dict[int, float]
    limit: int

    @classmethod
    def of(cls, plan: Plan) -> Look:
        """The look of a plan whose number of rows is not public."""
        bought = Calibration(plan.neighbours, plan.measure, noise_named(plan.noise)).counts(plan.total_price)
        reach = ceil(12 * bought.stddev) + 2
        values = np.arange(-reach, reach + 1)
        odds = values**2 / (2 * bought.scale**2) if plan.noise == "gaussian" else abs(values) / bought.scale
        weights = np.exp(-odds)
        empty = [
            value
            for value in values.tolist()
            if empty_table(Measurement((), np.array(value), plan.noise, bought.scale))
        ]
        chances = dict(zip(values.tolist(), (weights / weights.sum()).tolist(), strict=True))
        return cls(bought.scale, bought.stddev, chances, max(empty))

    def paused(self, rows: int) -> float:
        """The probability that a table of so many rows is paused."""
        return sum(chance for value, chance in self.chances.items() if rows + value <= self.limit)


def main(configs: list[str]) -> None:
    """Print a row of a table for each config."""
    print("| config | by the rows | by the columns | sd | limit |", *(f"{d} sd |" for d in DEVIATIONS))
    print("|---|" + "---|" * (len(DEVIATIONS) + 4))
    for config in configs:
        plan = inputs_of(dpsynth.load(config)).plan
        of_units = plan.bound_price + plan.cutoff_price
        searched = sum((search.price for search in plan.searches), of_units)
        columns = sum(step.share for step in plan.steps if step.step == "one_way")
        share = float((of_units + plan.total_price) / plan.budget)
        look = Look.of(plan)
        figures = (
            Path(config).stem,
            f"{100 * share:.2f} %",
            f"{100 * (float(searched / plan.budget) + columns):.1f} %",
            f"{look.stddev:.0f}",
            f"{look.limit}",
            *(f"{look.paused(round(d * look.stddev)):.4f}" for d in DEVIATIONS),
        )
        print("|", " | ".join(figures), "|")


if __name__ == "__main__":
    main(sys.argv[1:])
