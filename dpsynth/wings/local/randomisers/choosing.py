"""The choice of a randomiser for a domain, by predicted variance."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from dpsynth.wings.local.randomisers.direct import TWO, DirectResponse
from dpsynth.wings.local.randomisers.hashing import LocalHashing
from dpsynth.wings.local.randomisers.randomiser import Randomiser, mean_variance
from dpsynth.wings.local.randomisers.unary import UnaryEncoding

UNARY_CELLS = 1024
"""Most cells of a unary encoding that is chosen: it has a bit for each, and local hashing is as accurate."""


@cache
def best(cells: int, odds: Fraction) -> Randomiser:
    """The randomiser of least predicted variance within odds; the one with shorter reports among equals.

    The mean variance over all cells doesn't depend on the data, so it is known beforehand.
    """
    found: list[Randomiser] = [DirectResponse.within(cells, odds), LocalHashing.within(cells, odds)]
    if cells <= UNARY_CELLS:
        found.append(UnaryEncoding.within(cells, odds))
    return min(found, key=mean_variance)


def protocol(name: str, cells: int, odds: Fraction, gamma: Fraction | None = None) -> Randomiser:
    """The randomiser that a config names, for a number of cells.

    Args:
        name: "auto", "warner", "two_coin", "k_ary", "unary" or "hashing".
        cells: number of cells.
        odds: the largest odds allowed; "two_coin", and "warner" with a gamma, have their own.
        gamma: for "warner": the truth with probability 1/2 + gamma; None: the largest within the odds.

    Raises:
        ValueError: the protocol is for two cells, and there are more.
    """
    if name in ("warner", "two_coin") and cells != TWO:
        raise ValueError(f"{name} is for two cells")
    if name == "two_coin":
        return DirectResponse.two_coin()
    if name == "warner":
        largest = (odds - 1) / (2 * (odds + 1))
        return DirectResponse.warner(largest if gamma is None else gamma)
    if name == "k_ary":
        return DirectResponse.within(cells, odds)
    if name == "unary":
        return UnaryEncoding.within(cells, odds)
    return LocalHashing.within(cells, odds) if name == "hashing" else best(cells, odds)
