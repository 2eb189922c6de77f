"""The door: what is asked never costs more than the budget, whatever is lost on the way."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.accounting.events import cost
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator import Curator, Entry, Journal, Terms, noise
from dpsynth.curator.journal import LOST
from dpsynth.curator.table import PrivateTable
from dpsynth.domain.domain import Domain
from dpsynth.errors import BudgetRefused, DpsynthError

DOMAIN = Domain({"a": 3, "b": 2})
TABLE = PrivateTable(
    DOMAIN, {"a": np.array([0, 1, 2, 2, 2], np.uint8), "b": np.array([0, 1, 0, 1, 1], np.uint8)}, 5
)
PAIRS = [("a", "b"), ("b", "a"), ("a",), ("b",), ()]
NEAR = [
    Neighbours("add_remove"),
    Neighbours("replace_one"),
    Neighbours("add_remove", "id", 3),
    Neighbours("replace_one", "id", 3),
]


class Losing:
    """A journal in memory that loses answers as it is told, and none once it is told nothing."""

    def __init__(self, losses=()):
        self.entries = []
        self._losses = list(losses)

    def asked(self):
        return iter(self.entries)

    def answer(self, question, event, draw):
        entry = Entry(question, event)
        self.entries.append(entry)
        entry.outcome = LOST if self._losses and self._losses.pop(0) else draw()
        return entry.outcome

    def spent(self, measure):
        return sum((cost(e.event, measure) for e in self.entries), Fraction(0))


class Flat:
    """Estimates that are zero everywhere."""

    def marginal(self, clique):
        return np.zeros(DOMAIN.shape(clique))

    def fingerprint(self):
        return "flat"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No noise, so that answers are exact: what these tests look at is their price."""
    monkeypatch.setattr(noise, "add_gaussian", lambda values, scale: values.copy())
    monkeypatch.setattr(noise, "add_laplace", lambda values, scale: values.copy())
    monkeypatch.setattr(noise, "choose_index", lambda scores, scale: int(np.argmax(scores)))


def opened(journal, budget, near=NEAR[0], kind="gaussian"):
    measure = "zcdp" if kind != "pure" else "pure"
    noise_kind = "gaussian" if kind == "gaussian" else "laplace"
    return Curator(TABLE, Terms(near, measure, Fraction(budget), noise_kind), journal), measure


KINDS = st.sampled_from(["gaussian", "laplace", "pure"])
PRICES = st.fractions(Fraction(1, 10**6), 10)
STEPS = st.lists(
    st.tuples(st.sampled_from(["count", "marginals", "choose"]), st.integers(0, 5), PRICES), max_size=6
)


@given(KINDS, st.sampled_from(NEAR), PRICES, STEPS, st.lists(st.booleans(), max_size=40))
@settings(max_examples=200, deadline=None)
def test_the_budget_is_never_exceeded_whatever_is_asked_and_whatever_is_lost(
    kind, near, budget, steps, losses
):
    journal = Losing(losses)
    curator, measure = opened(journal, budget, near, kind)
    for ask, number, price in steps:
        try:
            if ask == "count":
                curator.count(price)
            elif ask == "marginals":
                curator.marginals(PAIRS[:number], price)
            else:
                curator.choose(PAIRS, Flat(), price)
        except BudgetRefused:
            assert price > curator.remaining or journal.entries
        assert journal.spent(measure) <= budget
        assert curator.remaining == budget - journal.spent(measure)


@given(KINDS, st.integers(1, 5), st.integers(1, 12), st.integers(0, 2**20))
@settings(max_examples=150, deadline=None)
def test_answers_lost_one_after_another_are_asked_again_or_given_up_within_the_budget(kind, n, share, seed):
    losses = (np.random.default_rng(seed).random(60) < share / 12).tolist()
    journal = Losing(losses)
    curator, measure = opened(journal, 1, kind=kind)
    answers = curator.marginals(PAIRS[:n], curator.remaining)
    assert len(answers) == n and journal.spent(measure) <= 1
    for clique, answer in zip(PAIRS, answers, strict=False):
        assert answer is None or answer.clique == clique


def test_a_journal_that_loses_every_answer_ends_in_silence_not_in_an_error():
    journal = Losing([True] * 100_000)
    curator, measure = opened(journal, 1)
    assert curator.marginals(PAIRS, Fraction(1)) == [None] * len(PAIRS)
    assert journal.spent(measure) <= 1 and len(journal.entries) < 1000


def test_a_choice_that_is_lost_again_and_again_is_refused_when_nothing_is_left():
    journal = Losing([True] * 100)
    curator, measure = opened(journal, 1)
    with pytest.raises(BudgetRefused):
        curator.choose(PAIRS, Flat(), Fraction(1, 4))
    assert len(journal.entries) == 4 and journal.spent(measure) <= 1


@given(KINDS, st.sampled_from(NEAR), PRICES, st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_an_allowance_is_shared_evenly_and_spent_to_the_last_twelve_digits(kind, near, allowance, n):
    journal = Losing()
    curator, measure = opened(journal, allowance * 3, near, kind)
    curator.marginals(PAIRS[:n], allowance)
    spent = journal.spent(measure)
    assert allowance * (1 - Fraction(1, 10**12)) <= spent <= allowance
    each = [cost(e.event, measure) for e in journal.entries]
    assert max(each) - min(each) <= allowance / 10**12


def test_a_lost_answer_is_paid_from_the_release_before_it_shrinks_the_others():
    journal = Losing([True])
    curator, measure = opened(journal, 10)
    curator.marginals(PAIRS[:2], Fraction(1))
    each = [float(cost(e.event, measure)) for e in journal.entries]
    assert each == pytest.approx([0.5, 0.5, 0.5])


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "pure"])
def test_a_question_is_refused_before_anything_is_charged_when_nothing_is_left(kind):
    journal = Losing()
    curator, _ = opened(journal, Fraction(1, 2), kind=kind)
    with pytest.raises(BudgetRefused, match="before anything was drawn"):
        curator.choose(PAIRS, Flat(), Fraction(3, 5))
    assert journal.entries == [] and curator.remaining == Fraction(1, 2)


def test_marginals_never_ask_for_more_than_what_remains():
    journal = Losing()
    curator, measure = opened(journal, Fraction(1, 2))
    answers = curator.marginals(PAIRS, Fraction(5))
    assert None not in answers and journal.spent(measure) <= Fraction(1, 2)
    spent = Curator(TABLE, Terms(NEAR[0], "zcdp", journal.spent("zcdp"), "gaussian"), journal)
    assert spent.remaining == 0 and spent.marginals(PAIRS[:2], Fraction(1)) == [None, None]


@pytest.mark.parametrize("near", NEAR, ids=lambda n: f"{n.relation} {n.unit}")
def test_the_number_of_rows_is_free_and_exact_only_where_the_relation_fixes_it(near):
    journal = Losing()
    curator, measure = opened(journal, 1, near)
    count = curator.count(Fraction(1, 8))
    assert count.clique == () and count.values.item() == 5
    if near.relation == "replace_one" and near.person is None:
        assert count.noise == "none" and count.scale == 0.0 and journal.entries == []
    else:
        assert count.noise == "gaussian" and count.scale > 0
        assert Fraction(1, 8) * (1 - Fraction(1, 10**12)) <= journal.spent(measure) <= Fraction(1, 8)


@pytest.mark.parametrize("near", NEAR, ids=lambda n: f"{n.relation} {n.unit}")
def test_every_event_states_the_sensitivity_of_the_relation(near):
    journal = Losing()
    gaussian, _ = opened(journal, 10, near)
    gaussian.marginals([("a",)], Fraction(1))
    gaussian.choose(PAIRS, Flat(), Fraction(1))
    events = [e.event for e in journal.entries]
    assert events[0].l2_squared == near.l2_squared and events[1].sensitivity == near.l1
    apart = Losing()
    laplace, _ = opened(apart, 10, near, "pure")
    laplace.marginals([("a",)], Fraction(1))
    assert apart.entries[0].event.l1 == near.l1


def test_scores_are_l1_distances_between_exact_counts_and_rounded_estimates(monkeypatch):
    seen = []
    monkeypatch.setattr(noise, "choose_index", lambda scores, scale: seen.append(scores.tolist()) or 1)

    class Guess(Flat):
        def marginal(self, clique):
            return np.full(DOMAIN.shape(clique), 1.4)

    curator, _ = opened(Losing(), 10)
    assert curator.choose([("a", "b"), ("b",), ("a",)], Guess(), Fraction(1)) == 1
    # counts are [[1, 0], [0, 1], [1, 2]], [2, 3] and [1, 1, 3], and 1.4 is rounded to 1
    assert seen == [[3, 3, 2]]


def test_answers_come_in_the_order_and_shape_asked():
    curator, _ = opened(Losing(), 10)
    answers = curator.marginals(PAIRS, Fraction(1))
    for clique, answer in zip(PAIRS, answers, strict=True):
        assert answer.clique == clique and answer.values.shape == DOMAIN.shape(clique)
        np.testing.assert_array_equal(answer.values, TABLE.counts(clique))


def test_a_replayed_release_gives_the_same_answers_and_spends_nothing_more(tmp_path):
    def release(journal):
        curator, _ = opened(journal, 2)
        found = curator.marginals([(), ("a",)], Fraction(1, 2))
        chosen = curator.choose(PAIRS, Flat(), Fraction(1, 2))
        found += curator.marginals([PAIRS[chosen]], curator.remaining)
        return [m.values.tolist() for m in found], chosen, curator.remaining

    path = tmp_path / "journal.jsonl"
    first = Journal.create(path, {})
    before = release(first)
    first.close()
    size = path.stat().st_size
    again = Journal.open(path)
    assert release(again) == before and path.stat().st_size == size


def test_a_replay_with_other_estimates_or_candidates_is_refused(tmp_path):
    journal = Journal.create(tmp_path / "journal.jsonl", {})
    opened(journal, 2)[0].choose(PAIRS, Flat(), Fraction(1))
    journal.close()

    class Other(Flat):
        def fingerprint(self):
            return "other"

    for candidates, estimates in ((PAIRS, Other()), (PAIRS[:4], Flat()), (PAIRS[::-1], Flat())):
        again = Journal.open(tmp_path / "journal.jsonl")
        with pytest.raises(DpsynthError, match="another question"):
            opened(again, 2)[0].choose(candidates, estimates, Fraction(1))
        again.close()


def test_the_curator_and_its_table_print_no_cell():
    curator, _ = opened(Losing(), 1)
    assert "array" not in repr(curator) and "array" not in repr(TABLE)
