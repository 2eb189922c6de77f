"""Strategies ask what they promised, at the price allowed, and measure a spanning tree or nothing."""

from fractions import Fraction
from itertools import combinations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.domain.domain import Domain
from dpsynth.spec import Structure
from dpsynth.structure import STRATEGIES

MST, INDEPENDENT = STRATEGIES["mst"], STRATEGIES["independent"]


def parts(columns, edges):
    """Connected parts of a graph, as a map from column to a member of its part."""
    part = {c: c for c in columns}
    for a, b in edges:
        joined, absorbed = part[a], part[b]
        part = {c: joined if p == absorbed else p for c, p in part.items()}
    return part


def is_tree(columns, edges):
    return len(edges) == len(columns) - 1 and len(set(parts(columns, edges).values())) == 1


class Chooser:
    """Chooses by a rule, and remembers what it was asked."""

    def __init__(self, rule):
        self.rule, self.asked = rule, []

    def choose(self, candidates, estimates, price, penalties=()):
        self.asked.append((list(candidates), estimates, price, list(penalties)))
        return self.rule(candidates, penalties)


@st.composite
def situations(draw):
    """A domain, an allowance, pairs wanted without a cycle, and arbitrary choices."""
    columns = [f"c{i}" for i in range(draw(st.integers(1, 9)))]
    domain = Domain({c: draw(st.integers(1, 6)) for c in columns})
    wanted = []
    for pair in draw(st.permutations(list(combinations(columns, 2)))):
        part = parts(columns, wanted)
        if part[pair[0]] != part[pair[1]] and draw(st.booleans()):
            wanted.append(pair)
    allowance = draw(st.fractions(Fraction(1, 1000), 5))
    picks = draw(st.lists(st.integers(0, 10**6), min_size=9, max_size=9))
    return domain, allowance, wanted, picks


@given(situations())
@settings(max_examples=200, deadline=None)
def test_whatever_is_chosen_the_edges_span_the_columns_and_hold_the_wanted_pairs(situation):
    domain, allowance, wanted, picks = situation
    chooser = Chooser(lambda candidates, _: picks.pop() % len(candidates))
    edges = MST.select(chooser, domain, object(), allowance, 1.5, wanted)
    assert is_tree(domain.columns, edges)
    assert edges[: len(wanted)] == tuple(wanted)
    assert all(a in domain.sizes and b in domain.sizes and a != b for a, b in edges)


@given(situations())
@settings(max_examples=200, deadline=None)
def test_each_choice_has_an_equal_price_and_together_they_cost_the_allowance_exactly(situation):
    domain, allowance, wanted, picks = situation
    chooser = Chooser(lambda candidates, _: picks.pop() % len(candidates))
    MST.select(chooser, domain, object(), allowance, 1.5, wanted)
    prices = [price for _, _, price, _ in chooser.asked]
    assert len(prices) == MST.choices(len(domain.columns), len(wanted))
    assert len(prices) == len(domain.columns) - 1 - len(wanted)
    assert len(set(prices)) <= 1 and (not prices or sum(prices) == allowance)


@given(situations())
@settings(max_examples=200, deadline=None)
def test_candidates_are_all_the_pairs_that_join_two_parts_each_less_its_public_penalty(situation):
    domain, allowance, wanted, picks = situation
    estimates = object()
    chooser = Chooser(lambda candidates, _: picks.pop() % len(candidates))
    edges = MST.select(chooser, domain, estimates, allowance, 1.5, wanted)
    for step, (candidates, seen, _, penalties) in enumerate(chooser.asked):
        part = parts(domain.columns, edges[: len(wanted) + step])
        joining = [p for p in combinations(domain.columns, 2) if part[p[0]] != part[p[1]]]
        assert candidates == joining and seen is estimates
        assert penalties == [round(1.5 * domain.cells(p)) for p in joining]


def heaviest_tree(columns, weights, wanted):
    """Weight of the heaviest spanning tree that holds the wanted pairs, by trying them all."""
    trees = combinations(weights, len(columns) - 1)
    return max(
        sum(weights[e] for e in tree) for tree in trees if set(wanted) <= set(tree) and is_tree(columns, tree)
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("wanted", [(), (("a", "c"),), (("a", "e"), ("b", "e"))])
def test_without_noise_it_is_the_maximum_spanning_tree_of_the_scores(seed, wanted):
    rng = np.random.default_rng(seed)
    columns = "abcde"
    domain = Domain({c: int(s) for c, s in zip(columns, rng.integers(1, 5, 5), strict=True)})
    scores = {p: int(rng.integers(0, 60)) for p in combinations(columns, 2)}

    def best(candidates, penalties):
        return int(np.argmax([scores[c] - off for c, off in zip(candidates, penalties, strict=True)]))

    edges = MST.select(Chooser(best), domain, object(), Fraction(1), 2.0, wanted)
    net = {p: s - round(2.0 * domain.cells(p)) for p, s in scores.items()}
    assert sum(net[e] for e in edges) == heaviest_tree(columns, net, wanted)


def test_independent_asks_nothing_and_measures_nothing():
    domain = Domain(dict.fromkeys("abc", 2))
    chooser = Chooser(lambda *_: pytest.fail("a choice was asked for"))
    assert INDEPENDENT.select(chooser, domain, object(), Fraction(1), 1.0, [("a", "b")]) == ()
    assert INDEPENDENT.choices(3, 1) == INDEPENDENT.cliques(3) == 0


@pytest.mark.parametrize("columns", [0, 1, 2, 7])
def test_mst_measures_as_many_pairs_as_a_tree_has_edges(columns):
    assert MST.cliques(columns) == max(0, columns - 1)
    for wanted in range(max(1, columns)):
        assert MST.choices(columns, wanted) + wanted == max(wanted, MST.cliques(columns))


def test_default_shares_are_positive_where_used_and_sum_to_exactly_one():
    for strategy in STRATEGIES.values():
        shares = strategy.shares
        assert shares.one_way + shares.structure + shares.marginals == 1
        assert shares.one_way > 0 and min(shares.structure, shares.marginals) >= 0
    assert MST.shares.structure > 0 and MST.shares.marginals > 0


def test_the_names_that_a_config_may_give_are_the_names_that_are_registered():
    annotation = Structure.model_fields["method"].annotation
    assert set(get_args(annotation)) == set(STRATEGIES)
    assert all(name == strategy.name for name, strategy in STRATEGIES.items())
