"""Attacks on the synthetic table alone: each finds a unit in an exact table, and none in an unrelated one."""

import numpy as np
import pytest

from dpsynth.wings.proof.audit.losses import lower_bound
from dpsynth.wings.proof.audit.membership import ATTACKS, Sight, promising, scored

NAMES = ("a", "b", "c", "d")
ROWS, OWN_ROWS = 120, 3
RELEASES = 45
ASKED = frozenset({(), *((name,) for name in NAMES), ("a", "b"), ("b", "c", "d")})


def released(rng: np.random.Generator, inside: bool, how: str) -> Sight:
    """What is seen of a table of four values a column, in which the unit has the rarest of each.

    Rows are published as they are, drawn anew from their own distribution, or from one without the unit.
    """
    others = np.random.default_rng(5).random((ROWS, len(NAMES))) < 0.1
    # No other row is the unit's.
    others[others.all(axis=1), 0] = False
    own = np.ones((OWN_ROWS * inside, len(NAMES)), dtype=bool)
    table = others if how == "unrelated" else np.concatenate([others, own])
    rows = len(table) if how == "exact" else ROWS
    chosen = rng.permutation(rows) if how == "exact" else rng.integers(0, len(table), rows)
    return Sight(NAMES, table[chosen], ASKED)


def both(how: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(11)
    inside, outside = ([released(rng, kind, how) for _ in range(RELEASES)] for kind in (True, False))
    return scored(inside, outside)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_exact_table_gives_the_unit_away_to_every_attack(attack: str) -> None:
    found = lower_bound(*both("exact")[attack], 0.0)
    assert found.right == 1.0
    assert found.right_between[0] > 0.9
    assert found.epsilon > 1


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_table_drawn_from_the_data_gives_it_away_often(attack: str) -> None:
    found = lower_bound(*both("drawn")[attack], 0.0)
    assert found.right_between[0] > 0.6


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_table_that_does_not_know_the_unit_gives_nothing_away(attack: str) -> None:
    found = lower_bound(*both("unrelated")[attack], 0.0)
    # The seed is fixed.
    low, high = found.right_between
    assert low < 0.5 < high
    assert found.epsilon == 0


def test_the_attack_that_is_chosen_is_the_one_that_separates_the_scores() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(size=30), rng.normal(size=30)
    assert promising({"guessing": noise, "sure": (noise[0] + 9, noise[1])}) == "sure"
    assert promising({"reversed": (noise[0] - 9, noise[1]), "guessing": noise}) == "reversed"


def test_larger_sets_are_looked_at_where_the_strategy_asks_them() -> None:
    """The unit is told by three columns together alone: no pair and no column shows it."""
    rng = np.random.default_rng(3)

    def table(inside: bool) -> Sight:
        flags = rng.permuted(np.arange(60) < 20)
        pairs = rng.permuted(np.arange(60) < 20)
        # With the unit, "d" agrees where "b" and "c" both do or neither does; without it, the other way.
        last = (flags == pairs) if inside else (flags != pairs)
        return Sight(NAMES, np.stack([flags ^ flags, flags, pairs, last], axis=1), ASKED)

    seen = [[table(kind) for _ in range(RELEASES)] for kind in (True, False)]
    assert lower_bound(*scored(*seen)["focal points"], 0.0).right > 0.95
    without = [[Sight(NAMES, one.agrees, frozenset({("a",)})) for one in kind] for kind in seen]
    assert lower_bound(*scored(*without)["focal points"], 0.0).right < 0.95
