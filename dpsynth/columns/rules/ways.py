"""The enforcement of each rule, in words for the plan and for the recipients of a release."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.columns.layout import Layout
from dpsynth.columns.rules.grids import grids_of
from dpsynth.columns.rules.rule import Rules


@dataclass(frozen=True)
class Enforcement:
    """The enforcement of a rule: the written rule, and the way in which it is kept."""

    rule: str
    kept: str


def enforcement_of(rules: Rules, layout: Layout) -> tuple[Enforcement, ...]:
    """The enforcement of each rule, in the order of the config."""
    kept: dict[int, str] = {}
    for total in rules.sums.values():
        kept[total.number] = (
            f"by construction: {total.target} is computed, and its parts are solved for its own counts"
        )
    for tie in rules.ties:
        one = "a value of its own" if tie.both else "one value"
        kept[tie.number] = f"by construction: each value of {tie.left} is given {one} of {tie.right}"
    grids = {grid.number: grid for grid in grids_of(rules, layout)}
    for condition in rules.conditions:
        grid = grids.get(condition.number)
        if grid is None or not grid.zeros.any():
            kept[condition.number] = "by repair of the rows that violate it"
            continue
        zeros = int(grid.zeros.sum())
        cells = f"{zeros:,} of {grid.zeros.size:,} cells of {', '.join(grid.columns)}"
        kept[condition.number] = f"by zeros of the model: {cells}; what they leave, by repair"
    return tuple(Enforcement(text, kept[number]) for number, text in enumerate(rules.written))
