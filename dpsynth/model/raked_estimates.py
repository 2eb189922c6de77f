"""Estimates of marginals by a model, raked to better counts of some pairs of columns.

A triple's counts by a model follow what the model holds. If pairs within the triple were measured beside it,
its counts are fitted to these pairs too, by iterative proportional fitting. The result is the distribution
nearest to the model's that has these pairs: what is known of a triple that was not measured itself.

Invariant: post-processing of a model and of answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations

import numpy as np

from dpsynth.columns.domain import Clique
from dpsynth.model.factor import Array
from dpsynth.model.markov_random_field import MarkovRandomField

_ROUNDS = 8
_PAIR = 2


@dataclass(frozen=True, eq=False)
class RakedEstimates:
    """A model, and counts of pairs that are better than the model's.

    Attributes:
        model: the model.
        pairs: float64 counts of some pairs, columns in the order of the model's domain.
    """

    model: MarkovRandomField
    pairs: Mapping[Clique, Array]

    def marginal(self, clique: Clique) -> Array:
        """Estimated counts, axes in the clique's order."""
        return self.marginals([clique])[clique]

    def marginals(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """Estimated counts by clique, axes in its order."""
        return {c: self._raked(c, np.maximum(m, 0.0)) for c, m in self.model.marginals(cliques).items()}

    def fingerprint(self) -> str:
        """SHA-256 of the model and of the pairs' counts, bit by bit."""
        digest = sha256(self.model.fingerprint().encode())
        for clique, counts in self.pairs.items():
            digest.update(repr(clique).encode())
            digest.update(np.ascontiguousarray(counts).tobytes())
        return digest.hexdigest()

    def _raked(self, clique: Clique, counts: Array) -> Array:
        within = [pair for pair in combinations(clique, _PAIR) if pair in self.pairs]
        if not within or len(clique) < _PAIR:
            return counts
        total = float(counts.sum())
        wanted = {}
        for pair in combinations(clique, _PAIR):
            gone = tuple(i for i, c in enumerate(clique) if c not in pair)
            target = self.pairs[pair] if pair in self.pairs else counts.sum(axis=gone)
            scaled = target * (total / max(float(target.sum()), 1e-300))
            wanted[gone] = np.expand_dims(scaled, gone) if gone else scaled
        for _ in range(_ROUNDS if len(wanted) > 1 else 1):
            for gone, target in wanted.items():
                sums = counts.sum(axis=gone, keepdims=True)
                counts = counts * (target / np.where(sums > 0, sums, 1.0))
        return counts
