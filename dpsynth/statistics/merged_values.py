"""Merged values in words: the groups of a column, and their labels.

Invariant: groups are public. They follow from published answers by a rule in the config.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth.columns.column import Column
from dpsynth.columns.compression import Compression

_NAMED = 3
"""Number of values that a group's label names, where the group has at least two more."""


def group_labels(column: Column, compression: Compression) -> tuple[str, ...]:
    """A label for each group of a column: all of its values, or the first ones of many.

    Two groups may have equal labels; ``Compression.groups`` has the exact members.
    """
    return tuple(
        " | ".join(values)
        if len(values) <= _NAMED + 1
        else f"{' | '.join(values[:_NAMED])} | … ({len(values)} values)"
        for values in _members(column, compression)
    )


def _members(column: Column, compression: Compression) -> list[list[str]]:
    groups = compression.groups[column.name].tolist()
    found: list[list[str]] = [[] for _ in range(max(groups) + 1)]
    for label, group in zip(column.labels, groups, strict=True):
        found[group].append(label)
    return found


@dataclass(frozen=True)
class Merged:
    """A column with merged values.

    Attributes:
        column: its name.
        values: number of values.
        groups: number of groups, single values included.
        held: the labels of each group of more than one value.
    """

    column: str
    values: int
    groups: int
    held: tuple[tuple[str, ...], ...]


def merged_columns(columns: Sequence[Column], compression: Compression) -> tuple[Merged, ...]:
    """The columns that have merged values, in table order."""
    found = []
    for column in columns:
        if column.name in compression.groups:
            members = _members(column, compression)
            held = tuple(tuple(labels) for labels in members if len(labels) > 1)
            found.append(Merged(column.name, column.size, len(members), held))
    return tuple(found)
