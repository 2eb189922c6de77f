"""Refits to fresh noise spread as far as the model itself would under fresh noise."""

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import estimate, refits
from tests.examples import cases

FITS = cases(150, part=2)
DOMAIN = Domain({"a": 4, "b": 2})
TRUTH = np.array([[220, 80], [100, 150], [60, 190], [120, 80]])


def noisy(rng, noise):
    scale = {"gaussian": 9.0, "laplace": 6.0}[noise]

    def draw(clique, counts):
        if noise == "gaussian":
            drawn = np.rint(rng.normal(0, scale, counts.shape))
        else:
            drawn = np.rint(rng.laplace(0, scale, counts.shape))
        return Measurement(clique, counts + drawn.astype(np.int64), noise, scale)

    return [draw(("a", "b"), TRUTH), draw(("a",), TRUTH.sum(axis=1)), draw((), np.array(TRUTH.sum()))]


def spread(models, clique):
    return np.std([m.marginal(clique) for m in models], axis=0)


@pytest.mark.parametrize("noise", ["gaussian", pytest.param("laplace", marks=pytest.mark.slow)])
def test_refits_spread_as_far_as_fits_to_fresh_noise(noise):
    rng = np.random.default_rng(11)
    true = [estimate(DOMAIN, noisy(rng, noise)).model for _ in range(FITS)]
    measurements = noisy(rng, noise)
    again = refits(estimate(DOMAIN, measurements), measurements, FITS, rng)
    for clique in [("a",), ("b", "a")]:
        assert spread(again, clique).mean() == pytest.approx(spread(true, clique).mean(), rel=0.15)
    assert np.std([m.total for m in again]) == pytest.approx(np.std([m.total for m in true]), rel=0.25)


def test_a_public_total_stays_what_it_is_in_every_refit():
    rng = np.random.default_rng(2)
    public = Measurement((), np.array(1000), "none", 0.0)
    measurements = [*noisy(rng, "gaussian")[:1], public]
    fit = estimate(DOMAIN, measurements)
    assert {m.total for m in refits(fit, measurements, 8, rng)} == {1000.0}


def test_refits_depend_on_the_generator_alone():
    measurements = noisy(np.random.default_rng(0), "gaussian")
    fit = estimate(DOMAIN, measurements)
    prints = [
        [m.fingerprint() for m in refits(fit, measurements, 3, np.random.default_rng(s))] for s in (5, 5, 6)
    ]
    assert prints[0] == prints[1] != prints[2]
    assert len(set(prints[0])) == 3


def test_refits_look_at_cliques_and_scales_never_at_the_measured_values():
    measurements = noisy(np.random.default_rng(0), "gaussian")
    fit = estimate(DOMAIN, measurements)
    blanked = [Measurement(m.clique, np.zeros_like(m.values), m.noise, m.scale) for m in measurements]
    with_values = refits(fit, measurements, 2, np.random.default_rng(1))
    without = refits(fit, blanked, 2, np.random.default_rng(1))
    assert [m.fingerprint() for m in with_values] == [m.fingerprint() for m in without]
