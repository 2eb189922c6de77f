"""Noisy parities: their sensitivity over all neighbours of small tables, charge and refusals."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.measures import PURE, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Domain
from dpsynth.curator import Curator, Terms
from dpsynth.curator.table import PrivateTable
from tests.guarantee.small_tables import NEIGHBOURS, TERMS, Notes, Table, excesses
from tests.guarantee.test_large_and_second import KINDS, UNITS, Drawn, loss, rows_of, watched
from tests.thinned import thinned

PRICE = Fraction(1, 10)
COLUMNS = ("a", "b", "c", "d")


def curator_on(table: Table, near: Neighbours, measure: Measure, kind: str) -> tuple[Curator, Notes]:
    """A curator before rows of four columns, by the bits of their cells; and of one with three places."""
    cells = np.array(table, dtype=np.uint8)
    codes = {c: cells >> i & 1 for i, c in enumerate(COLUMNS)} | {"e": cells}
    notes = Notes()
    domain = Domain({**dict.fromkeys(COLUMNS, 2), "e": 16})
    return Curator(
        PrivateTable(domain, codes, len(table)), Terms(near, measure, Fraction(100), kind), notes
    ), notes


def moved(monkeypatch, near: Neighbours, terms: tuple[Measure, str], columns: int, most: int) -> float:
    """The most that a neighbour moves parities, over what is declared."""

    def ask(curator: Curator) -> object:
        return curator.parities(COLUMNS[:columns], most, PRICE)

    return max(excesses(monkeypatch, near, terms, ask, curator_on, 1 << columns))


@pytest.mark.parametrize(("near", "terms"), thinned(NEIGHBOURS, TERMS))
def test_no_neighbour_of_any_small_table_moves_a_parity_further_than_declared_and_some_move_it_so_far(
    monkeypatch, near, terms
):
    assert moved(monkeypatch, near, terms, 3, 3) == 1


@pytest.mark.parametrize(("near", "terms"), thinned(NEIGHBOURS[:2], TERMS))
def test_a_row_that_comes_moves_every_parity_and_one_that_is_exchanged_some_of_them_by_two(
    monkeypatch, near, terms
):
    """The four sets of three columns, and that of all: an exchange moves four of five at most, or three."""
    added = near.relation == "add_remove"
    assert moved(monkeypatch, near, terms, 4, 4) == pytest.approx(1 if added else 4 / 5)


@pytest.mark.parametrize(
    ("unit", "terms", "most"),
    thinned(
        list(UNITS),
        list(KINDS),
        [3, 4],
        possible=lambda unit, _, most: most == 3 or "add" in unit,
        strength=1,
    ),
)
def test_a_unit_that_moves_a_million_parities_costs_the_price(monkeypatch, unit, terms, most):
    """Rows of all zeros and, of the unit, of all ones: an exchange moves sets of three, but none of four."""
    near, (measure, kind), notes = UNITS[unit], KINDS[terms], Drawn()
    names, draws = tuple(f"c{i}" for i in range(186 if most == 3 else 73)), []
    for first, last in rows_of(near):
        codes = dict.fromkeys(names, np.repeat([0, 1], [first, last]).astype(np.uint8))
        table = PrivateTable(Domain(dict.fromkeys(names, 2)), codes, first + last)
        with monkeypatch.context() as patch:
            watched(patch, notes)
            Curator(table, Terms(near, measure, Fraction(1), kind), notes).parities(names, most, PRICE)
        draws.append(notes.draws[-1])
    assert draws[0][0].upon.size > 1 << 20
    charged, price = float(measure.cost(notes.entries[-1].event)), float(PRICE) * (1 + 1e-9)
    assert 0.99 * price < loss(*draws, measure) <= charged * (1 + 1e-9) <= price * (1 + 1e-9)


@pytest.mark.parametrize(
    ("columns", "most"),
    [(("a", "b", "e"), 3), (("a", "b", "b"), 3), (("a", "b", "c"), 2), (("a", "b", "c"), 4)],
)
def test_sets_of_other_columns_or_sizes_are_refused_before_anything_is_charged(columns, most):
    curator, notes = curator_on((0, 1), NEIGHBOURS[0], PURE, "laplace")
    with pytest.raises(ValueError, match="columns"):
        curator.parities(columns, most, PRICE)
    assert not notes.entries


def test_the_question_says_of_which_sets_it_is():
    curator, notes = curator_on((0, 1), NEIGHBOURS[0], *TERMS[0])
    for columns, most in ((COLUMNS, 4), (COLUMNS, 3), (COLUMNS[:3], 3)):
        curator.parities(columns, most, PRICE)
    asked = [(e.question["columns"], e.question["most"], e.question["candidates"]) for e in notes.entries]
    assert asked == [
        (["a", "b", "c", "d"], 4, {"number": 5}),
        (["a", "b", "c", "d"], 3, {"number": 4}),
        (["a", "b", "c"], 3, {"number": 1}),
    ]


# Planted faults.


@pytest.mark.parametrize("near", NEIGHBOURS[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_an_added_row_used_for_any_other_unit_is_caught(monkeypatch, near):
    monkeypatch.setattr(Neighbours, "l1", 1)
    assert moved(monkeypatch, near, TERMS[0], 3, 3) > 1


def test_parities_declared_to_move_like_one_marginal_are_caught(monkeypatch):
    monkeypatch.setattr(Calibration, "parities", lambda self, price, _: self.counts(price))
    assert moved(monkeypatch, NEIGHBOURS[0], TERMS[0], 4, 4) == 5
    assert moved(monkeypatch, NEIGHBOURS[1], TERMS[0], 3, 3) == 2
