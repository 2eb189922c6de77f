"""Cuts of whole steps become bins that hold exactly those steps."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.strategy.discovery import (
    LARGEST,
    codec_of,
    equal_widths,
    magnitudes,
    public_ends,
    round_cuts,
    within,
)
from tests.strategy.discovery.searched import number_search

STEPS = st.one_of(st.integers(-200, 200), st.integers(-LARGEST, LARGEST))


@given(st.lists(STEPS, min_size=2, max_size=20, unique=True), st.integers(0, 9), st.booleans())
def test_each_bin_holds_its_steps_and_decodes_to_them(steps, decimals, integer):
    decimals = 0 if integer else decimals
    cuts = np.array(sorted(steps))
    codec = codec_of(number_search(decimals=decimals, integer=integer), cuts)
    assert len(codec.labels) == cuts.size - 1
    unit = 10**decimals
    firsts, lasts = cuts[:-1], np.maximum(cuts[1:] - 1, cuts[:-1])
    for ends in (firsts, lasts):
        assert codec.codes_of(ends / unit).tolist() == list(range(cuts.size - 1))
    rng = np.random.default_rng(0)
    for i, (a, b) in enumerate(pairwise(cuts.tolist())):
        drawn = np.asarray(codec.decode(np.full(20, i), rng), dtype=np.float64) * unit
        # The edge of the last bin may be rounded where numbers have sixteen digits.
        assert (np.rint(drawn) >= a).all() and (np.rint(drawn) <= b - 1).all()


@given(STEPS, st.integers(1, 2 * LARGEST), st.integers(1, 5000))
def test_round_cuts_lie_between_and_make_no_more_parts_than_wanted(low, width, most):
    high = low + width
    cuts = round_cuts(low, high, most)
    assert cuts.size <= most and ((cuts > low) & (cuts < high)).all()
    assert np.unique(np.diff(cuts)).size <= 1


@given(STEPS, st.integers(0, 10**6), st.integers(1, 300))
def test_even_bins_differ_by_a_step_at_most_and_none_is_empty(low, width, bins):
    cuts = equal_widths(low, low + width, bins)
    assert cuts[0] == low and cuts[-1] == low + width + 1 and len(cuts) - 1 == min(bins, width + 1)
    assert np.ptp(np.diff(cuts)) <= 1 and np.diff(cuts).min() >= 1


def test_magnitudes_rise_and_tell_zero_and_signs_apart():
    cuts = magnitudes()
    assert (np.diff(cuts) > 0).all() and cuts[0] == -LARGEST and cuts[-1] == LARGEST
    at = int(np.searchsorted(cuts, 0))
    assert cuts[at - 1 : at + 2].tolist() == [-1, 0, 1]


def test_within_has_each_cut_once():
    assert within(3, 10, np.array([1, 3, 5, 10]), np.array([5, 11])).tolist() == [3, 5, 10, 11]


@pytest.mark.parametrize(
    ("ends", "decimals", "steps"),
    [((0.0, 99.0), 0, (0, 99)), ((0.1, 0.3), 1, (1, 3)), ((0.25, 9.99), 1, (3, 99)), ((0.2, 0.7), 0, (1, 1))],
)
def test_public_ends_are_the_steps_between_them(ends, decimals, steps):
    assert public_ends(number_search(ends=ends, decimals=decimals, integer=False)) == steps


def test_ends_that_are_sought_are_not_public():
    with pytest.raises(ValueError, match="still to be found"):
        public_ends(number_search())
