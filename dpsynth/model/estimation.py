"""Estimation: the Markov random field that explains noisy marginals best.

Private-PGM (McKenna, Sheldon and Miklau 2019): over all distributions on the domain,
minimise sum over measurements of |P mu - y|^2 / (2 variance), P mu being the model's own
marginal. For Gaussian noise that is maximum likelihood. For Laplace noise it is the
least-squares surrogate with the same mean and variance, which keeps the problem smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import Measurement
from dpsynth.model.belief_propagation import marginals
from dpsynth.model.factor import Array, spread, sum_to
from dpsynth.model.junction_tree import JunctionTree, junction_tree
from dpsynth.model.markov_random_field import MarkovRandomField


@dataclass(frozen=True, eq=False)
class Target:
    """What all measurements of one clique say together.

    Attributes:
        clique: columns, in the tree's order.
        values: their precision-weighted mean, float64.
        precision: one over its variance, per cell.
        home: the clique of the tree that it is compared with.
    """

    clique: Clique
    values: Array
    precision: float
    home: int


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and how well it converged.

    Attributes:
        model: the Markov random field.
        objective: the weighted squared error reached.
        iterations: gradient steps taken.
    """

    model: MarkovRandomField
    objective: float
    iterations: int


def estimated_total(measurements: Sequence[Measurement]) -> float:
    """Number of rows: the public one if there is one, else the minimum-variance estimate.

    Each measurement's sum has variance cells x variance. At least 1, so that proportions
    are defined for an empty table too.
    """
    public = [float(m.values.sum()) for m in measurements if m.noise == "none"]
    if public:
        return max(1.0, public[0])
    sums = np.array([float(m.values.sum()) for m in measurements])
    weights = np.array([1.0 / (m.values.size * m.variance) for m in measurements])
    return max(1.0, float((sums * weights).sum() / weights.sum())) if len(sums) else 1.0


def targets(tree: JunctionTree, measurements: Sequence[Measurement]) -> tuple[Target, ...]:
    """Combine measurements of the same clique, weighted by precision; () says nothing here."""
    sums: dict[Clique, tuple[Array, float]] = {}
    for m in measurements:
        if not m.clique or m.noise == "none":
            continue
        clique = tree.domain.canonical(m.clique)
        values = sum_to(m.values.astype(np.float64), m.clique, clique)
        before, weight = sums.get(clique, (np.zeros(values.shape), 0.0))
        sums[clique] = before + values / m.variance, weight + 1.0 / m.variance
    found = []
    for clique, (weighted, precision) in sums.items():
        home = tree.home(clique)
        if home is None:
            raise ValueError(f"the tree has no clique that holds {clique}")
        found.append(Target(clique, weighted / precision, precision, home))
    return tuple(found)


@dataclass(eq=False)
class _Point:
    """Marginals on the tree's cliques, with what the targets see of them."""

    beliefs: list[Array]
    seen: list[Array]

    def towards(self, other: _Point, share: float) -> _Point:
        """The mixture (1 - share) self + share other."""
        pairs = zip(self.beliefs, other.beliefs, strict=True)
        views = zip(self.seen, other.seen, strict=True)
        return _Point(
            [(1 - share) * a + share * b for a, b in pairs], [(1 - share) * a + share * b for a, b in views]
        )


class _Problem:
    """The least-squares objective over one tree; see the module's docstring."""

    def __init__(self, tree: JunctionTree, aims: Sequence[Target], rows: float) -> None:
        self.tree = tree
        self.aims = aims
        self.rows = rows

    def point(self, theta: Sequence[Array]) -> _Point:
        """The marginals of some log-potentials."""
        beliefs, _ = marginals(self.tree, theta, self.rows)
        return _Point(list(beliefs), self.views(beliefs))

    def views(self, beliefs: Sequence[Array]) -> list[Array]:
        cliques = self.tree.cliques
        return [sum_to(beliefs[a.home], cliques[a.home], a.clique) for a in self.aims]

    def loss(self, seen: Sequence[Array]) -> float:
        pairs = zip(self.aims, seen, strict=True)
        return sum(0.5 * a.precision * float(np.square(v - a.values).sum()) for a, v in pairs)

    def curvature(self, seen: Sequence[Array], other: Sequence[Array]) -> float:
        """Half the squared weighted distance of two points, as the targets see them."""
        triples = zip(self.aims, seen, other, strict=True)
        return sum(0.5 * a.precision * float(np.square(v - w).sum()) for a, v, w in triples)

    def stepped(self, theta: Sequence[Array], seen: Sequence[Array], length: float) -> list[Array]:
        """Log-potentials after a step against the gradient at a point."""
        moved = [t.copy() for t in theta]
        for aim, view in zip(self.aims, seen, strict=True):
            push = (length * aim.precision) * (view - aim.values)
            moved[aim.home] -= spread(push, aim.clique, self.tree.cliques[aim.home])
        return moved


def _inner(left: Sequence[Array], right: Sequence[Array]) -> float:
    return sum(float(np.vdot(a, b)) for a, b in zip(left, right, strict=True))


def _minus(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    return [a - b for a, b in zip(left, right, strict=True)]


def estimate(
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    total: float | None = None,
    tolerance: float = 1e-3,
    max_iterations: int = 2000,
    start: Sequence[Array] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Fit:
    """Fit a Markov random field to noisy marginals.

    Accelerated mirror descent with the entropy as mirror map (Auslender and Teboulle 2006;
    Tseng 2008), the curvature found by backtracking, restarted from the best point whenever
    the objective rises (O'Donoghue and Candes 2015).

    Args:
        domain: the public domain.
        measurements: noisy marginals over any cliques.
        total: number of rows if known, otherwise estimated from the measurements.
        tolerance: stop when ten steps lower the objective by less than this share of it.
        max_iterations: upper bound on gradient steps.
        start: log-potentials of an earlier fit over the same cliques.
        progress: called with the number of steps taken.
    """
    tree = junction_tree(domain, [m.clique for m in measurements])
    rows = estimated_total(measurements) if total is None else total
    problem = _Problem(tree, targets(tree, measurements), rows)
    theta = list(start) if start is not None else [np.zeros(domain.shape(c)) for c in tree.cliques]
    mirror = problem.point(theta)
    best, loss = mirror, problem.loss(mirror.seen)
    weight, curve = 0.0, max(1e-300, rows * sum(a.precision for a in problem.aims) / 100)
    history, taken = [loss], 0
    while taken < max_iterations and problem.aims:
        taken += 1
        while True:
            length = (1 + sqrt(1 + 4 * curve * weight)) / (2 * curve)
            share = length / (weight + length)
            middle = best.towards(mirror, share)
            trial = problem.stepped(theta, middle.seen, length)
            moved = problem.point(trial)
            shift = _minus(trial, theta)
            # Half the symmetrised divergence: to second order the divergence, without its cancellation.
            divergence = 0.5 * _inner(shift, _minus(moved.beliefs, mirror.beliefs))
            rounding = 1e-14 * _inner([np.abs(s) for s in shift], moved.beliefs)
            if problem.curvature(moved.seen, mirror.seen) <= curve * (divergence + rounding):
                break
            curve *= 2
        ahead = best.towards(moved, share)
        reached = problem.loss(ahead.seen)
        theta, mirror, weight = trial, moved, weight + length
        curve *= 0.9
        if reached > loss and weight > length:
            theta = potentials_of(tree, best.beliefs)
            mirror = problem.point(theta)
            weight = 0.0
        else:
            best, loss = ahead, reached
        history.append(loss)
        if progress is not None:
            progress(taken)
        if len(history) > 10 and history[-11] - loss <= tolerance * loss:
            break
    return Fit(MarkovRandomField(tree, tuple(best.beliefs), rows), loss, taken)


def potentials_of(tree: JunctionTree, beliefs: Sequence[Array]) -> list[Array]:
    """Log-potentials whose marginals are the given calibrated ones: log p(C) - log p(S)."""
    floor = np.finfo(np.float64).tiny
    found = [np.log(np.maximum(b, floor)) for b in beliefs]
    for edge in tree.edges:
        clique = tree.cliques[edge.child]
        given = sum_to(beliefs[edge.child], clique, edge.separator)
        found[edge.child] = found[edge.child] - spread(
            np.log(np.maximum(given, floor)), edge.separator, clique
        )
    return found
