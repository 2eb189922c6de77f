"""No count that is left out can be computed from the counts that are shown."""

import numpy as np
import pytest

from dpsynth.wings.proof.disclosure import suppression
from dpsynth.wings.proof.disclosure.linked_tables import linked_tables
from dpsynth.wings.proof.disclosure.suppression import left_out, small, too_narrow
from tests.thinned import some
from tests.wings.proof.disclosure.random_tables import interval, random_tables

QUICK, ALL = 7, 1000


def narrow_cells(number: int, below: int) -> tuple[list[int], int]:
    """The cells left out of one of the random tables that a reader computes too closely, and their number."""
    tables = random_tables(number)
    hidden = left_out(tables, below)
    primary = small(tables.counts, below)
    assert not (primary & ~hidden).any(), "a small count is shown"
    assert not (hidden & (tables.counts == 0)).any(), "a zero is left out"
    found = []
    for cell in np.flatnonzero(hidden):
        low, high = interval(tables, hidden, int(cell))
        assert low - 1e-6 <= tables.counts[cell] <= high + 1e-6
        if high - low < (below if primary[cell] else 1) - 1e-6:
            found.append(int(cell))
    return found, int(hidden.sum())


# What the looks at all cells together don't show of table 123, its own moves do.
@pytest.mark.parametrize("number", some([*range(QUICK), 123], 2))
def test_no_count_left_out_can_be_computed_from_the_margins(number):
    assert narrow_cells(number, below=(3, 5, 10)[number % 3])[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_no_count_left_out_of_a_thousand_tables_can_be_computed(part):
    left = 0
    for number in range(part * ALL // 10, (part + 1) * ALL // 10):
        faults, hidden = narrow_cells(number, below=(3, 5, 10)[number % 3])
        assert faults == [], number
        left += hidden
    assert left > 1000


def test_a_table_without_its_complements_is_caught():
    caught = 0
    for number in range(7):
        tables = random_tables(number)
        primary = small(tables.counts, 5)
        cells = too_narrow(tables, primary, 5)
        for cell in cells[:1]:
            low, high = interval(tables, primary, int(cell))
            assert high - low < 5
        caught += cells.size > 0
    assert caught > 3


def test_the_check_by_solutions_of_other_cells_agrees_with_two_programs_for_each_cell():
    for number in (0, 2, 6):
        tables = random_tables(number)
        rng = np.random.default_rng(number)
        hidden = small(tables.counts, 6) | ((tables.counts > 0) & (rng.random(len(tables.counts)) < 0.3))
        found = set(too_narrow(tables, hidden, 6).tolist())
        for cell in np.flatnonzero(hidden):
            low, high = interval(tables, hidden, int(cell))
            needed = 6 if 0 < tables.counts[cell] < 6 else 1
            assert (cell in found) == (high - low < needed - 1e-6)


def test_a_single_small_cell_takes_three_more_of_its_table():
    counts = np.array([[3, 50, 60], [40, 20, 70], [80, 90, 30]])

    def counted(clique):
        return counts.sum(axis=tuple(i for i, name in enumerate("ab") if name not in clique))

    tables = linked_tables([("a", "b")], {"a": 3, "b": 3}, counted)
    hidden = left_out(tables, 10)
    assert hidden[tables.places["a", "b"]].reshape(3, 3).tolist() == [
        [True, True, False],
        [True, True, False],
        [False, False, False],
    ]
    assert not hidden[: tables.places["a", "b"].start].any()


def test_a_table_of_few_rows_shows_nothing_but_zeros():
    tables = linked_tables([("a",)], {"a": 3}, lambda c: np.array([2, 0, 1]) if c else np.array([3]))
    assert left_out(tables, 10).tolist() == [True, True, False, True]


def test_equal_tables_are_suppressed_equally():
    tables = random_tables(3)
    assert (left_out(tables, 10) == left_out(random_tables(3), 10)).all()


def test_tables_that_leave_the_solver_without_a_solution_show_zeros_only(monkeypatch):
    monkeypatch.setattr(suppression, "_moves", lambda *_: None)
    tables = random_tables(0)
    hidden = left_out(tables, 10)
    assert (hidden == (tables.counts > 0)).all() and not too_narrow(tables, hidden, 10).size
