"""The chain: each row of the ledger carries a hash of itself and of the row before.

Invariant: a change, removal, insertion or reordering of rows changes the hash of the last row, and a row's
hash can be recomputed from its fields alone (docs/files.md has the steps).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Literal, get_args

Kind = Literal["dataset", "reserved", "resumed", "closed", "abandoned", "cap", "unit"]
KINDS: tuple[str, ...] = get_args(Kind)

FIRST = "0" * 64
"""The previous hash of the first row."""

Fields = tuple[int, str, str, str | None, str, str, str, str]
"""The fields of a row, in order."""


@dataclass(frozen=True)
class Row:
    """One row of the ledger, as stored. A damaged row may hold values of other types.

    Attributes:
        number: 1, 2, 3, ...
        kind: the kind of fact that the row records.
        dataset: the dataset that it is about.
        release_id: the release that it is about; None where it is about none.
        content: JSON of the facts.
        created: ISO date, UTC; never before the date of the previous row.
        previous: hash of the previous row, ``FIRST`` for the first.
        hash: hash of the row.
    """

    number: int
    kind: str
    dataset: str
    release_id: str | None
    content: str
    created: str
    previous: str
    hash: str

    def to_json(self) -> dict[str, int | str | None]:
        """The fields by name."""
        return asdict(self)

    @property
    def true_hash(self) -> str | None:
        """SHA-256 in hex of the JSON list of all other fields, in order, without spaces, in ASCII.

        JSON distinguishes 1 from "1" and null from "", so that fields of another type have another hash.
        None where a field is of a type that is never written.
        """
        texts = (self.kind, self.dataset, self.content, self.created, self.previous)
        if type(self.number) is not int or not all(type(text) is str for text in texts):
            return None
        if self.release_id is not None and type(self.release_id) is not str:
            return None
        # In the order of the columns.
        fields = [self.number, *texts[:2], self.release_id, *texts[2:]]
        return sha256(json.dumps(fields, separators=(",", ":"), ensure_ascii=True).encode()).hexdigest()


def chained(
    last: Row | None, kind: Kind, dataset: str, release_id: str | None, content: str, created: str
) -> Row:
    """The row that comes after another."""
    number, before = (1, FIRST) if last is None else (last.number + 1, last.hash)
    bare = Row(number, kind, dataset, release_id, content, created, before, "")
    return Row(number, kind, dataset, release_id, content, created, before, str(bare.true_hash))


def broken_link(row: Row, number: int, before: str) -> Iterator[str]:
    """The faults of a row that hashes show, in words that begin with its number.

    Args:
        row: as stored.
        number: number of the previous row, as stored; 0 if there is none.
        before: hash of the previous row, as stored; ``FIRST`` if there is none.
    """
    expected = number + 1
    if type(row.number) is not int:
        yield f"row {expected}: it has no number"
    elif row.number < expected:
        yield f"row {row.number}: it stands twice, or out of order"
    elif row.number > expected:
        more = "" if row.number == expected + 1 else f" and all up to {row.number - 1}"
        yield f"row {expected}: it{more} is missing"
    elif row.previous != before:
        yield f"row {expected}: it does not follow the row before, so one of them was exchanged"
    true_hash = row.true_hash
    if true_hash is None or row.hash != true_hash:
        shown = row.number if type(row.number) is int else expected
        yield f"row {shown}: it was changed after it was written"


def broken_links(rows: Sequence[Row], counted: object, hashed: object, checked: int = 0) -> Iterator[str]:
    """The faults of a chain that its hashes show, in words that begin with the row's number.

    Each row is compared with the row before it, so that a change is reported at the row that was changed.

    Args:
        rows: in the order of their numbers.
        counted: number of rows, by the ledger's record.
        hashed: hash of the last row, by the ledger's record.
        checked: number of first rows in which no fault was found before.
    """
    number, before = (checked, rows[checked - 1].hash) if checked else (0, FIRST)
    for row in rows[checked:]:
        yield from broken_link(row, number, before)
        number, before = row.number if type(row.number) is int else number + 1, row.hash
    if type(counted) is not int or counted != len(rows) or hashed != before:
        yield (
            f"row {len(rows)}: it should not be the last. The ledger's record is of {_short(counted)} rows, "
            f"the last with the hash {_short(hashed)}; rows were removed or added, or the record was changed"
        )


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) < 80 else f"{repr(value)[:76]}..."
