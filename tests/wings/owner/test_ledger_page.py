"""The ledger's page and its picture show what the ledger has, and show it as text."""

import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.ledger.balance import Balance, CapChange, Filter
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.views import account_view, figure, share_in_words
from dpsynth.wings.owner.ledger_page import Chain, as_of, chart, ledger_html, unbroken
from tests.monthly import Months
from tests.thinned import some

CHAIN = Chain("sqlite:///ledger.db", 7, "ab" * 32, (), head_file=True)
WILD = '<script>alert("1")</script>&amp;{{ 7*191 }}\'"><img src=x onerror=y>'


@pytest.fixture
def months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Months:
    return Months(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")).on_its_clock(monkeypatch)


def page(*accounts: Balance, today: date, chain: Chain = CHAIN) -> str:
    return ledger_html([account_view(account, today) for account in accounts], chain, today)


class Parts(HTMLParser):
    """What a browser would make of a page: elements with attributes, and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_whatever_a_thing_is_called_the_page_shows_it_as_text(months: Months) -> None:
    months.dataset = months.name = months.unit = WILD
    months.abandon(months.reserve(0, occasion=WILD), WILD)
    months.reserve(1, occasion=f"{WILD} 2")
    months.ledger.change_cap(WILD, Amount(Fraction(9), Fraction(1, 10**5)), WILD)
    chain = replace(CHAIN, name=WILD, problems=(WILD,))
    html = page(months.account, today=months.today, chain=chain)
    found = Parts(html)
    assert "script" not in found.tags and "img" not in found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert found.text.count(WILD) >= 8 and "1337" not in found.text
    # The planted fault: the same name put in as it is.
    assert "script" in Parts(html.replace("&lt;", "<").replace("&gt;", ">")).tags


def test_the_page_needs_nothing_but_itself(months: Months) -> None:
    months.release(0, 1, 2)
    html = page(months.account, today=months.today)
    assert "default-src 'none'; style-src 'unsafe-inline'" in html
    found = Parts(html)
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    targets = [value for name, value in found.attributes if name in {"href", "src"}]
    assert targets and all(str(value).startswith("#") for value in targets)
    assert "url(" not in html and "@import" not in html
    assert "no part of any public bundle" in " ".join(found.text.split())


def styled_twice(css: str) -> set[str]:
    """Classes that two rules of a style sheet set, each by itself."""
    rules = re.findall(r"^(\.[\w-]+(?:, \.[\w-]+)*) \{", css, re.M)
    classes = [name for rule in rules for name in rule.split(", ")]
    assert ".key" in classes
    return {name for name in classes if classes.count(name) > 1}


def test_no_class_of_the_report_restyles_one_of_the_ledgers_page(months: Months) -> None:
    months.release(0)
    (css,) = re.findall(r"<style>(.*?)</style>", page(months.account, today=months.today), re.S)
    assert not styled_twice(css)
    # The planted fault: the report's swatches have the class of the ledger's legend.
    assert styled_twice(css.replace(".swatch", ".key")) == {".key"}


def test_a_sentence_stays_text_when_its_dates_are_kept_whole() -> None:
    assert unbroken("<b> ε = 1 on 2026-03-01") == (
        '&lt;b&gt; ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1 on <span class="day">2026-03-01</span>'
    )


def test_an_account_of_a_day_is_what_the_ledger_had_that_evening(months: Months) -> None:
    months.release(0)
    late = months.reserve(1)
    months.release(2)
    months.settle(late, days=3)
    months.abandon(months.reserve(3))
    months.reserve(4)
    evenings = dict(months.seen)
    assert len(evenings) > 5
    for day, account in evenings.items():
        then = as_of(months.account, day)
        assert [(r.release_id, r.state, r.cost) for r in then.releases] == [
            (r.release_id, r.state, r.cost) for r in account.releases
        ]
    # The planted fault: to count a release from the first at what it cost in the end.
    day, account = next((d, a) for d, a in months.seen if a.releases[-1].release_id == late)
    wrong = replace(months.account, releases=months.account.releases[: len(account.releases)])
    assert wrong.share_used < as_of(months.account, day).share_used


def test_each_line_says_what_it_and_all_before_it_take(months: Months) -> None:
    months.release(0, 1)
    months.reserve(2)
    lines = account_view(months.account, months.today).lines
    assert lines[0].so_far == lines[0].share
    assert lines[1].so_far == pytest.approx(2 * lines[0].share) and lines[2].share > lines[1].share
    assert lines[-1].so_far == months.account.share_used


def corners(path: str) -> list[tuple[float, float]]:
    """The points of a path of level and upright lines, from the bottom left."""
    numbers = re.fullmatch(r"M([\d.]+) ([\d.-]+)((?:H[\d.]+V[\d.-]+)*)", path)
    assert numbers is not None
    x, y = float(numbers[1]), float(numbers[2])
    points = [(x, 100 - y)]
    for across, down in re.findall(r"H([\d.]+)V([\d.-]+)", numbers[3]):
        points += [(float(across), points[-1][1]), (float(across), 100 - float(down))]
    return points


def test_the_picture_ends_at_what_is_counted_and_its_projection_at_the_cap(months: Months) -> None:
    months.filter, months.cap = PURE, ("6", "0")
    months.release(*range(5))
    months.ledger.change_cap("visits", Amount(Fraction(9), Fraction(0)), "more")
    view = account_view(months.account, months.today)
    found = chart(view, months.today)
    assert found is not None and found.cap_at is not None and view.runway is not None
    line, cap, ahead = corners(found.line), corners(found.cap), corners(found.ahead)
    share = found.cap_at * months.account.share_used
    assert line[0][1] == 0 and line[-1] == (
        pytest.approx(found.today, abs=1e-3),
        pytest.approx(share, abs=1e-2),
    )
    assert line == sorted(line)
    assert [y / found.cap_at for _, y in (cap[0], cap[-1])] == [
        pytest.approx(6 / 9, abs=1e-4),
        pytest.approx(1, abs=1e-4),
    ]
    assert ahead[0] == line[-1] and ahead[-1][1] <= found.cap_at + 1e-3
    each = found.cap_at * months.account.share_of(view.runway.like.cost)
    assert ahead[-1][1] == pytest.approx(line[-1][1] + view.runway.fits * each, abs=1e-2)
    assert all(0 <= x <= 100.001 for x, _ in line + cap + ahead)
    assert all(-0.001 <= y <= 100 for _, y in line + cap + ahead)


def test_little_of_a_large_cap_is_still_seen(months: Months) -> None:
    months.cap = ("100", "1e-6")
    months.release(0, 1)
    found = chart(account_view(months.account, months.today), months.today)
    assert found is not None and found.cap_at is None
    assert corners(found.line)[-1][1] > 20
    assert found.levels[-1].label != "100 %"


def test_a_former_cap_far_above_todays_presses_nothing_to_the_bottom(months: Months) -> None:
    months.cap = ("100", "1e-6")
    months.release(0, 1)
    months.ledger.change_cap("visits", Amount(Fraction(1), Fraction(1, 10**6)), "enough")
    found = chart(account_view(months.account, months.today), months.today)
    assert found is not None and found.cap_at is not None and found.cap_at > 30
    assert corners(found.line)[-1][1] > 10


@pytest.mark.parametrize("epsilon", ["0.5", "0.1", "0.03", "0.001"])
def test_levels_far_above_a_lowered_cap_are_plain_numbers(months: Months, epsilon: str) -> None:
    months.release(0, 1)
    months.ledger.change_cap("visits", Amount(Fraction(epsilon), Fraction(1, 10**6)), "stop")
    found = chart(account_view(months.account, months.today), months.today)
    assert found is not None and 3 <= len(found.levels) <= 8
    assert all(re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})* %", level.label) for level in found.levels), found.levels


@pytest.mark.parametrize("days", some([1, 5, 30, 200, 700, 4000, 40000], 2))
def test_a_picture_of_any_length_has_a_few_labelled_days(months: Months, days: int) -> None:
    months.release(0)
    today = date.fromordinal(months.account.opened.toordinal() + days)
    found = chart(account_view(months.account, today), today)
    assert found is not None and 2 <= len(found.ticks) <= 8
    assert all(0 <= tick.at <= 100 for tick in found.ticks)
    assert len({tick.label for tick in found.ticks}) == len(found.ticks)


@pytest.mark.parametrize(
    ("kind", "cap"), some([(ZCDP, ("0", "1e-6")), (ZCDP, ("0.001", "1e-9")), (PURE, ("0", "0"))], 1)
)
def test_a_cap_below_what_is_counted_or_of_nothing_still_has_a_page(
    months: Months, kind: Filter, cap: tuple[str, str]
) -> None:
    months.filter = kind
    months.release(0, 1)
    months.ledger.change_cap("visits", Amount(*map(Fraction, cap)), "stop")
    html = page(months.account, today=months.today)
    assert "No more release like the last one" in html
    assert ("∞ %" in html) == (cap[0] == "0")


def test_a_release_that_counts_for_nothing_has_a_page(months: Months) -> None:
    months.abandon(months.reserve(0))
    account = months.account
    empty = replace(account, releases=())
    assert "Nothing has been released yet" in page(empty, today=months.today)
    assert "abandoned: lost" in page(account, today=months.today)


def test_a_hundred_and_twenty_releases_and_parts_and_two_datasets_are_one_page(months: Months) -> None:
    months.parallel = True
    months.release(0, 1, 2)
    entry = months.account.releases[-1]
    many = replace(
        months.account,
        dataset="other",
        releases=tuple(replace(entry, release_id=f"r{i}", parallel=False) for i in range(120)),
        caps=(CapChange(Amount(Fraction(30), Fraction(1, 10**5)), months.account.opened),),
    )
    html = page(months.account, many, today=months.today)
    text = Parts(html).text
    assert "no end of other parts" in text and "All 120 releases" in text
    # The last ones stand outside the fold as well.
    assert [html.count(f"<small>r{i}</small>") for i in (0, 95, 96, 119)] == [1, 1, 2, 2]


def test_a_damaged_chain_is_said_at_the_top_of_the_page(months: Months) -> None:
    months.release(0)
    bad = replace(CHAIN, problems=("row 2 was changed after it was written",))
    html = page(months.account, today=months.today, chain=bad)
    assert "can't be relied upon" in html and "row 2 was changed" in html and "NOT intact" in html
    good = page(months.account, today=months.today)
    assert "can't be relied upon" not in good and CHAIN.head in good


@given(st.fractions(min_value=0, max_value=10**6, max_denominator=10**9))
def test_a_cost_is_never_shown_below_what_it_is(value: Fraction) -> None:
    assert Fraction(Decimal(figure(value).replace(",", ""))) >= value


def test_a_cost_a_hair_above_a_round_figure_is_not_shown_as_that() -> None:
    assert figure(Fraction("0.98")) == "0.98"
    # The planted fault: the nearest double of both is the same.
    more = Fraction("0.98") + Fraction(1, 10**30)
    assert float(more) == 0.98 and figure(more) == "0.9801"


@given(st.floats(min_value=0, max_value=50))
def test_a_share_is_never_shown_below_what_it_is(share: float) -> None:
    shown = Decimal(share_in_words(share).removeprefix("< ").removesuffix(" %").replace(",", ""))
    assert shown >= Decimal(repr(100 * share)) or share < 1e-4
