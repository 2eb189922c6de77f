"""The budget step by step, in the measures of the field: ``dpsynth plan --detail`` adds it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpsynth.cli.plan_errors import Facts

_WIDTH = 100
"""Smallest width of the table of steps, in columns of text."""


def print_detail(facts: Facts, console: Console) -> None:
    """Print the budget by step, in the measure of the plan."""
    # Without a terminal rich takes 80 columns, and would cut the cells of the table.
    console.width = max(console.width, _WIDTH)
    rounds = facts["rounds"]
    console.print(
        f"\nBudget: {facts['budget']:.6g} of {facts['accounting']}; structure: {facts['structure']}"
        f"{f' in {rounds} rounds' if rounds > 1 else ''}; the ledger's filter: {facts['ledger']['filter']}."
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("step", "share", "answers", "mechanism", "noise scale", "expected error"):
        table.add_column(name, justify="left" if name in {"step", "mechanism"} else "right", no_wrap=True)
    for step in facts["steps"]:
        error = step["expected_error"]
        table.add_row(
            step["step"],
            f"{step['share']:.0%}",
            str(step["questions"]),
            step["mechanism"],
            _range([step["scale"], *step["scale_of"].values()]),
            "" if error is None else f"±{error:.3g}",
        )
    console.print(table)
    console.print(
        "Scales and errors are in rows, of a cell or a distance on average; of sums, times a row's limit. "
        "Sensitivities:"
    )
    for line in dict.fromkeys(f"  {step['step']}: {step['sensitivity']}." for step in facts["steps"]):
        console.print(Text(line))
    console.print(
        f"Model: at most {facts['model_cells_at_most']:,} cells, {facts['model_megabytes_at_most']:g} MB.\n"
    )


def _range(scales: Sequence[float]) -> str:
    low, high = min(scales), max(scales)
    return f"{low:.4g}" if low == high else f"{low:.3g} to {high:.3g}"
