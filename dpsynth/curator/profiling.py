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
from decimal import Decimal
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.curator.column_names import names_a_person
from dpsynth.curator.moment_guesses import clock_or_day_guess, moment_guess
from dpsynth.curator.number_guesses import FEWEST_ROWS, Guess, is_whole, number_guess, numbers_of
from dpsynth.domain.number_texts import parse_numbers

_MOST_KNOWN = 20_000
_MOST_LISTED = 250
"""Most different values of a column of names whose values are listed."""
_FEW_ROWS = 50
_LONGEST = 200
_LONGEST_CODE = 20
_LEVELS = 5
_HEAVY = 0.01
"""Least part of the rows of a value that a release would find."""

_MARKERS = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "none", "?", "-", "--", ".")
_TRUTHS = (
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("f", "t"),
    ("0", "1"),
    ("0.0", "1.0"),
    ("off", "on"),
)

_FEWEST_PERSONS = 50
_FEWEST_SORTED = 200
"""Fewest values of a column that is taken for persons' because equal values stand together."""
_ROWS_A_PERSON = (1.05, 100.0)
"""Least and largest mean number of rows of a person."""
_TOGETHER = 0.9
"""Least part of the repeated values that follow an equal one, in a table that is sorted by person."""
_LARGEST_SHARE = 20
"""Most rows of a value, in multiples of their mean, of a column that is sorted by person."""
_MAX_ROWS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
_ROWS_KEPT = 0.9
"""Least part of the rows that a guessed bound keeps."""


@dataclass(frozen=True)
class Unit:
    """A guess whose rows belong together.

    Attributes:
        column: the column with the person of each row.
        max_rows: the most rows of one person that are used; a round number.
    """

    column: str
    max_rows: int


@dataclass(frozen=True)
class Profile:
    """Guesses from a private table.

    Attributes:
        columns: keys of the grammar by column.
        unit: the persons, if a column seems to name them.
    """

    columns: Mapping[str, Guess]
    unit: Unit | None = None


def profile(batches: Iterable[Mapping[str, pa.StringArray]], columns: Sequence[str]) -> Profile:
    """A guess of each column's declaration, and of the unit.

    Args:
        batches: text columns by name, as ``read_batches`` reads them.
        columns: names of the columns to guess.

    Returns:
        Guesses. Bounds are rounded outwards; values that fewer than ``FEWEST_ROWS`` rows have are left out.
    """
    tallies = {name: _Tally(name) for name in columns}
    for batch in batches:
        for name, tally in tallies.items():
            tally.add(batch[name])
    found = {name: tally.guess() for name, tally in tallies.items()}
    persons = [(len(t.counts), name) for name, t in tallies.items() if t.names_persons(found[name])]
    if not persons:
        return Profile(found)
    _, name = max(persons)
    found[name] = {"type": "identifier"}
    return Profile(found, Unit(name, tallies[name].max_rows()))


@dataclass
class _Tally:
    """Counts of a column's texts. Exact and private.

    Attributes:
        name: of the column.
        counts: rows of each text, for the first 20 000 different texts and some decisive later ones.
        whole: True if all texts were kept.
        rows: number of cells that are not empty.
        blanks: number of empty cells.
        repeats: number of cells that are equal to the one before.
    """

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    whole: bool = True
    rows: int = 0
    blanks: int = 0
    repeats: int = 0
    _last: str | None = None

    def add(self, texts: pa.StringArray) -> None:
        """Count a batch."""
        cells = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(texts), 0, _LONGEST)
        cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
        self.blanks += cells.null_count
        if len(cells):
            self.repeats += pc.sum(pc.equal(cells[1:], cells[:-1])).as_py() or 0
            self.repeats += cells[0].as_py() is not None and cells[0].as_py() == self._last
            self._last = cells[-1].as_py()
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
        counts = dict(self.counts)
        markers = [text for text in _MARKERS if counts.pop(text, 0)]
        guess = self._of(counts)
        if guess.get("type") in (None, "identifier"):
            return guess
        if markers:
            return {**guess, "missing": markers[0] if len(markers) == 1 else list(markers)}
        # Values that aren't listed count as missing where there is no cell for others.
        closed = guess["type"] == "ordered" and len(guess["values"] or ()) < len(set(counts))  # type: ignore[arg-type]
        searched = guess.get("open") or "levels" in guess
        return guess if self.blanks or closed or searched else {**guess, "missing": False}

    def _of(self, counts: Mapping[str, int]) -> Guess:
        if not counts:
            return {"type": None}
        texts = list(counts)
        if self.whole and len(counts) == 2:
            pair = sorted(texts, key=str.casefold)
            if (pair[0].casefold(), pair[1].casefold()) in _TRUTHS:
                return {"type": "boolean", "values": list(pair)}
        different = self._rows_of(counts) == len(counts) and self._rows_of(counts) >= _FEW_ROWS
        read = None if _coded(texts) else numbers_of(texts)
        if read is not None:
            numbers, form = read
            if different and all(map(is_whole, numbers)) and self._numbered(numbers):
                return {"type": "identifier"}
            moments = clock_or_day_guess(numbers)
            return moments or number_guess(self.name, self._rows_of(counts), counts, numbers, form)
        moments = moment_guess(texts)
        if moments is not None:
            return moments
        if different:
            return {"type": "identifier"}
        return self._names(counts)

    def _names(self, counts: Mapping[str, int]) -> Guess:
        """Named values, codes, or texts that nobody could list."""
        rows = self._rows_of(counts)
        listed = sorted(t for t, count in counts.items() if count >= FEWEST_ROWS and t.isprintable())
        if self.whole and len(counts) <= _MOST_LISTED:
            if not listed:
                return {"type": "category", "values": None}
            rest = {} if len(listed) == len(counts) else {"other": _other(listed)}
            return {"type": "category", "values": list(listed), **rest}
        pattern = _pattern(list(counts))
        if pattern is not None:
            places = pattern.count("[") + len(re.sub(r"\[.*?\]|\\", "", pattern))
            return {"type": "text", "pattern": pattern, "levels": list(range(1, min(places, _LEVELS) + 1))}
        heavy = sum(count for count in counts.values() if count >= _HEAVY * rows)
        return {"type": "category", "open": True} if 2 * heavy >= rows else {"type": "identifier"}

    def _rows_of(self, counts: Mapping[str, int]) -> int:
        return sum(counts.values()) if self.whole else self.rows

    def _numbered(self, numbers: Sequence[Decimal]) -> bool:
        """True if different whole numbers name rows: every other one is there, or the name says so."""
        return max(numbers) - min(numbers) < 2 * self.rows or names_a_person(self.name)

    def names_persons(self, guess: Guess) -> bool:
        """True if the column seems to hold the number or name of the person of each row.

        Its values repeat a few times each. Its name says so, or equal values stand together.
        """
        if len(self.counts) < _FEWEST_PERSONS or guess["type"] not in (
            "integer",
            "identifier",
            "category",
            "text",
        ):
            return False
        rows = sum(self.counts.values())
        mean = rows / len(self.counts)
        if not _ROWS_A_PERSON[0] <= mean <= _ROWS_A_PERSON[1]:
            return False
        if names_a_person(self.name):
            return True
        even = max(self.counts.values()) <= _LARGEST_SHARE * mean and len(self.counts) >= _FEWEST_SORTED
        together = self.repeats >= _TOGETHER * (1 - 1 / mean) * self.rows
        # A table may be sorted by town, too; numbers of persons have digits.
        return even and together and all(any(c.isdigit() for c in text) for text in self.counts)

    def max_rows(self) -> int:
        """The least round bound that keeps most rows."""
        rows = np.array(list(self.counts.values()))
        kept = (most for most in _MAX_ROWS if np.minimum(rows, most).sum() >= _ROWS_KEPT * rows.sum())
        return next(kept, _MAX_ROWS[-1])


def _other(listed: Sequence[str]) -> str:
    """The label of values that aren't listed: a listed one that says so, or a new one."""
    return next((text for text in listed if text.casefold() == "other"), "other")


def _decisive(texts: pa.StringArray) -> list[str]:
    """Texts of a batch that may decide the kind of its column: the ends, and one that is no number."""
    if not len(texts):
        return []
    numbers = parse_numbers(texts)
    known = ~np.isnan(numbers)
    ends = pc.min_max(texts)
    longest = int(np.argmax(pc.utf8_length(texts).to_numpy(zero_copy_only=False)))
    found = [ends["min"].as_py(), ends["max"].as_py(), texts[longest].as_py()]
    if known.any():
        spots = np.flatnonzero(known)
        found += [texts[int(spots[pick(numbers[spots])])].as_py() for pick in (np.argmin, np.argmax)]
    odd = (text.as_py() for text in texts.filter(pa.array(~known)))
    return [*found, *(text for text in islice(odd, len(_MARKERS) + 2) if text not in _MARKERS)]


def _coded(texts: Sequence[str]) -> bool:
    """True if some texts are codes of digits rather than numbers: 00501."""
    return any(re.fullmatch("0[0-9]+", text) for text in texts)


def _pattern(texts: Sequence[str]) -> str | None:
    """A pattern of texts of one length that hold digits, capitals and signs at the same positions."""
    if len(texts[0]) > _LONGEST_CODE or any(len(text) != len(texts[0]) for text in texts):
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
