"""Whether a public table's relations are to be believed: a private question before anything is chosen.

Single columns that agree say nothing of relations: a table whose columns were each sorted has the right
columns and only wrong relations. So the distances of the pairs of which it tells most are asked for twice,
from the model that believes it and from the one that doesn't, with noise. It is believed unless the
first come to more than the others by a standard deviation. Two sums of ``ASKED`` distances differ by so much
that a small part of what choosing may cost is enough, but where the table is small: then whoever gave the
public table is believed.

Invariant: nothing is asked where there is nothing to believe, and nothing is spent that the strategy was to
measure with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, sqrt

from dpsynth.domain.measurement import Observation, mean_absolute_error
from dpsynth.evidence.evidence import MOST_BEFORE, within
from dpsynth.model import Fit
from dpsynth.plan.questions import Door
from dpsynth.structure.strategy import Problem

ASKED = 8
"""Pairs whose distances are asked for."""
PART = Fraction(1, 10)
"""Of what choosing may cost."""
_MEASURED_A_COLUMN = Fraction(5, 2)
"""Pairs that a strategy measures for each column, roughly."""


def trusted(
    door: Door, problem: Problem, start: Fit, public: Sequence[Observation]
) -> tuple[Problem, tuple[Observation, ...]]:
    """The problem with what a public table tells, as far as it is believed, and that.

    What the release would measure as precisely itself is left to it. A strategy that chooses nothing has
    nothing to ask with: then all is believed, at the discount that it has.

    Args:
        door: the curator's answers.
        problem: without the public table; its ``start`` holds all else that is known.
        start: where a fit may start.
        public: what it tells, what tells most first.
    """
    if not public:
        return problem, ()
    usual = (door.remaining - problem.structure) / (_MEASURED_A_COLUMN * len(problem.domain.columns))
    error = door.cell_error(usual) if problem.structure and usual > 0 else inf
    precise = [m for m in public if mean_absolute_error(m.noise, m.scale) <= error]
    room = min(problem.max_cells // 2, MOST_BEFORE)
    told = within(problem.domain, problem.given, precise, room)
    if not told:
        return problem, ()
    believing = replace(problem, earlier=(*problem.earlier, *told))
    believing = replace(believing, start=believing.refit((), start))
    price = problem.structure * PART
    if not price:
        return believing, told
    pairs = [m.clique for m in told[:ASKED]]
    (with_it, spread), (without, _) = (
        door.errors(pairs, p.start.model, price / 2) for p in (believing, problem)
    )
    left = problem.structure - price
    if int(with_it.sum()) - int(without.sum()) < sqrt(2 * len(pairs)) * spread:
        return replace(believing, structure=left), told
    return replace(problem, structure=left), ()
