"""Relations between numbers, dates and times that hold row by row: sums, parts, spans, ratios and orders.

A sum has one part or two (year = birth year + age, up to a whole number of one: ages change within a year),
and is found by trying; or any number of parts, and is found by the null space of the columns' covariances,
with whole coefficients. Parts that are mostly zero, such as late fees, are added one by one while they
explain more rows. A part may be a part of a date, or the time between two dates.

Invariant: a candidate is private, and holds in nearly all rows of a sample. It is proposed only if it holds
in nearly all rows of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.expression import Call, Reference, microseconds, plain, value_of
from dpsynth.wings.owner.assess.row_sample import Numbers, TypedRows, as_numbers

SHARE = 0.995
"""Least share of the rows of a sample, and of a table, that keep a rule."""

FEWEST = 100
"""Fewest rows in which a rule must show."""

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


class Stated(NamedTuple):
    """A rule of one of linked tables: its table, its text there, and the rules of single rows it comes to."""

    table: str
    rule: str
    rules: tuple[str, ...]


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
        stated: each rule in words of one of linked tables, where ``rules`` are those of all places that it
            comes to.
    """

    rules: tuple[str, ...]
    columns: frozenset[str]
    chance: float
    order: tuple[str, str] | None = None
    implies: frozenset[tuple[str, str]] = frozenset()
    weak: bool = False
    tuned: bool = False
    stated: tuple[Stated, ...] = ()


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
        return ~np.isnan(self.numbers)

    @cached_property
    def values(self) -> int:
        return int(np.unique(self.numbers[self.present]).size)

    @cached_property
    def spread(self) -> float:
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
        return not self.decimals

    @property
    def tolerance(self) -> float:
        """Error of a sum: a last digit of amounts, which are rounded one by one; none of whole numbers."""
        return 1.001 * 10.0**-self.declared if self.declared else 1e-6


def terms(rows: TypedRows) -> tuple[Term, ...]:
    """The columns of numbers, then parts of dates and times, then the time between two of them."""
    kinds = {c.name: rows.layout.kinds[c.name].word for c in rows.columns}
    found = [
        Term(
            plain(name),
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
    text = f"{formula.operation}({', '.join(map(plain, names))})"
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


_MOST_COLUMNS = 80
"""Columns of numbers that are looked at."""

_FIRST = 96
"""Rows by which most combinations of columns are ruled out."""

_NEARLY = 0.85
"""Share of rows in which a sum holds that may lack a part."""

_VALUES = 6
"""Fewest values of a column that is looked at: flags agree by chance."""

_LEAST_DEVIATION = 2.0
"""Least standard deviation of columns that agree up to a whole number of one."""

_MOST_PARTS = 12

_MOST_COEFFICIENT = 1000

_NULL = 1e-9
"""Largest share of the variance of a direction that has none."""

_SUBSETS = 6

_LEAST_CHANCE = 0.005
"""Least share of rows that would break an order by chance."""

_LEAST_NUMBERS = 0.02
"""That of numbers, of which many are ordered for no reason."""

_ORDERED = 0.998
"""Least share of rows that keep an order: what rises together is ordered in most rows without a rule."""


def relations(rows: TypedRows) -> Iterator[Candidate]:
    """The relations that hold in nearly all rows of a sample."""
    found = [t for t in terms(rows) if t.values > 1 and t.present.sum() >= FEWEST]
    columns = [t for t in found if t.column and t.values >= _VALUES][:_MOST_COLUMNS]
    others = [t for t in found if not t.column]
    sums = list(_computed_once(_independent([*_short_sums(columns, others), *_long_sums(columns)], columns)))
    yield from (s.candidate() for s in sums)
    yield from _ratios(columns, {s.total.written for s in sums if not s.slack})
    yield from _orders(rows, columns)


@dataclass(frozen=True, eq=False)
class _Sum:
    """total = coefficients x parts + constant, or up to ``slack`` more."""

    total: Term
    parts: tuple[Term, ...]
    coefficients: tuple[int, ...]
    constant: float = 0.0
    slack: int = 0

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(self.total.columns, *(p.columns for p in self.parts))

    def off(self) -> Numbers:
        """The difference of both sides, float64[rows], beyond the slack."""
        apart_by = self.total.numbers - self._parts() - self.constant
        return np.abs(apart_by - self.slack / 2) - self.slack / 2

    def _parts(self) -> Numbers:
        return np.asarray(sum(c * p.numbers for c, p in zip(self.coefficients, self.parts, strict=True)))

    @property
    def share(self) -> float:
        """Share of the rows in which it holds; rows of zeros alone, or with missing cells, don't count."""
        off = self.off()
        telling = ~np.isnan(off) & np.any([t.numbers != 0 for t in (self.total, *self.parts)], axis=0)
        if telling.sum() < FEWEST:
            return 0.0
        return float((off[telling] <= self.total.tolerance).mean())

    def solved(self, place: int) -> _Sum:
        """The same sum, written for one of its parts, whose coefficient is 1 or -1."""
        sign = self.coefficients[place]
        left = [i for i in range(len(self.parts)) if i != place]
        factors = (sign, *(-sign * self.coefficients[i] for i in left))
        parts = (self.total, *(self.parts[i] for i in left))
        return _Sum(self.parts[place], parts, factors, -sign * self.constant)

    def extended(self, columns: Sequence[Term]) -> _Sum:
        """The sum with further parts, each of which explains most of the rows that are left."""
        best, share = self, self.share
        while share < 1.0 and len(best.parts) < _MOST_PARTS and not self.slack:
            used = {best.total.written, *(p.written for p in best.parts)}
            tried = [
                _Sum(best.total, (*best.parts, c), (*best.coefficients, sign), best.constant)
                for c in columns
                if c.written not in used
                for sign in (1, -1)
            ]
            more = max(tried, key=lambda s: s.share, default=best)
            if more.share < share + (1.0 - share) / 2:
                break
            best, share = more, more.share
        return best

    def candidate(self) -> Candidate:
        """The rule, or the two rules of a sum with slack."""
        total, low = self.total.written, _formula(self.parts, self.coefficients, self.constant)
        shuffled = self._parts()[apart(len(self.total.numbers))]
        off = np.abs(self.total.numbers - shuffled - self.constant - self.slack / 2) - self.slack / 2
        known = ~np.isnan(off)
        chance = float((off[known] > self.total.tolerance).mean()) if known.any() else 0.0
        if self.slack:
            high = _formula(self.parts, self.coefficients, self.constant + self.slack)
            rules: tuple[str, ...] = (f"{total} >= {low}", f"{total} <= {high}")
        elif max(p.declared for p in self.parts) > self.total.declared:
            rules = (f"{total} == round({low}, {self.total.declared})",)
        else:
            rules = (f"{total} == {low}",)
        return Candidate(rules, self.columns, chance, implies=frozenset(self._orders()))

    def _orders(self) -> Iterator[tuple[str, str]]:
        """Orders that follow: of parts and their total, if none is negative; of dates with days between."""
        if len(self.parts) == 1 and self.parts[0].order and self.coefficients == (1,) and self.constant >= 0:
            yield self.parts[0].order
        members = [(self.total, 1), *((p, -c) for p, c in zip(self.parts, self.coefficients, strict=True))]
        if not all(t.column for t, _ in members):
            return
        for sign in (1, -1):
            large = [t for t, c in members if c * sign > 0]
            small = [t for t, c in members if c * sign < 0]
            more = self.constant * sign if sign > 0 else -self.constant - self.slack
            if (
                len(large) == 1
                and more >= 0
                and (len(small) == 1 or all(float(np.nanmin(t.numbers)) >= 0 for t in small))
            ):
                yield from ((_name(t), _name(large[0])) for t in small)


def _name(term: Term) -> str:
    return next(iter(term.columns))


def _formula(parts: Sequence[Term], coefficients: Sequence[int], constant: float) -> str:
    """A sum as it is written; a positive part stands first.

    >>> _formula((Term("a", frozenset(), np.zeros(1), True),) * 2, (-1, 3), -2.0)
    '3 * a - a - 2'
    """
    order = sorted(range(len(parts)), key=lambda i: (coefficients[i] < 0, i))
    text = ""
    for i in order:
        size = abs(coefficients[i])
        piece = parts[i].written if size == 1 else f"{size} * {parts[i].written}"
        text += f" {'-' if coefficients[i] < 0 else '+'} {piece}"
    rounded = round(constant, 6)
    if rounded:
        text += f" {'-' if rounded < 0 else '+'} {abs(rounded):.10g}"
    return text.removeprefix(" + ").removeprefix(" ")


def _short_sums(columns: Sequence[Term], others: Sequence[Term]) -> Iterator[_Sum]:
    """Sums of one part or two: columns, parts of dates, or the time between two dates."""
    if not columns:
        return
    years = [t for t in others if t.written.startswith("year(")]
    pairs = [(a,) for a in (*columns, *others)] + list(combinations((*columns, *years), 2))
    spots = _spread_out(len(columns[0].numbers), _FIRST)
    totals = [*columns, *years]
    first = np.array([t.numbers[spots] for t in totals])
    for parts in pairs:
        summed = sum(p.numbers[spots] for p in parts)
        with np.errstate(invalid="ignore"):
            close = _middle_width(first - summed) <= 1.0 + 1e-6
        for place in np.flatnonzero(close):
            total = totals[place]
            if total in parts or not any(p.column for p in (total, *parts)):
                continue
            if len(parts) == 1 and parts[0].column and (not total.column or parts[0].written < total.written):
                continue
            found = _best_constant(total, parts, columns)
            if found is not None and not found.slack and not total.column:
                column = next((i for i, p in enumerate(found.parts) if p.column), None)
                found = None if column is None else found.solved(column)
            if found is not None:
                yield found


def _best_constant(total: Term, parts: tuple[Term, ...], columns: Sequence[Term]) -> _Sum | None:
    """The sum with the constant, and the slack, with which it holds in nearly all rows."""
    difference = total.numbers - sum(p.numbers for p in parts)
    known = difference[~np.isnan(difference)]
    if known.size < FEWEST:
        return None
    middle, ones = round(float(np.median(known)), 9), (1,) * len(parts)
    whole = all(t.whole for t in (total, *parts))
    wide = all(t.spread >= _LEAST_DEVIATION for t in (total, *parts) if t.column)
    exact = _Sum(total, parts, ones, middle if abs(middle) > total.tolerance else 0.0)
    if exact.share >= _NEARLY and (longer := exact.extended(columns)).share >= SHARE:
        return longer
    wide = wide and all(p.column or p.written.startswith("year(") for p in parts)
    lows = ((middle - 1, middle) if middle % 1 == 0 else (middle - 0.5,)) if whole and wide else ()
    slack = [_Sum(total, parts, ones, low, 1) for low in lows]
    return max((s for s in slack if s.share >= SHARE), key=lambda s: s.share, default=None)


def _middle_width(differences: Numbers) -> Numbers:
    """Widths of the middle four fifths of each row's numbers; infinite where fewer than eight are known."""
    ordered = np.sort(differences, axis=1)
    known = (~np.isnan(ordered)).sum(axis=1)
    low, high = (known * 0.1).astype(np.int64), np.maximum((known * 0.9).astype(np.int64) - 1, 0)
    rows = np.arange(len(ordered))
    return np.where(known >= 8, ordered[rows, high] - ordered[rows, low], np.inf)


def _spread_out(rows: int, number: int) -> NDArray[np.int64]:
    """Rows from everywhere in the sample."""
    return apart(rows)[:number]


def _long_sums(columns: Sequence[Term]) -> Iterator[_Sum]:
    """Sums of three parts and more, from the null space of the columns' covariances in some rows."""
    usual = [t for t in columns if t.present.mean() >= 0.5]
    if len(usual) < 3:
        return
    numbers = np.column_stack([t.numbers for t in usual])
    complete = numbers[~np.isnan(numbers).any(axis=1)]
    if len(complete) < FEWEST:
        return
    size, tolerances = max(3 * len(usual), 150), np.array([t.tolerance for t in usual])
    shuffled = complete[apart(len(complete))]
    seen: set[frozenset[str]] = set()
    for start in range(_SUBSETS):
        some = shuffled[start * size : (start + 1) * size]
        if len(some) < max(len(usual) + 20, min(size, len(complete))):
            break
        for members, coefficients in _null_sums(some, tolerances):
            names = frozenset(usual[i].written for i in members)
            if names not in seen:
                seen.add(names)
                yield from _with_total([usual[i] for i in members], coefficients, columns)


def _null_sums(numbers: Numbers, tolerances: Numbers) -> Iterator[tuple[list[int], list[int]]]:
    """Columns with whole coefficients whose sum is the same in all rows of some, float64[rows, columns]."""
    centred = numbers - numbers.mean(axis=0)
    scale = centred.std(axis=0)
    varied = np.flatnonzero(scale > 0)
    standard = centred[:, varied] / scale[varied]
    shares, directions = np.linalg.eigh(standard.T @ standard / len(standard))
    none = directions[:, shares < _NULL * len(varied)]
    members = varied[(none**2).sum(axis=1) > _NULL]
    for target in members:
        most = max(3 * tolerances[target], 1e-9 * np.abs(numbers[:, target]).max())
        left = [int(m) for m in members if m != target]
        fit = _fitted(centred, int(target), left, most)
        if fit is None:
            continue
        left, fit = _fewest(centred, int(target), left, fit, most)
        whole = np.round(fit)
        exact = np.abs(fit - whole) <= 1e-2 * np.abs(whole)
        if 2 <= len(left) <= _MOST_PARTS and exact.all() and np.abs(whole).max() <= _MOST_COEFFICIENT:
            yield [int(target), *left], [-1, *whole.astype(int).tolist()]


def _fewest(
    centred: Numbers, target: int, parts: list[int], fit: Numbers, most: float
) -> tuple[list[int], Numbers]:
    """The fewest parts that explain a target; the part that weighs least goes first."""
    while len(parts) > 1:
        for place in np.argsort(np.abs(fit) * centred[:, parts].std(axis=0)):
            fewer = [m for i, m in enumerate(parts) if i != place]
            fitted = _fitted(centred, target, fewer, most)
            if fitted is not None:
                parts, fit = fewer, fitted
                break
        else:
            break
    return parts, fit


def _fitted(centred: Numbers, target: int, parts: list[int], most: float) -> Numbers | None:
    """The coefficients of parts that explain a target in all rows up to an error; None if they don't."""
    found, *_ = np.linalg.lstsq(centred[:, parts], centred[:, target], rcond=None)
    rest = centred[:, target] - centred[:, parts] @ found
    return np.asarray(found) if parts and np.abs(rest).max() <= most else None


def _with_total(members: list[Term], coefficients: list[int], columns: Sequence[Term]) -> Iterator[_Sum]:
    """The sum written for the member that leaves the fewest signs of minus, with its constant."""
    signs = np.sign(coefficients)
    alone = [i for i in range(len(members)) if abs(coefficients[i]) == 1]
    if not alone:
        return
    best = min(alone, key=lambda i: (np.sum(signs == signs[i]), -np.nanmean(members[i].numbers)))
    parts = [i for i in range(len(members)) if i != best]
    factors = tuple(int(-coefficients[i] * signs[best]) for i in parts)
    plain = _Sum(members[best], tuple(members[i] for i in parts), factors)
    constant = float(np.nanmedian(plain.total.numbers - plain._parts()))
    if abs(constant) > plain.total.tolerance:
        plain = _Sum(plain.total, plain.parts, factors, round(constant, plain.total.declared))
    if plain.share < SHARE:
        plain = plain.extended(columns)
    if plain.share >= SHARE:
        yield plain


def _independent(sums: Sequence[_Sum], columns: Sequence[Term]) -> list[_Sum]:
    """The sums, the shortest first, without those that follow from others."""
    kept: list[_Sum] = []
    place = {t.written: i for i, t in enumerate(columns)}
    rows = np.zeros((0, len(columns)))
    slack: list[frozenset[str]] = []
    for found in sorted(sums, key=lambda s: (s.slack, len(s.parts), -s.share)):
        pieces = (found.total, *found.parts)
        if any(covered <= found.columns for covered in slack):
            continue
        if found.slack:
            if any(k.columns <= found.columns for k in kept):
                continue
            # Of several dates of one year the one that fits best is enough.
            slack.append(frozenset().union(*(p.columns for p in pieces if p.column)))
        elif all(p.column for p in pieces):
            row = np.zeros(len(columns))
            row[[place[p.written] for p in pieces]] = [-1, *found.coefficients]
            if np.linalg.matrix_rank(np.vstack([rows, row])) == len(rows):
                continue
            rows = np.vstack([rows, row])
        elif any(k.total is found.total for k in kept):
            # A column is computed once: from days rather than from hours.
            continue
        kept.append(found)
    return kept


def _computed_once(sums: Sequence[_Sum]) -> Iterator[_Sum]:
    """The sums, each written for a column that no other one is written for; the longest has its total."""
    taken: set[str] = set()
    for found in sorted(sums, key=lambda s: -len(s.parts)):
        places = [i for i, p in enumerate(found.parts) if p.column and abs(found.coefficients[i]) == 1]
        # The smallest part is the one that rounding and noise of the others matter least to.
        forms = [found, *(found.solved(i) for i in sorted(places, key=lambda i: found.parts[i].spread))]
        form = found if found.slack else next((f for f in forms if f.total.written not in taken), found)
        if not form.slack:
            taken.add(form.total.written)
        yield form


def _ratios(columns: Sequence[Term], computed: set[str]) -> Iterator[Candidate]:
    """Columns that are a product, a quotient, a percentage or a fixed multiple of others, rounded."""
    if len(columns) < 2:
        return
    spots = _spread_out(len(columns[0].numbers), _FIRST)
    targets = [t for t in columns if t.written not in computed]
    first = np.array([t.numbers[spots] for t in targets]).reshape(len(targets), len(spots))
    half = np.array([0.501 * 10.0**-t.decimals for t in targets])[:, None]

    def close(wanted: Numbers) -> NDArray[np.intp]:
        """Targets that the wanted numbers of the first rows come near."""
        known = ~np.isnan(first - wanted) & (first != 0)
        hits = ((np.abs(first - wanted) <= half) & known).sum(axis=1)
        return np.flatnonzero((hits >= 20) & (hits >= 0.95 * known.sum(axis=1)))

    def found() -> Iterator[tuple[Term, Candidate | None]]:
        for parts, formula, work in _products(columns):
            for place in close(work.at(spots)):
                if targets[place] not in parts:
                    yield targets[place], _product(targets[place], parts, formula, work)
        for part in columns:
            factors = np.array([_factor(row, part.numbers[spots]) for row in first])
            for place in close(factors[:, None] * part.numbers[spots]):
                if targets[place] is not part:
                    yield targets[place], _multiple(targets[place], part)

    for total, candidate in found():
        if candidate is not None and total.written not in computed:
            computed.add(total.written)
            yield candidate


def _product(total: Term, parts: tuple[Term, Term], formula: str, work: _Work) -> Candidate | None:
    found = _ratio(total, parts, formula, work.at(slice(None)))
    if found is None or work.divide or min(float(np.nanmin(p.numbers)) for p in parts) < 0:
        return found
    # What is multiplied by one or more is not larger than the product.
    large = (p for p, other in (parts, parts[::-1]) if float(np.nanmin(other.numbers)) >= 1)
    return replace(found, implies=frozenset((_name(p), _name(total)) for p in large))


def _multiple(total: Term, part: Term) -> Candidate | None:
    factor = _factor(total.numbers, part.numbers)
    if factor in (1.0, -1.0) or not 1e-3 < abs(factor) < 1e4:
        return None
    found = _ratio(total, (part,), f"{factor:.10g} * {part.written}", factor * part.numbers)
    return None if found is None else replace(found, implies=_ordered_by(factor, total, part))


def _products(columns: Sequence[Term]) -> Iterator[tuple[tuple[Term, Term], str, _Work]]:
    """Products, quotients and percentages of two columns, with their formulas."""
    for a, b in combinations(columns, 2):
        yield (a, b), f"{a.written} * {b.written}", _Work(a, b, 1.0, divide=False)
        for x, y in ((a, b), (b, a)):
            yield (x, y), f"{x.written} / {y.written}", _Work(x, y, 1.0, divide=True)
            yield (x, y), f"100 * {x.written} / {y.written}", _Work(x, y, 100.0, divide=True)


@dataclass(frozen=True, eq=False)
class _Work:
    """A product or a quotient of two columns."""

    a: Term
    b: Term
    factor: float
    divide: bool

    def at(self, spots: NDArray[np.int64] | slice) -> Numbers:
        """The values in some rows; NaN or infinite where there is none."""
        x, y = self.factor * self.a.numbers[spots], self.b.numbers[spots]
        with np.errstate(all="ignore"):
            return np.asarray(x / y if self.divide else x * y)


def _ordered_by(factor: float, total: Term, part: Term) -> frozenset[tuple[str, str]]:
    """The order of a column and its multiple, where no number is negative."""
    if factor < 0 or float(np.nanmin(part.numbers)) < 0:
        return frozenset()
    names = _name(total), _name(part)
    return frozenset((names if factor < 1 else names[::-1],))


def _factor(numbers: Numbers, parts: Numbers) -> float:
    """The middle ratio of two columns, with four digits; 0 where there is none."""
    known = ~np.isnan(numbers) & ~np.isnan(parts) & (parts != 0)
    return float(f"{np.median(numbers[known] / parts[known]):.4g}") if known.any() else 0.0


def _ratio(total: Term, parts: tuple[Term, ...], formula: str, wanted: Numbers) -> Candidate | None:
    """A column that is a formula, rounded to its decimals."""
    wanted = np.where(np.isfinite(wanted), wanted, np.nan)
    known = ~np.isnan(total.numbers) & ~np.isnan(wanted) & (total.numbers != 0)
    if known.sum() < FEWEST or np.unique(total.numbers[known]).size < _VALUES:
        return None
    most = 0.501 * 10.0**-total.decimals
    if (np.abs(total.numbers - wanted)[known] <= most).mean() < SHARE:
        return None
    shuffled = wanted[apart(len(wanted))]
    both = ~np.isnan(total.numbers) & ~np.isnan(shuffled)
    chance = float((np.abs(total.numbers - shuffled)[both] > most).mean()) if both.any() else 0.0
    columns = total.columns.union(*(p.columns for p in parts))
    return Candidate((f"{total.written} == round({formula}, {total.decimals})",), columns, chance)


def _orders(rows: TypedRows, columns: Sequence[Term]) -> Iterator[Candidate]:
    """Orders of numbers, and of dates or times, without those that follow from two others."""
    groups: dict[str, dict[str, Numbers]] = {"number": {_name(t): t.numbers for t in columns}}
    for column in rows.columns:
        kind = rows.layout.kinds[column.name].word
        if kind in ("date", "datetime", "time"):
            groups.setdefault(kind, {})[column.name] = _moments(rows, column.name)
    shuffled = apart(rows.rows)
    for word, group in groups.items():
        below: dict[tuple[str, str], float] = {}
        for (a, x), (b, y) in combinations(group.items(), 2):
            for low, high, lows, highs in ((a, b, x, y), (b, a, y, x)):
                known = ~np.isnan(lows) & ~np.isnan(highs)
                if known.sum() < FEWEST or (lows > highs)[known].mean() > 1 - _ORDERED:
                    continue
                mixed = highs[shuffled]
                both = ~np.isnan(lows) & ~np.isnan(mixed)
                chance = float((lows > mixed)[both].mean()) if both.any() else 0.0
                alike = (lows == highs)[known].mean() > SHARE
                # Numbers of one unit, rather than days and amounts.
                near = word != "number" or (chance >= _LEAST_NUMBERS and _near(lows[known], highs[known]))
                if chance >= _LEAST_CHANCE and near and not alike:
                    below[low, high] = chance
        for (low, high), chance in below.items():
            if not any((low, m) in below and (m, high) in below for m in group):
                rule = f"{plain(low)} <= {plain(high)}"
                yield Candidate((rule,), frozenset((low, high)), chance, (low, high))


def _near(lows: Numbers, highs: Numbers) -> bool:
    """True if both come near each other in some rows."""
    some = lows != 0
    return bool(some.any()) and float((np.abs(lows) >= 0.8 * np.abs(highs))[some].mean()) >= _LEAST_CHANCE


def _moments(rows: TypedRows, name: str) -> Numbers:
    values = microseconds(rows.operand(name).values)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
