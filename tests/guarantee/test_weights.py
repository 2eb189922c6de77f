"""Rows that count by weights: what one person moves, over small tables and all their neighbours.

Tables go through the product's own reading and bounding. Persons have no row, up to the bound, or more.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours, whole_weight
from dpsynth.columns.category import BooleanCodec
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Compression
from dpsynth.curator import Curator, Terms, load_rows
from dpsynth.curator.table import MOST_BLOCK
from dpsynth.errors import BudgetRefused
from dpsynth.testing import load_table
from tests.guarantee.small_tables import Notes, drawn_upon
from tests.thinned import thinned

KEY = b"k" * 32
PRICE = Fraction(1, 10)
COLUMNS = [Column(c, BooleanCodec(), missing=False) for c in "abc"]
BOUND = 2
NEAR = [Neighbours("add_remove", "who", BOUND), Neighbours("replace_one", "who", BOUND)]
TERMS = [(ZCDP, "gaussian"), (GDP, "gaussian"), (PURE, "laplace"), (ZCDP, "laplace")]
CELLS = (0, 3, 5, 7)
PERSONS = [p for n in range(BOUND + 2) for p in combinations_with_replacement(CELLS, n)]
OTHERS = [(), ((0,),), ((7, 7), (0, 3, 5))]
PAIR = ("a", "b")


class Guess:
    def __init__(self, *cells):
        self.cells = np.array(cells, dtype=float)

    def marginal(self, clique):
        return self.cells.reshape((2,) * len(clique))

    def fingerprint(self):
        return repr(self.cells)


FAR = Guess(0, 0, 10**6, 0)


def batch(persons):
    who = [f"p{i}" for i, cells in enumerate(persons) for _ in cells]
    rows = [cell for cells in persons for cell in cells]
    found = {c: ["yes" if cell >> i & 1 else "no" for cell in rows] for i, c in enumerate("abc")}
    return {name: pa.array(cells, pa.string()) for name, cells in {**found, "who": who}.items()}


def opened(persons, near, measure=ZCDP, kind="gaussian", budget=100):
    notes = Notes()
    table = load_table([batch(persons)], COLUMNS, near, KEY)
    return Curator(table, Terms(near, measure, Fraction(budget), kind), notes), notes


ASKED = {
    "marginals": lambda c: c.marginals([PAIR], PRICE),
    "singles": lambda c: c.grouped(Compression({"a": np.array([0, 0])})).singles(["a"], PRICE),
    "parities": lambda c: c.parities(["a", "b", "c"], 3, PRICE),
    "errors": lambda c: c.errors([PAIR], FAR, PRICE),
    "choose": lambda c: c.choose([PAIR], FAR, PRICE),
}


def declared(event, kind):
    match event:
        case GaussianEvent(l2_squared=moved) | LaplaceEvent(l1=moved):
            return moved
        case ExponentialEvent(sensitivity=moved):
            return moved**2 if kind == "gaussian" else moved


@cache
def table_of(persons, near):
    """A table, for all questions; nothing of it is changed by these."""
    return load_table([batch(persons)], COLUMNS, near, KEY)


def farthest(monkeypatch, near, terms, verb, by="weights") -> float:
    """The most that a person moves an answer over what is charged for, in the metric of the noise."""
    power, worst = 2 if terms[1] == "gaussian" else 1, 0.0
    for others in OTHERS:
        exact, charged = [], set()
        for person in PERSONS:
            notes = Notes()
            curator = Curator(
                table_of((*others, person), near), Terms(near, terms[0], Fraction(100), terms[1]), notes
            )
            exact += drawn_upon(monkeypatch, lambda c=curator: ASKED[verb](c.weighted(by)))
            charged.add(declared(notes.entries[0].event, terms[1]))
        (moved,) = charged
        for one, other in product(exact, exact if near.relation == "replace_one" else exact[:1]):
            worst = max(worst, float((np.abs(one - other) ** power).sum() / moved))
    return worst


@pytest.mark.parametrize(("near", "terms", "bound"), thinned(NEAR, TERMS, [2, 3]))
def test_no_neighbour_moves_a_count_by_surplus_further_than_declared_and_some_move_it_so_far(
    monkeypatch, near, terms, bound
):
    near = replace(near, max_rows=bound)
    assert farthest(monkeypatch, near, terms, "marginals", "surplus") == 1


@pytest.mark.parametrize(("near", "terms", "verb"), thinned(NEAR, TERMS, list(ASKED)))
def test_no_neighbour_moves_an_answer_by_weights_further_than_declared_and_some_move_it_so_far(
    monkeypatch, near, terms, verb
):
    # One distance of one pair moves by half of what an exchange may move: the farthest cell is the same.
    half = near.relation == "replace_one" and verb in {"errors", "choose"}
    least = (1 / 4 if terms[1] == "gaussian" else 1 / 2) if half else 1
    assert least <= farthest(monkeypatch, near, terms, verb) <= 1


@pytest.mark.parametrize("bound", [1, 3, 20, 21, 1000])
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 20, 999])
def test_the_rows_of_a_person_weigh_as_much_as_those_of_another_but_for_rounding(monkeypatch, bound, rows):
    near = Neighbours("add_remove", "who", bound)
    curator, _ = opened([(0,) * rows], near)
    (total,) = drawn_upon(monkeypatch, lambda: curator.weighted().marginals([()], PRICE))
    whole = whole_weight(bound)
    assert 31 / 32 * whole < total <= whole
    assert total == whole or rows > 1


@pytest.mark.parametrize(("near", "terms"), thinned(NEAR, TERMS))
def test_a_question_by_weights_is_charged_for_a_whole_weight_and_says_that_it_is_of_weights(near, terms):
    curator, notes = opened([(0,), (3, 3)], near, *terms)
    curator.marginals([PAIR], PRICE)
    curator.weighted().marginals([PAIR], PRICE)
    rows, weights = notes.entries
    power = 2 if terms[1] == "gaussian" else 1
    once = whole_weight(BOUND) // BOUND
    assert declared(weights.event, terms[1]) == once**power * declared(rows.event, terms[1])
    assert weights.question == {**rows.question, "weights": whole_weight(BOUND)}
    assert terms[0].cost(weights.event) <= PRICE


def test_weights_spend_the_same_budget_as_rows_and_end_with_it():
    curator, notes = opened([(0,), (3, 3)], NEAR[0], PURE, "laplace", budget=1)
    weights = curator.weighted()
    for _ in range(5):
        weights.marginals([PAIR], PRICE)
        curator.marginals([PAIR], PRICE)
    assert notes.charged(PURE) <= 1 and weights.remaining == curator.remaining < PRICE
    with pytest.raises(BudgetRefused):
        weights.errors([PAIR], FAR, PRICE)


def test_weights_of_a_compressed_domain_are_sums_over_its_groups():
    curator, _ = opened([(0, 5), (3,), (7, 7)], NEAR[0])
    groups = Compression({"b": np.array([0, 0])})
    plain, grouped = curator.weighted(), curator.weighted().grouped(groups)
    assert grouped._counts.of(PAIR).tolist() == plain._counts.of(PAIR).sum(axis=1, keepdims=True).tolist()


def test_weighted_parities_are_sums_over_weighted_rows(monkeypatch):
    curator, _ = opened([(0, 1), (7,), (3, 5), (1,)], NEAR[0])
    (found,) = drawn_upon(monkeypatch, lambda: curator.weighted().parities(["a", "b", "c"], 3, PRICE))
    half = whole_weight(BOUND) // 2
    assert found.tolist() == [half * (1 - 1) - 2 * half + half * (1 + 1) - 2 * half]


@pytest.mark.parametrize("bound", [2, 7, 40])
def test_twice_the_rows_are_their_surplus_and_their_weights(monkeypatch, bound):
    persons = [(0,), (3,) * min(bound, 3), (7,) * bound, (5, 0)]
    curator, _ = opened(persons, Neighbours("add_remove", "who", bound))
    rows, weights, surplus = (
        drawn_upon(monkeypatch, lambda c=c: c.marginals([PAIR], PRICE))[0]
        for c in (curator, curator.weighted(), curator.weighted("surplus"))
    )
    found = (surplus + (bound + 1) * weights) / (2 * whole_weight(bound))
    assert np.abs(found - rows).max() <= rows.max() / 32


def test_sums_of_a_block_are_exact_as_floats_up_to_the_largest_bound():
    most = Neighbours("add_remove", "who", 10_000).surplus.l1
    assert most * MOST_BLOCK < 1 << 53


def test_rows_that_are_units_have_no_weights_and_nothing_is_weighted_twice_or_after_grouping():
    near = Neighbours("add_remove")
    table = load_table([batch([(0,), (3, 3)])], COLUMNS, near, KEY)
    curator = Curator(table, Terms(near, ZCDP, Fraction(1), "gaussian"), Notes())
    with pytest.raises(ValueError, match="a unit is a row"):
        curator.weighted()
    persons, _ = opened([(0,)], NEAR[0])
    with pytest.raises(ValueError, match="once"):
        persons.weighted().weighted()
    with pytest.raises(ValueError, match="once"):
        persons.grouped(Compression({"a": np.array([0, 0])})).weighted()


def test_numbers_and_texts_are_not_asked_of_weights():
    weights = opened([(0,)], NEAR[0])[0].weighted()
    assert not weights._table.numbers_kept and not weights._table.texts_kept


def test_weights_beyond_the_largest_row_count_are_counted_exactly(monkeypatch):
    """70 000 persons and a bound of 10 000: the sum needs 34 bits."""
    near = Neighbours("add_remove", "who", 10_000)
    number = 70_000
    cells = {c: pa.array(["no"] * number) for c in "abc"}
    rows = load_rows([{**cells, "who": pa.array([str(i) for i in range(number)])}], COLUMNS, near, KEY)
    curator = Curator(
        rows.bounded(10_000, KEY), Terms(near, ZCDP, Fraction(1), "gaussian"), Notes()
    ).weighted()
    (found,) = drawn_upon(monkeypatch, lambda: curator.marginals([("a", "b", "c")], PRICE))
    assert found.max() == found.sum() == number * whole_weight(10_000) > 1 << 33
    (apart,) = drawn_upon(monkeypatch, lambda: curator.errors([PAIR], Guess(found.sum(), 0, 0, 0), PRICE))
    assert apart.tolist() == [0]


# Planted faults.


def test_an_exchanged_person_that_moves_a_surplus_as_it_moves_counts_is_caught(monkeypatch):
    def as_counts(self):
        return replace(self, max_rows=(self.max_rows - 1) * whole_weight(self.max_rows))

    monkeypatch.setattr(Neighbours, "surplus", property(as_counts))
    assert farthest(monkeypatch, NEAR[1], TERMS[0], "marginals", "surplus") > 1


@pytest.mark.parametrize("near", NEAR, ids=lambda n: n.relation)
@pytest.mark.parametrize("verb", ASKED)
def test_the_sensitivity_of_rows_used_for_weights_is_caught(monkeypatch, near, verb):
    monkeypatch.setattr(Neighbours, "weighted", property(lambda self: self))
    assert farthest(monkeypatch, near, TERMS[0], verb) > 1


def test_weights_rounded_up_are_caught(monkeypatch):
    near = Neighbours("add_remove", "who", 3)
    curator, notes = opened([(0, 0, 0)], near)
    # The person's rows are taken for fewer than they are, as a weight that is rounded up would do.
    object.__setattr__(curator._table, "of_each", np.full(3, 2, np.uint8))
    (total,) = drawn_upon(monkeypatch, lambda: curator.weighted().marginals([()], PRICE))
    assert float(total) ** 2 > notes.entries[0].event.l2_squared


def test_a_question_of_weights_that_is_taken_for_one_of_rows_is_caught():
    curator, notes = opened([(0,), (3, 3)], NEAR[0])
    twin = curator.weighted()
    twin._weighting = None
    twin.marginals([PAIR], PRICE)
    curator.marginals([PAIR], PRICE)
    assert notes.entries[0].question == notes.entries[1].question
