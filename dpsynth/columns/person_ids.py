"""The ids of persons: one spelling for all variants of an id.

Two spellings of one id must not become two persons: not in a table, where each would have rows of its own,
and not at a respondent's side, where each would give a report.

Invariant: reading a spelling again gives the same spelling.
"""

from __future__ import annotations

import unicodedata
from decimal import Context

from dpsynth.columns.number_texts import is_number

NOBODY = ""
"""The spelling of a cell without an id."""

_WITHOUT = frozenset({"na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "?", "-", "."})
"""Spellings of an empty cell by programs, in lower case and without blanks."""
_AROUND = " '\"=`"
"""Characters that spreadsheets put around an id to keep it a text, as in ="007" and '007."""

_UNSEEN = frozenset(map(chr, (0x34F, 0x115F, 0x1160, *range(0xFE00, 0xFE10))))
"""Invisible characters that Unicode counts among letters and marks."""

# No decimal signal raises: every cell has a value.
NUMBERS = Context(prec=100, traps=[])
"""The numbers that ids are read as."""


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
        number = NUMBERS.create_decimal(plain).normalize(NUMBERS)
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
