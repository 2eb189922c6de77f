"""Guesses of columns of numbers: their notation, bounds, decimals and bins.

Invariant: bounds lie outside of what was seen, at multiples of a round step, and are those of the calendar
where a column's name says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from math import floor, log10

from dpsynth.columns.number_texts import NumberFormat
from dpsynth.wings.owner.assess.column_names import calendar_ends
from dpsynth.wings.owner.assess.reach import Reach

Plain = str | int | bool | Decimal | None | list[str | int] | dict[str, str] | dict[str, Decimal]
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
_DENSE = 2
"""The same of numbers with decimals, in steps of the last decimal."""
_POINTS_COVER = 0.99
"""Least part of a column's rows that listed values have."""
_MOST_DECIMALS = 4
_STEPS = 5
"""Digits of a number, from the first of the range on, where cells have more decimals than anyone needs."""
LARGEST = 10**15
# No decimal signal raises: profiling goes on whatever a cell holds.
_NUMBERS = Context(prec=200, traps=[])


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
    points = _points(reach, numbers, plain=not notation)
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
    few = (high - low).scaleb(places) < _ONE_A_VALUE
    bins = {} if few else tree
    return {"type": "number", "min": low, "max": high, "decimals": places, **bins, **notation}


def _facts(form: NumberFormat) -> dict[str, str]:
    """The keys of a notation."""
    found = {"thousands": form.thousands, "prefix": form.prefix, "suffix": form.suffix}
    return {key: text for key, text in found.items() if text} | (
        {"decimal": ","} if form.decimal == "," else {}
    )


def _points(reach: Reach, numbers: Sequence[Decimal], *, plain: bool) -> list[str | int]:
    """The values of a column that has few of them, in their order; empty if it has more.

    Numbers in another than plain notation are listed as texts, if each has one spelling.
    """
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
    whole = all(map(is_whole, rows))
    if (often[-1] - often[0]).scaleb(_decimals(often)) < (_GAPS if whole else _DENSE) * len(often):
        return []
    if whole and plain:
        return [int(number) for number in often]
    return [texts[n][0] for n in often] if all(len(spelt) == 1 for spelt in texts.values()) else []


def _decimals(numbers: Iterable[Decimal]) -> int:
    """Decimals of the number that has most of them."""
    return max(max(0, -int(number.normalize(_NUMBERS).as_tuple().exponent)) for number in numbers)


def _places(numbers: Sequence[Decimal], span: Decimal) -> int:
    """Decimals of a column: those of its cells, or as many as its range needs if they have more."""
    places = _decimals(numbers)
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
