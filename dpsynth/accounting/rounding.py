"""Directed rounding: costs up, budgets down, never to the nearest."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter

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
