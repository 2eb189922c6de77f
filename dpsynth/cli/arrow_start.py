"""The start of Arrow without pandas, which saves each command 0.6 s."""

from __future__ import annotations

import sys


class _NoPandas:
    """An import finder that hides pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse pandas and leave all other modules to the next finders."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name)


def let_arrow_start_without_pandas() -> None:
    """Make the first Arrow array while pandas is hidden.

    Arrow imports pandas at its first array, 0.6 s and 100 MB, only to recognise a Series;
    it looks once, and pandas works as ever afterwards (apache/arrow issue 34994).
    """
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas())  # type: ignore[arg-type]
    pa.array([0])
    sys.meta_path.pop(0)
