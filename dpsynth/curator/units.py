"""Units: whose row it is and in which period, which units are in a secret sample, and contribution bounding.

Invariant: the code of a row follows from its own cells and a secret key alone; two rows have one code if, and
but for a chance of 2^-64 only if, they are of one unit. At most k rows of each person enter, chosen at
random; where their order counts, k rows that follow each other. The choice depends on these rows and a secret
key alone, so adding, removing or exchanging one person changes no other person's rows. The coin of a person
follows from her id alone, that of a row from its place in the file alone: whoever else is in the table, units
are in the sample independently of each other.

A person here is all rows with one id, in any spelling: two spellings of one id must not become two persons
with k rows each. People who share an id, or whose rows have none and are taken ``together``, are one person.
When one of several people with one id comes or goes, the random choice among their rows may change in up to
k rows, as if one person were exchanged: under add_remove that is two steps, so each of them is protected as
two persons are (``accounting.composition.group_amount``). Rows without an id that are ``left_out`` change
nothing. Somebody with several ids in the table counts as several persons.

Rows are grouped by parts of the persons' codes, which are spread evenly, so the memory that it takes doesn't
grow with the table, but for a byte a row. The parts change no choice.

A coin of the sample has 64 bits, which follow from the release's secret key by a keyed hash. The key is 256
bits from the operating system's cryptographic source, and stands in the journal alone. So a resumed release
has the same sample, another release has another one, and nobody without the key can tell a coin from one that
was tossed. A unit is in the sample if its coin, as a whole number, is below a threshold: no float decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b, shake_256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.slices import label_within
from dpsynth.accounting.subsampling import COIN_BITS
from dpsynth.columns.identifier import NOBODY, NUMBERS, canonical_id
from dpsynth.columns.number_texts import is_number
from dpsynth.curator.rows.cell_texts import Batch, distinct_cells, of_rows
from dpsynth.curator.rows.coded_columns import blocks

Person = NDArray[np.uint64]


ROWS_AT_ONCE = 1 << 23
"""Rows that are grouped by person at once; they take about 50 bytes each."""


_HALF = np.uint64(32)


_DIGITS = 18


_PLAIN_NUMBER = "^(0|[1-9][0-9]{0,17})$"
"""Whole numbers as programs write them."""


def keyed_digest(key: bytes, person: bytes) -> int:
    """64 pseudo-random bits that follow from a key and some bytes."""
    return int.from_bytes(blake2b(person, digest_size=8, key=key).digest(), "big")


def _pseudorandom(key: bytes, use: bytes, pairs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Pseudo-random numbers uint64[n] of pairs uint64[n, 2]: the first half of AES of each pair.

    Numbers for two uses have nothing to do with each other.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    secret = blake2b(use, digest_size=32, key=key).digest()
    # Each pair is a block of its own: AES is used as a pseudo-random function, and nothing is sent anywhere.
    cipher = Cipher(algorithms.AES256(secret), modes.ECB()).encryptor()
    blocks = cipher.update(np.ascontiguousarray(pairs, dtype="<u8").tobytes()) + cipher.finalize()
    return np.frombuffer(blocks, "<u8")[::2].astype(np.uint64)


def person_codes(ids: pa.Array, key: bytes) -> Person:
    """A 64-bit code for each row's person, equal where the canonical ids are equal.

    All rows without an id share the code of ``nobody``. Two persons share a code with probability
    2^-64; they would be bounded as one. Ids that are whole numbers are coded all at once.
    """

    def read(texts: pa.StringArray) -> Person:
        plain = pc.fill_null(pc.match_substring_regex(texts, _PLAIN_NUMBER), False)
        numbers = pc.cast(pc.if_else(plain, texts, "0"), pa.int64()).to_numpy(zero_copy_only=False).copy()
        codes = np.zeros(len(texts), dtype=np.uint64)
        spelt = ~np.asarray(plain.to_numpy(zero_copy_only=False))
        for spot, text in zip(np.flatnonzero(spelt), texts.filter(pa.array(spelt)).to_pylist(), strict=True):
            person = canonical_id(text)
            whole = _whole_number(person)
            if whole is None:
                codes[spot] = keyed_digest(key, person.encode())
            else:
                numbers[spot], spelt[spot] = whole, False
        pairs = np.stack([numbers[~spelt].view(np.uint64), np.zeros((~spelt).sum(), np.uint64)], axis=1)
        codes[~spelt] = _pseudorandom(key, b"persons", pairs)
        return codes

    return distinct_cells(ids).each(read)


def _whole_number(person: str) -> int | None:
    if not is_number(person):
        return None
    number = NUMBERS.create_decimal(person)
    return int(number) if number.adjusted() < _DIGITS and number == number.to_integral_value() else None


def rows_of_persons(persons: Person) -> NDArray[np.int64]:
    """Number of rows of each person, int64[persons], in no particular order. Private."""
    counts = [np.unique(persons[rows], return_counts=True)[1] for rows in _parts(persons)]
    return np.concatenate([np.zeros(0, np.int64), *counts])


def rows_of_each(persons: Person) -> NDArray[np.int64]:
    """Number of rows of the person of each row, int64[rows]. Private."""
    found = np.zeros(len(persons), np.int64)
    for rows in _parts(persons):
        _, spots, counts = np.unique(persons[rows], return_inverse=True, return_counts=True)
        found[rows] = counts[spots]
    return found


def numbered(persons: Person) -> NDArray[np.int32]:
    """A number for the person of each row, int32[rows], from 0 without a gap. Private."""
    found, first = np.zeros(len(persons), np.int32), 0
    for rows in _parts(persons):
        each, spots = np.unique(persons[rows], return_inverse=True)
        found[rows] = spots + first
        first += len(each)
    return found


def nobody(key: bytes) -> np.uint64:
    """The code of rows without an id."""
    return np.uint64(keyed_digest(key, NOBODY.encode()))


def _parts(persons: Person) -> Iterator[NDArray[np.intp]]:
    """The rows of some persons at a time, in their order: all rows of a person are in one part.

    Codes of persons are spread evenly, so parts are about alike, unless one person has more rows than a part.
    """
    number = max(1, -(-len(persons) // ROWS_AT_ONCE))
    if number == 1:
        yield np.arange(len(persons))
        return
    for part in range(number):
        rows = [
            block.start + np.flatnonzero((persons[block] >> _HALF) * np.uint64(number) >> _HALF == part)
            for block in blocks(len(persons), ROWS_AT_ONCE)
        ]
        yield np.concatenate(rows)


def rows_kept(persons: Person, max_rows: int, key: bytes) -> NDArray[np.bool_]:
    """Mask of the rows that enter the table: all of a person with at most k, a random k of any other person.

    Args:
        persons: uint64[rows], the person of each row; some of them are held at a time.
        max_rows: k.
        key: secret bytes of this release, the same when it is resumed.

    Each row of a person above the bound gets a pseudo-random priority from the key, the
    person and the row's rank among that person's rows; the k lowest are kept.
    """
    kept = np.ones(len(persons), dtype=np.bool_)
    for rows in _parts(persons):
        kept[rows[_beyond(persons[rows], max_rows, key)]] = False
    return kept


def _beyond(persons: Person, max_rows: int, key: bytes) -> NDArray[np.intp]:
    order = np.argsort(persons, kind="stable")
    ranked = persons[order]
    start = _firsts(ranked)
    length = np.diff(np.r_[start, len(ranked)])
    crowded = np.repeat(length > max_rows, length)
    if not crowded.any():
        return np.zeros(0, np.intp)
    rank = (np.arange(len(ranked)) - np.repeat(start, length))[crowded]
    over, rows_over = ranked[crowded], order[crowded]
    priority = _pseudorandom(key, b"rows", np.stack([over, rank.astype(np.uint64)], axis=1))
    by_priority = np.lexsort((priority, over))
    first = _firsts(over)
    position = np.arange(len(over)) - np.repeat(first, np.diff(np.r_[first, len(over)]))
    return np.asarray(rows_over[by_priority[position >= max_rows]])


def windows_kept(persons: Person, order: NDArray[np.integer], max_rows: int, key: bytes) -> NDArray[np.bool_]:
    """Mask of the rows that enter a table of histories: of a person with more than k, k rows in a row.

    Where they begin is a pseudo-random number from the key and the person. Rows of a person follow each other
    by ``order``, integers[rows]; those of one place as in the table.
    """
    kept = np.ones(len(persons), dtype=np.bool_)
    for rows in _parts(persons):
        ordered = rows[np.lexsort((order[rows], persons[rows]))]
        start = _firsts(persons[ordered])
        length = np.diff(np.r_[start, len(ordered)])
        own = np.stack([persons[ordered[start]], length.astype(np.uint64)], axis=1)
        spare = np.maximum(length - max_rows, 0).astype(np.uint64) + np.uint64(1)
        first = (_pseudorandom(key, b"windows", own) % spare).astype(np.int64)
        rank = np.arange(len(ordered)) - np.repeat(start + first, length)
        kept[ordered[(rank < 0) | (rank >= max_rows)]] = False
    return kept


def rows_before(persons: Person, order: NDArray[np.integer]) -> NDArray[np.int64]:
    """The place of the row before each row in its person's order, int64[rows]; -1 for the first. Private."""
    found = np.full(len(persons), -1, np.int64)
    for rows in _parts(persons):
        ordered = rows[np.lexsort((order[rows], persons[rows]))]
        same = persons[ordered[1:]] == persons[ordered[:-1]]
        found[ordered[1:][same]] = ordered[:-1][same]
    return found


def _firsts(ranked: Person) -> NDArray[np.intp]:
    return np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.zeros(0, np.intp)


_TIME = (
    r"[T ]([01][0-9]|2[0-4])(:[0-5][0-9](:[0-6][0-9]([.,][0-9]+)?)?)?"
    r" ?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)


_DATED = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}" + _TIME


def unit_codes(batch: Mapping[str, pa.Array], near: Neighbours, key: bytes) -> Person:
    """A 64-bit code of each row's unit; that of ``nobody`` for all rows without an id, in any period.

    Args:
        batch: columns by name, with those of the unit.
        near: relation and unit; the unit is not a row.
        key: secret bytes of the release.
    """
    assert near.person is not None
    people = person_codes(batch[near.person], key)
    if near.per is None:
        return people
    every = near.per.every
    periods = distinct_cells(batch[near.per.column]).each(lambda texts: _period_codes(texts, every, key))
    return np.where(people == nobody(key), people, people ^ periods)


def _period_codes(cells: pa.StringArray, every: str, key: bytes) -> Person:
    """A code of the period of each cell; cells that aren't dates, or are coarser, share one."""
    coded = pc.dictionary_encode(dates_written(cells), null_encoding="encode")
    labels = [label_within(every, text or "") for text in coded.dictionary.to_pylist()]
    codes = np.array([keyed_digest(key, b"in:" + label.encode()) for label in labels], dtype=np.uint64)
    return np.asarray(codes[coded.indices.to_numpy(zero_copy_only=False)], dtype=np.uint64)


def dates_written(cells: pa.StringArray) -> pa.StringArray:
    """The cells without blanks around them, and of a date with a time the date that is written there."""
    texts = pc.utf8_trim_whitespace(cells)
    dated = pc.match_substring_regex(texts, _DATED)
    return pc.if_else(dated, pc.utf8_slice_codeunits(texts, 0, 10), texts)


_BLOCK = 1 << 16
"""Number of rows whose coins are tossed together, whatever the batches are."""


_BYTES = COIN_BITS // 8


_PERSONS, _ROWS = b"sample persons", b"sample rows"


@dataclass(frozen=True, repr=False)
class UnitSample:
    """A secret sample. Its repr shows nothing.

    Attributes:
        threshold: number of coins, of 2^64, with which a unit is in the sample.
        key: the release's secret.
    """

    threshold: int
    key: bytes

    def of(self, batches: Iterable[Batch], near: Neighbours, start: int = 0) -> Iterator[Batch]:
        """The rows of the units in the sample, batch by batch.

        Args:
            batches: rows in their order, the person's column included where persons are the units.
            near: the unit.
            start: the place of the first of them in the table, from 0.
        """
        for batch in batches:
            number = len(next(iter(batch.values())))
            if near.person is None:
                chosen = self.rows(start, number)
            else:
                chosen = self.persons(person_codes(batch[near.person], self.key))
            start += number
            yield of_rows(batch, pa.array(chosen))

    def persons(self, codes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """True for each row whose person is in the sample.

        Args:
            codes: uint64[rows], the code of each row's person.
        """
        distinct, place = np.unique(codes, return_inverse=True)
        coins = (
            blake2b(code, digest_size=_BYTES, key=self.key, person=_PERSONS).digest()
            for code in (int(c).to_bytes(_BYTES, "big") for c in distinct)
        )
        chosen = np.fromiter(
            (int.from_bytes(coin, "big") < self.threshold for coin in coins), np.bool_, len(distinct)
        )
        return np.asarray(chosen[place], dtype=np.bool_)

    def rows(self, start: int, number: int) -> NDArray[np.bool_]:
        """True for each of some rows that is in the sample.

        Args:
            start: the place of the first of them in the file, from 0.
        """
        if not number:
            return np.zeros(0, np.bool_)
        first, last = start // _BLOCK, (start + number - 1) // _BLOCK
        coins = np.concatenate([*self._coins(first, last)])
        at = start - first * _BLOCK
        return np.asarray(coins[at : at + number] < np.uint64(self.threshold), dtype=np.bool_)

    def _coins(self, first: int, last: int) -> Iterator[NDArray[np.uint64]]:
        for block in range(first, last + 1):
            drawn = shake_256(self.key + _ROWS + block.to_bytes(_BYTES, "big")).digest(_BYTES * _BLOCK)
            yield np.frombuffer(drawn, dtype=">u8").astype(np.uint64)
