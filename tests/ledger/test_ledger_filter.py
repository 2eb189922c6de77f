"""Whatever is asked in whatever order, no person's releases ever reserve more than the cap allows."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost, planned
from dpsynth.accounting.measures import GDP, MEASURES, PURE, ZCDP
from dpsynth.errors import BudgetRefused
from dpsynth.ledger import filters
from dpsynth.ledger.balance import Balance, Reservation, first_entry
from dpsynth.ledger.filters import Figures, Filter, bound, figures, within
from dpsynth.ledger.ledger import Ledger
from tests.examples import examples
from tests.ledger.reservations import ASK, account, month

CAP = Amount(Fraction(4), Fraction(1, 10**4))
LABELS = (None, "2026-01", "2026-02", "2026-03", "2026-Q1", "2026-W05", "2026")
DAYS = ("2026-01-10", "2026-01-31", "2026-02-01", "2026-02-20", "2026-03-05", "2026-06-01")

asks = st.tuples(st.just("ask"), st.sampled_from(LABELS), st.integers(1, 60), st.booleans())
ends = st.tuples(st.sampled_from(["settle", "abandon"]), st.integers(0, 9), st.integers(0, 4))
caps = st.tuples(st.just("cap"), st.sampled_from([1, 2, 4, 6]))


def release(number: int, by: Filter, label: str | None, size: int, parallel: bool) -> Reservation:
    epsilon, delta = Fraction(size, 20), Fraction(1, 10**6)
    part = None if label is None else month(label)
    return replace(
        ASK,
        release_id=f"r{number}",
        cap=Amount(Fraction(100), Fraction(1, 2)) if number else CAP,
        filter=by,
        cost=planned(GDP, "gaussian", GDP.budget(epsilon, delta), Amount(epsilon, delta)),
        part=part,
        parallel=parallel and part is not None,
    )


def most_of_anyone(balance: Balance) -> Figures:
    """The largest sum over the releases that hold somebody's rows, by the days that matter."""
    sums: list[list[Fraction]] = []
    for day in DAYS:
        held = [r for r in balance.releases if not r.parallel or (r.part is not None and r.part.holds(day))]
        each = [figures(balance.filter, r.cost) for r in held]
        sums.append(
            [sum((f[i] for f in each if f), Fraction(0)) for i in range(len(bound(balance.filter, CAP)))]
        )
    return tuple(map(max, zip(*sums, strict=True)))


def scaled(whole: Cost, share: Fraction) -> Cost:
    assert whole.half_mu_squared is not None
    amount = Amount(whole.amount.epsilon * share, whole.amount.delta * share)
    return Cost(amount, whole.rho * share, whole.half_mu_squared * share)


def keep_to_the_cap(by: Filter, actions: Sequence[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"sqlite:///{Path(folder) / 'ledger.db'}")
        ledger.reserve(release(0, by, None, 1, False))
        for number, action in enumerate(actions, start=1):
            before = account(ledger)
            if action[0] == "ask":
                wanted = release(number, by, *action[1:])
                try:
                    ledger.reserve(wanted)
                except BudgetRefused:
                    assert account(ledger) == before
                    refused = replace(before, releases=(*before.releases, first_entry(wanted, before.opened)))
                    assert not within(most_of_anyone(refused), bound(by, before.cap))
                else:
                    assert within(most_of_anyone(account(ledger)), bound(by, before.cap))
            elif action[0] == "cap":
                ledger.change_cap("people", Amount(Fraction(action[1]), CAP.delta), "a test")
            elif (entry := ledger.release(f"r{action[1]}")) is not None and entry.state == "reserved":
                end = ledger.settle if action[0] == "settle" else ledger.abandon
                end(entry.release_id, scaled(entry.cost, Fraction(action[2], 4)), [])
        assert ledger.verify().problems == ()
        for r in account(ledger).releases:
            assert r.cost.within(r.reserved)


@examples(25)
@given(st.sampled_from(MEASURES), st.lists(st.one_of(asks, asks, ends, caps), max_size=9))
def test_no_sequence_of_asks_passes_the_cap_and_none_is_refused_that_fits(
    by: Filter, actions: list[tuple[Any, ...]]
) -> None:
    keep_to_the_cap(by, actions)


@pytest.mark.slow
@settings(max_examples=1000)
@given(st.sampled_from(MEASURES), st.lists(st.one_of(asks, asks, ends, caps), max_size=25))
def test_no_long_sequence_of_asks_passes_the_cap_and_none_is_refused_that_fits(
    by: Filter, actions: list[tuple[Any, ...]]
) -> None:
    keep_to_the_cap(by, actions)


def test_a_filter_that_takes_parts_that_overlap_for_apart_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault."""
    asked = [("ask", "2026-01", 50, True), ("ask", "2026-Q1", 50, True), ("ask", "2026", 50, True)]
    keep_to_the_cap(GDP, asked)
    apart = lambda parts: tuple(map(max, zip(*(spent for _, spent in parts), strict=True)))  # noqa: E731
    monkeypatch.setattr(filters, "_most_on_a_day", apart)
    with pytest.raises(AssertionError):
        keep_to_the_cap(GDP, [*asked, *asked])


def monthly(number: int, by: Filter, cap: Amount) -> Reservation:
    """One of many like it: Gaussian noise at (1, 1e-8)."""
    epsilon, delta = Fraction(1), Fraction(1, 10**8)
    return replace(
        ASK,
        release_id=f"r{number}",
        cap=cap,
        filter=by,
        cost=planned(GDP, "gaussian", GDP.budget(epsilon, delta), Amount(epsilon, delta)),
        occasion=f"month {number}",
    )


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_ten_years_of_months_fit_under_gaussian_dp_where_eleven_fit_in_sequence(database: str) -> None:
    cap = Amount(Fraction(11), Fraction(1, 10**5))
    ledger = Ledger(database)
    for number in range(121):
        ledger.reserve(monthly(number, GDP, cap))
    with pytest.raises(
        BudgetRefused, match=r"comes to ε = 10\.9759, .* up to 0\.102397 at δ = 1e-8 would still fit"
    ):
        ledger.reserve(monthly(121, GDP, cap))
    one, gdp = monthly(0, GDP, cap), account(ledger)
    assert {by: replace(gdp, filter=by, releases=()).fits(one.cost) for by in MEASURES} == {
        PURE: 11,
        ZCDP: 108,
        GDP: 121,
    }
