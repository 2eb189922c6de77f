"""Outlines of made-up strategies."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import comb

from dpsynth.plan.spending import Shares, StrategyOutline

TREE = Shares(Fraction(3, 10), Fraction(1, 10), Fraction(6, 10))
SINGLE = Shares(Fraction(1), Fraction(0), Fraction(0))


@dataclass
class Outline:
    """A strategy of pairs that make a tree, in one of a few manners; remembers what it was asked.

    Attributes:
        manner: "choices" by the exponential mechanism; "distances", all pairs' at once; "both"; or
            "none".
    """

    name: str = "mst"
    manner: str = "choices"
    shares: Shares = TREE
    max_cells: int = 10_000_000
    rounds: int = 1
    asked: list = field(default_factory=list)

    def outline(self, sizes, wanted, measure, noise):
        self.asked.append((dict(sizes), tuple(wanted), measure, noise))
        edges = len(sizes) - 1
        free = edges - len(wanted)
        choices = free if self.manner in {"choices", "both"} else 0
        errors = comb(len(sizes), 2) if self.manner in {"distances", "both"} and free else 0
        largest, *others = sorted(sizes.values(), reverse=True)
        cells = max(sum(sizes.values()), largest * sum(others))
        return StrategyOutline(self.rounds if edges else 0, choices, errors, edges, cells, self.shares)


@dataclass
class Alone(Outline):
    """A strategy of single columns."""

    name: str = "independent"
    manner: str = "none"
    shares: Shares = SINGLE

    def outline(self, sizes, wanted, measure, noise):
        self.asked.append((dict(sizes), tuple(wanted), measure, noise))
        return StrategyOutline(0, 0, 0, 0, sum(sizes.values()), self.shares)
