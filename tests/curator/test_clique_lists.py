"""Two lists of candidates have one name only if they are the same list."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.curator.distances import CliqueDigests, selected
from tests.examples import examples

NAMES = st.sampled_from(["a", "b", "a\tb", "a\nb", 'a", "b', "é", ""])
LISTS = st.lists(st.tuples(st.lists(NAMES, max_size=3).map(tuple), st.integers(-1, 1), st.integers(0, 2)))


def named(listing, rows):
    cliques = [clique for clique, _, _ in rows]
    penalties, weights = (np.array([row[i] for row in rows], dtype=np.int64) for i in (1, 2))
    return listing.of(cliques, penalties, weights)


@given(LISTS, LISTS)
@examples(300)
def test_names_are_equal_only_if_cliques_and_numbers_are(one, two):
    listing = CliqueDigests()
    assert (named(listing, one) == named(listing, two)) == (one == two)


@given(LISTS)
@examples(50)
def test_a_name_does_not_depend_on_what_was_named_before(rows):
    used = CliqueDigests()
    named(used, [(("b", "a"), 0, 0), *rows[::-1]])
    assert named(used, rows) == named(CliqueDigests(), rows)


@given(st.lists(st.integers(0, 9), max_size=4), st.lists(st.integers(0, 9), max_size=4), LISTS, LISTS)
@examples(100)
def test_parts_are_named_alike_only_if_they_are_the_same_part_of_the_same_list(at, other, one, two):
    listing = CliqueDigests()
    names = [
        selected(named(listing, rows), np.array(p, dtype=np.intp)) for rows, p in ((one, at), (two, other))
    ]
    assert (names[0] == names[1]) == ((one, at) == (two, other))
    assert names[0]["number"] == len(at)
