"""What is still to be found of a column before it can be counted: its ends, bins, values or beginnings.

Until then a column has cells that stand in for those to come: as many as there can be at most, so that a
plan made with them is never exceeded.

Invariant: a search is public. It comes from the config alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpsynth.domain.number_texts import PLAIN, NumberFormat

Edges = Literal["equal", "quantiles", "tree"]


@dataclass(frozen=True)
class NumberSearch:
    """Bins of numbers whose ends, or edges, are found.

    Attributes:
        low, high: the ends, where they are public; both None where they are to be found.
        edges: "equal" cuts what lies between the ends into bins of one width. "quantiles": bins of about as
            many rows each. "tree": narrow bins where there are many rows, single values among them, and
            wide ones elsewhere.
        bins: how many, at most.
        decimals: of the values; 0 for integers.
        integer: whether values are whole numbers.
        form: how cells are spelt.

    Raises:
        ValueError: one end without the other, or nothing to find.
    """

    low: float | None
    high: float | None
    edges: Edges
    bins: int
    decimals: int
    integer: bool
    form: NumberFormat = PLAIN

    def __post_init__(self) -> None:
        """Reject a search for nothing."""
        if (self.low is None) != (self.high is None):
            raise ValueError("both ends are public, or neither")
        if self.low is not None and self.edges == "equal":
            raise ValueError("bins of one width between public ends need no search")


@dataclass(frozen=True)
class ValueSearch:
    """Categories that are found, by partition selection.

    Attributes:
        known: values that are public; they are cells whatever is found.
        most: how many values there may be, those known included.
        other: label of the cell of all other values.
    """

    known: tuple[str, ...]
    most: int
    other: str


@dataclass(frozen=True)
class PrefixSearch:
    """Beginnings of texts of a pattern, as long as there are rows enough of each.

    Attributes:
        pattern: see ``text_patterns``.
        levels: lengths that a beginning may have, rising; a beginning of the first is always told apart.
        most: how many there may be.
    """

    pattern: str
    levels: tuple[int, ...]
    most: int


Search = NumberSearch | ValueSearch | PrefixSearch
