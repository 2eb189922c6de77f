"""Sensitivities are the largest distances that any two neighbouring tables reach, and no larger."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpsynth.accounting.neighbours import Neighbours, left_unprotected, neighbours_in_words, protected


def contributions(cells, most):
    """Counts that one unit can bring: up to ``most`` rows over the cells, none included."""
    for rows in range(most + 1):
        for places in combinations_with_replacement(range(cells), rows):
            yield np.bincount(np.array(places, dtype=int), minlength=cells)


def distances(near, cells):
    """L1 and squared L2 distances of a marginal's counts over all pairs of neighbours.

    A table is the units it holds; counts add up, so one unit's change decides the distance,
    whatever the others are: a few bystanders are there to show it.
    """
    person = near.person is not None
    single = [c for c in contributions(cells, near.max_rows) if person or c.sum() == 1]
    nobody = np.zeros(cells, dtype=int)
    for bystanders in (nobody, np.arange(cells)):
        changes = product(single, [nobody]) if near.relation == "add_remove" else product(single, single)
        for one, other in changes:
            gap = (bystanders + one) - (bystanders + other)
            yield int(np.abs(gap).sum()), int(np.square(gap).sum())


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("person", "max_rows"), [(None, 1), ("id", 1), ("id", 2), ("id", 3), ("id", 4)])
@pytest.mark.parametrize("cells", [2, 3])
def test_the_stated_sensitivities_are_reached_and_never_exceeded(relation, person, max_rows, cells):
    near = Neighbours(relation, person, max_rows)
    reached = list(distances(near, cells))
    assert max(l1 for l1, _ in reached) == near.l1
    assert max(l2 for _, l2 in reached) == near.l2_squared


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("person", "max_rows"), [(None, 1), ("id", 2)])
def test_the_number_of_rows_is_public_exactly_where_no_neighbour_changes_it(relation, person, max_rows):
    near = Neighbours(relation, person, max_rows)
    fixed = all(l1 == 0 for l1, _ in distances(near, 1))
    assert near.rows_public == fixed


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_one_unit_moves_an_l1_distance_to_any_fixed_estimate_by_at_most_l1_either_way(relation):
    near = Neighbours(relation, "id", 2)
    rng = np.random.default_rng(0)
    seen = set()
    for guess in (np.zeros(3, int), np.array([0, 5, 1]), rng.integers(0, 9, 3)):
        single = list(contributions(3, 2))
        nobody = np.zeros(3, dtype=int)
        pairs = product(single, [nobody]) if relation == "add_remove" else product(single, single)
        for one, other in pairs:
            for rest in (nobody, np.array([3, 0, 4])):
                seen.add(int(np.abs(rest + one - guess).sum() - np.abs(rest + other - guess).sum()))
    assert max(seen) == near.l1 and min(seen) == -near.l1


@pytest.mark.parametrize(("person", "max_rows"), [(None, 2), (None, 0), ("id", 0), ("id", -1)])
def test_a_bound_that_a_unit_cannot_have_is_refused(person, max_rows):
    with pytest.raises(ValueError, match="max_rows"):
        Neighbours("add_remove", person, max_rows)


def test_units_are_named_in_words():
    assert Neighbours("add_remove").unit == "one row"
    assert Neighbours("replace_one", "id", 3).unit == "one person: all rows with the same id, at most 3"


def test_what_is_protected_is_the_person_whatever_the_bound_and_nobody_elses_name_passes_for_it():
    people = ["id", "id, at most 3", "id, at most 4, at most 3", "one row", ", at most "]
    words = {
        person: {protected(Neighbours("add_remove", person, k).unit) for k in (1, 3, 20)} for person in people
    }
    assert all(len(found) == 1 for found in words.values())
    assert len(set.union(*words.values(), {protected("one row")})) == len(people) + 1


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_unit_counted_once_moves_numbers_of_units_as_one_row_moves_a_marginal(relation):
    """Units by how many rows they have: cell 0 holds those with one row, and so on."""
    many = Neighbours(relation, "id", 7, "together")
    assert many.counted_once == Neighbours(relation, "id", 1, "together")
    one_unit, nobody = [np.eye(3, dtype=int)[rows] for rows in range(3)], np.zeros(3, dtype=int)
    pairs = product(one_unit, [nobody] if relation == "add_remove" else one_unit)
    gaps = [one - other for one, other in pairs]
    assert max(np.abs(gap).sum() for gap in gaps) == many.counted_once.l1
    assert max(np.square(gap).sum() for gap in gaps) == many.counted_once.l2_squared


def test_a_unit_of_linked_tables_is_all_that_has_its_key():
    near = Neighbours("add_remove", "house", kind="household", linked=True)
    assert near.unit == "one household: all rows with the same house, in all tables"
    assert neighbours_in_words("add_remove", near.unit) == near
    assert protected(near.unit) == protected(Neighbours("add_remove", "house", 9, kind="household").unit)
    assert "relatives elsewhere" in left_unprotected(near.unit)
