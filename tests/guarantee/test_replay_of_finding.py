"""Questions about columns still to be found, replayed on every kind of neighbour: nothing but answers
depends on rows, and no answer moves further than was charged for.
"""

import random
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.events import ExponentialEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column, NumberSearch, PrefixSearch, ValueSearch
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.text import TextCodec
from dpsynth.curator import Journal, Terms, loaded_rows, samplers
from dpsynth.curator import domain_questions as seeking
from dpsynth.curator.door import Curator
from dpsynth.curator.table import Texts
from dpsynth.errors import DpsynthError
from dpsynth.testing import load_table
from dpsynth.wings.proof.audit.replay import Asked, Transcript, faults, gaps, observers
from tests.examples import cases
from tests.thinned import some, thinned

KEY = b"a" * 32
KINDS = [(ZCDP, "gaussian"), (ZCDP, "laplace"), (PURE, "laplace"), (GDP, "gaussian")]
NEAR = [
    Neighbours("add_remove"),
    Neighbours("replace_one"),
    Neighbours("add_remove", "who", 2),
    Neighbours("replace_one", "who", 2),
]
COLUMNS = (
    Column("pay", NumericCodec((0.0, 1.0), 2, False), search=NumberSearch(None, None, "tree", 1, 2, False)),
    Column("well", BooleanCodec()),
    Column(
        "city", CategoryCodec(("A", "?1"), "other"), markers=("NA",), search=ValueSearch(("A",), 2, "other")
    ),
    Column("zip", TextCodec(r"\d{3}", ("1",)), search=PrefixSearch(r"\d{3}", (1, 2), 1)),
)
PRICE, DELTA = Fraction(1, 8), Fraction(1, 100)
LADDER = (-1e9, -1e3, -1.0, 0.0, 1.0, 10.0, 100.0, 1e3, 1e6, 1e9)

Row = tuple[str, str, str, str, str]
"""Person, pay, well, city, zip."""


def base() -> list[Row]:
    rng = random.Random(3)
    return [
        (
            f"p{i % 9}",
            rng.choice(["1", "20", "20.5", " 300 "]),
            rng.choice(["yes", "no"]),
            rng.choice("AABBBBCD"),
            rng.choice(["123", "145", "201"]),
        )
        for i in range(24)
    ]


COMING: dict[str, tuple[str, str, str, str]] = {
    "a new extreme": ("1e12", "yes", "B", "123"),
    "another": ("-99999999", "yes", "B", "123"),
    "an infinity": ("1e999", "no", "B", "123"),
    "a new value": ("20", "yes", "Z", "999"),
    "a first missing cell": ("", "", "", ""),
    "what means missing": ("NaN", "?", " NA ", "none"),
    "the longest text": ("9" * 300, "x" * 300, "long " * 4000, "1" * 3000),
    "one too long by a letter": ("1", "no", "x" * 201, "123"),
    "what is not printable": ("1", "no", "a\x00b\u202e\n", "12\n"),
    "blanks around": (" 20 ", " no ", "  B ", " 123 "),
    "like all others": ("20", "yes", "B", "123"),
}


def neighbours(rows: list[Row], near: Neighbours) -> Iterator[tuple[str, list[Row]]]:
    """A unit gone, come or exchanged for each unit of a list."""
    brought: dict[str, list[Row]] = {name: [("new", *cells)] for name, cells in COMING.items()}
    if near.person is not None:
        brought["most rows"] = [("new", *COMING["like all others"])] * 60
        brought["two of all"] = [("new", *cells) for cells in COMING.values()] * 2
        brought["two values"] = [("new", "1e9", "yes", "Y", "777"), ("new", "-1e9", "yes", "Z", "888")]
        brought["two extremes"] = [("new", "1e9", "yes", "Y", "222"), ("new", "1e9", "yes", "Z", "333")]
    for leaving in range(0, len(rows), len(rows) // cases(6, least=2)):
        unit = (
            {leaving} if near.person is None else {i for i, r in enumerate(rows) if r[0] == rows[leaving][0]}
        )
        rest = [r for i, r in enumerate(rows) if i not in unit]
        if near.relation == "add_remove":
            yield "gone", rest
        else:
            for name, unit_rows in brought.items():
                yield name, [*rest[:leaving], *unit_rows, *rest[leaving:]]
    if near.relation == "add_remove":
        for name, unit_rows in brought.items():
            yield name, [*rows[:5], *unit_rows, *rows[5:]]


def ask_everything(curator: Curator) -> list[object]:
    """Every question about texts, each chosen from the answers before it; then what follows on them."""
    pay, well, city, codes = COLUMNS
    told: list[object] = []
    counts, stddev = curator.counts_under(pay, NumericCodec(LADDER, 2, False), PRICE)
    cuts = np.r_[-np.inf, np.arange(0.0, 400.0, 10.0), np.inf]
    halves = curator.medians(pay, cuts, [(0, len(cuts))], PRICE)
    middle = int(np.clip(halves[0], 2, len(cuts) - 3))
    quarters = curator.medians(pay, cuts, [(0, middle + 1), (middle, len(cuts))], PRICE)
    values = curator.values_of(city, PRICE, DELTA, ("A",))
    prefixes, _ = curator.counts_under(codes, TextCodec(r"\d{3}", ("1", "2", "3")), PRICE)
    again, _ = curator.counts_under(city, CategoryCodec(("A", *values), "other"), PRICE)
    told += [counts.tolist(), stddev, halves.tolist(), quarters.tolist(), values, prefixes.tolist()]
    edges = (float(cuts[1]), float(cuts[middle]), float(cuts[-2]))
    found = curator.coded(
        [
            Column("pay", NumericCodec(edges, 2, False)),
            well,
            Column("city", CategoryCodec(("A", *values), "other"), markers=("NA",)),
            Column("zip", TextCodec(r"\d{3}", ("1", "2"))),
        ]
    )
    count = found.count(PRICE)
    answers = found.marginals([("well",), ("city", "zip"), ("well", "pay")], PRICE)
    return [*told, again.tolist(), int(count.values), *(m.values.tolist() for m in answers)]


def observed(
    rows: list[Row], near: Neighbours, measure: str, kind: str, path: Path
) -> tuple[Transcript, list[object]]:
    """Ask everything of a table, with a journal that is replayed if it is there."""
    cells = zip(*rows, strict=True)
    names = ("who", "pay", "well", "city", "zip")
    batch = {name: pa.array(texts, pa.string()) for name, texts in zip(names, cells, strict=True)}
    parts = [{name: c.slice(a, 10) for name, c in batch.items()} for a in range(0, len(rows), 10)]
    table = load_table(parts, COLUMNS, near, KEY)
    journal = Journal.open(path) if path.exists() else Journal.create(path, {"id": "x"})
    transcript = Transcript()
    curator, _ = observers(transcript)
    try:
        terms = Terms(near, measure, Fraction(2), kind, DELTA)
        return transcript, ask_everything(curator(table, terms, journal))
    finally:
        journal.close()


def replayed(
    folder: Path, near: Neighbours, measure: str, kind: str
) -> Iterator[tuple[list[str], list[int]]]:
    """What each neighbour gives away, and how far it moves each answer."""
    record, told = observed(base(), near, measure, kind, folder / "journal.jsonl")
    for name, rows in neighbours(base(), near):
        shutil.copy(folder / "journal.jsonl", folder / "again.jsonl")
        try:
            after, told_again = observed(rows, near, measure, kind, folder / "again.jsonl")
        except DpsynthError as error:
            yield [f"{name}: {error}"], []
            continue
        found = [f"{name}: {what}" for what in faults(record, after)]
        found += [f"{name}: something else was told"] * (told != told_again)
        yield found, [moved(a, b) for a, b in zip(record.asked, after.asked, strict=True)]


def moved(one: Asked, two: Asked) -> int:
    gap = gaps(one.exact, two.exact)
    return int(gap.max() if isinstance(one.event, ExponentialEvent) else gap.sum())


@pytest.mark.parametrize(
    ("near", "how"),
    some(
        thinned(NEAR, KINDS, by=lambda near, how: ((near.relation, how), (near.unit, how), near), strength=1),
        4,
    ),
)
def test_no_neighbour_changes_a_question_or_moves_an_answer_further_than_declared(tmp_path, near, how):
    measure, kind = how
    found, moves = zip(*replayed(tmp_path, near, measure, kind), strict=True)
    assert [what for of_one in found for what in of_one] == []
    farthest = np.max(moves, axis=0)
    record, _ = observed(base(), near, measure, kind, tmp_path / "journal.jsonl")
    kinds = [a.question["ask"] for a in record.asked]
    counted = [] if near.rows_public else ["marginal"]
    first = ["counts", "medians", "medians", "values", "counts", "counts"]
    assert kinds == [*first, *counted, "marginal", "marginal", "marginal"]
    # The neighbours are bad enough: some move each answer to a fixed question all the way.
    fixed = [0, 1, 3, 4, 5 + len(counted) + 1]
    assert [farthest[i] for i in fixed] == [near.l1] * 5
    spent = sum(measure.cost(a.event) for a in record.asked)
    assert spent <= (6 + len(counted) + 1) * PRICE and sum(a.event.delta for a in record.asked) <= DELTA


@pytest.mark.parametrize("near", NEAR[2:], ids=lambda n: n.relation)
def test_nothing_but_answers_differs_where_noise_is_pinned(tmp_path, monkeypatch, near):
    """Each table is asked afresh, without a record, with answers that are the same by force."""
    monkeypatch.setattr(
        samplers, "add_gaussian", lambda values, sigma: np.arange(values.size).reshape(values.shape)
    )
    monkeypatch.setattr(samplers, "choose_index", lambda scores, scale: len(scores) // 2)
    monkeypatch.setattr(seeking, "_selected", lambda held, event: ["B", "C"])
    one, told = observed(base(), near, ZCDP, "gaussian", tmp_path / "0.jsonl")
    whole = (tmp_path / "0.jsonl").read_bytes()
    for i, (_, rows) in enumerate(neighbours(base(), near), 1):
        two, told_again = observed(rows, near, ZCDP, "gaussian", tmp_path / f"{i}.jsonl")
        assert told == told_again
        assert list(faults(one, two)) == []
        assert (tmp_path / f"{i}.jsonl").read_bytes() == whole


# Planted faults.


def finds(folder: Path, near: Neighbours, measure: str, kind: str, words: str) -> bool:
    return any(words in what for found, _ in replayed(folder, near, measure, kind) for what in found)


@pytest.mark.parametrize("near", NEAR[1:], ids=lambda n: f"{n.relation} {n.unit}")
def test_the_sensitivity_of_an_added_row_used_for_any_other_unit_is_caught(tmp_path, monkeypatch, near):
    monkeypatch.setattr(Neighbours, "l1", 1)
    monkeypatch.setattr(Neighbours, "l2_squared", 1)
    left = {"counts", "medians", "values"}
    for found, _ in replayed(tmp_path, near, PURE, "laplace"):
        left -= {ask for ask in left if any(f"{ask}: sensitivity" in what for what in found)}
        if not left:
            break
    assert not left


@pytest.mark.parametrize("near", NEAR[2:], ids=lambda n: n.relation)
def test_rows_counted_in_place_of_persons_are_caught(tmp_path, monkeypatch, near):
    monkeypatch.setattr(Texts, "counts", lambda self, unit, sound=Texts.counts: sound(self, None))
    assert finds(tmp_path, near, ZCDP, "gaussian", "more than once")


@pytest.mark.parametrize("near", NEAR[2:], ids=lambda n: n.relation)
def test_texts_whose_rows_were_not_bounded_are_caught(tmp_path, monkeypatch, near):
    monkeypatch.setattr(Texts, "of_rows", lambda self, kept, room: self)
    monkeypatch.setattr(loaded_rows, "rows_kept", lambda persons, k, key: np.ones(len(persons), bool))
    # The table's own check of the bound is blinded.
    monkeypatch.setattr(loaded_rows, "rows_of_each", lambda persons: np.ones(len(persons), np.int64))
    assert finds(tmp_path, near, ZCDP, "gaussian", "sensitivity")


def test_a_question_that_says_how_many_texts_there_are_is_caught(tmp_path, monkeypatch):
    sound = seeking.DomainQuestions.values_of

    def nosy(self, column, price, delta, known=()):
        return sound(self, column, price, delta, (*known, f"{len(self._table.texts[column.name].distinct)}"))

    monkeypatch.setattr(seeking.DomainQuestions, "values_of", nosy)
    assert finds(tmp_path, NEAR[0], ZCDP, "gaussian", "another question")


def test_a_charge_that_depends_on_the_table_is_caught(tmp_path, monkeypatch):
    sound = seeking.DomainQuestions.counts_under

    def nosy(self, column, codec, price):
        return sound(self, column, codec, price if self._table.rows % 2 else price / 2)

    monkeypatch.setattr(seeking.DomainQuestions, "counts_under", nosy)
    assert finds(tmp_path, NEAR[0], ZCDP, "gaussian", "another question")


def test_values_told_beside_the_journal_are_caught(tmp_path, monkeypatch):
    sound = seeking.DomainQuestions.values_of

    def leaky(self, column, price, delta, known=()):
        found = sound(self, column, price, delta, known)
        return tuple(sorted({*found, *self._held(column, known)}))

    monkeypatch.setattr(seeking.DomainQuestions, "values_of", leaky)
    assert any(found for found, _ in replayed(tmp_path, NEAR[0], PURE, "laplace"))


def test_numbers_beyond_the_cuts_that_end_the_asking_are_caught(tmp_path, monkeypatch):
    sound = seeking._balances

    def strict(numbers, rows, cuts, runs):
        if np.isinf(numbers).any():
            raise DpsynthError("a number is out of range")
        return sound(numbers, rows, cuts, runs)

    monkeypatch.setattr(seeking, "_balances", strict)
    assert finds(tmp_path, NEAR[0], ZCDP, "gaussian", "out of range")


def test_values_found_without_a_delta_in_the_terms_are_refused_before_anything_is_drawn(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(samplers, "select", lambda *_: pytest.fail("drawn"))
    table = load_table([{"city": pa.array(["A", "B"])}], COLUMNS[2:3], NEAR[0], KEY)
    journal = Journal.create(tmp_path / "journal.jsonl", {"id": "x"})
    for delta in (Fraction(0), DELTA / 2):
        curator = Curator(table, Terms(NEAR[0], PURE, Fraction(2), "laplace", delta), journal)
        with pytest.raises(DpsynthError, match="refused before anything was drawn"):
            curator.values_of(COLUMNS[2], PRICE, DELTA)
    assert journal.entries == []
