"""The values that many units reach: what a look lists, and from what it rounds bounds.

Invariant: a value or a bound follows from ``FEWEST_UNITS`` units at least; from persons, where rows repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TypeVar

FEWEST_UNITS = 10
"""Fewest units of a value that is listed, and of those who reach a bound."""

V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Reach:
    """The texts of a column, with those who have them.

    Attributes:
        counts: rows of each text.
        units: units of each text, ``FEWEST_UNITS`` of them at most; None where each row is a unit.
    """

    counts: Mapping[str, int]
    units: Mapping[str, Set[int]] | None = None

    def many(self, texts: Iterable[str]) -> bool:
        """True if many units have one of some texts."""
        return self.first([(True, text) for text in texts]) is not None

    def first(self, spelt: Iterable[tuple[V, str]]) -> V | None:
        """The first of some values, each with its text, that many units have or have passed; None if too few.

        Args:
            spelt: values with their texts, from an end on.
        """
        rows, units = 0, set[int]()
        for value, text in spelt:
            if self.units is None:
                rows += self.counts[text]
            else:
                units |= self.units[text]
            if max(rows, len(units)) >= FEWEST_UNITS:
                return value
        return None
