"""Releases with a delta beside rho and mu never come to more than the cap."""

from dataclasses import replace
from datetime import date
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost
from dpsynth.accounting.measures import GDP, MEASURES, PURE, ZCDP, Measure
from dpsynth.ledger import balance as accounts
from dpsynth.ledger import filters
from dpsynth.ledger.balance import Balance, first_balance, first_entry
from dpsynth.ledger.filters import Filter, bound
from tests.examples import examples
from tests.ledger.reservations import ASK, HALF, LARGE_CAP, NONE, TENTH, sought_cost

TODAY = date(2026, 11, 21)


# That the share is fixed beforehand matters: exact losses of releases that are chosen by outputs.


def delta_of(epsilon: np.ndarray, mu: float) -> np.ndarray:
    above = np.exp(log_ndtr(mu / 2 - epsilon / mu))
    return above - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def chosen_by_outputs(cap: Amount, rho_or_lapse: tuple[Fraction, Fraction, Fraction]) -> float:
    """The exact delta at the cap's epsilon, where a first answer says which of two ways to go on.

    Args:
        cap: (E, D).
        rho_or_lapse: mu^2/2 of the first answer; of the second, if the loss was large; else its lapse.
    """
    first, second, approximate_delta = map(float, rho_or_lapse)
    epsilon, mu, then = float(cap.epsilon), (2 * first) ** 0.5, (2 * second) ** 0.5
    losses = np.linspace(mu * mu / 2 - 9 * mu, mu * mu / 2 + 9 * mu, 200_001)
    weights = norm.pdf(losses, mu * mu / 2, mu) * (losses[1] - losses[0])
    on = delta_of(epsilon - losses, then)
    off = approximate_delta + (1 - approximate_delta) * np.maximum(0, -np.expm1(epsilon - losses))
    return float((weights * np.maximum(on, off)).sum())


def ways_on(rule: str, first: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """What a rule allows after a first answer: mu^2/2 or a lapse."""
    whole, none = bound(GDP, LARGE_CAP)
    assert none == 0
    if rule == "a share beforehand":
        most, approximate_share = bound(GDP, LARGE_CAP, HALF)
        return first, most - first, approximate_share
    if rule == "what the other leaves":
        spent = float(delta_of(np.array([float(LARGE_CAP.epsilon)]), float(2 * first) ** 0.5)[0])
        return first, whole - first, LARGE_CAP.delta - Fraction(spent)
    assert rule == "a share from the first lapse on"
    return first, whole - first, LARGE_CAP.delta / 2


def test_a_share_for_lapses_keeps_to_the_cap_only_if_it_was_fixed_beforehand() -> None:
    first = bound(GDP, LARGE_CAP, HALF)[0] * Fraction(9, 10)
    found = {
        rule: chosen_by_outputs(LARGE_CAP, ways_on(rule, first)) / float(LARGE_CAP.delta)
        for rule in ("a share beforehand", "what the other leaves", "a share from the first lapse on")
    }
    assert found["a share beforehand"] <= 1
    # The planted faults: rules that would let more releases through.
    assert min(found["what the other leaves"], found["a share from the first lapse on"]) > 1.2


# Sequences of releases.

asks = st.builds(
    sought_cost,
    st.integers(1, 30).map(lambda n: Fraction(n, 20)),
    st.sampled_from([Fraction(1, 10**5), Fraction(1, 10**6), Fraction(1, 10**7)]),
    st.sampled_from([NONE, TENTH, HALF]),
    st.sampled_from([PURE, ZCDP, GDP]),
)


def account_after(by: Filter, costs: list[Cost]) -> Balance:
    """An account after all releases that it lets through, one by one; the first has lapses or not."""
    opened = first_balance(replace(ASK, filter=by, cap=LARGE_CAP, cost=costs[0]), TODAY)
    for number, cost in enumerate(costs):
        if opened.allows(cost):
            entry = first_entry(replace(ASK, release_id=f"r{number}", cost=cost), TODAY)
            opened = replace(opened, releases=(*opened.releases, entry))
    return opened


def beyond(found: Balance) -> bool:
    """Whether the releases of an account come to more than its cap, added up without the filter."""
    costs = [r.reserved for r in found.releases]
    approximate_share = sum(
        (c.amount.delta if found.filter == PURE else c.approximate_delta for c in costs), Fraction(0)
    )
    if found.filter == PURE:
        return sum(c.amount.epsilon for c in costs) > LARGE_CAP.epsilon or approximate_share > LARGE_CAP.delta
    total = sum((c.rho if found.filter == ZCDP else c.half_mu_squared or NONE for c in costs), Fraction(0))
    if not total:
        return approximate_share > LARGE_CAP.delta
    return (
        approximate_share >= LARGE_CAP.delta
        or found.filter.epsilon(total, LARGE_CAP.delta - approximate_share) > LARGE_CAP.epsilon
    )


@examples(150)
@given(st.sampled_from(MEASURES), st.lists(asks, min_size=1, max_size=12))
def test_no_sequence_with_lapses_comes_to_more_than_the_cap(by: Filter, costs: list[Cost]) -> None:
    found = account_after(by, costs)
    assert not beyond(found)
    assert found.epsilon_used <= LARGE_CAP.epsilon and found.delta_used <= LARGE_CAP.delta


LAPSES = [sought_cost(Fraction(1, 10), Fraction(1, 10**6), HALF, ZCDP)] * 30
"""Thirty times 5e-7, where 5e-6 is kept; their rho alone would fit."""


def test_lapses_that_are_dropped_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for by in MEASURES:
        assert not beyond(account_after(by, LAPSES))
    assert len(account_after(ZCDP, LAPSES).releases) == 10
    sound = filters.figures
    dropped = lambda kind, cost: sound(kind, replace(cost, approximate_delta=NONE))  # noqa: E731
    monkeypatch.setattr(filters, "figures", dropped)
    monkeypatch.setattr(accounts, "figures", dropped)
    for by in (ZCDP, GDP):
        assert beyond(account_after(by, LAPSES))


@pytest.mark.parametrize("by", [ZCDP, GDP])
def test_a_delta_that_is_not_taken_apart_would_be_seen(by: Filter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole delta for rho or mu, and a share of it for lapses besides."""
    costs = LAPSES[:9] + [sought_cost(Fraction(1, 2), Fraction(1, 10**8), NONE)] * 60
    assert not beyond(account_after(by, costs))
    sound = bound
    monkeypatch.setattr(
        accounts, "bound", lambda kind, cap, share: (sound(kind, cap)[0], sound(kind, cap, share)[1])
    )
    assert beyond(account_after(by, costs))


@pytest.mark.parametrize("by", MEASURES)
@pytest.mark.parametrize("measure", [ZCDP, GDP])
@pytest.mark.parametrize("share", [NONE, TENTH, HALF])
def test_a_release_that_asks_for_the_whole_cap_fits_it_exactly(
    by: Filter, measure: Measure, share: Fraction
) -> None:
    if (by, measure) in {(ZCDP, GDP), (GDP, ZCDP)}:
        return
    cost = sought_cost(LARGE_CAP.epsilon, LARGE_CAP.delta, share, measure)
    opened = first_balance(replace(ASK, filter=by, cap=LARGE_CAP, cost=cost), TODAY)
    assert opened.approximate_share == (NONE if by == PURE else share)
    assert opened.allows(cost) and opened.fits(cost) == 1 and opened.share_of(cost) == 1.0
    more = sought_cost(LARGE_CAP.epsilon * (1 + Fraction(1, 10**6)), LARGE_CAP.delta, share, measure)
    assert not opened.allows(more)


@pytest.mark.parametrize("by", [ZCDP, GDP])
@pytest.mark.parametrize("epsilon", [1, 3, 11])
@pytest.mark.parametrize("delta", [Fraction(1, 10**5), Fraction(1, 10**6)])
def test_half_of_delta_for_lapses_takes_what_the_docs_say(by: Filter, epsilon: int, delta: Fraction) -> None:
    cap = Amount(Fraction(epsilon), delta)
    assert 0.038 < 1 - bound(by, cap, HALF)[0] / bound(by, cap)[0] < 0.08


def test_releases_without_lapses_count_as_they_did() -> None:
    plain = [sought_cost(share=NONE)] * 40
    for by in MEASURES:
        found = account_after(by, plain)
        assert (
            found.approximate_share == 0
            and found.bound == bound(by, LARGE_CAP)
            and found.delta_used <= LARGE_CAP.delta
        )
        assert found.bound == (LARGE_CAP.epsilon, LARGE_CAP.delta) if by == PURE else found.bound[1] == 0
