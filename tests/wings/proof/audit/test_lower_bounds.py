"""Lower bounds never lie above the truth but by chance, and come near it with many releases."""

from math import exp, log

import numpy as np
import pytest
from scipy.stats import binom

from dpsynth.wings.proof.audit.losses import CONFIDENCE, lower_bound
from dpsynth.wings.proof.loss_pairs import limits
from tests.thinned import some

MU = 1.0


def gaussians(rng: np.random.Generator, releases: int, mu: float = MU) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(mu, 1, releases), rng.normal(0, 1, releases)


@pytest.mark.parametrize("threshold", some([None, MU / 2], 1))
def test_a_bound_lies_above_the_truth_as_rarely_as_it_says(threshold: float | None) -> None:
    rng, runs = np.random.default_rng(3), 100
    above = sum(lower_bound(*gaussians(rng, 60), 1e-6, threshold).mu > MU for _ in range(runs))
    # The seed is fixed; the number would be exceeded once in 10^6 seeds.
    assert above <= binom.ppf(1 - 1e-6, runs, 1 - CONFIDENCE)


def test_many_releases_come_near_the_truth_in_either_direction() -> None:
    inside, outside = gaussians(np.random.default_rng(1), 60_000)
    assert 0.95 * MU < lower_bound(inside, outside, 1e-6).mu <= MU
    assert 0.95 * MU < lower_bound(-inside, -outside, 1e-6).mu <= MU
    assert 0.95 * MU < lower_bound(inside, outside, 1e-6, threshold=MU / 2).mu <= MU


def test_randomised_response_shows_its_epsilon() -> None:
    rng, epsilon, releases = np.random.default_rng(2), 1.5, 60_000
    truth = exp(epsilon) / (1 + exp(epsilon))
    inside = (rng.random(releases) < truth).astype(float)
    outside = (rng.random(releases) >= truth).astype(float)
    assert 0.95 * epsilon < lower_bound(inside, outside, 0.0, threshold=0.5).epsilon <= epsilon


def test_an_attack_that_always_succeeds_shows_what_its_number_of_releases_allows() -> None:
    # All of n found, no false alarm: the limits are those of 0 events of n.
    ones, zeros, n = np.ones(40), np.zeros(40), 40
    at_most = 1 - ((1 - CONFIDENCE) / 2) ** (1 / n)
    assert lower_bound(ones, zeros, 0.0, threshold=0.5).epsilon == pytest.approx(log((1 - at_most) / at_most))


def test_guessing_shows_nothing() -> None:
    same = np.linspace(0, 1, 50)
    found = lower_bound(same, same, 1e-6, threshold=0.5)
    assert (found.epsilon, found.mu) == (0.0, 0.0)


def test_right_guesses_have_the_limits_of_both_tables_together() -> None:
    inside, outside = np.repeat([1.0, 0.0], [30, 10]), np.repeat([1.0, 0.0], [12, 48])
    found = lower_bound(inside, outside, 0.0, threshold=0.5)
    assert found.right == pytest.approx(78 / 100)
    assert found.right_between == pytest.approx(limits(78, 100))
