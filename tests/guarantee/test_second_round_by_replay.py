"""Rounds of pairs and triples of the default strategy: the same questions of neighbours, and all is spent."""

import random
from itertools import islice
from pathlib import Path

import pytest

from dpsynth.config import Spec
from dpsynth.curator import Curator
from dpsynth.errors import DpsynthError
from dpsynth.strategy import auto
from dpsynth.wings.proof.audit.replay import Transcript, observe
from tests.examples import cases
from tests.guarantee.test_every_strategy_by_replay import findings, journal_of
from tests.guarantee.wild_tables import (
    farthest,
    found_on,
    neighbours,
    on_neighbour,
    privacy_of,
    spec_for,
    write,
)
from tests.thinned import some

TERMS = {
    "rows come and go, Gaussian": privacy_of("add_remove", "row", "gaussian", accountant="gdp", epsilon=9),
    "persons exchanged, Gaussian": privacy_of(
        "replace_one", "person", "gaussian", accountant="zcdp", epsilon=9
    ),
    "rows exchanged, Laplace with delta": privacy_of("replace_one", "row", "laplace", delta=1e-6, epsilon=9),
}
CELLS = 300
"""Cells of the model: it has room for the largest pair, of 64, but not for three such columns together."""
COLUMNS = {
    "age": {"type": "integer", "bins": list(range(0, 90, 10)), "missing": False},
    "pay": {"type": "number", "bins": list(range(0, 90, 10)), "decimals": 1, "missing": False},
    "city": {"type": "category", "values": list("ABCDEFG"), "other": "elsewhere", "missing": False},
    "well": {"type": "boolean"},
}


def rows_of(rng: random.Random) -> list[list[str]]:
    """Rows in which every column follows from the others, but for chance."""
    rows = []
    for i in range(1500):
        age, other = rng.randrange(8), rng.randrange(8)
        pay = age if rng.random() < 0.8 else other
        city = (age + (other if rng.random() < 0.3 else 0)) % 7 if rng.random() < 0.8 else pay % 7
        well = ["true", "false"][(age + pay) % 2]
        rows.append([f"p{i // 2}", str(10 * age), f"{10 * pay}.5", "ABCDEFG"[city], well, "n"])
    return rows


FEW_PLACES = {
    "age": {"type": "integer", "bins": [0, 10, 20], "missing": False},
    "pay": {"type": "number", "bins": [0, 10, 20], "decimals": 1, "missing": False},
    "city": {"type": "category", "values": ["A"], "other": "elsewhere", "missing": False},
    "well": {"type": "boolean", "missing": False},
}


def exclusive_rows(rng: random.Random) -> list[list[str]]:
    """Rows in which age, pay and city depend on each other, and no two of them do."""
    rows = []
    for i in range(1500):
        age, pay, well = rng.randrange(2), rng.randrange(2), rng.choice(["true", "false"])
        rows.append([f"p{i // 2}", str(10 * age), f"{10 * pay}.5", "AB"[age ^ pay], well, "n"])
    return rows


def parity_rows(rng: random.Random) -> list[list[str]]:
    """Rows in which well is the exclusive or of three coins."""
    rows = []
    for i in range(1500):
        age, pay, city = rng.randrange(2), rng.randrange(2), rng.randrange(2)
        well = ["true", "false"][age ^ pay ^ city]
        rows.append([f"p{i // 2}", str(10 * age), f"{10 * pay}.5", "AB"[city], well, "n"])
    return rows


def scanned(tmp_path: Path, terms: str) -> tuple[list[list[str]], random.Random, Spec, Transcript]:
    """A release of a table with columns of two values alone."""
    rng = random.Random(terms)
    rows = parity_rows(rng)
    spec = spec_for(write(tmp_path / "x.csv", rows), TERMS[terms], "auto", columns=FEW_PLACES)
    return rows, rng, spec, observe(spec, tmp_path / "out")


def recorded(tmp_path: Path, terms: str) -> tuple[random.Random, list[list[str]], Spec, Transcript]:
    """A release with a model so small that pairs are left beside it, up to where all is asked."""
    rng = random.Random(terms)
    rows = rows_of(rng)
    spec = spec_for(write(tmp_path / "x.csv", rows), TERMS[terms], "auto", columns=COLUMNS)
    small = spec.structure.model_copy(update={"max_model_mb": CELLS * 8 / 1e6})
    spec = spec.model_copy(update={"structure": small})
    return rng, rows, spec, observe(spec, tmp_path / "out")


def later_rounds(tmp_path: Path) -> int:
    """Number of questions about distances, less the one of the tree."""
    return sum(e.question["ask"] == "errors" for e in journal_of(tmp_path).entries) - 1


@pytest.mark.parametrize("terms", some(TERMS, 2))
def test_rounds_of_pairs_and_triples_ask_the_same_of_a_neighbour_and_spend_all_that_was_planned(
    tmp_path: Path, terms: str
) -> None:
    rng, rows, spec, record = recorded(tmp_path, terms)
    assert later_rounds(tmp_path) == 2
    assert findings(spec, journal_of(tmp_path)) == []
    privacy = TERMS[terms]
    unit = "person" if "unit" in privacy else "row"
    changed = islice(neighbours(rows, str(privacy["neighbours"]), unit, rng), cases(3, least=2))
    assert list(found_on(tmp_path, spec, record, changed)) == []


def test_small_triples_that_no_pair_shows_ask_the_same_of_a_neighbour(tmp_path: Path) -> None:
    terms, rng = TERMS["rows come and go, Gaussian"], random.Random(2)
    rows = exclusive_rows(rng)
    three = {c: FEW_PLACES[c] for c in ("age", "pay", "city")}
    spec = spec_for(write(tmp_path / "x.csv", rows), terms, "auto", columns=three)
    record = observe(spec, tmp_path / "out")
    asked = [e.question for e in journal_of(tmp_path).entries]
    assert [q["candidates"]["number"] for q in asked if q["ask"] == "errors"] == [3, 3, 1]
    assert findings(spec, journal_of(tmp_path)) == []
    changed = islice(neighbours(rows, "add_remove", "row", rng), cases(3, least=2))
    assert list(found_on(tmp_path, spec, record, changed)) == []


@pytest.mark.parametrize("terms", some([terms for terms in TERMS if "Gaussian" in terms], 1))
def test_a_scan_of_parities_asks_the_same_of_a_neighbour_and_all_is_spent(
    tmp_path: Path, terms: str, monkeypatch
) -> None:
    # So many standard deviations that noise never hides the exclusive or.
    monkeypatch.setattr("dpsynth.strategy.exclusive_ors.SURE", 6.0)
    rows, rng, spec, record = scanned(tmp_path, terms)
    entries = journal_of(tmp_path).entries
    (question,) = [e.question for e in entries if e.question["ask"] == "parities"]
    assert (question["columns"], question["most"]) == (["age", "pay", "city", "well"], 4)
    measured = [e.question["columns"] for e in entries if e.question["ask"] == "marginal"]
    assert ["age", "pay", "city", "well"] in measured
    assert findings(spec, journal_of(tmp_path)) == []
    privacy = TERMS[terms]
    unit = "person" if "unit" in privacy else "row"
    changed = islice(neighbours(rows, str(privacy["neighbours"]), unit, rng), cases(3, least=2))
    assert list(found_on(tmp_path, spec, record, changed)) == []


# Planted faults.


def test_a_scan_of_sets_that_follow_from_rows_is_caught(tmp_path: Path, monkeypatch) -> None:
    sound = Curator.parities

    def nosy(self, columns, most, price):
        return sound(self, columns, most - self._table.rows % 2, price)

    monkeypatch.setattr(Curator, "parities", nosy)
    rows, _, spec, record = scanned(tmp_path, "rows come and go, Gaussian")
    with pytest.raises((DpsynthError, ValueError)):
        on_neighbour(tmp_path, spec, record, farthest(rows, "add_remove", "row")[0])


def test_a_second_round_that_looks_at_rows_is_caught(tmp_path: Path, monkeypatch) -> None:
    sound = Curator.errors

    def nosy(self, candidates, estimates, price):
        return sound(self, candidates[: len(candidates) - self._table.rows % 2], estimates, price)

    monkeypatch.setattr(Curator, "errors", nosy)
    _, rows, spec, record = recorded(tmp_path, "rows come and go, Gaussian")
    # The first of the farthest neighbours has a row more.
    with pytest.raises((DpsynthError, ValueError)):
        on_neighbour(tmp_path, spec, record, farthest(rows, "add_remove", "row")[0])


def test_a_second_round_that_keeps_a_part_of_the_budget_would_be_seen(tmp_path: Path, monkeypatch) -> None:
    sound = auto.with_pairs_beside

    class Sparing:
        def __init__(self, door):
            self._door = door

        def __getattr__(self, name):
            return getattr(self._door, name)

        @property
        def remaining(self):
            return self._door.remaining / 2

    monkeypatch.setattr(auto, "with_pairs_beside", lambda door, *rest: sound(Sparing(door), *rest))
    _, _, spec, _ = recorded(tmp_path, "rows come and go, Gaussian")
    assert "less was spent than planned" in findings(spec, journal_of(tmp_path))
