"""Outline of a structure strategy: the questions and cells that a plan has to expect.

Invariant: an outline is made of public facts, mostly the columns' sizes, and is never exceeded.
A strategy that makes fewer choices than outlined leaves their price to its last step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique


@dataclass(frozen=True)
class Shares:
    """Shares of the budget by step; together at most 1.

    The last step before the exam takes what is left but for the exam's share.

    Attributes:
        cutoff: for the rows that the contribution bound cuts off.
    """

    one_way: Fraction
    structure: Fraction
    marginals: Fraction
    domain: Fraction = Fraction(0)
    statistics: Fraction = Fraction(0)
    exam: Fraction = Fraction(0)
    cutoff: Fraction = Fraction(0)

    def beside(self, domain: Fraction, statistics: Fraction, exam: Fraction, cutoff: Fraction) -> Shares:
        """The same split of what domain discovery, statistics, exam and cut-off leave, with their shares."""
        rest = 1 - domain - statistics - exam - cutoff
        parts = self.one_way * rest, self.structure * rest, self.marginals * rest
        return Shares(*parts, domain, statistics, exam, cutoff)


@dataclass(frozen=True)
class StrategyOutline:
    """The expected questions of a strategy, for a table of given sizes.

    Attributes:
        rounds: number of fits while choosing and measuring: 1 if all cliques are measured at once, 0 without
            cliques.
        choices: largest number of private choices by the exponential mechanism.
        errors: largest number of noisy distances.
        cliques: expected number of measured cliques.
        cells: largest number of cells of the model, before the bound of the plan.
        shares: default split of the budget.
        distance_share: the part of the structure step's budget for noisy distances, if the strategy asks
            for choices too.
    """

    rounds: int
    choices: int
    errors: int
    cliques: int
    cells: int
    shares: Shares
    distance_share: Fraction = Fraction(1, 2)


class Outline(Protocol):
    """The part of a structure strategy that a plan needs."""

    @property
    def name(self) -> str:
        """The name in the config."""
        ...

    @property
    def max_cells(self) -> int:
        """Largest number of cells of the model's junction tree, if the config sets no bound."""
        ...

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        """The expected questions.

        If the accountant is free to be chosen, a plan asks under each measure that suits, and uses
        the one under which the last step has the least noise.

        Args:
            sizes: number of cells of each column, in table order.
            wanted: pairs that every structure includes.
            measure: the measure of losses.
            noise: "gaussian" or "laplace".
        """
        ...
