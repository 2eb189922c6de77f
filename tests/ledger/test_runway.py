"""How long a cap lasts is what the ledger then does."""

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.accounting.slices import Slice
from dpsynth.errors import BudgetRefused
from dpsynth.ledger.balance import (
    FARTHEST,
    Balance,
    CapChange,
    Filter,
    ReleaseEntry,
    Runway,
    first_balance,
    first_entry,
    runway,
)
from dpsynth.ledger.ledger import Ledger
from tests.ledger.reservations import ASK, asking, cost, month
from tests.monthly import Months
from tests.thinned import some


@pytest.fixture
def months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Months:
    return Months(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")).on_its_clock(monkeypatch)


@pytest.mark.parametrize(
    ("kind", "cap"), some([(PURE, ("13.86", "0")), (ZCDP, ("1", "1e-6")), (GDP, ("1.1", "1e-6"))], 1)
)
def test_as_many_more_releases_fit_as_it_says(months: Months, kind: Filter, cap: tuple[str, str]) -> None:
    months.filter, months.cap, months.epsilon = kind, cap, "0.7"
    months.release(0, 1)
    road = runway(months.account, months.today)
    assert road is not None
    # Planted faults: to go by what the last reserved alone, or by what it was charged alone.
    assert months.account.fits(road.like.reserved) < road.fits
    if kind == PURE:
        assert road.fits < months.account.fits(road.like.cost)
    months.release(*range(2, 2 + road.fits))
    with pytest.raises(BudgetRefused):
        months.reserve(2 + road.fits)
    after = runway(months.account, months.today)
    assert after is not None and after.fits == 0 and after.last is None


def test_the_last_that_fits_and_the_first_refused_are_due_at_the_pace_so_far(months: Months) -> None:
    months.filter, months.cap = PURE, ("6", "0")
    months.release(0, 1, 2)
    road = runway(months.account, months.today)
    assert road is not None and road.every is not None and road.last is not None
    assert 28 <= road.every <= 31
    assert road.last == months.today + timedelta(days=road.fits * road.every)
    assert road.refused is not None and road.refused > road.last
    assert len(road.due) == road.fits + 1


def test_nothing_is_due_before_today(months: Months) -> None:
    months.release(0, 1)
    later = date(2030, 1, 1)
    road = runway(months.account, later)
    assert road is not None and road.due[0] == later


def test_a_schedule_says_when_instead_of_the_pace(months: Months) -> None:
    months.filter, months.cap = PURE, ("4", "0")
    months.release(0)
    days = [date(2027, 1, 1) + timedelta(days=7 * i) for i in range(50)]
    road = runway(months.account, months.today, lambda count: days[:count])
    assert road is not None and road.every is None
    assert road.last == days[road.fits - 1] and road.refused == days[road.fits]


def test_one_release_has_no_pace_and_many_have_no_date_too_far_off(months: Months) -> None:
    months.release(0)
    road = runway(months.account, months.today)
    assert road is not None and road.due == () and road.refused is None
    months.release(1)
    wide = CapChange(Amount(Fraction(500), Fraction(1, 10**6)), months.today)
    road = runway(replace(months.account, caps=(wide,)), months.today)
    assert road is not None and road.fits > FARTHEST == len(road.due)
    assert road.last is None and road.refused is None


def test_dates_past_the_end_of_the_calendar_are_left_out(months: Months) -> None:
    months.release(0)
    (entry,) = months.account.releases
    last = replace(entry, created=date(9999, 6, 1))
    account = replace(months.account, releases=(entry, last))
    road = runway(account, date(2026, 3, 1))
    assert road is not None and road.due == ()


def test_further_parts_cost_nothing_more_as_the_ledger_counts_them(months: Months) -> None:
    months.parallel = True
    months.release(0, 1)
    road = runway(months.account, months.today)
    assert road is not None and road.disjoint
    used = months.account.share_used
    months.release(2, 3, 4)
    assert months.account.share_used == used
    # The planted fault: releases of the same rows do cost more.
    months.reserve(4, occasion="a correction of 2026-05")
    assert months.account.share_used > used


def test_further_parts_do_not_fit_where_another_release_has_used_up_the_cap(months: Months) -> None:
    months.parallel, months.filter, months.cap = True, PURE, ("2", "0")
    months.release(0)
    months.parallel, months.epsilon = False, "1.05"
    months.reserve(1)
    months.parallel, months.epsilon = True, "1"
    like = months.account.releases[0]
    account = replace(months.account, releases=(*months.account.releases[1:], like))
    road = runway(account, months.today)
    assert road is not None and not road.disjoint
    with pytest.raises(BudgetRefused):
        months.reserve(2)


def test_what_counts_for_nothing_sets_no_pace(months: Months) -> None:
    months.abandon(months.reserve(0))
    assert runway(months.account, months.today) is None


TODAY = date(2026, 11, 22)
ENTRY = first_entry(asking("r1"), TODAY)


def road(fits: int, *due: date) -> Runway:
    return Runway(ENTRY, fits, False, None, due)


def test_the_last_date_is_that_of_the_last_that_fits_and_the_next_is_refused() -> None:
    days = [TODAY + timedelta(days=i) for i in range(3)]
    assert (road(0, *days).last, road(0, *days).refused) == (None, days[0])
    assert (road(1, *days).last, road(1, *days).refused) == (days[0], days[1])
    assert (road(3, *days).last, road(3, *days).refused) == (days[2], None)
    assert (road(4, *days).last, road(4, *days).refused) == (None, None)


def account_of(*releases: ReleaseEntry, cap: str = "1") -> Balance:
    """An account of pure releases."""
    whole = CapChange(Amount(Fraction(cap), Fraction(1, 10**6)), TODAY)
    return replace(first_balance(ASK, TODAY), caps=(whole,), releases=releases)


def on(*days: date) -> list[ReleaseEntry]:
    return [replace(ENTRY, created=day) for day in days]


def test_a_release_of_no_epsilon_sets_no_pace() -> None:
    assert runway(account_of(replace(ENTRY, reserved=cost("0"), cost=cost("0"))), TODAY) is None


@pytest.mark.parametrize(("cap", "fits"), [("0.19", 0), ("0.2", 1), ("0.3", 2)])
def test_the_last_that_fits_may_take_all_that_is_left(cap: str, fits: int) -> None:
    found = runway(account_of(ENTRY, cap=cap), TODAY)
    assert found is not None and found.fits == fits


def test_the_pace_is_that_of_the_last_dozen() -> None:
    early, first = [date(2020, 1, 1) + timedelta(days=i) for i in (0, 100)]
    later = [first + timedelta(days=12 + 10 * i) for i in range(1, 13)]
    found = runway(account_of(*on(early, first, *later), cap="10"), TODAY)
    assert found is not None and found.every == 11.0
    found = runway(account_of(*on(early, early + timedelta(days=1)), cap="10"), TODAY)
    assert found is not None and found.every == 1.0
    found = runway(account_of(*on(date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 11)), cap="10"), TODAY)
    assert found is not None and found.every == 5.0


def test_the_last_day_of_the_calendar_is_a_day() -> None:
    end = date.max - timedelta(days=20)
    found = runway(account_of(*on(end - timedelta(days=10), end), cap="0.5"), TODAY)
    assert found is not None and found.fits == 3
    assert found.due == (date.max - timedelta(days=10), date.max)


MARCH, APRIL = month("2026-03"), month("2026-04")
WEST, FAR_WEST = Slice("region", "west"), Slice("region", "west~")
AT_THE_END = Slice("visited", "9999", date(9999, 1, 1), date.max)
ALL_IN_PARTS = replace(ENTRY, parallel=True)


@pytest.mark.parametrize(
    ("parts", "disjoint"),
    [
        ([MARCH], True),
        ([APRIL, MARCH], True),
        ([WEST], True),
        ([FAR_WEST, WEST], True),
        ([AT_THE_END], False),
        ([AT_THE_END, MARCH], False),
    ],
    ids=["a month", "months", "a value", "values", "the end", "up to the end"],
)
def test_a_new_part_lies_beyond_all_earlier_ones(parts: list[Slice], disjoint: bool) -> None:
    """Each part fills the cap, so another that overlaps with any of them doesn't fit."""
    releases = [replace(ALL_IN_PARTS, part=part) for part in parts]
    found = runway(account_of(*releases, cap="0.1"), TODAY)
    assert found is not None and (found.fits, found.disjoint) == (0, disjoint)


@pytest.mark.parametrize(
    ("parts", "disjoint"), [([MARCH, None], True), ([MARCH, WEST], True), ([WEST, None], True)]
)
def test_a_release_of_the_whole_table_or_by_another_column_counts_for_every_part(parts, disjoint) -> None:
    *others, last = [replace(ALL_IN_PARTS, part=part, parallel=part is not None) for part in parts[::-1]]
    for cap, fits in (("0.2", disjoint), ("0.19", False)):
        found = runway(account_of(*others, last, cap=cap), TODAY)
        assert found is not None and found.disjoint == fits
