"""Counts rounded to multiples of a base: to the nearest one, or without bias.

Rounding without bias takes a count x up to the next multiple with the probability (x mod base)/base, else
down, so that its expectation is x (Nargundkar and Saveland 1972). The choice follows from a hash of the
cell's name and its count: one cell of one release is rounded once, in whatever table it stands.

Invariant: a rounded count lies less than the base from the count, and multiples of the base stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Method = Literal["nearest", "unbiased"]
METHODS: tuple[Method, ...] = ("nearest", "unbiased")


def rounded(counts: NDArray[np.int64], base: int, method: Method, names: Iterable[str]) -> NDArray[np.int64]:
    """The counts as multiples of a base.

    Args:
        counts: int64[cells], none negative.
        base: at least 2.
        method: "nearest", half a base up; or "unbiased".
        names: one name a cell, different for different cells, and the release's name in each.

    >>> rounded(np.array([0, 2, 3, 7, 10]), 5, "nearest", "abcde").tolist()
    [0, 0, 5, 5, 10]
    """
    rest = counts % base
    if method == "nearest":
        up = 2 * rest >= base
    else:
        up = np.array(
            [
                _uniform(f"{name}\n{count}") * base < r
                for name, count, r in zip(names, counts, rest, strict=True)
            ],
            dtype=np.bool_,
        )
    return counts - rest + base * up


def _uniform(text: str) -> float:
    """A number from 0 to below 1 that follows from a text."""
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2.0**48
