"""Pairs that are answered already: those worth their noise are held, as far as the model has room."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.domain.domain import Domain
from dpsynth.domain.measurement import RANDOMISED, ExactTotal, Measurement
from dpsynth.model import estimate
from dpsynth.structure.answered import held_answers
from dpsynth.structure.strategy import Selection

DOMAIN = Domain({"a": 2, "b": 2, "c": 2, "d": 2})
ROWS = 10_000


def singles() -> list[Measurement]:
    even = np.array([ROWS // 2, ROWS // 2])
    return [Measurement((c,), even, RANDOMISED, 50.0) for c in DOMAIN.columns]


def answer(pair: tuple[str, str], moved: int) -> Measurement:
    quarter = ROWS // 4
    values = np.array([[quarter + moved, quarter - moved], [quarter - moved, quarter + moved]])
    return Measurement(pair, values, RANDOMISED, 100.0)


def selected(answers: list[Measurement], max_cells: int = 1_000, *, listed: bool = False) -> Selection:
    start = estimate(DOMAIN, [ExactTotal.of(ROWS), *singles()])
    return held_answers(DOMAIN, answers, start, listed=listed, max_cells=max_cells)


def test_a_pair_is_held_if_its_squared_distance_is_twice_its_squared_noise() -> None:
    """A moved count of m is a squared distance of 4 m^2, with one degree of freedom of variance 10,000."""
    strong, weak = answer(("a", "b"), 72), answer(("b", "c"), 69)
    found = selected([weak, strong])
    assert found.cliques == (("a", "b"),)
    assert found.held == [strong]


def test_listed_cliques_are_all_held() -> None:
    assert set(selected([answer(("b", "c"), 0)], listed=True).cliques) == {("b", "c")}


def test_a_pair_without_room_lies_beside() -> None:
    """A chain of four columns has 12 cells; the pair that closes it would make two triples of it."""
    chain = [answer(("a", "b"), 900), answer(("b", "c"), 600), answer(("c", "d"), 450)]
    last = answer(("a", "d"), 300)
    found = selected([last, *chain], max_cells=12)
    assert found.held == chain
    assert found.beside == (("a", "d"),)


@pytest.mark.parametrize("moved", [0, 60])
def test_without_a_pair_worth_its_noise_the_columns_are_independent(moved: int) -> None:
    assert selected([answer(("a", "b"), moved)]).cliques == ()
