"""Searches for the domain of a column before it can be counted: its ends, bins, values or prefixes.

Until then a column has provisional cells: as many as there can be at most, so that a plan made with them is
never exceeded.

Invariant: a search is public. It comes from the config alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpsynth.columns.number_texts import PLAIN, NumberFormat

Edges = Literal["equal", "quantiles", "tree"]


@dataclass(frozen=True)
class NumberSearch:
    """Bins of numbers whose ends, or edges, are found.

    Attributes:
        low, high: the ends, where they are public; both None where they are to be found.
        edges: "equal": bins of one width between the ends. "quantiles": bins of about as many rows each.
            "tree": narrow bins, down to single values, where there are many rows, and wide bins elsewhere.
        bins: largest number of bins.
        decimals: decimals of the values; 0 for integers.
        integer: true if values are whole numbers.
        form: format of the values.

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
        known: public values, which are cells whatever is found.
        most: largest number of values, public ones included.
        other: label of the cell of all other values.
    """

    known: tuple[str, ...]
    most: int
    other: str


@dataclass(frozen=True)
class PrefixSearch:
    """Prefixes of texts of a pattern, as long as enough rows have each.

    Attributes:
        pattern: see ``text_patterns``.
        levels: lengths of a prefix, rising; prefixes of the first length are never merged.
        most: largest number of prefixes.
    """

    pattern: str
    levels: tuple[int, ...]
    most: int


Search = NumberSearch | ValueSearch | PrefixSearch
