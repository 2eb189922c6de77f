"""Discount: shrinkage of evidence that a release's own answers contradict.

The drift of earlier periods or of a public table is estimated from all single columns together. One column
may have changed more than another, and a pair may have changed where its columns have not. Where a release
has measured the same columns itself, its answer y and the evidence e, of m cells and variances v and s, have
an expected squared distance |y - e|^2 = m (v + s). Where the distance is larger, s is raised to |y - e|^2/m -
v. The average of y and e is then the estimator of James and Stein: closer to the truth than y alone, on
average, whatever e is.

Invariant: public arithmetic on noisy answers; the weight of no evidence increases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from dpsynth.columns.measurement import Observation
from dpsynth.model.factor import sum_to


def discounted(evidence: Sequence[Observation], answers: Sequence[Observation]) -> tuple[Observation, ...]:
    """Evidence with variances raised to its distance from the answers.

    Args:
        evidence: marginals over the answers' domain.
        answers: the release's own answers; an answer covers every marginal of its columns.
    """
    full = [m for m in answers if m.query is None and m.variance > 0]
    return tuple(_discounted(m, [a for a in full if set(m.clique) <= set(a.clique)]) for m in evidence)


def _discounted(evidence: Observation, answers: Sequence[Observation]) -> Observation:
    if not answers or evidence.variance == 0:
        return evidence
    values, precision = np.zeros(evidence.values.shape), np.zeros(evidence.values.shape)
    for answer in answers:
        weight = 1 / sum_to(answer.variances, answer.clique, evidence.clique)
        values += weight * sum_to(answer.values.astype(np.float64), answer.clique, evidence.clique)
        precision += weight
    squares = np.square(values / precision - evidence.values) - 1 / precision
    found = max(evidence.variance, float(squares.mean()))
    return replace(evidence, noise="gaussian", scale=sqrt(found))
