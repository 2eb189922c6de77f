"""Generalisation hierarchies: coarser and coarser partitions of a column's cells.

Level 0 are the cells themselves, the last level is one group of everything. Missing cells stay by themselves
until then.

Invariant: each level is a coarsening of the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.calendar import CalendarCodec, unit_label, unit_number
from dpsynth.columns.codec import Intervals
from dpsynth.columns.column import Column

EVERYTHING = "*"
"""Label of the group of everything."""
HALVINGS = 3
"""Levels of an ordered column without a declared hierarchy, between its cells and everything."""
_SHOWN = 4

Names = str | None
Tree = tuple[Names, tuple["Tree | str", ...]]
"""A group: its name, if it has one, and its members, groups or values."""


@dataclass(frozen=True, eq=False)
class Level:
    """One partition of a column's cells.

    Attributes:
        groups: int64[cells], the group of each cell.
        labels: one name a group.
    """

    groups: NDArray[np.int64]
    labels: tuple[str, ...]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.bincount(self.groups, minlength=len(self.labels))


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The levels of a column, from its cells to one group of everything."""

    column: str
    levels: tuple[Level, ...]


def _hierarchy(column: Column, keys: Sequence[Sequence[object]], label: Callable[..., str]) -> Hierarchy:
    """A hierarchy by a key for each value's cell, one sequence of keys a level.

    Args:
        column: the column.
        keys: for each level between the cells and everything, one key a cell of a value; cells of one key
            are a group.
        label: the name of a group, of the level's number from 0 and the codes of its cells.
    """
    values = len(column.codec.labels)
    levels = [Level(np.arange(column.size), column.labels)]
    for number, own in enumerate(keys):
        numbers: dict[object, int] = {}
        groups = [numbers.setdefault(key, len(numbers)) for key in own]
        members = [[code for code in range(values) if groups[code] == group] for group in range(len(numbers))]
        labels = [label(number, codes) for codes in members]
        gone = range(len(labels), len(labels) + column.size - values)
        every = np.array([*groups, *gone], np.int64)
        levels.append(Level(every, _distinct((*labels, *column.labels[values:]))))
    levels.append(Level(np.zeros(column.size, np.int64), (EVERYTHING,)))
    return Hierarchy(column.name, tuple(levels))


def _distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels, with a number behind each one that stands before."""
    found: list[str] = []
    for label in labels:
        taken, number = label, 2
        while taken in found:
            taken, number = f"{label} ({number})", number + 1
        found.append(taken)
    return tuple(found)


def by_default(column: Column) -> Hierarchy:
    """The hierarchy of a column for which none is declared.

    Ordered cells are put together in eight, four and two groups of about as many cells, then all; cells
    without order all at once.
    """
    values = len(column.codec.labels)
    if not column.codec.ordered:
        return _hierarchy(column, (), _listed(column))
    keys = [
        [code * parts // values for code in range(values)]
        for parts in (2**power for power in range(HALVINGS, 0, -1))
    ]
    return _hierarchy(column, keys, _from_to(column))


def by_width(column: Column, widths: Sequence[float]) -> Hierarchy:
    """Intervals of numbers, each level's as wide as it says, from the lowest value up.

    A cell belongs to the interval that holds its middle.

    Args:
        column: a column of numbers.
        widths: rising, each a multiple of the one before.
    """
    values = column.codec.cell_values
    assert isinstance(values, Intervals)
    lowest = values.low.min()
    # Whole numbers of a cell are its own; a cell that ends where the next begins has its middle before that.
    middles = (values.low + values.high) / 2 - lowest
    keys = [np.floor(middles / width + 1e-9).tolist() for width in widths]
    return _hierarchy(column, keys, _from_to(column))


def by_unit(column: Column, units: Sequence[str]) -> Hierarchy:
    """Units of the calendar, coarser and coarser; a cell belongs to the unit in which it begins."""
    codec = column.codec
    assert isinstance(codec, CalendarCodec) and isinstance(codec.cell_values, Intervals)
    moments = codec.cell_values.low.astype(np.int64).astype("M8[us]")
    keys = [unit_number(moments, unit).tolist() for unit in units]

    def label(level: int, codes: Sequence[int]) -> str:
        return unit_label(moments[codes[0]], units[level], codec.form.kind)

    return _hierarchy(column, keys, label)


def by_prefix(column: Column, lengths: Sequence[int]) -> Hierarchy:
    """Beginnings of texts, shorter and shorter."""
    texts = column.codec.labels
    other = column.codec.catch_all
    keys = [
        [(text[:length], code if code in other else -1) for code, text in enumerate(texts)]
        for length in lengths
    ]

    def label(level: int, codes: Sequence[int]) -> str:
        first = texts[codes[0]]
        return first if len(codes) == 1 else first[: lengths[level]] + EVERYTHING

    return _hierarchy(column, keys, label)


def by_groups(column: Column, tree: Sequence[Tree | str]) -> Hierarchy:
    """Groups of values, then groups of groups. A value that no group has stays by itself.

    A group appears at the level of its height: 1 if it holds values alone, otherwise one above its highest
    member.

    Args:
        column: the column.
        tree: the largest groups, and values.
    """
    paths = dict(_paths(tree))
    heights: dict[tuple[int, ...], int] = {}
    for path in paths.values():
        place = tuple(number for number, _ in path)
        for length in range(1, len(place)):
            heights[place[:length]] = max(heights.get(place[:length], 0), len(place) - length)
    texts = column.codec.labels
    keys: list[list[object]] = []
    names: list[dict[object, str | None]] = []
    for height in range(1, depth_of(tree) + 1):
        keys.append([])
        names.append({})
        for text in texts:
            path = paths.get(text, ())
            places = (path[:length] for length in range(1, len(path)))
            # The largest group of the value that is no higher than the level.
            group = next((g for g in places if heights[tuple(n for n, _ in g)] <= height), None)
            key: object = text if group is None else tuple(number for number, _ in group)
            keys[-1].append(key)
            names[-1][key] = None if group is None else group[-1][1]
    plain = _listed(column)

    def label(level: int, codes: Sequence[int]) -> str:
        return names[level][keys[level][codes[0]]] or plain(level, codes)

    return _hierarchy(column, keys, label)


Path = tuple[tuple[int, str | None], ...]


def _paths(members: Sequence[Tree | str], before: Path = ()) -> list[tuple[str, Path]]:
    """The way from the root to each value: number and name of each group, then of the value."""
    found: list[tuple[str, Path]] = []
    for number, member in enumerate(members):
        if isinstance(member, str):
            found.append((member, (*before, (number, member))))
        else:
            found += _paths(member[1], (*before, (number, member[0])))
    return found


def values_of(members: Sequence[Tree | str]) -> list[str]:
    """All values of a tree of groups."""
    return [value for value, _ in _paths(members)]


def depth_of(members: Sequence[Tree | str]) -> int:
    """Number of levels of groups of a tree: 1 for groups of values."""
    return max((len(path) - 1 for _, path in _paths(members)), default=0)


def _listed(column: Column) -> Callable[[int, Sequence[int]], str]:
    def label(level: int, codes: Sequence[int]) -> str:
        del level
        own = [column.labels[code] for code in codes]
        if len(own) > _SHOWN:
            return f"{own[0]}, …, {own[-1]} ({len(own)} values)"
        return ", ".join(own)

    return label


def _from_to(column: Column) -> Callable[[int, Sequence[int]], str]:
    values = column.codec.cell_values
    kind = column.codec.kind
    numbers = values if isinstance(values, Intervals) and kind.word == "number" else None

    def label(level: int, codes: Sequence[int]) -> str:
        del level
        first, last = column.labels[codes[0]], column.labels[codes[-1]]
        if len(codes) == 1:
            return first
        if numbers is None:
            return f"{first} … {last}"
        low, high = numbers.low[list(codes)].min(), numbers.high[list(codes)].max()
        return f"{low:.{kind.decimals}f} to {high:.{kind.decimals}f}"

    return label
