"""How many rows persons have: what one person moves, and what comes after (hazard 7)."""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.events import GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.curator import Curator, Terms, UnboundedCurator, load_rows, samplers
from dpsynth.curator import door as module
from dpsynth.testing import load_table
from tests.guarantee.small_tables import Notes, drawn_upon

KEY = b"k" * 32
COLUMNS = [Column("a", CategoryCodec(("x", "y")))]
ADD, REPLACE = Neighbours("add_remove", "who", 50), Neighbours("replace_one", "who", 50)
EACH = (1, 2, 3)


def batch(rows_each):
    who = [f"p{i}" for i, rows in enumerate(rows_each) for _ in range(rows)]
    cells = ["x" if i % 2 else "y" for i in range(len(who))]
    return {"who": pa.array(who, pa.string()), "a": pa.array(cells, pa.string())}


def opened(rows_each, near, measure=ZCDP, kind="gaussian"):
    notes = Notes()
    rows = load_rows([batch(rows_each)], COLUMNS, near, KEY)
    return UnboundedCurator(rows, Terms(near, measure, Fraction(100), kind), notes, KEY), notes


def exact(monkeypatch, rows_each, near=ADD):
    door, _ = opened(rows_each, near)
    (found,) = drawn_upon(monkeypatch, lambda: door.rows_per_unit(EACH, Fraction(1)))
    return found


def test_each_person_stands_in_one_cell_and_those_with_many_rows_in_the_last(monkeypatch):
    assert exact(monkeypatch, [1, 1, 2, 3, 4, 1000]).tolist() == [2, 1, 3]
    assert exact(monkeypatch, []).tolist() == [0, 0, 0]


def test_a_single_cell_holds_all_persons_and_no_cell_is_refused_uncharged(monkeypatch):
    door, notes = opened([1, 2, 9], ADD)
    for first in ((), (0, 1), (2, 3), (1, 1), (1, 4, 3)):
        with pytest.raises(ValueError, match="begin with 1"):
            door.rows_per_unit(first, Fraction(1))
    assert not notes.entries
    (found,) = drawn_upon(monkeypatch, lambda: door.rows_per_unit((1,), Fraction(1)))
    assert found.tolist() == [3]


def worst(monkeypatch, near, kind) -> tuple[int, int]:
    """The most that any neighbour of small tables moves the counts, and what is charged for."""
    power, farthest = (2, 0) if kind == "gaussian" else (1, 0)
    for others in product((0, 1, 7), repeat=2):
        before = exact(monkeypatch, [*others, 2], near)
        for coming in (1, 2, 3, 60) if near.relation == "replace_one" else (0,):
            gap = np.abs(exact(monkeypatch, [*others, coming], near) - before)
            farthest = max(farthest, int((gap**power).sum()))
    door, notes = opened([1], near, ZCDP, kind)
    door.rows_per_unit(EACH, Fraction(1))
    match notes.entries[0].event:
        case GaussianEvent(l2_squared=declared) | LaplaceEvent(l1=declared):
            return farthest, declared


@pytest.mark.parametrize("near", [ADD, REPLACE], ids=lambda n: n.relation)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_one_person_moves_the_counts_as_far_as_is_charged_whatever_the_bound_in_the_terms(
    monkeypatch, near, kind
):
    farthest, declared = worst(monkeypatch, near, kind)
    assert farthest == declared


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_an_exchanged_person_charged_as_one_that_comes_is_caught(monkeypatch, kind):
    monkeypatch.setattr(Neighbours, "l1", 1)
    monkeypatch.setattr(Neighbours, "l2_squared", 1)
    farthest, declared = worst(monkeypatch, REPLACE, kind)
    assert farthest > declared


def test_rows_counted_in_place_of_persons_are_caught(monkeypatch):
    sound = np.unique
    monkeypatch.setattr(module.np, "unique", lambda a, **k: (a, sound(a, **k)[1].repeat(2)))
    farthest, declared = worst(monkeypatch, ADD, "laplace")
    assert farthest > declared


@pytest.mark.parametrize("bound", [1, 2, 5])
def test_what_follows_is_bounded_and_charged_by_the_bound_that_was_chosen(monkeypatch, bound):
    monkeypatch.setattr(samplers, "add_laplace", lambda values, scale: values)
    door, notes = opened([1, 3, 9], REPLACE, PURE, "laplace")
    door.rows_per_unit(EACH, Fraction(1))
    curator = door.bounded(bound)
    assert curator.remaining == 100 - notes.charged(PURE)
    (count,) = curator.marginals([("a",)], Fraction(1))
    near = Neighbours("replace_one", "who", bound)
    assert notes.entries[1].event == LaplaceEvent(float(near.l1), near.l1)
    plain = Curator(
        load_table([batch([1, 3, 9])], COLUMNS, near, KEY), Terms(near, PURE, 1, "laplace"), Notes()
    )
    (same,) = plain.marginals([("a",)], Fraction(1))
    assert count.values.tolist() == same.values.tolist() and sum(count.values) <= 3 * bound


def test_rows_that_are_units_have_no_number_of_rows():
    rows = load_rows([batch([1, 2])], COLUMNS, Neighbours("add_remove"), KEY)
    with pytest.raises(ValueError, match="only a person"):
        UnboundedCurator(rows, Terms(Neighbours("add_remove"), ZCDP, Fraction(1), "gaussian"), Notes(), KEY)
    with pytest.raises(ValueError, match="begin with 1"):
        opened([1], ADD)[0].rows_per_unit((), Fraction(1))
