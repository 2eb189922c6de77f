"""Formats of numbers: plain, or with separators, signs of currency and leading zeros.

Invariant: a number that is written in a format is read back as the same number. A cell in neither the
declared format nor plain notation is no number; no guess is made of cells. The notation of a list follows
from that list alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Context, Decimal
from functools import cached_property
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from dpsynth.columns.section import Checked, Choice, JsonSchema, Section, Whole, refused

LARGEST_STEP = 2**53
"""The largest number of units of its last decimal of a number that a double holds exactly."""

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_PLAIN_NUMBER = re.compile(_NUMBER)
# A reader can't distinguish these, and programs write all of them between thousands.
_BLANKS = " \u00a0\u202f"
_APOSTROPHES = "'\u2019"
# No decimal signal raises, whatever a cell holds.
_NUMBERS = Context(prec=200, traps=[])
_SIGNS = ((",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("", ","), ("", "."))
"""Signs between thousands and before decimals, in the order in which they are tried."""
_AROUND = re.compile(
    r"^[+-]?([^0-9+\-.,]{0,20})[+-]?[0-9.,'\s\u00a0\u202f]*?([^0-9.,'\s\u00a0\u202f][^0-9]{0,19})?$"
)
_AFFIX = re.compile(r"[^0-9=+\-@.,]{1,20}")


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
        return {key: value for key, value in asdict(self).items() if value != getattr(PLAIN, key)}

    @property
    def _plain(self) -> bool:
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


def numbers_of(texts: Sequence[str]) -> tuple[list[Decimal], NumberFormat] | None:
    """The numbers that all texts are, in plain notation or in one that fits; None if they aren't numbers.

    >>> numbers, form = numbers_of(["1.234,50 EUR", "7,00 EUR"])
    >>> numbers, form.thousands, form.decimal, form.suffix
    ([Decimal('1234.50'), Decimal('7.00')], '.', ',', ' EUR')
    """
    if all(map(is_number, texts)):
        return [_NUMBERS.create_decimal(text) for text in texts], PLAIN
    form = _notation(texts)
    if form is None:
        return None
    return [_NUMBERS.create_decimal(_plain(text, form)) for text in texts], form


def listed_numbers(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """The numbers of a declared list, if it holds different numbers in one notation; otherwise None.

    >>> [listed_numbers(texts) for texts in (["0 %", "2,5 %", "5 %"], ["low", "high"], ["<10", "20"])]
    [array([0. , 2.5, 5. ]), None, None]
    """
    found = numbers_of(texts)
    if found is None:
        return None
    numbers, form = np.array(found[0], dtype=np.float64), found[1]
    alike = all(affix.strip() in text for affix in (form.prefix, form.suffix) for text in texts)
    return numbers if alike and np.isfinite(numbers).all() and len(set(found[0])) == len(texts) else None


def _notation(texts: Sequence[str]) -> NumberFormat | None:
    if not all(any(c.isdigit() for c in text) for text in texts):
        return None
    around = [_AROUND.match(text) for text in texts]
    if any(found is None for found in around):
        return None
    pairs = Counter(
        (found.group(1), _suffix(text, found.group(2)))
        for text, found in zip(texts, around, strict=True)
        if found
    )
    prefix, suffix = pairs.most_common(1)[0][0]
    prefix = prefix.lstrip()
    if any(affix and not _AFFIX.fullmatch(affix) for affix in (prefix, suffix)):
        return None
    array = pa.array(texts, pa.string())
    signs = {sign for text in texts for sign in text.removesuffix(suffix).replace(prefix, "", 1)}
    blanks = not signs.isdisjoint(_BLANKS)
    for thousands, decimal in _SIGNS:
        if (thousands == " " and not blanks) or (thousands.strip() and thousands not in signs):
            continue
        if decimal == "," and thousands != "." and "," not in signs:
            continue
        form = NumberFormat(thousands=thousands, decimal=decimal, prefix=prefix, suffix=suffix)
        if not np.isnan(form.read(array)).any():
            return form
    return None


def _suffix(text: str, letters: str | None) -> str:
    if not letters:
        return ""
    before = text[: len(text) - len(letters)]
    return (" " if before != before.rstrip() else "") + letters


def _plain(text: str, form: NumberFormat) -> str:
    digits = text.replace(form.prefix.strip(), "", 1) if form.prefix else text
    if form.suffix and digits.endswith(form.suffix.strip()):
        digits = digits[: -len(form.suffix.strip())]
    if form.thousands:
        digits = (
            re.sub(r"[\s\u00a0\u202f]", "", digits)
            if form.thousands == " "
            else digits.replace(form.thousands, "")
        )
    return digits.strip().replace(form.decimal, ".")


FORMAT_HELP = "How numbers are written. Left out: plainly, such as -1234.5."


_THOUSANDS = (",", ".", " ", "'", "_")


class Around(Checked):
    """A short text in front of a number or behind it."""

    def check(self, value: object) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= 20 or not value.isprintable():
            raise refused("must be a text of 1 to 20 printable characters, such as '$'")
        if any(letter.isdigit() or letter in "=+-@" for letter in value):
            raise refused("must not hold digits, nor any of = + - @")
        return value

    def json_schema(self) -> JsonSchema:
        return {"type": "string", "minLength": 1, "maxLength": 20}


class NumberNotation(Section):
    """Notation of numbers."""

    width: Annotated[int, Whole(at_least="1", at_most="18")] | None = Field(
        default=None, description="Digits before the decimals, at least; zeros fill up: 00042."
    )
    thousands: Annotated[str, Choice(_THOUSANDS)] | None = Field(
        default=None, description="Sign between groups of three digits: 1,234."
    )
    decimal: Annotated[str, Choice((".", ","))] | None = Field(
        default=None, description="Sign before the decimals. Left out: a full stop."
    )
    prefix: Annotated[str, Around()] | None = Field(
        default=None, description="Text in front of the digits: $12."
    )
    suffix: Annotated[str, Around()] | None = Field(default=None, description="Text behind the digits: 12 %.")

    def model_post_init(self, context: object, /) -> None:
        if self.thousands == (self.decimal or "."):
            raise refused(f"must differ from the decimal sign, which is '{self.decimal or '.'}'", "thousands")
        if self.width is not None and self.thousands is not None:
            raise refused("can't be combined with thousands", "width")
        if self.prefix is not None and self.prefix != self.prefix.lstrip():
            raise refused("must not begin with a blank; cells are read without", "prefix")
        if self.suffix is not None and self.suffix != self.suffix.rstrip():
            raise refused("must not end in a blank; cells are read without", "suffix")

    def form(self) -> NumberFormat:
        given = {key: value for key, value in self.model_dump().items() if value is not None}
        return NumberFormat(**given)


def form_of(declared: NumberNotation | None) -> NumberFormat:
    """The declared format, or the plain one."""
    return PLAIN if declared is None else declared.form()
