"""Measured sums as evidence for numbers inside bins: groups of synthetic rows have the measured means."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import Centring, MeasuredSums
from dpsynth.model import LeastSquares
from dpsynth.statistics.measured_figures import STEEPEST, tilts_of

SITE = Column("site", CategoryCodec(("A", "B", "C")), missing=False)
COST = Column("cost", NumericCodec((0.0, 10.0, 100.0), 1, integer=False), missing=False)
COLUMNS = {"site": SITE, "cost": COST}
COUNTS = np.array([[900, 100], [500, 500], [100, 900]])
MEANS = np.array([12.0, 20.0, 65.0])
"""By bins alone these are 10, 30 and 50."""


@dataclass(frozen=True)
class Model:
    """The exact counts."""

    total: float = float(COUNTS.sum())

    def marginal(self, clique):
        assert clique == ("site", "cost")
        return COUNTS.astype(float)


def tilts(noise: float = 1.0, ruled=(), column: Column = COST):
    """The tilts by sums of some noise; a step is a tenth."""
    centring = Centring((0, 0), 1000)
    sums = np.rint(COUNTS.sum(axis=1) * MEANS * 10).astype(np.int64)
    measured = MeasuredSums("cost", ("site",), sums, "gaussian", noise, centring)
    direct = LeastSquares(domain_of([SITE, COST]), [Measurement(("site", "cost"), COUNTS, "gaussian", 1e-3)])
    return tilts_of([measured], {"site": SITE, "cost": column}, Model(), direct, ruled)


def means_of(found) -> np.ndarray:
    """Means of rows that are drawn with the tilts, by site."""
    layout = replace(Layout((SITE, COST)), tilts=found)
    cells = np.repeat(np.arange(6), 20 * COUNTS.ravel())
    table = layout.decode({"site": cells // 2, "cost": cells % 2}, np.random.default_rng(0)).to_pandas()
    return table.groupby("site")["cost"].mean().to_numpy()


def test_groups_have_the_measured_means():
    assert means_of(()) == pytest.approx([10, 30, 50], abs=0.5)
    assert means_of(tilts()) == pytest.approx(MEANS, abs=1.0)


def test_what_is_mostly_noise_moves_nothing_and_no_tilt_is_steeper_than_allowed():
    (loud,), (quiet,) = tilts(noise=1e9), tilts()
    assert np.abs(np.log(loud.powers)).max() < 1e-3
    assert (quiet.powers <= STEEPEST + 1e-9).all() and (quiet.powers >= 1 / STEEPEST - 1e-9).all()


def test_columns_of_constraints_and_of_even_densities_stay_as_they_are():
    assert tilts(ruled=["cost"]) == () == tilts(column=replace(COST, uniform=True))


def test_tilts_the_wrong_way_would_be_seen():
    (right,) = tilts()
    wrong = replace(right, powers=1 / right.powers)
    assert not np.allclose(means_of((wrong,)), MEANS, atol=2.0)
