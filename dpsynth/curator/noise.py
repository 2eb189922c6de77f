"""Noise and noisy selection, from exact samplers on a cryptographic source.

OpenDP's draw single values, small arrays and selections; ``bulk_noise`` draws large arrays, from the
same distributions. The choice depends on scale and number of cells only. That number is public, except in
partition selection; there it doesn't matter either, since both draw from the same distribution.

Invariant: no float decides a released number and no seed reaches a draw. Values go in and
come out as int64; a scale of zero is refused.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import zero_concentrated_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import Measurement, enable_features

from dpsynth.curator import bulk_noise

enable_features("contrib")

Counts = NDArray[np.int64]


def _positive(scale: float) -> float:
    if not scale > 0:
        raise ValueError("a noise scale must be positive")
    return scale


@lru_cache(maxsize=64)
def _gaussian(sigma: float) -> Measurement:
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), _positive(sigma))


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Measurement:
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), _positive(scale))


@lru_cache(maxsize=64)
def _gumbel_max(scale: float) -> Measurement:
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    return make_noisy_max(*space, zero_concentrated_divergence(), _positive(scale))


def add_gaussian(values: Counts, sigma: float) -> Counts:
    """Add discrete Gaussian noise, P(x) ~ exp(-x^2/(2 sigma^2)), to each value.

    Sensitivity: L2 distance between neighbouring ``values``, D2, given by the caller.
    Distribution: N_Z(0, sigma^2) independently a value (Canonne, Kamath, Steinke 2020).
    Cost: rho = D2^2/(2 sigma^2), ``accounting.events.GaussianEvent``.
    """
    if bulk_noise.pays("gaussian", _positive(sigma), values.size):
        return bulk_noise.add("gaussian", sigma, values)
    return np.array(_gaussian(sigma)(values.ravel()), dtype=np.int64).reshape(values.shape)


def add_laplace(values: Counts, scale: float) -> Counts:
    """Add discrete Laplace noise, P(x) ~ exp(-|x|/scale), to each value.

    Sensitivity: L1 distance between neighbouring ``values``, D1, given by the caller.
    Distribution: discrete Laplace independently a value (Canonne, Kamath, Steinke 2020).
    Cost: epsilon = D1/scale, ``accounting.events.LaplaceEvent``.
    """
    if bulk_noise.pays("laplace", _positive(scale), values.size):
        return bulk_noise.add("laplace", scale, values)
    return np.array(_laplace(scale)(values.ravel()), dtype=np.int64).reshape(values.shape)


def choose_index(scores: Counts, scale: float) -> int:
    """Choose an index by the exponential mechanism, Pr[i] ~ exp(scores[i]/scale).

    Sensitivity: largest change of any score between neighbours, D, given by the caller;
    scores may move either way.
    Distribution: report-noisy-max with Gumbel noise, which is the exponential mechanism.
    Cost: epsilon = 2 D/scale, and rho = epsilon^2/8, ``accounting.events.ExponentialEvent``.
    """
    return int(_gumbel_max(scale)(scores))
