"""Exact coins and dice on the operating system's cryptographic generator.

Invariant: a draw has exactly the rational probability asked for. There is no seed. Draws are by rejection, so
their number of steps depends on the random bits, and never on what they are drawn for.
"""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

LARGEST_DIE = 2**62
_BITS = 64


def dice(sides: int, number: int) -> NDArray[np.int64]:
    """Independent uniform integers in 0..sides-1.

    A 64-bit word is cut to the bits that ``sides - 1`` needs, and drawn again if it is too large: so each
    side has the same probability, whatever their number.

    Raises:
        ValueError: there is no such die.
    """
    if not 1 <= sides <= LARGEST_DIE:
        raise ValueError("a die has 1 to 2^62 sides")
    bits = (sides - 1).bit_length()
    found = np.zeros(number, dtype=np.int64)
    if not bits:
        return found
    left = np.arange(number)
    while left.size:
        words = np.frombuffer(os.urandom(8 * left.size), dtype=np.uint64) >> np.uint64(_BITS - bits)
        found[left] = words.astype(np.int64)
        left = left[found[left] >= sides]
    return found


def coins(heads: Fraction, number: int) -> NDArray[np.bool_]:
    """Independent coins that come up True with exactly this probability.

    Raises:
        ValueError: no probability, or its denominator is above 2^62.
    """
    if not 0 <= heads <= 1:
        raise ValueError("a probability lies between 0 and 1")
    return np.asarray(dice(heads.denominator, number) < heads.numerator)
