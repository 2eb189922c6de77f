"""Neighbouring tables: the change that the guarantee hides, and the sensitivity of counts to it.

Invariant: sensitivities are exact integers, derived from the relation and the unit alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, cast

Relation = Literal["add_remove", "replace_one"]

Nameless = Literal["left_out", "together"]

Unit = Literal["row", "event", "person", "household"]
"""Kinds of units; an event is a row, and a household is told by its id as a person is."""

Calendar = Literal["day", "week", "month", "quarter", "year"]


@dataclass(frozen=True)
class PerPeriod:
    """The periods into which the rows of a person fall, each a unit of its own."""

    column: str
    every: Calendar


ROW, EVENT = "one row", "one event: a row"
"""The units that are rows, in words."""


Weighting = Literal["weights", "surplus"]
"""Ways to count the rows of a person other than once each."""


def whole_weight(max_rows: int) -> int:
    """The weight that all rows of a unit have together at most: rounding takes less than a 32nd of it.

    Up to a bound of 10 000 rows the sums of a block of rows are exact as floats, by surplus too.
    """
    return 32 * max_rows


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
        kind: the kind of unit; the words alone depend on it. Left out: a row, or a person.
        per: the periods that make several units of a person's rows; None where all of them are one.
        linked: True if a unit's one row has rows of linked tables in it; the words alone depend on it.

    A unit moves one cell of a marginal by at most ``max_rows`` when it comes or goes. When
    it is exchanged, up to ``max_rows`` leave one cell and as many enter another. Nameless rows that are left
    out move nothing; nameless rows taken together are bounded like the rows of any other unit.
    """

    relation: Relation
    person: str | None = None
    max_rows: int = 1
    nameless: Nameless = "left_out"
    kind: Unit | None = None
    per: PerPeriod | None = None
    linked: bool = False

    def __post_init__(self) -> None:
        if self.max_rows < 1 or (self.person is None and self.max_rows != 1):
            raise ValueError("max_rows is at least 1, and exactly 1 where a unit is a row")
        if (self.person is None) != (self.kind in (None, "row", "event")) and self.kind is not None:
            raise ValueError("a row and an event have no column, a person and a household have one")
        if self.person is None and self.per is not None:
            raise ValueError("only the rows of a person fall into periods")

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
    def weighted(self) -> Neighbours:
        """The neighbours of counts by weights, where each row of a unit of n rows counts floor(W/n) times.

        W is ``whole_weight``. A row that counts t times is t rows in one cell, and those of a unit count
        n floor(W/n) times together, which is at most W. A unit of one row attains it.
        """
        return replace(self, max_rows=whole_weight(self.max_rows))

    @property
    def surplus(self) -> Neighbours:
        """The neighbours of sums by surplus, where a row of a unit of n rows counts (2n - k - 1) floor(W/n).

        A unit moves such sums by |2n - k - 1| n floor(W/n) together, which is at most (k - 1) W for n from 1
        to k: one of 1 row attains it. Sums of an exchanged unit may move one sum by twice that, in L2 as in
        L1, as one unit may take off what the other adds. So it counts as one with twice the rows that comes.
        """
        most = (self.max_rows - 1) * whole_weight(self.max_rows)
        twice = 2 if self.relation == "replace_one" else 1
        return replace(self, relation="add_remove", max_rows=max(twice * most, 1))

    @property
    def rows_public(self) -> bool:
        """True if the number of rows is the same in all neighbours, hence public.

        It is so for exchanged rows. A person may bring fewer or more of them, and a root may lack its key.
        """
        return self.relation == "replace_one" and self.person is None

    @property
    def unit(self) -> str:
        if self.person is None:
            return EVENT if self.kind == "event" else ROW
        whose = f"one {self.kind or 'person'}"
        if self.linked:
            return f"{whose}: all rows with the same {self.person}{_LINKED}"
        if self.per is None:
            return f"{whose}: all rows with the same {self.person}, at most {self.max_rows}"
        return (
            f"{whose} in one {self.per.every}: all rows with the same {self.person} and the same "
            f"{self.per.every} of {self.per.column}, at most {self.max_rows}"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell whose row it is, and in which period; none where a unit is a row."""
        if self.person is None:
            return ()
        return (self.person,) if self.per is None else (self.person, self.per.column)


_LINKED = ", in all tables"

_WORDS = re.compile(
    r"one (?P<kind>person|household)(?: in one (?P<every>day|week|month|quarter|year))?: "
    r"all rows with the same (?P<column>.+?)(?: and the same (?P=every) of (?P<dates>.+))?"
    rf"(?:, at most (?P<most>[0-9]+)|{_LINKED})",
    re.DOTALL,
)


def neighbours_in_words(relation: Relation, unit: str, nameless: Nameless = "left_out") -> Neighbours:
    """The neighbours whose unit has these words, as a manifest states them.

    >>> near = Neighbours("add_remove", "who", 3, kind="household")
    >>> neighbours_in_words("add_remove", near.unit) == near
    True
    """
    found = _WORDS.fullmatch(unit)
    if found is None:
        return Neighbours(relation, kind="event" if unit == EVENT else None)
    every = cast("Calendar | None", found["every"])
    per = None if every is None or found["dates"] is None else PerPeriod(found["dates"], every)
    kind: Unit | None = "household" if found["kind"] == "household" else None
    most, linked = int(found["most"] or 1), found["most"] is None
    return Neighbours(relation, found["column"], most, nameless, kind, per, linked)


def protected(unit: str) -> str:
    """The protected unit without its contribution bound: one row, or one person.

    The contribution bound is a means of protection, not a part of the unit: it is the person who comes or
    goes, with all rows there are. So guarantees with different bounds are about the same unit.

    >>> protected(Neighbours("add_remove", "who", 3).unit)
    'one person: all rows with the same who'
    """
    return unit.rpartition(", at most ")[0] or unit.removesuffix(_LINKED)


def left_unprotected(unit: str) -> str:
    """A sentence on what a unit in words doesn't protect.

    >>> left_unprotected(ROW)
    'A person with several rows, as a whole: one row is protected, all rows of one person less.'
    """
    near = neighbours_in_words("add_remove", unit)
    if near.person is None:
        if near.kind == "event":
            return (
                "A person with several events, as a whole: one event is protected, all events of one person "
                "less, and so is the fact that she is in the table."
            )
        return "A person with several rows, as a whole: one row is protected, all rows of one person less."
    if near.per is not None:
        return (
            f"A {near.kind or 'person'} over several periods: what happened in one {near.per.every} is "
            "protected, and that somebody is in the table at all, or a habit of many "
            f"{near.per.every}s, is protected less. Rows whose {near.per.column} is no date count as one "
            "period."
        )
    if near.kind == "household":
        return (
            f"What rows of several {near.person} together say of one person: relatives elsewhere, or earlier "
            "households of the same person. A single member is protected as the whole household is."
        )
    return f"A person with several {near.person}, as a whole; and what other people's rows say of somebody."
