"""The ledger refuses what exceeds a cap, and counts no less than what a release may have drawn."""

import sqlite3
import stat
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dpsynth.accounting.amount import Amount, digits
from dpsynth.accounting.composition import NOTHING, Cost, planned
from dpsynth.accounting.measures import GDP, ZCDP
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, TakenOver
from dpsynth.ledger import store as ledger_tables
from dpsynth.ledger.balance import Reservation
from dpsynth.ledger.ledger import Ledger
from tests.ledger.reservations import ASK, EVENTS, account, asking, cost, left, month


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(database: str) -> Ledger:
    return Ledger(database)


def test_ten_tenths_fit_a_cap_of_one_and_an_eleventh_does_not(ledger: Ledger) -> None:
    for i in range(10):
        ledger.reserve(asking(f"r{i}", delta="1e-7"))
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r10", epsilon="1e-30"))
    assert (account(ledger).epsilon_used, account(ledger).delta_used) == (1, Fraction(1, 10**6))
    assert left(ledger) == 0 and account(ledger).share_used == 1.0
    # The planted fault: the same sum in floats misses the cap.
    assert sum([0.1] * 10) != 1.0


def test_delta_is_filtered_as_epsilon_is(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", delta="6e-7"))
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r2", delta="5e-7"))
    ledger.reserve(asking("r3", delta="4e-7"))


def test_a_refusal_changes_nothing_and_says_what_stands(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.7"))
    before = ledger.balance("people"), ledger.rows()
    with pytest.raises(BudgetRefused) as refusal:
        ledger.reserve(asking("r2", epsilon="0.5"))
    assert (ledger.balance("people"), ledger.rows()) == before
    assert ledger.state("r2") is None
    text = str(refusal.value)
    for said in (
        "r2",
        "people",
        "asks for ε = 0.5",
        "comes to ε = 0.7",
        "cap of ε = 1,",
        "up to 0.3 would still fit",
        "given up: r1.",
        "privacy.epsilon",
        "dpsynth ledger cap 'people' --epsilon NEW --config CONFIG --reason WHY",
        "Nothing was read and nothing was charged.",
    ):
        assert said in text
    assert "\n" not in text


def test_a_first_reservation_over_its_own_cap_records_no_dataset(ledger: Ledger) -> None:
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r1", epsilon="1.5"))
    assert ledger.balance("people") is None


def test_what_is_foreseen_is_what_a_reservation_finds_and_changes_nothing(ledger: Ledger) -> None:
    assert ledger.read().foreseen(ASK) is None and ledger.balance("people") is None
    with pytest.raises(BudgetRefused):
        ledger.read().foreseen(asking("r0", epsilon="1.1"))
    stands = ledger.reserve(asking("r1", epsilon="0.7"))
    rows = ledger.rows()
    assert ledger.read().foreseen(asking("r1", epsilon="0.7")) == stands
    assert ledger.read().foreseen(asking("r2", epsilon="0.3")) is None
    with pytest.raises(BudgetRefused):
        ledger.read().foreseen(asking("r2", epsilon="0.5"))
    with pytest.raises(ConfigError):
        ledger.read().foreseen(asking("r2", unit="one person"))
    assert ledger.rows() == rows


def test_settling_frees_what_was_not_spent(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.8"))
    ledger.settle("r1", cost("0.3"), EVENTS)
    assert account(ledger).epsilon_used == Fraction("0.3")
    assert ledger.state("r1") == "closed"
    ledger.reserve(asking("r2", epsilon="0.7"))


def test_settling_twice_at_the_same_figures_changes_nothing(ledger: Ledger) -> None:
    ledger.reserve(ASK)
    ledger.settle("r1", cost("0.05"), EVENTS)
    once = ledger.rows()
    ledger.settle("r1", cost("0.05"), EVENTS)
    assert ledger.rows() == once
    with pytest.raises(DpsynthError):
        ledger.settle("r1", cost("0.04"), EVENTS)
    with pytest.raises(DpsynthError):
        ledger.abandon("r1", cost("0.05"), EVENTS)
    assert ledger.rows() == once


def test_a_release_is_closed_once_and_with_one_digest(ledger: Ledger) -> None:
    ledger.reserve(replace(ASK, holder="first"))
    ledger.settle("r1", cost("0.05"), EVENTS, "first", "a" * 64)
    once = ledger.rows()
    # Whoever has the same answers may show them.
    ledger.settle("r1", cost("0.05"), EVENTS, "second", "a" * 64)
    with pytest.raises(TakenOver, match="finished elsewhere"):
        ledger.settle("r1", cost("0.05"), EVENTS, "first", "b" * 64)
    assert ledger.rows() == once
    known = ledger.release("r1")
    assert known is not None and known.digest == "a" * 64


def test_a_release_has_one_holder_the_last_to_take_it(ledger: Ledger) -> None:
    ledger.reserve(replace(ASK, holder="first"))
    ledger.check_holder("r1", "first")
    taken = ledger.take("r1", "second")
    assert ledger.take("r1", "second") == taken and taken.holder == "second"
    assert [row.kind for row in ledger.rows()] == ["dataset", "reserved", "resumed"]
    ledger.check_holder("r1", "second")
    with pytest.raises(TakenOver, match="being finished elsewhere"):
        ledger.check_holder("r1", "first")
    with pytest.raises(TakenOver, match="being finished elsewhere"):
        ledger.settle("r1", cost("0.05"), EVENTS, "first", "a" * 64)
    with pytest.raises(DpsynthError, match="resumed since"):
        ledger.abandon("r1", NOTHING, [], "lost", "first")
    assert ledger.state("r1") == "reserved" and account(ledger).epsilon_used == Fraction("0.1")
    ledger.abandon("r1", None, [], "lost")
    for late in (
        lambda: ledger.check_holder("r1", "second"),
        lambda: ledger.take("r1", "third"),
        lambda: ledger.settle("r1", cost("0.05"), EVENTS, "second", "a" * 64),
    ):
        with pytest.raises(TakenOver, match="abandoned"):
            late()
    assert ledger.verify().problems == ()


def test_a_release_may_cost_its_whole_reservation_and_no_more(ledger: Ledger) -> None:
    ledger.reserve(ASK)
    with pytest.raises(DpsynthError, match="more than"):
        ledger.settle("r1", cost(Fraction("0.1") + Fraction(1, 10**40)), EVENTS)
    assert ledger.state("r1") == "reserved"
    ledger.settle("r1", ASK.cost, EVENTS)


def test_an_abandoned_release_is_charged_whole_unless_its_journal_says_less(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.5"))
    ledger.reserve(asking("r2", epsilon="0.5"))
    ledger.abandon("r1", None, [])
    ledger.abandon("r2", cost("0.2"), EVENTS, "the disk broke")
    assert [(r.release_id, r.state, r.cost, r.reason) for r in account(ledger).releases] == [
        ("r1", "abandoned", cost("0.5"), ""),
        ("r2", "abandoned", cost("0.2"), "the disk broke"),
    ]
    assert account(ledger).epsilon_used == Fraction("0.7")


def test_what_was_never_reserved_cannot_end(ledger: Ledger) -> None:
    for _ in range(2):
        with pytest.raises(DpsynthError, match="never reserved"):
            ledger.settle("r9", NOTHING, [])
        ledger.reserve(ASK)


def test_a_resumed_release_is_not_charged_again(ledger: Ledger, database: str) -> None:
    ledger.reserve(ASK)
    ledger.reserve(ASK)
    Ledger(database).reserve(ASK)
    assert [row.kind for row in ledger.rows()] == ["dataset", "reserved"]
    ledger.settle("r1", ASK.cost, EVENTS)
    ledger.reserve(ASK)
    assert ledger.state("r1") == "closed"


@pytest.mark.parametrize(
    "change",
    [{"cost": cost("0.2", "1e-7")}, {"cost": cost("0.1")}, {"dataset": "x"}, {"occasion": "2026-03"}],
)
def test_a_release_id_stands_for_one_release(ledger: Ledger, change: dict[str, object]) -> None:
    ledger.reserve(ASK)
    with pytest.raises(ConfigError, match="already stands"):
        ledger.reserve(replace(ASK, **change))  # type: ignore[arg-type]


def test_a_release_is_not_resumed_with_a_table_of_another_account(ledger: Ledger) -> None:
    began, other = (replace(ASK, release_id=name, dataset="", source=f"/{name}.csv") for name in ("r1", "r2"))
    ledger.reserve(began)
    ledger.reserve(replace(other, release="another"))
    assert ledger.reserve(began).dataset == ledger.reserve(replace(began, source="/moved.csv")).dataset
    with pytest.raises(ConfigError, match=r"/r2\.csv has an account .* second cap"):
        ledger.reserve(replace(began, source="/r2.csv"))


def test_an_abandoned_release_is_not_resumed(ledger: Ledger) -> None:
    ledger.reserve(ASK)
    ledger.abandon("r1", NOTHING, [])
    with pytest.raises(ConfigError, match="abandoned"):
        ledger.reserve(ASK)


@pytest.mark.parametrize("change", [{"unit": "one person"}, {"neighbours": "replace_one"}])
def test_costs_of_unlike_guarantees_are_not_added(ledger: Ledger, change: dict[str, object]) -> None:
    ledger.reserve(ASK)
    with pytest.raises(ConfigError, match="can't be added up"):
        ledger.reserve(asking("r2", **change))
    assert ledger.state("r2") is None


def test_datasets_do_not_share_a_cap(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="1"))
    ledger.reserve(asking("r2", epsilon="1", dataset="other", unit="one person"))


def test_a_higher_cap_in_a_config_raises_nothing(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.9"))
    with pytest.raises(BudgetRefused, match="doesn't raise"):
        ledger.reserve(asking("r2", epsilon="0.2", cap=Amount(Fraction(100), Fraction(1, 2))))
    assert account(ledger).cap == ASK.cap


def test_a_lower_cap_in_a_config_holds_for_its_own_release(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.4"))
    own = Amount(Fraction("0.5"), Fraction(1, 10**6))
    with pytest.raises(BudgetRefused) as refusal:
        ledger.reserve(asking("r2", epsilon="0.2", cap=own))
    text = str(refusal.value)
    assert "of the cap in this configuration, ledger.cap, of ε = 0.5, δ = 1e-6" in text
    assert "raise ledger.cap in this configuration: the recorded cap of ε = 1, δ = 1e-6 allows it." in text
    assert "dpsynth ledger cap" not in text
    ledger.reserve(asking("r3", epsilon="0.6"))


def test_where_both_caps_refuse_both_are_to_be_raised(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.9"))
    with pytest.raises(BudgetRefused) as refusal:
        ledger.reserve(asking("r2", epsilon="0.2", cap=Amount(Fraction("0.5"), Fraction(1, 10**6))))
    text = str(refusal.value)
    assert "raise ledger.cap in this configuration, and the recorded one of ε = 1, δ = 1e-6" in text
    assert (
        "which would refuse it too, with: dpsynth ledger cap 'people' --epsilon NEW --config CONFIG" in text
    )


def test_the_cap_of_a_first_release_is_raised_in_its_config(ledger: Ledger) -> None:
    with pytest.raises(BudgetRefused) as refusal:
        ledger.reserve(asking("r1", epsilon="1.5"))
    text = str(refusal.value)
    assert "raise ledger.cap in this configuration." in text and "dpsynth ledger cap" not in text


def test_amounts_are_kept_to_the_last_digit(ledger: Ledger, database: str) -> None:
    exact = Fraction(0.1) / 3
    ledger.reserve(replace(ASK, cost=cost(exact)))
    assert account(Ledger(database)).releases[0].cost == cost(exact)


def test_a_float_is_no_amount() -> None:
    for figures in ((0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)):
        epsilon, rho, half = (Fraction(f) if isinstance(f, int) else f for f in figures)
        with pytest.raises(TypeError):
            Cost(Amount(epsilon), rho, half)  # type: ignore[arg-type]
    for bad in (lambda: Amount(Fraction(-1)), lambda: Cost(Amount(), Fraction(-1), None)):
        with pytest.raises(ValueError, match="at least 0"):
            bad()


def test_shown_figures_never_flatter() -> None:
    third = Fraction(1, 3)
    assert Fraction(digits(third, up=False)) < third < Fraction(digits(third, up=True))
    assert digits(Fraction(1, 10**9), up=True) == "1e-9"
    assert digits(Fraction(0), up=True) == "0"
    assert digits(Fraction(10), up=True) == "10"
    assert digits(Fraction(12345678), up=True) == "1.23457e+7"


def test_looking_makes_no_file_and_reserving_makes_a_private_one(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "ledger.db"
    ledger = Ledger(f"sqlite:///{file}")
    assert ledger.balance("people") is None and ledger.state("r1") is None
    assert not file.parent.exists()
    ledger.reserve(ASK)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_row_is_never_changed_or_removed(ledger: Ledger) -> None:
    ledger.reserve(ASK)
    reserved = ledger.rows()
    ledger.settle("r1", NOTHING, EVENTS)
    assert ledger.rows()[:2] == reserved and len(ledger.rows()) == 3


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
        "mysql://localhost/x",
        "not a url",
        "",
        "postgresql+asyncpg://u:secret@localhost/x",
        "sqlite://host/ledger.db",
        "sqlite:///" + "x" * 300,
    ],
)
def test_a_url_that_keeps_no_ledger_is_a_plain_error(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        Ledger(url)
    assert "\n" not in str(error.value) and "secret" not in str(error.value)


def test_a_file_that_is_no_ledger_is_a_plain_error_and_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is no database, but long enough to be read as the head of one " * 20)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE flow_run (id INTEGER)")
    older = tmp_path / "older.db"
    with sqlite3.connect(older) as connection:
        connection.execute("CREATE TABLE dpsynth_ledger (format INTEGER)")
        connection.execute("INSERT INTO dpsynth_ledger VALUES (1)")
    for file, said in ((text, "its file is no database"), (foreign, "no ledger"), (older, "format 1")):
        before = file.read_bytes()
        ledger = Ledger(f"sqlite:///{file}")
        for use in (lambda: ledger.balance("people"), lambda: ledger.reserve(ASK)):  # noqa: B023
            with pytest.raises(ConfigError, match=said) as error:
                use()
            assert "\n" not in str(error.value)
        assert said in " ".join(ledger.verify().problems)
        assert file.read_bytes() == before
    with pytest.raises(ConfigError, match="folder"):
        Ledger(f"sqlite:///{tmp_path}")


def test_a_place_that_cannot_hold_a_file_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError):
        Ledger(f"sqlite:///{tmp_path}/file/ledger.db")


def test_a_torn_ledger_refuses_rather_than_forgets(file: Path) -> None:
    ledger = Ledger(f"sqlite:///{file}")
    ledger.reserve(asking("r1", epsilon="1"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match="can't be used"):
        ledger.reserve(asking("r2", epsilon="1"))
    with pytest.raises(DpsynthError, match="stays reserved"):
        ledger.settle("r1", NOTHING, [])


def test_an_account_keeps_its_filter(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", suits=ZCDP))
    ledger.reserve(asking("r2", suits=GDP))
    with pytest.raises(ConfigError, match="filter zcdp, for good"):
        ledger.reserve(asking("r3", filter=GDP))
    assert account(ledger).filter == ZCDP and len(account(ledger).releases) == 2


def test_what_the_filter_cannot_bound_is_refused(ledger: Ledger) -> None:
    loose = planned(ZCDP, "gaussian", Fraction(1, 100), Amount(Fraction(1, 2), Fraction(1, 10**7)))
    with pytest.raises(ConfigError, match="accountant: gdp"):
        ledger.reserve(replace(asking("r1", suits=GDP), cost=loose))
    assert ledger.balance("people") is None
    ledger.reserve(replace(asking("r1", suits=ZCDP), cost=loose))


def test_an_occasion_is_released_once(ledger: Ledger) -> None:
    march = asking("r1", release="a", occasion="2026-03")
    assert ledger.reserve(march).release_id == "r1"
    for state in ("reserved", "closed"):
        second = ledger.reserve(replace(march, release_id="r2", spec="changed", cost=cost("0.2")))
        assert (second.release_id, second.state, second.spec) == ("r1", state, ASK.spec)
        assert len(account(ledger).releases) == 1
        ledger.settle("r1", cost("0.1"), [])
    others = (
        replace(march, release_id="r3", occasion="2026-04"),
        replace(march, release_id="r4", release="b"),
        replace(march, release_id="r5", dataset="other"),
        replace(march, release_id="r6", occasion=None),
        replace(march, release_id="r7", occasion=None),
        replace(march, release_id="r8", part=month("2026-03")),
    )
    assert [ledger.reserve(other).release_id for other in others] == [f"r{i}" for i in range(3, 9)]


def test_the_occasion_of_an_abandoned_release_is_free_again_at_its_price(ledger: Ledger) -> None:
    march = asking("r1", epsilon="0.5", occasion="2026-03")
    ledger.reserve(march)
    ledger.abandon("r1", None, [])
    assert ledger.reserve(replace(march, release_id="r2")).release_id == "r2"
    assert left(ledger) == 0


def test_a_cap_is_changed_for_a_reason_that_stays_on_record(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.9"))
    for reason in ("", "  ", "a\nb"):
        with pytest.raises(ConfigError, match="reason"):
            ledger.change_cap("people", Amount(Fraction(2)), reason)
    with pytest.raises(ConfigError, match="has no dataset 'peple'; it has: 'people'"):
        ledger.change_cap("peple", Amount(Fraction(2)), "more")
    after = ledger.change_cap("people", Amount(Fraction(2), Fraction(1, 10**6)), "the board agreed")
    assert after == account(ledger)
    ledger.reserve(asking("r2", epsilon="0.9", cap=after.cap))
    ledger.change_cap("people", Amount(Fraction(1)), "a breach elsewhere")
    assert [(c.cap.epsilon, c.reason) for c in account(ledger).caps] == [
        (1, ""),
        (2, "the board agreed"),
        (1, "a breach elsewhere"),
    ]
    with pytest.raises(BudgetRefused, match="Nothing is left"):
        ledger.reserve(asking("r3", epsilon="1e-9"))
    ledger.settle("r2", cost("0.2"), EVENTS)
    assert account(ledger).share_used == pytest.approx(1.1)


def test_a_cap_without_delta_lets_nothing_through_that_needs_one(ledger: Ledger) -> None:
    with pytest.raises(BudgetRefused, match="cap's delta is 0"):
        ledger.reserve(asking("r1", suits=GDP, cap=Amount(Fraction(1))))


@pytest.mark.parametrize("days", [1, 400])
def test_a_clock_that_goes_back_dates_nothing_before_what_is_there(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    ledger.reserve(asking("r1"))
    today = ledger_tables.today()
    monkeypatch.setattr(ledger_tables, "today", lambda: today - timedelta(days))
    assert ledger.read().clock_behind == today
    ledger.reserve(asking("r2"))
    assert [row.created for row in ledger.rows()] == [today.isoformat()] * 3
    assert ledger.verify().problems == ()
    monkeypatch.setattr(ledger_tables, "today", lambda: today + timedelta(days))
    assert ledger.read().clock_behind is None


def test_a_cap_that_is_changed_twice_alike_is_recorded_once(ledger: Ledger) -> None:
    """So that whoever was not told whether a change was made may make it again."""
    ledger.reserve(asking("r1"))
    cap = Amount(Fraction(2), Fraction(1, 10**6))
    for reason in ("agreed", "agreed", " agreed ", "agreed again", "agreed"):
        ledger.change_cap("people", cap, reason)
    assert [change.reason for change in account(ledger).caps] == ["", "agreed", "agreed again", "agreed"]


@pytest.mark.parametrize("by", [ZCDP, GDP])
def test_a_cap_that_a_filter_cannot_keep_to_is_refused(ledger: Ledger, by: str) -> None:
    ledger.reserve(asking("r1", filter=by))
    for delta in (Fraction(0), Fraction(1), Fraction(3, 2)):
        with pytest.raises(
            ConfigError, match=f"filter of dataset 'people' is {by.accountant}, .* above 0 and below 1"
        ):
            ledger.change_cap("people", Amount(Fraction(1), delta), "less")
    ledger.change_cap("people", Amount(Fraction(0), Fraction(1, 10**6)), "no more")
    with pytest.raises(BudgetRefused, match="Nothing is left"):
        ledger.reserve(asking("r2", "1e-9"))
    ledger.reserve(asking("r3", dataset="others"))
    ledger.change_cap("others", Amount(Fraction(1)), "no delta is needed")


def test_an_end_of_which_less_is_known_than_was_reserved_is_refused(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", filter=GDP))
    unknown = Cost(Amount(), Fraction(0), None)
    with pytest.raises(DpsynthError, match=r"\(rho = 0, no bound on mu\), more than"):
        ledger.settle("r1", unknown, EVENTS)
    assert ledger.state("r1") == "reserved"
    loose = planned(ZCDP, "gaussian", Fraction(1, 100), Amount(Fraction(1, 2), Fraction(1, 10**7)))
    ledger.reserve(replace(asking("r2", filter=ZCDP, dataset="others"), cost=loose))
    ledger.settle("r2", unknown, EVENTS)


def test_parts_are_counted_apart_and_what_overlaps_is_not(ledger: Ledger) -> None:
    def of(label: str, epsilon: str = "0.6", **other: object) -> Reservation:
        return asking(f"{label} {epsilon}", epsilon, part=month(label), parallel=True, **other)

    for label in ("2026-01", "2026-02", "2026-03"):
        ledger.reserve(of(label))
    assert account(ledger).epsilon_used == Fraction("0.6")
    with pytest.raises(
        BudgetRefused, match=r"asks for ε = 0.6, δ = 0 for 2026-Q1, .* up to 0\.4 would still fit"
    ):
        ledger.reserve(of("2026-Q1"))
    with pytest.raises(BudgetRefused, match=r"up to 0\.4 would still fit"):
        ledger.reserve(asking("all", "0.6"))
    ledger.reserve(of("2026-Q1", "0.4"))
    # Nobody of April is in any of them.
    with pytest.raises(BudgetRefused, match=r"up to 1 would still fit"):
        ledger.reserve(of("2026-04", "1.1"))
    ledger.reserve(of("2026-04", "1"))
    with pytest.raises(ConfigError, match="already stands"):
        ledger.reserve(replace(of("2026-01"), parallel=False))


def test_a_release_id_stands_for_one_release_in_all_datasets(ledger: Ledger) -> None:
    ledger.reserve(asking("r0", dataset="others"))
    ledger.reserve(asking("r1"))
    with pytest.raises(ConfigError, match="already stands in the ledger for dataset 'people'"):
        ledger.reserve(asking("r1", dataset="others"))


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_database_takes_is_a_plain_error(ledger: Ledger, name: str) -> None:
    for entry in (asking("r1", dataset=name), asking(name)):
        with pytest.raises(ConfigError, match="characters that no ledger can keep"):
            ledger.reserve(entry)
    assert ledger.rows() == ()


def test_any_other_text_is_kept_as_it_is(ledger: Ledger) -> None:
    said = "Ω 人口 \u202e\n'\"; DROP TABLE dpsynth_rows; -- 🙂"
    ledger.reserve(asking(f"r {said}", dataset=said, unit=said, release=said, occasion=said, spec=said))
    ledger.abandon(f"r {said}", None, [{"mechanism": said}], said)
    (entry,) = account(ledger, said).releases
    told = (entry.release_id[2:], entry.dataset, entry.release, entry.occasion, entry.spec, entry.reason)
    assert set(told) == {said} and account(ledger, said).unit == said
    assert entry.events == ({"mechanism": said},)


def test_a_refusal_says_how_long_releases_like_the_last_go_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = ledger_tables.today()
    for i in range(4):
        monkeypatch.setattr(ledger_tables, "today", lambda i=i: today + timedelta(30 * i))
        ledger.reserve(asking(f"r{i}"))
    with pytest.raises(BudgetRefused) as refusal:
        ledger.reserve(asking("r4", "0.7"))
    refused = today + timedelta(30 * 10)
    assert (
        "Of releases like the last one, 6 more fit; at the pace so far the first to be refused is due on "
        f"{refused}."
    ) in str(refusal.value)


PERSON = "one person: all rows with the same who"


def test_releases_of_persons_add_up_whatever_the_bounds_on_their_rows(ledger: Ledger) -> None:
    ledger.reserve(asking("r1", epsilon="0.4", unit=f"{PERSON}, at most 4"))
    ledger.reserve(asking("r2", epsilon="0.4", unit=f"{PERSON}, at most 20"))
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("r3", epsilon="0.4", unit=f"{PERSON}, at most 1"))


@pytest.mark.parametrize(
    "unit", ["one row", f"{PERSON}s, at most 4", PERSON.replace("who", "family") + ", at most 4"]
)
def test_releases_that_protect_something_else_do_not_add_up(ledger: Ledger, unit: str) -> None:
    ledger.reserve(asking("r1", unit=f"{PERSON}, at most 4"))
    with pytest.raises(ConfigError, match="can't be added up"):
        ledger.reserve(asking("r2", unit=unit))
    with pytest.raises(ConfigError, match="can't be added up"):
        ledger.reserve(asking("r2", unit=f"{PERSON}, at most 4", neighbours="replace_one"))


def test_parts_that_are_not_declared_to_be_apart_add_up(ledger: Ledger) -> None:
    for label in ("2026-01", "2026-02"):
        ledger.reserve(asking(label, "0.4", part=month(label)))
    with pytest.raises(BudgetRefused):
        ledger.reserve(asking("2026-03", "0.4", part=month("2026-03")))
