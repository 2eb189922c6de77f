"""One spelling for all variants of a person's id, and none for cells that hold no id.

What two programs or two clerks make of one id must not become two persons: each would have k rows of its
own. Two persons who come to share a spelling are bounded as one; what that means for them stands in
``bounding``.

Invariant: what a cell is read as depends on the cell alone, and reading it twice changes nothing.
"""

from __future__ import annotations

import unicodedata
from decimal import Context

from dpsynth.domain.number_texts import is_number

NOBODY = ""
"""What a cell without an id is read as."""

_WITHOUT = frozenset({"na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "?", "-", "."})
"""What programs write for an empty cell, after case and blanks."""
_AROUND = " '\"=`"
"""What spreadsheets put around an id to keep it a text, as in ="007" and '007."""

_UNSEEN = frozenset(map(chr, (0x34F, 0x115F, 0x1160, *range(0xFE00, 0xFE10))))
"""Signs without a shape that Unicode counts among letters and marks."""

# Nothing traps: whatever a cell holds has a value.
_NUMBERS = Context(prec=100, traps=[])


def canonical_id(cell: str | None) -> str:
    r"""The spelling of an id: NOBODY, or a text that all its variants share.

    Alike are: case, width and composition of letters; blanks of any kind and number; signs that can't be
    seen; dashes of any length; digits of any script; quotes around it; and numbers of one value.

    >>> {canonical_id(cell) for cell in ("7", "007", "7.0", "'7", "7\u200b", "\u0667", " 7 ")}
    {'7'}
    """
    plain = cell or ""
    if not plain.isalnum() or not plain.isascii():
        plain = "".join(map(_seen, unicodedata.normalize("NFKC", plain)))
        # By way of capitals, for some letters share theirs alone.
        plain = unicodedata.normalize("NFKC", plain.upper().casefold())
    plain = " ".join(plain.casefold().split()).strip(_AROUND)
    if is_number(plain):
        number = _NUMBERS.create_decimal(plain).normalize(_NUMBERS)
        return "0" if number == 0 else str(number).casefold()
    return NOBODY if plain in _WITHOUT else plain


def _seen(sign: str) -> str:
    """A sign as it looks: controls and joiners are nothing, dashes and digits are written the common way."""
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
