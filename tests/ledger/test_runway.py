"""How long a cap lasts is what the ledger then does."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.errors import BudgetRefused
from dpsynth.ledger.balance import CapChange, Filter
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.runway import FARTHEST, runway
from tests.monthly import Months


@pytest.fixture
def months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Months:
    return Months(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")).on_its_clock(monkeypatch)


@pytest.mark.parametrize(
    ("kind", "cap"), [(PURE, ("13.86", "0")), (ZCDP, ("1", "1e-6")), (GDP, ("1.1", "1e-6"))]
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
