"""Quantiles by finer counts: their variance, their intervals, the file of the counts."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import FinerCounts, Pieces
from dpsynth.model import LeastSquares
from dpsynth.statistics.grouped_counts import Measure
from dpsynth.statistics.measured_figures import FinerQuantiles, finer_counts_file, finer_counts_in

MEDIAN = Measure("quantile")

SITE = Column("site", CategoryCodec(("A", "B")), missing=False)
COST = Column("cost", NumericCodec((0.0, 10.0, 100.0, 200.0), 0, integer=True))
COLUMNS = {"site": SITE, "cost": COST}
STEPS = COST.codec.steps
PIECES = Pieces.of(STEPS, np.array([5, 9, 4]))
LEVELS = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class World:
    """Numbers in two groups, their exact counts, and noise to draw."""

    numbers: tuple[np.ndarray, np.ndarray]
    cell: float = 8.0
    piece: float = 12.0

    def drawn(self, rng: np.random.Generator) -> FinerQuantiles:
        """Quantiles from one draw of all noise."""
        cells, pieces = np.zeros((2, 4)), np.zeros((2, len(PIECES.first)))
        for group, own in enumerate(self.numbers):
            piece = np.searchsorted(PIECES.array, own, side="right") - 1
            pieces[group] = np.bincount(piece, minlength=pieces.shape[1])
            cells[group, :3] = np.bincount(PIECES.bin_of(STEPS)[piece], minlength=3)
        noisy = (cells + rng.normal(0, self.cell, cells.shape)).round().astype(np.int64)
        total = np.int64(round(cells.sum() + rng.normal(0, self.cell)))
        direct = LeastSquares(
            Domain({"site": 2, "cost": 4}),
            (
                Measurement((), np.asarray(total), "gaussian", self.cell),
                Measurement(("site", "cost"), noisy, "gaussian", self.cell),
            ),
        )
        values = (pieces + rng.normal(0, self.piece, pieces.shape)).round().astype(np.int64)
        finer = FinerCounts("cost", ("site",), values, "gaussian", self.piece, PIECES)
        return FinerQuantiles(finer, COST, direct)


def world(rows: int = 4000) -> World:
    rng = np.random.default_rng(5)
    return World(tuple(np.clip(rng.gamma(1.5, 40 + 20 * g, rows), 0, 200).astype(int) for g in range(2)))


def true(own: np.ndarray, level: float) -> float:
    return float(np.quantile(own, level, method="inverted_cdf"))


def held(trust: float = 1.0) -> tuple[float, float]:
    """The part of intervals that hold the true quantile; and how noisy sums are, by what is stated."""
    made, rng = world(), np.random.default_rng(1)
    found, sums = [], []
    weights = (np.arange(len(PIECES.first)) < 7) - 0.4
    for _ in range(60):
        drawn = made.drawn(rng)
        for group in range(2):
            sums.append(float(drawn._cells[group] @ weights) / (drawn._reach(weights) / 1.96 * trust))
            for level in LEVELS:
                estimate, _ = drawn.figure(group, Measure("quantile", level=level))
                found.append(estimate.low <= true(made.numbers[group], level) <= estimate.high)
    spread = np.concatenate([np.array(sums[g::2]) - np.mean(sums[g::2]) for g in range(2)])
    return float(np.mean(found)), float(spread.std())


def test_intervals_hold_and_sums_of_pieces_are_as_noisy_as_stated():
    holds, spread = held()
    # 360 intervals, and 120 sums: chances below 10^-6.
    assert holds > 0.85 and 0.65 < spread < 1.45


def test_an_error_stated_as_half_of_what_it_is_would_be_seen():
    assert not 0.65 < held(trust=0.5)[1] < 1.45


def test_intervals_are_narrower_than_bins_and_the_estimate_lies_within():
    made = world(400_000)
    drawn = made.drawn(np.random.default_rng(2))
    for group in range(2):
        estimate, rows = drawn.figure(group, MEDIAN)
        assert estimate.low <= estimate.value <= estimate.high and estimate.sound
        assert estimate.high - estimate.low <= 20 and rows == pytest.approx(400_000, rel=0.01)


def test_a_group_without_rows_spoils_no_other():
    empty = World((np.zeros(0, int), np.full(5000, 7)))
    drawn = empty.drawn(np.random.default_rng(3))
    assert drawn.figure(1, MEDIAN)[0].low <= 7 <= drawn.figure(1, MEDIAN)[0].high
    assert drawn.groups == 2


def test_the_file_says_all_that_a_quantile_needs():
    drawn = world().drawn(np.random.default_rng(4))
    content = json.loads(json.dumps(finer_counts_file([drawn.measured], COLUMNS)))
    (again,) = finer_counts_in(content, COLUMNS)
    assert again.pieces == drawn.measured.pieces and again.clique == ("site", "cost")
    assert FinerQuantiles(again, COST, drawn.direct).figure(0, MEDIAN) == drawn.figure(0, MEDIAN)


@pytest.mark.parametrize(
    "change",
    [{"first": [0, 5]}, {"first": [3]}, {"counts": [1]}, {"column": "site"}, {"first": [0, 10, 100, 999]}],
    ids=str,
)
def test_a_file_of_other_pieces_is_refused(change):
    content = finer_counts_file([world().drawn(np.random.default_rng(4)).measured], COLUMNS)
    with pytest.raises((ValueError, KeyError, TypeError)):
        finer_counts_in([{**content[0], **change}], COLUMNS)
