"""The loss of what is really drawn, by first principles, for questions that are large, or not the first.

Each verb is asked of two tables that differ in one unit, chosen so that it moves the answer as far as any
unit can. The integers that noise is drawn upon, and the scale of that noise, give the loss. No event, no
declared sensitivity and no calibration is used for it, so a mistake that all of these share is found too. The
loss must not be above the price, and hardly below it: a pair that moves an answer less would show nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import pi

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from dpsynth.accounting.calibration import Calibration
from dpsynth.accounting.events import GaussianEvent, SelectionEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column, NumberSearch, ValueSearch
from dpsynth.columns.domain import Clique, Compression, Domain
from dpsynth.columns.finished_table import Classifier, CodedRows, FinishedTable
from dpsynth.columns.number_texts import PLAIN
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import MOST_STEPS, Centring, Pieces
from dpsynth.curator import Curator, Terms, UnboundedCurator, load_rows, samplers
from dpsynth.curator.charging import PrivacyFilter
from dpsynth.curator.table import PrivateTable, Texts
from tests.curator.test_verbs import VERBS
from tests.guarantee.small_tables import Notes
from tests.thinned import some, thinned

PRICE = Fraction(1, 1000)
NAMES = tuple(f"c{i}" for i in range(80))
PAIRS: list[Clique] = list(combinations(NAMES, 2))
GROUPS = (1 << 17) + 1
FAR = 10**6
"""Rows that estimates and finished tables have in their first cell, more than any table here."""
SPAN = 1 << 33

AGE = Column(
    "age",
    NumericCodec((0.0, 1.0), 0, integer=True),
    search=NumberSearch(None, None, "tree", 4, 0, True, PLAIN),
)
CITY = Column("city", CategoryCodec(("A",), "else"), search=ValueSearch((), 9, "else"))
WELL = Column("well", BooleanCodec())
DOMAIN = Domain({**dict.fromkeys(NAMES, 2), "x": 2, "g": GROUPS, "h": GROUPS})


@dataclass(frozen=True)
class Draw:
    """One call of a sampler: how it draws, upon which integers, at which scale."""

    how: str
    upon: np.ndarray
    scale: float


@dataclass
class Drawn(Notes):
    """A journal in memory with the draws of each entry; nothing is added to the integers."""

    draws: list[list[Draw]] = field(default_factory=list)

    def answer(self, question, event, draw):
        self.draws.append([])
        return super().answer(question, event, draw)


def watched(patch: pytest.MonkeyPatch, notes: Drawn) -> None:
    """Have all samplers note their arguments; the last candidate is chosen, and every value is selected."""

    def noted(how: str, values: np.ndarray, scale: float) -> np.ndarray:
        notes.draws[-1].append(Draw(how, np.array(values), scale))
        return values

    patch.setattr(samplers, "add_gaussian", lambda values, sigma: noted("gaussian", values, sigma))
    patch.setattr(samplers, "add_laplace", lambda values, scale: noted("laplace", values, scale))
    patch.setattr(samplers, "choose_index", lambda values, scale: len(noted("choice", values, scale)) - 1)
    patch.setattr(samplers, "select", lambda units, event: noted("selection", units, 1 / event.epsilon0) > 0)


def loss(one: Sequence[Draw], two: Sequence[Draw], measure: Measure) -> float:
    """The loss of one answer, by the mechanisms' definitions, as a measure counts it."""
    total, choices = 0.0, 0.0
    for a, b in zip(one, two, strict=True):
        assert (a.how, a.scale, a.upon.shape) == (b.how, b.scale, b.upon.shape)
        gap = np.abs(a.upon.astype(float) - b.upon.astype(float))
        if a.how == "gaussian":
            # Gaussian DP counts discrete noise as a thousandth smaller than it is.
            total += float((gap**2).sum()) / (2 * a.scale**2)
        elif a.how == "choice":
            # Log ratios lie within twice the largest move of a score, and add up over several choices.
            choices += 2 * float(gap.max()) / a.scale
        elif a.how == "selection":
            assert gap.max() <= 1
            total += (
                float(gap.sum()) / a.scale ** (1 if measure == PURE else 2) / (1 if measure == PURE else 2)
            )
        else:
            total += _of_pure(float(gap.sum()) / a.scale, measure, {ZCDP: 2, GDP: 4 / pi})
    return total + _of_pure(choices, measure, {ZCDP: 8, GDP: 16 / pi})


def _of_pure(epsilon: float, measure: Measure, parts: dict[Measure, float]) -> float:
    return epsilon if measure == PURE else epsilon**2 / parts[measure]


# Tables: rows of the first codes, and rows of the last ones. The unit's rows come at the end, or change from
# the first codes to the last ones.


def rows_of(near: Neighbours) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows of the first and of the last codes, of either table."""
    if near.relation == "add_remove":
        return (3, 0), (3, near.max_rows)
    return (3 + near.max_rows, 0), (3, near.max_rows)


def table_of(first: int, last: int, values: int = 2) -> PrivateTable:
    """A table of so many rows of the first codes and so many of the last ones."""
    is_last = np.repeat([0, 1], [first, last])
    codes: dict[str, np.ndarray] = dict.fromkeys(NAMES, is_last.astype(np.uint8))
    codes |= {"x": is_last.astype(np.uint8), "g": (is_last * (GROUPS - 1)).astype(np.uint32)}
    # An exchanged row moves one sum by most if it stays in its group.
    codes["h"] = np.full(len(is_last), GROUPS - 1, np.uint32)
    steps = {"x": (is_last * MOST_STEPS).astype(np.int32)}
    texts = {
        "city": Texts(pa.array(["v0", f"v{values - 1}"], pa.large_string()), is_last.astype(np.int32)),
        "age": Texts(pa.array(["0.5", f"{2 * values - 1.5}"], pa.large_string()), is_last.astype(np.int32)),
    }
    return PrivateTable(DOMAIN, codes, first + last, texts, steps=steps, summed=frozenset("x"))


@dataclass(frozen=True)
class Guess:
    """Estimates with all rows in the first cell."""

    domain: Domain = DOMAIN

    def marginal(self, clique: Clique) -> np.ndarray:
        guess = np.zeros(self.domain.shape(clique))
        guess[(0,) * len(clique)] = FAR
        return guess

    def fingerprint(self) -> str:
        return "all in the first cell"


def finished() -> FinishedTable:
    coded = CodedRows()
    coded.add(table_of(4, 0).codes)
    return FinishedTable(coded, FAR)


def joined() -> Compression:
    """Two groups of the column with many values."""
    return Compression({"g": np.repeat([0, 1], [1, GROUPS - 1])})


Ask = Callable[[Curator, int], object]


def in_turn(curator: Curator, number: int) -> object:
    cliques = PAIRS[: number + 2]
    any_may = np.ones(len(cliques), dtype=np.bool_)
    weights = [1] * len(cliques)
    return curator.choose_in_turn(cliques, Guess(), PRICE / number, number, lambda _: any_may, (), weights)


def heaviest(curator: Curator, number: int) -> object:
    weights = [1] * (number - 1) + [1 << 20]
    return curator.choose(PAIRS[:number], Guess(), PRICE, (), weights)


def cities(number: int) -> CategoryCodec:
    return CategoryCodec(tuple(f"v{i}" for i in range(number)), "else")


def runs(curator: Curator, number: int) -> object:
    cuts = np.arange(2 * number, dtype=float)
    return curator.medians(AGE, cuts, [(2 * i, 2 * i + 2) for i in range(number)], PRICE)


def guesses(curator: Curator, number: int) -> object:
    """Rows of the last code that are guessed right, by so many columns."""
    scores = dict.fromkeys(NAMES[1:number], np.eye(2, dtype=np.int64))
    return curator.classified(Classifier(NAMES[0], "accuracy", scores), PRICE)


SIZES = (501, 65, 2)
ASKED: dict[str, tuple[Ask, Sequence[int]]] = {
    "count": (lambda c, _: c.count(PRICE), (1,)),
    "marginals": (lambda c, n: c.marginals(PAIRS[:n], PRICE), SIZES),
    "marginals of many cells": (lambda c, n: c.marginals([("g", *NAMES[:n])], PRICE), (4, 1)),
    "singles": (lambda c, _: c.grouped(joined()).singles(["g"], PRICE), (GROUPS,)),
    "sums": (
        lambda c, n: c.sums("x", ("h",), Centring((SPAN, -SPAN), n), PRICE),
        (MOST_STEPS, 1 << 20, (1 << 20) - 1, 1),
    ),
    "finer_counts": (
        lambda c, n: c.finer_counts("x", ("c0",), Pieces(tuple(range(n)), 2), PRICE),
        (1 << 17, 501, 65, 2),
    ),
    "choose": (heaviest, (1001, len(PAIRS), *SIZES)),
    "choose_in_turn": (in_turn, (65, 3, 1)),
    "errors": (lambda c, n: c.errors(PAIRS[:n], Guess(), PRICE), (1001, len(PAIRS), *SIZES, 1)),
    "examine": (lambda c, n: c.examine(PAIRS[:n], finished(), PRICE), (1001, len(PAIRS), *SIZES, 1)),
    "classified": (guesses, SIZES),
    "counts_under": (lambda c, n: c.counts_under(CITY, cities(n), PRICE), (1 << 13, *SIZES)),
    "medians": (runs, SIZES),
    # Sets of odd size alone: an exchanged row moves all of these.
    "parities": (lambda c, n: c.parities(NAMES[:n], 3, PRICE), (len(NAMES), 16, 3)),
}
"""The questions, each with its sizes, the largest first; the price is the same for all sizes."""

UNITS = {
    f"{near.max_rows}_{near.relation}": near
    for near in (
        *map(Neighbours, ("add_remove", "replace_one")),
        *(Neighbours(r, "who", k) for k in (2, 501) for r in ("add_remove", "replace_one")),
    )
}
KINDS: dict[str, tuple[Measure, str]] = {
    f"{measure.name}_{kind}": (measure, kind)
    for measure, kind in ((ZCDP, "gaussian"), (GDP, "gaussian"), (PURE, "laplace"), (ZCDP, "laplace"))
}
CASES = {
    f"{verb.replace(' ', '_')}_of_{size}": (verb, size)
    for verb, (_, sizes) in ASKED.items()
    for size in sizes
}


def shares(
    monkeypatch: pytest.MonkeyPatch, near: Neighbours, terms: tuple[Measure, str], case: tuple[str, int]
) -> list[tuple[float, float]]:
    """Losses and charges over the price: of a small question, a large one, and one in a second tier."""
    (verb, size), (ask, sizes) = case, ASKED[case[0]]
    values = size if verb in {"counts_under", "medians"} else 2
    noted: list[list[list[list[Draw]]]] = []
    charged: list[float] = []
    for rows in rows_of(near):
        notes, parts = Drawn(), []
        with monkeypatch.context() as patch:
            watched(patch, notes)
            door = Curator(table_of(*rows, values), Terms(near, terms[0], Fraction(2), terms[1]), notes)
            first = door.keeping(Fraction(1))
            asked = [(first, size), (first.keeping(Fraction(0)), size)]
            if values == 2:
                asked.insert(0, (first, sizes[-1]))
            charged = []
            for place, number in asked:
                notes.draws.clear()
                before = notes.charged(terms[0])
                ask(place, number)
                charged.append(float(notes.charged(terms[0]) - before))
                parts.append(list(notes.draws))
        noted.append(parts)
    losses = [
        sum(loss(a, b, terms[0]) for a, b in zip(one, two, strict=True))
        for one, two in zip(*noted, strict=True)
    ]
    return [(x / float(PRICE), y / float(PRICE)) for x, y in zip(losses, charged, strict=True)]


@pytest.mark.parametrize(
    ("near", "terms", "case"),
    thinned(
        list(UNITS), list(KINDS), list(CASES),
        # No exchange moves the number of rows as far as a sum of counts could move.
        possible=lambda near, _, case: CASES[case][0] != "count" or "add" in near,
        by=lambda near, terms, case: (near, terms, CASES[case][0]),
    ),
)  # fmt: skip
def test_the_worst_neighbour_costs_the_price_of_a_question_of_any_size_and_no_more(
    monkeypatch, near, terms, case
):
    for lost, charged in shares(monkeypatch, UNITS[near], KINDS[terms], CASES[case]):
        assert 0.99 < lost <= charged * (1 + 1e-9)
        assert charged <= 1


# Planted faults; ``tests/faults/large.txt`` has many more.


def worst(monkeypatch: pytest.MonkeyPatch, near: str, terms: str, case: str) -> float:
    """The largest loss over the charge."""
    found = shares(monkeypatch, UNITS[near], KINDS[terms], CASES[case])
    return max(lost / charged for lost, charged in found)


@pytest.mark.parametrize("terms", some(["gdp_gaussian", "pure_laplace"], 1))
@pytest.mark.parametrize("case", ["errors_of_3160", "examine_of_3160"])
def test_noise_and_charge_for_at_most_500_distances_are_caught(monkeypatch, terms, case):
    sound = Calibration.distances
    monkeypatch.setattr(Calibration, "distances", lambda self, price, k=1: sound(self, price, min(k, 500)))
    assert worst(monkeypatch, "1_add_remove", terms, case) == pytest.approx(3160 / 500, rel=0.01)


def test_a_charge_for_at_most_500_distances_beside_their_noise_is_caught(monkeypatch):
    sound = PrivacyFilter._ask

    def fewer(self, question, event, exact, draw):
        less = GaussianEvent(event.scale, min(event.l2_squared, 500))
        return sound(self, question, less, exact, draw)

    monkeypatch.setattr(PrivacyFilter, "_ask", fewer)
    assert worst(monkeypatch, "1_add_remove", "zcdp_gaussian", "errors_of_3160") > 6


def test_sums_cut_at_twice_their_limit_from_a_million_steps_on_are_caught(monkeypatch):
    sound = PrivateTable.sums

    def loose(self, column, by, centring):
        limit = min(2 * centring.limit, MOST_STEPS) if centring.limit >= 1 << 20 else centring.limit
        return sound(self, column, by, Centring(centring.offsets, limit))

    monkeypatch.setattr(PrivateTable, "sums", loose)
    assert worst(monkeypatch, "1_add_remove", "zcdp_gaussian", "sums_of_1048576") > 3.9
    assert worst(monkeypatch, "1_add_remove", "zcdp_gaussian", "sums_of_1048575") < 1.01


def test_every_verb_is_asked_here():
    elsewhere = {"values_of", "rows_per_unit"}
    assert {verb.partition(" ")[0] for verb in ASKED} | elsewhere == set(VERBS)


def paid(
    monkeypatch: pytest.MonkeyPatch, terms: tuple[Measure, str], asked: Sequence[Callable[[Drawn], object]]
) -> float:
    """The loss of all that is asked of one table, and of another one, over the price of one question."""
    noted = []
    for ask in asked:
        notes = Drawn()
        with monkeypatch.context() as patch:
            watched(patch, notes)
            ask(notes)
        noted.append(notes.draws)
    one, two = noted
    return sum(loss(a, b, terms[0]) for a, b in zip(one, two, strict=True)) / float(PRICE)


# Values that many units hold.


def holding(near: Neighbours, *, after: bool) -> PrivateTable:
    """Each value held by somebody; the unit holds the first ones, or comes with as many others."""
    most = near.max_rows
    others = np.arange(2 * most)
    own = others[most:] if after else others[:most]
    if near.relation == "add_remove" and not after:
        own = own[:0]
    held = np.concatenate([others, own]).astype(np.int32)
    unit = np.concatenate([others, np.full(len(own), 2 * most)]).astype(np.int32)
    texts = {"city": Texts(pa.array([f"v{i}" for i in others], pa.large_string()), held)}
    by_person = unit if near.person is not None else None
    return PrivateTable(Domain({}), {}, len(held), texts, by_person)


@pytest.mark.parametrize(("near", "terms"), thinned(list(UNITS), list(KINDS)))
def test_a_unit_that_moves_as_many_values_as_it_may_costs_the_price_of_a_search(monkeypatch, near, terms):
    near, terms = UNITS[near], KINDS[terms]
    delta = Fraction(1, 10**6)
    found = Drawn()

    def ask(after: bool, notes: Drawn) -> None:
        door = Curator(holding(near, after=after), Terms(near, terms[0], Fraction(2), terms[1], delta), notes)
        door.values_of(CITY, PRICE, delta)
        found.entries[:] = notes.entries

    assert 0.99 < paid(monkeypatch, terms, [partial(ask, False), partial(ask, True)]) <= 1 + 1e-9
    (event,) = (entry.event for entry in found.entries)
    most = near.max_rows * (2 if near.relation == "replace_one" else 1)
    if isinstance(event, SelectionEvent):
        assert 0.8 * delta < most * Fraction(event.delta0) <= delta
    else:
        assert 0.5 * delta < most * norm.sf((event.threshold - 1.5) / event.sigma) <= delta


# Contribution bounds.

KEY = b"k" * 32


def loaded(number: Sequence[int], near: Neighbours):
    """Rows of persons, so many of each, in batches that part their rows; all but the first are well."""
    who = np.repeat(np.arange(len(number)), number)
    batches = [
        {"who": pa.array([f"p{i}" for i in who[start::3]]), "well": pa.array(["no", "yes"]).take(
            pa.array((who[start::3] > 0).astype(int)))}
        for start in range(3)
    ]  # fmt: skip
    return load_rows(batches, [WELL], near, KEY)


@pytest.mark.parametrize("most", [2, 65, 501])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("terms", ["zcdp_gaussian", "pure_laplace"])
def test_a_person_of_any_number_of_rows_stands_in_one_cell_of_many(monkeypatch, most, relation, terms):
    near, terms = Neighbours(relation, "who", 7), KINDS[terms]

    def ask(number: Sequence[int], notes: Drawn) -> None:
        unbounded = UnboundedCurator(
            loaded(number, near), Terms(near, terms[0], Fraction(2), terms[1]), notes, KEY
        )
        unbounded.rows_per_unit(range(1, most + 1), PRICE)

    tables = [[1, 1], [1, 1, 3 * most]] if relation == "add_remove" else [[1, 1], [1, 3 * most]]
    assert 0.99 < paid(monkeypatch, terms, [partial(ask, t) for t in tables]) <= 1 + 1e-9


@pytest.mark.parametrize("most", [2, 65, 501])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("terms", ["zcdp_gaussian", "pure_laplace"])
def test_a_person_of_more_rows_than_the_bound_that_was_chosen_costs_the_price(
    monkeypatch, most, relation, terms
):
    near, terms = Neighbours(relation, "who", 1), KINDS[terms]
    guess = Guess(Domain({"well": WELL.size}))

    def ask(number: Sequence[int], notes: Drawn) -> None:
        unbounded = UnboundedCurator(
            loaded(number, near), Terms(near, terms[0], Fraction(2), terms[1]), notes, KEY
        )
        door = unbounded.bounded(most)
        door.errors([("well",)], guess, PRICE)
        door.marginals([("well",)], PRICE)

    # The first person's rows are of the first cell; the last one's are not.
    tables = [[0, 5], [0, 5, 2 * most]] if relation == "add_remove" else [[2 * most, 5], [0, 5, 2 * most]]
    found = paid(monkeypatch, terms, [partial(ask, t) for t in tables])
    assert 1.98 < found <= 2 + 1e-9
