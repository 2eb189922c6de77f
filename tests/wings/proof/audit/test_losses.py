"""Exact losses and costs of answers, against the whole distributions of the noise."""

from fractions import Fraction
from math import inf, log, sqrt

import numpy as np
import pytest

from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.wings.proof.audit.losses import DrawnNoise, drawn_noise, exact_cost, transcript_loss
from dpsynth.wings.proof.audit.replay import Asked, Transcript

SUPPORT = np.arange(-400, 401)


def asked(event, exact, answer) -> Transcript:
    transcript = Transcript()
    transcript.asked.append(Asked({"ask": "x"}, event, np.array(exact), np.array(answer)))
    return transcript


def chances(event, exact: int) -> np.ndarray:
    """The probability of each answer of the support."""
    apart = (SUPPORT - exact).astype(float)
    gaussian = isinstance(event, GaussianEvent)
    weights = np.exp(-(apart**2) / (2 * event.scale**2) if gaussian else -np.abs(apart) / event.scale)
    return weights / weights.sum()


@pytest.mark.parametrize("event", [GaussianEvent(5.0, 9), LaplaceEvent(4.0, 3)])
def test_the_loss_of_an_answer_is_the_log_ratio_of_its_chances(event) -> None:
    here, there = chances(event, 7), chances(event, 10)
    for answer in (-20, 0, 8, 9, 31):
        at = int(answer - SUPPORT[0])
        loss = transcript_loss(asked(event, [7], [answer]), asked(event, [10], [answer]))
        assert loss == pytest.approx(log(here[at] / there[at]), abs=1e-9)


@pytest.mark.parametrize("gap", [0, 1, 3])
@pytest.mark.parametrize("event", [GaussianEvent(5.0, 9), LaplaceEvent(4.0, 3)])
def test_the_cost_of_an_answer_is_its_divergence(event, gap: int) -> None:
    here, there = chances(event, 0), chances(event, gap)
    seen = (here > 0) & (there > 0)
    divergence = float((here[seen] * np.log(here[seen] / there[seen])).sum())
    cost = exact_cost(asked(event, [0, 4], [1, 1]), asked(event, [gap, 4], [1, 1]))
    assert cost.mean_loss == pytest.approx(divergence, abs=1e-9)
    largest = inf if isinstance(event, GaussianEvent) and gap else gap / event.scale
    assert cost.largest_loss == pytest.approx(0.0 if gap == 0 else largest)


def test_the_loss_and_cost_of_a_choice() -> None:
    event, one, two = ExponentialEvent(2.0, 1), [3, 1, 0], [2, 2, 0]
    p = np.exp(np.array(one) / 2) / np.exp(np.array(one) / 2).sum()
    q = np.exp(np.array(two) / 2) / np.exp(np.array(two) / 2).sum()
    before, after = asked(event, one, 1), asked(event, two, 1)
    assert transcript_loss(before, after) == pytest.approx(log(p[1] / q[1]))
    cost = exact_cost(before, after)
    assert cost.mean_loss == pytest.approx(float((p * np.log(p / q)).sum()))
    assert cost.largest_loss == pytest.approx(float(np.abs(np.log(p / q)).max()))


def test_a_mechanism_at_its_sensitivity_costs_its_budget_under_each_measure() -> None:
    gaussian = exact_cost(asked(GaussianEvent(10.0, 4), [0], [0]), asked(GaussianEvent(10.0, 4), [2], [0]))
    assert gaussian.share_of(ZCDP, Fraction(4, 200)) == pytest.approx(1.0)
    assert gaussian.share_of(GDP, Fraction(4, 200)) == pytest.approx(1.0)
    assert gaussian.share_of(GDP, Fraction(1, 200)) == pytest.approx(2.0)
    laplace = exact_cost(asked(LaplaceEvent(10.0, 4), [0], [0]), asked(LaplaceEvent(10.0, 4), [4], [0]))
    assert laplace.share_of(PURE, Fraction(4, 10)) == pytest.approx(1.0)


@pytest.mark.parametrize(("size", "as_stated"), [(1.0, True), (0.7, False), (1.4, False)])
def test_noise_of_another_size_is_seen(size: float, as_stated: bool) -> None:
    rng = np.random.default_rng(5)
    gaussian = np.rint(rng.normal(0, 20 * size, 5_000)).astype(np.int64)
    laplace = np.rint(rng.laplace(0, 20 * size, 5_000)).astype(np.int64)
    for event, noise in ((GaussianEvent(20.0, 1), gaussian), (LaplaceEvent(20.0, 1), laplace)):
        found = drawn_noise([asked(event, np.full(5_000, 9), 9 + noise)])
        assert found.as_stated == as_stated
        assert found.draws == 5_000 and found.ratio == pytest.approx(size, rel=0.05)
    assert not DrawnNoise(1_000_000, sqrt(0.9)).as_stated
