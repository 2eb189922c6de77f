"""Profiling of the private table for its owner's eyes: guesses of the kinds and bounds of its columns.

Profiling is no part of a release: nothing here is charged, noisy or safe to publish. The guesses are
written only into a configuration that is refused until each guess was reviewed.

Invariant: profiling takes one pass, or two where rows belong together, and bounded memory. It prints, logs
or raises nothing that depends on a cell.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import islice
from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.codec import INVALID
from dpsynth.columns.column import Column, NumberSearch
from dpsynth.columns.number_texts import numbers_of, parse_numbers
from dpsynth.curator.units import Person, nobody, unit_codes
from dpsynth.wings.owner.assess.identifier_forms import Form, names_a_person
from dpsynth.wings.owner.assess.unit_guesses import MOST_SAMPLED, Repeating, Texts, identifier_form, repeating
from dpsynth.wings.owner.assess.value_guesses import (
    FEWEST_UNITS,
    Guess,
    Reach,
    clock_or_day_guess,
    duration_guess,
    is_whole,
    moment_guess,
    number_guess,
    with_one_unit,
)
from dpsynth.wings.owner.starter.sketch import Profile

_MOST_KNOWN = 20_000
_MOST_LISTED = 250
"""Most different values of a column of names whose values are listed."""
_FEW_ROWS = 50
_LONGEST = 200
_LONGEST_CODE = 20
_LEVELS = 5
_HEAVY = 0.01
"""Least part of the rows of a value that a release would find."""

_LISTED_FROM, _STEP = 0.05, 20
"""Least share of cells that is listed as expected, and the steps in 1 to which it is rounded up."""
_ONE_VALUE = 0.85
"""Share from which a column's most frequent value is listed."""

_MARKERS = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "none", "?", "-", "--", ".")
_ALSO_NAMES = {"none", "None"}
"""Markers that are values of a column of names: no degree, no allergy."""
_TRUTHS = (
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("f", "t"),
    ("0", "1"),
    ("0.0", "1.0"),
    ("off", "on"),
)


Coded = Callable[[Guess], Column | None]
"""The column that a guess describes; None if the grammar refuses it, or it describes none."""


def profile(
    batches: Iterable[Mapping[str, pa.StringArray]],
    columns: Sequence[str],
    person: str | None = None,
    coded: Coded = lambda guess: None,
) -> Profile:
    """A guess of each column's declaration, and of the unit.

    Args:
        batches: text columns by name, as ``read_batches`` reads them. They are read a second time where rows
            belong together, so that values and bounds are those of many persons.
        columns: names of the columns to guess.
        person: the column with the person of each row, if that is known; it is among those of the batches.
        coded: makes columns of guesses, whose expected shares are then guessed too.

    Returns:
        Guesses. Bounds are rounded outwards from what ``FEWEST_UNITS`` units reach; values that fewer units
        have are left out.
    """
    seen = ColumnTexts(columns)
    for batch in batches:
        seen.add(batch)
    who = seen.who()
    whose = who.unit.column if person is None and who.unit is not None else person
    found = dict(seen.guesses)
    if whose is not None:
        _count_units(batches, seen.tallies, whose)
        found = {name: tally.guess() for name, tally in seen.tallies.items()}
    for name in columns:
        if seen.forms[name] is not None or name in who.columns or name == whose:
            found[name] = {"type": "identifier"}
    found = with_one_unit(found)
    for name, guess in found.items():
        if (column := coded(guess)) is not None and (shares := seen.tallies[name].shares(column)):
            found[name] = {**guess, "expected": shares}
    return Profile(found, who.unit if person is None else None, who.questions if person is None else ())


class ColumnTexts:
    """The texts of a table's columns, counted batch by batch, and its first rows. Exact and private.

    Attributes:
        tallies: the tally of each column.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.tallies = {name: _Tally(name) for name in columns}
        self._first: dict[str, list[pa.StringArray]] = {name: [pa.array([], pa.string())] for name in columns}
        self._rows = 0

    def add(self, batch: Mapping[str, pa.StringArray]) -> None:
        for name, tally in self.tallies.items():
            tally.add(batch[name])
            if self._rows < MOST_SAMPLED:
                self._first[name].append(batch[name].slice(0, MOST_SAMPLED - self._rows))
        self._rows += len(next(iter(batch.values())))

    @cached_property
    def guesses(self) -> dict[str, Guess]:
        """The likeliest declaration of each column where rows are the units, after the last batch."""
        return {name: tally.guess() for name, tally in self.tallies.items()}

    @cached_property
    def texts(self) -> dict[str, Texts]:
        """The texts of each column, after the last batch."""
        return {name: tally.texts(self.guesses[name]["type"]) for name, tally in self.tallies.items()}

    @cached_property
    def forms(self) -> dict[str, Form | None]:
        """By column, the form of identifiers, names or free text, or None; after the last batch."""
        return {name: identifier_form(texts) for name, texts in self.texts.items()}

    def who(self) -> Repeating:
        """Whose rows belong together, after the last batch."""
        sample = {name: pa.concat_arrays(parts) for name, parts in self._first.items()}
        return repeating(list(self.texts.values()), self.forms, sample)


def _count_units(
    batches: Iterable[Mapping[str, pa.StringArray]], tallies: Mapping[str, _Tally], person: str
) -> None:
    near, key = Neighbours("add_remove", person), secrets.token_bytes(32)
    for tally in tallies.values():
        tally.units = {text: set() for text in tally.counts}
    for batch in batches:
        codes = unit_codes(batch, near, key)
        named = codes != nobody(key)
        whose = codes[named]
        for name, tally in tallies.items():
            tally.count_units(batch[name].filter(pa.array(named)), whose)


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
        units: up to ten units of each text; None where each row is a unit.
    """

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    units: dict[str, set[int]] | None = None
    whole: bool = True
    rows: int = 0
    blanks: int = 0
    repeats: int = 0
    _last: str | None = None

    def add(self, texts: pa.StringArray) -> None:
        cells = _trimmed(texts)
        self.blanks += cells.null_count
        if len(cells):
            self.repeats += pc.sum(pc.equal(cells[1:], cells[:-1])).as_py() or 0
            self.repeats += cells[0].as_py() is not None and cells[0].as_py() == self._last
            self._last = cells[-1].as_py()
        found = pc.value_counts(cells.drop_null())
        values, counts = found.field("values"), found.field("counts").to_pylist()
        self.rows += sum(counts)
        full = len(self.counts) + len(values) > _MOST_KNOWN
        decisive = set(_decisive(values)) if full else set()
        for text, count in zip(values.to_pylist(), counts, strict=True):
            if text in self.counts:
                self.counts[text] += count
            elif len(self.counts) < _MOST_KNOWN or text in decisive:
                self.counts[text] = count
            else:
                self.whole = False

    def count_units(self, texts: pa.StringArray, whose: Person) -> None:
        """Count the units of a batch, whose codes are given by row."""
        units = self.units
        assert units is not None
        coded = _trimmed(texts).dictionary_encode()
        spots = np.asarray(pc.fill_null(coded.indices, -1), np.int64)
        order = np.lexsort((whose, spots))
        spot, unit = spots[order], whose[order]
        new = np.ones(len(spot), bool)
        new[1:] = (spot[1:] != spot[:-1]) | (unit[1:] != unit[:-1])
        spot, unit = spot[new], unit[new]
        first = np.searchsorted(spot, spot)
        few = (spot >= 0) & (np.arange(len(spot)) - first < FEWEST_UNITS)
        known = coded.dictionary.to_pylist()
        for place, code in zip(spot[few].tolist(), unit[few].tolist(), strict=True):
            held = units.get(known[place])
            if held is not None and len(held) < FEWEST_UNITS:
                held.add(code)

    def texts(self, kind: object) -> Texts:
        """The texts that stand for something, under the type that was guessed of them."""
        counts = {text: count for text, count in self.counts.items() if text not in _MARKERS}
        rows = self.rows - sum(self.counts.get(text, 0) for text in _MARKERS)
        return Texts(self.name, counts, self.whole, rows, self.repeats, kind)

    def guess(self) -> Guess:
        counts = dict(self.counts)
        markers = [text for text in _MARKERS if counts.pop(text, 0)]
        guess = self._of(counts)
        if guess.get("type") == "category" and not _ALSO_NAMES.isdisjoint(markers):
            markers = [text for text in markers if text not in _ALSO_NAMES]
            counts = {text: count for text, count in self.counts.items() if text not in markers}
            guess = self._of(counts)
        if guess.get("type") in (None, "identifier"):
            return guess
        if markers:
            return {**guess, "missing": markers[0] if len(markers) == 1 else list(markers)}
        # Values that aren't listed count as missing where there is no cell for others.
        closed = guess["type"] == "ordered" and len(guess["values"] or ()) < len(set(counts))  # type: ignore[arg-type]
        searched = guess.get("open") or "levels" in guess
        return guess if self.blanks or closed or searched else {**guess, "missing": False}

    def shares(self, column: Column) -> dict[str, Decimal]:
        """The shares of cells that a column is to be expected to have, by ``Column.takers``, rounded up.

        What can't be read is no part of them: nobody should expect it.
        """
        gone = {*column.markers, *column.distinct, ""}
        known = {text: count for text, count in self.counts.items() if text not in gone}
        cells = self.rows + self.blanks
        if not known or not cells:
            return {}
        texts, rows = pa.array(list(known), pa.string()), np.array(list(known.values()), float)
        marked = sum(count for text, count in self.counts.items() if text in gone)
        # Of a column with very many values the later ones were not kept.
        rows *= (self.rows - marked) / sum(known.values()) / cells
        takers = {"missing": (self.blanks + marked) / cells} if column.missing else {}
        takers |= _taken(column, texts, rows)
        most = rows.max() if column.search is not None else _by_code(column, texts, rows).max()
        named = ("default", "other")
        listed = {k: max(s, _LISTED_FROM) for k, s in takers.items() if s > _LISTED_FROM or k in named}
        if most >= _ONE_VALUE and max(takers.values(), default=0.0) < most:
            listed["one_value"] = most
        return {key: Decimal(min(ceil(share * _STEP), _STEP)) / _STEP for key, share in listed.items()}

    def _of(self, counts: Mapping[str, int]) -> Guess:
        if not counts:
            return {"type": None}
        texts = list(counts)
        if self.whole and len(counts) == 2:
            pair = sorted(texts, key=str.casefold)
            if (pair[0].casefold(), pair[1].casefold()) in _TRUTHS:
                return {"type": "boolean", "values": list(pair)}
        different = self._rows_of(counts) == len(counts) and self._rows_of(counts) >= _FEW_ROWS
        reach = Reach(counts, self.units)
        # Before numbers: the seconds of an ISO duration are one, between a prefix and a suffix.
        lengths = duration_guess(texts, reach)
        if lengths is not None:
            return lengths
        read = None if _coded(texts) else numbers_of(texts)
        if read is not None:
            numbers, form = read
            if different and all(map(is_whole, numbers)) and self._numbered(numbers):
                return {"type": "identifier"}
            moments = clock_or_day_guess(numbers, reach)
            return moments or number_guess(self.name, self._rows_of(counts), reach, numbers, form)
        moments = moment_guess(texts, reach)
        if moments is not None:
            return moments
        if different:
            return {"type": "identifier"}
        return self._names(counts, reach)

    def _names(self, counts: Mapping[str, int], reach: Reach) -> Guess:
        """Named values, codes, or texts that nobody could list."""
        rows = self._rows_of(counts)
        listed = sorted(text for text in counts if reach.many([text]) and text.isprintable())
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


def _by_code(column: Column, texts: pa.StringArray, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of each cell of a column's codec, of texts with their shares. Unread ones are left out."""
    codes = column.codec.encode(texts)
    found = np.zeros(len(column.codec.labels))
    np.add.at(found, codes[codes != INVALID], shares[codes != INVALID])
    return found


def _taken(column: Column, texts: pa.StringArray, shares: NDArray[np.float64]) -> dict[str, float]:
    """The shares of a column's takers but for missing, of texts with their shares."""
    if column.search is None:
        each = _by_code(column, texts, shares)
        return {key: float(each[code]) for key, code in column.takers.items() if key != "missing"}
    search = column.search
    if not isinstance(search, NumberSearch) or search.low is None or search.high is None:
        return {}
    # Cells are still to be found: all that is sure to lie in the first and the last are the ends themselves.
    numbers = pc.cast(column.codec.parsed(texts), pa.float64()).to_numpy(zero_copy_only=False)
    beyond = {"first": numbers <= search.low, "last": numbers >= search.high}
    return {key: float(shares[there].sum()) for key, there in beyond.items()}


def _other(listed: Sequence[str]) -> str:
    """The label of values that aren't listed: a listed one that says so, or a new one."""
    return next((text for text in listed if text.casefold() == "other"), "other")


def _trimmed(texts: pa.StringArray) -> pa.StringArray:
    """Cells without the blanks around them, cut where they are long; null where nothing is left."""
    cells = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(texts), 0, _LONGEST)
    return pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)


def _decisive(texts: pa.StringArray) -> list[str]:
    """Different texts of a batch that may decide about its column: both ends, and what is no number."""
    if not len(texts):
        return []
    numbers = parse_numbers(texts)
    known = ~np.isnan(numbers)
    ends = [
        *pc.top_k_unstable(texts, FEWEST_UNITS).to_pylist(),
        *pc.bottom_k_unstable(texts, FEWEST_UNITS).to_pylist(),
    ]
    spots = np.flatnonzero(known)[np.argsort(numbers[known], kind="stable")]
    ends += [*spots[:FEWEST_UNITS].tolist(), *spots[-FEWEST_UNITS:].tolist()]
    ends.append(int(np.argmax(pc.utf8_length(texts).to_numpy(zero_copy_only=False))))
    found = [texts[spot].as_py() for spot in ends]
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
