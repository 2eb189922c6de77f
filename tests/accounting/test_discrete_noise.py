"""The discrete Gaussian is as private as Gaussian DP says: the lemma step by step, then exact losses."""

from fractions import Fraction
from itertools import product
from math import exp, pi

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp

from dpsynth.accounting import measures as gaussian_dp
from dpsynth.accounting.calibration import gaussian_within
from dpsynth.accounting.composition import compose
from dpsynth.accounting.events import GaussianEvent
from dpsynth.accounting.measures import GDP, continuous_variance, gdp_epsilon
from dpsynth.accounting.neighbours import Neighbours
from tests.accounting.laws import both, branching, run, understated
from tests.thinned import some

GROWTH = 3e-4


def ripple(deviation, x):
    """Theta(x): the sum over integers of the normal density about x, which has period 1."""
    reach = int(15 * deviation) + 2
    gaps = np.arange(-reach, reach + 1) - (x % 1)[..., None]
    return np.exp(-(gaps**2) / (2 * deviation**2)).sum(-1) / (deviation * (2 * pi) ** 0.5)


def split(sigma):
    """(s, tau) of the lemma."""
    rest = float(continuous_variance(Fraction(sigma)))
    return (sigma**2 - rest) ** 0.5, rest**0.5


def discrete(sigma, centre, z):
    weights = np.exp(-((np.arange(-20 * 20, 20 * 20 + 1)) ** 2) / (2 * sigma**2))
    return np.exp(-((z - centre) ** 2) / (2 * sigma**2)) / weights.sum()


def mixed(sigma, centre, z):
    """Law of integers drawn about the hidden x, by quadrature; the largest Theta/C; and C."""
    s, tau = split(sigma)
    x = np.linspace(centre - 14 * tau, centre + 14 * tau, 6001)
    normal = np.exp(-((x - centre) ** 2) / (2 * tau**2)) / (tau * (2 * pi) ** 0.5)
    theta, width = ripple(s, x), x[1] - x[0]
    constant = (normal * theta).sum() * width
    kernel = np.exp(-((z[:, None] - x) ** 2) / (2 * s**2)) / (s * (2 * pi) ** 0.5 * theta)
    return (kernel * normal * theta / constant).sum(-1) * width, (theta / constant).max(), constant


@pytest.mark.parametrize("sigma", [0.8, 1.0, 2.0, 3.0, 7.1, 20.0])
@pytest.mark.parametrize("centre", [0, -3])
def test_the_discrete_gaussian_is_exactly_drawn_about_a_nearly_normal_x(sigma, centre):
    z = np.arange(int(centre - 6 * sigma), int(centre + 6 * sigma) + 1)
    found, largest, constant = mixed(sigma, centre, z)
    assert found == pytest.approx(discrete(sigma, centre, z), rel=1e-9)
    s, tau = split(sigma)
    assert constant >= 1 - 1e-12
    # An answer of sensitivity 1 may multiply delta by this much.
    assert largest <= exp(GROWTH / tau**2) * (1 + 1e-12)
    assert largest == pytest.approx(1 + 2 * exp(-2 * pi**2 * s**2), abs=1e-5)


def test_a_centre_between_integers_would_be_told_apart():
    assert abs(mixed(0.8, 0.5, np.arange(3))[2] - mixed(0.8, 0, np.arange(3))[2]) > 1e-6


def test_the_factor_on_delta_covers_every_sigma():
    def loss(sigma):
        s, _ = split(sigma)
        return sigma**2 * 2 * sum(mpmath.exp(-2 * mpmath.pi**2 * s**2 * k**2) for k in range(1, 5))

    losses = [loss(sigma) for sigma in [*np.geomspace(0.776, 1e4, 400), (500 / pi**2) ** 0.5]]
    assert 2.67e-4 < max(losses) == losses[-1] < GROWTH == float(gaussian_dp.DELTA_GROWTH)


def divergence(sigma: float, shift: int, order: float) -> float:
    """The Renyi divergence of discrete Gaussian noise from the same noise moved by so much."""
    middle = round((1 - order) * shift)
    k = np.arange(middle - 40 * sigma - 5, middle + 40 * sigma + 6).round()
    p, q = -(k**2) / (2 * sigma**2), -((k - shift) ** 2) / (2 * sigma**2)
    about = np.arange(-int(40 * sigma) - 5, int(40 * sigma) + 6)
    whole = logsumexp(-(about**2) / (2 * sigma**2))
    return float((logsumexp(order * p + (1 - order) * q) - whole) / (order - 1))


@pytest.mark.parametrize("sigma", [0.3, 0.8, 1.0, 7.1, 50.0])
def test_no_renyi_divergence_of_discrete_noise_is_above_its_charge_and_whole_orders_reach_it(sigma):
    for shift, order in product((1, 2, 7), (1.01, 1.5, 2.0, 3.0, 16.0, 64.0)):
        lost, charged = divergence(sigma, shift, order), order * float(GaussianEvent(sigma, shift**2).rho)
        assert lost <= charged * (1 + 1e-9)
        assert lost == pytest.approx(charged) or order % 1


def test_a_rho_low_by_a_thousandth_would_be_seen():
    assert divergence(7.1, 1, 1.5) > 1.5 * 0.999 * float(GaussianEvent(7.1, 1).rho)


RUNS = [
    ((0.8, 1, 1), [(0.8, 1)]),
    ((1.0, 1, 1), [(1.0, 1)]),
    ((2.0, 1, 1), [(2.0, 1)]),
    ((3.0, 1, 1), [(3.0, 1)]),
    ((3.0, 1, 12), [(3.0, 1)] * 12),
    ((5.0, 3, 1), [(5.0, 9)]),
    ((10.0, 1, 1), [(10.0, 1)]),
    ((20.0, 4, 3), [(20.0, 16)] * 3),
]
PLANES = [(((2.0, 1, 1), (3.0, 1, 1)), [(2.0, 1), (3.0, 1)]), (((4.0, 2, 1), (4.0, 1, 1)), [(4.0, 5)])]
CASES = [(run(*r), e) for r, e in RUNS] + [(both(*(run(*r) for r in p)), e) for p, e in PLANES]
NAMES = [str(r) for r, _ in RUNS + PLANES]


@pytest.mark.parametrize(("laws", "events"), some(CASES, 2), ids=NAMES)
def test_the_exact_loss_of_discrete_noise_is_never_above_what_is_charged(laws, events):
    charged = sum(GDP.cost(GaussianEvent(*e)) for e in events)
    assert understated(laws, charged) == 0


@pytest.mark.parametrize(("laws", "events"), some([CASES[i] for i in (0, 2, 5, 8)], 1))
def test_discrete_noise_charged_as_if_continuous_would_be_seen(laws, events):
    charged = sum(Fraction(squared) / (2 * Fraction(sigma) ** 2) for sigma, squared in events)
    assert understated(laws, charged) > 0


@pytest.mark.parametrize(("laws", "events"), some(CASES[2::2], 1), ids=NAMES[2::2])
def test_a_charge_of_half_would_be_seen(laws, events):
    charged = sum(GDP.cost(GaussianEvent(*e)) for e in events) / 2
    assert understated(laws, charged) > 0


def signed(total, later):
    """An answer for half a total, then one run or another for the rest, by the first's sign."""
    first = run(gaussian_within(total / 2, 1, GDP).sigma, 1, 1)
    sigmas = [gaussian_within(total / 2 / times, 1, GDP).sigma for times in later]
    return branching(first, [run(sigma, 1, times) for sigma, times in zip(sigmas, later, strict=True)])


def test_noise_chosen_from_earlier_answers_within_a_fixed_total_stays_within_it():
    total = Fraction(1, 10)
    assert understated(signed(total, (1, 2)), total) == 0
    assert understated(signed(total, (1, 2)), total * Fraction(3, 4)) > 0


def test_a_run_is_reported_with_its_mu_and_its_rho():
    events = [GaussianEvent(10.0, 1), GaussianEvent(20.0, 2)]
    found = compose(events, GDP, Fraction(1, 10**9), Neighbours("add_remove"))
    total = sum(GDP.cost(e) for e in events)
    assert found.accountant == "gdp" and found.mu == pytest.approx(float(2 * total) ** 0.5)
    assert Fraction(found.mu) ** 2 >= 2 * total
    assert sum(e.rho for e in events) < total <= found.rho == pytest.approx(float(total))
    assert gdp_epsilon(total, Fraction(1, 10**9)) <= found.epsilon
