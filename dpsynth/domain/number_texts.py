"""Formats of numbers: plain, or with separators, signs of currency and leading zeros.

Invariant: a number that is written in a format is read back as the same number. A text in neither the
declared format nor plain notation is no number; no guess is made.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_PLAIN_NUMBER = re.compile(_NUMBER)
# A reader can't distinguish these, and programs write all of them between thousands.
_BLANKS = " \u00a0\u202f"
_APOSTROPHES = "'\u2019"


def is_number(text: str) -> bool:
    """True if a text is a plain decimal number (no inf, nan, hex, or separators)."""
    return _PLAIN_NUMBER.match(text) is not None


def parse_numbers(texts: pa.StringArray) -> NDArray[np.float64]:
    """Numbers of stripped texts, NaN where a text is null or no plain decimal number.

    A number too large for a double becomes an infinity, which clipping then bounds.
    """
    plain = pc.match_substring_regex(texts, _NUMBER)
    unsigned = pc.replace_substring_regex(texts, r"^\+", "")
    numbers = pc.cast(pc.if_else(plain, unsigned, pa.scalar(None, pa.string())), pa.float64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def fixed_texts(values: pa.Array, decimals: int) -> pa.StringArray:
    """Numbers in plain notation with a fixed number of decimals, never an exponent; null stays null.

    Args:
        values: float64 or int64, of at most 2^53 units of the last decimal.
        decimals: 0 or more.

    >>> fixed_texts(pa.array([-0.05, 12.0, None]), 2).to_pylist()
    ['-0.05', '12.00', None]
    """
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    steps = np.rint(numbers * 10.0**decimals).astype(np.int64)
    digits = pc.utf8_lpad(pc.cast(pa.array(np.abs(steps)), pa.string()), decimals + 1, "0")
    sign = pc.if_else(pa.array(steps < 0), "-", "")
    if decimals:
        whole, fraction = (
            pc.utf8_slice_codeunits(digits, 0, -decimals),
            pc.utf8_slice_codeunits(digits, -decimals),
        )
        texts = pc.binary_join_element_wise(sign, whole, ".", fraction, "")
    else:
        texts = pc.binary_join_element_wise(sign, digits, "")
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


@dataclass(frozen=True)
class NumberFormat:
    """A format of numbers.

    Attributes:
        width: least number of digits before the decimal sign; zeros fill up.
        thousands: separator between groups of three digits.
        decimal: separator before the decimals.
        prefix: text in front of the digits, after a minus sign.
        suffix: text behind the digits.

    >>> dollars = NumberFormat(thousands=",", prefix="$")
    >>> dollars.write(pa.array(["-1234.50", "7.00"])).to_pylist()
    ['-$1,234.50', '$7.00']
    >>> dollars.read(pa.array(["$1,234.5", "($7)", "-1234"])).tolist()
    [1234.5, nan, -1234.0]
    """

    width: int = 0
    thousands: str = ""
    decimal: str = "."
    prefix: str = ""
    suffix: str = ""

    @property
    def facts(self) -> dict[str, object]:
        """The differences from plain notation, for the public schema."""
        return {key: value for key, value in asdict(self).items() if value != getattr(PLAIN, key)}

    @property
    def _plain(self) -> bool:
        """True if plain notation reads it, leading zeros included."""
        return not (self.thousands or self.prefix or self.suffix) and self.decimal == "."

    @cached_property
    def _between(self) -> str:
        alike = {" ": _BLANKS, "'": _APOSTROPHES}.get(self.thousands)
        return re.escape(self.thousands) if alike is None else f"[{alike}]"

    @cached_property
    def _pattern(self) -> str:
        grouped = f"[0-9]{{1,3}}(?:{self._between}[0-9]{{3}})+|" if self.thousands else ""
        return (
            f"^(?P<sign>[+-]?){_may_stand(self.prefix)}(?P<inner>[+-]?)(?P<whole>{grouped}[0-9]*)"
            f"(?:{re.escape(self.decimal)}(?P<fraction>[0-9]*))?{_may_stand(self.suffix)}$"
        )

    def read(self, texts: pa.StringArray) -> NDArray[np.float64]:
        """Numbers of stripped texts in this format or in plain notation, NaN for every other text."""
        if self._plain:
            return parse_numbers(texts)
        found = pc.extract_regex(texts, self._pattern)
        sign, inner, whole, fraction = (found.field(i) for i in range(4))
        if self.thousands:
            whole = pc.replace_substring_regex(whole, self._between, "")
        plain = pc.binary_join_element_wise(sign, inner, whole, ".", fraction, "")
        # The fields of a text that does not match are empty, not null.
        return parse_numbers(pc.if_else(pc.is_null(found), texts, plain))

    def write(self, plain: pa.StringArray) -> pa.StringArray:
        """Texts of plain numbers without exponent in this format; null stays null."""
        if self == PLAIN:
            return plain
        distinct = plain.dictionary_encode()
        written = [None if t is None else self._written(t) for t in distinct.dictionary.to_pylist()]
        return pa.array(written, pa.string()).take(distinct.indices)

    def _written(self, plain: str) -> str:
        sign, digits = ("-", plain[1:]) if plain.startswith("-") else ("", plain)
        whole, point, fraction = digits.partition(".")
        whole = whole.zfill(self.width)
        if self.thousands:
            whole = f"{int(whole):,}".replace(",", self.thousands)
        return f"{sign}{self.prefix}{whole}{self.decimal if point else ''}{fraction}{self.suffix}"


def _may_stand(text: str) -> str:
    """A pattern of a text or nothing; blanks in it may be of any kind, or left out."""
    return f"(?:{f'[{_BLANKS}]?'.join(map(re.escape, text.split(' ')))})?"


PLAIN = NumberFormat()
