"""Whatever is done to a ledger of a hundred rows is found, or changes nothing that is read.

By the chain alone: any bit of any field, any row removed, moved, doubled or put in. By the head file: any
cell that was changed by somebody who knew to compute all hashes anew. And any bit of the SQLite file.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, fields, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.errors import ConfigError
from dpsynth.ledger.chain import FIRST, HeadFile, Row, broken_link, broken_links, chained
from dpsynth.ledger.contents import problems_of
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.store import FORMAT, _prepare_sqlite
from tests.examples import cases
from tests.ledger.forging import chained_anew
from tests.ledger.reservations import EVENTS, asking, cost, month

ROWS = 100
FIELDS = [field.name for field in fields(Row)]


@dataclass(frozen=True)
class Kept:
    """A ledger: its rows, its file as bytes, and its head file."""

    rows: tuple[Row, ...]
    stored: bytes
    head: Path


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Three datasets, parts, occasions, ends of both kinds, changes of caps and of a unit, many letters."""
    folder = tmp_path_factory.mktemp("kept")
    head = folder / "head"
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}", head)
    ledger.reserve(asking("u1", "0.01", dataset="rows"))
    ledger.settle("u1", cost("0.01"), EVENTS)
    ledger.change_unit("rows", Neighbours("add_remove", "who", 3), 3, "a form a year")
    ledger.change_cap("rows", Amount(Fraction(2), Fraction(1, 10**6)), "agreed")
    more = {"cap": Amount(Fraction(50), Fraction(1, 10**6)), "dataset": "Köln"}
    for i in range(1, ROWS):
        whose = more if i % 2 else {}
        part = {"part": month(f"20{i:02}-01"), "parallel": i % 3 == 0, "occasion": f"m{i}"} if i % 4 else {}
        ledger.reserve(asking(f"r{i}", "0.01", **whose, **part))
        if i % 5 == 0:
            ledger.settle(f"r{i}", cost("0.01"), EVENTS)
        elif i % 7 == 0:
            ledger.abandon(f"r{i}", None, [], "lost")
        elif i % 20 == 1:
            ledger.change_cap("Köln", Amount(Fraction(40 + i), Fraction(1, 10**6)), "agreed")
        if len(rows := ledger.rows()) >= ROWS:
            break
    assert len(rows) == ROWS and ledger.verify().problems == ()
    return Kept(rows, (folder / "ledger.db").read_bytes(), head)


def found(rows: Sequence[Row], kept: Kept) -> bool:
    """Whether the chain shows that something is wrong, with the record of the last row as it was."""
    return any(True for _ in broken_links(rows, ROWS, kept.rows[-1].hash))


def found_with_record(rows: Sequence[Row]) -> bool:
    """The same, where the record of the last row was made to match."""
    return any(True for _ in broken_links(rows, len(rows), rows[-1].hash if rows else FIRST))


def flips(value: int | str | None) -> Iterator[int | str | bytes | None]:
    """A stored field with each of its bits turned, and as a value of another type."""
    if value is None:
        yield from ("", 0, "null", b"")
    elif isinstance(value, int):
        for bit in range(64):
            flipped = value ^ (1 << bit)
            yield flipped - (1 << 64) if flipped >= 1 << 63 else flipped
        yield from (str(value), float(value), None, b"")  # type: ignore[misc]
    else:
        stored = value.encode()
        for place in range(len(stored)):
            for bit in range(8):
                flipped_byte = bytes([stored[place] ^ (1 << bit)])
                text = stored[:place] + flipped_byte + stored[place + 1 :]
                yield text.decode(errors="surrogateescape")
        yield from (stored, None, 0, value + " ", value[:-1])


def flipped(row: Row) -> Iterator[tuple[str, Row]]:
    """A row with each bit of each field turned."""
    for name in FIELDS:
        for value in flips(getattr(row, name)):
            if value != getattr(row, name) or type(value) is not type(getattr(row, name)):
                yield name, replace(row, **{name: value})


def test_every_bit_of_every_field_is_held_by_the_chain(kept: Kept) -> None:
    """The row itself shows it; once in so often the whole chain is read as well."""
    tried: Counter[str] = Counter()
    some = kept.rows[:: ROWS // cases(ROWS)]
    for row in some:
        i = row.number - 1
        number, before = (0, FIRST) if i == 0 else (i, kept.rows[i - 1].hash)
        assert not list(broken_link(row, number, before))
        for name, changed in flipped(row):
            tried[name] += 1
            assert next(broken_link(changed, number, before), None), (i, name)
            if tried.total() % 499 == 0:
                rows = [*kept.rows[:i], changed, *kept.rows[i + 1 :]]
                assert found(rows, kept) and found_with_record(rows)
    print(f"\n{tried.total():,} changes of {len(some)} rows, all found: {dict(tried)}")
    assert tried.total() > 8 * sum(len(row.content) for row in some)


@pytest.mark.parametrize("left_out", ["created", "release_id", "the types"])
def test_a_hash_that_leaves_something_out_is_caught(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, left_out: str
) -> None:
    """The planted faults."""

    def careless(row: Row) -> str:
        return json.dumps([str(getattr(row, name) or "") for name in FIELDS[:-1] if name != left_out])

    monkeypatch.setattr(Row, "true_hash", property(careless))
    row = kept.rows[0]
    row = replace(row, hash=str(row.true_hash))
    missed = {name for name, changed in flipped(row) if not list(broken_link(changed, 0, FIRST))}
    assert missed == {"release_id" if left_out == "the types" else left_out, "release_id"}


def test_every_row_that_is_removed_is_found(kept: Kept) -> None:
    for i in range(ROWS):
        rows = [*kept.rows[:i], *kept.rows[i + 1 :]]
        assert found(rows, kept)
        # Of the last row, only the record and the head file know.
        assert found_with_record(rows) == (i < ROWS - 1)
    for length in range(ROWS):
        assert found(kept.rows[:length], kept)
        with HeadFile(kept.head, create=False) as head:
            assert list(head.problems(kept.rows[:length], head.lines())), length
    with HeadFile(kept.head, create=False) as head:
        assert not list(head.problems(kept.rows, head.lines()))


def test_every_two_rows_that_are_exchanged_are_found(kept: Kept) -> None:
    pairs = list(combinations(range(ROWS), 2))
    for i, j in Random(4).sample(pairs, cases(len(pairs))):
        one, other = kept.rows[i], kept.rows[j]
        rows = list(kept.rows)
        rows[i], rows[j] = replace(other, number=one.number), replace(one, number=other.number)
        assert found(rows, kept)
        rows[i], rows[j] = other, one
        assert found(rows, kept)


def renumbered(rows: Sequence[Row], start: int) -> list[Row]:
    return [row if i < start else replace(row, number=i + 1) for i, row in enumerate(rows)]


def test_every_row_that_is_doubled_or_put_in_is_found(kept: Kept) -> None:
    doubled = forged = 0
    for i in range(ROWS):
        twice = [*kept.rows[: i + 1], *kept.rows[i:]]
        at_the_end = [*kept.rows, replace(kept.rows[i], number=ROWS + 1)]
        for rows in (twice, renumbered(twice, i + 1), at_the_end):
            assert found(rows, kept) and found_with_record(rows)
            doubled += 1
    for i in range(ROWS + 1):
        last = kept.rows[i - 1] if i else None
        forgery = chained(last, "cap", "people", None, kept.rows[0].content, kept.rows[0].created)
        rows = renumbered([*kept.rows[:i], forgery, *kept.rows[i:]], i + 1)
        assert found(rows, kept)
        # Put at the end, with the record of the last row forged as well, the row looks like any other.
        assert found_with_record(rows) == (i < ROWS)
        forged += 1
    print(f"\n{doubled} doubled and {forged} forged rows, all found")


def plausible(row: Row) -> Iterator[Row]:
    """A row with each of its cells edited to something that could stand there."""
    yield replace(row, kind="abandoned" if row.kind == "closed" else "closed")
    yield replace(row, dataset="people" if row.dataset != "people" else "Köln")
    yield replace(row, release_id="r0" if row.release_id else None, dataset=row.dataset + "2")
    yield replace(row, created="2025-01-01")
    content = json.loads(row.content)
    for key in content:
        changed = {**content, key: edited(content[key])}
        yield replace(row, content=json.dumps(changed, sort_keys=True, separators=(",", ":")))


def edited(value: object) -> object:
    """Another value of the same kind."""
    if isinstance(value, dict):
        return {key: "1/100000" if key in ("epsilon", "rho") else inner for key, inner in value.items()}
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return value[1:] or [{}]
    return "another" if value is None else f"{value}1"


def test_what_was_chained_anew_is_found_by_the_head_file(kept: Kept) -> None:
    """The chain alone can't show it: that is what the head file is for."""
    tried = senseless = 0
    some = kept.rows[:: ROWS // cases(ROWS, part=4)]
    for i, row in ((row.number - 1, row) for row in some):
        for changed in plausible(row):
            if changed == row:
                continue
            rows = chained_anew([*kept.rows[:i], changed, *kept.rows[i + 1 :]], i)
            assert not found_with_record(rows)
            tried += 1
            senseless += tried % 5 == 0 and bool(problems_of(rows))
            with HeadFile(kept.head, create=False) as head:
                assert next(head.problems(rows, head.lines()), None), (i, changed)
    print(
        f"\n{tried} edits with all later hashes anew: all found by the head file; {senseless} of "
        f"{tried // 5} make no sense besides"
    )
    assert tried > 8 * len(some) and senseless < tried // 5


def read(stored: bytes) -> tuple[list[Row], object, object, object]:
    """What the ledger reads from the bytes of its file."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(stored)
        _prepare_sqlite(connection, None)  # type: ignore[arg-type]
        names = ", ".join(FIELDS)
        rows = [Row(*row) for row in connection.execute(f"SELECT {names} FROM dpsynth_rows ORDER BY number")]
        ((form, counted, hashed),) = connection.execute(
            "SELECT format, rows, hash FROM dpsynth_ledger"
        ).fetchall()
    return rows, form, counted, hashed


def outcome(stored: bytes, kept: Kept) -> str:
    """What becomes of a ledger's file: "the same rows" may be read from it, or damage is found."""
    try:
        rows, form, counted, hashed = read(stored)
    except (sqlite3.Error, ValueError) as error:
        return f"found: {type(error).__name__}"
    if form != FORMAT or next(broken_links(rows, counted, hashed), None):
        return "found: in the chain"
    assert tuple(rows) == kept.rows
    return "the same rows"


def turned(stored: bytes, bit: int) -> bytes:
    changed = bytearray(stored)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_bits_of_the_file_that_turn_are_found_or_change_nothing(kept: Kept) -> None:
    chance, count = Random(5), cases(3000)
    told = Counter(
        outcome(turned(kept.stored, chance.randrange(8 * len(kept.stored))), kept) for _ in range(count)
    )
    print(f"\n{count:,} of {8 * len(kept.stored):,} bits of the file: {dict(told)}")
    assert min(told["the same rows"], told["found: in the chain"]) > count / 10


@pytest.mark.slow
def test_every_bit_of_the_file_that_turns_is_found_or_changes_nothing(kept: Kept, tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    file = tmp_path / "ledger.db"
    for bit in range(8 * len(kept.stored)):
        what = outcome(turned(kept.stored, bit), kept)
        told[what] += 1
        if what not in ("the same rows", "found: in the chain") or bit % 997 == 0:
            file.write_bytes(turned(kept.stored, bit))
            found = Ledger(f"sqlite:///{file}").verify()
            assert found.problems or (what == "the same rows" and found.hash == kept.rows[-1].hash), bit
    print(f"\nall {told.total():,} bits of the file: {dict(told)}")
    assert told.total() == 8 * len(kept.stored)


def test_a_turned_bit_is_refused_by_the_ledger_or_what_it_adds_stands_after_the_same_rows(
    kept: Kept, tmp_path: Path
) -> None:
    """The whole way, from the file to an entry, for bits anywhere and for bits that no row shows."""
    chance, file = Random(6), tmp_path / "ledger.db"
    total = 8 * len(kept.stored)
    quiet = (
        bit
        for bit in iter(lambda: chance.randrange(total), None)
        if outcome(turned(kept.stored, bit), kept) == "the same rows"
    )  # type: ignore[arg-type]
    header, count = range(0, 800, 800 // cases(114)), cases(60)
    bits = [*(chance.randrange(total) for _ in range(count)), *(next(quiet) for _ in range(count)), *header]
    told: Counter[str] = Counter()
    for bit in bits:
        file.write_bytes(turned(kept.stored, bit))
        ledger = Ledger(f"sqlite:///{file}")
        try:
            entry = ledger.reserve(asking("new", "0.001", dataset="another"))
        except ConfigError as error:
            assert "\n" not in str(error)
            told["refused"] += 1
            # Or it can be read as ever, and not be written.
            checked = ledger.verify()
            assert checked.problems or checked.rows == ROWS, bit
            continue
        assert entry.release_id == "new"
        try:
            rows = ledger.rows()
        except ConfigError:
            told["refused after the entry"] += 1
            continue
        assert rows[:ROWS] == kept.rows and len(rows) == ROWS + 2, bit
        told["entered"] += 1
    print(f"\n{dict(told)}")
    assert min(told["refused"], told["entered"]) > len(bits) / 6


def test_whoever_reads_the_manual_can_recompute_the_chain(kept: Kept) -> None:
    """By docs/files.md, with nothing of ours."""
    from hashlib import sha256

    before = "0" * 64
    for number, row in enumerate(kept.rows, start=1):
        told = row.to_json()
        digest = told.pop("hash")
        assert list(told) == FIELDS[:-1] and told["number"] == number and told["previous"] == before
        text = json.dumps(list(told.values()), separators=(",", ":"))
        before = sha256(text.encode("ascii")).hexdigest()
        assert before == digest
    assert astuple(kept.rows[-1])[-1] == before
