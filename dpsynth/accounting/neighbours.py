"""Neighbouring tables: the change that the guarantee hides, and the sensitivity of counts to it.

Invariant: sensitivities are exact integers, derived from the relation and the unit alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Relation = Literal["add_remove", "replace_one"]
Nameless = Literal["left_out", "together"]


@dataclass(frozen=True)
class Neighbours:
    """A neighbour relation with its privacy unit.

    Attributes:
        relation: "add_remove" (one unit more or less) or "replace_one" (one unit exchanged
            for another, their number unchanged).
        person: column whose equal values make one person, or None where a unit is a row.
        max_rows: rows of one unit that enter any count; 1 where a unit is a row.
        nameless: the treatment of rows without a person: "left_out" (they enter no count) or "together"
            (they are one person).

    A unit moves one cell of a marginal by at most ``max_rows`` when it comes or goes. When
    it is exchanged, up to ``max_rows`` leave one cell and as many enter another. Nameless rows that are left
    out move nothing; nameless rows taken together are bounded like the rows of any other unit.
    """

    relation: Relation
    person: str | None = None
    max_rows: int = 1
    nameless: Nameless = "left_out"

    def __post_init__(self) -> None:
        """Reject a bound that the unit cannot have."""
        if self.max_rows < 1 or (self.person is None and self.max_rows != 1):
            raise ValueError("max_rows is at least 1, and exactly 1 where a unit is a row")

    @property
    def l1(self) -> int:
        """Largest L1 distance of a marginal's counts between neighbours, in rows."""
        return self.max_rows * (2 if self.relation == "replace_one" else 1)

    @property
    def l2_squared(self) -> int:
        """Largest squared L2 distance of a marginal's counts between neighbours, in rows^2.

        k^2 when all k rows of a unit fall into one cell; 2k^2 when k leave one cell and k
        enter another.
        """
        return self.max_rows**2 * (2 if self.relation == "replace_one" else 1)

    @property
    def counted_once(self) -> Neighbours:
        """The neighbours of counts of units, each counted once and in one cell."""
        return replace(self, max_rows=1)

    @property
    def rows_public(self) -> bool:
        """True if the number of rows is the same in all neighbours, hence public.

        It is so only for exchanged rows: an exchanged person may bring fewer or more rows.
        """
        return self.relation == "replace_one" and self.person is None

    @property
    def unit(self) -> str:
        """The privacy unit in words."""
        if self.person is None:
            return "one row"
        return f"one person: all rows with the same {self.person}, at most {self.max_rows}"


def protected(unit: str) -> str:
    """The protected unit without its contribution bound: one row, or one person.

    The contribution bound is a means of protection, not a part of the unit: it is the person who comes or
    goes, with all rows there are. So guarantees with different bounds are about the same unit.

    >>> protected(Neighbours("add_remove", "who", 3).unit)
    'one person: all rows with the same who'
    """
    return unit.rpartition(", at most ")[0] or unit
