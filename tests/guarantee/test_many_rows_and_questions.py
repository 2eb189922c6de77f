"""Many cells, rows, texts, questions, releases and events: what holds for a few of them holds for all.

Each claim is tried beyond the size from which the product works in another way, or in pieces. Bulk noise
draws 2^16 cells at a time. Rows are counted 2^16 at a time, and by several threads from 2^19 on. Counts of up
to 255 rows are kept in a byte. Texts are read 2^12 at a time.
"""

import json
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost, amount_of, spent
from dpsynth.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.slices import Slice
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column, ValueSearch
from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.sums import Centring, Pieces
from dpsynth.curator import Curator, Journal, Terms, samplers
from dpsynth.curator.samplers import chances_at
from dpsynth.curator.table import PrivateTable, Texts
from dpsynth.curator.units import UnitSample
from dpsynth.errors import BudgetRefused
from dpsynth.ledger.filters import Counted, total_of
from tests.guarantee.small_tables import Notes, drawn_upon
from tests.guarantee.test_large_and_second import Guess
from tests.thinned import some

ROW = Neighbours("add_remove")
CITY = Column("city", CategoryCodec(("A",), "else"), search=ValueSearch((), 9, "else"))
MANY = 700
"""More questions, releases or events than one or two pieces of anything."""


def opened(table: PrivateTable, notes: object, budget: int = 100, delta: Fraction = Fraction(0)) -> Curator:
    return Curator(table, Terms(ROW, ZCDP, Fraction(budget), "gaussian", delta), notes)


# Noise of many cells.


@pytest.mark.parametrize(("kind", "unit"), [("gaussian", 1.0), ("laplace", 2**0.5)])
@pytest.mark.parametrize("scale", some([9.0, 60_000.0, 3000.0], 2))
def test_every_part_of_an_answer_of_a_million_cells_has_noise_of_its_own(kind, unit, scale):
    """By the size of its noise, and by its correlation with any other part; 60 000 is beyond bulk noise."""
    cells = (1 << 20) + (1 << 16) + 7 if scale < 10_000 else 1 << 14
    add = samplers.add_gaussian if kind == "gaussian" else samplers.add_laplace
    drawn = add(np.zeros(cells, np.int64), scale) / (unit * scale)
    number = max(cells >> 14, 4)
    parts = drawn[: cells // number * number].reshape(number, -1)
    some = parts.shape[1] ** 0.5
    # A part's mean of squares lies within 8 of its deviations.
    assert np.abs((parts**2).mean(axis=1) - 1).max() < 8 * (2 if kind == "gaussian" else 5) ** 0.5 / some
    assert np.abs(parts.mean(axis=1)).max() < 8 / some
    for lag in [1 << k for k in range(13, 21) if 1 << k < cells]:
        apart = np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]
        assert abs(apart) < 8 / (cells - lag) ** 0.5


# Many rows.


@pytest.mark.parametrize("rows", [255, 65_535, (1 << 16) + 1, (1 << 19) + 1, (1 << 21) + 9])
def test_one_row_after_many_moves_each_answer_by_itself(monkeypatch, rows):
    monkeypatch.setattr("dpsynth.curator.table.cores", lambda: 2)
    pieces, centring = Pieces((0, 7), 2), Centring((0, -9), 5)
    found = []
    for number in (rows, rows + 1):
        last = np.zeros(number, np.uint8)
        last[rows:] = 1
        steps = {"x": np.where(last, 9, 0).astype(np.int32)}
        table = PrivateTable(
            Domain(dict.fromkeys("xyz", 2)),
            dict.fromkeys("xyz", last),
            number,
            steps=steps,
            summed=frozenset("x"),
        )
        curator = opened(table, Notes())

        def ask(curator: Curator = curator) -> None:
            curator.marginals([(), ("x",), ("y",), ("x", "y")], Fraction(1))
            curator.sums("x", ("y",), centring, Fraction(1))
            curator.finer_counts("x", ("y",), pieces, Fraction(1))
            curator.parities(tuple("xyz"), 3, Fraction(1))

        found.append(drawn_upon(monkeypatch, ask))
    gaps = [(b - a).tolist() for a, b in zip(*found, strict=True)]
    assert gaps == [1, [0, 1], [0, 1], [[0, 0], [0, 1]], [0, 5], [[0, 0], [0, 1]], [-1]]
    assert found[0][0] == rows


def test_one_text_after_many_counts_once(monkeypatch):
    """Ten thousand texts are read in three pieces; a thousand rows of them are of one unit."""
    texts, most = 10_000, 1000
    codec = CategoryCodec(tuple(f"v{i}" for i in range(texts)), "else")
    found = []
    for own in (0, most):
        index = np.concatenate([np.arange(texts), np.full(own, texts - 1)]).astype(np.int32)
        unit = np.concatenate([np.arange(texts), np.full(own, texts)]).astype(np.int32)
        held = Texts(pa.array([f"v{i}" for i in range(texts)], pa.large_string()), index)
        curator = opened(
            PrivateTable(Domain({}), {}, len(index), {"city": held}, unit), Notes(), delta=Fraction(1, 9)
        )
        asked = drawn_upon(monkeypatch, lambda c=curator: c.counts_under(CITY, codec, Fraction(1)))
        asked += drawn_upon(monkeypatch, lambda c=curator: c.values_of(CITY, Fraction(1), Fraction(1, 10)))
        coded = curator.coded([Column("city", codec)])
        asked += drawn_upon(monkeypatch, lambda c=coded: c.marginals([("city",)], Fraction(1)))
        found.append(asked)
    before, after = found
    moved = [np.flatnonzero(b - a).tolist() for a, b in zip(before, after, strict=True)]
    assert moved == [[texts - 1]] * 3
    assert [int((b - a).max()) for a, b in zip(before, after, strict=True)] == [most, 1, most]


@pytest.mark.parametrize("values", [300, 70_000])
def test_a_row_of_the_last_of_many_groups_moves_one_cell_and_one_distance(monkeypatch, values):
    groups = Compression({"g": np.maximum(np.arange(values) - 2, 0)})
    found = []
    for number in (4, 5):
        codes = np.where(np.arange(number) < 4, 0, values - 1).astype(np.uint32)
        curator = opened(PrivateTable(Domain({"g": values}), {"g": codes}, number), Notes())
        coarse = curator.grouped(groups)
        guess = Guess(groups.coarse(Domain({"g": values})))

        def ask(coarse: Curator = coarse, guess: Guess = guess) -> None:
            coarse.marginals([("g",)], Fraction(1))
            coarse.singles(["g"], Fraction(1))
            coarse.errors([("g",)], guess, Fraction(1))

        found.append(drawn_upon(monkeypatch, ask))
    gaps = [b - a for a, b in zip(*found, strict=True)]
    assert [np.flatnonzero(gap).tolist() for gap in gaps] == [[values - 3], [values - 1], [0]]
    assert [int(gap.sum()) for gap in gaps] == [1, 1, 1]


def test_coins_of_rows_and_persons_are_independent_however_many_there_are():
    sample = UnitSample(1 << 63, b"k" * 32)
    rows = sample.rows(0, 4 << 16) * 2 - 1
    persons = sample.persons(np.arange(1 << 15, dtype=np.uint64)) * 2 - 1
    for coins in (rows, persons):
        for lag in [1 << k for k in range(18) if 1 << k < len(coins)]:
            assert abs(float((coins[:-lag] * coins[lag:]).mean())) < 6 / (len(coins) - lag) ** 0.5


@pytest.mark.parametrize("event", [SelectionEvent(0.01, 1e-9, 1), SelectionEvent(0.3, 1e-6, 501)])
def test_values_of_many_units_are_named_within_the_loss_of_each_step(event):
    """One more unit changes both outcomes by a factor of e^epsilon0 and delta0, up to thousands of units."""
    one = 1 << 128
    chances = [0, *chances_at(list(range(1, 4000)), event)]
    growth, delta = float(np.exp(event.epsilon0)), event.delta0
    for few, more in pairwise(chances):
        assert more / one <= (growth * few / one + delta) * (1 + 1e-12)
        assert (one - few) / one <= (growth * (one - more) / one + delta) * (1 + 1e-12)
        assert few <= more


# Many questions, events and releases.


def test_every_one_of_many_questions_counts_against_the_budget():
    table = PrivateTable(Domain({"x": 2}), {"x": np.zeros(3, np.uint8)}, 3)
    curator = opened(table, Notes(), budget=1)
    for _ in range(MANY):
        curator.errors([("x",)], Guess(Domain({"x": 2})), Fraction(1, MANY))
    assert 0 <= curator.remaining < Fraction(1, 10**9)
    second = curator.keeping(Fraction(1, 2)).keeping(Fraction(0))
    for door in (curator, second, curator.grouped(Compression({"x": np.zeros(2, int)}))):
        with pytest.raises(BudgetRefused):
            door.errors([("x",)], Guess(door._table.domain), Fraction(1, MANY))


def test_every_one_of_many_searches_counts_against_the_delta():
    texts = {"city": Texts(pa.array(["v"], pa.large_string()), np.zeros(3, np.int32))}
    delta, most = Fraction(1, 1000), 100
    terms = Terms(ROW, PURE, Fraction(100), "laplace", delta)
    curator = Curator(PrivateTable(Domain({}), {}, 3, texts), terms, Notes())
    searches = 0
    with pytest.raises(BudgetRefused):
        while searches < 2 * most:
            curator.values_of(CITY, Fraction(1, 100), delta / most)
            searches += 1
    # A first attempt takes nine tenths of a search's delta.
    assert searches == most * 10 // 9


@pytest.mark.parametrize("measure", [PURE, ZCDP, GDP])
def test_every_one_of_many_events_counts_in_the_guarantee_and_in_the_ledger(measure):
    cheap, dear = LaplaceEvent(400.0, 1), LaplaceEvent(2.0, 1)
    events = [cheap] * MANY + [dear]
    total = MANY * measure.exact_cost(cheap) + measure.exact_cost(dear)
    delta = Fraction(1, 10**6)
    amount = amount_of(events, measure, delta)
    assert amount.epsilon >= measure.epsilon(total, delta)
    cost = spent(events, amount)
    assert cost.rho >= MANY * cheap.rho + dear.rho
    assert cost.half_mu_squared >= MANY * cheap.half_mu_squared + dear.half_mu_squared
    named = [SelectionEvent(0.001, 1e-9, 1)] * MANY
    assert amount_of(named, PURE, None).delta >= MANY * Fraction(1e-9)
    assert spent(named, amount_of(named, PURE, None)).approximate_delta >= MANY * Fraction(1e-9)


@pytest.mark.parametrize("by", [PURE, ZCDP, GDP])
def test_every_one_of_many_releases_counts_in_the_ledger_about_all_rows_a_period_or_a_value(by):
    cost = Cost(
        Amount(Fraction(1, 8), Fraction(1, 10**6)), Fraction(1, 16), Fraction(1, 32), Fraction(1, 10**7)
    )
    day = date(2026, 1, 1)

    def about(first: int, days: int) -> Slice:
        start = day + timedelta(days=first)
        return Slice("seen", f"{first}+{days}", start, start + timedelta(days=days))

    each = total_of(by, [Counted(cost)])
    many = tuple(MANY * figure for figure in each)
    assert total_of(by, [Counted(cost)] * MANY) == many
    assert total_of(by, [Counted(cost, about(0, 30))] * MANY) == many
    assert total_of(by, [Counted(cost, Slice("site", "7"))] * MANY) == many
    # All of them hold the last day, and each begins on another one.
    assert total_of(by, [Counted(cost, about(i, MANY - i)) for i in range(MANY)]) == many
    # Periods apart are no more than one of them; a second one about the last period is.
    apart = [Counted(cost, about(30 * i, 30)) for i in range(MANY)]
    assert total_of(by, apart) == each
    assert total_of(by, [*apart, apart[-1]]) == tuple(2 * figure for figure in each)
    others = [Counted(cost, Slice("site", str(i))) for i in range(MANY)]
    assert total_of(by, [*others, others[-1]]) == tuple(2 * figure for figure in each)


def test_a_journal_of_many_questions_is_read_again_to_its_last_answer(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    draws: list[int] = []

    def answers(journal: Journal) -> list[int]:
        def draw(i: int) -> np.ndarray:
            draws.append(i)
            return np.array([i + len(draws)])

        found = [
            int(journal.answer({"ask": "x", "n": i}, GaussianEvent(9.0, 1), lambda i=i: draw(i))[0])
            for i in range(MANY)
        ]
        assert len(list(journal.asked())) == MANY
        return found

    with_all = Journal.create(path, {"id": "x"})
    first, digest = answers(with_all), with_all.digest
    with_all.close()
    again = Journal.open(path)
    assert (answers(again), again.digest) == (first, digest)
    again.close()
    assert draws == list(range(MANY))
    # The last answer is part of the digest.
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1].replace(packed(lines[-1]), "AQAAAAAAAAA=")]) + "\n")
    changed = Journal.open(path)
    assert changed.digest != digest
    changed.close()


def packed(line: str) -> str:
    """The packed integers of an answer's line."""
    return str(json.loads(line)["answer"]["int64"])
