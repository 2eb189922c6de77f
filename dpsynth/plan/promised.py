"""The guarantee that a plan promises, before anything was read.

Invariant: what is charged keeps to the plan, so the guarantee of the release is at most this one.
"""

from __future__ import annotations

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.plan.plan import Plan


def promised(plan: Plan) -> Guarantee:
    """The guarantee of a release that spends all that its plan allows."""
    measure, left = plan.measure, plan.spent_delta - plan.selection_delta
    budget = plan.whole.budget
    return Guarantee(
        epsilon=float(measure.epsilon(budget, left if measure.needs_delta else None)),
        delta=float(plan.spent_delta),
        rho=float(measure.rho(budget)) if measure.needs_delta else None,
        unit=plan.neighbours.unit,
        neighbours=plan.neighbours.relation,
        accountant=measure.accountant,
        mu=measure.mu(budget),
        approximate_delta=float(plan.selection_delta),
    )
