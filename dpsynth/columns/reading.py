"""Readings: how a codec takes a text.

Invariant: a reading follows from the text and the declaration alone. It changes no code; it tells codes that
several kinds of texts share.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Readings = NDArray[np.int8]
"""A ``Reading`` for each text, int8[texts]."""


class Reading(IntEnum):
    """The outcome of a codec's reading of a text."""

    VALUE = 0
    """As the value that it says."""
    BELOW = 1
    """As the first value, which it lies below."""
    ABOVE = 2
    """As the last value, which it lies above."""
    OTHER = 3
    """As one of all other values."""
    NONE = 4
    """As no value of the column."""


def clipped(numbers: NDArray[np.float64], low: float, high: float) -> Readings:
    """Readings of numbers, of which NaN is no value.

    >>> clipped(np.array([1.0, 2.0, 9.0, np.nan]), 2.0, 5.0).tolist()
    [1, 0, 2, 4]
    """
    choices = [np.isnan(numbers), numbers < low, numbers > high]
    readings = [Reading.NONE, Reading.BELOW, Reading.ABOVE]
    return np.select(choices, readings, Reading.VALUE).astype(np.int8)
