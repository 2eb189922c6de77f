"""The scan of parities: asked by public numbers alone, where it would tell, and measured where it tells."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.columns.domain import Domain
from dpsynth.columns.parities import number_of_sets
from dpsynth.columns.workload import Workload
from dpsynth.strategy.exclusive_ors import MOST_SHARE, scan_of
from dpsynth.testing import STRATEGIES, FakeDoor, problem_of
from tests.strategy.test_auto import keeps_its_word
from tests.thinned import some

AUTO = STRATEGIES["auto"]
NAMES = tuple(f"c{i:02}" for i in range(12))
ONE = Fraction(1, 50)


def error_of(price, number):
    """The deviation of each of so many parities under zCDP."""
    return (number / (2 * float(price))) ** 0.5


def planned(columns=12, rows=20_000, budget=ONE, workload=None, size=2, error=error_of):
    names = tuple(f"c{i}" for i in range(columns))
    return scan_of(dict.fromkeys(names, size), workload or Workload(names), rows, budget, error)


def selected(codes, budget=ONE, *, measure=ZCDP, noise="gaussian", workload=None, sizes=2, seed=1):
    """The selection of auto for a table of codes, and its questions about parities."""
    domain = Domain(dict.fromkeys(codes, sizes))
    door = FakeDoor(domain, codes, budget, np.random.default_rng(seed), measure, noise)
    problem = problem_of(door, one_way=door.budget / 20, structure=door.budget / 10, workload=workload)
    before = len(door.asked)
    found = AUTO.select(door, problem)
    keeps_its_word(door, problem, found, before)
    assert door.exhausted
    return found, [(about, price) for kind, about, price in door.asked if kind == "parities"]


def exclusive(others, rows=20_000, columns=12, leaning=0.5):
    """Coins, of which the last one is the exclusive or of so many others."""
    rng = np.random.default_rng(3)
    codes = {c: (rng.random(rows) < leaning).astype(np.int64) for c in NAMES[:columns]}
    for c in NAMES[:others]:
        codes[c] = rng.integers(0, 2, rows)
    codes[NAMES[columns - 1]] = np.bitwise_xor.reduce([codes[c] for c in NAMES[:others]])
    return codes, (*NAMES[:others], NAMES[columns - 1])


@pytest.mark.parametrize("measure", [ZCDP, GDP])
@pytest.mark.parametrize("others", [2, 3, 4])
def test_an_exclusive_or_of_two_three_or_four_columns_is_measured(others, measure):
    codes, relation = exclusive(others)
    found, asked = selected(codes, measure=measure)
    assert relation in found.beside
    assert [len(c) for c in found.beside if len(c) > 3] == [others + 1] * (others > 2)
    ((sets, price),) = asked
    assert set(map(len, sets)) == {3, 4, 5} and price <= ONE * MOST_SHARE


def test_of_sets_that_hold_an_exclusive_or_and_a_column_that_leans_one_is_measured():
    """With a column that is 1 in a tenth of the rows the parity is eight tenths of the rows."""
    codes, relation = exclusive(3, leaning=0.1)
    found, _ = selected(codes)
    several = [c for c in found.beside if len(c) > 3]
    assert len(several) == 1 and set(several[0]) >= set(relation)


def test_columns_that_lean_or_depend_in_pairs_are_no_exclusive_or():
    """Their parities are far from 0, and near the model's."""
    rng = np.random.default_rng(4)
    base = rng.random(20_000) < 0.2
    codes = {c: np.where(rng.random(20_000) < 0.5, base, rng.random(20_000) < 0.2).astype(int) for c in NAMES}
    found, asked = selected(codes)
    assert asked and [c for c in found.beside if len(c) > 3] == []


@pytest.mark.parametrize("seed", some(range(5), 2))
def test_noise_alone_is_no_exclusive_or(seed):
    rng = np.random.default_rng(seed)
    found, asked = selected({c: rng.integers(0, 2, 20_000) for c in NAMES}, seed=seed)
    assert asked and [c for c in found.beside if len(c) > 3] == []


def test_where_distances_would_not_tell_the_scan_alone_is_asked_after_the_tree():
    codes, relation = exclusive(2, columns=8)
    domain = Domain(dict.fromkeys(codes, 2))
    door = FakeDoor(domain, codes, Fraction(1, 2000), np.random.default_rng(1))
    problem = problem_of(door, one_way=door.budget / 20, structure=door.budget / 10)
    found = AUTO.select(door, problem)
    assert found.beside == (relation,) and door.exhausted
    assert [kind for kind, _, _ in door.asked].count("errors") == 1


@pytest.mark.parametrize("others", [2, 0])
def test_all_is_spent_where_no_pair_pays_for_the_tree(monkeypatch, others):
    """On an exclusive or, or, without any, on the single columns."""
    monkeypatch.setattr("dpsynth.strategy.auto.CAUTION", 1e6)
    codes, relation = exclusive(max(others, 2), columns=8)
    if not others:
        codes[relation[-1]] = codes[relation[-1]][::-1]
    found, asked = selected(codes, Fraction(1, 2000))
    assert asked and found.inside == () and found.beside == (relation,) * (others > 0)


def test_sets_are_as_large_as_a_part_of_the_budget_pays_for():
    sizes = {rows: scan.most if (scan := planned(rows=rows)) else 0 for rows in (300, 2500, 4500, 20_000)}
    assert list(sizes.values()) == [0, 3, 4, 5]
    for rows in (4500, 20_000):
        scan = planned(rows=rows)
        assert scan.price <= ONE * MOST_SHARE
        # An exclusive or that always holds stands above all noise by 2.4 deviations.
        number = number_of_sets(12, scan.most)
        stands = (2 * np.log(number)) ** 0.5 + 0.25
        assert rows == pytest.approx((stands + 2.4) * error_of(scan.price, number))


@pytest.mark.parametrize(
    "others",
    [
        {"columns": 3},
        {"size": 3},
        {"rows": -40.0},
        {"rows": 0.0},
        {"workload": Workload(tuple(f"c{i}" for i in range(12)), ways=2)},
        {"workload": Workload(tuple(f"c{i}" for i in range(12)), marginals=((("c0", "c1", "c2"), 1),))},
        {"error": lambda price, number: number / float(price)},
    ],
)
def test_nothing_is_asked_where_nothing_would_be_found(others):
    assert planned(**others) is None


def test_laplace_noise_for_every_set_costs_too_much_and_pure_releases_have_no_second_round():
    codes, _ = exclusive(3)
    assert not selected(codes, noise="laplace")[1]
    assert not selected(codes, Fraction(1), measure=PURE, noise="laplace")[1]


def test_no_more_sets_are_asked_about_than_can_be_counted_in_a_quarter_of_a_minute():
    assert planned(columns=60, rows=10**7, budget=Fraction(10)).most == 3
    assert planned(columns=60, rows=10**6, budget=Fraction(10)).most == 4
    assert planned(columns=160, rows=10**6, budget=Fraction(10)) is None


def test_columns_that_depend_strongly_on_another_one_are_left_out():
    codes, relation = exclusive(3)
    copied = [c for c in NAMES if c not in relation][:3]
    for c in copied:
        codes[c] = np.where(np.random.default_rng(6).random(20_000) < 0.9, codes[copied[0]], codes[c])
    found, ((sets, _),) = selected(codes)
    assert {c for s in sets for c in s} == {*NAMES} - {*copied} and relation in found.beside
    alike = dict.fromkeys(NAMES, codes[copied[0]])
    assert not selected(alike)[1]


def test_what_is_asked_follows_from_public_numbers():
    """Two tables with the same noisy number of rows get the same question at the same price."""
    codes, _ = exclusive(3)
    rng = np.random.default_rng(8)
    other = {c: 1 - codes[c] if i % 2 else rng.permutation(codes[c]) for i, c in enumerate(codes)}
    assert selected(codes)[1] == selected(other)[1]
    assert set(selected(codes)[1][0][0]) == {c for k in (3, 4, 5) for c in combinations(NAMES, k)}
