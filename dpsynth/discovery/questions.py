"""What a search may ask of a curator.

Invariant: the answers are noisy and paid for; whatever is made of them is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.codec import Codec
from dpsynth.domain.column import Column


class Door(Protocol):
    """The part of a curator that a search may ask. Prices are in its measure."""

    @property
    def noise(self) -> str:
        """Noise of counts: "gaussian" or "laplace"."""
        ...

    def counts_under(self, column: Column, codec: Codec, price: Fraction) -> tuple[NDArray[np.int64], float]:
        """Noisy rows of each cell of a public partition, int64[cells], and the noise's standard deviation.

        Unusable and missing cells count nowhere.
        """
        ...

    def medians(
        self, column: Column, cuts: NDArray[np.float64], runs: Sequence[tuple[int, int]], price: Fraction
    ) -> NDArray[np.int64]:
        """For each run the index of a cut near the median of the values in it, int64[runs].

        Args:
            column: a numeric one.
            cuts: public candidates, rising.
            runs: index ranges [start, stop) of cuts: values from cuts[start] to cuts[stop - 1]; no two
                runs share a value.
            price: of all runs together.
        """
        ...

    def values_of(
        self, column: Column, price: Fraction, delta: Fraction, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Values that many units have, sorted, besides those known; by partition selection."""
        ...
