"""Right guesses of a classifier: their sensitivity over all neighbours, and each row's own guess."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsynth.accounting.measures import PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Domain
from dpsynth.columns.finished_table import Classifier
from dpsynth.curator import Lost
from dpsynth.curator.table import PrivateTable
from dpsynth.errors import BudgetRefused
from tests.guarantee.small_tables import NEIGHBOURS, TERMS, Table, curator_on, drawn_upon, excesses, tables
from tests.thinned import thinned

PRICE = Fraction(1, 10)


def classifier(*scores: list[int], target: str = "a", aim: str = "accuracy") -> Classifier:
    """A classifier of one column by the other's two codes."""
    by = "b" if target == "a" else "a"
    return Classifier(target, aim, {by: np.array(scores, dtype=np.int64)})


CLASSIFIERS = {
    "same": classifier([1, 0], [0, 1]),
    "other": classifier([0, 1], [1, 0], target="b"),
    "first of equals": classifier([0, 0], [7, 7]),
    "one class": classifier([3], [-3]),
}


def by_brute_force(table: Table, rule: Classifier) -> list[list[int]]:
    found = [[0, 0] for _ in range(rule.classes)]
    for cell in table:
        codes = {"a": cell // 2, "b": cell % 2}
        (by, scores) = next(iter(rule.scores.items()))
        own = scores[codes[by]].tolist()
        if codes[rule.target] < rule.classes:
            found[codes[rule.target]][own.index(max(own)) == codes[rule.target]] += 1
    return found


def moved(monkeypatch, near: Neighbours, terms: tuple[Measure, str], rule: Classifier) -> float:
    """The most that a neighbour moves the counts, over what is declared."""
    return max(excesses(monkeypatch, near, terms, lambda c: c.classified(rule, PRICE)))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_counts_are_those_of_the_definition(monkeypatch, name):
    rule = CLASSIFIERS[name]
    for table in tables():
        curator, _ = curator_on(table, NEIGHBOURS[0], *TERMS[0])
        (exact,) = drawn_upon(monkeypatch, lambda c=curator: c.classified(rule, PRICE))
        assert exact.tolist() == by_brute_force(table, rule)


@pytest.mark.parametrize(("near", "terms", "name"), thinned(NEIGHBOURS, TERMS, list(CLASSIFIERS)))
def test_no_neighbour_of_any_small_table_moves_the_counts_further_than_declared_and_some_move_them_so_far(
    monkeypatch, near, terms, name
):
    found = moved(monkeypatch, near, terms, CLASSIFIERS[name])
    assert found <= 1
    if CLASSIFIERS[name].classes > 1:
        assert found == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_guess_follows_from_the_rows_own_codes_whatever_rows_are_beside_it(seed):
    rng = np.random.default_rng(seed)
    sizes = {"a": 4, "b": 300, "c": 5, "d": 2}
    # Near ties: sums of floating-point numbers would be rounded differently with other rows.
    scores = {c: rng.integers(-1, 2, (sizes[c], 3)) * (1 << 40) for c in "bcd"}
    rule = Classifier("a", "accuracy", scores)
    codes = {c: rng.integers(0, size, 70_000).astype(np.uint16) for c, size in sizes.items()}
    each = rule.right(codes)
    table = PrivateTable(Domain(sizes), codes, 70_000)
    found = table.classified(rule)
    expected = np.zeros((4, 2), np.int64)
    np.add.at(expected, (codes["a"], each), 1)
    assert np.array_equal(found, expected) and found[3, 1] == 0
    order = rng.permutation(70_000)[:1000]
    assert np.array_equal(rule.right({c: own[order] for c, own in codes.items()}), each[order])
    assert np.array_equal(
        np.concatenate([rule.right({c: own[[i]] for c, own in codes.items()}) for i in order[:50]]),
        each[order[:50]],
    )


def test_the_question_is_one_charge_of_its_price_and_names_the_classifier():
    rules = [*CLASSIFIERS.values(), classifier([1, 0], [0, 2])]
    for measure, kind in TERMS:
        curator, notes = curator_on((0, 1, 3), NEIGHBOURS[0], measure, kind)
        for rule in rules:
            answer = curator.classified(rule, PRICE)
            assert (answer.target, answer.noise) == (rule.target, kind)
            assert len(answer.wrong) == len(answer.right) == rule.classes
            assert answer.scale == notes.entries[-1].event.scale
        assert len({repr(entry.question) for entry in notes.entries}) == len(rules) == len(notes.entries)
        assert PRICE * Fraction(99, 100) * len(rules) < notes.charged(measure) <= PRICE * len(rules)


def test_a_classifier_of_other_columns_is_refused_uncharged():
    curator, notes = curator_on((0, 1), NEIGHBOURS[0], PURE, "laplace")
    for rule in (
        classifier([1, 0]),
        classifier([1, 0], [0, 1], [1, 1]),
        classifier([1, 0, 0], [0, 1, 0]),
        Classifier("z", "accuracy", CLASSIFIERS["same"].scores),
        Classifier("a", "accuracy", {"z": CLASSIFIERS["same"].scores["b"]}),
        Classifier("a", "accuracy", {"b": np.zeros((2, 0), np.int64)}),
    ):
        with pytest.raises(ValueError, match="other columns"):
            curator.classified(rule, PRICE)
    with pytest.raises(BudgetRefused):
        curator.classified(CLASSIFIERS["same"], Fraction(101))
    assert not notes.entries


def test_a_lost_answer_is_none_and_stays_paid_for():
    curator, notes = curator_on((0, 1), NEIGHBOURS[0], ZCDP, "gaussian")
    sound = notes.answer
    notes.answer = lambda question, event, draw: (sound(question, event, draw), Lost())[1]
    before = curator.remaining
    assert curator.classified(CLASSIFIERS["same"], PRICE) is None
    assert before - curator.remaining > PRICE * Fraction(99, 100)


# Planted faults.


@pytest.mark.parametrize("near", NEIGHBOURS[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_an_added_row_used_for_any_other_unit_is_caught(monkeypatch, near):
    monkeypatch.setattr(Neighbours, "l1", 1)
    monkeypatch.setattr(Neighbours, "l2_squared", 1)
    for terms, name in product(TERMS, ("same", "other")):
        assert moved(monkeypatch, near, terms, CLASSIFIERS[name]) > 1


def test_a_guess_that_depends_on_other_rows_is_caught(monkeypatch):
    """As of rows that are scaled by the mean of the rows beside them."""

    def beside(self, codes):
        truth, by = codes["a"], codes["b"]
        return ((by > by.mean()) == truth).astype(np.uint8)

    monkeypatch.setattr(Classifier, "right", beside)
    assert moved(monkeypatch, NEIGHBOURS[0], (ZCDP, "gaussian"), CLASSIFIERS["same"]) > 1


def test_a_row_that_counts_as_right_and_as_wrong_is_caught(monkeypatch):
    sound = PrivateTable.classified
    monkeypatch.setattr(
        PrivateTable, "classified", lambda self, rule: sound(self, rule) + sound(self, rule)[:, ::-1]
    )
    for terms in TERMS:
        assert moved(monkeypatch, NEIGHBOURS[0], terms, CLASSIFIERS["same"]) > 1
