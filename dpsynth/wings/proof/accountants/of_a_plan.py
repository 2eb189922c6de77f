"""The accountants side by side, for the plan of a release: ``dpsynth plan --accountants``.

Invariant: it follows from the config alone. What an accountant says of the planned answers is rounded up, and
says under which condition it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import spent
from dpsynth.accounting.measures import MEASURES
from dpsynth.config import Spec, compiled
from dpsynth.errors import ConfigError
from dpsynth.ledger.views import Composed, Statement
from dpsynth.pipeline.forecast import plans_of
from dpsynth.plan.plan import Plan
from dpsynth.wings.proof.accountants.comparison import statements

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 100
"""Smallest width of the table, in columns of text."""


@dataclass(frozen=True)
class AccountantRow:
    """An accountant beside the others.

    Attributes:
        accountant: its name.
        scale: the noise scale of the marginals by a plan under it, at the same epsilon and delta; None where
            there is no such plan, and of an accountant by which no release counts.
        why_not: the reason why there is no plan; empty where there is one, or no release counts by it.
        epsilon: what it says of the answers of the plan in force, at the same delta; None where it has none.
        holds: the condition of that, or the reason.
        taken: True for the accountant of the plan in force.
    """

    accountant: str
    scale: float | None
    why_not: str
    epsilon: float | None
    holds: str
    taken: bool


@dataclass(frozen=True)
class SideBySide:
    """The rows of a plan, to be printed or written as JSON."""

    accountants: tuple[AccountantRow, ...]

    @property
    def rows(self) -> list[dict[str, object]]:
        return [dict(vars(row)) for row in self.accountants]

    def print_to(self, console: Console) -> None:
        """Print a table of them, and a sentence on each."""
        from rich.table import Table
        from rich.text import Text

        console.width = max(console.width, _WIDTH)
        least = min((row.scale for row in self.accountants if row.scale is not None), default=None)
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("accountant", "noise of marginals", "ε of the planned answers", ""):
            table.add_column(name, justify="right" if "of" in name else "left", no_wrap=True)
        for row in self.accountants:
            remarks = [
                *(["in force"] if row.taken else []),
                *(["least noise"] if row.scale is not None and row.scale == least else []),
            ]
            table.add_row(
                row.accountant,
                "-" if row.scale is None else f"{row.scale:.4g}",
                "-" if row.epsilon is None else f"{row.epsilon:.5g}",
                ", ".join(remarks),
            )
        console.print("\nThe accountants for this plan, at the same ε and δ:")
        console.print(table)
        for row in self.accountants:
            console.print(Text(f"  {row.accountant}: {row.why_not or row.holds}"))


def side_by_side(spec: Spec) -> SideBySide:
    """The accountants for the plan of a config; for its first audience, where it has several.

    Raises:
        ConfigError: the plan can't be made.
    """
    plan, counted = plans_of(compiled(spec))[0], {measure.accountant for measure in MEASURES}
    rows = []
    for statement in planned_answers(plan):
        name = statement.accountant
        scale, why_not = _scale(spec, name) if name in counted else (None, "")
        taken = plan.measure.accountant == name
        rows.append(AccountantRow(name, scale, why_not, statement.epsilon, statement.why, taken))
    return SideBySide(tuple(rows))


def planned_answers(plan: Plan) -> tuple[Statement, ...]:
    """Each accountant's statement on the planned answers, at the plan's delta."""
    delta = Fraction(plan.tier.spent_delta)
    events = tuple(e for step in plan.steps for e, times in step.events for _ in range(times))
    amount = Amount(plan.tier.epsilon, delta)
    return statements([Composed(spent(events, amount), events)], delta)


def _scale(spec: Spec, accountant: str) -> tuple[float | None, str]:
    """The noise scale of a plan of the same config under another accountant, or why there is none."""
    privacy = spec.privacy.model_copy(update={"accountant": accountant})
    try:
        plan = plans_of(compiled(spec.model_copy(update={"privacy": privacy})))[0]
    except ConfigError as error:
        return None, str(error)
    return plan.last_measured.scale, ""
