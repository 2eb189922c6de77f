"""Counts of pieces of bins: sensitivity over all neighbours of small tables, replay on neighbours."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.accounting.measures import PURE, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Domain
from dpsynth.columns.sums import Pieces
from dpsynth.curator import Curator, Terms
from dpsynth.curator.table import PrivateTable
from tests.guarantee.small_tables import NEIGHBOURS, TERMS, Notes, Table, drawn_upon, excesses
from tests.guarantee.test_sums import findings
from tests.thinned import thinned

PRICE = Fraction(1, 10)
CELLS = 6
"""Two groups by three cells: a number of 1, a number of 4 in the same bin, a missing one."""
PIECES = Pieces((0, 3, 5), 2)


def curator_on(table: Table, near: Neighbours, measure: Measure, kind: str) -> tuple[Curator, Notes]:
    """A curator before rows of a group and a number."""
    cells = np.array(table, dtype=np.int64)
    codes = {"g": (cells // 3).astype(np.uint8), "x": np.array([0, 0, 2], np.uint8)[cells % 3]}
    steps = {"x": np.array([1, 4, 0], dtype=np.int32)[cells % 3]}
    private = PrivateTable(Domain({"g": 2, "x": 3}), codes, len(table), steps=steps, summed=frozenset(("x",)))
    notes = Notes()
    return Curator(private, Terms(near, measure, Fraction(100), kind), notes), notes


def ask(curator: Curator):
    return curator.finer_counts("x", ("g",), PIECES, PRICE)


@pytest.mark.parametrize(("near", "terms"), thinned(NEIGHBOURS, TERMS))
def test_no_neighbour_of_any_small_table_moves_the_counts_further_than_declared_and_some_move_them_so_far(
    monkeypatch, near, terms
):
    assert max(excesses(monkeypatch, near, terms, ask, curator_on, CELLS)) == 1


def test_a_row_counts_in_the_piece_of_its_number_and_without_one_nowhere(monkeypatch):
    curator, _ = curator_on((0, 1, 2, 4, 4, 5), NEIGHBOURS[0], PURE, "laplace")
    (exact,) = drawn_upon(monkeypatch, lambda: ask(curator))
    assert exact.tolist() == [[1, 1, 0], [0, 2, 0]]


def test_pieces_are_of_numbers_that_are_kept_and_of_bins_that_there_are():
    curator, notes = curator_on((0, 1), NEIGHBOURS[0], PURE, "laplace")
    curator.finer_counts("x", (), Pieces((0, 1, 2, 3), 3), PRICE)
    with pytest.raises(ValueError, match="not kept"):
        curator.finer_counts("g", (), PIECES, PRICE)
    with pytest.raises(ValueError, match="more bins"):
        curator.finer_counts("x", (), Pieces((0, 1, 2, 3, 4), 4), PRICE)
    assert len(notes.entries) == 1


# Planted faults.


@pytest.mark.parametrize("near", NEIGHBOURS[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_one_row_that_comes_used_for_any_other_unit_is_caught(monkeypatch, near):
    monkeypatch.setattr(Neighbours, "l1", 1)
    monkeypatch.setattr(Neighbours, "l2_squared", 1)
    assert max(excesses(monkeypatch, near, TERMS[0], ask, curator_on, CELLS)) > 1


def test_rows_that_count_in_every_piece_up_to_theirs_are_caught(monkeypatch):
    sound = PrivateTable.finer_counts
    monkeypatch.setattr(
        PrivateTable, "finer_counts", lambda *asked: np.cumsum(sound(*asked)[..., ::-1], axis=-1)[..., ::-1]
    )
    assert max(excesses(monkeypatch, NEIGHBOURS[0], TERMS[0], ask, curator_on, CELLS)) > 1


# Whole releases on neighbours are replayed in ``test_sums``, which asks for quantiles too.


def test_pieces_by_exact_counts_are_caught(tmp_path, monkeypatch):
    sound = Curator.finer_counts

    def nosy(self, column, by, pieces, price):
        shift = int(self._table.counts((column,))[0]) % 5
        return sound(self, column, by, Pieces((*pieces.first, 10**6 + shift), pieces.bins), price)

    monkeypatch.setattr(Curator, "finer_counts", nosy)
    found, _ = findings(tmp_path, "add_remove", "row", "gaussian", 8)
    assert any("another question" in finding for finding in found)
