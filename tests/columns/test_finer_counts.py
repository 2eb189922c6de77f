"""Pieces of bins: every step lies in one, within its bin."""

import numpy as np
import pytest

from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import Pieces

STEPS = NumericCodec((0.0, 3.0, 4.0, 14.0), 0, integer=True).steps


def test_pieces_cover_each_bin_and_no_piece_lies_in_two():
    pieces = Pieces.of(STEPS, np.array([2, 5, 4]))
    assert pieces.first == (0, 1, 3, 4, 6, 9, 12)
    assert pieces.last(STEPS).tolist() == [0, 2, 3, 5, 8, 11, 14]
    assert pieces.bin_of(STEPS).tolist() == [0, 0, 1, 2, 2, 2, 2]
    assert pieces.bins == 3


def test_no_bin_has_more_pieces_than_steps_nor_fewer_than_one():
    assert len(Pieces.of(STEPS, np.array([99, 99, 99])).first) == STEPS.last + 1
    assert Pieces.of(STEPS, np.array([0, 0, 0])).first == tuple(STEPS.low.tolist())


def test_bins_narrower_than_a_step_have_a_piece_in_common():
    """Amounts up to 10^10 in cents have steps of tens of units."""
    steps = NumericCodec((0.0, 0.01, 5.0, 90.0, 1e10), 2, integer=False).steps
    assert steps.low.tolist() == [0, 0, 0, 9] and steps.unit == 10
    pieces = Pieces.of(steps, np.array([1, 1, 4, 4]))
    assert pieces.first[:5] == (0, 2, 4, 6, 9) and np.diff(pieces.first).min() > 0
    assert pieces.bin_of(steps)[0] == 2 and (pieces.last(steps) >= pieces.array).all()


def test_other_pieces_have_another_digest():
    assert Pieces((0, 2), 1).digest != Pieces((0, 3), 1).digest


@pytest.mark.parametrize("first", [(), (1,), (0, 2, 2), (0, 3, 1)])
def test_pieces_that_do_not_rise_from_nought_are_refused(first):
    with pytest.raises(ValueError, match="rise"):
        Pieces(first, 1)
