"""Rows by themselves: sums of whole tables and of parts against the cap, dates, second openings."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from fractions import Fraction

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.ledger import contents
from dpsynth.ledger.balance import Reservation
from dpsynth.ledger.chain import Row
from dpsynth.ledger.contents import Book, InvalidRow, problems_of
from tests.ledger.reservations import ASK, asking, cost, month

MARCH, APRIL = month("2026-03"), month("2026-04")
NO_SHARE = Fraction(0)


def row(kind: str, release: str | None, content: object, created: str = "2026-11-22") -> Row:
    return Row(0, kind, "people", release, json.dumps(content), created, "", "")


def opened(entry: Reservation = ASK, created: str = "2026-11-22") -> Row:
    return row("dataset", None, contents.of_dataset(entry, NO_SHARE), created)


def reserved(release: str, epsilon: str, created: str = "2026-11-22", **more: object) -> Row:
    entry = asking(release, epsilon, **more)
    return row("reserved", release, contents.of_reservation(entry), created)


def of_part(release: str, epsilon: str, part: object) -> Row:
    return reserved(release, epsilon, part=part, parallel=True)


def closed(release: str, epsilon: str) -> Row:
    return row("closed", release, contents.of_end(cost(epsilon), [], "", ""))


def capped(epsilon: str) -> Row:
    return row("cap", None, contents.of_cap(Amount(Fraction(epsilon), ASK.cap.delta), NO_SHARE, "less"))


def numbered(rows: Iterable[Row]) -> list[Row]:
    return [replace(one, number=number) for number, one in enumerate(rows, 1)]


WHOLE = [reserved(f"r{i}", "0.1") for i in range(10)]
CASES: dict[str, tuple[list[Row], set[int]]] = {
    "ten tenths": (WHOLE, set()),
    "a hair more": ([*WHOLE, reserved("more", "0.001")], {12}),
    "room after an end": ([reserved("a", "0.6"), closed("a", "0.1"), reserved("b", "0.9")], set()),
    "no more than that": ([reserved("a", "0.6"), closed("a", "0.1"), reserved("b", "0.91")], {4}),
    "parts side by side": ([of_part("a", "0.9", MARCH), of_part("b", "0.9", APRIL)], set()),
    "one part twice": (
        [of_part("a", "0.9", MARCH), of_part("b", "0.9", APRIL), of_part("c", "0.2", MARCH)],
        {4},
    ),
    "a whole beside parts": ([of_part("a", "0.9", MARCH), reserved("b", "0.1"), reserved("c", "0.1")], {4}),
    "a part beside a whole": (
        [reserved("a", "0.9"), of_part("b", "0.1", MARCH), of_part("c", "0.2", APRIL)],
        {4},
    ),
    "another part does not heal": (
        [of_part("a", "0.9", MARCH), of_part("b", "0.2", MARCH), of_part("c", "0.1", APRIL)],
        {3, 4},
    ),
    "a lower cap": ([of_part("a", "0.9", MARCH), capped("0.5"), of_part("b", "0.1", APRIL)], {4}),
    "a higher cap": ([reserved("a", "1"), capped("2"), reserved("b", "1")], set()),
}


@pytest.mark.parametrize(("rows", "wrong"), CASES.values(), ids=CASES)
def test_a_reservation_keeps_to_the_cap_that_is_in_force(rows: list[Row], wrong: set[int]) -> None:
    found = problems_of(numbered([opened(), *rows]))
    assert {int(words.split(":")[0].removeprefix("row ")) for words in found} == wrong
    assert all("what the cap did not allow" in words for words in found)


def test_caps_are_checked_only_where_that_is_asked_for() -> None:
    book = Book()
    for one in numbered([opened(), reserved("a", "2")]):
        book.enter(one)
    assert book.release("a") is not None


def test_a_row_is_dated_plainly_and_never_before_the_latest() -> None:
    with pytest.raises(InvalidRow, match="no plain date"):
        Book().enter(opened(created="20261122"))
    days = ["2026-11-05", "2026-11-03", "2026-11-04", "2026-11-05"]
    rows = [opened(created=days[0]), *(reserved(f"r{i}", "0.1", day) for i, day in enumerate(days[1:]))]
    early = [words for words in problems_of(numbered(rows)) if "dated before" in words]
    assert [words[:5] for words in early] == ["row 2", "row 3"]


REFUSED: dict[str, tuple[list[Row], str]] = {
    "two openings": ([opened(), opened()], "opens the dataset 'people' a second time"),
    "two reservations": ([opened(), reserved("a", "0.1"), reserved("a", "0.1")], "release a a second time"),
    "a part under replace-one": (
        [opened(replace(ASK, neighbours="replace_one")), of_part("a", "0.1", MARCH)],
        "counts for a part only, under replace_one",
    ),
}


@pytest.mark.parametrize(("rows", "words"), REFUSED.values(), ids=REFUSED)
def test_what_can_not_follow_is_refused(rows: list[Row], words: str) -> None:
    (found,) = problems_of(numbered(rows))
    assert words in found and found.startswith(f"row {len(rows)}: ")
    assert date.fromisoformat(rows[0].created) == date(2026, 11, 22)
