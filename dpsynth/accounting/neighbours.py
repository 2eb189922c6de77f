"""Neighbouring tables: the change that the guarantee hides, and the sensitivity of counts to it.

Invariant: sensitivities are exact integers, derived from the relation and the unit alone.

Group privacy: the guarantee for several units that change together.

A group has k units where one person has k rows, or k ids: between the table with all of them and the table
with none lie k steps. Only epsilon without delta grows by the factor k. Invariant: results are rounded up.

Without an approximate delta the bound follows from the events. Let k units change: the counts of a Gaussian
answer move by k times the sensitivity, and so do scores and the counts of a Laplace answer. The noise stays.
So epsilon grows by k, mu by k, and rho by k^2, for each event and for their sum (Bun and Steinke 2016,
proposition 1.9; Dong, Roth and Su 2022, theorem 2.14). The proof for discrete noise in ``gaussian_dp`` holds
of k units as it stands, with k Delta for Delta. Epsilon is then taken at the same delta.

With an approximate delta the outcomes without failure differ at every step, so rho and mu don't grow that
way. The bound that always holds follows from (epsilon, delta)-DP alone, step by step:
(k epsilon, delta (1 + e^epsilon + ... + e^((k - 1) epsilon))) (Vadhan 2017, lemma 2.2). Under pure accounting
that is k epsilon, and the delta, if there is any, grows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal, cast

from dpsynth.accounting.amount import Amount, float_up
from dpsynth.accounting.cost import Cost
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.measures import GDP, PURE, ZCDP

GROUPS = (2, 5, 10, 20)
"""Sizes of groups whose guarantee is stated: a pair, a household, and larger ones."""

_EXACT = Context(prec=80)

_MARGIN = 1 + Fraction(1, 10**40)
"""Margin above the rounding error of 80 digits: epsilon is at least 1e-6."""

_FAR = 2000
"""An exponent of e beyond which no delta keeps the sum below 1."""


@lru_cache(maxsize=256)
def group_amount(guarantee: Guarantee, units: int) -> Amount | None:
    """The (epsilon, delta) of a group of units; None where delta would be 1 or more, which promises nothing.

    Kept: the manifest, the report and the README of a bundle each ask for the same ones.

    Args:
        guarantee: the guarantee of one unit.
        units: number of units that change together, at least 1.

    Raises:
        ValueError: there are no units.
    """
    if units < 1:
        raise ValueError("a group has at least one unit")
    epsilon, delta = Fraction(guarantee.epsilon), Fraction(repr(guarantee.delta))
    if units == 1:
        return Amount(epsilon, delta)
    if guarantee.mu is not None and not guarantee.approximate_delta:
        return Amount(GDP.epsilon((units * Fraction(guarantee.mu)) ** 2 / 2, delta), delta)
    if guarantee.rho is not None and not guarantee.approximate_delta:
        return Amount(ZCDP.epsilon(units**2 * Fraction(guarantee.rho), delta), delta)
    grown = delta * _powers(epsilon, units)
    return Amount(units * epsilon, grown) if grown < 1 else None


@lru_cache(maxsize=4096)
def group_cost(cost: Cost, units: int) -> Cost | None:
    """The cost of a release for a group of units; None where delta would be 1 or more.

    Without an approximate delta rho and mu^2/2 grow by units^2, and epsilon is that of the lesser of the two
    at the same delta; without any delta it grows by units. With an approximate delta, nothing but the grown
    (epsilon, delta) holds. But for outcomes of probability delta, its losses are those of an answer of pure
    epsilon (Kairouz, Oh and Viswanath 2015). So rho and mu^2/2 follow from epsilon, and all of delta is
    approximate.

    Args:
        cost: the cost for one unit.
        units: number of units that change together, at least 1.

    Raises:
        ValueError: there are no units.
    """
    if units < 1:
        raise ValueError("a group has at least one unit")
    if units == 1:
        return cost
    epsilon, delta = cost.amount.epsilon, cost.amount.delta
    if cost.approximate_delta:
        grown = Amount(units * epsilon, delta * _powers(epsilon, units))
        if grown.delta >= 1:
            return None
        return Cost(grown, *PURE.implied(grown.epsilon, mu_by_rho=True), grown.delta)
    rho, half = units**2 * cost.rho, cost.half_mu_squared
    half = None if half is None else units**2 * half
    if not delta:
        return Cost(Amount(units * epsilon), rho, half)
    least = ZCDP.epsilon(rho, delta)
    return Cost(Amount(least if half is None else min(least, GDP.epsilon(half, delta)), delta), rho, half)


def of_groups(guarantee: Guarantee) -> list[dict[str, float | None]]:
    """The guarantees of groups of several sizes, as JSON values; null where nothing is promised."""
    return [{"units": units, **_shown(guarantee, units)} for units in GROUPS]


def other_relation(guarantee: Guarantee) -> dict[str, object]:
    """The guarantee under the other relation, as JSON values: to exchange is to remove one and add another.

    Nothing follows for units that come or go from a guarantee for units that are exchanged: their number is
    taken to be public there.
    """
    if guarantee.neighbours == "replace_one":
        return {"neighbours": "add_remove", "epsilon": None, "delta": None}
    return {"neighbours": "replace_one", **_shown(guarantee, 2)}


def _shown(guarantee: Guarantee, units: int) -> dict[str, float | None]:
    amount = group_amount(guarantee, units)
    if amount is None:
        return {"epsilon": None, "delta": None}
    # The same delta as that of one unit is written as the config has it.
    same = amount.delta == Fraction(repr(guarantee.delta))
    return {
        "epsilon": float_up(amount.epsilon),
        "delta": guarantee.delta if same else float_up(amount.delta),
    }


def _powers(epsilon: Fraction, units: int) -> Fraction:
    """(e^(units epsilon) - 1)/(e^epsilon - 1), rounded up; capped where epsilon is extreme."""
    base = _EXACT.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    if not base:
        return Fraction(units)
    first, last = (Fraction(_EXACT.exp(min(base * k, Decimal(_FAR)))) - 1 for k in (1, units))
    return Fraction(units) if units == 1 else last / first * _MARGIN


Relation = Literal["add_remove", "replace_one"]

Nameless = Literal["left_out", "together"]

Unit = Literal["row", "event", "person", "household"]
"""Kinds of units; an event is a row, and a household is told by its id as a person is."""

Calendar = Literal["day", "week", "month", "quarter", "year"]


@dataclass(frozen=True)
class PerPeriod:
    """The periods into which the rows of a person fall, each a unit of its own.

    Attributes:
        column: the column of dates.
        every: the length of a period.
    """

    column: str
    every: Calendar


ROW, EVENT = "one row", "one event: a row"
"""The units that are rows, in words."""


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

    def __post_init__(self) -> None:
        """Reject a bound that the unit cannot have."""
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
    def rows_public(self) -> bool:
        """True if the number of rows is the same in all neighbours, hence public.

        It is so only for exchanged rows: an exchanged person may bring fewer or more rows.
        """
        return self.relation == "replace_one" and self.person is None

    @property
    def unit(self) -> str:
        """The privacy unit in words."""
        if self.person is None:
            return EVENT if self.kind == "event" else ROW
        whose = f"one {self.kind or 'person'}"
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


_WORDS = re.compile(
    r"one (?P<kind>person|household)(?: in one (?P<every>day|week|month|quarter|year))?: "
    r"all rows with the same (?P<column>.+?)(?: and the same (?P=every) of (?P<dates>.+))?, at most "
    r"(?P<most>[0-9]+)",
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
    return Neighbours(relation, found["column"], int(found["most"]), nameless, kind, per)


def protected(unit: str) -> str:
    """The protected unit without its contribution bound: one row, or one person.

    The contribution bound is a means of protection, not a part of the unit: it is the person who comes or
    goes, with all rows there are. So guarantees with different bounds are about the same unit.

    >>> protected(Neighbours("add_remove", "who", 3).unit)
    'one person: all rows with the same who'
    """
    return unit.rpartition(", at most ")[0] or unit


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
