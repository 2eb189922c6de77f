"""What accountants say of many releases is never below the truth, close to it, and says when it holds."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import NOTHING, Cost, planned
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP, gdp_epsilon
from dpsynth.ledger.views import Composed, least
from dpsynth.wings.proof.accountants import comparison, numerical
from dpsynth.wings.proof.accountants.advanced import advanced_epsilon
from dpsynth.wings.proof.accountants.comparison import statements, statements_of
from dpsynth.wings.proof.accountants.numerical import Composition, pld_epsilon, rdp_epsilon
from tests.accounting.exact import exact_epsilon, optimal_epsilon
from tests.accounting.laws import both, laplace, run, two_points
from tests.examples import examples
from tests.ledger.releases import OWN_DELTA, all_events, gaussian, mixed, pure, release
from tests.ledger.releases import laplace as by_rho
from tests.thinned import some, thinned

DELTA = Fraction(1, 10**6)
ROUNDING = 1 - 1e-9
"""The exact epsilon is right to ten digits."""


def epsilons(releases, delta=DELTA):
    """Of each accountant; "sequential" is at a delta of its own, but not above."""
    found = {s.accountant: s for s in statements(releases, delta)}
    assert found["sequential"].delta <= float(delta)
    return {name: inf if s.epsilon is None else s.epsilon for name, s in found.items()}


def too_low(releases, delta=DELTA):
    """The accountants that say less than the truth."""
    truth = exact_epsilon(all_events(releases), float(delta))
    return {name for name, epsilon in epsilons(releases, delta).items() if epsilon < truth * ROUNDING}


# 120 mixed releases.


@pytest.mark.parametrize(
    ("size", "delta"), some(thinned((0.05, 0.2, 1.0, 2.0), (1e-5, 1e-6, 1e-7), strength=1), 2)
)
def test_of_120_mixed_releases_no_accountant_says_less_than_the_truth(size, delta):
    releases, delta = mixed(120, size), Fraction(repr(delta))
    found, truth = epsilons(releases, delta), exact_epsilon(all_events(releases), float(delta))
    assert truth * ROUNDING <= min(found.values())
    assert found["pld"] <= truth * 1.02 < found["rdp"] <= found["zcdp"] * 1.001 < found["gdp"]
    assert found["gdp"] < found["optimal"] <= found["advanced"] < found["sequential"]


@pytest.mark.parametrize("times", some([1, 3, 12, 50], 2))
def test_of_a_few_releases_neither(times):
    for kind in (gaussian, by_rho, pure):
        assert too_low([kind()] * times) == set()
    assert too_low(mixed(times)) == set()


def measure_of(made):
    return PURE if made.cost.amount.delta == 0 else ZCDP


def without(kind, releases):
    """Releases whose answers of a kind are forgotten."""
    return [
        release(PURE if r.cost.amount.delta == 0 else ZCDP, [e for e in r.events if not isinstance(e, kind)])
        for r in releases
    ]


@pytest.mark.parametrize("kind", some([GaussianEvent, LaplaceEvent, ExponentialEvent], 1))
def test_answers_forgotten_would_be_seen(kind):
    releases = mixed(120)
    truth = exact_epsilon(all_events(releases), float(DELTA)) * ROUNDING
    found = epsilons(without(kind, releases))
    assert found["pld"] < truth
    if kind is LaplaceEvent:
        assert max(found["rdp"], found["zcdp"], found["gdp"]) < truth


@pytest.mark.parametrize("kind", some([GaussianEvent, LaplaceEvent, ExponentialEvent], 1))
def test_a_single_answer_more_is_never_free(kind):
    releases = mixed(12)
    event = {GaussianEvent: GaussianEvent(9.0, 1), LaplaceEvent: LaplaceEvent(9.0, 1)}.get(
        kind, ExponentialEvent(9.0, 1)
    )
    before, after = epsilons(releases), epsilons([*releases, release(ZCDP, [event])])
    assert all(before[name] < after[name] for name in before)


def test_noise_taken_for_wider_than_it_is_would_be_seen():
    releases = mixed(120)
    truth = exact_epsilon(all_events(releases), float(DELTA)) * ROUNDING
    wide = {GaussianEvent: 1.5, LaplaceEvent: 1.1, ExponentialEvent: 1.5}
    for kind, factor in wide.items():
        field = "sigma" if kind is GaussianEvent else "scale"
        wrong = [
            release(
                measure_of(r),
                [
                    replace(e, **{field: getattr(e, field) * factor}) if isinstance(e, kind) else e
                    for e in r.events
                ],
            )
            for r in releases
        ]
        assert epsilons(wrong)["pld"] < truth


# Gaussian noise alone: the closed form.


@pytest.mark.parametrize(
    ("sigma", "delta"), some(thinned((6.0, 30.0, 200.0), (1e-5, 1e-7, 1e-9), strength=1), 1)
)
def test_of_120_gaussian_releases_pld_and_gdp_say_the_closed_form_and_a_thousandth_more(sigma, delta):
    events = [GaussianEvent(sigma, 1), GaussianEvent(2 * sigma, 9)]
    releases = [release(GDP, events)] * 120
    found, truth = (
        epsilons(releases, Fraction(delta) + 120 * OWN_DELTA),
        exact_epsilon(all_events(releases), delta + 120e-9),
    )
    squared = sum(120 * e.l2_squared / Fraction(e.sigma) ** 2 for e in events)
    assert truth == pytest.approx(
        float(gdp_epsilon(squared / 2, Fraction(delta) + 120 * OWN_DELTA)), rel=3e-3
    )
    least_factor = 1 + (0.001 + 0.6 / sigma**2) / 2
    for name in ("pld", "gdp"):
        assert truth * ROUNDING <= found[name] <= truth * least_factor * 1.05
    assert too_low(releases, Fraction(delta) + 120 * OWN_DELTA) == set()


def test_the_exact_law_of_whole_number_noise_is_not_above_what_is_said():
    """Sums of discrete Gaussian noise, so that nothing is taken as continuous."""
    p, q = run(6.0, 1, 120)
    found = epsilons([release(ZCDP, [GaussianEvent(6.0, 1)])] * 120)
    for name in ("zcdp", "gdp", "rdp", "pld"):
        assert np.maximum(0, p - exp(found[name]) * q).sum() <= float(DELTA)
    assert np.maximum(0, p - exp(found["pld"] * 0.97) * q).sum() > float(DELTA)


# Pure releases: the optimal composition.


@pytest.mark.parametrize(
    ("epsilon", "delta"), some(thinned(("0.01", "0.1", "1", "4"), (1e-4, 1e-6, 1e-9), strength=1), 2)
)
def test_of_120_pure_releases_nothing_is_below_the_optimal_composition_and_pld_is_close(epsilon, delta):
    scale, delta = float(1 / Fraction(epsilon)), Fraction(delta)
    event = LaplaceEvent(scale, 1)
    truth = optimal_epsilon(120, event.epsilon, delta)
    assert exact_epsilon({event: 120}, float(delta)) == pytest.approx(truth, rel=1e-9)
    for releases in ([release(PURE, [event])] * 120, [release(PURE, [event] * 12)] * 10):
        found = epsilons(releases, delta)
        assert truth * ROUNDING <= min(found.values())
        assert found["pld"] <= truth * 1.001
        assert found["optimal"] <= min(found["sequential"], found["advanced"], found["pld"] * 1.000001)


def test_releases_of_which_only_epsilon_is_known_are_taken_for_the_worst():
    known = [release(PURE, [LaplaceEvent(10.0, 1)])] * 120
    only = [Composed(r.cost) for r in known]
    assert epsilons(only) == pytest.approx(epsilons(known), rel=1e-4)
    several = [release(PURE, [LaplaceEvent(100.0, 1)] * 10)] * 120
    all_known = epsilons(several)
    for name, epsilon in epsilons([Composed(r.cost) for r in several]).items():
        assert epsilon >= all_known[name] * ROUNDING


OWN = Fraction(1, 10**8)


def with_own_delta(times):
    part = Cost(Amount(Fraction(1, 10), OWN), Fraction(1), None)
    return [Composed(part)] * times


def test_the_deltas_of_releases_are_not_forgotten(monkeypatch):
    """Just above their sum, little is left of delta, and the optimal epsilon is nearly that of none."""
    parts = [r.cost.amount for r in with_own_delta(120)]
    for left in (Fraction(1, 10**7), Fraction(1, 10**9)):
        delta = 120 * OWN + left
        truth = optimal_epsilon(120, Fraction(1, 10), delta, OWN)
        found = epsilons(with_own_delta(120), delta)
        assert truth * ROUNDING <= min(found["pld"], found["optimal"], found["advanced"])
        assert truth * ROUNDING <= found["sequential"] and float(found["optimal"]) <= truth * 1.000001
        assert found["pld"] <= truth * 1.01
    forgotten = [Amount(part.epsilon) for part in parts]
    assert advanced_epsilon(forgotten, delta) < truth
    assert pld_epsilon(Composition({}, {Cost(forgotten[0], Fraction(1), None): 120}), delta) < truth
    used_up = {s.accountant: s for s in statements(with_own_delta(120), 120 * OWN)}
    assert used_up["pld"].epsilon is None and used_up["advanced"].epsilon is None
    assert "0.0000012" in used_up["advanced"].why or "1.2e-6" in used_up["advanced"].why


def test_a_release_counts_answer_by_answer_only_if_each_answer_and_the_whole_are_pure():
    answers, half = [LaplaceEvent(10.0, 1)] * 2, Fraction(1, 2)
    reserved = Composed(Cost(Amount(half), half**2 / 2, None))
    of_one = Composed(Cost(Amount(half), half**2 / 2, None), tuple(answers[:1]))
    by_rho_alone = release(ZCDP, answers)
    some = release(GDP, [GaussianEvent(40.0, 1), *answers])
    each = [Amount(Fraction(answers[0].epsilon))]
    for made, parts in (
        (release(PURE, answers), 2 * each),
        (of_one, each),
        (reserved, [Amount(half)]),
        (by_rho_alone, [by_rho_alone.cost.amount]),
        (some, [some.cost.amount]),
    ):
        assert comparison._parts([made]) == parts


def test_the_squares_of_epsilon_are_added_up_and_halved():
    squares = 2 * (10 * 0.08**2 + 5 * 0.04**2)
    expected = squares / 2 + 2 * sqrt(squares / 2 * log(10**6))
    assert float(comparison._advanced([pure()] * 2, DELTA)) == pytest.approx(expected, rel=1e-12)


def test_a_release_with_one_answer_that_mu_does_not_bound_counts_by_its_own_epsilon_in_pld():
    some = release(ZCDP, [GaussianEvent(0.7, 1), LaplaceEvent(100.0, 1)])
    assert some.events[0].half_mu_squared is None and some.events[1].half_mu_squared is not None
    whole = [epsilons([made], 2 * OWN_DELTA)["pld"] for made in (some, Composed(some.cost))]
    assert whole[0] == whole[1]


# The pairs of laws.


def delta_at(laws, epsilon):
    p, q = laws
    return float(np.maximum(0, p - exp(epsilon) * q).sum())


def law_delta(part, epsilon, step=1e-3):
    return float(numerical._law(part, step).get_delta_for_epsilon(epsilon))


@pytest.mark.parametrize("epsilon", some([0.02, 0.3, 1.0, 5.0], 2))
def test_the_pair_that_stands_for_choices_tells_what_the_worst_two_points_do_and_no_less(epsilon):
    event = ExponentialEvent(2 / epsilon, 1)
    for at in np.linspace(-epsilon, epsilon, 21):
        most = max(
            delta_at(two_points(epsilon, m), at) for m in np.linspace(-3 * epsilon - 3, 3 * epsilon + 3, 1001)
        )
        assert most <= law_delta(event, at, epsilon / 1000) + 1e-12
        assert most >= law_delta(event, at, epsilon / 1000) - 1e-4


def branches(epsilon, depth, middles):
    """Choices, each with a middle that depends on the last outcome."""
    p, q = two_points(epsilon, middles[0])
    if depth == 1:
        return p, q
    later = [branches(epsilon, depth - 1, middles[n:] + middles[:n]) for n in (1, 2)]
    pieces = [both((p[n : n + 1], q[n : n + 1]), then) for n, then in enumerate(later)]
    return tuple(np.concatenate([piece[side] for piece in pieces]) for side in (0, 1))


@given(st.lists(st.floats(-4, 4), min_size=3, max_size=3), st.sampled_from([0.1, 1.0, 3.0]))
@examples(20)
def test_choices_among_questions_that_depend_on_earlier_ones_tell_no_more_than_is_said(middles, epsilon):
    laws = branches(epsilon, 6, middles)
    known = Composition({ExponentialEvent(2 / epsilon, 1): 6}, {})
    for delta in (Fraction(1, 100), Fraction(1, 10**5)):
        for side in (laws, laws[::-1]):
            assert delta_at(side, float(pld_epsilon(known, delta))) <= delta
            assert delta_at(side, float(rdp_epsilon(known, delta))) <= delta


@pytest.mark.parametrize(
    ("moves", "scale"),
    some(thinned([(1, 1), (2, 1), (1,) * 6, (3, 4), (5, 1, 1)], (0.8, 3.0, 20.0), strength=1), 2),
)
def test_cells_that_move_a_little_each_tell_no_more_than_one_that_moves_by_the_sum(moves, scale):
    apart, single = both(*[laplace(scale, move) for move in moves]), laplace(scale, sum(moves))
    for epsilon in np.linspace(0, sum(moves) / scale, 200):
        assert delta_at(apart, epsilon) <= delta_at(single, epsilon) + 1e-14
        assert delta_at(single, epsilon) <= law_delta(LaplaceEvent(scale, sum(moves)), epsilon) + 1e-13


def test_continuous_laplace_noise_in_the_place_of_whole_numbers_would_be_seen(monkeypatch):
    from dp_accounting.pld import privacy_loss_distribution as library

    events = {LaplaceEvent(1.0, 1): 12}
    truth = exact_epsilon(events, 1e-6)
    assert float(pld_epsilon(Composition(events, {}), DELTA)) >= truth
    monkeypatch.setattr(
        library,
        "from_discrete_laplace_mechanism",
        lambda inverse, l1, **rest: library.from_laplace_mechanism(1 / inverse, l1, **rest),
    )
    assert float(pld_epsilon(Composition(events, {}), DELTA)) < truth


def below(margin_of, monkeypatch):
    """How often an epsilon is below the optimal composition's with a margin of nothing."""
    monkeypatch.setattr(numerical, margin_of, Fraction(0) if "RENYI" in margin_of else 0.0)
    found = 0
    for times, epsilon in [(1000, "0.01"), (300, "0.05"), (120, "0.1"), (120, "1"), (20_000, "0.01")]:
        event = LaplaceEvent(float(1 / Fraction(epsilon)), 1)
        for delta in (1e-8, 1e-9, 1e-10):
            truth = exact_epsilon({event: times}, delta)
            found += float(pld_epsilon(Composition({event: times}, {}), Fraction(delta))) < truth
    return found


def test_without_its_margin_the_librarys_epsilon_is_below_the_truth(monkeypatch):
    assert below("_RENYI_MARGIN", monkeypatch) == 0
    assert below("_DELTA_MARGIN", monkeypatch) > 0


# Which holds when.


def test_each_says_when_it_holds_and_the_least_is_one_that_holds_under_adaptive_choice():
    found = statements(mixed(12), DELTA)
    assert [s.accountant for s in found] == ["sequential", "advanced", "optimal", "zcdp", "gdp", "rdp", "pld"]
    assert {s.accountant for s in found if s.adaptive} == {"sequential", "advanced", "zcdp", "gdp"}
    for s in found:
        assert ("only if all noise was fixed" in s.why) is not s.adaptive
        assert s.why.endswith(".") and "\n" not in s.why
    # The distribution's epsilon is lower, and would be named by a rule that asked for the least alone.
    assert least(found).accountant == "zcdp" and min(found, key=lambda s: s.epsilon).accountant == "pld"
    assert least(statements([gaussian()] * 12, DELTA)).accountant == "gdp"
    assert least(statements([pure()], DELTA)).accountant == "sequential"


def test_a_sum_whose_delta_is_above_what_was_asked_is_not_the_least():
    few = [Composed(Cost(Amount(Fraction(1, 100), Fraction(1, 1000)), Fraction(1), Fraction(1)))]
    found = statements(few, DELTA)
    assert found[0].epsilon == 0.01 and found[0].delta == 0.001
    assert least(found).accountant == "gdp"


def test_without_a_delta_only_the_sum_of_epsilons_is_left():
    found = statements([pure()] * 3, Fraction(0))
    assert found[0].epsilon == pytest.approx(3.0) and found[0].epsilon >= 3.0
    assert least(found) == found[0] and all("above 0" in s.why for s in found[1:])


def test_releases_that_mu_does_not_bound_have_no_gdp_and_count_by_their_own_epsilon_in_pld():
    little = release(ZCDP, [GaussianEvent(0.7, 1)])
    found = {s.accountant: s for s in statements([little, pure()], DELTA)}
    assert found["gdp"].epsilon is None and "isn't bounded by mu" in found["gdp"].why
    assert found["zcdp"].epsilon is not None
    alone = {s.accountant: s.epsilon for s in statements([little], 2 * OWN_DELTA)}
    assert alone["pld"] == pytest.approx(float(little.cost.amount.epsilon), rel=1e-3)
    assert alone["pld"] >= little.cost.amount.epsilon


def test_a_reservation_counts_for_at_least_what_its_release_then_comes_to():
    for made, measure in ((gaussian(), GDP), (by_rho(), ZCDP), (pure(), PURE)):
        cost = made.cost
        budget = {GDP: cost.half_mu_squared, ZCDP: cost.rho, PURE: cost.amount.epsilon}[measure]
        noise = "gaussian" if measure == GDP else "laplace"
        reserved = Composed(planned(measure, noise, budget, cost.amount))
        then, now = epsilons([reserved]), epsilons([made])
        assert all(then[name] >= now[name] * ROUNDING for name in now), measure


def test_no_releases_and_those_that_asked_nothing_come_to_nothing():
    for releases in ([], [Composed(NOTHING)] * 3):
        assert set(epsilons(releases).values()) == {0.0}
    assert [s.epsilon for s in statements_of([], DELTA)] == [0.0] * 7


def test_of_groups_that_one_person_cannot_share_the_most_of_any_is_said():
    small, large, odd = mixed(3), mixed(6), [pure()] * 4
    found = {s.accountant: s.epsilon for s in statements_of([small, large, odd, large], DELTA)}
    each = [epsilons(group) for group in (small, large, odd)]
    assert found == {name: max(of_one[name] for of_one in each) for name in found}
    assert found["zcdp"] < epsilons([*small, *large, *odd])["zcdp"]
    little = [release(ZCDP, [GaussianEvent(0.7, 1)])]
    gdp = next(s for s in statements_of([small, little], DELTA) if s.accountant == "gdp")
    assert gdp.epsilon is None


def test_a_group_that_asked_nothing_is_not_the_most_beside_a_small_one():
    small = [pure(0.01)]
    assert [s.epsilon for s in statements_of([[Composed(NOTHING)], small], DELTA)] == [
        s.epsilon for s in statements(small, DELTA)
    ]


def test_the_deltas_of_groups_are_the_largest_sum():
    groups = [[gaussian()] * 4, [pure()] * 9]
    assert statements_of(groups, DELTA)[0].delta == pytest.approx(4e-9)


def test_equal_groups_are_counted_once(monkeypatch):
    calls = []
    whole = comparison.statements
    monkeypatch.setattr(comparison, "statements", lambda *a: calls.append(a) or whole(*a))
    statements_of([mixed(3), mixed(3)[::-1], mixed(3)] * 10, DELTA)
    assert len(calls) == 1


def test_more_releases_never_come_to_less_and_their_order_changes_nothing():
    runs = [epsilons(mixed(times, 0.4)) for times in (1, 2, 3, 10, 40)]
    for fewer, more in pairwise(runs):
        assert all(more[name] >= fewer[name] * (1 - 1e-6) for name in more)
    assert epsilons(mixed(12)) == pytest.approx(epsilons(mixed(12)[::-1]), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e-2, 1e9])
def test_extreme_noise_has_an_epsilon_or_a_reason_and_no_warning(scale):
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        for event in (
            LaplaceEvent(scale, 1),
            LaplaceEvent(20_000 * scale, 20_000),
            ExponentialEvent(scale, 3),
        ):
            for s in statements([release(PURE, [event])] * 3, Fraction(1, 10**9)):
                assert s.epsilon is not None or "can't tell" in s.why
