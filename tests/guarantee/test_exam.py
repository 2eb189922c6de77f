"""The exam: its sensitivity over all neighbours of small tables, for finished tables of any size."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.measures import PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Clique
from dpsynth.columns.finished_table import CodedRows, FinishedTable
from dpsynth.curator import Curator, distances
from tests.guarantee.small_tables import NEIGHBOURS, TERMS, Table, curator_on, drawn_upon, excesses, tables
from tests.thinned import thinned

CLIQUES: list[Clique] = [("a", "b"), ("a",), ("b",)]
PRICE = Fraction(1, 10)


def finished(cells: Table, stands_for: int) -> FinishedTable:
    whole = np.array(cells, dtype=np.uint8)
    coded = CodedRows()
    coded.add({"a": whole // 2, "b": whole % 2})
    return FinishedTable(coded, stands_for)


FINISHED = [
    finished((), 2),
    finished((0, 0), 2),
    finished((0, 3, 3), 1),
    finished((0, 1, 2, 3, 3, 3, 3), 2),
    finished((2,), 900),
]
"""Empty, as large as the private table, smaller, larger, and scaled by far."""


def exact_of(monkeypatch, table: Table, near: Neighbours, terms: tuple[Measure, str], of: FinishedTable):
    """The distances that noise is drawn upon, with the event that is charged."""
    curator, notes = curator_on(table, near, *terms)
    (exact,) = drawn_upon(monkeypatch, lambda: curator.examine(CLIQUES, of, PRICE))
    return exact, notes.entries[0].event


def moved(monkeypatch, near: Neighbours, terms: tuple[Measure, str], of: FinishedTable) -> float:
    """The most that a neighbour moves the distances, over what is declared."""
    return max(excesses(monkeypatch, near, terms, lambda c: c.examine(CLIQUES, of, PRICE)))


def by_brute_force(table: Table, of: FinishedTable, clique: Clique) -> int:
    """The distance of one marginal, by fractions."""

    def shown(cell: int) -> tuple[int, ...]:
        return tuple({"a": cell // 2, "b": cell % 2}[c] for c in clique)

    made = [tuple(int(codes[c][i]) for c in clique) for rows, codes in of.coded.pieces() for i in range(rows)]
    scale = Fraction(of.stands_for, max(of.rows, 1))
    cells = product(range(2), repeat=len(clique))
    return int(sum(abs(sum(shown(t) == c for t in table) - made.count(c) * scale) for c in cells))


@pytest.mark.parametrize("of", FINISHED, ids=lambda f: f"{f.rows} rows for {f.stands_for}")
def test_a_distance_is_that_of_the_definition(monkeypatch, of) -> None:
    for table in tables():
        exact, _ = exact_of(monkeypatch, table, NEIGHBOURS[0], TERMS[0], of)
        assert exact.tolist() == [by_brute_force(table, of, clique) for clique in CLIQUES]


@pytest.mark.parametrize(("near", "terms", "of"), thinned(NEIGHBOURS, TERMS, FINISHED))
def test_no_neighbour_of_any_small_table_moves_the_exam_further_than_declared_and_some_move_it_so_far(
    monkeypatch, near, terms, of
) -> None:
    found = moved(monkeypatch, near, terms, of)
    assert found <= 1
    if of.stands_for in {of.rows, 900}:
        assert found == 1


def test_the_question_is_one_charge_and_names_the_table_and_the_marginals() -> None:
    curator, notes = curator_on((0, 1, 3), NEIGHBOURS[0], ZCDP, "gaussian")
    for of, cliques in product(FINISHED, (CLIQUES, CLIQUES[:2])):
        curator.examine(cliques, of, PRICE)
    questions = [repr(entry.question) for entry in notes.entries]
    assert len(set(questions)) == len(questions) == 2 * len(FINISHED)
    assert notes.charged(ZCDP) <= PRICE * len(questions)


# Planted faults.


@pytest.mark.parametrize("near", NEIGHBOURS, ids=lambda n: f"{n.relation} {n.unit}")
def test_half_of_the_sensitivity_is_caught(monkeypatch, near) -> None:
    sound = Calibration.distances
    monkeypatch.setattr(Calibration, "distances", lambda self, price, k: sound(self, price, k // 2))
    for terms in TERMS:
        assert moved(monkeypatch, near, terms, FINISHED[1]) > 1


@pytest.mark.parametrize("near", NEIGHBOURS[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_an_added_row_used_for_any_other_unit_is_caught(monkeypatch, near) -> None:
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert moved(monkeypatch, near, (ZCDP, "gaussian"), FINISHED[1]) > 1


def test_a_distance_that_is_not_divided_by_the_finished_rows_is_caught(monkeypatch) -> None:
    def undivided(self, cliques, table):
        return table.rows * sound(self, cliques, table)

    sound = Curator._exact
    monkeypatch.setattr(Curator, "_exact", undivided)
    assert moved(monkeypatch, NEIGHBOURS[0], (ZCDP, "gaussian"), FINISHED[2]) > 1


def test_tables_of_which_products_of_counts_would_not_fit_are_refused_uncharged():
    curator, notes = curator_on((0, 1), NEIGHBOURS[0], PURE, "laplace")
    with pytest.raises(ValueError, match="fewer than"):
        curator.examine(CLIQUES, finished((0,), 2**31), PRICE)
    assert not notes.entries
    curator.examine(CLIQUES, finished((0,), 2**31 - 1), PRICE)


def test_counts_beyond_the_limit_are_no_error_and_move_no_further(monkeypatch):
    """Whether a table has so many rows is private; a cell of more rows counts as one of the limit."""
    monkeypatch.setattr(distances, "MOST_ROWS", 2)
    near, of = NEIGHBOURS[0], finished((0,), 1)
    assert exact_of(monkeypatch, (0, 0, 0, 1), near, TERMS[0], of)[0].tolist() == [2, 1, 2]
    assert 0 < moved(monkeypatch, near, TERMS[0], of) <= 1


@pytest.mark.parametrize("numbers", [[0, 1, 2**31 - 1, 2**31, 2**62], [2**62] * 10, [2**63 - 1] * 1000])
def test_distances_are_added_up_beyond_int64(numbers):
    assert distances._sum(np.array(numbers, dtype=np.int64)) == sum(numbers)
