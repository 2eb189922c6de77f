"""The result of a finished release, for Python callers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.diagnostics import DataWarning
from dpsynth.errors import DpsynthError
from dpsynth.publish.statistics import StatisticTable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Release:
    """A finished release. All of it may be shared, except ``folder / "private"``.

    Attributes:
        release_id: the permanent name of the release.
        folder: the bundle on disk, with ``public`` and ``private`` inside.
        guarantee: the guarantee composed of the journal's events.
        table: the synthetic rows, typed, under the original column names.
        statistics: tables with error bars, by title ("age", "age and sex", "income by city").
        warnings: signs in the noisy single columns that something was misread.
    """

    release_id: str
    folder: Path
    guarantee: Guarantee
    table: pa.Table
    statistics: Mapping[str, StatisticTable]
    warnings: tuple[DataWarning, ...] = ()

    @cached_property
    def synthetic(self) -> pd.DataFrame:
        """The synthetic rows as a pandas table; nullable types if cells may be missing.

        Dates are datetime64, ordered categories an ordered Categorical, times of day datetime.time.
        """
        import pandas as pd

        nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        return self.table.to_pandas(types_mapper=nullable.get, date_as_object=False)

    def save(self, outputs: str | Path) -> Path:
        """Copy the whole bundle to ``outputs/<release>/<release id>``, unless it is there.

        Returns:
            The bundle's folder under ``outputs``.

        Raises:
            DpsynthError: another file or folder has that name.
        """
        target = Path(outputs) / self.folder.parent.name / self.folder.name
        if target.exists():
            if target.samefile(self.folder):
                return target
            raise DpsynthError(f"{target} exists already; a bundle is never overwritten.")
        shutil.copytree(self.folder, target)
        return target
