"""The table of ``dpsynth plan --accountants``: each accountant's noise, and what it says of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 100
"""Smallest width of the table, in columns of text."""


def print_accountants(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the accountants side by side.

    Args:
        rows: JSON values of ``plan.side_by_side``.
        console: where to.
    """
    from rich.table import Table
    from rich.text import Text

    console.width = max(console.width, _WIDTH)
    least = min((row["scale"] for row in rows if row["scale"] is not None), default=None)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("accountant", "noise of marginals", "ε of the planned answers", ""):
        table.add_column(name, justify="right" if "of" in name else "left", no_wrap=True)
    for row in rows:
        scale, epsilon = row["scale"], row["epsilon"]
        said = [
            *(["in force"] if row["taken"] else []),
            *(["least noise"] if scale is not None and scale == least else []),
        ]
        table.add_row(
            row["accountant"],
            "-" if scale is None else f"{scale:.4g}",
            "-" if epsilon is None else f"{epsilon:.5g}",
            ", ".join(said),
        )
    console.print("\nThe accountants for this plan, at the same ε and δ:")
    console.print(table)
    for row in rows:
        why = row["why_not"] or row["holds"]
        console.print(Text(f"  {row['accountant']}: {why}"))
