"""Doubt: evidence that a release's own answers contradict counts for less.

How far earlier periods or a public table are from the rows of now is learnt from single columns, all
together. One column may have changed more than the others, and a pair where its columns have not. Where a
release has measured the same columns itself, its answer y and the evidence e, of m cells and variances v
and s, should lie apart by |y - e|^2 = m (v + s). Where they lie farther, s is raised to |y - e|^2/m - v,
whereby their average is James and Stein's: closer to the truth than y alone, on average, whatever e is.

Invariant: public arithmetic on noisy answers; no evidence comes to count for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from dpsynth.domain.measurement import Observation
from dpsynth.model.factor import sum_to


def discounted(evidence: Sequence[Observation], answers: Sequence[Observation]) -> tuple[Observation, ...]:
    """Evidence, as imprecise as the answers show it to be.

    Args:
        evidence: marginals over the answers' domain.
        answers: of the release itself; one tells of all marginals of its columns.
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
