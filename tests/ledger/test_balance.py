"""An account by itself, without a ledger: its figures at their limits."""

from dataclasses import MISSING, fields, replace
from datetime import date
from fractions import Fraction

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost
from dpsynth.accounting.measures import GDP, PURE, ZCDP
from dpsynth.ledger import filters as privacy_filter
from dpsynth.ledger.balance import CapChange, Reservation, first_balance, first_entry
from tests.ledger.reservations import ASK, asking, cost, sought_cost

DAY = date(2026, 11, 22)
DELTA = Fraction(1, 10**6)
EMPTY = first_balance(ASK, DAY)


def test_a_bare_request_is_about_the_whole_table_under_the_cap_that_it_states() -> None:
    given = {f.name: getattr(ASK, f.name) for f in fields(Reservation) if f.default is MISSING}
    bare = Reservation(**given)  # type: ignore[arg-type]
    assert not bare.parallel and bare.cap_declared
    assert CapChange(ASK.cap, DAY).approximate_share == 0


@pytest.mark.parametrize("delta", [Fraction(1), Fraction(3, 2)])
def test_the_delta_of_a_cap_is_below_1(delta: Fraction) -> None:
    with pytest.raises(ValueError, match="below 1"):
        replace(ASK, cap=Amount(Fraction(1), delta))


def test_an_account_keeps_a_half_of_its_delta_for_approximate_deltas_at_most() -> None:
    assert replace(ASK, cost=sought_cost(share=Fraction(9, 10))).approximate_share == Fraction(1, 2)
    assert replace(ASK, cost=sought_cost(share=Fraction(1, 10))).approximate_share == Fraction(1, 10)
    assert asking("r1", "1", "0").approximate_share == 0


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 4)])
def test_the_epsilon_used_is_that_at_the_delta_that_is_left_beside_the_approximate_ones(share) -> None:
    account = replace(
        EMPTY,
        filter=ZCDP,
        caps=(CapChange(Amount(Fraction(3), DELTA), DAY, approximate_share=share),),
        releases=(first_entry(replace(ASK, cost=sought_cost(measure=ZCDP, share=Fraction(0))), DAY),),
    )
    expected = ZCDP.epsilon(account.releases[0].cost.rho, DELTA * (1 - share))
    assert account.epsilon_used == expected
    assert account.delta_used == DELTA * (1 - share)


def test_a_release_that_the_filter_has_no_figure_for_does_not_fit() -> None:
    unbounded = Cost(Amount(Fraction(1, 100), DELTA / 10), Fraction(1, 10**6), None)
    by_mu = replace(EMPTY, filter=GDP)
    assert privacy_filter.figures(GDP, unbounded) is None
    assert not by_mu.allows(unbounded) and by_mu.fits(unbounded) == 0


def test_the_whole_of_what_is_left_may_be_asked_for_and_no_more() -> None:
    account = replace(EMPTY, caps=(CapChange(Amount(Fraction(1), DELTA), DAY),))
    assert account.largest_epsilon(DELTA, PURE) == 1
    assert account.largest_epsilon(DELTA * 2, PURE) == 0
    spent = replace(account, releases=(first_entry(replace(ASK, cost=cost("1/4", DELTA / 2)), DAY),))
    assert spent.largest_epsilon(DELTA / 2, PURE) == Fraction(3, 4)


class Loose(type(ZCDP)):  # type: ignore[misc]
    """zCDP whose way from a budget to an epsilon is a hair too generous."""

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        return super().epsilon(total, delta) * (1 + Fraction(1, 1 << 40))


@pytest.mark.parametrize("cap", [Fraction(1, 2), Fraction(3)])
def test_the_largest_epsilon_is_lowered_until_its_release_fits(cap: Fraction) -> None:
    account = replace(EMPTY, filter=ZCDP, caps=(CapChange(Amount(cap, DELTA), DAY),))
    (left,) = account.left[:1]
    for measure in (ZCDP, Loose()):
        found = account.largest_epsilon(DELTA, measure)
        assert ZCDP.budget(found, DELTA) <= left
        assert cap * (1 - Fraction(1, 1 << 35)) <= found <= cap
