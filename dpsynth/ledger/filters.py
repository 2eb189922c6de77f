"""Privacy filters: the sums of the costs of a dataset's releases, and their bounds under its cap.

A dataset has one filter, for good. There are three, each valid where releases are chosen from the outputs of
earlier releases, because it stops a sum of costs at a bound fixed beforehand:

    sequential  sum of epsilon <= E and sum of delta <= D   (Rogers, Roth, Ullman and Vadhan 2016)
    zcdp        sum of rho <= the rho that implies (E, D)   (Feldman and Zrnic 2021; Whitehouse et al. 2023)
    gdp         sum of mu^2/2 <= that of (E, D)             (Smith and Thakurta 2022; Koskela et al. 2023)

It would not be valid to admit a release that any one of them allows: the outputs could then choose the bound
that is kept, and the deltas of the bounds would add up.

Approximate deltas. Partition selection has a delta beside rho and mu
(``dpsynth.accounting.events``), and these deltas add up too. So zcdp and gdp keep a share of D
for them, fixed beforehand: sum of approximate deltas <= share D, and sum of rho or mu^2/2 <= the budget that
implies (E, D - share D). It would not be valid to give approximate deltas the remainder of rho, or a share
from the first of them on: the next spending could be approximate deltas after outputs of small loss, and rho
after outputs of large loss, and on average that comes to more than D.

Parts. Under add/remove a neighbour is one person more or less. Where it is declared that all rows of a person
lie in one part of the table (``Slice``), she is in no release of another part, and has a filter of her own,
over the releases that she may be in. The total is the sum of the person with the largest: all releases about
the whole table, and for each column the largest sum over the parts that share a point of it. A day and a
value, or points of two columns, are never disjoint by declaration; their largest sums are added.

Invariant: exact, with costs rounded up and bounds down; the total is at least the sum of any one person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TypeVar

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.slices import Slice, value_of

Filter = Measure
"""A privacy filter, which bounds the sum of one measure; stored by the name of the measure's accountant."""

Figures = tuple[Fraction, ...]
"""The figures that a filter adds up: epsilon and delta; or rho, or mu^2/2, and approximate deltas."""

NOTHING_COUNTED: Figures = (Fraction(0), Fraction(0))
"""The sum of no releases."""

T = TypeVar("T")


@dataclass(frozen=True)
class Counted:
    """A cost, and the part of the table whose persons bear it; None where everyone may bear it."""

    cost: Cost
    part: Slice | None = None


def figures(kind: Filter, cost: Cost) -> Figures | None:
    """A cost as a filter counts it; None where it is not bounded that way."""
    loss = kind.exact_cost(cost)
    return None if loss is None else (loss, cost.approximate_delta if kind.needs_delta else cost.amount.delta)


@lru_cache(maxsize=256)
def bound(kind: Filter, cap: Amount, approximate_share: Fraction = Fraction(0)) -> Figures:
    """The bound of a filter under a cap, rounded down.

    Args:
        approximate_share: the share of D that zcdp and gdp keep for approximate deltas, below 1.

    At a delta of 0 no amount of Gaussian noise is enough, so zcdp and gdp admit nothing.
    """
    if not kind.needs_delta:
        return (cap.epsilon, cap.delta)
    if cap.delta == 0 or cap.epsilon == 0:
        return NOTHING_COUNTED
    return (kind.budget(cap.epsilon, cap.delta * (1 - approximate_share)), cap.delta * approximate_share)


@lru_cache(maxsize=256)
def epsilon_at(kind: Filter, total: Figures, delta: Fraction) -> Fraction:
    """The epsilon, rounded up, of a total; for zcdp and gdp at a delta above 0, beside approximate deltas."""
    return total[0] if total[0] == 0 else kind.epsilon(total[0], delta)


def plus(one: Figures, other: Figures) -> Figures:
    """The sum, figure by figure."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


def within(total: Figures, most: Figures) -> bool:
    """True if no figure exceeds the other's."""
    return all(a <= b for a, b in zip(total, most, strict=True))


def total_of(kind: Filter, counted: Iterable[Counted]) -> Figures:
    """The total of releases, for the person with the largest sum.

    Raises:
        ValueError: a cost is not bounded under the filter's measure.
    """
    total = NOTHING_COUNTED
    columns: dict[_Axis, list[tuple[Slice, Figures]]] = {}
    for release in counted:
        spent = figures(kind, release.cost)
        if spent is None:
            raise ValueError(f"a cost has no figure for the filter {kind.accountant}")
        if release.part is None:
            total = plus(total, spent)
        else:
            columns.setdefault(_axis(release.part), []).append((release.part, spent))
    for (_, dated), parts in columns.items():
        total = plus(total, _most_on_a_day(parts) if dated else _most_at_a_value(parts))
    return total


def together(releases: Sequence[T], parts: Sequence[Slice | None]) -> tuple[tuple[T, ...], ...]:
    """The sets of releases that one person's rows may be in; none lies within another.

    Args:
        releases: in any order, which the sets keep.
        parts: the part of each that is composed in parallel; None where anyone may be in it.
    """
    everyone = {i for i, part in enumerate(parts) if part is None}
    columns: dict[_Axis, list[int]] = {}
    for i, part in enumerate(parts):
        if part is not None:
            columns.setdefault(_axis(part), []).append(i)
    choices = (_at_one_point({i: parts[i] for i in found}) for found in columns.values())
    sets = sorted(sorted(everyone.union(*choice)) for choice in product(*choices))
    return tuple(tuple(releases[i] for i in one) for one in sets)


_Axis = tuple[str, bool]
"""A column, and true if its parts are intervals of days; other parts may overlap."""


def _axis(part: Slice) -> _Axis:
    return part.column, part.start is not None


def _most_at_a_value(parts: Sequence[tuple[Slice, Figures]]) -> Figures:
    sums: dict[str, Figures] = {}
    for part, spent in parts:
        value = value_of(part.label)
        sums[value] = plus(sums[value], spent) if value in sums else spent
    return tuple(map(max, zip(*sums.values(), strict=True)))


def _most_on_a_day(parts: Sequence[tuple[Slice, Figures]]) -> Figures:
    changes: dict[date, Figures] = {}
    for part, spent in parts:
        assert part.start is not None and part.stop is not None
        for day, change in ((part.start, spent), (part.stop, tuple(-figure for figure in spent))):
            changes[day] = plus(changes[day], change) if day in changes else change
    running = most = (Fraction(0),) * len(parts[0][1])
    for day in sorted(changes):
        running = plus(running, changes[day])
        most = tuple(map(max, zip(most, running, strict=True)))
    return most


def _at_one_point(parts: dict[int, Slice | None]) -> list[frozenset[int]]:
    """The sets of parts by one column that share a point, but for those within another."""
    points: dict[object, set[int]] = {}
    for part in parts.values():
        assert part is not None
        # Every set of days that share a point shares the first day of one of them.
        points[value_of(part.label) if part.start is None else part.start] = set()
    for point, held in points.items():
        held.update(i for i, part in parts.items() if part is not None and _holds(part, point))
    sets = {frozenset(held) for held in points.values()}
    return [one for one in sets if not any(one < other for other in sets)]


def _holds(part: Slice, point: object) -> bool:
    if part.start is None or part.stop is None:
        return value_of(part.label) == point
    return isinstance(point, date) and part.start <= point < part.stop
