"""The content of rows: what is read is what was written, and what makes no sense is refused."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction

import pytest

from dpsynth.accounting.measures import PURE, ZCDP
from dpsynth.ledger import contents
from dpsynth.ledger.balance import ReleaseEntry, first_entry
from dpsynth.ledger.chain import Row
from dpsynth.ledger.contents import MalformedContent
from dpsynth.ledger.filters import Filter
from tests.ledger.reservations import ASK, asking, month

DAY = date(2026, 11, 22)
ROW = Row(2, "reserved", "people", "r1", "{}", "2026-11-22", "", "")
AUDIENCES = (("public", Fraction(1, 100)), ("clinics", Fraction(1, 20)), ("board", Fraction(1, 10)))


@pytest.mark.parametrize(
    "entry",
    [
        ASK,
        asking("r1", audiences=AUDIENCES),
        asking("r1", part=month("2026-03")),
        asking("r1", part=month("2026-03"), parallel=True),
    ],
    ids=["whole", "audiences", "part", "parallel"],
)
def test_a_reservation_is_read_as_it_was_written(entry) -> None:
    content = contents.of_reservation(entry)
    assert contents.reserved(ROW, content, DAY) == first_entry(entry, DAY)


def test_parts_that_are_counted_apart_have_a_name() -> None:
    content = {**contents.of_reservation(ASK), "parallel": True}
    with pytest.raises(MalformedContent, match="names none"):
        contents.reserved(ROW, content, DAY)


UNDER_WAY = first_entry(ASK, DAY)
Reading = Callable[[ReleaseEntry | None], ReleaseEntry]
READINGS: Mapping[str, tuple[Reading, Callable[[ReleaseEntry], object], object]] = {
    "resumes": (
        lambda recorded: contents.resumed(ROW, contents.of_resumption("second"), recorded),
        lambda found: found.holder,
        "second",
    ),
    "ends": (
        lambda recorded: contents.ended(
            replace(ROW, kind="closed"), contents.of_end(ASK.cost, [], "", "abc"), DAY, recorded
        ),
        lambda found: found.digest,
        "abc",
    ),
}


@pytest.mark.parametrize(("reading", "of", "expected"), READINGS.values(), ids=READINGS)
def test_only_a_release_that_is_under_way_is_resumed_or_ended(reading: Reading, of, expected) -> None:
    assert of(reading(UNDER_WAY)) == expected
    for none in (None, replace(UNDER_WAY, state="closed"), replace(UNDER_WAY, state="abandoned")):
        with pytest.raises(MalformedContent, match="not under way"):
            reading(none)


def test_the_events_of_an_end_are_records() -> None:
    content = {**contents.of_end(ASK.cost, [], "", "abc"), "events": [1]}
    with pytest.raises(MalformedContent, match="events that are none"):
        contents.ended(replace(ROW, kind="closed"), content, DAY, UNDER_WAY)


@pytest.mark.parametrize(
    ("delta", "share", "kind", "kept"),
    [
        ("1/1000", "0", ZCDP, True),
        ("1/1000", "1/2", ZCDP, True),
        ("1", "0", ZCDP, False),
        ("3/2", "0", ZCDP, False),
        ("1/1000", "1", ZCDP, False),
        ("1/1000", "3/2", ZCDP, False),
        ("0", "0", ZCDP, False),
        ("0", "0", PURE, True),
        ("1/1000", "1/2", PURE, False),
    ],
)
def test_a_cap_is_one_that_its_filter_can_keep_to(delta: str, share: str, kind: Filter, kept: bool) -> None:
    content = {"cap": {"epsilon": "3", "delta": delta}, "approximate_share": share}
    if kept:
        assert contents.cap_of(content, DAY, "", kind).approximate_share == Fraction(share)
        return
    with pytest.raises(MalformedContent, match="can't keep to"):
        contents.cap_of(content, DAY, "", kind)


@pytest.mark.parametrize("cost", [None, [], "1"])
def test_a_cost_is_a_record(cost: object) -> None:
    with pytest.raises(MalformedContent, match="no cost"):
        contents.reserved(ROW, {**contents.of_reservation(ASK), "cost": cost}, DAY)


@pytest.mark.parametrize("figure", [1, 0.5, None, ["1"], "1/-2", "0.5"])
def test_a_figure_is_a_fraction_in_text(figure: object) -> None:
    content = {"cap": {"epsilon": figure, "delta": "0"}}
    with pytest.raises(MalformedContent, match="no fraction"):
        contents.cap_of(content, DAY, "", PURE)
