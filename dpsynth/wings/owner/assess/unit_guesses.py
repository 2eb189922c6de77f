"""Guesses of who repeats in a table: persons, accounts and households, by the values of the columns.

A column tells whose row it is if its values repeat, and if they are of a form that persons have
(``identifier_forms``), are numbers that somebody handed out, or stand together; or if its name says so. Codes
of things repeat too. They are fewer, some are in many rows, or their name says what they are: these are never
taken for persons.

Invariant: everything here is a guess from exact counts, so it is private; nothing is printed or logged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.columns.number_texts import is_number
from dpsynth.wings.owner.assess.identifier_forms import FREE_TEXT, NAMES, Form, Whose, form_of, named_whose
from dpsynth.wings.owner.starter.sketch import Unit

MOST_SAMPLED = 20_000
"""Most rows in which columns are held against each other."""

_FEWEST_PERSONS = 50
_FEWEST_SORTED = 200
"""Fewest values of a column that is taken for persons' because equal values stand together."""
_LEAST_MEAN = 1.05
"""Least mean number of rows of a person."""
_MOST_NAMED, _MOST_NUMBERED, _MOST_TOLD = 100.0, 20.0, 10_000.0
"""Largest mean number of rows where a name, a number, or a form of persons tells."""
_TOGETHER = 0.9
"""Least part of the repeated values that follow an equal one, in a table that is sorted by person."""
_LARGEST_SHARE = 20
"""Most rows of a value, in multiples of their mean, of numbers of persons."""
_LEAST_DIGITS, _MOST_DIGITS = 4, 18
_DENSE, _VERY_DENSE = 0.5, 0.9
"""Least part of the numbers of a range that are handed out."""
_DECILE = (0.03, 0.3)
"""Least and largest part of the numbers in a tenth of their range."""
_ABOVE_CHANCE, _ABOVE_NAMESAKES = 5.0, 2.0
"""Least number of pairs of equal numbers, and of equal names, in multiples of that by chance."""
_MAX_ROWS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
_ROWS_KEPT = 0.9
"""Least part of the rows that a guessed bound keeps."""
_NESTED = 0.99
_SAME, _NOT_THE_SAME = 0.97, 0.9
"""Parts of the pairs of rows that agree in what belongs to a person, and in what doesn't."""
_MOST_QUESTIONS = 3
_MOST_KEYS = 12

NUMBERS = Form("numbers that were handed out")
"""The form of numbers of customers, cases or members, which no check digit tells."""


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts of a column, exact and private.

    Attributes:
        name: of the column.
        counts: rows of each text that was kept, without those that stand for nothing.
        whole: True if all texts were kept.
        rows: number of cells that are not empty.
        repeats: number of cells that are equal to the one before.
        kind: the type that its cells would have in a configuration.
    """

    name: str
    counts: Mapping[str, int]
    whole: bool
    rows: int
    repeats: int
    kind: object = None

    @property
    def mean(self) -> float:
        """Mean number of rows of a value."""
        return sum(self.counts.values()) / max(len(self.counts), 1)

    @property
    def repeat(self) -> bool:
        return self.mean >= _LEAST_MEAN

    @property
    def all_differ(self) -> bool:
        return self.whole and len(self.counts) >= _FEWEST_PERSONS and max(self.counts.values()) == 1

    @property
    def even(self) -> bool:
        """True if no value has far more rows than others."""
        return max(self.counts.values()) <= _LARGEST_SHARE * self.mean


_DATED = ("date", "datetime", "time", "duration", "boolean")


def identifier_form(texts: Texts) -> Form | None:
    """The form by which the values of a column are identifiers, names or free text; None if they aren't."""
    if not texts.counts or texts.kind in _DATED:
        return None
    found = form_of(list(texts.counts))
    if found is NAMES and named_whose(texts.name) == "thing":
        return None
    if found is not None:
        return found
    numbered = _LEAST_MEAN <= texts.mean <= _MOST_NUMBERED and len(texts.counts) >= _FEWEST_PERSONS
    if numbered and texts.even and named_whose(texts.name) != "thing" and _handed_out(texts):
        return NUMBERS
    return None


def _handed_out(texts: Texts) -> bool:
    """True if texts are numbers that somebody handed out: with signs before them, with zeros, or in a row."""
    known = list(texts.counts)
    parts = [found for text in known if (found := re.fullmatch("([^0-9]*)([0-9]+)", text))]
    before, digits = {found[1] for found in parts}, [found[2] for found in parts]
    if len(parts) < len(known) or len(before) > 1:
        shapes = {re.sub("[0-9]", "9", re.sub("[A-Za-z]", "A", text)) for text in known}
        return len(shapes) == 1 and shapes.pop().count("9") > _LEAST_DIGITS and not is_number(known[0])
    lengths = {len(text) for text in digits}
    length = max(lengths)
    if not _LEAST_DIGITS <= length <= _MOST_DIGITS:
        return False
    numbers = np.array(digits, np.int64)
    signed = before != {""}
    padded = len(lengths) == 1 and any(text.startswith("0") for text in digits)
    if signed or (padded and length > _LEAST_DIGITS + 1):
        return True
    reach = int(numbers.max() - numbers.min()) + 1
    tenths = np.histogram(numbers, 10)[0] / len(numbers)
    dense = len(numbers) / reach
    in_a_row = _DECILE[0] <= tenths.min() and tenths.max() <= _DECILE[1]
    if padded:
        return in_a_row and dense >= _DENSE
    if len(lengths) > 1 or length <= _LEAST_DIGITS:
        return False
    if in_a_row and dense >= (_VERY_DENSE if length == _LEAST_DIGITS + 1 else _DENSE):
        return len(numbers) >= _FEWEST_SORTED
    by_chance = texts.rows**2 / (2 * reach)
    last = np.bincount(numbers % 10, minlength=10) / len(numbers)
    return length > _LEAST_DIGITS + 1 and last.max() <= 2 / 10 and _pairs(texts) > _ABOVE_CHANCE * by_chance


def _pairs(texts: Texts) -> float:
    counts = np.array(list(texts.counts.values()), float)
    return float((counts * (counts - 1)).sum() / 2)


_TOLD, _ACCOUNT, _NUMBERED, _NAMED = 4, 3, 2, 1
"""Ranks of what tells a person: a form or a name of persons; accounts; numbers or order; names and visits."""
_RANKS = {"person": _TOLD, "household": _TOLD, "account": _ACCOUNT, "number": _NUMBERED}


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A column whose values repeat as persons' do.

    Attributes:
        rank: the strength of what tells so.
        whose: whom its name says.
    """

    texts: Texts
    rank: int
    whose: Whose | None

    @property
    def household(self) -> bool:
        return self.whose == "household"


def _candidate(texts: Texts, form: Form | None) -> _Candidate | None:
    """A column as the persons of a table; None if its values don't repeat like persons'."""
    whose, different = named_whose(texts.name), len(texts.counts)
    if not texts.repeat or whose == "thing" or texts.kind in _DATED or not different:
        return None
    if form is not None and form.personal and form is not NUMBERS and texts.mean <= _MOST_TOLD:
        accounts = ("card", "account", "hash", "tele", "UUID")
        return _Candidate(
            texts, _ACCOUNT if form.words.startswith(accounts) and whose != "person" else _TOLD, whose
        )
    if different < _FEWEST_PERSONS:
        return None
    kinds = ("integer", "identifier", "category", "text")
    coded = texts.kind in kinds and form not in (NAMES, FREE_TEXT)
    if whose is not None and texts.mean <= _MOST_NAMED and coded:
        return _Candidate(texts, _RANKS.get(whose, _NAMED), whose)
    together = texts.repeats >= _TOGETHER * (1 - 1 / texts.mean) * texts.rows
    # A table may be sorted by town, too; numbers of persons have digits.
    numbered = texts.kind in kinds and all(any(c.isdigit() for c in text) for text in texts.counts)
    in_order = (
        together and numbered and texts.even and different >= _FEWEST_SORTED and texts.mean <= _MOST_NAMED
    )
    if form is NUMBERS or in_order:
        return _Candidate(texts, _NUMBERED, whose)
    if (
        form is NAMES
        and texts.mean <= _MOST_NUMBERED
        and _pairs(texts) > _ABOVE_NAMESAKES * _namesakes(texts)
    ):
        return _Candidate(texts, _NAMED, whose)
    return None


def _namesakes(texts: Texts) -> float:
    """Pairs of rows with one name by chance, if first and last words were drawn apart from each other."""
    rows = sum(texts.counts.values())
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for text, count in texts.counts.items():
        words = text.split() or [""]
        first[words[0]] = first.get(words[0], 0) + count
        last[words[-1]] = last.get(words[-1], 0) + count
    alike = [sum((n / rows) ** 2 for n in counts.values()) for counts in (first, last)]
    one_word = all(len(text.split()) == 1 for text in texts.counts)
    return rows**2 / 2 * (alike[0] if one_word else alike[0] * alike[1])


@dataclass(frozen=True)
class Repeating:
    """Whose rows belong together, by the values of a table's columns.

    Attributes:
        unit: the guess; None where rows are guessed to be the units.
        questions: further questions to the owner, as sentences.
        columns: names of all columns whose values repeat as those of persons, accounts or households do.
    """

    unit: Unit | None = None
    questions: tuple[str, ...] = ()
    columns: frozenset[str] = frozenset()


def repeating(
    columns: Sequence[Texts], forms: Mapping[str, Form | None], sample: Mapping[str, pa.StringArray]
) -> Repeating:
    """Whose rows belong together.

    Args:
        columns: the texts of each column.
        forms: by column, what ``identifier_form`` says of it.
        sample: first rows of the table.
    """
    found = [one for texts in columns if (one := _candidate(texts, forms[texts.name])) is not None]
    a_row_each = next((t for t in columns if t.all_differ and _names_persons(t, forms[t.name])), None)
    if a_row_each is not None:
        asked = [_asked(one) for one in found if one.household]
        return Repeating(None, tuple(asked[:_MOST_QUESTIONS]), frozenset(one.texts.name for one in found))
    persons = [one for one in found if not one.household] or found
    chosen = _chosen(persons, sample) if persons else None
    # Numbers may begin anew in each clinic.
    pairs = _composite(columns, forms, sample)[:1] if chosen is None or chosen.rank <= _NUMBERED else []
    if chosen is None:
        return Repeating(None, tuple(pairs))
    others = [one for one in found if one is not chosen and one.rank >= min(chosen.rank, _NUMBERED)]
    asked = [_asked(one) for one in others if not _one_to_one(chosen, one, sample)]
    kind: Literal["person", "household"] = "household" if chosen.household else "person"
    unit = Unit(chosen.texts.name, _max_rows(chosen.texts), kind, _asked(chosen))
    names = frozenset(one.texts.name for one in found)
    return Repeating(unit, tuple([*pairs, *asked][:_MOST_QUESTIONS]), names)


def _names_persons(texts: Texts, form: Form | None) -> bool:
    """True if a column whose values all differ is one of persons, so that each row is a person's."""
    national = form is not None and form.words.startswith("national")
    return national or named_whose(texts.name) == "person"


def _chosen(persons: Sequence[_Candidate], sample: Mapping[str, pa.StringArray]) -> _Candidate:
    """The most telling column; of several the one with most values, unless these lie within another's."""
    rank = max(one.rank for one in persons)
    best = max((one for one in persons if one.rank == rank), key=lambda one: len(one.texts.counts))
    for other in sorted(persons, key=lambda one: len(one.texts.counts)):
        coarser = len(other.texts.counts) < _NESTED * len(best.texts.counts)
        if other.rank == rank and coarser and _within(best.texts.name, other.texts.name, sample):
            return other
    return best


def _one_to_one(one: _Candidate, other: _Candidate, sample: Mapping[str, pa.StringArray]) -> bool:
    names = (one.texts.name, other.texts.name)
    return all(_within(a, b, sample) for a, b in (names, names[::-1]))


def _within(fine: str, coarse: str, sample: Mapping[str, pa.StringArray]) -> bool:
    """True if nearly every value of a column goes with one value of another."""
    codes = [_codes(sample[name]) for name in (fine, coarse)]
    known = (codes[0] >= 0) & (codes[1] >= 0)
    pairs = len(np.unique(codes[0][known] * (codes[1].max(initial=0) + 1) + codes[1][known]))
    return bool(pairs) and len(np.unique(codes[0][known])) >= _NESTED * pairs


def _codes(texts: pa.StringArray) -> np.ndarray:
    """A number for each different text, -1 for none: int64[rows]."""
    trimmed = pc.utf8_trim_whitespace(texts)
    cells = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    return np.asarray(pc.fill_null(cells.dictionary_encode().indices, -1), np.int64)


def _asked(one: _Candidate) -> str:
    """The question about a column."""
    return question(one.texts, "households" if one.household else "persons")


def question(texts: Texts, whom: str = "persons") -> str:
    """The question about a column whose values repeat.

    >>> question(Texts("kunde", {"a": 2, "b": 3}, True, 5, 0))
    '2 values of kunde come 5 times: are they persons?'
    """
    more = "" if texts.whole else "more than "
    return f"{more}{len(texts.counts):,} values of {texts.name} come {texts.rows:,} times: are they {whom}?"


def _max_rows(texts: Texts) -> int:
    """The least round bound that keeps most rows."""
    rows = np.array(list(texts.counts.values()))
    kept = (most for most in _MAX_ROWS if np.minimum(rows, most).sum() >= _ROWS_KEPT * rows.sum())
    return next(kept, _MAX_ROWS[-1])


def _composite(
    columns: Sequence[Texts], forms: Mapping[str, Form | None], sample: Mapping[str, pa.StringArray]
) -> list[str]:
    """Questions about two columns that name persons together: what belongs to a person is the same in both.

    One of the two is a column of names, or is called a number. Neither tells by itself.
    """
    told = {t.name for t in columns if forms[t.name] is NAMES or named_whose(t.name) in ("number", "person")}
    several = [t for t in columns if len(t.counts) > 1 and not t.all_differ and t.kind != "number"]
    keys = [t for t in several if t.name in told][:_MOST_KEYS]
    others = several[: 2 * _MOST_KEYS]
    codes = {t.name: _codes(sample[t.name]) for t in [*keys, *others]}
    seen: set[frozenset[str]] = set()
    found: list[str] = []
    for key, other in ((k, o) for k in keys for o in others if k.name != o.name):
        names = frozenset((key.name, other.name))
        if names in seen:
            continue
        seen.add(names)
        both = codes[key.name] * (codes[other.name].max(initial=0) + 1) + codes[other.name]
        both[(codes[key.name] < 0) | (codes[other.name] < 0)] = -1
        values, counts = np.unique(both[both >= 0], return_counts=True)
        mean = counts.sum() / max(len(values), 1)
        if len(values) < _FEWEST_PERSONS or not _LEAST_MEAN <= mean <= _MOST_NUMBERED:
            continue
        rest = [t.name for t in others if t.name not in names]
        if any(_belongs(codes[name], both, codes[key.name], codes[other.name]) for name in rest):
            found.append(
                f"{len(values):,} pairs of {key.name} and {other.name} come {counts.sum():,} times in the "
                "first rows: are they persons? If so, give the table one column that names them."
            )
    return found


def _belongs(values: np.ndarray, both: np.ndarray, *single: np.ndarray) -> bool:
    """True if a column has one value for each value of two columns together, and not of either."""
    return _agreement(values, both) >= _SAME and all(
        _agreement(values, one) < _NOT_THE_SAME for one in single
    )


def _agreement(values: np.ndarray, groups: np.ndarray) -> float:
    """The part of the pairs of neighbouring rows of one group that agree."""
    order = np.lexsort((np.arange(len(groups)), groups))
    group, value = groups[order], values[order]
    alike = (group[1:] == group[:-1]) & (group[1:] >= 0) & (value[1:] >= 0) & (value[:-1] >= 0)
    return float((value[1:] == value[:-1])[alike].mean()) if alike.sum() >= _FEWEST_PERSONS else 0.0
