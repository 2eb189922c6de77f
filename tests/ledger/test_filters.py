"""What a filter counts is at least what any one person is in, and no more than it must be.

The truth is found by asking of every person there could be which releases hold her rows, cell by cell, as the
curator does when it loads a table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import NOTHING, Cost, planned
from dpsynth.accounting.measures import GDP, MEASURES, PURE, ZCDP, Measure
from dpsynth.accounting.slices import Slice
from dpsynth.ledger import filters
from dpsynth.ledger.balance import MOST, Balance, Reservation, first_balance, first_entry
from dpsynth.ledger.filters import Counted, Figures, Filter, bound, figures, together, total_of
from tests.examples import examples
from tests.ledger.reservations import ASK, asking, month

DAY = timedelta(days=1)
START = date(2026, 2, 25)
DAYS = 12
VALUES = ("a", "b", "7", "007", "2026-03-01")
CELLS = [None, *(str(START + i * DAY) for i in range(DAYS)), *VALUES]
CAP = Amount(Fraction(10), Fraction(1, 10**5))


def persons(columns: Sequence[str]) -> Iterator[dict[str, str | None]]:
    """Everyone there could be: a cell in each column, or none."""
    for cells in product(CELLS, repeat=len(columns)):
        yield dict(zip(columns, cells, strict=True))


def is_in(person: dict[str, str | None], part: Slice | None) -> bool:
    """Whether a release holds rows of a person."""
    if part is None:
        return True
    cell = person[part.column]
    return cell is not None and part.holds(cell)


def most_of_any(by: Filter, counted: Sequence[Counted]) -> Figures:
    """The largest sum over the releases that one person is in, figure by figure."""
    columns = sorted({c.part.column for c in counted if c.part is not None})
    sums = []
    for person in persons(columns):
        each = [figures(by, c.cost) for c in counted if is_in(person, c.part)]
        sums.append([sum(f[i] for f in each if f) for i in range(len(bound(by, CAP)))])
    return tuple(Fraction(max(column)) for column in zip(*sums, strict=True))


fractions = st.fractions(min_value=0, max_value=2, max_denominator=16)
costs = st.builds(
    lambda e, d, r, h: Cost(Amount(e, d / 1000), r, h, d / 4000), fractions, fractions, fractions, fractions
)
spans = st.tuples(st.integers(0, DAYS - 1), st.integers(1, 4))


def dated(column: str, span: tuple[int, int]) -> Slice:
    return Slice(column, f"{span}", START + span[0] * DAY, START + (span[0] + span[1]) * DAY)


by_day = st.builds(dated, st.sampled_from(["visited", "paid"]), spans)
by_value = st.builds(Slice, st.sampled_from(["site", "ward"]), st.sampled_from(VALUES))
by_either = st.one_of(
    st.builds(dated, st.just("visited"), spans), st.builds(Slice, st.just("visited"), st.sampled_from(VALUES))
)


def counted(parts: st.SearchStrategy[Slice]) -> st.SearchStrategy[list[Counted]]:
    return st.lists(st.builds(Counted, costs, st.one_of(st.none(), parts)), max_size=7)


@examples(60)
@given(st.sampled_from(MEASURES), st.one_of(counted(by_day), counted(by_value)))
def test_the_total_is_that_of_the_person_with_most(by: Filter, releases: list[Counted]) -> None:
    assert total_of(by, releases) == most_of_any(by, releases)


@examples(60)
@given(st.sampled_from(MEASURES), counted(by_either))
def test_days_and_values_of_one_column_are_never_taken_to_be_apart(
    by: Filter, releases: list[Counted]
) -> None:
    """Whether a value's cell is a day is not asked, so the total may be more than anyone's."""
    assert filters.within(most_of_any(by, releases), total_of(by, releases))


@examples(60)
@given(st.one_of(counted(by_day), counted(by_value)))
def test_every_person_is_in_one_of_the_sets_and_every_set_has_a_person(releases: list[Counted]) -> None:
    parts = [r.part for r in releases]
    sets = [frozenset(one) for one in together(range(len(releases)), parts)]
    columns = sorted({part.column for part in parts if part is not None})
    found = {frozenset(i for i, part in enumerate(parts) if is_in(p, part)) for p in persons(columns)}
    assert {one for one in found if not any(one < other for other in found)} == set(sets)
    assert len(set(sets)) == len(sets)


def test_overlapping_parts_add_up_and_others_do_not() -> None:
    one = Cost(Amount(Fraction(1)), Fraction(1), Fraction(1))

    def total(*labels: str | None) -> Fraction:
        return total_of(ZCDP, [Counted(one, None if t is None else month(t)) for t in labels])[0]

    assert total() == 0
    assert total("2026-01", "2026-02", "2026-03") == 1
    assert total("2026-01", "2026-01") == 2
    assert total("2026-01", "2026-Q1") == 2
    assert total("2026-01", "2026-02", "2026-Q1", "2026") == 3
    # The fifth week of 2026 lies in both months.
    assert total("2026-01", "2026-02", "2026-W05") == 2
    assert total("2026-01", "2026-02", None) == 2
    other = Counted(one, month("2026-02", "paid"))
    assert total_of(ZCDP, [Counted(one, month("2026-01")), other]) == (2, 0)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        # Each part for itself, as if none overlapped.
        ("_most_on_a_day", lambda parts: tuple(map(max, zip(*(spent for _, spent in parts), strict=True)))),
        # "007" is not "7".
        ("value_of", lambda text: text),
        # Two columns, each apart from the other.
        ("_axis", lambda part: ("", part.start is not None)),
    ],
)
def test_a_total_that_leaves_somebody_out_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: object
) -> None:
    """The planted faults."""
    one = Cost(Amount(Fraction(1)), Fraction(1), Fraction(1))
    parts = {
        "_most_on_a_day": (month("2026-02"), month("2026-Q1")),
        "value_of": (Slice("site", "7"), Slice("site", "007")),
        "_axis": (month("2026-02"), month("2026-03", "paid")),
    }[name]
    releases = [Counted(one, part) for part in parts]
    assert total_of(GDP, releases) == most_of_any(GDP, releases) == (2, 0)
    monkeypatch.setattr(filters, name, fault)
    assert not filters.within(most_of_any(GDP, releases), total_of(GDP, releases))


@pytest.mark.parametrize("by", MEASURES)
@pytest.mark.parametrize(
    "cap", [CAP, Amount(Fraction(1, 100), Fraction(1, 10**9)), Amount(Fraction(50), Fraction(1, 10))]
)
def test_what_a_filter_lets_through_keeps_to_the_cap(by: Filter, cap: Amount) -> None:
    most = bound(by, cap)
    if by == PURE:
        assert most == (cap.epsilon, cap.delta)
        return
    assert by.epsilon(most[0], cap.delta) <= cap.epsilon
    # And is not a hair less than it may be.
    assert by.epsilon(most[0] * (1 + Fraction(1, 10**9)), cap.delta) > cap.epsilon


@pytest.mark.parametrize("by", [ZCDP, GDP])
def test_a_cap_of_no_delta_or_no_epsilon_lets_nothing_through(by: Filter) -> None:
    assert bound(by, Amount(Fraction(1))) == bound(by, Amount(Fraction(0), Fraction(1, 2))) == (0, 0)


def account_of(by: Filter, entries: Sequence[Reservation], cap: Amount = CAP) -> Balance:
    """An account in which some releases have reserved."""
    opened = first_balance(replace(ASK, filter=by, cap=cap), date(2026, 1, 1))
    return replace(opened, releases=tuple(first_entry(entry, date(2026, 1, 1)) for entry in entries))


def of_budget(measure: Measure, epsilon: Fraction, delta: Fraction) -> Cost:
    """What a release reserves that asks for (epsilon, delta); Laplace noise where it adds up rho."""
    noise = "laplace" if measure == ZCDP else "gaussian"
    return planned(measure, noise, measure.budget(epsilon, delta or None), Amount(epsilon, delta))


@pytest.mark.parametrize("measure", [PURE, ZCDP, GDP])
@pytest.mark.parametrize("by", MEASURES)
@pytest.mark.parametrize("used", [0, 3, 7])
def test_the_largest_epsilon_fits_and_a_hair_more_does_not(by: Filter, measure: Measure, used: int) -> None:
    delta = Fraction(0) if measure == PURE else Fraction(1, 10**7)
    one = replace(ASK, cost=of_budget(GDP, Fraction(1), Fraction(1, 10**7)))
    account = account_of(by, [one] * used)
    largest = account.largest_epsilon(delta, measure)
    assert largest > 0
    assert account.allows(of_budget(measure, largest, delta))
    assert account.fits(of_budget(measure, largest, delta)) == 1
    assert not account.allows(of_budget(measure, largest * (1 + Fraction(1, 10**6)), delta))


def test_nothing_fits_an_account_that_is_full_or_over_its_cap() -> None:
    half = asking("r1", "0.5")
    for by, cap, share in (
        (PURE, Amount(Fraction(1, 2)), 1.0),
        (PURE, Amount(Fraction(1, 4), Fraction(1, 2)), 2.0),
        (GDP, Amount(Fraction(0), Fraction(1, 2)), inf),
    ):
        account = account_of(by, [half], cap)
        assert account.share_used == share
        assert (
            account.largest_epsilon(Fraction(1, 10), GDP) == account.largest_epsilon(Fraction(0), PURE) == 0
        )
        assert account.fits(half.cost) == 0


def test_what_costs_nothing_fits_as_often_as_anybody_asks() -> None:
    assert account_of(GDP, []).fits(NOTHING) == MOST
    assert account_of(GDP, []).fits(Cost(Amount(), Fraction(1), None)) == 0


def test_an_account_says_what_it_is_worth_rounded_up() -> None:
    third = replace(ASK, cost=of_budget(PURE, Fraction(1, 3), Fraction(0)))
    account = account_of(PURE, [third], Amount(Fraction(1)))
    assert account.epsilon_used == Fraction(1, 3)
    assert Fraction(account.share_used) >= Fraction(1, 3)
    account = account_of(GDP, [replace(ASK, cost=of_budget(GDP, CAP.epsilon, CAP.delta))])
    assert CAP.epsilon * (1 - Fraction(1, 10**9)) < account.epsilon_used <= CAP.epsilon
    assert account.share_used == 1.0


def test_who_may_be_in_a_part_is_in_no_release_of_another() -> None:
    def of(label: str) -> Reservation:
        return asking(label, part=month(label), parallel=True)

    account = account_of(PURE, [of("2026-01"), of("2026-02"), of("2026-Q1"), asking("all")])
    assert [r.release_id for r in account.of_part(month("2026-02")).releases] == ["2026-02", "2026-Q1", "all"]
    assert [r.release_id for r in account.of_part(month("2026-02", "paid")).releases] == [
        r.release_id for r in account.releases
    ]
    assert [[r.release_id for r in one] for one in account.together()] == [
        ["2026-01", "2026-Q1", "all"],
        ["2026-02", "2026-Q1", "all"],
    ]


def test_only_parts_under_add_remove_count_for_themselves() -> None:
    for change in ({"part": None}, {"neighbours": "replace_one"}):
        with pytest.raises(ValueError, match="parts"):
            asking("r1", **{"part": month("2026-01"), "parallel": True, **change})


def test_a_part_within_another_makes_no_set_of_its_own() -> None:
    """A person of the quarter may be in any of its months, so the quarter alone is no set of releases."""
    parts = [month(label) for label in ("2026-01", "2026-02", "2026-Q1", "2026")]
    assert together(range(4), parts) == ((0, 2, 3), (1, 2, 3))
    assert together(range(2), [month("2026-01"), None]) == ((0, 1),)
    # Nobody is in the year alone on its first day, for the year holds the whole of February too.
    assert together(range(2), [month("2026"), month("2026-02")]) == ((0, 1),)


@pytest.mark.parametrize("by", [ZCDP, GDP])
@pytest.mark.parametrize("total", [Fraction(1, 100), Fraction(1), Fraction(2)])
def test_a_total_is_an_epsilon_whatever_stands_beside_it(by: Measure, total: Fraction) -> None:
    delta = Fraction(1, 10**6)
    for beside in (Fraction(0), Fraction(1, 10**7), Fraction(1)):
        assert filters.epsilon_at(by, (total, beside), delta) == by.epsilon(total, delta)
        assert filters.epsilon_at(by, (Fraction(0), beside), delta) == 0


def test_a_release_without_a_figure_for_the_filter_is_an_error_not_nothing() -> None:
    without_mu = Cost(Amount(Fraction(1)), Fraction(1), None)
    assert filters.figures(GDP, without_mu) is None
    with pytest.raises(ValueError, match="no figure"):
        total_of(GDP, [Counted(without_mu)])
