"""Pairs that are answered already: those worth their noise are held, as far as the model has room."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth.accounting.calibration import RANDOMISED
from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import ExactTotal, Measurement
from dpsynth.model import estimate
from dpsynth.strategy.strategy import Selection
from dpsynth.wings.local import aggregating as answered
from dpsynth.wings.local.aggregating import held_answers

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


PAIRS = list(combinations("abcd", 2))


def test_a_pair_is_held_only_if_its_squared_distance_is_twice_its_squared_noise(monkeypatch) -> None:
    """A moved count of m is a squared distance of 4 m^2, with one degree of freedom of variance 10,000."""
    strong, weak = answer(("a", "b"), 72), answer(("b", "c"), 69)
    monkeypatch.setattr(answered, "LEAST_SIGNAL", -1.0)
    found = selected([weak, strong])
    assert found.cliques == (("a", "b"),) and found.held == [strong]


def test_a_distance_that_noise_alone_would_explain_is_not_held_where_no_other_pair_shows_more() -> None:
    """2.5 standard deviations of noise, once in six pairs; beside pairs with relations it is held."""
    odd = answer(("a", "b"), 125)
    quiet = [answer(pair, 30) for pair in PAIRS[1:]]
    assert selected([odd, *quiet]).cliques == ()
    assert ("a", "b") in selected([odd, *(answer(pair, 400) for pair in PAIRS[1:])]).cliques


def held_of_noise(number: int) -> int:
    """How many of so many answers of pure noise are held."""
    moves = np.random.default_rng(3).normal(0, 50, number)
    return len(selected([answer(PAIRS[i % 6], round(move)) for i, move in enumerate(moves)]).cliques)


def test_pairs_of_pure_noise_are_left_to_their_columns() -> None:
    assert held_of_noise(120) == 0


def test_pairs_held_by_their_own_distance_alone_would_be_noticed(monkeypatch) -> None:
    monkeypatch.setattr(answered, "LEAST_SIGNAL", -1.0)
    assert held_of_noise(120) > 10


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
