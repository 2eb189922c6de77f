"""Evidence that a release's own answers contradict: how little it counts then, and that it never harms."""

import numpy as np
import pytest

from dpsynth.columns.measurement import Measurement
from dpsynth.model.reused_answers import discounted

CELLS, NOISE = 40, 20.0


def counted(values, scale, clique=("a",)):
    return Measurement(clique, np.rint(values).astype(np.int64), "gaussian", scale)


def averaged(*measurements):
    weights = np.array([1 / m.variance for m in measurements])
    return sum(w * m.values for w, m in zip(weights, measurements, strict=True)) / weights.sum()


@pytest.mark.parametrize("off", [0.0, 10.0, 40.0, 400.0])
def test_doubted_evidence_does_no_harm_however_far_it_is_off(off):
    """Planted: the same evidence undoubted, which far off is worse than none by a long way."""
    alone, doubting, trusting = [], [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = rng.uniform(0, 1000, CELLS)
        own = counted(truth + rng.normal(0, NOISE, CELLS), NOISE)
        told = counted(truth + off * rng.choice([-1, 1], CELLS) + rng.normal(0, 5, CELLS), 5.0)
        alone.append(np.square(own.values - truth).mean())
        doubting.append(np.square(averaged(own, *discounted([told], [own])) - truth).mean())
        trusting.append(np.square(averaged(own, told) - truth).mean())
    assert np.mean(doubting) < 1.02 * np.mean(alone)
    if off == 0:
        assert np.mean(doubting) < 0.2 * np.mean(alone)
    if off == 400:
        assert np.mean(trusting) > 100 * np.mean(alone)


def test_evidence_never_comes_to_count_for_more():
    rng = np.random.default_rng(0)
    for seed in range(50):
        own = counted(rng.normal(0, NOISE, CELLS), NOISE)
        told = counted(np.zeros(CELLS), float(1 + seed))
        (found,) = discounted([told], [own])
        assert found.variance >= told.variance


def test_an_answer_about_more_columns_tells_of_those_inside_it_by_its_sums():
    rng = np.random.default_rng(0)
    pair = rng.uniform(0, 100, (CELLS, 3))
    own = counted(pair + rng.normal(0, 5, pair.shape), 5.0, ("a", "b"))
    wrong, right = counted(pair.sum(1) + 500, 1.0), counted(pair.sum(1), 1.0)
    of_wrong, of_right = discounted([wrong, right], [own])
    assert of_wrong.stddev == pytest.approx(500, rel=0.05) and of_right.stddev < 10


def test_what_was_not_measured_again_is_left_as_it_is():
    told = counted(np.zeros(CELLS), 1.0)
    assert discounted([told], [counted(np.full(3, 1e6), 1.0, ("c",))]) == (told,)
