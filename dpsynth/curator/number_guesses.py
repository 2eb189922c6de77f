"""Guesses of columns of numbers: their notation, bounds, decimals and bins.

Invariant: bounds lie outside of what was seen, at multiples of a round step, and are those of the calendar
where a column's name says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Context, Decimal
from math import floor, log10

import numpy as np
import pyarrow as pa

from dpsynth.curator.column_names import calendar_ends
from dpsynth.curator.reach import Reach
from dpsynth.domain.number_texts import NumberFormat, is_number

Plain = str | int | bool | Decimal | None | list[str | int] | dict[str, str]
"""A value of the grammar."""

Guess = dict[str, Plain]
"""Keys of a column's declaration; None for a value that can't be guessed."""

FEWEST_FOR_TREE = 1_000
"""Fewest rows of a column whose bins are found with a part of the budget."""

_ONE_A_VALUE = 128
"""Most whole numbers between two bounds of which each has a bin without being asked for."""
_MOST_POINTS = 64
"""Most values of a column of numbers that are listed."""
_ROWS_A_POINT = 30
"""Least mean number of rows of the values of a column whose values are listed."""
_GAPS = 8
"""Least range of whole numbers that are listed, in multiples of how many they are."""
_POINTS_COVER = 0.99
"""Least part of a column's rows that listed values have."""
_MOST_DECIMALS = 4
_STEPS = 5
"""Digits of a number, from the first of the range on, where cells have more decimals than anyone needs."""
_FEWEST_STEPS = 100
LARGEST = 10**15
# No decimal signal raises: profiling goes on whatever a cell holds.
_NUMBERS = Context(prec=200, traps=[])
_SIGNS = ((",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("", ","), ("", "."))
"""Signs between thousands and before decimals, in the order in which they are tried."""
_BLANKS = " \u00a0\u202f"
_AROUND = re.compile(
    r"^[+-]?([^0-9+\-.,]{0,20})[+-]?[0-9.,'\s\u00a0\u202f]*?([^0-9.,'\s\u00a0\u202f][^0-9]{0,19})?$"
)
_AFFIX = re.compile(r"[^0-9=+\-@.,]{1,20}")


def numbers_of(texts: Sequence[str]) -> tuple[list[Decimal], NumberFormat] | None:
    """The numbers that all texts are, in plain notation or in one that fits; None if they aren't numbers.

    >>> numbers, form = numbers_of(["1.234,50 EUR", "7,00 EUR"])
    >>> numbers, form.thousands, form.decimal, form.suffix
    ([Decimal('1234.50'), Decimal('7.00')], '.', ',', ' EUR')
    """
    if all(map(is_number, texts)):
        return [_NUMBERS.create_decimal(text) for text in texts], NumberFormat()
    form = _notation(texts)
    if form is None:
        return None
    return [_NUMBERS.create_decimal(_plain(text, form)) for text in texts], form


def _notation(texts: Sequence[str]) -> NumberFormat | None:
    """A format in which all texts are numbers."""
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
    signs = {sign for text in texts for sign in text} - {*prefix, *suffix.lstrip()}
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
    """The letters behind a number, with the blank before them."""
    if not letters:
        return ""
    before = text[: len(text) - len(letters)]
    return (" " if before != before.rstrip() else "") + letters


def _plain(text: str, form: NumberFormat) -> str:
    """Plain notation of a text in a format."""
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


def is_whole(number: Decimal) -> bool:
    """True for a whole number that a column can hold."""
    return number.is_finite() and abs(number) <= LARGEST and number == number.to_integral_value()


def number_guess(name: str, rows: int, reach: Reach, numbers: Sequence[Decimal], form: NumberFormat) -> Guess:
    """A column of numbers.

    Args:
        name: of the column.
        rows: of the column.
        reach: the texts with their rows, or those that were kept, and what many units reach.
        numbers: the number that each of these texts is.
        form: the notation of the texts.
    """
    if not all(number.is_finite() and abs(number) <= LARGEST for number in numbers):
        return {"type": "number", "min": None, "max": None}
    notation: Guess = {"format": facts} if (facts := _facts(form)) else {}
    least, most = min(numbers), max(numbers)
    whole = all(map(is_whole, numbers))
    if whole and (parts := calendar_ends(name, int(least), int(most))):
        return {"type": "integer", "min": parts[0], "max": parts[1], **notation}
    points = [] if notation else _points(reach, numbers)
    if points:
        return {"type": "ordered", "values": points}
    spelt = sorted(zip(numbers, reach.counts, strict=True), key=lambda one: one[0])
    ends = (reach.first(spelt), reach.first(spelt[::-1]))
    if ends[0] is None or ends[1] is None:
        return {"type": "integer" if whole else "number", "min": None, "max": None, **notation}
    low, high = rounded(min(ends[0], ends[1]), max(ends[0], ends[1]))
    if whole and high - low < _ONE_A_VALUE:
        return {"type": "integer", "min": int(low), "max": int(high), **notation}
    tree: Guess = {"edges": "tree"} if rows >= FEWEST_FOR_TREE else {}
    if whole:
        return {"type": "integer", "min": int(low), "max": int(high), **tree, **notation}
    places = _places(numbers, high - low)
    # With so few values some of the usual bins would be empty: the grammar's default decimals are better.
    decimals: Guess = {"decimals": places} if (high - low).scaleb(places) >= _FEWEST_STEPS else {}
    return {"type": "number", "min": low, "max": high, **decimals, **tree, **notation}


def _facts(form: NumberFormat) -> dict[str, str]:
    """The keys of a notation."""
    found = {"thousands": form.thousands, "prefix": form.prefix, "suffix": form.suffix}
    return {key: text for key, text in found.items() if text} | (
        {"decimal": ","} if form.decimal == "," else {}
    )


def _points(reach: Reach, numbers: Sequence[Decimal]) -> list[str | int]:
    """The values of a column that has few of them, in their order; empty if it has more."""
    rows: Counter[Decimal] = Counter()
    texts: dict[Decimal, list[str]] = {}
    for (text, count), number in zip(reach.counts.items(), numbers, strict=True):
        rows[number] += count
        texts.setdefault(number, []).append(text)
    if len(rows) > 2 * _MOST_POINTS:
        return []
    often = sorted(number for number, spelt in texts.items() if reach.many(spelt))
    few = 1 < len(often) <= _MOST_POINTS and len(rows) <= min(2 * len(often), rows.total() / _ROWS_A_POINT)
    if not few or sum(rows[n] for n in often) < _POINTS_COVER * rows.total():
        return []
    if not all(map(is_whole, rows)):
        return [texts[number][0] for number in often]
    return [int(number) for number in often] if often[-1] - often[0] >= _GAPS * len(often) else []


def _places(numbers: Sequence[Decimal], span: Decimal) -> int:
    """Decimals of a column: those of its cells, or as many as its range needs if they have more."""
    places = max(max(0, -int(number.normalize(_NUMBERS).as_tuple().exponent)) for number in numbers)
    return places if places <= _MOST_DECIMALS else min(places, 9, max(0, _STEPS - floor(log10(span))))


def rounded(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds outside the range seen: multiples of a tenth of its power of ten, or 0 if near.

    >>> rounded(Decimal(17), Decimal(91))
    (Decimal('0'), Decimal('100'))
    >>> rounded(Decimal(1820), Decimal(1934))
    (Decimal('1800'), Decimal('2000'))
    """
    span = max(high - low, abs(high) / 100, abs(low) / 100, Decimal("0.000001"))
    step = Decimal(10) ** floor(log10(span))
    first = (low / step).to_integral_value("ROUND_FLOOR") * step
    last = (high / step).to_integral_value("ROUND_CEILING") * step
    if 0 <= first < 3 * step:
        first = Decimal(0)
    if first == last:
        last += step
    return _plainly(first), _plainly(last)


def _plainly(number: Decimal) -> Decimal:
    return Decimal(format(number.normalize(), "f"))
