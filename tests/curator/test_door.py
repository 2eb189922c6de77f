"""The door: what is asked never costs more than the budget, whatever is lost on the way."""

from dataclasses import replace
from fractions import Fraction
from math import pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.events import ExponentialEvent, SelectionEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Compression, Domain
from dpsynth.curator import Curator, Entry, Journal, Terms, samplers
from dpsynth.curator.distances import FARTHEST
from dpsynth.curator.journal import LOST
from dpsynth.curator.table import PrivateTable
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError
from tests.examples import examples

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

    at_end = True

    def charge(self, asked):
        """A question is charged as it is answered."""

    def asked(self):
        return iter(self.entries)

    def answer(self, question, event, draw):
        entry = Entry(question, event)
        self.entries.append(entry)
        entry.outcome = LOST if self._losses and self._losses.pop(0) else draw()
        return entry.outcome

    def spent(self, measure):
        return sum((measure.cost(e.event) for e in self.entries), Fraction(0))


FEWER = Compression({"a": np.array([0, 1, 1])})


class Flat:
    """Estimates that are zero everywhere."""

    def __init__(self, compression=None):
        self.domain = compression.coarse(DOMAIN) if compression else DOMAIN

    def marginal(self, clique):
        return np.zeros(self.domain.shape(clique))

    def fingerprint(self):
        return "flat"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No noise, so that answers are exact: what these tests look at is their price."""
    monkeypatch.setattr(samplers, "add_gaussian", lambda values, scale: values.copy())
    monkeypatch.setattr(samplers, "add_laplace", lambda values, scale: values.copy())
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: int(np.argmax(scores)))


def opened(journal, budget, near=NEAR[0], kind="gaussian"):
    measure = kind if kind in {PURE, GDP} else ZCDP
    noise_kind = "gaussian" if kind in {"gaussian", GDP} else "laplace"
    return Curator(TABLE, Terms(near, measure, Fraction(budget), noise_kind), journal), measure


KINDS = st.sampled_from(["gaussian", "laplace", PURE, GDP])
PRICES = st.fractions(Fraction(1, 10**6), 10)
STEPS = st.lists(
    st.tuples(st.sampled_from(["count", "marginals", "choose", "errors"]), st.integers(0, 5), PRICES),
    max_size=6,
)


@given(KINDS, st.sampled_from(NEAR), PRICES, STEPS, st.lists(st.booleans(), max_size=40))
@examples(200)
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
            elif ask == "errors":
                curator.grouped(FEWER).errors(PAIRS[:number], Flat(FEWER), price)
            else:
                curator.choose(PAIRS, Flat(), price)
        except BudgetRefused:
            assert price > curator.remaining or journal.entries
        assert journal.spent(measure) <= budget
        assert curator.remaining == budget - journal.spent(measure)


@given(KINDS, st.integers(1, 5), st.integers(1, 12), st.integers(0, 2**20))
@examples(150)
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
@examples(100)
def test_an_allowance_is_shared_evenly_and_spent_to_the_last_twelve_digits(kind, near, allowance, n):
    journal = Losing()
    curator, measure = opened(journal, allowance * 3, near, kind)
    curator.marginals(PAIRS[:n], allowance)
    spent = journal.spent(measure)
    assert allowance * (1 - Fraction(1, 10**12)) <= spent <= allowance
    each = [measure.cost(e.event) for e in journal.entries]
    assert max(each) - min(each) <= allowance / 10**12


def test_a_lost_answer_is_paid_from_the_release_before_it_shrinks_the_others():
    journal = Losing([True])
    curator, measure = opened(journal, 10)
    curator.marginals(PAIRS[:2], Fraction(1))
    each = [float(measure.cost(e.event)) for e in journal.entries]
    assert each == pytest.approx([0.5, 0.5, 0.5])


def test_answers_lost_together_leave_half_of_the_rest_to_later_questions():
    journal = Losing([True, True])
    curator, measure = opened(journal, Fraction(3, 2))
    curator.marginals(PAIRS[:2], Fraction(1))
    each = [float(measure.cost(e.event)) for e in journal.entries]
    assert each == pytest.approx([0.5, 0.5, 0.125, 0.125])


def test_what_is_kept_for_later_questions_is_not_spent_and_all_else_may_be():
    journal = Losing()
    whole, _ = opened(journal, 1, kind=PURE)
    assert whole.remaining == 1
    sparing = whole.keeping(Fraction(1, 4))
    assert sparing.remaining == Fraction(3, 4)
    with pytest.raises(BudgetRefused):
        sparing.errors(PAIRS, Flat(), Fraction(4, 5))
    sparing.marginals(PAIRS, Fraction(3, 4))
    assert 0 <= sparing.remaining < Fraction(1, 10**9)
    last = sparing.keeping(Fraction(0))
    assert Fraction(1, 4) <= last.remaining < Fraction(1, 4) + Fraction(1, 10**9)


def test_a_delta_may_be_spent_to_its_end_and_where_there_is_none_nothing_is_named():
    event = SelectionEvent(0.1, 1e-9, 1)
    terms = Terms(NEAR[0], PURE, Fraction(1), "laplace")

    def asked(terms):
        journal = Losing()
        curator = Curator(TABLE, terms, journal)
        curator._ask({"ask": "values"}, event, lambda: (), lambda held: held)
        return len(journal.entries)

    with pytest.raises(BudgetRefused):
        asked(terms)
    with pytest.raises(BudgetRefused):
        asked(replace(terms, delta=event.delta * Fraction(999, 1000)))
    assert asked(replace(terms, delta=event.delta)) == 1


def test_columns_are_coded_before_they_are_grouped_and_groups_not_again():
    grouped = opened(Losing(), 1)[0].grouped(FEWER)
    with pytest.raises(ValueError, match="before they are grouped"):
        grouped.coded(())
    with pytest.raises(ValueError, match="a curator of groups can't be grouped again"):
        grouped.grouped(FEWER)


@pytest.mark.parametrize("kind", ["gaussian", "laplace", PURE])
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
    spent = Curator(TABLE, Terms(NEAR[0], ZCDP, journal.spent(ZCDP), "gaussian"), journal)
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
    gaussian.choose(PAIRS, Flat(), Fraction(1), weights=[1, 7, 0, 7, 2])
    gaussian.errors(PAIRS, Flat(), Fraction(1))
    assert journal.entries[2].event.sensitivity == 7 * near.l1
    assert journal.entries[3].event.l2_squared == len(PAIRS) * near.l1**2
    apart = Losing()
    laplace, _ = opened(apart, 10, near, PURE)
    laplace.marginals([("a",)], Fraction(1))
    laplace.errors(PAIRS, Flat(), Fraction(1))
    assert [e.event.l1 for e in apart.entries] == [near.l1, len(PAIRS) * near.l1]


def test_questions_beyond_the_budget_together_are_refused_before_any_is_charged(tmp_path):
    journal = Journal.create(tmp_path / "journal.jsonl", {})
    curator = Curator(TABLE, Terms(NEAR[0], ZCDP, Fraction(1), "gaussian"), journal)
    event = curator._calibration.counts(Fraction(2, 5)).event
    with pytest.raises(BudgetRefused):
        curator._charge([({"ask": "marginal", "columns": [c]}, event) for c in "aab"])
    assert not journal.entries
    curator._charge([({"ask": "marginal", "columns": [c]}, event) for c in "ab"])
    assert len(journal.entries) == 2 and curator.remaining == 1


def test_scores_are_l1_distances_between_exact_counts_and_rounded_estimates(monkeypatch):
    seen = []
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: seen.append(scores.tolist()) or 1)

    class Guess(Flat):
        def marginal(self, clique):
            return np.full(DOMAIN.shape(clique), 1.4)

    curator, _ = opened(Losing(), 10)
    assert curator.choose([("a", "b"), ("b",), ("a",)], Guess(), Fraction(1)) == 1
    # counts are [[1, 0], [0, 1], [1, 2]], [2, 3] and [1, 1, 3], and 1.4 is rounded to 1
    assert seen == [[3, 3, 2]]
    curator.choose([("a", "b"), ("b",), ("a",)], Guess(), Fraction(1), [1, 5, -2], [2, 10, 0])
    assert seen[1:] == [[4, -20, 0]]
    distances, _ = curator.errors([("a",), ("b", "a"), ("a",)], Guess(), Fraction(1))
    assert distances.tolist() == [2, 3, 2]


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


class Huge(Flat):
    """Estimates that no int64 holds."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def marginal(self, clique):
        return np.full(DOMAIN.shape(clique), self.value)


@pytest.mark.parametrize("value", [1e300, -1e300, np.inf, -np.inf, np.nan])
def test_estimates_beyond_all_numbers_give_scores_that_do_not_wrap(monkeypatch, value):
    seen = []
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: seen.append(scores.tolist()) or 0)
    curator, _ = opened(Losing(), 10)
    curator.choose(PAIRS[:1], Huge(value), Fraction(1), [-FARTHEST], [1 << 20])
    assert 0 < curator.errors(PAIRS[:1], Huge(value), Fraction(1))[0][0] <= FARTHEST
    assert 0 < seen[0][0] <= 1 << 61


@pytest.mark.parametrize("shape", [(), (1,), (4, 3), (3, 1, 1)])
def test_an_estimate_of_another_shape_is_refused_rather_than_stretched(shape):
    class Odd(Flat):
        def marginal(self, clique):
            return np.zeros(shape)

    with pytest.raises(ValueError, match="one number for each cell"):
        opened(Losing(), 10)[0].errors([("a",)], Odd(), Fraction(1))


@pytest.mark.parametrize(
    ("candidates", "numbers"),
    [
        ([], {}),
        (PAIRS, {"penalties": [1]}),
        (PAIRS, {"weights": [1] * 6}),
        (PAIRS, {"weights": [1, 1, -1, 1, 1]}),
        (PAIRS, {"weights": [1, 1, 1, 1, (1 << 20) + 1]}),
        (PAIRS, {"penalties": [0, 0, 0, 0, -FARTHEST - 1]}),
    ],
)
def test_a_choice_with_numbers_that_would_break_its_sensitivity_is_refused_before_it_is_charged(
    candidates, numbers
):
    journal = Losing()
    with pytest.raises(ValueError, match=r"candidate"):
        opened(journal, 10)[0].choose(candidates, Flat(), Fraction(1), **numbers)
    assert journal.entries == []


def test_weights_of_zero_alone_leave_scores_equal_and_the_choice_charged(monkeypatch):
    seen, journal = [], Losing()
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: seen.append(scores.tolist()) or 2)
    curator, measure = opened(journal, 10, NEAR[3])
    assert curator.choose(PAIRS, Flat(), Fraction(1), weights=[0] * 5) == 2
    assert seen == [[0] * 5] and journal.entries[0].event.sensitivity == NEAR[3].l1
    assert journal.spent(measure) > 0


class Turns:
    """Candidates may come until a number is chosen; remembers what it was told."""

    def __init__(self, until=10, barred=()):
        self.until, self.barred, self.told = until, list(barred), []

    def __call__(self, before):
        self.told.append(list(before))
        may = np.full(len(PAIRS), len(before) < self.until)
        may[self.barred] = False
        return may


@given(KINDS, st.integers(-1, 7), st.integers(0, 7), st.sets(st.integers(0, 4)))
@examples(100)
def test_choices_in_turn_are_admissible_and_different_and_each_costs_its_price(kind, most, until, barred):
    journal = Losing()
    curator, measure = opened(journal, 10, NEAR[1], kind)
    turns = Turns(until, barred)
    chosen = curator.choose_in_turn(PAIRS, Flat(), Fraction(1, 8), most, turns, [0, 1, 2, 3, 4])
    assert len(chosen) == len(set(chosen)) == max(0, min(most, until, 5 - len(barred)))
    assert not barred & set(chosen)
    costs = [measure.cost(e.event) for e in journal.entries]
    assert len(costs) == len(chosen)
    assert all(Fraction(1, 8) * (1 - Fraction(1, 10**12)) <= c <= Fraction(1, 8) for c in costs)
    # Asked once before each choice, with all choices before it, and once more where none is left.
    assert turns.told == [chosen[:i] for i in range(len(chosen) + (most > len(chosen)))]


def test_each_choice_in_turn_is_a_share_of_the_work(monkeypatch):
    told = []
    monkeypatch.setattr("dpsynth.curator.distances.telling", lambda *whole: told.append(whole) or told.append)
    opened(Losing(), 10)[0].choose_in_turn(PAIRS, Flat(), Fraction(1, 8), 3, Turns())
    assert told == [("choosing", 3), 1, 1, 1]


def test_choices_in_turn_have_the_scores_and_the_sensitivity_of_those_that_may_come(monkeypatch):
    seen, journal = [], Losing()
    monkeypatch.setattr(
        samplers, "choose_index", lambda scores, scale: seen.append(scores.tolist()) or int(np.argmax(scores))
    )
    curator, _ = opened(journal, 10, NEAR[1])
    weights = [1, 9, 2, 3, 0]
    chosen = curator.choose_in_turn(
        PAIRS, Flat(), Fraction(1), 3, Turns(barred=[0]), [0, 0, 1, 0, 0], weights
    )
    assert seen == [[45, 8, 15, 0], [8, 15, 0], [8, 0]] and chosen == [1, 3, 2]
    assert [e.event.sensitivity for e in journal.entries] == [18, 6, 4]


def test_a_choice_in_turn_that_is_lost_is_made_again_before_the_next():
    journal = Losing([False, True])
    turns = Turns()
    chosen = opened(journal, 10)[0].choose_in_turn(PAIRS, Flat(), Fraction(1), 3, turns)
    assert len(chosen) == 3 and len(journal.entries) == 4
    assert journal.entries[1].question == journal.entries[2].question
    assert turns.told == [chosen[:i] for i in range(3)]


def test_two_turns_among_other_candidates_are_two_questions():
    journal = Losing()
    curator, _ = opened(journal, 10)
    for barred in ([], [4], [3]):
        curator.choose_in_turn(PAIRS, Flat(), Fraction(1), 1, Turns(barred=barred))
    curator.choose(PAIRS, Flat(), Fraction(1))
    names = [e.question["candidates"]["sha256"] for e in journal.entries]
    assert len(set(names)) == 3 and names[0] == names[3]
    assert [e.question["candidates"]["number"] for e in journal.entries] == [5, 4, 4, 5]


@pytest.mark.parametrize("answer", [True, [True] * 4, [[True] * 5]])
def test_an_answer_that_does_not_speak_of_each_candidate_is_refused(answer):
    journal = Losing()
    with pytest.raises(ValueError, match="each candidate"):
        opened(journal, 10)[0].choose_in_turn(PAIRS, Flat(), Fraction(1), 1, lambda _: np.array(answer))
    assert journal.entries == []


def test_a_door_on_groups_still_counts_the_single_values_of_a_column():
    journal = Losing()
    coarse = opened(journal, 2)[0].grouped(FEWER)
    answers = coarse.singles(["a", "b"], Fraction(1), [Fraction(3), Fraction(1)])
    assert [m.clique for m in answers] == [("a",), ("b",)]
    assert [m.values.tolist() for m in answers] == [[1, 1, 3], [2, 3]]
    assert [float(ZCDP.cost(e.event)) for e in journal.entries] == pytest.approx([0.75, 0.25])
    assert coarse.remaining == 2 - journal.spent(ZCDP) and "grouping" not in journal.entries[0].question
    assert [m.values.tolist() for m in opened(Losing(), 1)[0].singles(["b"], Fraction(1))] == [[2, 3]]


@pytest.mark.parametrize(("kind", "scale"), [(PURE, 16), ("gaussian", 4), (GDP, (8 * pi) ** 0.5)])
def test_a_choice_has_the_scale_that_its_price_buys_under_each_measure(kind, scale):
    journal = Losing()
    curator, measure = opened(journal, 10, NEAR[1], kind)
    curator.choose(PAIRS, Flat(), Fraction(1, 2), (), [1, 1, 1, 2, 1])
    (entry,) = journal.entries
    assert entry.event == ExponentialEvent(entry.event.scale, 4)
    assert Fraction(1, 2) * (1 - Fraction(1, 10**12)) <= journal.spent(measure) <= Fraction(1, 2)
    # Twice the sensitivity over an epsilon of 1/2, of 2, and of the root of 8/pi.
    assert entry.event.scale == pytest.approx(scale, rel=1e-6)


@pytest.mark.parametrize(("measure", "kind"), [(GDP, "laplace"), (PURE, "gaussian")])
def test_noise_that_a_measure_cannot_count_is_refused_before_the_door_opens(measure, kind):
    with pytest.raises(ConfigError, match=rf"privacy\.noise {kind}"):
        Terms(NEAR[0], measure, Fraction(1), kind)


@given(KINDS, st.sampled_from(NEAR), st.fractions(Fraction(1, 1000), 1), st.integers(1, 5))
@examples(60)
def test_noisy_errors_cost_their_price_whatever_the_number_of_candidates(kind, near, price, number):
    journal = Losing()
    curator, measure = opened(journal, 10, near, kind)
    distances, stddev = curator.errors(PAIRS[:number], Flat(), price)
    (entry,) = journal.entries
    assert price * (1 - Fraction(1, 10**12)) <= journal.spent(measure) <= price
    assert distances.tolist() == [5] * number
    if hasattr(entry.event, "sigma"):
        assert stddev == pytest.approx(entry.event.sigma)
    else:
        t = np.exp(-1 / entry.event.scale)
        assert stddev == pytest.approx((2 * t) ** 0.5 / (1 - t))


def test_errors_of_no_candidates_ask_nothing():
    journal = Losing()
    distances, stddev = opened(journal, 10)[0].errors([], Flat(), Fraction(1))
    assert distances.shape == (0,) and stddev == 0.0 and journal.entries == []


@pytest.mark.parametrize("kind", ["gaussian", "laplace", PURE, GDP])
def test_errors_that_are_lost_are_asked_again_from_what_is_left(kind):
    journal = Losing([True, True])
    curator, measure = opened(journal, 1, kind=kind)
    _, stddev = curator.errors(PAIRS, Flat(), Fraction(2, 5))
    costs = [float(measure.cost(e.event)) for e in journal.entries]
    assert costs == pytest.approx([0.4, 0.4, 0.2])
    scale = getattr(journal.entries[-1].event, "sigma", None) or 2**0.5 * journal.entries[-1].event.scale
    assert stddev == pytest.approx(scale, rel=1e-2)
    hopeless = Losing([True] * 1000)
    with pytest.raises(BudgetRefused, match="Interruptions"):
        opened(hopeless, 1, kind=kind)[0].errors(PAIRS, Flat(), Fraction(2, 5))
    assert hopeless.spent(measure) <= 1 and len(hopeless.entries) == 3


@pytest.mark.parametrize("kind", ["gaussian", "laplace", PURE, GDP])
def test_the_error_of_a_cell_is_that_of_the_noise_that_its_price_buys(kind):
    journal = Losing()
    curator, _ = opened(journal, 10, NEAR[3], kind)
    error = curator.cell_error(Fraction(1, 7))
    (answer,) = curator.marginals([("a",)], Fraction(1, 7))
    ratio = (2 / np.pi) ** 0.5 if answer.noise == "gaussian" else 2**-0.5
    assert error == pytest.approx(ratio * answer.stddev, rel=2e-3) and len(journal.entries) == 1


def test_a_door_on_groups_counts_groups_and_pays_from_the_same_budget():
    journal = Losing()
    fine, _ = opened(journal, 1)
    coarse = fine.grouped(FEWER)
    (answer,) = coarse.marginals([("b", "a")], Fraction(1, 4))
    np.testing.assert_array_equal(answer.values, [[1, 1], [0, 3]])
    assert coarse.errors([("b", "a")], Flat(FEWER), Fraction(1, 4))[0].tolist() == [5]
    assert fine.remaining == coarse.remaining == 1 - journal.spent(ZCDP) < Fraction(3, 4)
    np.testing.assert_array_equal(
        fine.marginals([("b", "a")], Fraction(1, 4))[0].values, TABLE.counts(("b", "a"))
    )
    with pytest.raises(BudgetRefused):
        coarse.choose(PAIRS, Flat(FEWER), Fraction(1, 2))
    assert [e.question.get("grouping") for e in journal.entries] == [FEWER.digest] * 2 + [None]


def test_a_door_is_grouped_once():
    with pytest.raises(ValueError, match="grouped again"):
        opened(Losing(), 1)[0].grouped(FEWER).grouped(Compression({}))


def test_a_replay_with_other_groups_is_refused(tmp_path):
    def asked(compression):
        journal = (
            Journal.open(tmp_path / "j") if (tmp_path / "j").exists() else Journal.create(tmp_path / "j", {})
        )
        try:
            door = opened(journal, 2)[0]
            return (
                (door.grouped(compression) if compression else door)
                .marginals([("b",)], Fraction(1))[0]
                .values
            )
        finally:
            journal.close()

    before = asked(FEWER).tolist()
    assert asked(FEWER).tolist() == before
    for other in (Compression({"a": np.array([0, 0, 1])}), Compression({}), None):
        with pytest.raises(DpsynthError, match="another question"):
            asked(other)


def test_asking_again_looks_at_no_row_and_with_the_same_estimates_at_no_cell(monkeypatch):
    rows, cells = [], []
    counts, marginal = PrivateTable.counts_of, Flat.marginal
    monkeypatch.setattr(PrivateTable, "counts_of", lambda self, c: rows.append(c) or counts(self, c))
    monkeypatch.setattr(Flat, "marginal", lambda self, c: cells.append(c) or marginal(self, c))

    class Other(Flat):
        def fingerprint(self):
            return "other"

    curator, _ = opened(Losing(), 10)
    curator.choose(PAIRS, Flat(), Fraction(1))
    assert rows and len(cells) == len(PAIRS)
    rows.clear()
    curator.choose(PAIRS[1:], Flat(), Fraction(1), [1] * 4, [2] * 4)
    curator.errors(PAIRS[::-1], Flat(), Fraction(1))
    assert len(cells) == len(PAIRS)
    curator.errors(PAIRS, Other(), Fraction(1))
    curator.marginals(PAIRS, Fraction(1))
    assert rows == [] and len(cells) == 2 * len(PAIRS)
