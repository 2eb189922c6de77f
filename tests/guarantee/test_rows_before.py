"""Rows with the values of the row before: what one person moves, over small tables and all their neighbours.

Tables go through the product's own reading and bounding. Persons have no row, up to the bound, or more.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.events import GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Compression, beside_first, first_rows, row_before, step_of
from dpsynth.curator import Curator, Terms, load_rows, loaded_rows
from dpsynth.curator.units import rows_before, windows_kept
from tests.guarantee.small_tables import Notes, drawn_upon
from tests.thinned import thinned

KEY = b"k" * 32
PRICE = Fraction(1, 10)
BOUND = 2
YEARS = tuple(range(4))
COLUMNS = [
    Column("a", BooleanCodec(), missing=False),
    Column("year", CategoryCodec(("0", "1", "2", "3")), missing=False),
]
NEAR = [Neighbours("add_remove", "who", BOUND), Neighbours("replace_one", "who", BOUND)]
TERMS = [(ZCDP, "gaussian"), (PURE, "laplace")]
PAIR = ("a", row_before("a"))
STEPS = {
    "a": np.array([[0, 1, 2], [1, 0, 3]]),
    "year": np.array([[0, 1, 1, 2, 3]] * 2 + [[0, 1, 1, 2, 4], [1, 0, 2, 2, 4]]),
}
ASKED = [PAIR, (step_of("a"),), (step_of("year"),)]
FIRSTS = {"a": np.array([[0, 1, 2], [3, 4, 5]])}
LONG = [Neighbours("add_remove", "who", BOUND + 1), Neighbours("replace_one", "who", BOUND + 1)]
CELLS = [*product((0, 1), (0, 2))]
PERSONS = [p for n in range(BOUND + 2) for p in product(CELLS, repeat=n)]
LONG_PERSONS = [p for n in range(BOUND + 3) for p in product(((0, 0), (1, 0), (1, 2)), repeat=n)]
OTHERS = [(), (((0, 1),), ((1, 3), (1, 0), (0, 2)))]


def loaded(persons, near):
    rows = [(f"p{i}", a, year) for i, own in enumerate(persons) for a, year in own]
    who, values, years = ([row[k] for row in rows] for k in range(3))
    batch = {
        "who": pa.array(who, pa.string()),
        "a": pa.array(["yes" if a else "no" for a in values], pa.string()),
        "year": pa.array(list(map(str, years)), pa.string()),
    }
    return replace(load_rows([batch], COLUMNS, near, KEY), order="year").bounded(near.max_rows, KEY)


def opened(persons, near, measure=ZCDP, kind="gaussian", load=loaded):
    notes = Notes()
    return Curator(load(persons, near), Terms(near, measure, Fraction(100), kind), notes), notes


def declared(event):
    assert isinstance(event, GaussianEvent | LaplaceEvent)
    return event.l2_squared if isinstance(event, GaussianEvent) else event.l1


# A table, for all questions; nothing of it is changed by these.
once_loaded = cache(loaded)


def farthest(monkeypatch, near, terms, weighted, asked=PAIR, load=once_loaded, persons=PERSONS) -> float:
    """The most that a person moves the counts over what is charged for, in the metric of the noise."""
    power, worst = 2 if terms[1] == "gaussian" else 1, 0.0
    for others in OTHERS:
        exact, charged = [], set()
        for person in persons:
            curator, notes = opened((*others, person), near, *terms, load)
            door = (curator.weighted() if weighted else curator).with_rows_before(STEPS, FIRSTS)
            exact += drawn_upon(monkeypatch, lambda d=door: d.marginals([asked], PRICE))
            charged.add(declared(notes.entries[0].event))
        (moved,) = charged
        for one, other in product(exact, exact if near.relation == "replace_one" else exact[:1]):
            worst = max(worst, float((np.abs(one - other) ** power).sum() / moved))
    return worst


@pytest.mark.parametrize(("near", "terms", "weighted", "asked"), thinned(NEAR, TERMS, [False, True], ASKED))
def test_no_neighbour_moves_rows_and_those_before_further_than_declared_and_some_move_them_so_far(
    monkeypatch, near, terms, weighted, asked
):
    # Rows of one person differ in whether one comes before: only by weights one row moves a cell by all.
    least = 1 if weighted or terms[1] == "laplace" else 1 / 2
    assert least <= farthest(monkeypatch, near, terms, weighted, asked) <= 1


@pytest.mark.parametrize(("near", "terms", "weighted"), thinned(LONG, TERMS, [False, True]))
def test_no_neighbour_moves_rows_beside_first_ones_further_than_declared_and_some_move_them_so_far(
    monkeypatch, near, terms, weighted
):
    # The third row of a person is the first one that counts beside the first.
    least = 1 if weighted or terms[1] == "laplace" else 1 / 2
    asked = (beside_first("a"),)
    assert least <= farthest(monkeypatch, near, terms, weighted, asked, persons=LONG_PERSONS) <= 1


@pytest.mark.parametrize("asked", ASKED[:2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_before_of_another_person_is_caught(monkeypatch, weighted, asked):
    def of_anybody(persons, order):
        return rows_before(np.zeros_like(persons), order)

    monkeypatch.setattr(loaded_rows, "rows_before", of_anybody)
    assert farthest(monkeypatch, NEAR[0], TERMS[1], weighted, asked, loaded) > 1


def test_rows_beyond_the_bound_that_were_kept_are_caught(monkeypatch):
    monkeypatch.setattr(loaded_rows, "windows_kept", lambda persons, *_: np.ones(len(persons), bool))
    with pytest.raises(RuntimeError, match="contribution bounding failed"):
        opened([[(0, 0), (0, 1), (0, 2)]], NEAR[0])


def test_a_row_has_the_values_of_the_one_before_it_in_its_persons_order_and_none_of_another_person():
    persons = [[(1, 3), (0, 0), (1, 1)], [(0, 2)], [(1, 2), (0, 2)]]
    curator, _ = opened(persons, Neighbours("add_remove", "who", 3))
    door = curator.with_rows_before()
    counts = door._counts.of(("year", row_before("year")))
    found = {(int(y), int(b)): int(counts[y, b]) for y, b in zip(*np.nonzero(counts), strict=True)}
    assert found == {(0, 4): 1, (1, 0): 1, (3, 1): 1, (2, 4): 2, (2, 2): 1}
    steps = curator.with_rows_before(STEPS)._counts.of((step_of("year"),)).tolist()
    assert steps == [2, 1, 0, 1, 2]
    firsts = curator.with_rows_before(STEPS, FIRSTS)._counts.of((beside_first("a"),)).tolist()
    # Of the person with three rows, the last one stands beside the first.
    assert firsts == [0, 0, 3, 1, 0, 2]
    # Rows of equal places stay in the table's order.
    assert door._counts.of(PAIR)[0, 1] == 1


def test_rows_before_of_a_compressed_domain_have_a_place_of_their_own_for_no_row():
    curator, _ = opened([[(1, 0), (0, 1), (1, 3)]], Neighbours("add_remove", "who", 3))
    groups = Compression({"year": np.array([0, 0, 1, 1])})
    counts = (
        curator.with_rows_before().grouped(groups.with_rows_before)._counts.of(("year", row_before("year")))
    )
    assert counts.tolist() == [[1, 0, 1], [1, 0, 0]]


def test_of_a_person_with_more_rows_rows_that_follow_each_other_are_kept_from_a_random_one_on():
    rng = np.random.default_rng(2)
    persons = np.repeat(rng.integers(0, 1 << 62, 3000).astype(np.uint64), 5)
    order = np.tile([3, 0, 4, 1, 2], 3000)
    kept = windows_kept(persons, order, 3, KEY)
    windows = Counter(tuple(sorted(order[i : i + 5][kept[i : i + 5]])) for i in range(0, len(persons), 5))
    assert set(windows) == {(0, 1, 2), (1, 2, 3), (2, 3, 4)}
    assert all(abs(number - 1000) < 5 * np.sqrt(1000 * 2 / 3) for number in windows.values())
    # Nobody else decides: a person alone in the table has the same rows.
    for start in range(0, 50, 5):
        own = slice(start, start + 5)
        assert windows_kept(persons[own], order[own], 3, KEY).tolist() == kept[own].tolist()


def test_rows_before_are_those_of_a_slow_search():
    for order in permutations(range(4)):
        persons = np.array([7, 9, 7, 7], np.uint64)
        found = rows_before(persons, np.array(order))
        for row in range(4):
            earlier = [i for i in range(4) if persons[i] == persons[row] and order[i] < order[row]]
            assert found[row] == max(earlier, key=lambda i: order[i], default=-1)


def test_a_curator_without_order_or_with_groups_has_no_rows_before():
    near = NEAR[0]
    curator, _ = opened([[(1, 0)]], near)
    with pytest.raises(ValueError, match="before they are grouped"):
        curator.grouped(Compression({"a": np.array([0, 0])})).with_rows_before()
    batch = {c: pa.array(["0"], pa.string()) for c in ("who", "a", "year")}
    table = load_rows([batch], COLUMNS, near, KEY).bounded(BOUND, KEY)
    with pytest.raises(ValueError, match="have no order"):
        Curator(table, Terms(near, ZCDP, Fraction(1), "gaussian"), Notes()).with_rows_before()


def test_first_rows_are_those_of_a_slow_search():
    for order in permutations(range(5)):
        persons = np.array([7, 9, 7, 7, 7], np.uint64)
        found = first_rows(rows_before(persons, np.array(order)), 4)
        for row in range(5):
            earlier = sorted(
                (order[i], i) for i in range(5) if persons[i] == persons[row] and order[i] < order[row]
            )
            assert found[row] == (earlier[0][1] if len(earlier) > 1 else -1)
    assert first_rows(np.zeros(0, np.int64), 1).tolist() == []
