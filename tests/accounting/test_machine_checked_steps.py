"""The numeric steps of the proofs, in interval arithmetic: whole ranges of parameters, not samples.

Every operation on a ball of ``flint.arb`` encloses the true results, so a comparison of balls that says yes
holds of all numbers in them. A box of parameters on which it says neither yes nor no is halved.
"""

from collections.abc import Callable, Iterator

import pytest

from dpsynth.accounting import measures as gaussian_dp
from dpsynth.accounting.amount import PI

flint = pytest.importorskip("flint")
arb = flint.arb
BITS = 160
"""Enough for differences of tails that are 1e-40 themselves."""

Ends = tuple[float, float]
Holds = Callable[..., bool | None]
"""True where a claim holds on a whole box, False where it fails in the middle, None where unknown."""


def proven(holds: Holds, *box: Ends, most: int = 20_000) -> bool:
    """True if a claim holds on a box, by halving its parts; False else False, after so many parts at most."""
    waiting, looked_at = [box], 0
    while waiting:
        part = waiting.pop()
        looked_at += 1
        known = holds(*part)
        if known is False or looked_at > most:
            return False
        if known is None:
            widest = max(range(len(part)), key=lambda i: part[i][1] - part[i][0])
            low, high = part[widest]
            for half in ((low, (low + high) / 2), ((low + high) / 2, high)):
                waiting.append((*part[:widest], half, *part[widest + 1 :]))
    return True


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    before, flint.ctx.prec = flint.ctx.prec, BITS
    yield
    flint.ctx.prec = before


def ball(ends: Ends) -> arb:
    """A ball that holds an interval of doubles."""
    low, high = arb(ends[0]), arb(ends[1])
    return low.union(high)


def decided(left: arb, right: arb) -> bool | None:
    """Whether left <= right for all numbers of two balls, for none, or not known."""
    if left <= right:
        return True
    return False if left > right else None


def density(x: arb) -> arb:
    return (-(x**2) / 2).exp() / (2 * arb.pi()).sqrt()


def cumulative(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


# The corner condition: a choice alone counts as pi epsilon^2/16 of mu^2/2 (``events.ExponentialEvent``).


def corner(z: Ends, steepness: arb) -> bool | None:
    """1 - (2 Phi(z) - 1)^2 <= exp(-steepness z^2)."""
    inside = ball(z)
    return decided(1 - (inside / arb(2).sqrt()).erf() ** 2, (-steepness * inside**2).exp())


def test_the_slope_at_the_corner_of_a_choice_is_largest_in_the_middle() -> None:
    # Near 0: 2 Phi(z) - 1 >= sqrt(2/pi) (z - z^3/6), and 1 - exp(-z^2/2) <= z^2/2.
    near = ball((0.0, 0.5))
    assert (2 / arb.pi()) * (1 - near**2 / 6) ** 2 >= arb(1) / 2
    assert proven(lambda z: corner(z, arb(1) / 2), (0.5, 6.0))
    # Beyond: 1 - (2 Phi(z) - 1)^2 <= 4 (1 - Phi(z)) <= 4 phi(z)/z.
    assert 4 / (6 * (2 * arb.pi()).sqrt()) <= 1
    assert arb(PI.numerator) / PI.denominator > arb.pi()


def test_a_choice_that_counts_as_less_would_be_seen() -> None:
    """2/pi is what the slope in the middle allows; a steeper bound fails there."""
    assert not proven(lambda z: corner(z, arb("0.64")), (0.01, 6.0))


# The discrete Gaussian as continuous noise of variance 0.999 sigma^2 - 0.6 (``gaussian_dp``, step 4).


def hidden(square: Ends, least: arb, share: arb) -> bool | None:
    """sigma^2 eta <= 0.0003 at s^2 = least + share sigma^2; eta = 2 sum of exp(-2 pi^2 s^2 k^2)."""
    variance = ball(square)
    decay = -2 * arb.pi() ** 2 * (least + share * variance)
    # From k = 4 on the terms fall faster than by a half.
    eta = 2 * ((decay).exp() + (4 * decay).exp() + (9 * decay).exp() + 2 * (16 * decay).exp())
    return decided(variance * eta, arb(str(gaussian_dp.DELTA_GROWTH)))


def test_the_factor_of_discrete_noise_is_right_at_every_sigma() -> None:
    least, share = (
        arb(f.numerator) / f.denominator for f in (gaussian_dp.LEAST_HIDDEN, gaussian_dp.HIDDEN_SHARE)
    )
    assert proven(lambda square: hidden(square, least, share), (0.0, 1000.0))
    # From 1000 on sigma^2 exp(-2 pi^2 k^2 share sigma^2) falls in sigma for every k.
    assert 2 * arb.pi() ** 2 * share * 1000 >= 1


@pytest.mark.parametrize(("least", "share"), [("0.59", "0.001"), ("0.6", "0.0008")])
def test_a_factor_with_less_noise_hidden_would_be_seen(least: str, share: str) -> None:
    assert not proven(lambda square: hidden(square, arb(least), arb(share)), (0.0, 1000.0), most=2000)
