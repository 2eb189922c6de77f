"""Estimation: the Markov random field that explains noisy marginals best.

Private-PGM (McKenna, Sheldon and Miklau 2019): over all distributions on the domain,
minimise sum over measurements of |P mu - y|^2 / (2 variance), P mu being the model's own
marginal. For Gaussian noise that is maximum likelihood. For Laplace noise it is the
least-squares surrogate with the same mean and variance: on random small tables its marginals
were 2 to 11 % closer to the truth than those of Laplace's own likelihood, an L1 distance.

The solution lies on the boundary of the marginal polytope: most rare cells end at zero. So it
is approached along a path of smooth problems, loss + (rows / t) KL(p | centre), for growing
t, each solved in its dual by truncated Newton steps (conjugate gradients on covariances
under the model; Nocedal and Wright 2006, chapter 7) from where the last two solutions
point to. A path that ends early is a model shrunk towards independent columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.measurement import Observation
from dpsynth.model.belief_propagation import BeliefPropagation
from dpsynth.model.coarsening import coarsened
from dpsynth.model.dual_path import DualPath
from dpsynth.model.factor import Array, sum_to
from dpsynth.model.junction_tree import junction_tree
from dpsynth.model.likelihood import Likelihood
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.targets import estimated_total, one_way_logarithms, targets

_WORTH = 1 << 9
"""Cells that a pass over the tree may grow by for each clique that it saves."""
_LARGE = 1 << 20
"""Cells of a junction tree from which single precision pays."""
_SINGLE = 1e-4
"""Tolerance down to which single precision reaches."""
_FIRST = 2.0
"""Where the path begins: the centre counts as much as half of the rows."""
_AGAIN = 32.0
"""Where it begins, at the latest, for a fit that goes on from an earlier one."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and how well it converged.

    Attributes:
        model: the Markov random field.
        objective: the weighted squared error reached.
        gap: no model has an objective below ``objective - gap``.
        iterations: Newton steps taken.
        path: t at the end; the centre's weight was ``model.total / path`` rows.
        total, prior_rows, zeros: as asked for.
        multipliers: for each measured clique, the tilt of its cells divided by -t.
    """

    model: MarkovRandomField
    objective: float
    gap: float
    iterations: int
    path: float
    total: float | None
    prior_rows: float
    zeros: Mapping[Clique, NDArray[np.bool_]]
    multipliers: Mapping[Clique, Array]


def estimate(
    domain: Domain,
    measurements: Sequence[Observation],
    *,
    total: float | None = None,
    tolerance: float = 3e-3,
    prior_rows: float = 0.0,
    max_cells: int | None = None,
    max_iterations: int = 1000,
    zeros: Mapping[Clique, NDArray[np.bool_]] | None = None,
    start: Fit | None = None,
    precision: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Fit:
    """Fit a Markov random field to noisy marginals.

    Args:
        domain: the public domain.
        measurements: noisy marginals over any cliques.
        total: number of rows if known, otherwise estimated from the full marginals (1 without any).
        tolerance: stop when doubling t lowers the objective by less than this share of it (and
            of its fall so far).
        prior_rows: shrink towards independent columns as if so many more rows had shown them.
        max_cells: largest junction tree to be built, in cells of all its cliques.
        max_iterations: upper bound on Newton steps.
        zeros: for some cliques the cells that no row can have, True each, shape
            ``domain.shape(clique)``. They get probability zero in every marginal.
        start: an earlier fit, of which the cliques measured now too are taken over.
        precision: of the cells, "float64" or "float32"; by default the latter for trees so large that
            its half of time and memory matters, unless the tolerance asks for more digits.
        progress: called with the number of steps taken.

    Raises:
        ModelTooLarge: the junction tree would have more than ``max_cells`` cells; nothing was
            allocated.
        ValueError: ``zeros`` leave no row possible.
    """
    zeros = zeros or {}
    tree = junction_tree(domain, [*(m.clique for m in measurements), *zeros], max_cells=max_cells)
    rank = {c: i for i, c in enumerate(BeliefPropagation.order(domain, domain.columns))}
    found = targets(measurements, rank)
    rows = estimated_total(measurements) if total is None else total
    centre = one_way_logarithms(domain, found, rows) if prior_rows > 0 else {}
    for clique, closed in zeros.items():
        order = BeliefPropagation.order(domain, clique)
        shut = np.where(sum_to(closed.astype(np.float64), clique, order) > 0, -inf, 0.0)
        centre[order] = centre.get(order, 0.0) + shut
    end = rows / prior_rows if prior_rows > 0 else inf
    at = min(_FIRST, end)
    if start is not None:
        at = max(at, min(_AGAIN, start.path, end))
    if precision is None:
        single = tree.cells > _LARGE and tolerance >= _SINGLE
        precision = "float32" if single else "float64"
    # The many small products here would wait for a second thread on a busy machine.
    with threadpool_limits(limits=1, user_api="blas"):
        likelihood = Likelihood(coarsened(tree, _WORTH), found, centre, rows, precision)
        search = DualPath(likelihood, max_iterations, progress or (lambda _: None))
        search.begin_at_centre(at)
        if start is not None:
            search.begin(at, _taken_over(likelihood, start, at))
        search.follow(end, tolerance)
        gap = search.loss - likelihood.bound(search.multipliers)
        beliefs = likelihood.propagation.beliefs(tree.cliques, rows)
    kept = {
        t.clique: part
        for t, part in zip(found, likelihood.split(search.multipliers), strict=True)
        if t.query is None
    }
    model = MarkovRandomField(tree, beliefs, rows)
    return Fit(model, search.loss, gap, search.taken, search.path, total, prior_rows, zeros, kept)


def _taken_over(likelihood: Likelihood, start: Fit, at: float) -> Array:
    """Multipliers at t = ``at`` that give an earlier fit's tilt, where it measured the same."""
    parts = [
        start.multipliers[t.clique] * (start.path / at)
        if t.query is None and t.clique in start.multipliers
        else np.zeros(t.values.size)
        for t in likelihood.targets
    ]
    return likelihood.effective(np.concatenate(parts)) if parts else np.zeros(0)
