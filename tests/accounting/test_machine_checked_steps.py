"""The numeric steps of the proofs, in interval arithmetic: whole ranges of parameters, not samples.

Every operation on a ball of ``flint.arb`` encloses the true results, so a comparison of balls that says yes
holds of all numbers in them. A box of parameters on which it says neither yes nor no is halved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dpsynth.accounting import beside_noise
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


# A choice beside Gaussian noise counts as 0.14 epsilon^2 (``beside_noise``, step 3).

COST = arb(beside_noise.CHOICE.numerator) / beside_noise.CHOICE.denominator


def tent(u: arb, k: arb) -> arb:
    """2 (1 - u) int_0^u (u - x) n(x - k) dx + 2 u int_(u - 1)^0 (1 - u + x) n(x - k) dx."""

    def half(width: arb, at: arb) -> arb:
        mass = cumulative(width - at) - cumulative(-at)
        return (width - at) * mass + density(width - at) - density(at)

    return 2 * (1 - u) * half(u, k) + 2 * u * half(1 - u, -k)


def tent_by_u(u: arb, k: arb) -> arb:
    """Its derivative by u: the integral of 2 (1 - 2 u + x) n(x - k) over u - 1 < x < u."""
    mass = cumulative(u - k) - cumulative(u - 1 - k)
    return 2 * ((1 - 2 * u + k) * mass + density(u - 1 - k) - density(u - k))


def tent_by_k(u: arb, k: arb) -> arb:
    """Its derivative by k, by parts."""
    right, left = cumulative(u - k) - cumulative(-k), cumulative(-k) - cumulative(u - 1 - k)
    return 2 * u * left - 2 * (1 - u) * right


def spread(k: arb, cost: arb) -> arb:
    """int_0^(2 cost) n(1 + r, k) dr for k >= 0, by its antiderivative in the variance."""

    def up_to(deviation: arb) -> arb:
        return 2 * deviation * density(k / deviation) - 2 * k * cumulative(-k / deviation)

    return up_to((1 + 2 * cost).sqrt()) - up_to(arb(1))


def spread_by_k(k: arb, cost: arb) -> arb:
    return -2 * (cumulative(-k / (1 + 2 * cost).sqrt()) - cumulative(-k))


def beside(u: Ends, k: Ends, cost: arb, largest: float = float(beside_noise.LARGEST)) -> bool | None:
    """The tent is at most e^(-cost largest^2/4) times the spread, by the mean value theorem."""
    us, ks = ball(u), ball(k)
    at_u, at_k = (arb((ends[0] + ends[1]) / 2) for ends in (u, k))
    killed = (-cost * arb(largest) ** 2 / 4).exp()
    middle = killed * spread(at_k, cost) - tent(at_u, at_k)
    if middle < 0:
        return False
    by_u = -tent_by_u(us, ks) * (us - at_u)
    by_k = (killed * spread_by_k(ks, cost) - tent_by_k(us, ks)) * (ks - at_k)
    return True if middle + by_u + by_k > 0 else None


def test_a_choice_beside_as_much_gaussian_noise_counts_as_stated() -> None:
    """For k >= 0: the other half is its mirror image, u for 1 - u."""
    assert beside_noise.NOISE_LEFT == beside_noise.LARGEST / 2 == 0.5
    assert proven(lambda u, k: beside(u, k, COST), (0.0, 1.0), (0.0, 12.0))
    # Beyond 12: at most n(1, k - 1)/(2 (k - 1)), against the last 0.08 of the spread; the first falls faster.
    killed = (-COST / 4).exp()
    k = arb(12)
    least = killed * arb("0.08") * (-(k**2) / arb("2.4")).exp() / (2 * arb.pi() * (1 + 2 * COST)).sqrt()
    assert density(k - 1) / (2 * (k - 1)) < least and k - 1 >= k / arb("1.2")


def test_a_choice_that_counts_as_an_eighth_would_be_seen() -> None:
    """rho of a choice, epsilon^2/8, is not enough; nor is so large a choice."""
    assert not proven(lambda u, k: beside(u, k, arb(1) / 8), (0.0, 1.0), (0.0, 12.0), most=2000)
    assert not proven(lambda u, k: beside(u, k, COST, largest=1.6), (0.0, 1.0), (0.0, 12.0), most=2000)


@pytest.mark.parametrize(("u", "k"), [(0.3, 0.2), (0.9, 2.5), (0.5, -1.0)])
def test_the_closed_forms_are_those_of_the_integrals(u: float, k: float) -> None:
    from scipy.integrate import quad

    def green(x: float) -> float:
        return 2 * (u - max(x, 0.0)) * (1 - u + min(x, 0.0))

    def normal(x: float, variance: float = 1.0) -> float:
        return float(density(arb(x) / arb(variance).sqrt())) / variance**0.5

    found = quad(lambda x: green(x) * normal(x - k), u - 1, u, points=[0.0])[0]
    assert float(tent(arb(u), arb(k))) == pytest.approx(found, rel=1e-9)
    found = quad(lambda r: normal(abs(k), 1 + r), 0, 0.28)[0]
    assert float(spread(arb(abs(k)), COST)) == pytest.approx(found, rel=1e-9)
    for slope, function, at in (
        (tent_by_u(arb(u), arb(k)), lambda h: tent(arb(u) + h, arb(k)), 1e-5),
        (tent_by_k(arb(u), arb(k)), lambda h: tent(arb(u), arb(k) + h), 1e-5),
        (spread_by_k(arb(abs(k)), COST), lambda h: spread(arb(abs(k)) + h, COST), 1e-5),
    ):
        assert float(slope) == pytest.approx(
            float((function(arb(at)) - function(arb(-at))) / (2 * at)), rel=1e-6
        )
