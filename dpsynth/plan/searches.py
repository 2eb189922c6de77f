"""The searches of domain discovery, which come before all counts, and the price of each.

Invariant: prices are exact, add up to the share of the budget for domain discovery, and follow from the
config alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpsynth.columns.column import Column
from dpsynth.columns.search import NumberSearch, PrefixSearch, ValueSearch

Find = Literal["bounds", "quantiles", "tree", "values", "prefixes"]

_WEIGHTS: dict[Find, int] = {"bounds": 2, "quantiles": 3, "tree": 3, "values": 5, "prefixes": 3}
_ROWS_WEIGHT = 3
"""Weight of the question for the contribution bound."""


@dataclass(frozen=True)
class PlannedSearch:
    """One search for a part of a column's domain.

    Attributes:
        column: the column whose domain is to be found.
        find: "bounds", "quantiles", "tree", "values" or "prefixes".
        price: the most that all its questions may cost together, under the plan's measure.
        delta: the delta that all its questions may use together; 0 except for values.
    """

    column: str
    find: Find
    price: Fraction
    delta: Fraction = Fraction(0)


def planned_searches(
    columns: Iterable[Column], allowance: Fraction, delta: Fraction
) -> tuple[PlannedSearch, ...]:
    """The searches for some columns, in order, with their parts of an allowance.

    Args:
        columns: the columns of the table.
        allowance: the price of all searches together.
        delta: the delta of all searches for values together.
    """
    wanted = [(c.name, find) for c in columns for find in _finds(c)]
    whole = sum(_WEIGHTS[find] for _, find in wanted)
    values = sum(find == "values" for _, find in wanted)
    return tuple(
        PlannedSearch(
            column,
            find,
            allowance * _WEIGHTS[find] / whole,
            delta / values if find == "values" else Fraction(0),
        )
        for column, find in wanted
    )


def price_of_bound(columns: Iterable[Column], allowance: Fraction) -> Fraction:
    """The part of an allowance for the contribution bound; the rest goes to the searches."""
    whole = sum(_WEIGHTS[find] for c in columns for find in _finds(c))
    return allowance * _ROWS_WEIGHT / (_ROWS_WEIGHT + whole)


def _finds(column: Column) -> list[Find]:
    """Parts of a column's domain that are to be found, in order."""
    search = column.search
    if isinstance(search, ValueSearch):
        return ["values"]
    if isinstance(search, PrefixSearch):
        return ["prefixes"]
    found: list[Find] = []
    if isinstance(search, NumberSearch):
        if search.low is None:
            found.append("bounds")
        if search.edges != "equal":
            found.append(search.edges)
    return found
