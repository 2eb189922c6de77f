"""An account that protected rows goes on protecting persons, and says of what came before only what holds."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth.accounting import composition
from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost, planned
from dpsynth.accounting.measures import GDP, PURE, ZCDP, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.errors import BudgetRefused, ConfigError
from dpsynth.ledger import balance as balances
from dpsynth.ledger.balance import Reservation
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.views import account_view, facts, guarantee_in_words, unit_change_in_words
from tests.ledger.forging import chained_anew, store
from tests.ledger.reservations import EVENTS, account, asking, cost, month, seeking

DELTA = Fraction(1, 10**6)
PERSONS = Neighbours("add_remove", "who", 4)
WHY = "One form a quarter, of one year"


@pytest.fixture
def ledger(database: str) -> Ledger:
    return Ledger(database)


@pytest.fixture
def quick(tmp_path: Path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")


def of(measure: Measure, release_id: str, epsilon: str = "0.1", **other: object) -> Reservation:
    """A release whose account adds up by a measure, under a large cap."""
    noise = "laplace" if measure == PURE else "gaussian"
    amount = Amount(Fraction(epsilon), Fraction(0) if measure == PURE else DELTA)
    price = planned(measure, noise, measure.budget(amount.epsilon, DELTA), amount)
    cap = Amount(Fraction(100), Fraction(1, 10**5))
    asked = replace(asking(release_id), filter=measure, cost=price, cap=cap)
    return replace(asked, **other)  # type: ignore[arg-type]


def released(ledger: Ledger, *asked: Reservation) -> None:
    for one in asked:
        ledger.reserve(one)
        ledger.settle(one.release_id, one.cost, EVENTS)


@pytest.mark.parametrize("measure", [PURE, ZCDP, GDP], ids=["sequential", "zcdp", "gdp"])
def test_releases_of_rows_count_as_a_change_of_all_rows_of_a_person(quick: Ledger, measure: Measure) -> None:
    released(quick, of(measure, "r1"), of(measure, "r2"))
    before = account(quick)
    after = quick.change_unit("people", PERSONS, 4, WHY)
    assert (after.unit, before.unit) == (PERSONS.unit, "one row")
    price = of(measure, "r1").cost
    single = {"sequential": price.epsilon, "zcdp": price.rho, "gdp": price.half_mu_squared}
    loss = single[measure.accountant]
    assert loss is not None
    # Epsilon grows by the rows, rho and mu squared by their square.
    factor = 4 if measure == PURE else 16
    assert after.bound[0] - after.left[0] == 2 * factor * loss
    assert before.bound[0] - before.left[0] == 2 * loss
    # A release of persons costs what it costs.
    quick.reserve(of(measure, "r3", unit=PERSONS.unit))
    assert account(quick).bound[0] - account(quick).left[0] == (2 * factor + 1) * loss
    assert quick.verify().problems == ()


def test_a_ledger_that_counts_rows_on_as_persons_is_caught(
    quick: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a release of rows costs a person what it costs a row."""
    monkeypatch.setattr(balances, "group_cost", lambda cost, units: cost)
    with pytest.raises(AssertionError):
        test_releases_of_rows_count_as_a_change_of_all_rows_of_a_person(quick, GDP)


def test_a_change_may_come_to_more_than_the_cap_and_then_everything_is_refused(ledger: Ledger) -> None:
    released(ledger, *(asking(f"r{i}", "0.2") for i in range(4)))
    assert account(ledger).share_used == pytest.approx(0.8)
    assert ledger.change_unit("people", PERSONS, 4, WHY).share_used == pytest.approx(3.2)
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r9", "0.01", unit=PERSONS.unit))
    assert ledger.verify().problems == ()


def test_parts_that_were_disjoint_for_rows_are_not_for_persons(quick: Ledger) -> None:
    months = [{"part": month(f"2026-0{i}"), "parallel": True, "occasion": f"m{i}"} for i in range(1, 6)]
    released(quick, *(asking(f"r{i}", **part) for i, part in enumerate(months)))
    assert account(quick).epsilon_used == Fraction(1, 10)
    persons = replace(PERSONS, max_rows=1)
    assert quick.change_unit("people", persons, 1, WHY).epsilon_used == Fraction(5, 10)
    # Those of persons are again, where that is declared.
    later = [{"part": month(f"2027-0{i}"), "parallel": True, "occasion": f"n{i}"} for i in (1, 2)]
    released(quick, *(asking(f"p{i}", unit=persons.unit, **part) for i, part in enumerate(later)))
    assert account(quick).epsilon_used == Fraction(6, 10)
    assert quick.verify().problems == ()


def little(release: Reservation) -> Cost:
    """The cost of its first answers, of which the ledger has the reserved (epsilon, delta)."""
    half = release.cost.half_mu_squared
    assert half is not None
    return replace(release.cost, rho=release.cost.rho / 100, half_mu_squared=half / 100)


def test_a_release_that_ended_early_counts_for_persons_at_what_it_reserved(quick: Ledger) -> None:
    """The epsilon of its answers so far would hold only for an end that was fixed beforehand."""
    asked = of(GDP, "r1", filter=PURE)
    quick.reserve(asked)
    quick.abandon("r1", little(asked), EVENTS)
    (entry,) = quick.change_unit("people", PERSONS, 4, WHY).releases
    grown = composition.group_cost(asked.cost, 4)
    assert entry.cost_of_unit is not None and grown is not None
    assert entry.cost_of_unit.amount == grown.amount
    # Rho adds up answer by answer.
    assert entry.cost_of_unit.rho == 16 * asked.cost.rho / 100
    tempting = composition.group_cost(little(asked), 4)
    assert tempting is not None and tempting.amount.epsilon < grown.amount.epsilon / 2


def test_where_nobody_knows_how_many_rows_nothing_is_claimed_for_persons(quick: Ledger) -> None:
    released(quick, asking("r1", "0.2"))
    after = quick.change_unit("people", PERSONS, None, "patients were never counted")
    assert after.epsilon_used == Fraction(1, 5) and after.of_unit.releases == ()
    released(quick, asking("r2", "0.3", unit=PERSONS.unit))
    found = account(quick)
    said = " ".join(unit_change_in_words(found))
    assert "protect one row: 1 release, together ε = 0.2" in said
    assert "nothing bounds what they tell of one person: all rows with the same who" in said
    assert "2 rows ε = 0.4, δ = 0; 5 rows ε = 1, δ = 0; 20 rows ε = 4, δ = 0" in said
    view = account_view(found, date(2030, 1, 1))
    assert guarantee_in_words(view).startswith(
        f"Releases since {found.changed and found.changed.created} together are ε = 0.3"
    )
    told = facts(view)
    assert told["unit_changed"]["most_rows"] is None  # type: ignore[index]
    assert [r["epsilon_of_unit"] for r in told["releases"]] == [None, pytest.approx(0.3)]  # type: ignore[attr-defined, index]
    assert [r["unit"] for r in told["releases"]] == ["one row", PERSONS.unit]  # type: ignore[attr-defined, index]


def test_what_is_said_of_a_known_number_of_rows(quick: Ledger) -> None:
    released(quick, asking("r1", "0.2"))
    after = quick.change_unit("people", PERSONS, 4, WHY)
    (said,) = unit_change_in_words(after)
    assert (
        "nobody has more than 4 rows in any of them, so by group privacy they come to ε = 0.8, δ = 0" in said
    )
    assert guarantee_in_words(account_view(after, date(2030, 1, 1))).startswith(
        "All releases together are ε = 0.8"
    )


def test_a_release_that_finds_values_may_promise_nothing_for_many_rows(quick: Ledger) -> None:
    released(quick, seeking("r1"))
    few = quick.change_unit("people", PERSONS, 4, WHY)
    grown = composition.group_cost(seeking("r1").cost, 4)
    assert grown is not None and few.releases[0].cost_of_unit == grown
    assert "come to ε =" in unit_change_in_words(few)[0]


def test_a_group_too_large_for_any_delta_is_not_bounded(quick: Ledger) -> None:
    released(quick, seeking("r1"))
    found = quick.change_unit("people", Neighbours("add_remove", "who", 50), 50, WHY)
    assert found.releases[0].cost_of_unit is None and found.of_unit.releases == ()
    assert "no bound that says anything" in unit_change_in_words(found)[0]


Refusal = tuple[Callable[[Ledger], object], str]
REFUSALS: dict[str, Refusal] = {
    "no persons": (
        lambda book: book.change_unit("people", Neighbours("add_remove"), 4, WHY),
        "Write the persons as privacy.unit",
    ),
    "another relation": (
        lambda book: book.change_unit("people", Neighbours("replace_one", "who", 4), 4, WHY),
        "keep the neighbours",
    ),
    "no reason": (lambda book: book.change_unit("people", PERSONS, 4, " "), "takes a reason"),
    "no rows": (lambda book: book.change_unit("people", PERSONS, 0, WHY), "from 1 to 10,000, or unknown"),
    "more rows used": (lambda book: book.change_unit("people", PERSONS, 3, WHY), "uses up to 4 of each"),
    "no account": (lambda book: book.change_unit("others", PERSONS, 4, WHY), "has no dataset 'others'"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_change_that_would_not_hold_is_refused(quick: Ledger, name: str) -> None:
    released(quick, asking("r1"))
    rows = quick.rows()
    change, words = REFUSALS[name]
    with pytest.raises(ConfigError, match=words):
        change(quick)
    assert quick.rows() == rows


def test_rows_that_are_exchanged_bound_no_person(quick: Ledger) -> None:
    persons = Neighbours("replace_one", "who", 4)
    released(quick, asking("r1", neighbours="replace_one"))
    with pytest.raises(ConfigError, match="no number of exchanged rows makes up for that"):
        quick.change_unit("people", persons, 4, WHY)
    found = quick.change_unit("people", persons, None, WHY)
    assert "rows ε =" not in " ".join(unit_change_in_words(found))


def test_a_unit_changes_once_and_not_under_a_release_that_has_not_ended(ledger: Ledger) -> None:
    ledger.reserve(asking("r1"))
    with pytest.raises(ConfigError, match="have not ended: r1"):
        ledger.change_unit("people", PERSONS, 4, WHY)
    ledger.settle("r1", cost("0.05"), EVENTS)
    ledger.change_unit("people", PERSONS, 4, WHY)
    rows = ledger.rows()
    # The same once more changes nothing.
    ledger.change_unit("people", PERSONS, 4, WHY)
    assert ledger.rows() == rows
    with pytest.raises(ConfigError, match="Only an account that protects rows"):
        ledger.change_unit("people", Neighbours("add_remove", "other", 2), 4, WHY)


def test_the_declared_number_of_rows_is_kept_from_then_on_and_rows_are_refused(quick: Ledger) -> None:
    released(quick, asking("r1"))
    with pytest.raises(ConfigError, match="dpsynth ledger unit 'people' --config CONFIG --most-rows NUMBER"):
        quick.reserve(asking("r2", unit=PERSONS.unit))
    quick.change_unit("people", PERSONS, 4, WHY)
    with pytest.raises(ConfigError, match=r"nobody has more than 4 rows in dataset 'people'.* up to 5 rows"):
        quick.reserve(asking("r2", unit=replace(PERSONS, max_rows=5).unit))
    with pytest.raises(ConfigError, match="goes on protecting what it protects"):
        quick.reserve(asking("r2"))
    # A release that was closed as one of rows is shown again as it was.
    assert quick.reserve(asking("r1")).state == "closed"
    quick.settle("r1", cost("0.1"), EVENTS)
    assert quick.reserve(asking("r2", unit=replace(PERSONS, max_rows=2).unit)).changed is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"most_rows": 0}, "has a number of rows that bounds nothing"),
        ({"most_rows": "4"}, "has no most_rows that can be read"),
        ({"unit": "one row"}, "none of persons"),
        ({"reason": 3}, "has no reason that can be read"),
    ],
)
def test_a_row_of_a_unit_that_makes_no_sense_is_found(
    quick: Ledger, changes: dict[str, object], words: str
) -> None:
    released(quick, asking("r1"))
    quick.change_unit("people", PERSONS, 4, WHY)
    rows = list(quick.rows())
    content = json.dumps({**json.loads(rows[-1].content), **changes})
    store(quick, chained_anew([*rows[:-1], replace(rows[-1], content=content)], len(rows) - 1))
    (problem,) = quick.verify().problems
    assert problem.startswith("row 4: ") and words in problem
    with pytest.raises(ConfigError, match="damaged at row 4"):
        quick.reserve(asking("r2", unit=PERSONS.unit))


def test_a_change_under_a_release_that_has_not_ended_or_a_second_one_is_found(quick: Ledger) -> None:
    released(quick, asking("r1"))
    quick.change_unit("people", PERSONS, 4, WHY)
    rows = list(quick.rows())
    store(quick, chained_anew([rows[0], rows[1], rows[3]], 2))
    assert quick.verify().problems == ("row 3: it changes the unit while release r1 is under way",)
    store(quick, chained_anew([*rows, rows[3]], 4))
    (problem,) = quick.verify().problems
    assert problem.startswith("row 5: it changes the unit 'one person") and problem.endswith(
        "which is no row"
    )


def test_a_reservation_beyond_the_cap_of_persons_is_found(quick: Ledger) -> None:
    """What was within the cap of rows is checked as it was; after the change, persons count."""
    released(quick, asking("r1", "0.2"))
    quick.change_unit("people", PERSONS, 4, WHY)
    quick.reserve(asking("r2", "0.2", unit=PERSONS.unit))
    assert quick.verify().problems == ()
    rows = list(quick.rows())
    content = rows[-1].content.replace('"1/5"', '"1/4"')
    store(quick, chained_anew([*rows[:-1], replace(rows[-1], content=content)], len(rows) - 1))
    assert quick.verify().problems == ("row 5: it reserves for release r2 what the cap did not allow",)


def test_a_release_of_rows_and_a_change_that_race_end_one_after_the_other(database: str) -> None:
    for turn in range(4):
        name = f"d{turn}"
        released(Ledger(database), asking(f"a{turn}", dataset=name))

        def change(name: str = name) -> str:
            return Ledger(database).change_unit(name, PERSONS, 4, WHY).unit

        def reserve(name: str = name, turn: int = turn) -> str:
            return Ledger(database).reserve(asking(f"b{turn}", dataset=name)).state

        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(one) for one in (change, reserve)]
        errors = [one.exception() for one in both]
        # One of the two came first, and the other was refused.
        assert sorted(error is None for error in errors) == [False, True]
        assert all(isinstance(error, ConfigError | None) for error in errors)
        found = account(Ledger(database), name)
        assert all(r.changed is not None for r in found.releases) == (found.changed is not None)
    assert Ledger(database).verify().problems == ()
