"""Whether a public table's relations are believed: by a private question, and for next to nothing."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.strategy.public_table import PART, with_public_relations
from dpsynth.testing import FakeDoor, problem_of

DOMAIN = Domain({"a": 4, "b": 4, "c": 3, "d": 3})
ROWS = 20_000
BUDGET = Fraction(1, 1000)
PAIRS = (("a", "b"), ("b", "c"), ("c", "d"))


def table(rng):
    """A chain: each column follows the one before in most rows."""
    codes = {"a": rng.integers(0, 4, ROWS)}
    for before, column in zip("abc", "bcd", strict=True):
        same = rng.random(ROWS) < 0.6
        codes[column] = np.where(
            same, codes[before] % DOMAIN.sizes[column], rng.integers(0, DOMAIN.sizes[column], ROWS)
        )
    return codes


def public(codes, sigma=20.0):
    """The counts of pairs of columns."""
    other = FakeDoor(DOMAIN, codes, BUDGET, np.random.default_rng(0))
    return [Measurement(pair, other.counts(pair), "gaussian", sigma) for pair in PAIRS]


def asked(seed, told, structure=BUDGET / 20):
    rng = np.random.default_rng(seed)
    door = FakeDoor(DOMAIN, table(rng), BUDGET, rng)
    problem = problem_of(door, one_way=BUDGET / 10, structure=structure)
    before = door.spent
    found, believed = with_public_relations(door, problem, problem.start, told)
    return door, problem, found, believed, door.spent - before


@pytest.mark.parametrize("seed", range(5))
def test_a_table_of_the_same_kind_is_believed_and_enters_the_start(seed):
    told = public(table(np.random.default_rng(100 + seed)))
    door, problem, found, believed, _ = asked(seed, told)
    assert believed == tuple(told) and found.earlier == tuple(told)
    truth = door.counts(("a", "b"))
    distances = [np.abs(p.start.model.marginal(("a", "b")) - truth).sum() for p in (found, problem)]
    assert distances[0] < distances[1] / 5


@pytest.mark.parametrize("seed", range(5))
def test_right_columns_with_wrong_relations_are_found_out(seed):
    """Planted: columns sorted, one up, one down. To believe it would put the start far off."""
    codes = table(np.random.default_rng(100 + seed))
    told = public({c: np.sort(v)[:: -1 if c in "bd" else 1] for c, v in codes.items()})
    door, problem, found, believed, _ = asked(seed, told)
    wrong = problem.start.model.marginal(("a", "b")) - door.counts(("a", "b"))
    assert np.abs(told[0].values - door.counts(("a", "b"))).sum() > np.abs(wrong).sum()
    assert believed == () and found.earlier == () and found.start is problem.start


def test_what_is_asked_comes_out_of_what_choosing_may_cost():
    told = public(table(np.random.default_rng(100)))
    _, problem, found, _, price = asked(0, told)
    assert price == problem.structure * PART and found.structure == problem.structure - price


@pytest.mark.parametrize("told", [(), "imprecise"])
def test_nothing_is_asked_where_there_is_nothing_to_believe(told):
    """What the release would measure as precisely itself is left to it."""
    told = public(table(np.random.default_rng(100)), sigma=1e6) if told else ()
    _, problem, found, believed, price = asked(0, told)
    assert price == 0 and believed == () and found is problem


def test_a_strategy_that_chooses_nothing_takes_the_table_at_its_word():
    told = public(table(np.random.default_rng(100)))
    *_, believed, price = asked(0, told, structure=Fraction(0))
    assert price == 0 and believed == tuple(told)
