"""A workload's closed forms are what listing every marginal gives, and their mean over pairs is 1."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.workload import TARGET_WEIGHT, Workload
from tests.examples import examples

LETTERS = "abcdefg"


def listed(workload, ways):
    """Every marginal with its exact weight, not divided by anything."""
    given_weights, targets = dict(workload.weights), set(workload.targets)
    own = [(clique, 1) for clique in combinations(workload.columns, ways)] if ways else []
    found = []
    for clique, weight in [*own, *workload.marginals]:
        total = Fraction(weight) * prod(
            (Fraction(given_weights.get(c, 1)) for c in clique), start=Fraction(1)
        )
        found.append(
            (set(clique), total * Fraction(workload.target_weight) if targets & set(clique) else total)
        )
    return found


def brute_force(workload, ways):
    """The weight of a clique as a function, from the whole list."""
    marginals = listed(workload, ways)
    pairs = list(combinations(workload.columns, 2))

    def raw(clique):
        return sum((w for m, w in marginals if set(clique) <= m), Fraction(0))

    mean = sum(map(raw, pairs), Fraction(0)) / len(pairs) if pairs else Fraction(1)
    return lambda clique: float(raw(clique) / mean)


def every_clique(columns):
    return [c for size in range(len(columns) + 1) for c in combinations(columns, size)]


weights = st.one_of(
    st.integers(1, 9), st.sampled_from([Decimal("1e-6"), Decimal("0.3"), Decimal(10) ** 6, Fraction(2, 7)])
)


@st.composite
def workloads(draw):
    """Any workload on up to seven columns, with the ways that it comes to."""
    columns = tuple(LETTERS[: draw(st.integers(2, 7))])
    ways = draw(st.one_of(st.none(), st.integers(2, len(columns))))
    subset = st.lists(st.sampled_from(columns), unique=True, min_size=1).map(tuple)
    marginals = draw(st.lists(st.tuples(subset, weights), max_size=4))
    if ways is None and marginals:
        marginals.append((columns[:2], 1))
    made = Workload(
        columns,
        ways,
        tuple(marginals),
        tuple((c, draw(weights)) for c in draw(st.lists(st.sampled_from(columns), unique=True))),
        tuple(draw(st.lists(st.sampled_from(columns), unique=True))),
        draw(weights),
    )
    return made, (ways or 0 if marginals else ways or min(3, len(columns)))


@given(workloads())
@examples(150)
def test_every_weight_is_the_sum_over_all_marginals_that_hold_the_clique(case):
    workload, ways = case
    expected = brute_force(workload, ways)
    for clique in every_clique(workload.columns):
        assert workload.weight(clique) == pytest.approx(expected(clique), rel=1e-12, abs=0)
        assert workload.weight(clique[::-1]) == workload.weight(clique)


@given(workloads())
@examples(150)
def test_pair_weights_are_those_of_pairs_and_single_columns_and_average_one(case):
    workload, _ = case
    found = workload.pair_weights()
    assert found.dtype == np.float64
    for i, a in enumerate(workload.columns):
        for j, b in enumerate(workload.columns):
            assert found[i, j] == pytest.approx(workload.weight({a, b}), rel=1e-12, abs=0)
    off = found[~np.eye(len(found), dtype=bool)]
    assert off.mean() == pytest.approx(1)


@given(workloads())
@examples(50)
def test_the_largest_marginal_is_as_wide_as_it_is(case):
    workload, ways = case
    assert workload.widest == max(len(m) for m, _ in listed(workload, ways))
    wider = next((c for c in every_clique(workload.columns) if len(c) > workload.widest), None)
    assert wider is None or workload.weight(wider) == 0


def test_all_three_way_marginals_are_the_default():
    workload = Workload(tuple(LETTERS))
    assert workload.widest == 3
    assert np.all(workload.pair_weights()[~np.eye(7, dtype=bool)] == 1)
    assert workload.weight("abc") == pytest.approx(1 / 5)
    assert workload.weight("abcd") == 0
    assert workload.weight(()) == pytest.approx(comb(7, 3) / 5)


@pytest.mark.parametrize("columns", ["a", "ab", "abc"])
def test_a_narrow_table_has_a_workload_of_all_its_columns(columns):
    workload = Workload(tuple(columns))
    assert workload.widest == len(columns)
    assert workload.weight(columns) == 1


def test_an_explicit_list_is_all_there_is_unless_ways_are_given_too():
    marginals = ((("a", "b"), 2), (("b", "c", "d"), 1))
    alone = Workload(tuple("abcd"), marginals=marginals)
    assert alone.weight("ad") == 0 and alone.weight("ab") == 2 * alone.weight("bc") > 0
    both = Workload(tuple("abcd"), ways=2, marginals=marginals)
    assert both.weight("ad") > 0 and both.weight("ab") == pytest.approx(3 * both.weight("ad"))


def test_a_marginal_that_holds_a_target_counts_so_many_times_whichever_and_how_many_it_holds():
    plain, aimed = Workload(tuple(LETTERS)), Workload(tuple(LETTERS), targets=("a", "b"))
    assert TARGET_WEIGHT == 4
    assert aimed.weight("acd") == pytest.approx(4 * aimed.weight("cde"))
    assert aimed.weight("abc") == aimed.weight("acd")
    assert plain.weight("abc") == plain.weight("cde")


def test_a_column_of_twice_the_weight_counts_twice_in_each_of_its_marginals():
    workload = Workload(tuple(LETTERS), weights=(("a", 2), ("b", Fraction(1, 2))))
    assert workload.weight("acd") == pytest.approx(2 * workload.weight("cde"))
    assert workload.weight("abc") == pytest.approx(workload.weight("cde"))


def test_weights_that_span_twelve_decades_lose_no_digit():
    columns = tuple(f"c{i}" for i in range(15))
    spread = tuple((c, Decimal(10) ** (i % 13 - 6)) for i, c in enumerate(columns))
    workload = Workload(columns, ways=4, weights=spread)
    expected = brute_force(workload, 4)
    for clique in [("c12",), ("c0", "c13"), ("c12", "c13"), ("c0", "c12", "c13"), ("c6", "c7", "c8", "c9")]:
        assert workload.weight(clique) == pytest.approx(expected(clique), rel=1e-13)


def test_two_hundred_columns_of_different_weights_are_no_more_than_their_pairs():
    columns = tuple(f"c{i}" for i in range(200))
    workload = Workload(columns, weights=tuple((c, i + 1) for i, c in enumerate(columns)), targets=("c7",))
    found = workload.pair_weights()
    assert found[np.triu_indices(200, 1)].mean() == pytest.approx(1)
    others = sum(range(1, 201)) - 4 - 10
    whole = found[3, 9] / (4 * 10 * (others + 3 * 8))
    assert found[5, 8] / (6 * 9 * (sum(range(1, 201)) - 6 - 9 + 3 * 8)) == pytest.approx(whole)
    assert found[7, 9] / (4 * 8 * 10 * (sum(range(1, 201)) - 8 - 10)) == pytest.approx(whole)


@pytest.mark.parametrize(
    "wrong",
    [
        {"marginals": ((("a", "x"), 1),)},
        {"marginals": ((("a", "a"), 1),)},
        {"marginals": (((), 1), (("a", "b"), 1))},
        {"marginals": ((("a",), 1),)},
        {"marginals": ((("a", "b"), 0),)},
        {"weights": (("x", 1),)},
        {"weights": (("a", 1), ("a", 2))},
        {"weights": (("a", -1),)},
        {"targets": ("x",)},
        {"targets": ("a", "a")},
        {"targets": ("a",), "target_weight": 0},
        {"ways": 1},
        {"ways": 0},
        {"ways": 4},
        {"columns": ("a", "a", "b")},
    ],
    ids=str,
)
def test_what_names_no_marginal_of_the_table_is_refused(wrong):
    with pytest.raises(ValueError):
        Workload(**{"columns": ("a", "b", "c")} | wrong)
    with pytest.raises(KeyError):
        Workload(("a", "b")).weight(("a", "x"))
