"""Columns made to look like those that bins of one width serve badly, and how well bins tell of a column."""

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.numeric import NumericCodec

ROWS = 40_000


def gains(rng: np.random.Generator) -> NDArray[np.float64]:
    """Capital gains: 92 in 100 none, a few favoured amounts, a cap."""
    some = rng.choice(
        [2174.0, 3103, 5178, 7298, 7688, 15024, 99999], ROWS, p=[0.1, 0.1, 0.1, 0.3, 0.2, 0.15, 0.05]
    )
    return np.where(rng.random(ROWS) < 0.92, 0.0, some)


def spending(rng: np.random.Generator) -> NDArray[np.float64]:
    """Spending in cents and more: a quarter none, then a heavy tail."""
    return np.where(rng.random(ROWS) < 0.25, 0.0, rng.lognormal(3.6, 1.6, ROWS))


def hours(rng: np.random.Generator) -> NDArray[np.float64]:
    """Hours a week: half of them 40."""
    return np.where(rng.random(ROWS) < 0.5, 40.0, np.clip(np.rint(rng.normal(40, 12, ROWS)), 1, 99))


def years(rng: np.random.Generator) -> NDArray[np.float64]:
    """Years of birth: a narrow range far from zero."""
    return np.rint(1930 + 70 * rng.beta(2, 2, ROWS))


def debts(rng: np.random.Generator) -> NDArray[np.float64]:
    """Numbers below and above zero."""
    return np.rint(rng.normal(-300, 900, ROWS))


COLUMNS = {"gains": gains, "spending": spending, "hours": hours, "years": years, "debts": debts}
DECIMALS = {"spending": 2}


def distance(values: NDArray[np.float64], codec: NumericCodec) -> float:
    """Kolmogorov-Smirnov distance of a column and what its bins, counted exactly, decode to."""
    codes = np.sort(codec.codes_of(values))
    drawn = np.sort(np.asarray(codec.decode(codes, np.random.default_rng(0)), dtype=np.float64))
    at = np.unique(values)
    return max(
        float(np.abs(np.searchsorted(np.sort(values), at, side=s) - np.searchsorted(drawn, at, side=s)).max())
        for s in ("left", "right")
    ) / len(values)
