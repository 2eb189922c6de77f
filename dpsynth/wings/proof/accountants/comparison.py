"""Guarantees of several releases together, by each accountant.

Invariant: every epsilon is rounded up and carries the condition under which it holds. Some epsilons hold
only if all noise was fixed before the first release; they serve to compare, and
``dpsynth.ledger.views.least`` never picks them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from dpsynth.accounting.amount import Amount, digits, float_up
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.ledger.views import Composed, Statement
from dpsynth.wings.proof.accountants.advanced import adaptive_epsilon, optimal_epsilon
from dpsynth.wings.proof.accountants.numerical import Composition, pld_epsilon, rdp_epsilon

Comparable = Literal["sequential", "advanced", "optimal", "zcdp", "gdp", "rdp", "pld"]
"""An accountant by name: one of ``MEASURES``, by which releases count, or one that serves to compare."""

NAMES: dict[Comparable, str] = {
    "sequential": PURE.composition,
    "advanced": "advanced composition",
    "optimal": "optimal composition",
    "zcdp": ZCDP.composition,
    "gdp": GDP.composition,
    "rdp": "Rényi DP",
    "pld": "privacy loss distribution",
}
"""The accountants' names in words."""


def statements(releases: Sequence[Composed], delta: Fraction) -> tuple[Statement, ...]:
    """Each accountant's statement on releases that one person may all be in.

    Args:
        releases: in any order.
        delta: the delta at which epsilon is given; at 0 only "sequential" has one.
    """
    own = sum((release.cost.amount for release in releases), Amount())
    approximate = sum((release.cost.approximate_delta for release in releases), Fraction(0))
    pure = float_up(own.epsilon), float(own.delta)
    found = [Statement("sequential", NAMES["sequential"], *pure, True, _SEQUENTIAL)]
    for accountant, (adaptive, holds, epsilon_at) in _ACCOUNTANTS.items():
        # Parts of (epsilon, delta) have the approximate deltas in them; everything else holds beside them.
        left = delta if accountant in ("advanced", "optimal") else delta - approximate
        answer = epsilon_at(releases, left) if left > 0 else _left_nothing(approximate, delta)
        epsilon, why = (None, answer) if isinstance(answer, str) else (float_up(answer), holds)
        found.append(Statement(accountant, NAMES[accountant], epsilon, float(delta), adaptive, why))
    return tuple(found)


def statements_of(groups: Sequence[Sequence[Composed]], delta: Fraction) -> tuple[Statement, ...]:
    """Each accountant's statement where nobody is in releases of two groups: the largest over the groups.

    Args:
        groups: a release may be in several.
        delta: as of ``statements``.
    """
    different = {frozenset(Counter(group).items()): group for group in groups} or {frozenset(): ()}
    each = [statements(group, delta) for group in different.values()]
    return tuple(_most(of_one) for of_one in zip(*each, strict=True))


def _most(found: Sequence[Statement]) -> Statement:
    for statement in found:
        if statement.epsilon is None:
            return statement
    top = max(found, key=lambda statement: statement.epsilon or 0.0)
    return replace(top, delta=max(statement.delta for statement in found))


def _left_nothing(approximate_delta: Fraction, delta: Fraction) -> str:
    if not delta:
        return "It needs a δ above 0."
    return (
        f"What finding values takes of δ adds up to {digits(approximate_delta, up=True)}, which leaves "
        f"nothing of {digits(delta, up=False)}."
    )


def _parts(releases: Sequence[Composed]) -> list[Amount]:
    """The (epsilon, delta) of each answer, or of each release that isn't epsilon-DP answer by answer."""
    parts: list[Amount] = []
    for release in releases:
        answers = [Amount(e.epsilon, e.delta) for e in release.events if e.epsilon is not None]
        single = release.cost.pure and 0 < len(answers) == len(release.events)
        parts.extend(answers if single else [release.cost.amount])
    return parts


def _advanced(releases: Sequence[Composed], delta: Fraction) -> Fraction | str:
    parts = _parts(releases)
    left = delta - sum((part.delta for part in parts), Fraction(0))
    if left <= 0:
        return _nothing_left(parts, delta)
    return adaptive_epsilon(sum((part.epsilon**2 for part in parts), Fraction(0)), left)


def _optimal(releases: Sequence[Composed], delta: Fraction) -> Fraction | str:
    found = optimal_epsilon(parts := _parts(releases), delta)
    return _nothing_left(parts, delta) if found is None else found


def _nothing_left(parts: Sequence[Amount], delta: Fraction) -> str:
    own = digits(sum((part.delta for part in parts), Fraction(0)), up=True)
    return f"The releases' own δ add up to {own}, which leaves nothing of {digits(delta, up=False)}."


def _zcdp(releases: Sequence[Composed], delta: Fraction) -> Fraction | str:
    return ZCDP.epsilon(sum((release.cost.rho for release in releases), Fraction(0)), delta)


def _gdp(releases: Sequence[Composed], delta: Fraction) -> Fraction | str:
    total = Fraction(0)
    for release in releases:
        if release.cost.half_mu_squared is None:
            return "A release isn't bounded by mu: it counts by rho, and its noise is small or not known yet."
        total += release.cost.half_mu_squared
    return GDP.epsilon(total, delta)


def _rdp(releases: Sequence[Composed], delta: Fraction) -> Fraction | str:
    return rdp_epsilon(_composition(releases), delta)


def _pld(releases: Sequence[Composed], delta: Fraction) -> Fraction | str:
    bounded = [
        release if all(e.half_mu_squared is not None for e in release.events) else Composed(release.cost)
        for release in releases
    ]
    found = pld_epsilon(_composition(bounded), delta)
    if found is not None:
        return found
    return "It can't tell so small a δ or so large an ε, or releases of which little is known use up the δ."


def _composition(releases: Sequence[Composed]) -> Composition:
    return Composition(
        Counter(event for release in releases for event in release.events),
        Counter(release.cost for release in releases if not release.events),
    )


_SEQUENTIAL = "The ε, and the δ, of all releases added up; it holds also where budgets were set from answers."
_TOTAL = "it holds also where noise was set from answers, within a total fixed beforehand."
_FIXED = "it holds only if all noise was fixed before the first release."

_ACCOUNTANTS: dict[Comparable, tuple[bool, str, Callable[[Sequence[Composed], Fraction], Fraction | str]]] = {
    "advanced": (True, f"The squares of ε added up; {_TOTAL}", _advanced),
    "optimal": (False, f"The exact bound for answers of one ε, or nearly; {_FIXED}", _optimal),
    "zcdp": (True, f"The rho of all releases added up; {_TOTAL}", _zcdp),
    "gdp": (True, f"The mu² of all releases added up; {_TOTAL}", _gdp),
    "rdp": (False, f"Rényi divergences at the order that suits best; {_FIXED}", _rdp),
    "pld": (False, f"The distribution of the privacy loss; {_FIXED}", _pld),
}
