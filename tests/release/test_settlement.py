"""What a release leaves in the ledger and in its journal when it ends."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsynth.ledger import store as tables
from dpsynth.pipeline.result import Release
from tests.release import evidence
from tests.release.place import Place, release


def journal(made: Release) -> list[evidence.Record]:
    return evidence.records(made.folder / "private" / "journal.jsonl")


def test_the_closing_row_has_the_figures_of_the_journals_events(place: Place) -> None:
    """Whichever way the ledger adds up; computed here from the scales alone."""
    made = release(place)
    found, protection = journal(made), evidence.Protection()
    entry = place.ledger.release(made.release_id)
    assert entry is not None and entry.state == "closed"
    cost = entry.cost

    def rounded_up(figure: Fraction | None, paid: Callable[[evidence.Record], Fraction]) -> bool:
        exact = sum(map(paid, evidence.charges(found)), Fraction(0))
        return figure is not None and 0 < exact <= figure <= exact * (1 + Fraction(1, 10**12))

    assert rounded_up(cost.rho, protection.rho)
    assert rounded_up(cost.half_mu_squared, protection.half_mu_squared)
    # An epsilon at a delta is that of the release as it was planned.
    assert cost.amount == entry.reserved.amount and cost.amount.delta == Fraction("1e-6")
    assert float(cost.epsilon) >= made.guarantee.epsilon
    assert list(entry.events) == [charge["event"] for charge in evidence.charges(found)]


def test_the_closing_row_of_a_pure_release_has_the_epsilon_of_its_journal(place: Place) -> None:
    place.configure(privacy={"epsilon": 1, "delta": None, "noise": "laplace"})
    made = release(place)
    entry = place.ledger.release(made.release_id)
    assert entry is not None and entry.cost.amount.delta == 0
    assert float(entry.cost.epsilon) == pytest.approx(made.guarantee.epsilon, rel=1e-12)
    assert entry.cost.epsilon <= entry.reserved.epsilon


def test_each_release_has_a_secret_bounding_key_of_its_own(place: Place) -> None:
    """Or one who knows an earlier key could choose rows so that they are those that enter."""
    keys = {bytes.fromhex(str(journal(release(place))[0]["key"])) for _ in range(2)}
    assert len(keys) == 2 and {len(key) for key in keys} == {32}


def test_a_release_reads_its_whole_ledger_three_times(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it begins, as it reserves and as it settles: each time takes as long as the ledger is long."""
    whole, readings = tables.stored, []
    monkeypatch.setattr(
        tables, "stored", lambda connection: readings.append(whole(connection)) or readings[-1]
    )
    release(place)
    assert [len(rows) for rows, *_ in readings] == [2], "there were no tables before"
    release(place)
    assert [len(rows) for rows, *_ in readings[1:]] == [3, 3, 4]
