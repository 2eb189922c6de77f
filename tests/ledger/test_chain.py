"""The chain of a ledger's rows: hashes that are the same in every version, and every fault in words."""

from dataclasses import replace

import pytest

from dpsynth.ledger.chain import FIRST, Row, broken_link, broken_links, chained

CREATED = "2026-01-02T03:04:05+00:00"


def chain(number: int) -> list[Row]:
    rows: list[Row] = []
    for i in range(number):
        last = rows[-1] if rows else None
        rows.append(chained(last, "reserve", "visits", f"r{i}" if i else None, '{"café":1}', CREATED))
    return rows


def test_hashes_are_those_that_ledgers_hold() -> None:
    """Fixed in the source: a ledger that exists must stay readable."""
    one, two = chain(2)
    assert one.previous == FIRST == "0" * 64
    assert (one.number, two.number, two.previous) == (1, 2, one.hash)
    assert one.hash == "cdeffc270d8fdd9d59f4aecbef1cdc025bd41a7d1676b6e3d3ab9be88482a4d9"
    assert two.hash == "755a59a421ee9eb022296bd566cb1783c5c1ab4850ff40d45cb033a9f8089ca9"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("number", "1"),
        ("number", True),
        ("kind", b"reserve"),
        ("dataset", None),
        ("content", 1),
        ("created", 0.5),
        ("previous", None),
        ("release_id", 7),
    ],
)
def test_a_field_of_a_type_that_is_never_written_has_no_hash(field: str, value: object) -> None:
    (row,) = chain(1)
    changed = replace(row, **{field: value})
    assert changed.true_hash is None
    assert list(broken_link(changed, 0, FIRST))


def test_each_fault_of_a_chain_is_told_with_its_row() -> None:
    rows = chain(4)
    assert not list(broken_links(rows, 4, rows[-1].hash))
    assert list(broken_link(rows[2], 1, rows[1].hash)) == ["row 2: it is missing"]
    assert list(broken_link(rows[3], 1, rows[1].hash)) == ["row 2: it and all up to 3 is missing"]
    assert list(broken_link(rows[1], 2, rows[1].hash)) == ["row 2: it stands twice, or out of order"]
    exchanged = "row 2: it does not follow the row before, so one of them was exchanged"
    assert list(broken_link(rows[1], 1, FIRST)) == [exchanged]
    changed = replace(rows[1], content="{}")
    assert list(broken_link(changed, 1, rows[0].hash)) == ["row 2: it was changed after it was written"]


def test_a_row_without_a_number_is_told_where_it_stands_and_the_next_ones_are_whole() -> None:
    rows = chain(4)
    rows[1] = replace(rows[1], number=None)  # type: ignore[arg-type]
    assert list(broken_links(rows, 4, rows[-1].hash)) == [
        "row 2: it has no number",
        "row 2: it was changed after it was written",
    ]


@pytest.mark.parametrize(
    ("counted", "hashed"), [(3, None), (5, None), ("4", None), (4.0, None), (4, FIRST), (4, 1)]
)
def test_a_record_of_another_end_is_told(counted: object, hashed: object) -> None:
    rows = chain(4)
    (said,) = broken_links(rows, counted, rows[-1].hash if hashed is None else hashed)
    assert said.startswith("row 4: it should not be the last")


def test_what_was_checked_before_is_not_looked_at_again_and_all_after_it_is() -> None:
    rows = chain(4)
    rows[0] = replace(rows[0], content="{}")
    assert not list(broken_links(rows, 4, rows[-1].hash, checked=1))
    assert len(list(broken_links(rows, 4, rows[-1].hash))) == 1
    rows[3] = replace(rows[3], content="{}")
    assert len(list(broken_links(rows, 4, rows[-1].hash, checked=3))) == 1
