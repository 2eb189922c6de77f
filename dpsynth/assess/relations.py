"""Relations between numbers that hold row by row, such as year = birth year + age, for the owner's eyes.

A column that is the sum of two others, up to a constant and to a whole number of one more (ages change
within a year), or another column and a constant. The first rows give the candidates; all rows are counted.

Invariant: a relation that was found is private, and is proposed only. What is written into a config must be
known without the table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.assess.findings import Finding, keys
from dpsynth.assess.tallies import codec_of
from dpsynth.domain.column import Column
from dpsynth.domain.numeric_codec import NumericCodec

Numbers = NDArray[np.float64]

_FIRST = 512
"""Rows in which candidates are looked for."""
_FEWEST = 100
"""Rows in which a relation must show."""
_MOST_COLUMNS = 80
"""Columns of numbers that are looked at."""
_FIRST_SHARE, _SHARE = 0.97, 0.99
"""Shares of the first rows, and of all rows, in which a relation holds."""
_VALUES = 6
"""Fewest values of a column that is looked at: flags agree by chance."""
_LEAST_DEVIATION = 2.0
"""Least standard deviation of columns that agree up to a whole number of one."""
_EXACT = 1e-6


@dataclass
class _Relation:
    """A relation: total = parts + constant, or up to ``slack`` more.

    Attributes:
        total: place of a column.
        parts: places of one or two columns.
        constant: the number that is added.
        slack: 0, or 1 for whole numbers.
        rows: rows in which all columns have a number.
        held: those in which it holds.
    """

    total: int
    parts: tuple[int, ...]
    constant: float
    slack: int
    rows: int = 0
    held: int = 0

    @property
    def columns(self) -> frozenset[int]:
        """Places of all columns."""
        return frozenset((self.total, *self.parts))

    @property
    def holds(self) -> bool:
        """True if it holds in nearly all rows, and in rows enough."""
        return self.rows >= _FEWEST and self.held >= _SHARE * self.rows

    def add(self, numbers: Numbers) -> None:
        """Count some rows, float64[rows, columns]."""
        apart = numbers[:, self.total] - numbers[:, list(self.parts)].sum(axis=1) - self.constant
        self.rows += int((~np.isnan(apart)).sum())
        self.held += int((np.abs(apart - self.slack / 2) <= self.slack / 2 + _EXACT).sum())


class RelationTally:
    """The relations of a table's columns of numbers, in one pass and bounded memory."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """No row of some columns."""
        codecs = {c: codec_of(c) for c in columns}
        self._codecs = {c: codec for c, codec in codecs.items() if isinstance(codec, NumericCodec)}
        self._columns = list(self._codecs)[:_MOST_COLUMNS]
        self._waiting: list[Numbers] = []
        self._found: list[_Relation] | None = None

    def add(self, batch: Mapping[str, pa.StringArray]) -> None:
        """Count the rows of a batch."""
        if len(self._columns) < 2:
            return
        read = [self._codecs[c].form.read(c.values_of(batch[c.name])) for c in self._columns]
        numbers = np.column_stack(read)
        if self._found is None:
            self._waiting.append(numbers)
            if sum(map(len, self._waiting)) >= _FIRST:
                self._look()
        else:
            self._count(numbers)

    def findings(self, ruled: Collection[frozenset[str]] = ()) -> Iterator[Finding]:
        """The relations that hold, but for those about columns that one rule of the config names already."""
        if self._found is None:
            self._look()
        held: list[_Relation] = []
        for relation in sorted(self._found or (), key=lambda r: (r.slack, len(r.parts))):
            # A sum with a part that hardly counts follows from a relation of two columns.
            if relation.holds and not any(other.columns <= relation.columns for other in held):
                held.append(relation)
        for relation in held:
            names = frozenset(self._columns[place].name for place in relation.columns)
            if not any(names <= columns for columns in ruled):
                yield self._finding(relation)

    def _look(self) -> None:
        """Find the candidates in the rows so far, and count these rows."""
        numbers = np.concatenate(self._waiting) if self._waiting else np.zeros((0, len(self._columns)))
        self._waiting = []
        self._found = list(_candidates(numbers[:_FIRST])) if len(numbers) >= _FEWEST else []
        self._count(numbers)

    def _count(self, numbers: Numbers) -> None:
        for relation in self._found or ():
            relation.add(numbers)

    def _finding(self, relation: _Relation) -> Finding:
        names = [_written(self._columns[place].name) for place in (relation.total, *relation.parts)]
        total, parts = names[0], " + ".join(names[1:])
        low, high = (f"{parts}{_plus(relation.constant + more)}" for more in (0, relation.slack))
        broken = relation.rows - relation.held
        where = "in every row" if not broken else f"in all but {broken:,} of {relation.rows:,} rows"
        if relation.slack:
            what, rules = (
                f"{where} {total} lies between {low} and {high}",
                [
                    f"{total} >= {low}",
                    f"{total} <= {high}",
                ],
            )
        else:
            what, rules = f"{where} {total} is {low}", [f"{total} == {low}"]
        remedy = (
            "if that follows from what the columns mean, so that anyone could say it without the table, "
            "state it, and no synthetic row contradicts it"
        )
        return Finding("constraints", broken, what, remedy, keys({"constraints": rules}))


def _candidates(numbers: Numbers) -> Iterator[_Relation]:
    """The relations that hold in nearly all of some rows, float64[rows, columns]."""
    present = ~np.isnan(numbers)
    whole = ((numbers % 1 == 0) | ~present).all(axis=0)
    spread = np.array([n[p].std() if p.any() else 0.0 for n, p in zip(numbers.T, present.T, strict=True)])
    telling = [i for i, column in enumerate(numbers.T) if np.unique(column[present[:, i]]).size >= _VALUES]
    looked = numbers[:, telling]
    pairs = [(i,) for i in range(len(telling))] + list(combinations(range(len(telling)), 2))
    for parts in pairs:
        apart = looked - looked[:, list(parts)].sum(axis=1, keepdims=True)
        for place in range(len(telling)):
            if place in parts or (len(parts) == 1 and place < parts[0]):
                continue
            column = apart[:, place][~np.isnan(apart[:, place])]
            if column.size < _FEWEST:
                continue
            middle = float(np.median(column))
            inner = [telling[p] for p in (place, *parts)]
            for constant, slack in _near(middle, whole=bool(whole[inner].all())):
                if slack and spread[inner].min() < _LEAST_DEVIATION:
                    continue
                held = np.abs(column - constant - slack / 2) <= slack / 2 + _EXACT
                if held.mean() >= _FIRST_SHARE:
                    yield _Relation(inner[0], tuple(inner[1:]), constant, slack)
                    break


def _near(middle: float, *, whole: bool) -> list[tuple[float, int]]:
    """The constants and slacks to try, around a median."""
    if not whole:
        return [(middle, 0)]
    return [(middle, 0), (middle - 1, 1), (middle, 1)] if middle % 1 == 0 else [(middle - 0.5, 1)]


def _plus(constant: float) -> str:
    """A constant that is added, as a formula has it.

    >>> _plus(-2.0), _plus(0.0), _plus(1.5)
    (' - 2', '', ' + 1.5')
    """
    rounded = round(constant, 6)
    return f" {'-' if rounded < 0 else '+'} {abs(rounded):.10g}" if rounded else ""


def _written(name: str) -> str:
    """A column's name in a rule: of several words, in backticks."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name}`"
