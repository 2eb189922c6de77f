"""A private test of a public table's relations between columns, before anything is chosen.

Agreement in single columns is no evidence of agreement in relations: a table whose columns were sorted one
by one has the right columns and only wrong relations. So the noisy distances of the public table's most
informative pairs are asked for twice: from the model with the public table, and from the model without it.
The public table is used unless the first sum exceeds the second by a standard deviation. Two sums of
``ASKED`` distances differ by so much that a small part of the structure budget is enough. Only for a small
table it is not; then the public table is used.

Invariant: without a public table nothing is asked, and the budget for measuring is not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, sqrt

from dpsynth.columns.measurement import Observation, mean_absolute_error
from dpsynth.model import Fit
from dpsynth.plan.questions import Door
from dpsynth.strategy.evidence.evidence import MOST_BEFORE, within
from dpsynth.strategy.strategy import Problem

ASKED = 8
"""Number of pairs whose distances are asked for."""
PART = Fraction(1, 10)
"""The part of the structure budget that the test costs."""
_MEASURED_A_COLUMN = Fraction(5, 2)
"""Approximate number of pairs that a strategy measures for each column."""


def with_public_relations(
    door: Door, problem: Problem, start: Fit, public: Sequence[Observation]
) -> tuple[Problem, tuple[Observation, ...]]:
    """The problem with the public table's evidence if it passes the test, and the evidence that is used.

    Evidence less precise than the release's own measurements would be is left out. A strategy that
    chooses nothing has no budget for the test: then all evidence is used, at its discount.

    Args:
        door: the curator's answers.
        problem: the problem without the public table; its ``start`` holds everything else.
        start: starting point of the fit.
        public: the public table's evidence, the most informative first.
    """
    if not public:
        return problem, ()
    usual = (door.remaining - problem.structure) / (_MEASURED_A_COLUMN * len(problem.domain.columns))
    error = door.cell_error(usual) if problem.structure and usual > 0 else inf
    precise = [m for m in public if mean_absolute_error(m.noise, m.scale) <= error]
    used = within(problem.domain, problem.given, precise, min(problem.max_cells // 2, MOST_BEFORE))
    if not used:
        return problem, ()
    believing = replace(problem, earlier=(*problem.earlier, *used))
    believing = replace(believing, start=believing.refit((), start))
    price = problem.structure * PART
    if not price:
        return believing, used
    pairs = [m.clique for m in used[:ASKED]]
    (with_it, spread), (without, _) = (
        door.errors(pairs, p.start.model, price / 2) for p in (believing, problem)
    )
    left = problem.structure - price
    if int(with_it.sum()) - int(without.sum()) < sqrt(2 * len(pairs)) * spread:
        return replace(believing, structure=left), used
    return replace(problem, structure=left), ()
