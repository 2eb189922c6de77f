"""Means, sums and quantiles that are asked for, and which of them get a question of their own.

Invariant: all of it follows from the config. The price of each such question is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsynth.columns.domain import Clique
from dpsynth.plan.quantiles import PlannedQuantiles
from dpsynth.plan.sums import PlannedMean

SHARE_OF_ONE, LARGEST_SHARE = Fraction(1, 20), Fraction(3, 20)
"""Default share of the budget for one such question, and for all together."""


def share_of_statistics(number: int) -> Fraction:
    """The default share of the budget for so many questions of statistics."""
    return min(SHARE_OF_ONE * number, LARGEST_SHARE)


@dataclass(frozen=True)
class OwnQuestions:
    """The statistics that questions of their own could measure.

    Attributes:
        means: means and sums, each with the way in which it is measured.
        quantiles: quantiles, each with the way in which they are measured.
    """

    means: tuple[PlannedMean, ...] = ()
    quantiles: tuple[PlannedQuantiles, ...] = ()

    @property
    def summed(self) -> tuple[PlannedMean, ...]:
        """The means that are measured by sums."""
        return tuple(mean for mean in self.means if mean.summed)

    @property
    def finer(self) -> tuple[PlannedQuantiles, ...]:
        """The quantiles that are measured by finer counts."""
        return tuple(each for each in self.quantiles if each.price > 0)

    @property
    def number(self) -> int:
        """Number of questions."""
        return len(self._asked)

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose numbers are kept."""
        return frozenset(column for column, _ in self._asked)

    @property
    def price(self) -> Fraction:
        """The price of all questions together."""
        return sum((price for _, price in self._asked), Fraction(0))

    @property
    def _asked(self) -> list[tuple[str, Fraction]]:
        """Column and price of each question."""
        summed = [(mean.column, mean.price) for mean in self.summed]
        return [*summed, *((each.column, each.price) for each in self.finer)]

    def at(self, price: Fraction) -> OwnQuestions:
        """The same questions at another price each."""
        return OwnQuestions(
            tuple(replace(mean, price=price) if mean.price else mean for mean in self.means),
            tuple(replace(each, price=price) if each.price else each for each in self.quantiles),
        )

    def described_means(self) -> list[Mapping[str, object]]:
        """The means as plain JSON values."""
        return [
            {
                **_described(mean.column, mean.by, mean.found, mean.rows),
                "measured_by": "sums" if mean.summed else "counts",
                "half_width_by_sums": mean.by_sums,
                "half_width_by_counts": mean.by_counts,
            }
            for mean in self.means
        ]

    def described_quantiles(self) -> list[Mapping[str, object]]:
        """The quantiles as plain JSON values."""
        return [
            {
                **_described(each.column, each.by, each.found, each.rows),
                "at": list(each.levels),
                "measured_by": "finer counts" if each.price else "counts",
                "half_width_by_finer_counts": each.by_finer,
                "half_width_by_counts": each.by_counts,
            }
            for each in self.quantiles
        ]


def _described(column: str, by: Clique, found: bool, rows: int) -> Mapping[str, object]:
    return {
        "column": column,
        "by": list(by),
        "half_width_in": "the column's range" if found else "the column's unit",
        "rows": rows,
    }
