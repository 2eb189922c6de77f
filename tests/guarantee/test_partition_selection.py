"""Partition selection: its exact probabilities cost what the event says, and are those that are drawn."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2

from dpsynth.accounting.events import SelectionEvent
from dpsynth.curator import samplers

ONE = 1 << samplers.BITS
EVENTS = [
    SelectionEvent(1.0, 1e-6, 1),
    SelectionEvent(0.1, 1e-8, 4),
    SelectionEvent(0.01, 1e-10, 1),
    SelectionEvent(2.5, 1e-3, 1),
    SelectionEvent(20.0, 1e-12, 1),
    SelectionEvent(500.0, 1e-9, 1),
    SelectionEvent(0.3, 0.4, 1),
    SelectionEvent(1.0, 2.0**-128, 1),
]


def by_level(event: SelectionEvent, most: int = 5000) -> list[int]:
    """The chances of 0, 1, 2, ... units, one level beyond that from which on every value is named."""
    found = list(samplers.chances_at(list(range(most)), event))
    return found[: found.index(ONE) + 2]


def exponential(epsilon: float) -> tuple[Fraction, Fraction]:
    """e^epsilon from below and above, by decimals: another way than the series in the code."""
    with localcontext() as context:
        context.prec = 400
        near = Fraction(Decimal(epsilon).exp())
    return near * (1 - Fraction(1, 10**350)), near * (1 + Fraction(1, 10**350))


def holds(event: SelectionEvent) -> bool:
    """Whether all steps of one unit keep to (epsilon0, delta0), by exact arithmetic."""
    growth, delta = exponential(event.epsilon0)[0], Fraction(event.delta0)
    chances = [Fraction(c, ONE) for c in by_level(event)]
    return chances[0] == 0 and all(
        one <= growth * two + delta
        for p, q in pairwise(chances)
        for one, two in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
    )


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_each_step_of_one_unit_costs_at_most_epsilon0_and_delta0_exactly(event):
    assert holds(event)


@pytest.mark.parametrize("event", EVENTS[:5] + EVENTS[6:7], ids=repr)
def test_the_probabilities_are_the_optimal_ones_but_for_the_last_bits(event):
    above, delta = exponential(event.epsilon0)[1], Fraction(event.delta0)
    best = Fraction(0)
    for chance in by_level(event)[1:]:
        best = min(above * best + delta, 1 - (1 - best - delta) / above, Fraction(1))
        best = Fraction(int(best * 2**400) + 1, 2**400)
        assert best * (1 - Fraction(1, 10**20)) <= Fraction(chance, ONE) <= best


def test_levels_that_are_left_out_change_nothing_and_far_ones_are_certain():
    event = SelectionEvent(0.1, 1e-8, 1)
    every = by_level(event)
    some = [0, 1, 7, 150, 151, 200, 10**12]
    found = list(samplers.chances_at(some, event))
    assert found == [every[min(n, len(every) - 1)] for n in some]


def test_a_delta_below_the_last_bit_names_nothing_and_ends():
    event = SelectionEvent(1.0, 1e-45, 1)
    assert list(samplers.chances_at([1, 10**15], event)) == [0, 0]


DRAWS = 20_000


def draws_fit(event: SelectionEvent, claimed: SelectionEvent) -> bool:
    """Whether values of each number of units are named as often as an event claims."""
    gap, levels = 0.0, 0
    for level, chance in enumerate(by_level(claimed)):
        seen = int(samplers.select(np.full(DRAWS, level, dtype=np.int64), event).sum())
        p = chance / ONE
        if p in (0.0, 1.0):
            if seen != DRAWS * p:
                return False
        elif 20 < DRAWS * p < DRAWS - 20:
            gap += (seen - DRAWS * p) ** 2 / (DRAWS * p * (1 - p))
            levels += 1
    assert levels > 3
    return bool(chi2.sf(gap, levels) > 1e-6)


NAMING = SelectionEvent(0.7, 0.01, 1)


def test_values_are_named_as_often_as_claimed_those_of_no_unit_never_and_large_ones_always():
    assert draws_fit(NAMING, NAMING)


def test_draws_of_a_stronger_event_than_is_charged_would_be_seen():
    assert not draws_fit(SelectionEvent(1.0, 0.01, 1), NAMING)
    assert not draws_fit(SelectionEvent(0.7, 0.014, 1), NAMING)


def test_values_are_drawn_one_by_one_whatever_their_order():
    units = np.array([10**6, 0, 10**6, 0, 0, 10**6], dtype=np.int64)
    assert samplers.select(units, NAMING).tolist() == (units > 0).tolist()
    assert samplers.select(np.zeros(0, dtype=np.int64), NAMING).shape == (0,)


# Planted faults.


def test_an_exponential_from_above_is_caught(monkeypatch):
    sound = samplers._exponential_below
    monkeypatch.setattr(samplers, "_exponential_below", lambda x: sound(x) + (1 << 80))
    assert not any(map(holds, EVENTS[:5]))


def test_a_delta_that_is_rounded_up_is_caught(monkeypatch):
    sound = samplers._next
    monkeypatch.setattr(samplers, "_next", lambda chance, growth, delta: sound(chance, growth, delta + 1))
    assert not any(map(holds, EVENTS[:5]))


def test_a_rule_that_forgets_what_is_not_named_is_caught(monkeypatch):
    monkeypatch.setattr(
        samplers, "_next", lambda chance, growth, delta: min((growth * chance >> samplers.BITS) + delta, ONE)
    )
    assert not any(map(holds, EVENTS[:5]))


def test_a_value_of_no_unit_that_is_named_is_caught(monkeypatch):
    sound = samplers.chances_at
    monkeypatch.setattr(
        samplers, "chances_at", lambda levels, event: (max(1, c) for c in sound(levels, event))
    )
    assert not any(map(holds, EVENTS))


def test_the_draw_is_compared_to_the_last_bit(monkeypatch):
    """The least draw names nothing of no unit; a value is named by as many draws as its chance says."""
    event = SelectionEvent(1.0, 1e-6, 1)
    units = np.array([0, 1, 5])
    chances = list(samplers.chances_at([0, 1, 5], event))
    assert chances[0] == 0
    for i, chance in enumerate(chances):
        for draw, named in ((0, chance > 0), (chance - 1, chance > 0), (chance, False)):
            monkeypatch.setattr(samplers.secrets, "randbits", lambda _, draw=draw: max(draw, 0))
            assert samplers.select(units, event)[i] == named
