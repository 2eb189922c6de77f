"""Slopes of densities inside bins, by which the synthetic table follows measured sums.

The model knows how many rows of a group are in each bin. Inside a bin it gives every group the density of all
rows. A measured mean of a group says more. So the densities of a group are tilted by a power, within bounds,
with which the model's mean of the group becomes the measured one. If the measured mean is less precise than
the mean by bins, the aim is the mean of both, weighted by precision.

Invariant: post-processing of noisy answers. The same bundle gives the same tilts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from dpsynth.columns.column import Column
from dpsynth.columns.sums import MeasuredSums, Steps, variance_of_unknown
from dpsynth.columns.tilts import Tilt, moved_steps
from dpsynth.statistics.estimates import Marginals, Numbers, Unbiased
from dpsynth.statistics.summed_means import summed_means

STEEPEST = 6.0
"""Largest power of a tilt, and one over the least."""
_POWERS = np.geomspace(1 / STEEPEST, STEEPEST, 41)
_DRAWS = 512
"""Numbers of each bin by which the mean of a tilted density is computed."""


def tilts_of(
    sums: Sequence[MeasuredSums],
    columns: Mapping[str, Column],
    model: Marginals,
    direct: Unbiased,
    ruled: Collection[str] = (),
) -> tuple[Tilt, ...]:
    """A tilt for each column with sums: by the sums of most groups.

    Args:
        sums: the measured sums.
        columns: the columns by name, with their densities inside bins.
        model: the fitted model, whose marginals say how many rows of a group are in each bin.
        direct: estimates of counts from the answers alone.
        ruled: columns that constraints name; their values stay where they are.
    """
    widest: dict[str, MeasuredSums] = {}
    for measured in sums:
        before = widest.get(measured.column)
        if before is None or measured.values.size > before.values.size:
            widest[measured.column] = measured
    able = [m for m in widest.values() if m.column not in ruled and not columns[m.column].uniform]
    # A coarser step than the last decimal would round what was drawn.
    return tuple(
        _tilt(m, columns[m.column], model, direct)
        for m in able
        if _finest(columns[m.column]) and direct.covers(m.clique)
    )


def _finest(column: Column) -> bool:
    steps = column.codec.steps
    return steps is not None and steps.exponent <= 0 and steps.exponent == -column.codec.kind.decimals


def _tilt(measured: MeasuredSums, column: Column, model: Marginals, direct: Unbiased) -> Tilt:
    steps = column.codec.steps
    assert steps is not None
    found = summed_means(measured, column, direct)
    cells = np.maximum(
        model.marginal(measured.clique).reshape(measured.values.size, -1)[:, : steps.bins], 0.0
    )
    rows = cells.sum(axis=1)
    shares = cells / np.where(rows > 0, rows, 1.0)[:, None]
    # float64[powers, groups]: means by power, falling.
    means = _means(column, steps) @ shares.T
    flat = means[len(_POWERS) // 2]
    unknown = variance_of_unknown(shares, steps.half_widths)
    error = (found.error / steps.unit) ** 2
    target = found.mean / steps.unit - steps.origin
    weight = np.divide(unknown, unknown + error, out=np.zeros(len(rows)), where=unknown + error > 0)
    aim = np.where(np.isfinite(target) & np.isfinite(weight), flat + weight * (target - flat), flat)
    logs = np.log(_POWERS)[::-1]
    powers = [np.exp(np.interp(a, mean[::-1], logs)) for a, mean in zip(aim, means.T, strict=True)]
    unmoved = np.isclose(aim, flat) | (means[0] == means[-1])
    return Tilt(measured.column, measured.by, np.where(unmoved, 1.0, powers).reshape(measured.values.shape))


def _means(column: Column, steps: Steps) -> Numbers:
    """The mean step of each bin under each power, float64[powers, bins].

    Draws say how far it moves from the mean of the density as it is, which is known exactly.
    """
    assert column.centres is not None
    centres = column.centres * 10.0**-steps.exponent - steps.origin
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(steps.bins), _DRAWS)
    drawn = column.codec.decode(code, rng).to_numpy(zero_copy_only=False).astype(np.float64)
    at = np.rint(drawn * 10.0**-steps.exponent).astype(np.int64) - steps.origin
    inside = rng.random(len(code))
    moved = [moved_steps(steps, code, at, np.full(len(code), power), inside) for power in _POWERS]
    means = np.stack(moved).reshape(len(_POWERS), steps.bins, _DRAWS).mean(axis=2)
    return np.asarray(centres + means - means[len(_POWERS) // 2])
