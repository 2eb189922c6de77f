"""Columns still to be found: their texts are read as any table's are, and asked within budget and delta."""

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.events import SelectionEvent, ThresholdEvent
from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.codec import INVALID
from dpsynth.columns.column import Column, NumberSearch, PrefixSearch, ValueSearch
from dpsynth.columns.domain import Compression
from dpsynth.columns.number_texts import NumberFormat
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.text import TextCodec
from dpsynth.curator import Curator, Entry, Journal, Lost, Terms, samplers, table
from dpsynth.curator import domain_questions as seeking
from dpsynth.curator.journal import LOST
from dpsynth.errors import BudgetRefused
from dpsynth.testing import load_table
from tests.examples import examples

KEY = b"k" * 32
ROWS, PEOPLE = Neighbours("add_remove"), Neighbours("add_remove", "who", 2)
DOLLARS = NumberFormat(thousands=",", prefix="$")
SEARCH = NumberSearch(None, None, "tree", 3, 1, False, DOLLARS)
PAY = Column("pay", NumericCodec((0.0, 1.0), 1, False, DOLLARS), markers=("none",), search=SEARCH)
CITY = Column(
    "city",
    CategoryCodec(("A",), "else"),
    markers=("NA",),
    distinct=("refused",),
    search=ValueSearch((), 9, "else"),
)
ZIP = Column("zip", TextCodec(r"\d{3}", ("1",)), False, search=PrefixSearch(r"\d{3}", (1, 2), 9))
WELL = Column("well", BooleanCodec())
FOUND = [
    Column("zip", TextCodec(r"\d{3}", ("1", "20", "21")), False, fallback=1),
    WELL,
    Column("pay", NumericCodec((-5.0, 0.0, 2.5, 900.0), 1, False, DOLLARS), markers=("none",)),
    Column("city", CategoryCodec(("A", "B", "3"), "else"), markers=("NA",), distinct=("refused",)),
]
CELLS = {
    "pay": ["$1,234.5", "7", " -3.5", "", "none", "$0", "1e999", "99", None, "x" * 500, "0"],
    "city": ["A", " B ", "B", "", "NA", "refused", "3", "3.0", "Zürich", None, "\U0001f4a5"],
    "zip": ["123", "205", "219", "230", "12", "", None, "1234", " 111 ", "x"],
    "well": ["yes", "no", "?", "", None],
    "who": ["ann", "Ann", "bob", "", None, "7", "007"],
}


class Notes:
    """A journal in memory that loses its first answers."""

    def __init__(self, losses=0):
        self.entries, self._losses = [], losses

    at_end = True

    def asked(self):
        return iter(self.entries)

    def charge(self, asked):
        """A question is charged as it is answered."""

    def answer(self, question, event, draw):
        entry = Entry(question, event)
        self.entries.append(entry)
        self._losses -= 1
        entry.outcome = LOST if self._losses >= 0 else draw()
        return entry.outcome


@pytest.fixture
def quiet(monkeypatch):
    """No noise, the best choice, and every value that two units hold."""
    monkeypatch.setattr(samplers, "add_gaussian", lambda values, scale: values.copy())
    monkeypatch.setattr(samplers, "add_laplace", lambda values, scale: values.copy())
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: int(np.argmax(scores)))
    monkeypatch.setattr(samplers, "select", lambda units, event: units >= 2)


def batches(seed, rows=120, size=50):
    rng = random.Random(seed)
    whole = {name: [rng.choice(cells) for _ in range(rows)] for name, cells in CELLS.items()}
    return [
        {name: pa.array(cells[a : a + size], pa.string()) for name, cells in whole.items()}
        for a in range(0, rows, size)
    ]


def opened(given, near=ROWS, kind="laplace", losses=0, budget=Fraction(100), delta=Fraction(1, 10)):
    columns = [c for c in (PAY, WELL, CITY, ZIP) if not given or c.name in given[0]]
    notes = Notes(losses)
    measure = ZCDP if kind == "gaussian" else PURE
    return Curator(
        load_table(given, columns, near, KEY), Terms(near, measure, budget, kind, delta), notes
    ), notes


def one(name, cells, **more):
    return opened([{name: pa.array(cells, pa.string())}], **more)


@pytest.mark.parametrize("near", [ROWS, PEOPLE, Neighbours("replace_one", "who", 1)])
@pytest.mark.parametrize("block", [1, 3, 1 << 12])
@pytest.mark.parametrize("rows", [0, 1, 120])
def test_texts_coded_later_are_coded_as_on_loading(monkeypatch, near, block, rows):
    monkeypatch.setattr(table, "_BLOCK", block)
    given = batches(rows, rows)
    kept = load_table(given, (PAY, WELL, CITY, ZIP), near, KEY)
    later, now = kept.coded(FOUND), load_table(given, FOUND, near, KEY)
    assert later.rows == now.rows and later.domain == now.domain and not later.texts
    assert list(later.codes) == list(now.codes) == [c.name for c in FOUND]
    for name, codes in now.codes.items():
        assert later.codes[name].dtype == codes.dtype or not rows
        np.testing.assert_array_equal(later.codes[name], codes)


def test_nothing_of_a_table_of_texts_is_shown_when_it_is_printed():
    kept = load_table(batches(1), (PAY, WELL, CITY, ZIP), PEOPLE, KEY)
    assert all("array" not in repr(x) and "$" not in repr(x) for x in (kept, kept.texts["pay"]))


@pytest.mark.parametrize("near", [ROWS, PEOPLE])
def test_counts_under_places_are_those_of_a_table_coded_that_way(quiet, near):
    door, notes = opened(batches(3), near)
    coded = door.coded(FOUND)
    for column in (FOUND[0], FOUND[2], FOUND[3]):
        searched = {"pay": PAY, "city": CITY, "zip": ZIP}[column.name]
        counts, stddev = door.counts_under(searched, column.codec, Fraction(1))
        (marginal,) = coded.marginals([(column.name,)], Fraction(1))
        usable = marginal.values[: len(column.codec.labels)]
        assert notes.entries[-2].event == notes.entries[-1].event and stddev > 0
        # A column without a place for missing cells puts the unusable ones elsewhere.
        assert counts.tolist() == usable.tolist() or (not column.missing and counts.sum() < usable.sum())


def test_counts_under_other_places_are_another_question():
    door, notes = one("zip", ["123", "205"])
    for codec in (TextCodec(r"\d{3}", ("1",)), TextCodec(r"\d{3}", ("2",)), TextCodec(r"\d{3}", ("1",), "o")):
        door.counts_under(ZIP, codec, Fraction(1))
    questions = [entry.question for entry in notes.entries]
    assert len({str(q) for q in questions}) == 3 and all(q["column"] == "zip" for q in questions)


def test_each_distinct_number_is_read_once(monkeypatch, quiet):
    seen = []
    sound = NumberFormat.read
    monkeypatch.setattr(
        NumberFormat, "read", lambda self, cells: seen.append(len(cells)) or sound(self, cells)
    )
    door, _ = one("pay", ["1", "2", "3", "1", " 1", "$2"] * 50)
    for edges in ((0.0, 2.0, 9.0), (1.0, 5.0)):
        door.counts_under(PAY, NumericCodec(edges, 1, False, DOLLARS), Fraction(1))
    door.medians(PAY, np.array([0.0, 1.0, 2.0]), [(0, 3)], Fraction(1))
    assert sum(seen) == 4


# Medians.


@examples(150)
@given(
    values=st.lists(st.integers(-3, 12), max_size=30),
    ends=st.lists(st.integers(0, 9), min_size=2, max_size=5, unique=True),
    wide=st.booleans(),
    data=st.data(),
)
def test_scores_are_the_differences_of_the_rows_of_a_run_below_a_cut_and_not(values, ends, wide, data):
    cuts = np.arange(10.0)
    if wide:
        cuts[0], cuts[-1] = -np.inf, np.inf
    ends = sorted(ends)
    runs = data.draw(st.permutations([(a, b + 1) for a, b in pairwise(ends)]))
    expected, picked = [], []

    def choose(scores, scale):
        expected.append(scores.tolist())
        picked.append(data.draw(st.integers(0, len(scores) - 1)))
        return picked[-1]

    door, notes = one("pay", [*map(str, values), "", "x"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers, "choose_index", choose)
        found = door.medians(PAY, cuts, runs, Fraction(1))
    for (start, stop), scores, pick, at in zip(runs, expected, picked, found.tolist(), strict=True):
        inside = [v for v in values if cuts[start] <= v < cuts[stop - 1]]
        assert scores == [
            -abs(sum(v < c for v in inside) - sum(v >= c for v in inside)) for c in cuts[start:stop]
        ]
        assert at == start + pick
    assert len(notes.entries) == 1 and notes.entries[0].event.sensitivity == 1


def test_no_runs_cost_nothing():
    door, notes = one("pay", ["1"])
    assert door.medians(PAY, np.arange(3.0), [], Fraction(1)).tolist() == [] and not notes.entries


@pytest.mark.parametrize(
    ("cuts", "runs", "words"),
    [
        ([0, 1, 1], [(0, 3)], "rising"),
        ([0, 2, 1], [(0, 3)], "rising"),
        ([0, np.nan], [(0, 2)], "rising"),
        ([0, 1, 2], [(0, 4)], "range of the cuts"),
        ([0, 1, 2], [(-1, 2)], "range of the cuts"),
        ([0, 1, 2], [(1, 1)], "range of the cuts"),
        ([0, 1, 2, 3], [(0, 3), (1, 4)], "share a value"),
        ([0, 1, 2, 3], [(1, 4), (0, 3)], "share a value"),
    ],
)
def test_cuts_that_do_not_rise_and_runs_that_overlap_are_refused(cuts, runs, words):
    door, notes = one("pay", ["1"])
    with pytest.raises(ValueError, match=words):
        door.medians(PAY, np.array(cuts, dtype=float), runs, Fraction(1))
    assert not notes.entries


# Values.


def test_named_are_values_without_blanks_that_are_neither_known_nor_missing_nor_too_long_nor_odd(quiet):
    cells = [
        "b",
        " b",
        "a\t",
        "a",
        "",
        None,
        "NA",
        "refused",
        "known",
        "y" * 200,
        "x" * 201,
        "a\x00",
        "a\u2028b",
        "é",
    ]
    door, _ = one("city", cells * 2 + ["once"])
    assert door.values_of(CITY, Fraction(1), Fraction(1, 20), ("known",)) == ("a", "b", "y" * 200, "é")


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_values_nobody_holds_enough_of_are_no_values(kind):
    door, _ = one("city", ["", "NA"] * 50, kind=kind)
    assert door.values_of(CITY, Fraction(1), Fraction(1, 20)) == ()
    door, _ = one("city", ["B"] * 5000 + ["C"], kind=kind)
    assert door.values_of(CITY, Fraction(1), Fraction(1, 10**9)) == ("B",)


def test_a_person_counts_once_for_a_value_and_no_more_than_the_rows_kept(monkeypatch):
    held = {}
    monkeypatch.setattr(
        samplers, "select", lambda units, event: held.update(units=units.tolist()) or units > 0
    )
    who = ["ann"] * 2 + ["bob"] * 2 + ["eve"] * 40 + ["joe"]
    cells = ["A", "A", "A", "B", *(f"v{i}" for i in range(40)), "A"]
    near = Neighbours("add_remove", "who", 3)
    door, notes = opened([{"who": pa.array(who), "city": pa.array(cells)}], near)
    found = door.values_of(CITY, Fraction(1), Fraction(1, 20))
    assert len(found) == 2 + 3 and sorted(held["units"]) == [1, 1, 1, 1, 3]
    assert notes.entries[0].event.partitions == 3


def test_the_noise_of_the_terms_decides_how_values_are_found():
    for kind, event in (("laplace", SelectionEvent), ("gaussian", ThresholdEvent)):
        door, notes = one("city", ["A"], kind=kind)
        door.values_of(CITY, Fraction(1), Fraction(1, 20))
        assert isinstance(notes.entries[0].event, event)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("losses", [0, 1, 2])
def test_values_lost_are_asked_for_again_within_price_and_delta(kind, losses):
    delta = Fraction(1, 1000)
    door, notes = one("city", ["A"] * 3000, kind=kind, losses=losses, delta=delta)
    assert door.values_of(CITY, Fraction(1), delta) == ("A",)
    assert len(notes.entries) == losses + 1
    assert sum(e.event.delta for e in notes.entries) <= delta
    assert all(door.measure.cost(e.event) <= 1 for e in notes.entries)


def test_interruptions_that_use_up_the_delta_end_the_asking():
    door, notes = one("city", ["A"], losses=99)
    with pytest.raises(BudgetRefused, match="delta for finding values"):
        door.values_of(CITY, Fraction(1), Fraction(1, 10))
    assert len(notes.entries) < 6 and sum(e.event.delta for e in notes.entries) <= Fraction(1, 10)


def test_counts_and_medians_lost_are_asked_for_again_until_the_budget_is_used_up(quiet):
    door, notes = one("pay", ["1", "2"], losses=2, budget=Fraction(2))
    assert door.counts_under(PAY, NumericCodec((0.0, 2.0, 9.0), 1, False), Fraction(3, 4))[0].tolist() == [
        1,
        1,
    ]
    assert len(notes.entries) == 3 and door.remaining < Fraction(1, 1000)
    with pytest.raises(BudgetRefused):
        door.medians(PAY, np.arange(3.0), [(0, 3)], Fraction(1))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_values_interrupted_while_drawn_are_found_on_resuming_and_ever_after_the_same(
    monkeypatch, tmp_path, kind
):
    given = [{"city": pa.array([f"v{i % 40}" for i in range(400)])}]
    path, delta = tmp_path / "journal.jsonl", Fraction(1, 100)

    def resumed(journal):
        measure = ZCDP if kind == "gaussian" else PURE
        door = Curator(
            load_table(given, [CITY], ROWS, KEY), Terms(ROWS, measure, Fraction(1), kind, delta), journal
        )
        try:
            return door.values_of(CITY, Fraction(1, 3), delta)
        finally:
            journal.close()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(seeking, "_selected", interrupted)
        resumed(Journal.create(path, {"id": "x"}))
    found = resumed(Journal.open(path))
    monkeypatch.setattr(seeking, "_selected", interrupted)
    assert resumed(Journal.open(path)) == resumed(Journal.open(path)) == found
    first, second = Journal.open(path).entries
    assert isinstance(first.outcome, Lost) and second.outcome == found
    assert 0 < second.event.delta <= first.event.delta
    assert first.event.delta + second.event.delta <= delta


# What is refused.


def test_columns_are_asked_about_only_while_their_texts_are_kept():
    door, notes = opened(batches(5))
    coded = door.coded(FOUND)
    for asked, column in ((door, WELL), (coded, CITY)):
        with pytest.raises(ValueError, match="are not kept"):
            asked.values_of(column, Fraction(1), Fraction(1, 20))
        with pytest.raises(ValueError, match="are not kept"):
            asked.counts_under(column, NumericCodec((0.0, 2.0, 9.0), 1, False), Fraction(1))
        with pytest.raises(ValueError, match="are not kept"):
            asked.medians(column, np.arange(3.0), [(0, 3)], Fraction(1))
    with pytest.raises(ValueError, match="no numbers"):
        door.medians(CITY, np.arange(3.0), [(0, 3)], Fraction(1))
    with pytest.raises(ValueError, match="still to be found"):
        door.coded((PAY, WELL))
    grouped = coded.grouped(Compression({"city": np.zeros(FOUND[3].size, dtype=int)}))
    with pytest.raises(ValueError, match="before they are grouped"):
        grouped.coded(FOUND)
    assert not notes.entries


def test_a_coded_door_goes_on_with_the_budget_and_leaves_the_first_as_it_was(quiet):
    door, notes = opened(batches(6), budget=Fraction(2))
    door.counts_under(PAY, NumericCodec((0.0, 2.0, 9.0), 1, False), Fraction(1))
    coded = door.coded(FOUND)
    assert coded.remaining == door.remaining == 2 - PURE.cost(notes.entries[0].event)
    coded.marginals([("city", "well")], Fraction(1, 2))
    assert door.remaining == coded.remaining and len(notes.entries) == 2
    assert INVALID not in coded._table.codes["pay"]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_values_are_refused_before_they_are_drawn_where_the_delta_of_the_release_is_spent(kind):
    delta = Fraction(1, 1000)
    door, notes = one("city", ["A"] * 3000, kind=kind, delta=delta)
    with pytest.raises(BudgetRefused, match="spent its budget"):
        for _ in range(20):
            door.values_of(CITY, Fraction(1), delta)
    assert notes.entries and sum(e.event.delta for e in notes.entries) <= delta
