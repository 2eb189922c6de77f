"""The accountants side by side, for the plan of a release.

Invariant: it follows from the config alone. What an accountant says of the planned answers is rounded up, and
says under which condition it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.comparison import Composed, Statement, statements
from dpsynth.accounting.cost import spent
from dpsynth.accounting.measures import MEASURES
from dpsynth.config.grammar import Spec
from dpsynth.errors import ConfigError
from dpsynth.plan.plan import Plan


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

    def to_json(self) -> dict[str, object]:
        """The row as plain JSON values."""
        return dict(vars(self))


def side_by_side(plan: Plan, planned_by: Callable[[str], Plan]) -> tuple[AccountantRow, ...]:
    """A row for each accountant.

    Args:
        plan: the plan in force.
        planned_by: the plan of the same config under another accountant; ConfigError where it has none.
    """
    said = {statement.accountant: statement for statement in planned_answers(plan)}
    rows = []
    counted = {measure.accountant for measure in MEASURES}
    for name, statement in said.items():
        scale, why_not = _scale(name, planned_by) if name in counted else (None, "")
        rows.append(
            AccountantRow(
                name,
                scale,
                why_not,
                statement.epsilon,
                statement.why,
                plan.measure.accountant == name,
            )
        )
    return tuple(rows)


def under(spec: Spec, accountant: str) -> Spec:
    """The spec with another accountant; its checks are made where a plan is."""
    privacy = spec.privacy.model_copy(update={"accountant": accountant})
    return spec.model_copy(update={"privacy": privacy})


def planned_answers(plan: Plan) -> tuple[Statement, ...]:
    """Each accountant's statement on the planned answers, at the plan's delta."""
    delta = Fraction(plan.spent_delta)
    events = tuple(e for step in plan.steps for e, times in step.events for _ in range(times))
    amount = Amount(plan.epsilon, delta)
    return statements([Composed(spent(events, amount), events)], delta)


def _scale(name: str, planned_by: Callable[[str], Plan]) -> tuple[float | None, str]:
    try:
        return planned_by(name).last_measured.scale, ""
    except ConfigError as error:
        return None, str(error)
