"""Dependencies between values: functional ones, codes within codes, cells missing together, implications.

Invariant: see ``candidates``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Intervals
from dpsynth.columns.column import Column, PrefixSearch
from dpsynth.columns.expression import plain
from dpsynth.wings.owner.assess.relations import FEWEST, SHARE, Candidate, apart
from dpsynth.wings.owner.assess.row_sample import TypedRows

_LEAST_CHANCE = 0.005
"""Least share of rows that would break a rule by chance."""
_MOST_VALUES = 3000
"""Most values of a column that determines another one."""
_MOST_GROUPS = 30
"""Most values of a column of which implications are looked for."""
_LEAST_IMPLIED = 0.01
"""Least share of rows that would break an implication by chance."""
_SURE = 0.998
"""Least share of the rows of a group that keep an implication."""
_EDGE = 0.02
"""Least share of a group at its first value, and of other rows beyond it: an edge rather than a tail."""

_NEARLY_ALL = 0.97
_MISSING = ("is not missing", "is missing")

Mask = NDArray[np.bool_]


def dependencies(rows: TypedRows) -> Iterator[Candidate]:
    """The dependencies that hold in nearly all rows of a sample."""
    columns = [_Coded(c, rows) for c in rows.columns if "'" not in c.name]
    prefixes = list(_codes_within_codes(rows))
    known = {c.columns for c in prefixes}
    tied = [c for c in _ties(columns) if c.columns not in known]
    yield from (*prefixes, *tied)
    groups = _missing_together(columns)
    yield from _of_groups(groups)
    yield from _missing_by_missing([group[0] for group in groups])
    known |= set(_joined([c.columns for c in tied]))
    able = [c for c in columns if c.single and 2 <= c.values <= _MOST_GROUPS]
    first = {group[0].name for group in groups}
    for a, b in permutations(able, 2):
        if a.name < b.name and frozenset((a.name, b.name)) not in known:
            yield from _implications(a, b)
    yield from _said_by_values(able, [c for c in columns if c.name in first])


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column of the sample in codes.

    Attributes:
        column: the column.
        rows: the sample.
    """

    column: Column
    rows: TypedRows

    @property
    def name(self) -> str:
        return self.column.name

    @cached_property
    def single(self) -> bool:
        """True if each cell is one value, so that values may be named and tied."""
        cells = self.column.codec.cell_values
        return self.column.search is None and (
            self.column.codec.closed or (isinstance(cells, Intervals) and bool(cells.single))
        )

    @property
    def codes_of_texts(self) -> bool:
        """True if the cells are first characters of codes such as postcodes."""
        text = self.rows.layout.kinds[self.name].word == "text" and not self.column.codec.closed
        return text and (self.column.search is None or isinstance(self.column.search, PrefixSearch))

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """int64[rows], -1 where missing."""
        return self.rows.codes(self.name)

    @cached_property
    def values(self) -> int:
        return int(self.codes.max(initial=-1)) + 1

    @cached_property
    def missing(self) -> Mask:
        return np.asarray(self.rows.operand(self.name).values.is_null())

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        return np.bincount(self.codes[self.codes >= 0], minlength=self.values)

    @cached_property
    def ordered(self) -> list[int] | None:
        """The codes of whole numbers in their order; None for all other columns."""
        if self.rows.layout.kinds[self.name].word != "number" or len(self.literals) < self.values:
            return None
        return sorted(range(self.values), key=lambda code: float(self.literals[code]))

    @cached_property
    def literals(self) -> Mapping[int, str]:
        """The values as a rule writes them, by code; without those that it can't write."""
        first: dict[int, int] = {}
        seen, spots = np.unique(self.codes, return_index=True)
        first.update(zip(seen.tolist(), spots.tolist(), strict=True))
        operand = self.rows.operand(self.name)
        found: dict[int, str] = {}
        for code, spot in first.items():
            value = operand.values[spot].as_py()
            if code >= 0 and value is not None:
                if operand.kind.word == "number":
                    found[code] = f"{value:.10g}"
                elif operand.kind.word == "text" and "'" not in str(value) and str(value).isprintable():
                    found[code] = f"'{value}'"
                elif operand.kind.word == "truth":
                    found[code] = "true" if value else "false"
        return found

    def says(self, codes: list[int], *, run: bool = False) -> str | None:
        """The condition that the value is one of some; None if it can't be written.

        Args:
            codes: the values.
            run: True if they are all numbers from one on, or up to one.
        """
        if not codes or any(code not in self.literals for code in codes):
            return None
        name = plain(self.name)
        if run and self.ordered:
            first = codes[0] != self.ordered[0]
            return (
                f"{name} >= {self.literals[codes[0]]}" if first else f"{name} <= {self.literals[codes[-1]]}"
            )
        texts = [self.literals[code] for code in sorted(codes, key=(self.ordered or sorted(codes)).index)]
        if self.rows.layout.kinds[self.name].word == "truth":
            return name if texts == ["true"] else f"not {name}" if texts == ["false"] else None
        return f"{name} == {texts[0]}" if len(texts) == 1 else f"{name} in [{', '.join(texts)}]"


# Functional dependencies


def _ties(columns: list[_Coded]) -> Iterator[Candidate]:
    """Each column with the closest one that determines it, of no fewer values than its own."""
    able = [c for c in columns if 2 <= c.values <= _MOST_VALUES and (c.single or c.codes_of_texts)]
    able.sort(key=lambda c: (-c.values, c.single, c.name))
    for place, right in enumerate(able):
        if not right.single:
            continue
        for left in reversed(able[:place]):
            chance = _determines(left, right)
            if chance is not None:
                both = left.values == right.values and left.single and _determines(right, left) is not None
                rule = f"{plain(left.name)} {'<->' if both else 'determines'} {plain(right.name)}"
                yield Candidate((rule,), frozenset((left.name, right.name)), chance)
                break


def _joined(ties: list[frozenset[str]]) -> Iterator[frozenset[str]]:
    """Pairs of columns that are tied, directly or by way of others."""
    groups: list[frozenset[str]] = []
    for tie in ties:
        touched = [group for group in groups if group & tie]
        groups = [*(group for group in groups if not group & tie), tie.union(*touched)]
    yield from (frozenset(pair) for group in groups for pair in permutations(group, 2))


def _determines(left: _Coded, right: _Coded) -> float | None:
    """Share of rows that would break the dependency by chance; None if it doesn't hold."""
    both = (left.codes >= 0) & (right.codes >= 0)
    rows = int(both.sum())
    if rows < FEWEST:
        return None
    some = slice(None, 2000)
    if _kept(left.codes[some][both[some]], right.codes[some][both[some]], right.values) < SHARE:
        return None
    a, b = left.codes[both], right.codes[both]
    kept = _kept(a, b, right.values)
    if kept < SHARE:
        return None
    by_chance = 1.0 - _kept(a, b[apart(rows)], right.values)
    # Of values that come once nothing can be said.
    return by_chance if by_chance >= max(_LEAST_CHANCE, 20 * (1.0 - kept), 20 / rows) else None


def _kept(left: NDArray[np.int64], right: NDArray[np.int64], values: int) -> float:
    """Share of the rows with the commonest right value of their left value."""
    pairs, counts = np.unique(left * values + right, return_counts=True)
    most = np.zeros(int(left.max(initial=0)) + 1, np.int64)
    np.maximum.at(most, pairs // values, counts)
    return float(most.sum()) / max(len(left), 1)


def _codes_within_codes(rows: TypedRows) -> Iterator[Candidate]:
    """Columns of texts that are the first characters of another one, as a chapter is of a diagnosis."""
    texts = [c for c in rows.columns if rows.layout.kinds[c.name].word == "text"]
    for short, long in permutations(texts, 2):
        a, b = rows.operand(short.name).texts, rows.operand(long.name).texts
        lengths = np.unique(pc.utf8_length(a).drop_null().to_numpy(zero_copy_only=False))
        if len(lengths) != 1 or not lengths[0]:
            continue
        length = int(lengths[0])
        both = pc.and_(a.is_valid(), b.is_valid())
        part, prefix = a.filter(both), pc.utf8_slice_codeunits(b.filter(both), 0, length)
        if len(part) < FEWEST or (pc.mean(pc.equal(part, prefix)).as_py() or 0) < SHARE:
            continue
        if (pc.mean(pc.equal(a.filter(both), b.filter(both))).as_py() or 0) > 1 - _LEAST_CHANCE:
            continue
        chance = 1.0 - (pc.mean(pc.equal(part.take(pa.array(apart(len(part)))), prefix)).as_py() or 0)
        if chance >= _LEAST_CHANCE:
            rule = f"{plain(short.name)} == first({plain(long.name)}, {length})"
            yield Candidate((rule,), frozenset((short.name, long.name)), chance)


# Missing cells


def _missing_together(columns: list[_Coded]) -> list[list[_Coded]]:
    """Groups of columns whose cells are missing in the same rows; most are of one column."""
    groups: list[list[_Coded]] = []
    for column in columns:
        share = float(column.missing.mean())
        if not _LEAST_CHANCE <= share <= 1 - _LEAST_CHANCE or column.missing.sum() < FEWEST:
            continue
        for group in groups:
            if float((group[0].missing != column.missing).mean()) <= 0.02 * min(share, 1 - share):
                group.append(column)
                break
        else:
            groups.append([column])
    return groups


def _of_groups(groups: list[list[_Coded]]) -> Iterator[Candidate]:
    for first, *others in groups:
        share = float(first.missing.mean())
        for other in others:
            rule = f"({plain(first.name)} is missing) == ({plain(other.name)} is missing)"
            yield Candidate((rule,), frozenset((first.name, other.name)), 2 * share * (1 - share))


def _missing_by_missing(columns: list[_Coded]) -> Iterator[Candidate]:
    """Columns that are missing wherever another one is."""
    follows = {
        (a.name, b.name): float(a.missing.mean() * (1 - b.missing.mean()))
        for a, b in permutations(columns, 2)
        if b.missing[a.missing].mean() >= _SURE
    }
    for (a, b), chance in follows.items():
        between = any((a, m.name) in follows and (m.name, b) in follows for m in columns)
        if not between and chance >= _LEAST_CHANCE:
            rule = f"{plain(a)} is missing implies {plain(b)} is missing"
            yield Candidate((rule,), frozenset((a, b)), chance)


def _said_by_values(groups: list[_Coded], columns: list[_Coded]) -> Iterator[Candidate]:
    """Values of a column that decide if another one is missing."""
    for b in columns:
        share = float(b.missing.mean())
        for a in groups:
            if a is b:
                continue
            yield from _said(a, b, share)


def _said(a: _Coded, b: _Coded, share: float) -> Iterator[Candidate]:
    """Values of one column that decide if another one, missing in a share of the rows, is missing."""
    here = a.codes >= 0
    counts = np.zeros((a.values, 2), np.int64)
    np.add.at(counts, (a.codes[here], b.missing[here].astype(np.int64)), 1)
    sure = (a.counts >= FEWEST) & (counts.max(axis=1) >= _SURE * a.counts)
    sides = [[int(v) for v in np.flatnonzero(sure & (counts.argmax(axis=1) == side))] for side in (0, 1)]
    name, pair = plain(b.name), frozenset((a.name, b.name))
    if all(sides) and len(sides[0]) + len(sides[1]) == a.values and here.all():
        side = int(len(sides[1]) <= len(sides[0]))
        if condition := a.says(sides[side]):
            said = f"({condition})" if " " in condition else condition
            rule = f"{said} == ({name} {_MISSING[side]})"
            yield Candidate((rule,), pair, 2 * share * (1 - share))
        return
    for side, other in ((0, share), (1, 1 - share)):
        codes = sides[side]
        chance = float(a.counts[codes].sum()) / len(a.codes) * other
        # All values together say no more than that there is one.
        if chance < _LEAST_IMPLIED or a.counts[codes].sum() > _NEARLY_ALL * a.counts.sum():
            continue
        wider = _run(a, codes, sure, counts, side)
        if condition := a.says(wider or codes, run=bool(wider)):
            yield Candidate(
                (f"{condition} implies {name} {_MISSING[side]}",), pair, chance, tuned=bool(wider)
            )


# Implications


def _implications(a: _Coded, b: _Coded) -> Iterator[Candidate]:
    """Implications between values of two columns, without those that forbid what others do."""
    both = (a.codes >= 0) & (b.codes >= 0)
    if both.sum() < FEWEST:
        return
    counts = np.zeros((a.values, b.values), np.int64)
    np.add.at(counts, (a.codes[both], b.codes[both]), 1)
    # Rows by chance of each pair of values.
    chances = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum() / len(a.codes)
    found = [
        *_of_values(a, b, counts),
        *(_Forbidden(f.mask.T, f.rule, f.tuned) for f in _of_values(b, a, counts.T)),
        *_of_bounds(a, b, counts),
        *(_Forbidden(f.mask.T, f.rule, f.tuned) for f in _of_bounds(b, a, counts.T)),
    ]
    said = np.zeros(counts.shape, np.bool_)
    for one in sorted(found, key=lambda f: (-round(float(chances[f.mask].sum()), 2), len(f.rule))):
        if float(chances[one.mask & ~said].sum()) >= _LEAST_IMPLIED:
            said |= one.mask
            chance = float(chances[one.mask].sum())
            yield Candidate((one.rule,), frozenset((a.name, b.name)), chance, weak=True, tuned=one.tuned)


@dataclass(frozen=True, eq=False)
class _Forbidden:
    """An implication, and the pairs of values that it forbids, bool[left, right]."""

    mask: Mask
    rule: str
    tuned: bool = False


def _of_values(a: _Coded, b: _Coded, counts: NDArray[np.int64]) -> Iterator[_Forbidden]:
    """Values with which another column has one value: those that have the same together."""
    rows, best = counts.sum(axis=1), counts.argmax(axis=1)
    sure = (rows >= FEWEST) & (counts.max(axis=1, initial=0) >= _SURE * rows)
    for value in np.unique(best[sure]):
        codes = [int(v) for v in np.flatnonzero(sure & (best == value))]
        wider = _run(a, codes, sure, counts, int(value))
        condition, then = a.says(wider or codes, run=bool(wider)), b.says([int(value)])
        if condition and then and len(codes) < a.values:
            mask = np.zeros(counts.shape, np.bool_)
            mask[wider or codes] = True
            mask[:, value] = False
            yield _Forbidden(mask, f"{condition} implies {then}", tuned=bool(wider))


def _run(a: _Coded, codes: list[int], sure: Mask, counts: NDArray[np.int64], value: int) -> list[int]:
    """All values from the least of some on, or up to the largest, if rare ones between don't object."""
    order = a.ordered
    if order is None or len(codes) < 2:
        return []
    places = sorted(order.index(code) for code in codes)
    for run in (order[places[0] :], order[: places[-1] + 1]):
        kept, rows = counts[run, value].sum(), counts[run].sum()
        if len(run) < a.values and kept >= _SURE * rows and all(c in codes or not sure[c] for c in run):
            return run
    return []


def _of_bounds(a: _Coded, b: _Coded, counts: NDArray[np.int64]) -> Iterator[_Forbidden]:
    """Values with which a whole number begins, or ends, at an edge.

    A tail thins out before it ends; an edge has rows at its first value, and none before it.
    """
    order = b.ordered
    if order is None or b.values < 4:
        return
    # Of a column of numbers only the ends are groups; what lies between rises with the other column.
    codes = range(a.values) if a.ordered is None else (a.ordered[0], a.ordered[-1])
    for code in codes:
        group, rest = counts[code][order], (counts.sum(axis=0) - counts[code])[order]
        condition = a.says([code])
        if group.sum() < FEWEST or not rest.sum() or condition is None:
            continue
        for sign, step in ((">=", 1), ("<=", -1)):
            before = np.cumsum(group[::step])
            edge = int(np.searchsorted(before, (1 - _SURE) * group.sum(), side="right"))
            at_edge = group[::step][edge] / group.sum()
            beyond = rest[::step][:edge].sum() / rest.sum()
            if at_edge >= _EDGE and beyond >= 10 * _EDGE:
                mask = np.zeros(counts.shape, np.bool_)
                mask[code, np.array(order)[::step][:edge]] = True
                bound = b.literals[order[::step][edge]]
                yield _Forbidden(mask, f"{condition} implies {plain(b.name)} {sign} {bound}", tuned=True)
