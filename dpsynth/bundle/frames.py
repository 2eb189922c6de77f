"""Tables as frames of the library that their reader uses: pandas, Polars or pyarrow.

Invariant: a missing cell stays missing, whatever the column's type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

Library = Literal["pandas", "polars", "pyarrow"]
"""Libraries whose tables come back as their own; all others get frames of pandas."""


def frame_of(table: pa.Table, library: Library = "pandas") -> pd.DataFrame:
    """A table as a frame of a library; by its annotation, one of pandas.

    In pandas types are nullable if cells may be missing, dates are datetime64, ordered categories an ordered
    Categorical, times of day datetime.time.
    """
    if library == "pyarrow":
        return cast("pd.DataFrame", table)
    if library == "polars":
        import polars  # type: ignore[import-not-found,unused-ignore]

        return cast("pd.DataFrame", polars.from_arrow(table))
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get, date_as_object=False)
