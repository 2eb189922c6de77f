"""Candidates for rules, and the terms that they are made of.

Invariant: a candidate is private, and holds in nearly all rows of a sample. It is proposed only if it holds
in nearly all rows of the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import gcd

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.expression import Call, Reference
from dpsynth.columns.formulas import value_of
from dpsynth.wings.owner.assess.row_sample import Numbers, TypedRows, as_numbers

SHARE = 0.995
"""Least share of the rows of a sample, and of a table, that keep a rule."""
FEWEST = 100
"""Fewest rows in which a rule must show."""

_WORDS = frozenset(("and", "or", "not", "in", "is", "missing", "implies", "determines", "if"))
_PARTS = {
    "date": ("year", "month", "day", "weekday"),
    "datetime": ("year", "month", "day", "weekday", "hour", "minute"),
    "time": ("hour", "minute"),
}
_SPANS = {
    "date": ("days",),
    "datetime": ("days", "hours", "minutes", "seconds"),
    "time": ("hours", "minutes"),
}
_MOST_MOMENTS = 8


@dataclass(frozen=True)
class Candidate:
    """One rule, or two that belong together.

    Attributes:
        rules: as they are written in a config.
        columns: the columns that they name.
        chance: share of rows that would break it if the columns were independent: rows that can't be, which a
            synthetic table may have as long as nobody states the rule.
        order: the two columns of an order, the lower one first; None for all other rules.
        implies: orders that follow from the rule.
        weak: True if a sum of its columns says enough.
        tuned: True if it holds a number or a list that was read off the rows.
    """

    rules: tuple[str, ...]
    columns: frozenset[str]
    chance: float
    order: tuple[str, str] | None = None
    implies: frozenset[tuple[str, str]] = frozenset()
    weak: bool = False
    tuned: bool = False


@dataclass(frozen=True, eq=False)
class Term:
    """Numbers that stand in a formula: a column, a part of a date, or the time between two.

    Attributes:
        written: the formula.
        columns: the columns that it names.
        numbers: float64[rows], NaN where missing.
        column: True if it is a column alone, which a rule may compute.
        declared: decimals of the formula.
        order: two dates, the first of which is not the later one if the number isn't negative; None for all
            other terms.
    """

    written: str
    columns: frozenset[str]
    numbers: Numbers
    column: bool
    declared: int = 0
    order: tuple[str, str] | None = None

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Rows with a number."""
        return ~np.isnan(self.numbers)

    @cached_property
    def values(self) -> int:
        """Number of different values."""
        return int(np.unique(self.numbers[self.present]).size)

    @cached_property
    def spread(self) -> float:
        """Standard deviation."""
        return float(self.numbers[self.present].std()) if self.present.any() else 0.0

    @cached_property
    def decimals(self) -> int:
        """Decimals that the numbers have, at most the declared ones."""
        known = self.numbers[self.present]
        for decimals in range(self.declared):
            steps = known * 10.0**decimals
            if (np.abs(steps - np.round(steps)) < 1e-6).all():
                return decimals
        return self.declared

    @property
    def whole(self) -> bool:
        """True if all numbers are whole."""
        return not self.decimals

    @property
    def tolerance(self) -> float:
        """Error of a sum: a last digit of amounts, which are rounded one by one; none of whole numbers."""
        return 1.001 * 10.0**-self.declared if self.declared else 1e-6


def written(name: str) -> str:
    """A column's name in a rule, in backticks where it isn't a plain word.

    >>> written("age"), written("hours-per-week"), written("in")
    ('age', '`hours-per-week`', '`in`')
    """
    return name if re.fullmatch(r"[^\W\d]\w*", name) and name not in _WORDS else f"`{name}`"


def terms(rows: TypedRows) -> tuple[Term, ...]:
    """The columns of numbers, then parts of dates and times, then the time between two of them."""
    kinds = {c.name: rows.layout.kinds[c.name].word for c in rows.columns if "`" not in c.name}
    found = [
        Term(
            written(name),
            frozenset((name,)),
            as_numbers(rows.operand(name).values),
            column=True,
            declared=rows.layout.kinds[name].decimals,
        )
        for name, word in kinds.items()
        if word == "number"
    ]
    moments = [name for name, word in kinds.items() if word in _PARTS][:_MOST_MOMENTS]
    for name in moments:
        found += [_made(rows, Call(part, (Reference(name),))) for part in _PARTS[kinds[name]]]
    for start, end in permutations(moments, 2):
        if kinds[start] == kinds[end]:
            both = (Reference(start), Reference(end))
            found += [_made(rows, Call(span, both)) for span in _SPANS[kinds[start]]]
    return tuple(found)


def _made(rows: TypedRows, formula: Call) -> Term:
    names = tuple(part.column for part in formula.operands if isinstance(part, Reference))
    operands = {name: rows.operand(name) for name in names}
    text = f"{formula.operation}({', '.join(map(written, names))})"
    numbers = as_numbers(value_of(formula, operands, rows.rows))
    # Hours are cut off, so that no hour may be some minutes too early.
    whole = len(names) == 2 and rows.layout.kinds[names[0]].word == "date"
    return Term(text, frozenset(names), numbers, column=False, order=(names[0], names[1]) if whole else None)


def apart(rows: int) -> NDArray[np.int64]:
    """An order of rows in which none stands where it was, int64[rows]; the same each time.

    What holds between a column and another column in this order holds by chance.
    """
    step = max(int(rows * 0.618), 1)
    while gcd(step, rows) > 1:
        step += 1
    return (np.arange(rows, dtype=np.int64) * step + rows // 2) % max(rows, 1)
