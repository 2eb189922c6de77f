"""Bins of numbers that nobody declared: what they keep of the raw tables' columns, without a release.

    DPSYNTH_DATA=FOLDER python benchmarks/default_bins.py [--rows 20000]

The columns of numbers of the five raw tables of `first_contact.py` that have more than 128 values between
their bounds. Bounds are what `dpsynth init --look` rounds them to, and ten times that. Each column is counted
in bins, with noise of 0.2 % of its rows in each, and drawn again from these counts. Total variation is as in
`first_contact.py`. One line for each way to cut bins: mean total variation, columns with a median more than a
tenth off, and columns with a total variation above 0.1.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from math import ceil, log10
from pathlib import Path

import numpy as np
import pandas as pd
from coded_tables import markdown
from first_contact import TABLES, brought, compared

import dpsynth.columns.bins
from dpsynth.columns.bins import equal_starts, growing_starts, grows
from dpsynth.columns.numeric import NumericCodec
from dpsynth.wings.owner.assess.value_guesses import rounded

Starts = Callable[[int, int, int], list[int]]
_NOISE = 0.002
_NO_COLUMNS = {"idcode", "zper", "dep_time", "arr_time", "sched_dep_time", "sched_arr_time"}
"""Numbers of persons, and times of the clock."""


def _equal(bins: int) -> Starts:
    return lambda low, high, _: [low + i * (high - low) // bins for i in range(bins)]


def _growing(bins: int, decades: int) -> Starts:
    def starts(low: int, high: int, unit: int) -> list[int]:
        del unit
        dpsynth.columns.bins._PART = 10**decades
        return growing_starts(low, high, bins)

    return starts


def _default(low: int, high: int, unit: int) -> list[int]:
    if grows(low / unit, high / unit):
        return _growing(32, 5)(low, high, unit)
    return equal_starts(low, high, 32)


WAYS: Mapping[str, Starts] = {
    "32 of one width": _equal(32),
    "32 of one width, ends alone": lambda low, high, _: equal_starts(low, high, 32),
    "32 that grow over five decades": _growing(32, 5),
    "48 that grow over five decades": _growing(48, 5),
    "64 that grow over five decades": _growing(64, 5),
    "32 that grow over four decades": _growing(32, 4),
    "left out": _default,
}


def columns(rows: int) -> Iterator[pd.Series]:
    """Columns of many numbers."""
    with tempfile.TemporaryDirectory() as work:
        for table in TABLES:
            frame = pd.read_csv(brought(table, Path(work), rows), low_memory=False)
            for name in frame.columns.difference(list(_NO_COLUMNS)):
                column = frame[name].dropna()
                if pd.api.types.is_numeric_dtype(column) and column.nunique() > 1:
                    yield column.rename(f"{table} {name}")


def kept(column: pd.Series, times: int, way: Starts, chance: np.random.Generator) -> tuple[float, float]:
    """Total variation, and how far off the median is, of a column drawn from its bins."""
    whole = bool((column % 1 == 0).all())
    low, high = (
        times * float(end)
        for end in rounded(*(Decimal(repr(float(e))) for e in (column.min(), column.max())))
    )
    decimals = 0 if whole else min(6, max(0, ceil(3 - log10((high - low) / 32))))
    unit = 10**decimals
    starts = way(round(low * unit), round(high * unit), unit)
    codec = NumericCodec((*map(float, starts), max(round(high * unit), starts[-1]) + 0.5), 0, integer=True)
    steps = np.rint(column.to_numpy(float) * unit)
    counts = np.bincount(codec.codes_of(steps), minlength=len(starts)).astype(float)
    noisy = np.maximum(counts + chance.normal(0, _NOISE * len(column), len(counts)), 0)
    drawn = codec.with_density(noisy, 1.0).decode(
        chance.choice(len(noisy), len(column), p=noisy / noisy.sum()), chance
    )
    found = compared(str(column.name), pd.Series(steps).map(str), pd.Series(np.asarray(drawn)).map(str))
    assert found.median_off is not None
    return found.distance, found.median_off


def main() -> None:
    """Print one line for each way to cut bins."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    chosen = parser.parse_args()
    real = list(columns(chosen.rows))
    lines = []
    for way, starts in WAYS.items():
        line = [way]
        for times in (1, 10):
            chance = np.random.default_rng(1)
            found = np.array([kept(column, times, starts, chance) for column in real if _many(column)])
            off, far = (found[:, 1] > 0.1).sum(), (found[:, 0] > 0.1).sum()
            line.append(f"{found[:, 0].mean():.3f} · {off} · {far}")
        lines.append(line)
    head = [f"{len([c for c in real if _many(c)])} columns", "rounded bounds", "ten times as far"]
    print(markdown(head, lines, words=1))


def _many(column: pd.Series) -> bool:
    """True if not every value between the bounds has a bin."""
    low, high = rounded(*(Decimal(repr(float(end))) for end in (column.min(), column.max())))
    return bool((column % 1 != 0).any()) or high - low >= 128


if __name__ == "__main__":
    main()
