"""The best table for some noisy counts, found on the explicit joint by independent solvers."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import minimize, nnls

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Measurement


def codes(domain: Domain) -> dict[str, np.ndarray]:
    """Each column's value in every cell of the joint."""
    shape = domain.shape(domain.columns)
    return dict(zip(domain.columns, np.indices(shape).reshape(len(shape), -1), strict=True))


def possible(domain: Domain, zeros: Mapping[Clique, np.ndarray]) -> np.ndarray:
    """Which cells of the joint no structural zero forbids."""
    values = codes(domain)
    found = np.ones(domain.cells(domain.columns), dtype=bool)
    for clique, closed in zeros.items():
        found &= ~closed[tuple(values[c] for c in clique)]
    return found


def design(domain: Domain, measurements: Sequence[Measurement]) -> tuple[np.ndarray, np.ndarray]:
    """Matrix from the joint's cells to all measured answers, weighted; and the weighted answers."""
    values, cells = codes(domain), domain.cells(domain.columns)
    blocks, aims = [np.zeros((0, cells))], [np.zeros(0)]
    for m in measurements:
        if not m.clique or m.noise == "none":
            continue
        block = np.zeros((m.values.size, cells))
        block[np.ravel_multi_index([values[c] for c in m.clique], m.values.shape), np.arange(cells)] = 1
        deviations = np.sqrt(m.variances).ravel()
        blocks.append(block / deviations[:, None])
        aims.append(m.values.ravel() / deviations)
    return np.concatenate(blocks), np.concatenate(aims)


def combined_alone(measurements: Sequence[Measurement]) -> float:
    """What weighted means of one clique leave out of the sum of squares: the same for all models."""
    groups: dict[frozenset[str], list[Measurement]] = {}
    for m in measurements:
        if m.clique and m.noise != "none":
            groups.setdefault(frozenset(m.clique), []).append(m)
    lost = 0.0
    for group in groups.values():
        first = group[0].clique
        values = np.array([m.values.transpose([m.clique.index(c) for c in first]).ravel() for m in group])
        weights = np.array([1 / m.variance for m in group])[:, None]
        mean = (weights * values).sum(axis=0) / weights.sum()
        lost += 0.5 * float((weights * np.square(values - mean)).sum())
    return lost


def least_loss(
    domain: Domain,
    measurements: Sequence[Measurement],
    rows: float,
    zeros: Mapping[Clique, np.ndarray] | None = None,
) -> tuple[float, float]:
    """Bounds, from below and from above, on the least loss of all tables of so many rows.

    The nearest point of a polytope to the origin by non-negative least squares (Lawson and
    Hanson 1974, chapter 23): no penalty for the number of rows. The upper bound is a table's
    own loss, the lower one follows from its gradient.
    """
    matrix, aims = design(domain, measurements)
    matrix = matrix[:, possible(domain, zeros or {})]
    points = rows * matrix - aims[:, None]
    scale = max(float(np.abs(points).max(initial=0.0)), 1e-300)
    aim = np.append(np.zeros(len(aims)), 1.0)
    shares, _ = nnls(np.vstack([points / scale, np.ones(matrix.shape[1])]), aim)
    shares /= shares.sum()
    misfit = points @ shares
    gradient = points.T @ misfit
    loss, lost = 0.5 * float(misfit @ misfit), combined_alone(measurements)
    return loss - float(gradient @ shares - gradient.min()) - lost, loss - lost


def penalised(
    domain: Domain,
    measurements: Sequence[Measurement],
    rows: float,
    prior_rows: float,
    centre: np.ndarray,
    zeros: Mapping[Clique, np.ndarray] | None = None,
) -> tuple[np.ndarray, float]:
    """Probabilities of the joint's cells of least loss + prior_rows KL(p | centre), and that value."""
    matrix, aims = design(domain, measurements)
    open_ = possible(domain, zeros or {})
    matrix, base = matrix[:, open_], np.log(centre.ravel()[open_] / centre.ravel()[open_].sum())

    def value(logits: np.ndarray) -> tuple[float, np.ndarray]:
        shifted = base + logits - (base + logits).max()
        shares = np.exp(shifted)
        logs = shifted - np.log(shares.sum())
        shares /= shares.sum()
        misfit = rows * (matrix @ shares) - aims
        slope = rows * (matrix.T @ misfit) + prior_rows * (logs - base)
        found = 0.5 * float(misfit @ misfit) + prior_rows * float(shares @ (logs - base))
        return found, shares * (slope - shares @ slope)

    best = minimize(
        value,
        np.zeros(len(base)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 50},
    )
    shares = np.zeros(len(open_))
    weights = np.exp(base + best.x - (base + best.x).max())
    shares[open_] = weights / weights.sum()
    return shares, float(best.fun) - combined_alone(measurements)
