"""Contribution bounding: at most k rows of each person, chosen at random.

Invariant: the choice among a person's rows depends on these rows and a secret key alone, so adding,
removing or exchanging one person changes no other person's rows. The person of a row depends on its
own id cell alone.

A person here is all rows with one id, in any spelling: two spellings of one id must not become two persons
with k rows each. People who share an id, or whose rows have none and are taken ``together``, are one person.
When one of several people with one id comes or goes, the random choice among their rows may change in up to
k rows, as if one person were exchanged: under add_remove that is two steps, so each of them is protected as
two persons are (``accounting.group``). Rows without an id that are ``left_out`` change nothing.
Somebody with several ids in the table counts as several persons.
"""

from __future__ import annotations

import unicodedata
from decimal import Context
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.curator.cell_texts import distinct_cells
from dpsynth.domain.number_texts import is_number

Person = NDArray[np.uint64]

NOBODY = ""
"""The spelling of a cell without an id."""

_WITHOUT = frozenset({"na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "?", "-", "."})
"""Spellings of an empty cell by programs, in lower case and without blanks."""
_AROUND = " '\"=`"
"""Characters that spreadsheets put around an id to keep it a text, as in ="007" and '007."""

_UNSEEN = frozenset(map(chr, (0x34F, 0x115F, 0x1160, *range(0xFE00, 0xFE10))))
"""Invisible characters that Unicode counts among letters and marks."""

# No decimal signal raises: every cell has a value.
_NUMBERS = Context(prec=100, traps=[])


def _digest(key: bytes, person: bytes) -> int:
    return int.from_bytes(blake2b(person, digest_size=8, key=key).digest(), "big")


def person_codes(ids: pa.Array, key: bytes) -> Person:
    """A 64-bit code for each row's person, equal where the canonical ids are equal.

    All rows without an id share the code of ``nobody``. Two persons share a code with probability
    2^-64; they would be bounded as one.
    """

    def read(texts: pa.StringArray) -> Person:
        return np.array([_digest(key, canonical_id(t).encode()) for t in texts.to_pylist()], dtype=np.uint64)

    return distinct_cells(ids).each(read)


def rows_of_persons(persons: Person) -> NDArray[np.int64]:
    """Number of rows of each person, int64[persons], in no particular order. Private."""
    return np.unique(persons, return_counts=True)[1]


def nobody(key: bytes) -> np.uint64:
    """The code of rows without an id."""
    return np.uint64(_digest(key, NOBODY.encode()))


def rows_kept(persons: Person, max_rows: int, key: bytes) -> NDArray[np.bool_]:
    """Mask of the rows that enter the table: all of a person with at most k, a random k of any other person.

    Args:
        persons: uint64[rows], the person of each row.
        max_rows: k.
        key: secret bytes of this release, the same when it is resumed.

    Each row of a person above the bound gets a pseudo-random priority from the key, the
    person and the row's rank among that person's rows; the k lowest are kept.
    """
    order = np.argsort(persons, kind="stable")
    ranked = persons[order]
    start = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.array([], int)
    length = np.diff(np.r_[start, len(ranked)])
    rank = np.arange(len(ranked)) - np.repeat(start, length)
    crowded = np.repeat(length > max_rows, length)
    kept = np.ones(len(persons), dtype=np.bool_)
    if not crowded.any():
        return kept
    over, rows_over = ranked[crowded], order[crowded]
    salts = rank[crowded]
    priority = np.fromiter(
        (_digest(key, b"%d:%d" % pair) for pair in zip(over.tolist(), salts.tolist(), strict=True)),
        dtype=np.uint64,
        count=len(over),
    )
    by_priority = np.lexsort((priority, over))
    grouped = over[by_priority]
    first = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    position = np.arange(len(grouped)) - np.repeat(first, np.diff(np.r_[first, len(grouped)]))
    kept[rows_over[by_priority[position >= max_rows]]] = False
    return kept


def canonical_id(cell: str | None) -> str:
    r"""The spelling of an id: NOBODY, or a text that all its variants share.

    Ignored are: case, width and composition of letters; the kind and number of blanks; characters that
    can't be seen; the length of dashes; the script of digits; quotes around the id; and, of a number, all but
    its value. Reading a spelling again gives the same spelling.

    >>> {canonical_id(cell) for cell in ("7", "007", "7.0", "'7", "7\u200b", "\u0667", " 7 ")}
    {'7'}
    """
    plain = cell or ""
    if not plain.isalnum() or not plain.isascii():
        plain = "".join(map(_seen, unicodedata.normalize("NFKC", plain)))
        # Through capitals, as some letters share only their capital.
        plain = unicodedata.normalize("NFKC", plain.upper().casefold())
    plain = " ".join(plain.casefold().split()).strip(_AROUND)
    if is_number(plain):
        number = _NUMBERS.create_decimal(plain).normalize(_NUMBERS)
        return "0" if number == 0 else str(number).casefold()
    return NOBODY if plain in _WITHOUT else plain


def _seen(sign: str) -> str:
    """The visible form of a character: controls and joiners vanish, dashes and digits get one form each."""
    if sign.isspace():
        return " "
    kind = unicodedata.category(sign)
    if kind in ("Cc", "Cf") or sign in _UNSEEN:
        return ""
    if kind == "Pd" or sign == "\N{MINUS SIGN}":
        return "-"
    if kind in ("Pi", "Pf"):
        return "'"
    return str(unicodedata.decimal(sign)) if kind == "Nd" else sign
