"""A refusal says what was asked, what is left and what can be done, and nothing that doesn't hold."""

from dataclasses import replace
from datetime import date
from fractions import Fraction

import pytest

from dpsynth.accounting.amount import Amount, digits
from dpsynth.accounting.composition import NOTHING, Cost
from dpsynth.accounting.measures import GDP, PURE
from dpsynth.errors import BudgetRefused
from dpsynth.ledger.balance import Balance, CapChange, Reservation, first_balance, first_entry
from dpsynth.ledger.filters import Filter
from dpsynth.ledger.refusals import check_allowed
from tests.ledger.reservations import ASK, HALF, asking, cost, month, seeking, sought_cost

DAY = date(2026, 11, 22)
ALL = Fraction(1, 10**6)
"""The delta of the cap."""


def account(*spent: Reservation, by: Filter = PURE, share: Fraction = Fraction(0)) -> Balance:
    """An account with a cap of epsilon 1, and releases that stand."""
    cap = CapChange(Amount(Fraction(1), ALL), DAY, approximate_share=share)
    empty = replace(first_balance(ASK, DAY), filter=by, caps=(cap,))
    return replace(empty, releases=tuple(first_entry(entry, DAY) for entry in spent))


def refusal(entry: Reservation, before: Balance) -> str:
    with pytest.raises(BudgetRefused) as refused:
        check_allowed(entry, before, "ledger.db", DAY)
    return str(refused.value)


def allowed(entry: Reservation, before: Balance) -> bool:
    check_allowed(entry, before, "ledger.db", DAY)
    return True


def test_a_cap_without_delta_is_one_to_a_filter_that_needs_none() -> None:
    pure = asking("r2", cap=Amount(Fraction(1)))
    assert allowed(pure, account())
    said = refusal(replace(pure, cost=cost("2")), account())
    assert "lets nothing through" not in said and "One of an epsilon up to 1 would still fit." in said
    for asked in (cost("0.1"), NOTHING):
        said = refusal(replace(pure, cost=asked), account(by=GDP))
        assert "The cap's delta is 0, so the filter gdp lets nothing through." in said


def test_a_part_is_named_and_counted_by_itself_only_where_it_is_parallel() -> None:
    one = asking("r1", "0.9", part=month("2026-01"), parallel=True)
    other = replace(one, release_id="r2", part=month("2026-02"))
    assert allowed(other, account(one))
    assert "asks for ε = 1.5, δ = 0 for 2026-02, and" in refusal(
        replace(other, cost=cost("1.5")), account(one)
    )
    assert "asks for ε = 0.9, δ = 0, and" in refusal(replace(other, parallel=False), account(one))


def test_only_a_higher_cap_of_the_configuration_is_said_not_to_raise_the_recorded_one() -> None:
    entry = asking("r2", "1.5")
    assert "doesn't raise" not in refusal(entry, account())
    higher = replace(entry, cap=Amount(Fraction(3), ALL))
    assert "cap of ε = 3, δ = 1e-6 doesn't raise" in refusal(higher, account())
    assert "doesn't raise" not in refusal(replace(higher, cap_declared=False), account())


def test_only_releases_that_have_not_ended_are_said_to_be_resumed() -> None:
    before = account(asking("r1"), asking("r2"), asking("r3"))
    ended = [replace(r, state="closed") if r.release_id != "r2" else r for r in before.releases]
    assert "or given up: r2." in refusal(asking("r4"), replace(before, releases=tuple(ended)).under(Amount()))


def test_a_part_that_the_recorded_cap_allows_is_refused_by_the_configuration_alone() -> None:
    one = asking("r1", "0.9", part=month("2026-01"), parallel=True)
    other = replace(one, release_id="r2", part=month("2026-02"), cap=Amount(HALF, ALL))
    said = refusal(other, account(one))
    assert "raise ledger.cap in this configuration: the recorded cap of ε = 1, δ = 1e-6 allows it" in said


def test_the_epsilon_that_fits_is_that_beside_the_delta_for_finding_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = account(asking("r1", "0.1"), by=GDP, share=HALF)
    entry = replace(seeking("r2", epsilon=Fraction(2), delta=ALL), suits=GDP)
    # All that is kept for finding values may be taken.
    assert before.left[1] == entry.cost.approximate_delta
    asked: list[Fraction] = []
    monkeypatch.setattr(Balance, "largest_epsilon", lambda _, delta, by: asked.append(delta) or HALF)
    assert "One of an epsilon up to 0.5 at δ = 1e-6 would still fit." in refusal(entry, before)
    assert asked == [ALL / 2]


def test_a_lack_of_delta_for_finding_values_is_said() -> None:
    third = Fraction(1, 3 * 10**7)
    before = account(seeking("r1", epsilon=Fraction(1, 10), delta=ALL - 2 * third), by=GDP, share=HALF)
    assert before.left[1] == third
    said = refusal(seeking("r2", epsilon=Fraction(1, 10), delta=4 * third), before)
    assert f"Of the delta that is kept for finding values, {digits(third, up=False)} is left." in said
    assert digits(third, up=False) != digits(third, up=True)
    pure = account(asking("r1", "0.1", ALL - third))
    said = refusal(replace(asking("r2"), cost=sought_cost(HALF, 2 * third, measure=PURE)), pure)
    assert f"Of delta, {digits(third, up=False)} is left." in said


@pytest.mark.parametrize(
    ("before", "left"),
    [
        (account(asking("r1", "1", ALL / 2)), "Nothing is left."),
        (account(asking("r1", "0.5", ALL / 2)), "Of delta, 5e-7 is left."),
        (account(asking("r1", "0.5", ALL)).under(Amount(Fraction(1), ALL / 2)), "Nothing is left."),
        (account(asking("r1", "1", ALL)).under(Amount(HALF, ALL * 2)), "Nothing is left."),
    ],
    ids=["no epsilon", "no delta", "a delta above the cap", "an epsilon above the cap"],
)
def test_what_is_left_is_said(before: Balance, left: str) -> None:
    assert left in refusal(asking("r2", "0.6", ALL, cap_declared=False), before)


def test_a_filter_that_needs_a_delta_says_nothing_of_one_that_is_left() -> None:
    """A release whose whole delta is for finding values has none for its noise."""
    entry = replace(seeking("r1"), suits=GDP, cost=Cost(Amount(Fraction(2), ALL / 4), HALF, HALF, ALL / 4))
    assert "Nothing is left." in refusal(entry, account(by=GDP, share=HALF))
