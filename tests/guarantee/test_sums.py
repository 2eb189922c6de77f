"""Sums by group: their sensitivity over all neighbours of small tables, replay on neighbours."""

import random
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.measures import PURE, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Domain
from dpsynth.columns.sums import Centring
from dpsynth.curator import Curator, Terms
from dpsynth.curator.table import PrivateTable
from dpsynth.wings.proof.audit.replay import Transcript, observe
from tests.examples import cases
from tests.guarantee.small_tables import NEIGHBOURS, TERMS, Notes, Table, drawn_upon, excesses
from tests.guarantee.wild_tables import base_table, found_on, neighbours, privacy_of, spec_for, write
from tests.thinned import thinned

PRICE = Fraction(1, 10)
CELLS = 6
"""Two groups by three codes: a number of 0, a number of 9, a missing one."""
WIDE, NARROW = Centring((5, 4), 5), Centring((0, 3), 2)
"""A row adds -5, 5 or nothing; or, within a narrower limit, 0, 2 or nothing."""


def curator_on(table: Table, near: Neighbours, measure: Measure, kind: str) -> tuple[Curator, Notes]:
    """A curator before rows of a group and a number."""
    cells = np.array(table, dtype=np.int64)
    codes = {"g": (cells // 3).astype(np.uint8), "x": (cells % 3).astype(np.uint8)}
    steps = {"x": np.array([0, 9, 0], dtype=np.int32)[cells % 3]}
    private = PrivateTable(Domain({"g": 2, "x": 3}), codes, len(table), steps=steps, summed=frozenset(("x",)))
    notes = Notes()
    return Curator(private, Terms(near, measure, Fraction(100), kind), notes), notes


def moved(monkeypatch, near: Neighbours, terms: tuple[Measure, str], centring: Centring) -> float:
    """The most that a neighbour moves sums, over what is declared."""
    return max(
        excesses(monkeypatch, near, terms, lambda c: c.sums("x", ("g",), centring, PRICE), curator_on, CELLS)
    )


@pytest.mark.parametrize(("near", "terms"), thinned(NEIGHBOURS, TERMS))
def test_no_neighbour_of_any_small_table_moves_the_sums_further_than_declared_and_some_move_them_so_far(
    monkeypatch, near, terms
):
    assert moved(monkeypatch, near, terms, WIDE) == 1


@pytest.mark.parametrize("near", NEIGHBOURS, ids=lambda n: f"{n.relation} {n.unit}")
def test_a_row_adds_at_most_the_limit_however_far_it_is_from_its_offset(monkeypatch, near):
    assert 0 < moved(monkeypatch, near, TERMS[0], NARROW) <= 1


def test_a_row_without_a_number_adds_nothing(monkeypatch):
    curator, _ = curator_on((2, 2, 5), NEIGHBOURS[0], PURE, "laplace")
    (exact,) = drawn_upon(monkeypatch, lambda: curator.sums("x", ("g",), WIDE, PRICE))
    assert exact.tolist() == [0, 0]


def test_sums_of_numbers_that_are_not_kept_and_with_more_offsets_than_bins_are_refused_uncharged():
    curator, notes = curator_on((0, 4), NEIGHBOURS[0], PURE, "laplace")
    with pytest.raises(ValueError, match="not kept"):
        curator.sums("g", (), WIDE, PRICE)
    with pytest.raises(ValueError, match="more offsets than bins"):
        curator.sums("x", ("g",), Centring((5, 4, 3, 2), 5), PRICE)
    assert not notes.entries
    curator.sums("x", ("g",), Centring((5, 4, 3), 5), PRICE)


# Planted faults.


def test_a_limit_that_is_not_kept_is_caught(monkeypatch):
    sound = PrivateTable.sums
    loose = Centring(NARROW.offsets, 9)
    monkeypatch.setattr(PrivateTable, "sums", lambda self, column, by, _: sound(self, column, by, loose))
    assert moved(monkeypatch, NEIGHBOURS[0], TERMS[0], NARROW) > 1


@pytest.mark.parametrize("near", [NEIGHBOURS[1], NEIGHBOURS[3]], ids=lambda n: n.unit)
def test_an_exchanged_row_taken_to_move_two_sums_as_it_moves_two_counts_is_caught(monkeypatch, near):
    """An exchanged row may move one sum by twice the limit: 4 in squared L2 where counts move by 2."""

    def like_counts(self, price, limit):
        return self._noise(price, self.near.l1 * limit, self.near.l2_squared * limit**2, "")

    monkeypatch.setattr(Calibration, "sums", like_counts)
    assert moved(monkeypatch, near, TERMS[0], WIDE) == 2


@pytest.mark.parametrize("near", NEIGHBOURS[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_one_row_that_comes_used_for_any_other_unit_is_caught(monkeypatch, near):
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert moved(monkeypatch, near, TERMS[0], WIDE) > 1


# Whole releases on neighbours, with cells that no schema foresaw.

ASKED = {"statistics": [{"mean": "pay", "by": "city"}, {"mean": "age"}, {"quantiles": "pay", "by": "city"}]}


def findings(
    tmp_path: Path, relation: str, unit: str, kind: str, number: int
) -> tuple[list[str], Transcript]:
    """Findings of a release with sums and finer counts, replayed on so many neighbours; and its record."""
    rng = random.Random(f"{relation}{unit}{kind}")
    rows = base_table(rng)
    privacy = privacy_of(relation, unit, kind)
    spec = spec_for(write(tmp_path / "x.csv", rows), privacy, publish=ASKED)
    record = observe(spec, tmp_path / "out")
    changed = islice(neighbours(rows, relation, unit, rng), number)
    return list(found_on(tmp_path, spec, record, changed)), record


@pytest.mark.parametrize(
    ("relation", "unit", "kind"),
    thinned(["add_remove", "replace_one"], ["row", "person"], ["gaussian", "laplace"], strength=1),
)
def test_a_neighbour_changes_no_question_about_statistics_and_moves_no_answer_further_than_declared(
    tmp_path, relation, unit, kind
):
    found, record = findings(tmp_path, relation, unit, kind, cases(40, part=8))
    assert found == []
    asked = [(a.question["ask"], a.question.get("columns")) for a in record.asked]
    assert [columns for ask, columns in asked if ask == "sums"] == [["city", "pay"], ["age"]]
    assert [columns for ask, columns in asked if ask == "finer counts"] == [["city", "pay"]]


def test_a_centring_by_exact_counts_is_caught(tmp_path, monkeypatch):
    sound = Curator.sums

    def nosy(self, column, by, centring, price):
        shift = int(self._table.counts((column,)).sum()) % 5
        moved = Centring(tuple(offset + shift for offset in centring.offsets), centring.limit)
        return sound(self, column, by, moved, price)

    monkeypatch.setattr(Curator, "sums", nosy)
    found, _ = findings(tmp_path, "add_remove", "row", "gaussian", 1)
    assert any("another question" in finding for finding in found)
