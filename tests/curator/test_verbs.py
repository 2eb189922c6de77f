"""A verb of the curator: one implementation, one protocol, charged before it is drawn, listed in the docs.

Whoever adds a verb is told by these tests what it must bring.
"""

import inspect
import re
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column, NumberSearch, ValueSearch
from dpsynth.columns.domain import Compression
from dpsynth.columns.finished_table import Classifier, CodedRows, FinishedTable
from dpsynth.columns.number_texts import PLAIN
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import Centring, Pieces
from dpsynth.curator import Curator, Journal, Terms, UnboundedCurator, load_rows, samplers
from dpsynth.curator.charging import PrivacyFilter
from dpsynth.errors import BudgetRefused
from dpsynth.plan.questions import Door
from dpsynth.testing import FakeDoor
from tests.guarantee.draws import watched_draws

DOCS = Path(__file__).parents[2] / "docs" / "privacy.md"
FREE = {"cell_error", "parity_error"}
"""Public arithmetic: no row is looked at, and nothing is charged."""
TWINS = {"coded", "grouped", "bounded", "keeping", "weighted", "with_rows_before"}
"""Curators of the same rows, with the same budget."""
PRICE = Fraction(1, 8)

AGE = Column(
    "age",
    NumericCodec((0.0, 1.0), 0, integer=True),
    search=NumberSearch(None, None, "tree", 4, 0, True, PLAIN),
)
YEARS = Column("years", NumericCodec((0.0, 5.0, 10.0), 0, integer=True))
CITY = Column("city", CategoryCodec(("A",), "else"), search=ValueSearch((), 9, "else"))
WELL, ILL, OLD = (Column(name, BooleanCodec()) for name in ("well", "ill", "old"))
CELLS = {
    "age": ["3", "40", "5", "61"] * 9,
    "city": ["A", "B", "B", "B"] * 9,
    "well": ["yes", "no"] * 18,
    "ill": ["no", "yes"] * 18,
    "old": ["no", "no"] * 18,
    "years": ["3", "9"] * 18,
}
PEOPLE = Neighbours("add_remove", "who", 2)
WELLS = [("well",), ()]


class Flat:
    """Estimates of zero rows."""

    def marginal(self, clique):
        return np.zeros((WELL.size,) * len(clique))

    def fingerprint(self):
        return "flat"


CODED = CodedRows()
CODED.add({"well": np.zeros(5, np.uint8)})
FINISHED = FinishedTable(CODED, 30)

GUESSED = Classifier("well", "accuracy", {"ill": np.eye(ILL.size, 2, dtype=np.int64)})

TWO_PLACES = Compression(dict.fromkeys(("well", "ill", "old"), np.array([0, 1, 1])))
"""Missing cells count with one of both values."""

EXAMPLES = {
    "count": lambda c: c.count(PRICE),
    "marginals": lambda c: c.marginals(WELLS, PRICE),
    "singles": lambda c: c.singles(["well"], PRICE),
    "sums": lambda c: c.sums("years", ("well",), Centring((2, 7), 3), PRICE),
    "finer_counts": lambda c: c.finer_counts("years", ("well",), Pieces((0, 2, 5), 2), PRICE),
    "parities": lambda c: c.grouped(TWO_PLACES).parities(["well", "ill", "old"], 3, PRICE),
    "choose": lambda c: c.choose(WELLS, Flat(), PRICE),
    "choose_in_turn": lambda c: c.choose_in_turn(WELLS, Flat(), PRICE, 2, lambda _: np.ones(2, bool)),
    "errors": lambda c: c.errors(WELLS, Flat(), PRICE),
    "examine": lambda c: c.examine(WELLS, FINISHED, PRICE),
    "classified": lambda c: c.classified(GUESSED, PRICE),
    "counts_under": lambda c: c.counts_under(CITY, CategoryCodec(("A", "B"), "else"), PRICE),
    "medians": lambda c: c.medians(AGE, np.array([0.0, 9.0, 50.0]), [(0, 3)], PRICE),
    "values_of": lambda c: c.values_of(CITY, PRICE, Fraction(1, 100)),
    "rows_per_unit": lambda c: c.rows_per_unit((1, 2, 5), PRICE),
}


def methods(kind: type) -> set[str]:
    return {n for n, m in inspect.getmembers(kind, inspect.isfunction) if not n.startswith("_")}


PROTOCOL = sorted(methods(Door))
VERBS = sorted((methods(Curator) | methods(UnboundedCurator)) - FREE - TWINS)


def signature(method: object, *, hints: bool) -> list[object]:
    """Parameters in order, with their defaults; with their types and that of the result if asked for."""
    parameters = inspect.signature(method).parameters.values()
    shape: list[object] = [(p.name, p.kind, p.default) for p in parameters]
    return [*shape, get_type_hints(method)] if hints else shape


def opened(folder: Path, verb: str, terms: Terms) -> tuple[Journal, Curator | UnboundedCurator]:
    """A journal on disk, and the curator of the verb."""
    who = [f"person {i // 2}" for i in range(36)]
    batch = {name: pa.array(cells) for name, cells in {**CELLS, "who": who}.items()}
    columns = [AGE, CITY, WELL, ILL, OLD, YEARS]
    rows = load_rows([batch], columns, terms.neighbours, b"k" * 32, summed=frozenset(("years",)))
    journal = Journal.create(folder / "journal.jsonl", {"id": "x"})
    unbounded = UnboundedCurator(rows, terms, journal, b"k" * 32)
    return journal, unbounded if verb in methods(UnboundedCurator) else unbounded.bounded(2)


def charged_first(monkeypatch, folder: Path, verb: str, terms: Terms) -> bool:
    """Whether the verb draws, and every draw is of a question that stands charged on disk."""
    journal, curator = opened(folder, verb, terms)
    with monkeypatch.context() as patch:
        seen = watched_draws(patch, lambda: folder / "journal.jsonl")
        EXAMPLES[verb](curator)
    journal.close()
    return bool(seen) and all(drawn <= charged for drawn, charged in seen)


def terms_of(kind: str) -> Terms:
    return Terms(PEOPLE, ZCDP if kind == "gaussian" else PURE, Fraction(4), kind, Fraction(1, 10))


@pytest.mark.parametrize("verb", PROTOCOL)
def test_the_curator_has_one_implementation_of_each_verb_with_the_signature_of_the_protocol(verb):
    places = [kind for kind in Curator.__mro__ if verb in vars(kind)]
    assert len(places) == 1, f"{verb} is declared in {places}"
    assert signature(getattr(Curator, verb), hints=True) == signature(getattr(Door, verb), hints=True)


@pytest.mark.parametrize("verb", PROTOCOL)
def test_the_fake_curator_of_the_tests_has_each_verb_with_the_signature_of_the_protocol(verb):
    assert signature(getattr(FakeDoor, verb), hints=False) == signature(getattr(Door, verb), hints=False)


def test_each_verb_is_asked_here_and_no_verb_but_of_the_pipeline_is_missing_in_the_protocol():
    assert set(EXAMPLES) == set(VERBS)
    assert set(VERBS) - set(PROTOCOL) == {"count", "rows_per_unit", "examine", "classified"}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_listed_in_the_docs(verb):
    assert re.search(rf"^\| `{verb}` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_states_sensitivity_distribution_and_cost(verb):
    kind = UnboundedCurator if verb in methods(UnboundedCurator) else Curator
    doc = inspect.getdoc(getattr(kind, verb)) or ""
    assert [line for line in ("Sensitivity:", "Distribution:", "Cost:") if f"\n{line}" not in doc] == []


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_charged_before_it_is_drawn(monkeypatch, tmp_path, verb, kind):
    assert charged_first(monkeypatch, tmp_path, verb, terms_of(kind))


def test_marginals_that_are_asked_together_are_all_charged_before_one_is_drawn(monkeypatch, tmp_path):
    journal, curator = opened(tmp_path, "marginals", terms_of("gaussian"))
    seen = watched_draws(monkeypatch, lambda: tmp_path / "journal.jsonl")
    EXAMPLES["marginals"](curator)
    journal.close()
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_is_answered_beyond_the_budget(tmp_path, verb):
    terms = terms_of("laplace")
    journal, curator = opened(tmp_path, verb, terms)
    # Without a budget, marginals are no answers; all other questions are refused.
    refused = nullcontext() if verb in {"count", "marginals", "singles"} else pytest.raises(BudgetRefused)
    with refused:
        for _ in range(int(terms.budget / PRICE) + 1):
            EXAMPLES[verb](curator)
    spent = sum(terms.measure.cost(entry.event) for entry in journal.entries)
    # Values that are found end with their delta.
    assert verb == "values_of" or terms.budget - PRICE < spent <= terms.budget
    journal.close()


# Planted faults.


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_skips_the_journal_is_caught(monkeypatch, tmp_path, verb):
    monkeypatch.setattr(PrivacyFilter, "_ask", lambda self, question, event, exact, draw: draw(exact()))
    monkeypatch.setattr(PrivacyFilter, "_charge", lambda self, asked: None)
    assert not charged_first(monkeypatch, tmp_path, verb, terms_of("gaussian"))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_draws_before_it_is_charged_is_caught(monkeypatch, tmp_path, verb):
    sound = PrivacyFilter._ask

    def hasty(self, question, event, exact, draw):
        drawn = draw(exact())
        return sound(self, question, event, exact, lambda _: drawn)

    monkeypatch.setattr(PrivacyFilter, "_ask", hasty)
    monkeypatch.setattr(PrivacyFilter, "_charge", lambda self, asked: None)
    assert not charged_first(monkeypatch, tmp_path, verb, terms_of("laplace"))


def test_a_new_verb_beside_the_journal_is_caught(monkeypatch, tmp_path):
    def maximum(self):
        return samplers.add_gaussian(np.array([self._table.rows]), 1.0)

    monkeypatch.setattr(Curator, "maximum", maximum, raising=False)
    assert "maximum" in methods(Curator) and "maximum" not in EXAMPLES
    monkeypatch.setitem(EXAMPLES, "maximum", lambda c: c.maximum())
    assert not charged_first(monkeypatch, tmp_path, "maximum", terms_of("gaussian"))


def test_a_signature_that_differs_in_a_default_or_a_type_is_seen():
    def choose(self, candidates, estimates, price, penalties=(), weights=(1,)): ...

    assert signature(choose, hints=False) != signature(Door.choose, hints=False)
    assert signature(choose, hints=True) != signature(Door.choose, hints=True)
