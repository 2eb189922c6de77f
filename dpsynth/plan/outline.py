"""What a plan must know of a structure strategy before anything is asked.

Invariant: an outline is made of public facts, the columns' sizes above all, and is never
exceeded: a strategy that makes fewer choices than it said leaves their price to its last step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dpsynth.accounting.measures import Measure
from dpsynth.domain.domain import Clique


@dataclass(frozen=True)
class Shares:
    """Shares of the budget by step; together at most 1. The last step takes what is left."""

    one_way: Fraction
    structure: Fraction
    marginals: Fraction
    domain: Fraction = Fraction(0)

    def after(self, domain: Fraction) -> Shares:
        """The same split of what is left beside a share for finding columns' places."""
        rest = 1 - domain
        return Shares(self.one_way * rest, self.structure * rest, self.marginals * rest, domain)


@dataclass(frozen=True)
class Outlined:
    """What a strategy will do with a table of given sizes.

    Attributes:
        rounds: how many times the model is fitted while choosing and measuring; 1 where all is
            measured at once, 0 where nothing is.
        choices: private choices by the exponential mechanism, at most.
        errors: noisy distances asked for, at most; 0 if none.
        cliques: how many cliques it is expected to measure.
        cells: of the model, at most, before the bound of the plan.
        shares: default split of the budget.
        told: where it asks for choices and for noisy distances, the part of the structure step's
            budget that goes to the distances.
    """

    rounds: int
    choices: int
    errors: int
    cliques: int
    cells: int
    shares: Shares
    told: Fraction = Fraction(1, 2)


class Outline(Protocol):
    """What a plan must know of a structure strategy."""

    @property
    def name(self) -> str:
        """The name in the config."""
        ...

    @property
    def max_cells(self) -> int:
        """Most cells of the model's junction tree, where the config sets no bound."""
        ...

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> Outlined:
        """What it will do.

        Where the accountant is free to be chosen, a plan asks under each measure that suits, and uses
        the one under which the last step has least noise.

        Args:
            sizes: places of each column, in table order.
            wanted: pairs to be measured whatever is chosen.
            measure: how losses would be added up.
            noise: "gaussian" or "laplace".
        """
        ...
