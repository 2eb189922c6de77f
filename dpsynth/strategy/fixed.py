"""Fixed: the cliques that the config lists, without any choice.

It is for users who know what the table is for. Nothing is spent on structure.

Invariant: the measured cliques follow from the config alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique, Domain
from dpsynth.model import Triangulation
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import Shares, StrategyOutline
from dpsynth.strategy.allocation import measure_all
from dpsynth.strategy.strategy import Problem, Selection, Strategy

_SHARES = Shares(Fraction(1, 4), Fraction(0), Fraction(3, 4))


class Fixed:
    """The listed cliques and the wanted pairs, measured once, each at its share of the budget."""

    name = "fixed"
    max_cells = 50_000_000

    def __init__(self, cliques: Iterable[Clique] = ()) -> None:
        self._listed = tuple(tuple(c) for c in cliques)

    def _cliques(self, domain: Domain, wanted: Iterable[Clique]) -> list[Clique]:
        return list(dict.fromkeys(domain.canonical(c) for c in (*wanted, *self._listed)))

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        """No questions but the cliques; the cells are those of the junction tree that a fit will find."""
        domain = Domain(sizes)
        cliques = self._cliques(domain, wanted)
        cells = Triangulation.of(domain, cliques).cells
        return StrategyOutline(1, 0, 0, len(cliques), cells, _SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        return measure_all(door, problem, self._cliques(problem.domain, problem.wanted))


STRATEGY: type[Strategy] = Fixed
