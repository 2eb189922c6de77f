"""The reservation of a release in the ledger, made from its config and plan.

Invariant: a reservation is public, and at least the cost of the release.

The guarantee that a plan promises, before anything was read.

Invariant: what is charged keeps to the plan, so the guarantee of the release is at most this one.
"""

from __future__ import annotations

from fractions import Fraction

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.cost import planned
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.measures import PURE, measure_named
from dpsynth.config import Spec
from dpsynth.config.compiled import CompiledSpec
from dpsynth.config.files.place import resolved
from dpsynth.ledger.balance import Reservation, Table
from dpsynth.plan.occasion import Occasion
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


def table_of(spec: Spec) -> Table:
    """The private table, as the ledger knows it: links in its path are followed."""
    path, section = spec.source.path, spec.ledger
    return Table(section.dataset, "" if path is None else resolved(path), spec.release, section.other_people)


def reservation_of(compiled: CompiledSpec, plan: Plan, occasion: Occasion, release_id: str) -> Reservation:
    """The reservation of a release's whole budget."""
    spec, table = compiled.spec, table_of(compiled.spec)
    amount = Amount(plan.whole.epsilon, plan.whole_delta)
    return Reservation(
        release_id=release_id,
        dataset=table.dataset,
        unit=plan.neighbours.unit,
        neighbours=plan.neighbours.relation,
        cap=Amount(Fraction(spec.ledger.cap.epsilon), Fraction(spec.ledger.cap.delta)),
        filter=None if spec.ledger.filter == "auto" else measure_named(spec.ledger.filter),
        # Only (epsilon, delta) is amplified by a sample: a new account adds these up.
        suits=plan.measure if plan.sampling is None else PURE,
        cost=planned(plan.measure, plan.noise, plan.whole.budget, amount, plan.selection_delta),
        release=spec.release,
        spec=compiled.whole_fingerprint,
        occasion=occasion.label,
        part=occasion.part,
        parallel=spec.period is not None and spec.period.composition == "parallel",
        source=table.source,
        other_people=table.other_people,
        cap_declared="cap" in spec.ledger.model_fields_set,
        audiences=tuple((t.audience, t.epsilon) for t in plan.tiers if t.audience),
    )
