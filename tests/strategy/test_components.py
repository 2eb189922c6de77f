"""Components of a graph that grows edge by edge, held against paths searched for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.strategy.candidates import Forest

EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12)


def reached(start, edges):
    """All places that a path of edges joins to one."""
    found = {start}
    while more := {x for a, b in edges for x in (a, b) if {a, b} & found} - found:
        found |= more
    return found


@given(EDGES)
def test_two_columns_are_apart_exactly_if_no_path_of_edges_joins_them(edges):
    forest = Forest([2] * 8)
    first, second = np.triu_indices(8, 1)
    for done in range(len(edges) + 1):
        joined = edges[:done]
        expected = [b not in reached(a, joined) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
        assert forest.disconnected(first, second).tolist() == expected
        if done < len(edges):
            forest.join(*edges[done])


def test_an_edge_within_a_part_changes_nothing_and_a_column_is_never_apart_from_itself():
    forest = Forest([2] * 4)
    every = np.arange(4)
    assert not forest.disconnected(every, every).any()
    forest.join(0, 1)
    forest.join(1, 2)
    before = forest.disconnected(*np.triu_indices(4, 1)).tolist()
    forest.join(2, 0)
    assert (
        forest.disconnected(*np.triu_indices(4, 1)).tolist()
        == before
        == [False, False, True, False, True, True]
    )
