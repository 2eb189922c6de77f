"""Noisy distances: their sensitivity over all neighbours of small tables (hazards 7, 8)."""

from fractions import Fraction

import pytest

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Clique
from tests.guarantee.small_tables import LEVEL, LOPSIDED, NEIGHBOURS, TERMS, Guess, excesses
from tests.thinned import some, thinned

CANDIDATES: list[Clique] = [("a",), ("b",), ("a", "b"), ("b",)]


def moved(monkeypatch, near: Neighbours, terms: tuple[Measure, str], estimates: Guess) -> float:
    """The most that a neighbour moves distances, over what is declared."""
    return max(excesses(monkeypatch, near, terms, lambda c: c.errors(CANDIDATES, estimates, Fraction(1, 10))))


@pytest.mark.parametrize(("near", "terms", "estimates"), thinned(NEIGHBOURS, TERMS, [LOPSIDED, LEVEL]))
def test_no_neighbour_of_any_small_table_moves_the_distances_further_than_declared_and_some_move_them_so_far(
    monkeypatch, near, terms, estimates
):
    assert moved(monkeypatch, near, terms, estimates) == 1


@pytest.mark.parametrize("near", some(NEIGHBOURS, 2), ids=lambda n: f"{n.relation} {n.unit}")
def test_distances_declared_to_move_like_one_marginal_are_caught(monkeypatch, near):
    monkeypatch.setattr(Calibration, "distances", lambda self, price, _: self.counts(price))
    for terms in TERMS:
        assert moved(monkeypatch, near, terms, LEVEL) > 1


def test_a_squared_l2_of_marginals_taken_for_that_of_distances_is_caught(monkeypatch):
    """Under replace-one a marginal moves by 2 in squared L2, and a distance by 2, that is 4."""
    sound = Calibration._noise

    def squared_of_marginals(self, price, l1, l2_squared, moved):
        return sound(self, price, l1, len(CANDIDATES) * self.near.l2_squared, moved)

    monkeypatch.setattr(Calibration, "_noise", squared_of_marginals)
    assert moved(monkeypatch, NEIGHBOURS[1], TERMS[0], LEVEL) > 1


@pytest.mark.parametrize("near", NEIGHBOURS[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_an_added_row_used_for_any_other_unit_is_caught(monkeypatch, near):
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert moved(monkeypatch, near, TERMS[0], LEVEL) > 1
