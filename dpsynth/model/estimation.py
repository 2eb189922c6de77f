"""Estimation of the Markov random field that explains noisy marginals best.

Private-PGM (McKenna, Sheldon and Miklau 2019): over all distributions on the domain,
minimise sum over measurements of |P mu - y|^2 / (2 variance), P mu being the model's own
marginal. For Gaussian noise that is maximum likelihood. For Laplace noise it is the
least-squares surrogate with the same mean and variance: on random small tables its marginals
were 2 to 11 % closer to the truth than those of Laplace's own likelihood, an L1 distance.

The solution lies on the boundary of the marginal polytope: most rare cells end at zero. So it
is approached along a path of smooth problems, loss + (rows / t) KL(p | centre), for growing
t. Each problem is solved in its dual by truncated Newton steps (conjugate gradients on
covariances under the model; Nocedal and Wright 2006, chapter 7). It starts at the point that
the last two solutions extrapolate to. A path that ends early is shrinkage towards independent
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Observation
from dpsynth.model.belief_propagation import BeliefPropagation
from dpsynth.model.coarsening import coarsened
from dpsynth.model.dual_path import DualPath
from dpsynth.model.factor import Array, sum_to
from dpsynth.model.junction_tree import junction_tree
from dpsynth.model.likelihood import Likelihood
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.targets import estimated_total, one_way_logarithms, targets

_ALLOWANCE = 1 << 9
"""Cells that may be added to a pass over the tree for each clique that this saves."""
_LARGE = 1 << 20
"""Cells of a junction tree from which single precision pays."""
_SINGLE = 1e-4
"""Tolerance down to which single precision reaches."""
_FIRST = 2.0
"""The t at which the path starts: the centre counts as much as half of the rows."""
_AGAIN = 32.0
"""The largest t at which the path starts if a clique is new since the starting point."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model, and how well the fit converged.

    Attributes:
        model: the Markov random field.
        objective: its weighted squared error.
        gap: no model has an objective below ``objective - gap``.
        iterations: Newton steps taken.
        path: t at the end; the centre's weight was ``model.total / path`` rows.
        total, prior_rows, zeros: the arguments of ``estimate``.
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


@dataclass(frozen=True)
class FitOptions:
    """Limits of a fit: when it stops, and what it may cost.

    Attributes:
        tolerance: the fit stops when doubling t lowers the objective by less than this share of it
            (and of its fall so far).
        max_iterations: upper bound on Newton steps.
        max_cells: largest junction tree that may be built, in cells of all its cliques.
        precision: type of the cells, "float64" or "float32". By default it is float32 for trees so
            large that half of the time and memory matters, unless the tolerance needs more digits.
        progress: called with the number of steps taken.
    """

    tolerance: float = 3e-3
    max_iterations: int = 1000
    max_cells: int | None = None
    precision: str | None = None
    progress: Callable[[int], None] = lambda _: None

    def dtype(self, cells: int) -> str:
        """The type of the cells of a tree that has so many."""
        if self.precision is not None:
            return self.precision
        return "float32" if cells > _LARGE and self.tolerance >= _SINGLE else "float64"


@cache
def _linear_algebra() -> ThreadpoolController:
    """The libraries of linear algebra in this process, looked for once: they come with NumPy."""
    return ThreadpoolController()


def estimate(
    domain: Domain,
    measurements: Sequence[Observation],
    options: FitOptions = FitOptions(),
    *,
    total: float | None = None,
    prior_rows: float = 0.0,
    zeros: Mapping[Clique, NDArray[np.bool_]] | None = None,
    start: Fit | None = None,
) -> Fit:
    """The Markov random field that fits noisy marginals best.

    Args:
        domain: the public domain.
        measurements: noisy marginals over any cliques.
        options: when the fit stops, and what it may cost.
        total: number of rows if it is known; otherwise it is estimated from the full marginals
            (1 without any).
        prior_rows: strength of the shrinkage towards independent columns, as a number of additional
            rows that show them.
        zeros: structural zeros: for some cliques the cells that no row can have, True each, shape
            ``domain.shape(clique)``. They get probability zero in every marginal.
        start: an earlier fit. The multipliers of cliques that were measured then too are the
            starting point.

    Raises:
        ModelTooLarge: the junction tree would have more than ``options.max_cells`` cells; nothing
            was allocated.
        ValueError: ``zeros`` leave no row possible.
    """
    zeros = zeros or {}
    tree = junction_tree(domain, [*(m.clique for m in measurements), *zeros], max_cells=options.max_cells)
    rank = {c: i for i, c in enumerate(BeliefPropagation.order(domain, domain.columns))}
    found = targets(measurements, rank)
    rows = estimated_total(measurements) if total is None else total
    centre = one_way_logarithms(domain, found, rows) if prior_rows > 0 else {}
    for clique, closed in zeros.items():
        order = BeliefPropagation.order(domain, clique)
        excluded = np.where(sum_to(closed.astype(np.float64), clique, order) > 0, -inf, 0.0)
        centre[order] = centre.get(order, 0.0) + excluded
    end = rows / prior_rows if prior_rows > 0 else inf
    first = min(_FIRST, end)
    if start is not None:
        new = any(t.query is None and t.clique not in start.multipliers for t in found)
        first = max(first, min(start.path, end, _AGAIN if new else inf))
    # The many small products here would wait for a second thread on a busy machine.
    with _linear_algebra().limit(limits=1, user_api="blas"):
        likelihood = Likelihood(coarsened(tree, _ALLOWANCE), found, centre, rows, options.dtype(tree.cells))
        search = DualPath(likelihood, options.max_iterations, options.progress)
        search.start_at_centre(first)
        if start is not None:
            search.start(first, _initial_multipliers(likelihood, start, first))
        search.solve(end, options.tolerance)
        gap = search.loss - likelihood.bound(search.multipliers)
        beliefs = likelihood.propagation.beliefs(tree.cliques, rows)
    kept = {
        t.clique: part
        for t, part in zip(found, likelihood.split(search.multipliers), strict=True)
        if t.query is None
    }
    model = MarkovRandomField(tree, beliefs, rows)
    return Fit(model, search.loss, gap, search.taken, search.path, total, prior_rows, zeros, kept)


def _initial_multipliers(likelihood: Likelihood, start: Fit, path: float) -> Array:
    """Multipliers at t = ``path`` that give the tilt of an earlier fit, where it measured the same."""
    parts = [
        start.multipliers[t.clique] * (start.path / path)
        if t.query is None and t.clique in start.multipliers
        else np.zeros(t.values.size)
        for t in likelihood.targets
    ]
    return likelihood.effective(np.concatenate(parts)) if parts else np.zeros(0)
