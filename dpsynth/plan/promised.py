"""The guarantee that a plan promises, before anything was read.

Invariant: what is charged keeps to the plan, so the guarantee of the release is at most this one.
"""

from __future__ import annotations

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.plan.plan import Plan


def promised(plan: Plan) -> Guarantee:
    """The guarantee of a release that spends all that its plan allows."""
    measure, budget = plan.measure, plan.whole.budget
    asked = plan.spent_delta if plan.sampling is None else plan.spent_delta / plan.sampling.rate
    epsilon = measure.epsilon(budget, asked - plan.selection_delta if measure.needs_delta else None)
    found = Guarantee(
        epsilon=float(epsilon),
        delta=float(plan.spent_delta),
        rho=float(measure.rho(budget)) if measure.needs_delta else None,
        unit=plan.neighbours.unit,
        neighbours=plan.neighbours.relation,
        accountant=measure.accountant,
        mu=measure.mu(budget),
        approximate_delta=float(plan.selection_delta),
    )
    return found if plan.sampling is None else plan.sampling.of_whole(found, epsilon, plan.spent_delta)
