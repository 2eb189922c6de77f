"""Units are told apart by their own cells: persons, households, and what a person does in a period."""

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.neighbours import (
    EVENT,
    Neighbours,
    PerPeriod,
    left_unprotected,
    neighbours_in_words,
    protected,
)
from dpsynth.curator import units as unit_codes
from dpsynth.curator.units import nobody, rows_kept

KEY = b"key"
MONTHS = Neighbours("add_remove", "who", 2, per=PerPeriod("seen", "month"))
ROWS = [
    ("a", "2026-01-03"),
    ("A ", "2026-01-30 11:05:00"),
    ("a", " 2026-01"),
    ("a", "2026-02-01"),
    ("b", "2026-01-03"),
    ("a", "soon"),
    ("a", "2026"),
    ("", "2026-01-03"),
    (None, None),
]


def batch(rows=ROWS):
    who, seen = zip(*rows, strict=True)
    return {"who": pa.array(who, pa.string()), "seen": pa.array(seen, pa.string())}


def units(near, rows=ROWS):
    """Places of the rows of each unit, in the order of their first rows."""
    codes = unit_codes.unit_codes(batch(rows), near, KEY)
    found: dict[int, list[int]] = {}
    for place, code in enumerate(codes.tolist()):
        found.setdefault(code, []).append(place)
    return list(found.values())


def test_rows_of_one_person_in_one_month_are_one_unit_however_they_are_written() -> None:
    assert units(MONTHS) == [[0, 1, 2], [3], [4], [5, 6], [7, 8]]
    assert units(Neighbours("add_remove", "who", 2)) == [[0, 1, 2, 3, 5, 6], [4], [7, 8]]
    assert unit_codes.unit_codes(batch(), MONTHS, KEY)[7] == nobody(KEY)


@pytest.mark.parametrize(("every", "number"), [("day", 5), ("week", 5), ("quarter", 4), ("year", 3)])
def test_other_periods_make_other_units(every, number) -> None:
    near = Neighbours("add_remove", "who", 2, per=PerPeriod("seen", every))
    rows = [("a", day) for day in ("2026-01-03", "2026-01-30", "2026-04-01", "2027-01-30", "no date", "")]
    assert len(units(near, rows)) == number


def others_stay(near) -> bool:
    """Whether the rows used of other units are the same with and without one unit."""
    rng = np.random.default_rng(5)
    rows = [(f"p{rng.integers(3)}", f"2026-{rng.integers(1, 4):02}-05") for _ in range(60)]
    codes = unit_codes.unit_codes(batch(rows), near, KEY)
    gone = codes == codes[0]
    with_it = rows_kept(codes, near.max_rows, KEY)
    without = rows_kept(codes[~gone], near.max_rows, KEY)
    assert with_it[gone].sum() <= near.max_rows < gone.sum()
    return bool((with_it[~gone] == without).all())


def test_a_unit_that_comes_or_goes_moves_no_other_and_at_most_max_rows_of_it_are_used() -> None:
    assert others_stay(MONTHS) and others_stay(Neighbours("add_remove", "who", 2))


def test_a_period_that_follows_from_other_rows_would_be_seen(monkeypatch) -> None:
    """Months counted from the first date of the table, say."""

    def by_place(cells, every, key):
        order = np.unique(np.array(cells.to_pylist(), dtype=object).astype(str), return_inverse=True)[1]
        return (order + len(cells)).astype(np.uint64)

    monkeypatch.setattr(unit_codes, "_period_codes", by_place)
    rows = [("a", "2026-01-03"), ("a", "2026-01-30")]
    whole = unit_codes.unit_codes(batch([*rows, ("b", "2025-01-01")]), MONTHS, KEY)
    alone = unit_codes.unit_codes(batch(rows), MONTHS, KEY)
    assert whole[0] != whole[1] or whole[0] != alone[0]


@pytest.mark.parametrize(
    "near",
    [
        Neighbours("add_remove"),
        Neighbours("replace_one", kind="event"),
        Neighbours("add_remove", "who and what, at most 3", 7),
        Neighbours("replace_one", "flat", 6, "together", "household"),
        MONTHS,
        Neighbours("add_remove", "flat", 2, "left_out", "household", PerPeriod("day of the visit", "week")),
    ],
)
def test_a_unit_is_known_again_from_its_words_and_says_what_it_leaves_unprotected(near) -> None:
    assert neighbours_in_words(near.relation, near.unit, near.nameless) == near
    assert left_unprotected(near.unit).endswith(".")
    assert (near.person is None) == (near.columns == ())


@pytest.mark.parametrize(
    ("near", "words"),
    [
        (Neighbours("add_remove"), "A person with several rows, as a whole"),
        (Neighbours("add_remove", kind="event"), "A person with several events"),
        (Neighbours("add_remove", "who", 7), "A person with several who, as a whole"),
        (Neighbours("add_remove", "flat", 6, kind="household"), "What rows of several flat together say"),
        (MONTHS, "A person over several periods: what happened in one month"),
    ],
)
def test_what_a_unit_leaves_unprotected_is_said_in_its_own_words(near: Neighbours, words: str) -> None:
    assert left_unprotected(near.unit).startswith(words)


def test_units_are_worded_apart_so_that_a_ledger_adds_up_no_two_of_them() -> None:
    person = Neighbours("add_remove", "who", 2)
    household = Neighbours("add_remove", "who", 2, kind="household")
    words = [near.unit for near in (Neighbours("add_remove"), person, household, MONTHS)]
    assert len({protected(unit) for unit in [*words, EVENT]}) == 5
    assert MONTHS.unit == (
        "one person in one month: all rows with the same who and the same month of seen, at most 2"
    )


@pytest.mark.parametrize(
    "fields", [{"kind": "person"}, {"person": "who", "kind": "row"}, {"per": PerPeriod("seen", "day")}]
)
def test_a_unit_that_can_not_be_is_refused(fields) -> None:
    with pytest.raises(ValueError, match=r"column|rows of a person"):
        Neighbours("add_remove", **fields)


def test_units_of_many_persons_and_months_have_codes_of_their_own_that_are_evenly_spread() -> None:
    """Codes that kept only the bits that person and month share would be small, and equal now and then."""
    rows = [(f"p{i}", f"2026-{month:02d}") for i in range(100) for month in range(1, 13)]
    codes = unit_codes.unit_codes(batch(rows), MONTHS, KEY)
    assert len(np.unique(codes)) == len(rows)
    ones = np.unpackbits(codes.view(np.uint8)).mean()
    assert 0.48 < ones < 0.52
