"""Neutral text cells, which no spreadsheet can take for a formula.

A spreadsheet runs a cell of a CSV file that begins with = + - or @ (their full-width
forms included, and white space or invisible characters in front of them), and splits one
that begins with a tab or a line break. Such a text gets an apostrophe in front, which
spreadsheets show as text. So that the rule can be undone, a text that begins with an
apostrophe gets one more. Numbers are left as they are, "-5", "-$1,234.50" and "-00:30" among
them: digits and their separators are no formula.

Invariant: ``restore(neutralise(texts))`` is ``texts``, for every text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.columns.number_texts import parse_numbers

GUARD = "'"

_RISKY = "^(?:'|[\\t\\r\\n]|[\\s\\p{Z}\\p{C}]*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_SPELT_NUMBER = "^[+-][$€£¥]?[0-9][0-9.,:' _\u00a0\u202f]*[%€£¥$]?$"


def neutralise(texts: pa.StringArray) -> pa.StringArray:
    """Texts with an apostrophe in front of those that a spreadsheet might run; null stays null."""
    risky = pc.match_substring_regex(texts, _RISKY)
    if not pc.any(risky).as_py():
        return texts
    plain_number = pa.array(~np.isnan(parse_numbers(texts)))
    harmless = pc.or_(plain_number, pc.match_substring_regex(texts, _SPELT_NUMBER))
    guarded = pc.binary_join_element_wise(GUARD, texts, "")
    return pc.if_else(pc.and_not(risky, harmless), guarded, texts)


def restore(texts: pa.StringArray) -> pa.StringArray:
    """The texts that ``neutralise`` was given: the first apostrophe of each is dropped."""
    return pc.if_else(pc.starts_with(texts, GUARD), pc.utf8_slice_codeunits(texts, 1), texts)
