"""Independent: single columns only, as if they were independent of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import Shares, StrategyOutline
from dpsynth.strategy.strategy import Problem, Selection, Strategy


class Independent:
    """No measurement beyond the one-way marginals, which have the whole budget."""

    name = "independent"
    max_cells = 50_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        whole = Shares(Fraction(1), Fraction(0), Fraction(0))
        return StrategyOutline(0, 0, 0, 0, sum(sizes.values()), whole)

    def select(self, door: Door, problem: Problem) -> Selection:
        """The empty selection, at no cost; wanted pairs are not measured either."""
        return Selection((), (), problem.start)


STRATEGY: type[Strategy] = Independent
