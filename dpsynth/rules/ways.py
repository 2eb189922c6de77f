"""How each rule is kept, in words for the plan and for the recipients of a release."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.domain.layout import Layout
from dpsynth.rules.grids import grids_of
from dpsynth.rules.rule import Rules


@dataclass(frozen=True)
class Way:
    """A rule as it was written, and what sees to it that every row obeys it."""

    rule: str
    kept: str


def ways_of(rules: Rules, layout: Layout) -> tuple[Way, ...]:
    """How each rule is kept, in the order in which they were written."""
    kept: dict[int, str] = {}
    for total in rules.sums.values():
        kept[total.number] = f"by construction: {total.target} is computed"
    for tie in rules.ties:
        one = "a value of its own" if tie.both else "one value"
        kept[tie.number] = f"by construction: each value of {tie.left} is given {one} of {tie.right}"
    grids = {grid.number: grid for grid in grids_of(rules, layout)}
    for condition in rules.conditions:
        grid = grids.get(condition.number)
        if grid is None or not grid.shut.any():
            kept[condition.number] = "by drawing again what violates it"
            continue
        shut = int(grid.shut.sum())
        cells = f"{shut:,} of {grid.shut.size:,} cells of {', '.join(grid.columns)}"
        kept[condition.number] = f"by zeros of the model: {cells}; what they leave, by drawing again"
    return tuple(Way(text, kept[number]) for number, text in enumerate(rules.written))
