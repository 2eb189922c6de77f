"""Moments as the numbers that formats write and read: years, months, days, hours ...

Moments are numpy's datetime64; times of day are moments of 1970-01-01.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Moments = NDArray[np.datetime64]
Numbers = NDArray[np.int64]

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August",
          "September", "October", "November", "December")  # fmt: skip


def whole_numbers(texts: dict[str, pa.StringArray], name: str, absent: int) -> Numbers:
    """A field as numbers; ``absent`` where the text or the pattern lacks it."""
    if name not in texts:
        return np.array([absent], dtype=np.int64)
    # The fields of a text that does not match are empty, and so are those that it leaves out.
    digits = pc.replace_with_mask(texts[name], pc.equal(texts[name], ""), pa.scalar(str(absent)))
    return np.asarray(pc.cast(digits, pa.int64()))


def months_of(names: pa.StringArray) -> Numbers:
    """1 to 12, or 0 for a word that is no month."""
    months = [name.lower() for name in MONTHS]
    lower = pc.utf8_lower(names)
    long = pc.index_in(lower, pa.array(months))
    short = pc.index_in(lower, pa.array([name[:3] for name in months]))
    spot = pc.fill_null(pc.coalesce(long, short), -1)
    return np.asarray(spot.to_numpy(zero_copy_only=False), dtype=np.int64) + 1


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of moments by format code; intermediate fields are computed once."""

    moments: Moments

    @cached_property
    def _years(self) -> Moments:
        return self._months.astype("M8[Y]")

    @cached_property
    def _months(self) -> Moments:
        return self._days.astype("M8[M]")

    @cached_property
    def _days(self) -> Moments:
        return self.moments.astype("M8[D]")

    @cached_property
    def _seconds(self) -> Numbers:
        return (self.moments.astype("M8[s]") - self._days.astype("M8[s]")).astype(np.int64)

    def of(self, code: str) -> Numbers:
        """The number of a code for each moment."""
        if code in ("%Y", "%y"):
            year = self._years.astype(np.int64) + 1970
            return year % 100 if code == "%y" else year
        if code in ("%m", "%b", "%B"):
            return self._months.astype(np.int64) % 12 + 1
        if code == "%d":
            return (self._days - self._months.astype("M8[D]")).astype(np.int64) + 1
        if code == "%f":
            return (self.moments - self.moments.astype("M8[s]")).astype(np.int64)
        if code in ("%H", "%I", "%p"):
            hour = self._seconds // 3600
            return hour if code == "%H" else hour // 12 if code == "%p" else (hour + 11) % 12 + 1
        return self._seconds // 60 % 60 if code == "%M" else self._seconds % 60
