"""Every kind of question, replayed on every neighbour of a table: nothing but answers depends on rows.

The same holds of whole releases, for the questions that their strategies ask: see
``test_replay_on_neighbours``.
"""

import random
import shutil
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dpsynth.accounting.composition import compose
from dpsynth.accounting.events import ExponentialEvent, LaplaceEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator import Curator, distances
from dpsynth.curator.marginals import ExactCounts
from dpsynth.errors import DpsynthError
from dpsynth.wings.proof.audit.replay import Transcript, faults
from tests.guarantee import asking
from tests.guarantee.asking import Rows, observed

CELLS = list(product(range(3), range(2), range(4)))
KINDS = [(ZCDP, "gaussian"), (ZCDP, "laplace"), (PURE, "laplace"), (GDP, "gaussian")]
NEAR = [Neighbours("add_remove"), Neighbours("replace_one")]
ADD, REPLACE = NEAR
KIND_OF = {"marginal": "count", "choose": "choice", "errors": "errors"}


def table() -> Rows:
    rng = random.Random(5)
    return [rng.choice(CELLS) for _ in range(12)]


def all_neighbours(rows: Rows, near: Neighbours) -> Iterator[Rows]:
    """Each row of each kind gone, come, or exchanged for each other."""
    for i in range(len(rows)):
        rest = rows[:i] + rows[i + 1 :]
        if near.relation == "add_remove":
            yield rest
        else:
            yield from ([*rows[:i], cell, *rows[i + 1 :]] for cell in CELLS[i % 5 :: 5])
    if near.relation == "add_remove":
        yield from ([*rows, cell] for cell in CELLS)


def findings(folder: Path, near: Neighbours, measure: str, kind: str) -> tuple[list[str], list[int]]:
    """What all neighbours together give away, and how far they move each answer at most."""
    record, told = observed(table(), near, measure, kind, folder / "journal.jsonl")
    found, farthest = [], [0] * len(record.asked)
    for rows in all_neighbours(table(), near):
        shutil.copy(folder / "journal.jsonl", folder / "again.jsonl")
        try:
            after, told_again = observed(rows, near, measure, kind, folder / "again.jsonl")
        except DpsynthError as error:
            found.append(str(error))
            continue
        found += faults(record, after)
        found += ["something else was told"] * (told != told_again)
        farthest = [max(f, moved(a, b)) for f, a, b in zip(farthest, record.asked, after.asked, strict=True)]
    return found, farthest


def moved(one: Transcript, two: Transcript) -> int:
    gap = np.abs(one.exact - two.exact)
    return int(gap.max() if isinstance(one.event, ExponentialEvent) else gap.sum())


@pytest.mark.parametrize("near", NEAR, ids=lambda n: n.relation)
@pytest.mark.parametrize(("measure", "kind"), KINDS)
def test_no_neighbour_changes_a_question_or_moves_an_answer_further_than_declared(
    tmp_path, near, measure, kind
):
    found, farthest = findings(tmp_path, near, measure, kind)
    assert found == []
    kinds = [
        KIND_OF[a.question["ask"]] for a in observed(table(), near, measure, kind, tmp_path / "j")[0].asked
    ]
    assert kinds == ["count"] * (1 + (near is ADD)) + ["choice"] * 3 + ["errors"] + ["count"] * 3
    # The neighbours are bad enough: some move each marginal, and all three distances, all the way.
    for name, most in zip(kinds, farthest, strict=True):
        if name == "choice":
            assert 0 < most <= 3 * near.l1
        else:
            assert most == near.l1 * (3 if name == "errors" else 1)


@pytest.mark.parametrize(("measure", "kind"), KINDS)
def test_what_was_asked_composes_to_the_budget_and_to_nearly_all_of_it(tmp_path, measure, kind):
    record, _ = observed(table(), ADD, measure, kind, tmp_path / "journal.jsonl")
    events = [a.event for a in record.asked]
    assert Fraction(2) * (1 - Fraction(1, 10**9)) <= sum(measure.cost(e) for e in events) <= 2
    delta = None if measure == PURE else Fraction(1, 10**6)
    assert compose(events, measure, delta, ADD).epsilon >= 1.99


# Planted faults.


def test_a_door_that_weighs_by_the_table_is_caught(tmp_path, monkeypatch):
    sound = Curator.choose

    def nosy(self, candidates, estimates, price, penalties=(), weights=()):
        return sound(self, candidates, estimates, price, [self._table.rows] * len(candidates), weights)

    monkeypatch.setattr(Curator, "choose", nosy)
    assert "another question" in findings(tmp_path, ADD, ZCDP, "gaussian")[0][0]


def test_groups_made_from_exact_counts_are_caught(tmp_path, monkeypatch):
    sound = Curator.grouped

    def nosy(self, compression):
        joined = int(self._table.counts(("c",))[0]) % 3
        groups = np.array([i - (i > joined) for i in range(4)])
        return sound(self, asking.Compression({"c": groups}))

    monkeypatch.setattr(Curator, "grouped", nosy)
    assert "another question" in " ".join(findings(tmp_path, REPLACE, ZCDP, "gaussian")[0])


def test_errors_that_answer_exactly_beside_the_journal_are_caught(tmp_path, monkeypatch):
    sound = Curator.errors

    def leaky(self, candidates, estimates, price):
        _, stddev = sound(self, candidates, estimates, price)
        return self._distances.of(candidates, estimates, estimates.fingerprint()), stddev

    monkeypatch.setattr(Curator, "errors", leaky)
    found = findings(tmp_path, ADD, PURE, "laplace")[0]
    assert any("something else was told" in f or "another question" in f for f in found)


def test_rows_counted_in_two_cells_are_caught(tmp_path, monkeypatch):
    sound = ExactCounts.of
    monkeypatch.setattr(ExactCounts, "of", lambda self, clique: 2 * sound(self, clique))
    assert any("sensitivity" in f for f in findings(tmp_path, ADD, ZCDP, "gaussian")[0])


def test_estimates_stretched_over_a_marginal_are_caught(tmp_path, monkeypatch):
    """An estimate with an axis too many would have each row counted once for each of its cells."""
    monkeypatch.setattr(
        distances, "_distance", lambda counts, guess: int(np.abs(counts[..., None] - [0, 0, 0]).sum())
    )
    assert any("sensitivity" in f for f in findings(tmp_path, ADD, ZCDP, "laplace")[0])


def test_a_charge_of_the_wrong_size_for_noisy_errors_would_be_caught(monkeypatch, tmp_path):
    """The events of the journal are what the guarantee is made of: the k of k distances must be in them."""
    record, _ = observed(table(), ADD, PURE, "laplace", tmp_path / "journal.jsonl")
    (event,) = (a.event for a in record.asked if a.question["ask"] == "errors")
    assert event == LaplaceEvent(event.scale, 3)
    assert PURE.cost(LaplaceEvent(event.scale, 1)) < PURE.cost(event) <= asking.SIXTH
