"""What the values of a column may be, as numbered places.

Each kind of column has a file of its own: ``numeric_places``, ``category_places``,
``calendar_places``, ``duration_places``, ``text_places``.

Invariant: places are declared or were paid for, never read off the table, and every text has
an answer: a place, or NOWHERE. Encoding never raises on a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

NOWHERE = -1
"""Code of a text that is no value of the column: empty, malformed or unknown."""

Codes = NDArray[np.int64]


def drawn_between(
    low: NDArray[np.int64], high: NDArray[np.int64], codes: Codes, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A uniform whole number from each code's first to its last, int64[codes].

    Args:
        low: int64[places], the first number of each place.
        high: int64[places], the last.
        codes: none negative.
        rng: of post-processing.
    """
    # Bounds of no numbers at all are refused.
    return rng.integers(low[codes], high[codes] + 1) if len(codes) else low[codes]


class Places(Protocol):
    """The places of one kind of column."""

    @property
    def labels(self) -> tuple[str, ...]:
        """One public name a place, for people and for tables of statistics."""
        ...

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of decoded values."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether the order of the places means something."""
        ...

    @property
    def facts(self) -> Mapping[str, object]:
        """What the public schema says of the values beside their type and labels, as JSON values."""
        ...

    @property
    def centres(self) -> NDArray[np.float64] | None:
        """Expected decoded value of each place, or None where values are not numbers."""
        ...

    @property
    def half_widths(self) -> NDArray[np.float64] | None:
        """How far a value of a place can lie from its centre, or None likewise."""
        ...

    def encode(self, texts: pa.StringArray) -> Codes:
        """Place of each stripped text, NOWHERE where there is none."""
        ...

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A value for each code (none negative), of type ``arrow_type``."""
        ...

    def text(self, values: pa.Array) -> pa.StringArray:
        """Decoded values as they are written in a CSV file; null stays null."""
        ...
