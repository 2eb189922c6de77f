"""The tail of the normal distribution in 120-digit decimals, as far out as anyone asks.

Invariant: results are within ``TAIL_ERROR`` of the truth, relatively. Doubles won't do: the
differences taken of these tails lose as many digits as epsilon is small, and a budget must be
rounded in a given direction.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

EXACT = Context(prec=120, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Arithmetic of 120 digits, whose exponents don't run out."""

TAIL_ERROR = Decimal("1e-80")

_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706"
    "79821480865132823066470938446"
)
_FAR = 10
_DEPTH = 200


def density(x: Decimal) -> Decimal:
    """phi(x), the density of the standard normal distribution."""
    with localcontext(EXACT):
        return (-x * x / 2).exp() / (2 * _PI).sqrt()


def mills_ratio(x: Decimal) -> Decimal:
    """(1 - Phi(x))/phi(x) for x >= 0.

    Below 10: sqrt(pi/2) e^(x^2/2) less the series of x^(2k+1)/(2k+1)!!. All its terms are
    positive, and once they halve from one to the next, the remainder is below the last
    term. The difference loses 24 digits at most.

    From 10 on: Laplace's continued fraction 1/(x + 1/(x + 2/(x + ...))), whose neighbouring
    convergents enclose the ratio. They differ by N!/(B_N B_(N+1)), where the denominators B
    are polynomials of x with positive coefficients, so the depth that is enough at 10 is
    enough beyond.

    Raises:
        ValueError: x is negative.
    """
    if x < 0:
        raise ValueError("x must be at least 0")
    with localcontext(EXACT):
        return _near(x) if x < _FAR else _far(x)


def _near(x: Decimal) -> Decimal:
    square = x * x
    term, total, odd = x, x, 1
    while 2 * square >= odd or term > total.scaleb(-115):
        odd += 2
        term = term * square / odd
        total += term
    return (_PI / 2).sqrt() * (square / 2).exp() - total


def _far(x: Decimal) -> Decimal:
    below = x
    for k in range(_DEPTH, 0, -1):
        below = x + k / below
    return 1 / below
