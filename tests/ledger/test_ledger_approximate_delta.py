"""The ledger keeps what releases take of delta beside rho and mu, and opens what was written before."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import amount_of, spent
from dpsynth.accounting.events import GaussianEvent, RecordedEvent, ThresholdEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.errors import BudgetRefused, ConfigError
from dpsynth.ledger.filters import Filter
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.refusals import check_counted
from tests.ledger.forging import chained_anew, store
from tests.ledger.reservations import EVENTS, HALF, LARGE_CAP, NONE, TENTH, account, asking, seeking
from tests.ledger.test_ledger_forgeries import with_cost, with_facts


@pytest.fixture
def ledger(database: str) -> Ledger:
    return Ledger(database)


def test_lapses_are_kept_and_charged_by_what_the_journal_says(ledger: Ledger, database: str) -> None:
    ledger.reserve(seeking("r1"))
    ledger.reserve(seeking("r2", share=TENTH))
    found = account(Ledger(database))
    assert found.approximate_share == HALF and [r.cost for r in found.releases] == [
        seeking("r1").cost,
        seeking("r2", share=TENTH).cost,
    ]
    assert found.left[1] == LARGE_CAP.delta / 2 - Fraction(6, 10**8)
    assert found.delta_used == LARGE_CAP.delta / 2 + Fraction(6, 10**8)
    events: list[RecordedEvent] = [ThresholdEvent(40.0, 250, 1), GaussianEvent(40.0, 1)]
    now = spent(events, amount_of(events, GDP, Fraction(1, 10**7)))
    assert 0 < now.approximate_delta < Fraction(1, 10**8)
    ledger.settle("r1", now, EVENTS)
    found = account(Ledger(database))
    # Its epsilon at a delta stays the reserved one; rho, mu^2/2 and approximate deltas add up.
    assert found.releases[0].cost == replace(now, amount=seeking("r1").cost.amount)
    assert found.left[1] == LARGE_CAP.delta / 2 - Fraction(1, 10**8) - now.approximate_delta
    assert ledger.verify().problems == ()
    for row in ledger.rows()[1:]:
        assert Fraction(json.loads(row.content)["cost"]["approximate_delta"]) > 0


def test_more_lapses_than_were_reserved_are_not_charged_in_silence(ledger: Ledger) -> None:
    ledger.reserve(seeking("r1"))
    more = replace(seeking("r1").cost, approximate_delta=Fraction(51, 10**9))
    with pytest.raises(Exception, match=r"approximate δ 5\.1e-8\), more than"):
        ledger.settle("r1", more, EVENTS)
    assert account(ledger).releases[0].state == "reserved"


def test_what_is_kept_for_lapses_is_refused_beyond_and_the_refusal_says_so(ledger: Ledger) -> None:
    one = {"epsilon": Fraction(1, 100), "delta": Fraction(4, 10**6)}
    for number in range(2):
        ledger.reserve(seeking(f"r{number}", **one))
    with pytest.raises(BudgetRefused, match=r"Of the delta that is kept for finding values, 1e-6 is left"):
        ledger.reserve(seeking("r2", **one))
    ledger.reserve(seeking("r3", **one, share=NONE))
    assert account(ledger).fits(seeking("r4", **one).cost) == 0
    assert account(ledger).fits(seeking("r4", **one, share=NONE).cost) > 10


@pytest.mark.parametrize("by", [ZCDP, GDP])
def test_a_dataset_that_keeps_nothing_for_lapses_says_how_it_would(ledger: Ledger, by: Filter) -> None:
    ledger.reserve(seeking("r1", by, share=NONE))
    before = account(ledger)
    assert before.approximate_share == 0
    with pytest.raises(ConfigError, match=r"ledger cap 'people' --approximate-share 0\.5 --config CONFIG"):
        ledger.reserve(seeking("r2", by))
    check_counted(seeking("r2", by), replace(before, filter=PURE))
    ledger.change_cap("people", LARGE_CAP, "values are sought", HALF)
    ledger.reserve(seeking("r2", by))
    after = account(ledger)
    assert after.approximate_share == HALF and after.bound[0] < before.bound[0]
    ledger.change_cap("people", Amount(Fraction(4), LARGE_CAP.delta), "more")
    assert account(ledger).approximate_share == HALF and ledger.verify().problems == ()
    assert ledger.change_cap("people", Amount(Fraction(4), LARGE_CAP.delta), "more") == account(ledger)
    assert account(ledger).caps[-1].shown() == "ε = 4, δ = 1e-5 (0.5 of δ for finding values)"


def test_a_share_for_lapses_that_is_none_is_refused(ledger: Ledger) -> None:
    ledger.reserve(seeking("r1"))
    for share in (Fraction(1), Fraction(-1, 2)):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            ledger.change_cap("people", LARGE_CAP, "a test", share)
    ledger.reserve(replace(asking("s1"), dataset="others"))
    with pytest.raises(ConfigError, match=r"Leave out --approximate-share"):
        ledger.change_cap("others", LARGE_CAP, "a test", HALF)


def test_a_pure_release_that_finds_values_counts_by_epsilon_and_delta(ledger: Ledger) -> None:
    asked = seeking("r1", PURE, measure=PURE)
    assert asked.cost.amount == Amount(Fraction(1), asked.cost.approximate_delta) and asked.cost.pure
    ledger.reserve(asked)
    found = account(ledger)
    assert (found.approximate_share, found.epsilon_used, found.delta_used) == (
        0,
        1,
        asked.cost.approximate_delta,
    )


def test_rows_whose_lapses_make_no_sense_are_refused_though_their_hashes_are_right(ledger: Ledger) -> None:
    ledger.reserve(seeking("r1", epsilon=Fraction(1, 10)))
    ledger.reserve(seeking("r2", epsilon=Fraction(1, 10)))
    ledger.settle("r2", seeking("r2", epsilon=Fraction(1, 10)).cost, EVENTS)
    rows = list(ledger.rows())
    forged = {
        "row 2: it can't be read": [rows[0], with_cost(rows[1], approximate_delta="1/2"), *rows[2:]],
        "row 2: it has a figure that is no fraction": [
            rows[0],
            with_cost(rows[1], approximate_delta=0),
            *rows[2:],
        ],
        "row 4: it charges release r2 with more": [
            *rows[:3],
            with_cost(rows[3], approximate_delta="1/10000001"),
        ],
        "row 1: it has a cap that the filter can't keep to": [
            with_facts(rows[0], approximate_share="1"),
            *rows[1:],
        ],
        "row 1: it has a cap that the filter can't": [with_facts(rows[0], filter="sequential"), *rows[1:]],
    }
    for said, changed in forged.items():
        store(ledger, chained_anew(changed))
        assert ledger.verify().problems[0].startswith(said)
        with pytest.raises(Exception, match="is damaged at row"):
            ledger.balance("people")
    lower = [with_facts(rows[0], approximate_share="1/200"), *rows[1:]]
    store(ledger, chained_anew(lower))
    assert ledger.verify().problems[0] == "row 3: it reserves for release r2 what the cap did not allow"
    store(ledger, chained_anew(rows))
    assert ledger.verify().problems == ()
