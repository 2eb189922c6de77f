"""Noisy distances: their sensitivity over all neighbours of small tables, and their noise (hazards 7, 8)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Clique
from dpsynth.curator import noise
from tests.guarantee.small_tables import (
    LEVEL,
    LOPSIDED,
    NEIGHBOURS,
    Guess,
    curator_on,
    drawn_upon,
    neighbours_of,
    tables,
)
from tests.thinned import thinned

CANDIDATES: list[Clique] = [("a",), ("b",), ("a", "b"), ("b",)]
KINDS = [(ZCDP, "gaussian"), (GDP, "gaussian"), (PURE, "laplace"), (ZCDP, "laplace")]


def excesses(monkeypatch, near: Neighbours, measure: str, kind: str, estimates: Guess) -> list[float]:
    """Measured sensitivity over the declared one, in the metric of the noise, for each pair of neighbours."""
    exact, declared = {}, 0
    for table in tables():
        curator, notes = curator_on(table, near, measure, kind)
        (exact[table],) = drawn_upon(
            monkeypatch, lambda c=curator: c.errors(CANDIDATES, estimates, Fraction(1, 10))
        )
        (entry,) = notes.entries
        declared = entry.event.l2_squared if kind == "gaussian" else entry.event.l1
    power = 2 if kind == "gaussian" else 1
    return [
        float((np.abs(exact[t] - exact[n]) ** power).sum() / declared)
        for t in exact
        for n in neighbours_of(t, near)
    ]


@pytest.mark.parametrize(("near", "terms", "estimates"), thinned(NEIGHBOURS, KINDS, [LOPSIDED, LEVEL]))
def test_no_neighbour_of_any_small_table_moves_the_distances_further_than_declared_and_some_move_them_so_far(
    monkeypatch, near, terms, estimates
):
    assert max(excesses(monkeypatch, near, *terms, estimates)) == 1


@pytest.mark.parametrize("near", NEIGHBOURS, ids=lambda n: f"{n.relation} {n.unit}")
def test_distances_declared_to_move_like_one_marginal_are_caught(monkeypatch, near):
    monkeypatch.setattr(Calibration, "distances", lambda self, price, _: self.counts(price))
    for measure, kind in KINDS:
        assert max(excesses(monkeypatch, near, measure, kind, LEVEL)) > 1


def test_a_squared_l2_of_marginals_taken_for_that_of_distances_is_caught(monkeypatch):
    """Under replace-one a marginal moves by 2 in squared L2, and a distance by 2, that is 4."""
    sound = Calibration._noise

    def squared_of_marginals(self, price, l1, l2_squared, moved):
        return sound(self, price, l1, len(CANDIDATES) * self.near.l2_squared, moved)

    monkeypatch.setattr(Calibration, "_noise", squared_of_marginals)
    assert max(excesses(monkeypatch, NEIGHBOURS[1], ZCDP, "gaussian", LEVEL)) > 1


@pytest.mark.parametrize("near", NEIGHBOURS[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_an_added_row_used_for_any_other_unit_is_caught(monkeypatch, near):
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert max(excesses(monkeypatch, near, ZCDP, "gaussian", LEVEL)) > 1


# The noise that distances really get, against what is charged and what a strategy is told.

MANY = 4000


def spread(measure: str, kind: str) -> tuple[float, float]:
    """Empirical standard deviation over what the charge claims, and over what was told."""
    near, price = NEIGHBOURS[3], Fraction(10)
    curator, notes = curator_on((0, 1, 3), near, measure, kind)
    answer, told = curator.errors([("a",)] * MANY, LEVEL, price)
    exact = 9 - 2 + 1
    event = notes.entries[0].event
    claimed = event.sigma if kind == "gaussian" else event.scale * 2**0.5
    found = float(np.sqrt(np.mean((answer - exact) ** 2.0)))
    return found / claimed, found / told


@pytest.mark.parametrize(("measure", "kind"), KINDS)
def test_distances_get_the_noise_that_is_charged_for_and_told(measure, kind):
    assert all(0.9 < ratio < 1.1 for ratio in spread(measure, kind))


@pytest.mark.parametrize(("measure", "kind"), KINDS)
def test_distances_with_0_7_of_their_noise_would_be_caught(monkeypatch, measure, kind):
    name = f"add_{kind}"
    sound = getattr(noise, name)
    monkeypatch.setattr(noise, name, lambda values, scale: sound(values, 0.7 * scale))
    assert not any(0.9 < ratio < 1.1 for ratio in spread(measure, kind))
