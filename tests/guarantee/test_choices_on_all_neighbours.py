"""The exact privacy loss of choices, over all small tables and all their neighbours (hazards 8, 9).

A curator's own scores, scale and charge are taken; the distribution of what it would choose is
exact. No neighbour loses more than the charge, and some lose nearly all of it.
"""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.events import ExponentialEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator import distances, samplers
from tests.guarantee.losses import LOSS, log_distribution
from tests.guarantee.small_tables import (
    LEVEL,
    LOPSIDED,
    NEIGHBOURS,
    Guess,
    Notes,
    curator_on,
    drawn_upon,
    neighbours_of,
    tables,
)
from tests.thinned import some, thinned

NOISE = {PURE: "laplace", ZCDP: "laplace", GDP: "gaussian"}
CANDIDATES = [("a",), ("b",), ("a", "b")]
RISING = Guess(a=[9, 0], b=[0, 900], ab=[9, 9, 9, 0])
"""A row in cell 3 moves the distance of b down, which is chosen nearly always, and the others up."""
EVEN = Guess(a=[9, 0], b=[0, 20], ab=[3, 3, 3, 0])
"""Likewise, but that one is chosen about half of the time."""
NEVER = (0, 0, 10_000)
"""Penalties by which the last candidate is never chosen."""
NUMBERS = [((), ()), ((4, 0, -7), ()), ((), (3, 3, 1)), ((4, 1, 0), (2, 2, 5)), ((0, 0, 9), (1, 1, 0))]


class Choice:
    """One choice on every small table: the log-probabilities of its outcomes, and what it is charged."""

    def __init__(self, monkeypatch, near, measure, price, estimates: Guess, penalties=(), weights=()):
        self.near, self.measure, self.logs = near, measure, {}
        for table in tables():
            curator, notes = curator_on(table, near, measure, NOISE[measure])
            (scores,) = drawn_upon(
                monkeypatch, lambda c=curator: c.choose(CANDIDATES, estimates, price, penalties, weights)
            )
            self.charged, self.scale = float(notes.charged(measure)), notes.entries[0].event.scale
            self.logs[table] = log_distribution(scores, self.scale)

    @property
    def loss(self) -> float:
        """The most that any pair of neighbours loses, in either order, under the measure of the charge."""
        pairs = [(t, n) for t in self.logs for n in neighbours_of(t, self.near)]
        p, q = (np.array([self.logs[pair[i]] for pair in pairs]) for i in (0, 1))
        return LOSS[self.measure](p, q)


class Order(Choice):
    """All candidates chosen in turn: the log-probability of every order, and what each of them is charged."""

    def __init__(self, monkeypatch, near, measure, price, estimates: Guess):
        self.near, self.measure, self.logs = near, measure, {}
        charges = set()
        for table in tables():
            found = []
            for order in permutations(range(len(CANDIDATES))):
                curator, notes = curator_on(table, near, measure, NOISE[measure])
                found.append(log_probability(monkeypatch, curator, estimates, price, order))
                charges.add(float(notes.charged(measure)))
            self.logs[table] = np.array(found)
        (self.charged,) = charges


def log_probability(monkeypatch, curator, estimates: Guess, price: Fraction, order) -> float:
    """Of choosing in this order, the last one excepted, which is left over."""
    found, left = 0.0, list(range(len(CANDIDATES)))

    def scripted(scores, scale):
        nonlocal found
        assert len(scores) == len(left)
        place = left.index(order[len(CANDIDATES) - len(left)])
        found += float(log_distribution(scores, scale)[place])
        left.pop(place)
        return place

    with monkeypatch.context() as patch:
        patch.setattr(samplers, "choose_index", scripted)
        everyone = np.ones(len(CANDIDATES), dtype=bool)
        chosen = curator.choose_in_turn(CANDIDATES, estimates, price, len(order) - 1, lambda _: everyone)
    assert chosen == list(order[:-1])
    return found


@pytest.mark.parametrize(
    ("near", "measure", "estimates", "numbers"),
    some(thinned(NEIGHBOURS, list(NOISE), [LOPSIDED, LEVEL], NUMBERS), 10),
)
def test_no_neighbour_of_any_small_table_loses_more_than_the_charge(
    monkeypatch, near, measure, estimates, numbers
):
    penalties, weights = numbers
    for price in (Fraction(1, 50), Fraction(1), Fraction(4)):
        choice = Choice(monkeypatch, near, measure, price, estimates, penalties, weights)
        assert choice.charged <= price
        assert choice.loss <= choice.charged * (1 + 1e-9)


@pytest.mark.parametrize("near", NEIGHBOURS, ids=lambda n: f"{n.relation} {n.unit}")
@pytest.mark.parametrize("weights", [(), (3, 3, 1)])
def test_some_neighbour_loses_nearly_all_of_the_charge(monkeypatch, near, weights):
    pure = Choice(monkeypatch, near, PURE, Fraction(1), LOPSIDED, weights=weights)
    assert pure.loss > 0.999 * pure.charged
    # Two candidates as likely as each other, and one that is never chosen, lose most of rho and mu.
    for measure in (ZCDP, GDP):
        choice = Choice(monkeypatch, near, measure, Fraction(1, 500), LEVEL, NEVER, weights)
        assert choice.loss > 0.95 * choice.charged


@pytest.mark.parametrize("near", NEIGHBOURS[:2], ids=lambda n: f"{n.relation} {n.unit}")
@pytest.mark.parametrize("measure", some(NOISE, 2))
def test_the_order_of_choices_in_turn_loses_no_more_than_they_are_charged_together(
    monkeypatch, near, measure
):
    price, estimates = (Fraction(1), RISING) if measure == PURE else (Fraction(1, 500), EVEN)
    order = Order(monkeypatch, near, measure, price, estimates)
    assert np.allclose([np.exp(logs).sum() for logs in order.logs.values()], 1)
    assert 1.99 * price < order.charged <= 2 * price
    # A pick of the one whose distance falls leaves two that rise alike, which tell nothing more.
    least = {PURE: 0.999, ZCDP: 0.5, GDP: 0.4}[measure]
    assert least < order.loss / order.charged <= 1 + 1e-9


# Planted faults.


def overspent(monkeypatch, near=NEIGHBOURS[0], weights=()) -> bool:
    """Whether a choice loses more than its charge, under each measure."""
    few, sharp = (Fraction(1, 500), LEVEL, NEVER), (Fraction(1), LOPSIDED, ())
    return all(
        choice.loss > choice.charged * (1 + 1e-9)
        for measure in NOISE
        for choice in [
            Choice(monkeypatch, near, measure, *(sharp if measure == PURE else few), weights=weights)
        ]
    )


def test_a_distance_taken_for_a_monotone_score_is_caught(monkeypatch):
    assert not overspent(monkeypatch)
    halved = property(lambda self: Fraction(self.sensitivity) / Fraction(self.scale))
    monkeypatch.setattr(ExponentialEvent, "epsilon", halved)
    assert overspent(monkeypatch)


def test_a_forgotten_weight_is_caught(monkeypatch):
    sound = Calibration.choices
    monkeypatch.setattr(Calibration, "choices", lambda self, price, _=None: sound(self, price))
    assert not overspent(monkeypatch)
    assert overspent(monkeypatch, weights=(3, 3, 1))


@pytest.mark.parametrize("near", NEIGHBOURS[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_an_added_row_used_for_any_other_unit_is_caught(monkeypatch, near):
    assert not overspent(monkeypatch, near)
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert overspent(monkeypatch, near)


def test_choices_in_turn_that_are_charged_as_one_are_caught(monkeypatch):
    sound = Notes.charged
    monkeypatch.setattr(Notes, "charged", lambda self, measure: sound(self, measure) / len(self.entries))
    order = Order(monkeypatch, NEIGHBOURS[0], PURE, Fraction(1), RISING)
    assert order.loss > order.charged * 1.9


def test_a_penalty_that_looks_at_the_table_is_caught(monkeypatch):
    sound = distances.Distances.of

    def nosy(self, candidates, estimates, digest):
        found = sound(self, candidates, estimates, digest)
        return found + np.arange(len(found)) * self._counts.table.rows

    monkeypatch.setattr(distances.Distances, "of", nosy)
    choice = Choice(monkeypatch, NEIGHBOURS[0], PURE, Fraction(1), LEVEL)
    assert choice.loss > choice.charged * 1.2


def test_a_choice_charged_under_gaussian_dp_as_under_zcdp_is_caught(monkeypatch):
    monkeypatch.setattr(ExponentialEvent, "half_mu_squared", ExponentialEvent.rho)
    choice = Choice(monkeypatch, NEIGHBOURS[0], GDP, Fraction(1, 500), LEVEL, NEVER)
    assert choice.loss > choice.charged * 1.5
