"""The sentences about an account say what its figures say, at their limits too."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial

import pytest

from dpsynth.accounting.amount import Amount, digits
from dpsynth.accounting.composition import Cost
from dpsynth.accounting.events import LOCAL_REPORTS
from dpsynth.accounting.measures import GDP, PURE
from dpsynth.ledger import views
from dpsynth.ledger.balance import Balance, CapChange, ReleaseEntry, Runway, first_balance, first_entry
from dpsynth.ledger.views import AccountView, Composed, Statement, runway_in_words
from tests.ledger.reservations import ASK, EVENTS, HALF, asking, month, sought_cost

DAY = date(2026, 11, 22)
ALL = Fraction(1, 10**6)
"""The delta of the cap."""

OPEN = first_entry(asking("r1", "0.2"), DAY)
CLOSED = replace(OPEN, release_id="r2", state="closed", events=tuple(EVENTS))


def account(*releases: ReleaseEntry, share: Fraction | None = None) -> Balance:
    """An account with a cap of epsilon 1: of sums, or of Gaussian DP with a share for finding values."""
    cap = CapChange(Amount(Fraction(1), ALL), DAY, approximate_share=share or Fraction(0))
    kind = PURE if share is None else GDP
    return replace(first_balance(ASK, DAY), filter=kind, caps=(cap,), releases=releases)


def runway(before: Balance, *, fits: int, like: ReleaseEntry = OPEN, **more: object) -> str:
    """The sentences about a forecast."""
    terms: dict[str, object] = {"disjoint": False, "every": 30.0, "due": (), **more}
    forecast = Runway(like, fits, **terms)  # type: ignore[arg-type]
    return " ".join(runway_in_words(AccountView(before, (), 0.0, (), forecast)))


def stated(composed: Sequence[Sequence[Composed]], delta: Fraction) -> tuple[Statement, ...]:
    """One accountant in place of all."""
    return (Statement("gdp", "GDP", 0.5, float(delta), True, f"{composed}"),)


account_view = partial(views.account_view, accountants=stated)


def test_what_has_not_ended_is_told_apart() -> None:
    view = account_view(account(OPEN, CLOSED, replace(CLOSED, release_id="r3", state="abandoned")), DAY)
    assert view.unfinished == (OPEN,)
    assert [line.so_far for line in view.lines] == pytest.approx([0.2, 0.4, 0.6])
    assert view.settled == pytest.approx(0.4)
    assert ", unfinished ones in full, are" in views.guarantee_in_words(view)
    assert "unfinished" not in views.guarantee_in_words(account_view(account(CLOSED), DAY))
    assert views.guarantee_in_words(account_view(account(), DAY)) == "Nothing has been released."


def test_reports_of_respondents_are_counted_by_their_cost_alone() -> None:
    told = replace(CLOSED, events=({"mechanism": LOCAL_REPORTS, "reports": 9}, *EVENTS))
    view = account_view(account(told), DAY)
    assert view.statements == account_view(account(CLOSED), DAY).statements
    assert view.statements[0].why.count("LaplaceEvent(") == 1
    assert view.lines[0].asked == ((LOCAL_REPORTS, 1), ("discrete Laplace", 1))


def test_small_shares_are_said_to_be_small() -> None:
    assert [views.share_in_words(s) for s in (0.0, 9e-5, 1e-4)] == ["0 %", "< 0.01 %", "0.01 %"]


def test_the_tables_of_an_account_and_the_reasons_for_another_are_said() -> None:
    named = replace(OPEN, source="/srv/a.csv", other_people="the other clinic")
    assert list(views.sources_in_words(account(OPEN))) == []
    assert list(views.sources_in_words(account(named, OPEN, named))) == [
        "Released tables: /srv/a.csv.",
        "Declared to be about other people than another dataset of the same table: the other clinic",
    ]


def test_the_audiences_of_a_release_are_said() -> None:
    two = replace(OPEN, audiences=(("staff", Fraction(1, 2)), ("all", Fraction(1, 10))))
    (sentence,) = views.audiences_in_words(account(OPEN, two))
    assert "Release r1 has bundles for staff (ε = 0.5), all (ε = 0.1):" in sentence


def test_a_filter_says_what_it_adds_up_and_the_bound_rounded_down() -> None:
    assert "The ε of all releases are added up" in views.cap_in_words(account())
    whole = account(share=Fraction(0))
    assert f"room for {whole.filter.symbol} = {digits(whole.bound[0], up=False)};" in views.cap_in_words(
        whole
    )
    assert digits(whole.bound[0], up=False) != digits(whole.bound[0], up=True)
    third = Fraction(1, 3)
    used = replace(OPEN, cost=sought_cost(Fraction(1, 10), ALL / 7, HALF))
    kept = account(used, share=third)
    assert (
        f"Of the cap's δ, {digits(ALL / 3, up=False)} is kept for finding values, and "
        f"{digits(ALL / 14, up=True)} of that is used."
    ) in views.cap_in_words(kept)
    assert f" = {digits(kept.bound[0], up=False)}. A release" in views.cap_in_words(kept)


def test_a_statement_is_rounded_up() -> None:
    assert views.delta_of(Statement("gdp", "GDP", None, 1.23456789e-7, True, "")) == digits(
        Fraction("1.23456789e-7"), up=True
    )


def test_where_nothing_fits_the_lack_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    seeking = replace(OPEN, reserved=sought_cost(Fraction(9, 10), ALL / 2, HALF))
    like_it = replace(seeking, cost=seeking.reserved)
    assert account(like_it, share=Fraction(1, 3)).left[1] == ALL / 12
    said = runway(account(like_it, share=Fraction(1, 3)), fits=0, like=like_it)
    assert f"it takes 2.5e-7, and {digits(ALL / 12, up=False)} is left." in said
    # As much is left as it takes, so that it is the rest that lacks.
    exact = account(like_it, share=HALF)
    assert exact.left[1] == seeking.reserved.approximate_delta
    asked: list[Fraction] = []
    monkeypatch.setattr(
        Balance, "largest_epsilon", lambda _, delta, by: asked.append(delta) or Fraction(1, 3)
    )
    assert "one of at most ε = 0.333333 does." in runway(exact, fits=0, like=like_it)
    assert asked == [ALL / 4]
    pure = replace(OPEN, reserved=Cost(Amount(HALF, ALL), HALF, HALF, ALL / 2))
    runway(account(replace(pure, cost=pure.reserved)), fits=0, like=pure)
    assert asked[1:] == [ALL]


def test_what_fits_is_dated() -> None:
    days = tuple(date(2027, month, 1) for month in (1, 2, 3))
    one = runway(account(OPEN), fits=1, due=days[:2])
    assert one.startswith("1 more release like the last one (ε = 0.2, δ = 0 reserved) fits; at the present")
    assert one.endswith(
        "one every 30 days, the last is due on 2027-01-01 and the first to be refused on 2027-02-01."
    )
    assert " 3 more releases like" in " " + runway(account(OPEN), fits=3) and " fit." in runway(
        account(OPEN), fits=3
    )
    assert runway(account(OPEN), fits=3, due=days).endswith("the last is due on 2027-03-01.")
    assert runway(account(OPEN), fits=9, due=days).endswith("that lasts beyond 2027-03-01.")
    assert "by the config's calendar" in runway(account(OPEN), fits=9, due=days, every=None)
    assert "one a day," in runway(account(OPEN), fits=9, due=days, every=1.0)
    assert "one every 1.5 days," in runway(account(OPEN), fits=9, due=days, every=1.5)
    assert "nothing to go by" in " ".join(runway_in_words(account_view(account(), DAY)))


def test_parts_that_add_nothing_are_said_first() -> None:
    part = replace(OPEN, part=month("2026-01"), parallel=True)
    said = runway(account(part), fits=2, disjoint=True, like=part, due=(DAY,) * 3)
    assert said.endswith(
        "Of parts that were released before: 2 more releases like the last one (ε = 0.2, δ = 0 reserved) fit."
    )
