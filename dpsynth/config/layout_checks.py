"""Checks that the columns of the synthetic table fit together: formulas, maps and names.

Invariant: a layout that passes can be decoded for every draw.
"""

from __future__ import annotations

from dpsynth.columns.column import Column
from dpsynth.columns.derived import Derived
from dpsynth.columns.expression import Reference
from dpsynth.columns.layout import FormulaRefused, Layout, companion
from dpsynth.config.section import nearest, refused


def check_layout(layout: Layout) -> None:
    """Refuse formulas that can't be computed, maps with gaps, and a name that is used twice.

    Paths in errors start at the top of the configuration.
    """
    parts = {part.name: part for part in layout.parts}
    try:
        _ = layout.kinds
    except FormulaRefused as error:
        guess = "" if error.unknown is None else nearest(error.unknown, parts)
        raise refused(f"{error}{guess}", "columns", error.column, "formula") from None
    for column in layout.columns:
        if column.part_of and column.name in parts:
            words = f"is the name of a part of '{column.part_of}' that is measured; rename it"
            raise refused(words, "columns", column.name)
        if column.distinct and not column.part_of and companion(column.name) in parts:
            words = f"is the name of the column for the missing markers of '{column.name}'; rename it"
            raise refused(words, "columns", companion(column.name))
    for part in parts.values():
        if isinstance(part, Derived) and part.map and isinstance(part.formula, Reference):
            looked_up = parts[part.formula.column]
            if isinstance(looked_up, Column):
                _map_suits(part, looked_up)


def _map_suits(derived: Derived, column: Column) -> None:
    """Refuse a map that leaves out a value of a closed list, or lists one that isn't there."""
    if not column.codec.closed:
        return
    path, values = ("columns", derived.name, "map"), column.codec.labels
    keys = [key for key, _ in derived.map]
    unknown = next((key for key in keys if key not in values), None)
    if unknown is not None:
        raise refused(
            f"lists '{unknown}', which is no value of '{column.name}'{nearest(unknown, values)}", *path
        )
    left_out = next((value for value in values if value not in keys), None)
    if left_out is not None and derived.other is None:
        raise refused(f"leaves out '{left_out}', a value of '{column.name}'; add it, or give other", *path)
