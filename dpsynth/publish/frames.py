"""Tables as pandas frames, for notebooks and for recipients.

Invariant: a missing cell stays missing, whatever the column's type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def frame_of(table: pa.Table) -> pd.DataFrame:
    """A synthetic table as a pandas frame; nullable types if cells may be missing.

    Dates are datetime64, ordered categories an ordered Categorical, times of day datetime.time.
    """
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get, date_as_object=False)
