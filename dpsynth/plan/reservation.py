"""The reservation of a release in the ledger, made from its config and plan.

Invariant: a reservation is public, and at least the cost of the release.
"""

from __future__ import annotations

from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.cost import planned
from dpsynth.accounting.measures import measure_of_accountant
from dpsynth.config.compiled import CompiledSpec
from dpsynth.ledger.balance import Reservation
from dpsynth.plan.occasion import Occasion
from dpsynth.plan.plan import Plan


def reservation_of(compiled: CompiledSpec, plan: Plan, occasion: Occasion, release_id: str) -> Reservation:
    """The reservation of a release's whole budget."""
    spec = compiled.spec
    amount = Amount(plan.epsilon, plan.spent_delta)
    return Reservation(
        release_id=release_id,
        dataset=spec.ledger.dataset,
        unit=plan.neighbours.unit,
        neighbours=plan.neighbours.relation,
        cap=Amount(Fraction(spec.ledger.cap.epsilon), Fraction(spec.ledger.cap.delta)),
        filter=None if spec.ledger.filter == "auto" else measure_of_accountant(spec.ledger.filter),
        suits=plan.measure,
        cost=planned(plan.measure, plan.noise, plan.budget, amount, plan.selection_delta),
        release=spec.release,
        spec=compiled.whole_fingerprint,
        occasion=occasion.label,
        part=occasion.part,
        parallel=spec.period is not None and spec.period.composition == "parallel",
    )
