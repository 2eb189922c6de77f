"""Each attack succeeds where nothing is promised, and is held to the guarantee's bound by a release."""

import json
from dataclasses import replace
from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from dpsynth.errors import DpsynthError
from dpsynth.wings.proof.attacks import ATTACKS, page, play
from dpsynth.wings.proof.attacks import games as games_module
from dpsynth.wings.proof.attacks.attackers import (
    averaging,
    background,
    noise_draws,
    reconstruction,
    scale_within,
)
from dpsynth.wings.proof.attacks.games import facts_of
from dpsynth.wings.proof.attacks.page import in_words
from dpsynth.wings.proof.attacks.success import presence_bound, value_bound
from dpsynth.wings.proof.loss_pairs import limits, right_at_most
from tests.chromium import faults, needs_chromium
from tests.wings.proof.attacks.worlds import guarantee, pure, world

GAMES = 1200


def beyond(success) -> bool:
    """True if a success is above its bound by more than chance: once in a million games that keep to it."""
    right = round(success.rate * success.games)
    return bool(stats.binom.sf(right - 1, success.games, success.bound.sharpest) < 1e-6)


@pytest.fixture(scope="module")
def played():
    # The generator has a seed: the games are the same ones each time.
    return {one.name: one for one in play(world(), list(ATTACKS), GAMES, np.random.default_rng(1))}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_succeeds_against_exact_or_anonymous_tables(played, name):
    before = played[name].successes[0]
    assert before.low > 0.95 and before.bound is None
    assert before.against in ("exact", "k-anonymous", "fresh noise")


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_a_release_keeps_to_the_bound_and_far_from_its_success_before(played, name):
    *before, after = played[name].successes
    assert after.against == "release" and not beyond(after)
    assert after.high < before[0].low - 0.2
    assert after.high < after.bound.epsilon


def test_homogeneous_groups_tell_more_than_a_coin_of_all_persons(played):
    assert played["homogeneity"].successes[1].low > 0.6


def test_noise_that_is_too_small_is_caught():
    found = background(world(mu=0.5, faulty=0.2), GAMES, np.random.default_rng(2))[-1]
    assert beyond(found)
    honest = background(world(mu=0.5), GAMES, np.random.default_rng(2))[-1]
    assert not beyond(honest)


def test_the_attacker_who_knows_all_others_comes_close_to_the_bound():
    whole = world(mu=1.0)
    found = background(whole, GAMES, np.random.default_rng(3))[-1]
    best = stats.norm.cdf(0.5)
    assert abs(found.rate - best) < 5 * sqrt(best * (1 - best) / GAMES)
    assert found.bound.sharpest == pytest.approx(best, abs=1e-3)


def test_pure_epsilon_is_held_by_laplace_noise():
    found = background(pure(1.0), GAMES, np.random.default_rng(4))[-1]
    assert found.bound.sharpest == found.bound.epsilon == pytest.approx(exp(1) / (1 + exp(1)))
    assert not beyond(found) and found.low > 0.55
    weak = replace(pure(1.0), guarantee=guarantee(0.2))
    assert beyond(background(weak, GAMES, np.random.default_rng(4))[-1])


def test_repetitions_with_noise_of_their_own_are_no_release():
    fresh, once = averaging(world(mu=0.5), GAMES, np.random.default_rng(5))
    assert fresh.rate > 0.95 > once.bound.sharpest
    # Had the release drawn anew each time, its bound would be broken.
    assert beyond(replace(fresh, bound=once.bound))


def test_reconstruction_by_counts_within_the_guarantee_fails_and_by_less_noise_succeeds(monkeypatch):
    whole = world(mu=0.5)
    noise, scale = scale_within(whole)
    assert noise == "gaussian" and scale == pytest.approx(sqrt(384) / 0.5)
    exact, small, released = reconstruction(whole, 400, np.random.default_rng(6))
    assert exact.rate == 1.0 and small.rate > 0.99 and released.high < released.bound.sharpest
    monkeypatch.setattr(
        "dpsynth.wings.proof.attacks.attackers.scale_within", lambda w: ("gaussian", scale / 10)
    )
    assert reconstruction(whole, 400, np.random.default_rng(6))[-1].low > released.bound.sharpest


def test_noise_of_the_games_has_the_law_of_the_mechanism():
    for noise, scale in (("gaussian", 0.7), ("gaussian", 12.0), ("laplace", 0.8), ("laplace", 9.0)):
        draws = noise_draws(noise, scale, (40_000,), np.random.default_rng(7))
        values = np.arange(-3000, 3001)
        chance = np.exp(-((values / scale) ** 2) / 2 if noise == "gaussian" else -abs(values) / scale)
        chance /= chance.sum()
        variance = (chance * values**2).sum()
        fourth = (chance * values**4).sum()
        assert abs(draws.mean()) < 5 * sqrt(variance / 40_000)
        assert abs((draws**2).mean() - variance) < 5 * sqrt((fourth - variance**2) / 40_000)


def test_bounds_are_those_of_the_relation():
    assert right_at_most(1.0, 0.0) == pytest.approx(exp(1) / (1 + exp(1)))
    assert right_at_most(0.0, 0.5) == pytest.approx(0.75)
    one = guarantee(1.0)
    assert value_bound(one) == presence_bound(one)
    two = guarantee(1.0, "add_remove")
    assert value_bound(two).epsilon == pytest.approx(exp(2) / (1 + exp(2)))
    assert presence_bound(two).epsilon == pytest.approx(exp(1) / (1 + exp(1)))
    gaussian = guarantee(5.0, "add_remove", mu=1.0)
    assert presence_bound(gaussian).sharpest == pytest.approx(stats.norm.cdf(0.5), abs=1e-3)
    assert value_bound(gaussian).sharpest == pytest.approx(stats.norm.cdf(1.0), abs=2e-3)
    zcdp = replace(gaussian, mu=None, accountant="zcdp", rho=0.02)
    assert presence_bound(zcdp).sharpest == pytest.approx(0.5 + 0.05)


def test_limits_are_those_of_clopper_and_pearson():
    for right, of in ((0, 10), (3, 17), (10, 10), (500, 1000)):
        low, high = limits(right, of)
        found = stats.binomtest(right, of).proportion_ci(0.95, "exact")
        assert (low, high) == pytest.approx((found.low, found.high))


def test_every_attack_is_told_in_words_as_values_and_on_a_page(played):
    whole, every = world(), tuple(played.values())
    text = "\n".join(in_words(whole, every))
    html = page(whole, every)
    assert "<script" not in html and "http" not in html.replace("http-equiv", "")
    facts = json.loads(json.dumps(facts_of(whole, every, GAMES)))
    assert [one["attack"] for one in facts["attacks"]] == list(ATTACKS)
    for one in every:
        assert one.attack.title in text and f">{one.attack.title}</h2>" in html
        for success in one.successes:
            assert success.seen in text and f"{100 * success.rate:.1f} %" in html
    assert "nothing was charged" in text


def test_a_table_of_few_rows_is_refused():
    with pytest.raises(DpsynthError, match="at least"):
        play(world(rows=14), ["averaging"], 100, np.random.default_rng(0))


def test_every_attack_is_registered():
    assert {attack.game for attack in ATTACKS.values()} == {getattr(games_module, name) for name in ATTACKS}


@pytest.mark.slow
@needs_chromium
def test_the_page_is_sound_in_chromium(played, tmp_path):
    assert faults([page(world(), tuple(played.values()))], tmp_path) == []
