"""Blocks: what they cover, where they lie, and that they cost what the pairs they replace would have."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.domain import Domain
from dpsynth.model import Triangulation
from dpsynth.strategy import candidates as search
from dpsynth.strategy.candidates import MOST_CELLS, blocks, with_blocks
from tests.examples import examples


@st.composite
def graphs(draw):
    """Columns and some of their pairs, in any order."""
    columns = [f"c{i}" for i in range(draw(st.integers(1, 9)))]
    domain = Domain({c: draw(st.sampled_from([1, 2, 2, 2, 3, 4, 5, 9])) for c in columns})
    density = draw(st.sampled_from([1, 2, 4]))
    pairs = [p for p in combinations(columns, 2) if draw(st.integers(0, 4)) < density]
    return domain, draw(st.permutations(pairs))


def triples(cliques):
    return {frozenset(t) for c in cliques for t in combinations(c, 3)}


@given(graphs())
@examples(150)
def test_blocks_hold_all_small_triples_whose_pairs_were_chosen_and_no_other_pairs(graph):
    domain, pairs = graph
    found = blocks(domain, pairs)
    chosen = {frozenset(p) for p in pairs}
    due = {
        frozenset(t)
        for t in combinations(domain.columns, 3)
        if domain.cells(t) <= MOST_CELLS and {frozenset(p) for p in combinations(t, 2)} <= chosen
    }
    assert triples(found) == due
    assert {frozenset(p) for b in found for p in combinations(b, 2)} <= chosen
    for b in found:
        assert len(b) >= 3 and domain.cells(b) <= MOST_CELLS and domain.canonical(b) == b
    assert len(set(found)) == len(found)


@given(graphs())
@examples(60)
def test_blocks_add_no_cell_to_the_junction_tree_of_the_pairs(graph):
    domain, pairs = graph
    tree = Triangulation.of(domain, pairs)
    found = blocks(domain, pairs)
    kept, _ = with_blocks(pairs, [1.0] * len(pairs), found)
    assert Triangulation.of(domain, kept).cells == tree.cells
    assert all(any(set(b) <= set(c) for c in tree.cliques) for b in found)


@given(graphs(), st.data())
@examples(100)
def test_pairs_hand_over_what_they_cost_and_pairs_in_no_block_keep_it(graph, data):
    domain, pairs = graph
    costs = [data.draw(st.floats(1e-6, 1e3)) for _ in pairs]
    found = blocks(domain, pairs)
    kept, shares = with_blocks(pairs, costs, found)
    assert sum(shares) == pytest.approx(sum(costs), rel=1e-12)
    assert len(kept) == len(shares) and all(s > 0 for s in shares)
    assert kept[len(kept) - len(found) :] == list(found)
    alone = dict(zip(kept, shares, strict=True))
    held = {frozenset(p) for b in found for p in combinations(b, 2)}
    for pair, cost in zip(pairs, costs, strict=True):
        assert (pair in alone) == (frozenset(pair) not in held)
        assert alone.get(pair, cost) == cost
    # Whatever was cut, each chosen pair is measured by something.
    assert {frozenset(p) for c in kept for p in combinations(c, 2)} == {frozenset(p) for p in pairs}


def test_a_pair_in_several_blocks_leaves_an_even_part_to_each():
    kept, shares = with_blocks(
        [("a", "b"), ("a", "c"), ("x", "y")], [6.0, 1.0, 2.0], [("a", "b", "c"), ("a", "b", "d")]
    )
    assert kept == [("x", "y"), ("a", "b", "c"), ("a", "b", "d")]
    assert shares == [2.0, 4.0, 3.0]


@pytest.mark.parametrize(("columns", "number"), [(4, 1), (8, 14), (16, 140)])
def test_two_to_the_k_binary_columns_give_a_steiner_system(columns, number):
    domain = Domain({f"c{i}": 2 for i in range(columns)})
    found = blocks(domain, list(combinations(domain.columns, 2)))
    assert len(found) == number and {len(b) for b in found} == {4}
    assert sum(len(triples([b])) for b in found) == len(triples(found)) == len(triples([domain.columns]))


def test_binary_columns_of_any_number_are_covered_with_few_triples_held_twice():
    for columns in (5, 11, 20, 30):
        domain = Domain({f"c{i}": 2 for i in range(columns)})
        found = blocks(domain, list(combinations(domain.columns, 2)))
        every = triples([domain.columns])
        assert triples(found) == every
        assert sum(len(triples([b])) for b in found) <= 2.1 * len(every)


def test_sixty_binary_columns_of_which_all_pairs_were_chosen_are_covered_within_the_bound_on_blocks():
    domain = Domain({f"c{i}": 2 for i in range(60)})
    pairs = list(combinations(domain.columns, 2))
    found = blocks(domain, pairs)
    assert triples(found) == triples([domain.columns])
    kept, shares = with_blocks(pairs, [1.0] * len(pairs), found)
    assert kept == list(found) and sum(shares) == pytest.approx(len(pairs))


@pytest.mark.parametrize("most", [0, 1, 10, 60])
def test_where_the_search_is_cut_short_every_chosen_pair_is_still_measured(monkeypatch, most):
    monkeypatch.setattr(search, "_MOST_BLOCKS", most)
    domain = Domain({f"c{i}": 2 for i in range(8)})
    pairs = list(combinations(domain.columns, 2))
    kept, shares = with_blocks(pairs, [1.0] * len(pairs), blocks(domain, pairs))
    assert {p for c in kept for p in combinations(c, 2)} == set(pairs)
    assert sum(shares) == pytest.approx(len(pairs))


def test_without_triangles_or_small_columns_there_are_no_blocks():
    domain = Domain({"a": 2, "b": 2, "c": 2, "d": 2})
    assert blocks(domain, []) == ()
    assert blocks(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]) == ()
    wide = Domain(dict.fromkeys("abc", 3))
    assert blocks(wide, list(combinations("abc", 2))) == ()
    assert blocks(Domain({"a": 2, "b": 2, "c": 4}), list(combinations("abc", 2))) == (("a", "b", "c"),)
