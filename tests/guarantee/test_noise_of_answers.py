"""The noise that answers really have, against what is charged for and what whoever asked is told."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Domain
from dpsynth.columns.finished_table import Classifier
from dpsynth.columns.sums import Centring, Pieces
from dpsynth.curator import Curator, Terms, samplers
from dpsynth.curator.journal import Entry
from dpsynth.curator.table import PrivateTable
from tests.guarantee.small_tables import LEVEL, NEIGHBOURS, TERMS, Notes, curator_on
from tests.guarantee.test_contributions import REPLACE, opened
from tests.guarantee.test_exam import FINISHED, by_brute_force

MANY = 4000
FEW = (0, 1, 3)
"""A table of three rows."""

Found = tuple[np.ndarray, float, Entry]
"""Errors of an answer, the standard deviation that is told, and the entry in the journal."""


def distances(measure: Measure, kind: str) -> Found:
    curator, notes = curator_on(FEW, NEIGHBOURS[3], measure, kind)
    answer, told = curator.errors([("a",)] * MANY, LEVEL, Fraction(10))
    return answer - (9 - 2 + 1), told, notes.entries[0]


def exam(measure: Measure, kind: str) -> Found:
    curator, notes = curator_on(FEW, NEIGHBOURS[3], measure, kind)
    answer = curator.examine([("a",)] * MANY, FINISHED[1], Fraction(10))
    return answer.values - by_brute_force(FEW, FINISHED[1], ("a",)), answer.stddev, notes.entries[0]


def each_in_a_group(measure: Measure, kind: str) -> tuple[Curator, Notes]:
    """A row in each group, of which each has the number 0."""
    codes = {"g": np.arange(MANY, dtype=np.uint16), "x": np.zeros(MANY, np.uint8)}
    steps = {"x": np.zeros(MANY, np.int32)}
    table = PrivateTable(Domain({"g": MANY, "x": 3}), codes, MANY, steps=steps, summed=frozenset(("x",)))
    notes = Notes()
    return Curator(table, Terms(NEIGHBOURS[3], measure, Fraction(100), kind), notes), notes


def sums(measure: Measure, kind: str) -> Found:
    curator, notes = each_in_a_group(measure, kind)
    answer = curator.sums("x", ("g",), Centring((5, 4), 5), Fraction(10))
    return answer.values + 5.0, answer.stddev, notes.entries[0]


def finer_counts(measure: Measure, kind: str) -> Found:
    curator, notes = each_in_a_group(measure, kind)
    answer = curator.finer_counts("x", ("g",), Pieces((0, 3, 5), 2), Fraction(1))
    return answer.values - np.array([1, 0, 0]), answer.stddev, notes.entries[0]


def parities(measure: Measure, kind: str) -> Found:
    names = tuple(f"c{i}" for i in range(24))
    notes = Notes()
    table = PrivateTable(Domain(dict.fromkeys(names, 2)), dict.fromkeys(names, np.zeros(3, np.uint8)), 3)
    curator = Curator(table, Terms(NEIGHBOURS[3], measure, Fraction(100), kind), notes)
    answer, told = curator.parities(names, 4, Fraction(10))
    return answer - 3, told, notes.entries[0]


def classified(measure: Measure, kind: str) -> Found:
    """A class for each of many codes, of which the first alone is ever guessed."""
    codes = {"g": np.arange(MANY, dtype=np.uint16), "x": np.zeros(MANY, np.uint8)}
    notes = Notes()
    table = PrivateTable(Domain({"g": MANY, "x": 1}), codes, MANY)
    curator = Curator(table, Terms(NEIGHBOURS[3], measure, Fraction(100), kind), notes)
    rule = Classifier("g", "accuracy", {"x": np.zeros((1, MANY), np.int64)})
    answer = curator.classified(rule, Fraction(1, 10))
    assert answer is not None
    return np.array(answer.wrong[1:]) - 1, answer.stddev, notes.entries[0]


def persons(measure: Measure, kind: str) -> Found:
    door, notes = opened([1], REPLACE, measure, kind)
    answer = door.rows_per_unit(range(1, MANY + 1), Fraction(1, 10))
    return answer.values, answer.stddev, notes.entries[0]


ANSWERS: list[Callable[[Measure, str], Found]] = [
    distances,
    exam,
    sums,
    finer_counts,
    parities,
    classified,
    persons,
]


def spread(asked: Callable[[Measure, str], Found], measure: Measure, kind: str) -> tuple[float, float]:
    """Empirical standard deviation over what the charge claims, and over what is told."""
    errors, told, entry = asked(measure, kind)
    claimed = entry.event.sigma if kind == "gaussian" else entry.event.scale * 2**0.5
    found = float(np.sqrt(np.mean(errors.astype(float) ** 2)))
    return found / claimed, found / told


@pytest.mark.parametrize(("measure", "kind"), TERMS)
@pytest.mark.parametrize("asked", ANSWERS)
def test_an_answer_has_the_noise_that_is_charged_for_and_told(asked, measure, kind):
    assert all(0.9 < ratio < 1.1 for ratio in spread(asked, measure, kind))


@pytest.mark.parametrize(("measure", "kind"), TERMS)
@pytest.mark.parametrize("asked", ANSWERS)
def test_an_answer_with_0_7_of_its_noise_would_be_caught(monkeypatch, asked, measure, kind):
    sound = getattr(samplers, f"add_{kind}")
    monkeypatch.setattr(samplers, f"add_{kind}", lambda values, scale: sound(values, 0.7 * scale))
    assert not any(0.9 < ratio < 1.1 for ratio in spread(asked, measure, kind))


def test_an_answer_without_noise_would_be_caught(monkeypatch):
    monkeypatch.setattr(samplers, "add_gaussian", lambda values, scale: values)
    assert all(ratio < 0.1 for asked in ANSWERS for ratio in spread(asked, *TERMS[0]))
