"""Profiling of the private table for its owner's eyes: guesses of the kinds and bounds of its columns.

Profiling is no part of a release: nothing here is charged, noisy or safe to publish. The guesses are
written only into a configuration that is refused until each guess was reviewed.

Invariant: profiling takes one pass and bounded memory. It prints, logs or raises nothing that depends
on a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from itertools import islice
from math import floor, log10

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.domain.moment_formats import ISO, MomentFormat, MomentKind
from dpsynth.domain.number_texts import is_number, parse_numbers

Plain = str | int | Decimal | None | list[str | int]
"""A value of the grammar."""

Guess = dict[str, Plain]
"""Keys of a column's declaration; None for a value that can't be guessed."""

FEWEST_ROWS = 10
"""Fewest rows of a value that is listed."""

_MOST_KNOWN = 20_000
_MOST_LISTED = 100
_MOST_DECIMALS = 4
_FEWEST_STEPS = 100
_FEW_ROWS = 50
_LARGEST = 10**15
_LONGEST = 200
# No decimal signal raises: profiling goes on whatever a cell holds.
_NUMBERS = Context(prec=_LONGEST, traps=[])

_MARKERS = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "none", "?", "-", "--", ".")
_TRUTHS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("0", "1"))
_FORMATS: tuple[tuple[MomentKind, str], ...] = (
    ("date", ISO["date"]),
    ("datetime", ISO["datetime"]),
    ("datetime", "%Y-%m-%d %H:%M:%S"),
    ("date", "%d/%m/%Y"),
    ("date", "%m/%d/%Y"),
    ("date", "%d.%m.%Y"),
    ("date", "%Y/%m/%d"),
    ("date", "%d-%b-%Y"),
    ("date", "%d %b %Y"),
    ("datetime", "%d/%m/%Y %H:%M"),
    ("datetime", "%m/%d/%Y %H:%M"),
    ("datetime", "%d.%m.%Y %H:%M"),
    ("time", ISO["time"]),
    ("time", "%H:%M"),
)


def guesses(batches: Iterable[Mapping[str, pa.StringArray]], columns: Sequence[str]) -> dict[str, Guess]:
    """A guess of each column's declaration.

    Args:
        batches: text columns by name, as ``read_batches`` reads them.
        columns: names of the columns to guess.

    Returns:
        Keys of the grammar by column. Bounds are rounded outwards; values that fewer than
        ``FEWEST_ROWS`` rows have are left out.
    """
    tallies = {name: _Tally() for name in columns}
    for batch in batches:
        for name, tally in tallies.items():
            tally.add(batch[name])
    return {name: tally.guess() for name, tally in tallies.items()}


@dataclass
class _Tally:
    """Counts of a column's texts. Exact and private.

    Attributes:
        counts: rows of each text, for the first 20 000 different texts and some decisive later ones.
        whole: True if all texts were kept.
        rows: number of cells that are not empty.
    """

    counts: dict[str, int] = field(default_factory=dict)
    whole: bool = True
    rows: int = 0

    def add(self, texts: pa.StringArray) -> None:
        """Count a batch."""
        cells = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(texts), 0, _LONGEST)
        found = pc.value_counts(cells.drop_null())
        values, counts = found.field("values"), found.field("counts").to_pylist()
        self.rows += sum(counts)
        decisive = set(_decisive(values))
        for text, count in zip(values.to_pylist(), counts, strict=True):
            if text in self.counts:
                self.counts[text] += count
            elif len(self.counts) < _MOST_KNOWN or text in decisive:
                self.counts[text] = count
            else:
                self.whole = False

    def guess(self) -> Guess:
        """The likeliest declaration."""
        counts = {text: count for text, count in self.counts.items() if text}
        markers = [text for text in _MARKERS if counts.pop(text, 0)]
        guess = self._of(counts)
        if guess.get("type") in (None, "identifier") or not markers:
            return guess
        return {**guess, "missing": markers[0] if len(markers) == 1 else list(markers)}

    def _of(self, counts: Mapping[str, int]) -> Guess:
        if not counts:
            return {"type": None}
        texts = list(counts)
        if self.whole and len(counts) == 2:
            pair = sorted(texts, key=str.casefold)
            if (pair[0].casefold(), pair[1].casefold()) in _TRUTHS:
                return {"type": "boolean", "values": list(pair)}
        rows = sum(counts.values())
        different = rows == len(counts) and rows >= _FEW_ROWS
        numeric = all(map(is_number, texts))
        if numeric and not _coded(texts):
            numbers = [_NUMBERS.create_decimal(text) for text in texts]
            if all(map(_is_whole, numbers)):
                return {"type": "identifier"} if different and self._counted(numbers) else _integer(numbers)
            return _number(numbers)
        moments = _moments(texts)
        if moments is not None:
            return moments
        if different:
            return {"type": "identifier"}
        pattern = _pattern(texts)
        if pattern is not None and len(counts) > _MOST_LISTED:
            return {"type": "text", "pattern": pattern, "keep": 1}
        listed = sorted(text for text, count in counts.items() if count >= FEWEST_ROWS and text.isprintable())
        if self.whole and len(counts) <= _MOST_LISTED and len(listed) > 1:
            return {"type": "category", "values": list(listed)}
        return {"type": "category", "values": None}

    def _counted(self, numbers: Sequence[Decimal]) -> bool:
        """True if different whole numbers look like numbers of rows: at least every other one is there."""
        return max(numbers) - min(numbers) < 2 * self.rows


def _decisive(texts: pa.StringArray) -> list[str]:
    """Texts of a batch that may decide the kind of its column: the ends, and one that is no number."""
    if not len(texts):
        return []
    numbers = parse_numbers(texts)
    known = ~np.isnan(numbers)
    ends = pc.min_max(texts)
    found = [ends["min"].as_py(), ends["max"].as_py()]
    if known.any():
        spots = np.flatnonzero(known)
        found += [texts[int(spots[pick(numbers[spots])])].as_py() for pick in (np.argmin, np.argmax)]
    odd = (text.as_py() for text in texts.filter(pa.array(~known)))
    return [*found, *(text for text in islice(odd, len(_MARKERS) + 2) if text not in _MARKERS)]


def _is_whole(number: Decimal) -> bool:
    return number.is_finite() and abs(number) <= _LARGEST and number == number.to_integral_value()


def _coded(texts: Sequence[str]) -> bool:
    """True if some texts are codes of digits rather than numbers: 00501."""
    return any(re.fullmatch("0[0-9]+", text) for text in texts)


def _integer(numbers: Sequence[Decimal]) -> Guess:
    low, high = _rounded(min(numbers), max(numbers))
    return {"type": "integer", "min": int(low), "max": int(high)}


def _number(numbers: Sequence[Decimal]) -> Guess:
    if not all(number.is_finite() and abs(number) <= _LARGEST for number in numbers):
        return {"type": "number", "min": None, "max": None}
    low, high = _rounded(min(numbers), max(numbers))
    places = max(-int(number.as_tuple().exponent) for number in numbers)
    guess: Guess = {"type": "number", "min": low, "max": high}
    # With so few values some of the usual bins would be empty: the grammar's default decimals are better.
    fits = places <= _MOST_DECIMALS and (high - low).scaleb(places) >= _FEWEST_STEPS
    return {**guess, "decimals": places} if fits else guess


def _rounded(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds outside the range seen: multiples of a tenth of its power of ten, or 0 if near.

    >>> _rounded(Decimal(17), Decimal(91))
    (Decimal('0'), Decimal('100'))
    >>> _rounded(Decimal(1820), Decimal(1934))
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


def _moments(texts: Sequence[str]) -> Guess | None:
    """The common format of all texts, with whole years as bounds; no format if two fit."""
    texts = [re.sub(r"(:[0-9]{2})\.[0-9]+$", r"\1", text) for text in texts]
    array = pa.array(texts, pa.string())
    able: list[tuple[MomentKind, str]] = []
    for kind, pattern in _FORMATS:
        # Each format reads ISO 8601 too, so a text must look like the format itself.
        if _looks_like(pattern, texts) and not np.isnat(MomentFormat(kind, pattern).read(array)).any():
            able.append((kind, pattern))
    if not able:
        return None
    (kind, pattern), others = able[0], able[1:]
    format_: Guess = {} if pattern == ISO[kind] else {"format": pattern}
    if kind == "time":
        return {"type": "time", **format_}
    if others and pattern != ISO[kind]:
        return {"type": kind, "min": None, "max": None, "format": None}
    years = MomentFormat(kind, pattern).read(array).astype("M8[Y]")
    first, last = str(years.min()), str(years.max())
    return {"type": kind, "min": f"{first}-01-01", "max": f"{last}-12-31", **format_}


def _looks_like(pattern: str, texts: Sequence[str]) -> bool:
    """True if the signs between the codes of a format stand in all texts."""
    signs = [c for c in re.sub("%.", "", pattern) if not c.isalnum()]
    return all([c for c in text if not c.isalnum()] == signs for text in texts)


def _pattern(texts: Sequence[str]) -> str | None:
    """A pattern of texts of one length that hold digits, capitals and signs at the same positions."""
    if len(texts[0]) > 20 or any(len(text) != len(texts[0]) for text in texts):
        return None
    found = ""
    for letters in map(set, zip(*texts, strict=True)):
        if letters <= set("0123456789"):
            found += "[0-9]"
        elif letters <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
            found += "[A-Z]"
        elif len(letters) == 1 and (letters & set("- /_.")):
            found += re.escape(letters.pop())
        else:
            return None
    return found
