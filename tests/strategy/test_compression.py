"""Rare values make groups with their neighbours; what is kept, and what is left where little stands out."""

import numpy as np
import pytest

from dpsynth.columns.domain import Domain, rare_when_ordered
from dpsynth.columns.measurement import Measurement
from dpsynth.model.rare_values import Numbers, rare_groups


def grouped(*counts, least=30.0, noise="gaussian", scale=1.0):
    """Groups of the one column "a", None if it has none."""
    single = Measurement(("a",), np.array(counts), noise, scale)
    groups = rare_groups(Domain({"a": len(counts)}), [single], least).groups
    return groups["a"].tolist() if "a" in groups else None


def test_rare_values_are_put_together_with_rare_neighbours_alone():
    assert grouped(500, 9, 5, 400, 4, 3, 300) == [0, 1, 1, 2, 3, 3, 4]
    assert grouped(4, 9, 500, 8, 400) == [0, 0, 1, 2, 3]
    assert grouped(500, 25, 400, 20, 300) is None


def test_rare_values_in_a_row_are_cut_where_they_have_enough_together():
    assert grouped(500, 20, 9, 25, 1, 28, 2, 2, least=29.0) == [0, 1, 1, 2, 2, 2, 2, 2]
    assert grouped(20, 9, 25, 9, 2, 500, least=29.0, scale=0.1) == [0, 0, 1, 1, 1, 2]


def test_first_and_last_values_are_never_put_together():
    """Ages 0 to 9 and 90 to 99 have nothing in common but that few people are of them."""
    groups = grouped(6, 5, 7, 400, 500, 450, 8, 6, 2)
    assert groups == [0, 0, 0, 1, 2, 3, 4, 4, 4]


def test_a_value_is_rare_below_the_least_and_not_at_it():
    assert grouped(500, 30, 20, 10, 400, scale=0.1) == [0, 1, 2, 2, 3]
    assert grouped(500, 30, 20, 10, 400, least=31.0, scale=0.1) == [0, 1, 1, 1, 2]
    assert grouped(500, 30, 31, 400) is None


def test_one_rare_value_alone_is_left_as_it_is():
    assert grouped(500, 7, 60, 80) is None


def test_a_single_frequent_value_is_never_merged():
    assert grouped(500, 3, 14, -8) == [0, 1, 1, 1]


def test_values_that_noise_alone_sets_apart_are_rare_together_or_not_at_all():
    """Unsmoothed, 35 and 33 would stand, and 27 and 25 be merged, for no reason but noise."""
    assert grouped(500, 35, 20, 33, 27, 400, scale=10.0) == [0, 1, 1, 2, 2, 3]
    assert grouped(500, 35, 25, 33, 30, 400, scale=10.0) is None
    assert grouped(500, 35, 20, 9, 33, 27, 400, scale=0.1) == [0, 1, 2, 2, 3, 4, 5]


def test_where_all_values_are_rare_two_runs_of_about_the_same_count_are_left():
    assert grouped(20, 2, 3, 4, 5, 4) == [0, 1, 1, 1, 1, 1]
    assert grouped(2, 3, 4, 5, 4, 20) == [0, 0, 0, 0, 0, 1]
    assert grouped(5, 5, 5, 5) == [0, 0, 1, 1]
    assert grouped(-5, -1, -2, -9) == [0, 0, 1, 1]
    for counts in [(-5, 0, -3, 9), (9, -1, -5)]:
        assert set(grouped(*counts)) == {0, 1}


def test_columns_of_two_places_and_columns_kept_are_left_as_they_are():
    assert grouped(500, -3) is None and grouped(1, 2) is None


def test_nothing_is_merged_without_a_least_or_where_counts_are_exact():
    assert grouped(500, 0, 0, 0, least=0.0) is None
    assert grouped(500, 0, 0, 0, noise="none", scale=0.0) is None


@pytest.mark.parametrize("seed", range(30))
def test_groups_are_numbered_by_first_places_and_cover_all(seed):
    rng = np.random.default_rng(seed)
    counts = np.rint(rng.normal(20, 25, rng.integers(3, 40))).astype(int)
    groups = grouped(*counts, scale=float(rng.uniform(0.1, 12)))
    if groups is not None:
        first = [groups.index(g) for g in range(max(groups) + 1)]
        assert first == sorted(first) and len(groups) == len(counts)
        assert 2 <= len(first) < len(groups)


def test_the_total_and_columns_without_an_answer_are_passed_over():
    domain = Domain({"a": 4, "b": 4})
    singles = [
        Measurement((), np.array(700), "gaussian", 10.0),
        Measurement(("b",), np.array([500, 1, 2, 300]), "gaussian", 10.0),
    ]
    assert set(rare_groups(domain, singles, 30.0).groups) == {"b"}


def test_values_stand_out_by_what_earlier_releases_say_with_less_noise():
    """With three more answers noise is half as much, and so is what a value must have."""
    domain = Domain({"a": 6})
    counts = np.array([500, 20, 11, 400, 3, 2])
    single = Measurement(("a",), counts, "gaussian", 2.0)
    assert rare_groups(domain, [single], 30.0).groups["a"].tolist() == [0, 1, 1, 2, 3, 3]
    assert rare_groups(domain, [single], 30.0, [single] * 3).groups["a"].tolist() == [0, 1, 2, 3, 4, 4]


def test_earlier_counts_are_averaged_by_their_precision():
    domain = Domain({"a": 4})
    rough = Measurement(("a",), np.array([500, 300, 90, 80]), "gaussian", 10.0)
    exact = Measurement(("a",), np.array([500, 300, 2, 1]), "gaussian", 1.0)
    assert rare_groups(domain, [rough], 60.0).groups == {}
    assert rare_groups(domain, [rough], 60.0, [exact]).groups["a"].tolist() == [0, 1, 2, 2]
    other = Measurement(("b",), np.array([1, 2]), "gaussian", 1.0)
    assert rare_groups(domain, [rough], 60.0, [other]).groups == {}


def with_missing(*counts, values, least=30.0):
    """Groups of a column whose places after so many values are of missing cells."""
    single = Measurement(("a",), np.array(counts), "gaussian", 1.0)
    found = rare_groups(Domain({"a": len(counts)}), [single], least, values={"a": values}).groups
    return found["a"].tolist() if "a" in found else None


def test_a_place_of_missing_cells_that_few_use_joins_the_most_frequent_value():
    assert with_missing(400, 500, 3, values=2) == [0, 1, 1]
    assert with_missing(400, 500, 30, values=2) is None
    assert with_missing(400, 7, 500, 300, -2, 2, values=4) == [0, 1, 2, 3, 2, 2]
    assert with_missing(400, 7, 500, 300, -2, 99, values=4) == [0, 1, 2, 3, 2, 4]


def test_missing_cells_are_no_neighbours_of_the_last_values():
    """Planted: as one run, the last values and the missing cells would make a group of their own."""
    assert with_missing(500, 6, 5, 4, values=3) == [0, 1, 1, 0]
    assert grouped(500, 6, 5, 4) == [0, 1, 1, 1]


def test_in_a_column_of_numbers_more_values_are_rare_as_long_as_ten_groups_are_left():
    assert rare_when_ordered(5_000.0, 100.0, 5_000.0) == 500.0
    assert rare_when_ordered(900.0, 100.0, 900.0) == 100.0
    assert rare_when_ordered(1e6, 0.0, 1e6) == 0.0
    assert rare_when_ordered(0.0, 100.0, 1e6) == 100.0


def test_groups_of_numbers_grow_in_number_as_the_root_of_rows_over_noise():
    """Planted: with a factor of the noise, a large budget would keep nearly all values in every pair."""
    groups = [1e6 / rare_when_ordered(1e6, noise, 1e6) for noise in (4.0, 16.0, 64.0)]
    assert groups[0] == pytest.approx(2 * groups[1]) == pytest.approx(4 * groups[2])


def test_a_value_that_many_rows_share_makes_no_group_larger():
    """Planted: a bound on all rows merges the values of the few that are not zero into two groups."""
    counts = np.array([9_000.0, *[25.0] * 40])
    single = Measurement(("a",), counts, "gaussian", 2.0)
    alone = rare_groups(Domain({"a": 41}), [single], 6.0, numbers=Numbers("a", (), 10_000.0)).groups["a"]
    assert alone[0] == 0 and (alone == 0).sum() == 1
    assert alone.max() >= 8
    assert 1_000 / rare_when_ordered(10_000.0, 6.0, 10_000.0) < 4


@pytest.mark.parametrize(
    ("values", "rows", "alone"), [(20, 2_500, True), (20, 500, False), (30, 2_500, False)]
)
def test_few_numbers_with_ample_rows_may_be_codes_and_stand_alone(values, rows, alone):
    """Planted: twenty codes that are declared as numbers lose what each of them has alone."""
    single = Measurement(("a",), np.full(values, float(rows)), "gaussian", 2.0)
    found = rare_groups(
        Domain({"a": values}), [single], 150.0, numbers=Numbers("a", (), values * float(rows))
    ).groups
    assert ("a" not in found) is alone


STEPS = np.arange(40)
HILL = 3_000 * np.exp(-(((STEPS - 15) / 12) ** 2)) + 50


@pytest.mark.parametrize(
    ("counts", "codes"),
    [
        (np.random.default_rng(1).permutation(HILL), True),
        (HILL, False),
        (np.where(STEPS % 5 == 0, 5 * HILL, HILL), False),
        (np.where(STEPS % 2 == 0, HILL, 0.0), False),
        (np.full(40, 1_000.0), False),
        (np.random.default_rng(1).poisson(900.0, 40).astype(float), False),
    ],
    ids=["codes", "a hill", "rounded", "every other year", "all alike", "chance"],
)
def test_numbers_are_codes_if_the_counts_of_neighbours_are_no_more_alike_than_any(counts, codes):
    """Planted: with the ratio at one step, numbers that people round are codes, and so is noise."""
    noise = np.random.default_rng(2)
    for _ in range(200):
        noisy = Measurement(("a",), counts + noise.normal(0, 20, counts.size), "gaussian", 20.0)
        numbers, others = (
            rare_groups(Domain({"a": 40}), [noisy], 60.0, numbers=kind).groups.get("a", np.arange(40))
            for kind in (Numbers("a", "a", float(counts.sum())), Numbers((), (), 0.0))
        )
        assert np.array_equal(numbers, others) is codes


def test_a_threshold_of_its_own_holds_for_a_columns_values_and_not_for_missing_cells():
    domain = Domain({"a": 14, "b": 14})
    # A step of 60 and 50 in turn, so that smoothing leaves them as they are.
    counts = np.array([*[60, 50] * 3, 500, *[60, 50] * 3, 40])
    singles = [Measurement((c,), counts, "gaussian", 1.0) for c in "ab"]
    values, numbers = {"a": 13, "b": 13}, Numbers("a", (), 1_160.0)
    found = rare_groups(domain, singles, 30.0, values=values, numbers=numbers).groups
    assert set(found) == {"a"}
    assert found["a"].tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 6, 7]


@pytest.mark.parametrize(("room", "alone"), [(40, 5), (400, 30)])
def test_the_most_frequent_values_of_a_large_column_stand_alone_as_far_as_its_groups_have_room(room, alone):
    rng = np.random.default_rng(0)
    counts = rng.permutation(np.rint(20_000 / np.arange(1, 1001) ** 1.1).astype(np.int64))
    domain = Domain({"a": 1000, "b": 2, "c": 4})
    singles = [
        Measurement(("a",), counts, "gaussian", 5.0),
        Measurement(("c",), np.array([9000, 5, 7, 9000]), "gaussian", 5.0),
    ]
    found = rare_groups(domain, singles, 30.0, most=1000 * room + 3 * 4)
    assert sum(found.cells(domain).values()) <= 1000 * room + 3 * 4
    of_value = found.groups["a"]
    assert (np.bincount(of_value)[of_value[np.argsort(-counts)[:alone]]] == 1).all()
    # A small column is grouped as if there were no large one.
    assert found.groups["c"].tolist() == [0, 1, 1, 2]


def test_a_column_without_room_for_two_groups_has_none():
    single = Measurement(("a",), np.array([400, 3, 2, 1, 2, 500]), "gaussian", 1.0)
    assert rare_groups(Domain({"a": 6}), [single], 30.0, most=12).groups["a"].max() == 1
    assert rare_groups(Domain({"a": 6}), [single], 30.0, most=11).groups == {}


def test_a_column_has_no_groups_rather_than_ones_of_very_many_rows():
    counts = np.full(1000, 20)
    counts[::3] = 64 * 30 + 1
    single = Measurement(("a",), counts, "gaussian", 1.0)
    assert rare_groups(Domain({"a": 1000}), [single], 30.0, most=400_000).groups == {}
    counts[::3] = 64 * 30 - 1
    single = Measurement(("a",), counts, "gaussian", 1.0)
    assert rare_groups(Domain({"a": 1000}), [single], 30.0, most=400_000).groups["a"].max() < 400
