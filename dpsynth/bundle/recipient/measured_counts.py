"""The measured counts of a bundle, reconciled: what can be said without the model.

Invariant: estimates are linear in the bundle's own answers and in public counts, so they have no bias and an
exact variance.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth.columns.column import domain_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import Observation
from dpsynth.columns.public_marginals import PublicMarginals
from dpsynth.model import Expansion, LeastSquares, public_counts
from dpsynth.strategy.evidence.evidence import Answered, Evidence


def measured_counts(
    answers: Answered, layout: Layout, public: PublicMarginals, earlier: Sequence[Answered] = ()
) -> LeastSquares:
    """The estimates of every marginal within a measured one, over values rather than groups.

    Args:
        answers: the bundle's answers.
        layout: its columns.
        public: its public marginals. Where these are shares, the number of rows is measured.
        earlier: joint answers of earlier tiers, each over groups of its own.
    """
    domain = domain_of(layout.columns)
    singles: Sequence[Observation] = answers.singles
    joint: Sequence[Observation] = ()
    if public.rows is not None:
        one_way, joint = public_counts(public, public.rows)
        singles = (*singles, *one_way)
    expansion = Expansion(domain, answers.compression, tuple(singles))
    told = Evidence(domain, tuple(earlier)).direct()
    return LeastSquares(domain, (*expansion.direct(answers.answers), *joint, *told))
