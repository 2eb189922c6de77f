"""Amounts of privacy budget: an exact epsilon with an exact delta.

Invariant: both are rationals, at least 0, and arithmetic on them never rounds.

Directed rounding: costs up, budgets down, never to the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, nextafter
from numbers import Rational

PI = Fraction(355, 113)
"""Above pi, by less than 3e-7."""


def float_up(value: Fraction) -> float:
    """The least float not below a rational."""
    near = float(value)
    return near if Fraction(near) >= value else nextafter(near, inf)


def float_down(value: Fraction) -> float:
    """The greatest float not above a rational."""
    near = float(value)
    return near if Fraction(near) <= value else nextafter(near, -inf)


def decimal_of(value: Fraction) -> Decimal:
    """A rational in the decimal arithmetic in force, rounded to its digits."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def digits(value: Fraction, *, up: bool) -> str:
    """The text of a rational: six significant digits, rounded up or down.

    >>> digits(Fraction(1, 3), up=True), digits(Fraction(1, 10**6), up=False)
    ('0.333334', '1e-6')
    """
    context = Context(prec=6, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    short = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return f"{short:f}" if short == 0 or -4 <= short.adjusted() < 6 else f"{short:e}"


@dataclass(frozen=True)
class Amount:
    """A cost or a cap of (epsilon, delta)-DP.

    Raises:
        TypeError: a figure is a float or another type that may have been rounded.
        ValueError: a figure is negative.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for figure in (self.epsilon, self.delta):
            if not isinstance(figure, Rational):
                raise TypeError(f"an amount of budget is an exact fraction, not {type(figure).__name__}")
            if figure < 0:
                raise ValueError("an amount of budget is at least 0")

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta)

    def within(self, cap: Amount) -> bool:
        return self.epsilon <= cap.epsilon and self.delta <= cap.delta

    def capped(self, cap: Amount) -> Amount:
        return Amount(min(self.epsilon, cap.epsilon), min(self.delta, cap.delta))

    def shown(self, *, up: bool = True) -> str:
        """The amount in words: ``ε = 3, δ = 1e-6``."""
        return f"ε = {digits(self.epsilon, up=up)}, δ = {digits(self.delta, up=up)}"
