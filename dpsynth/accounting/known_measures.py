"""All measures by the names of their accountants, and those that a release may choose from.

Invariant: a name that was stored finds the same measure for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Literal, get_args

from dpsynth.accounting.beside_noise import PLD
from dpsynth.accounting.fixed_order import Advanced, Optimal, Renyi, advanced_for, optimal_for, renyi_for
from dpsynth.accounting.measures import MEASURES, Measure

AccountantName = Literal["sequential", "advanced", "optimal", "zcdp", "rdp", "gdp", "pld"]
"""Written in configs."""

ACCOUNTANTS: tuple[AccountantName, ...] = get_args(AccountantName)

_WITHOUT_ORDER: Mapping[str, Measure] = {
    **{measure.name: measure for measure in MEASURES},
    **{measure.accountant: measure for measure in (*MEASURES, Advanced(), PLD)},
}
_BY_ORDER: Mapping[str, Callable[[str], Measure]] = {"optimal": Optimal, "rdp": Renyi}
_MADE: Mapping[str, Callable[[Fraction, Fraction], Measure]] = {
    "advanced": advanced_for,
    "optimal": optimal_for,
    "rdp": renyi_for,
}


def measure_named(name: str) -> Measure:
    """The measure of a journal, or of an accountant in a manifest or a ledger; KeyError where there is none.

    >>> measure_named("rdp@17.25").accountant, measure_named("sequential").name
    ('rdp@17.25', 'pure')
    """
    kind, at, order = name.partition("@")
    return _BY_ORDER[kind](order) if at else _WITHOUT_ORDER[name]


def measure_for(accountant: str, epsilon: Fraction, delta: Fraction | None) -> Measure:
    """The measure of an accountant for a guarantee that is asked for, which fixes an order.

    Raises:
        KeyError: there is no such accountant, or it needs a delta and there is none.
    """
    if accountant not in _MADE:
        return _WITHOUT_ORDER[accountant]
    if delta is None:
        raise KeyError(accountant)
    return _MADE[accountant](epsilon, delta)


def kind_of(accountant: str) -> AccountantName:
    """The name of an accountant without its order; KeyError where there is none.

    >>> kind_of("rdp@17.25"), kind_of("gdp")
    ('rdp', 'gdp')
    """
    return {name: name for name in ACCOUNTANTS}[accountant.partition("@")[0]]  # type: ignore[index]
