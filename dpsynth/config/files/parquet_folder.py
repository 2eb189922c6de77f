"""Parquet files of one table: a file alone, or all files of a folder, partitioned by names of folders.

Invariant: files come in the order of their paths. What a path below the folder says may be a cell of the
table (``city=Paris/part-0.parquet``), so no message quotes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import parquet

from dpsynth.config.files.place import Place, arrow_input, files_below

_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder whose rows have no value."""


@dataclass(frozen=True)
class ParquetPart:
    """A file of a table.

    Attributes:
        path: the file.
        same: columns that the folders' names give, with the cell that all rows of the file have.
    """

    path: Place
    same: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns in the file, and those that folders give, which are texts."""
        with arrow_input(self.path) as file:
            found = parquet.read_schema(file)
        for name in self.same:
            if name not in found.names:
                found = found.append(pa.field(name, pa.string()))
        return found


def parquet_parts(path: Place) -> Iterator[ParquetPart]:
    """The files of a table: the file itself, or those of a folder, by path.

    Names that begin with a dot or an underscore are no tables: programs leave such beside them.

    Raises:
        OSError: the folder has none.
    """
    if not path.is_dir():
        yield ParquetPart(path)
        return
    found = 0
    for file, inside in sorted(files_below(path), key=lambda below: below[1]):
        if not inside[-1].endswith(".parquet") or any(part.startswith((".", "_")) for part in inside):
            continue
        keys = (part.partition("=") for part in inside[:-1] if "=" in part)
        same = {unquote(key): None if value == _NOTHING else unquote(value) for key, _, value in keys}
        found += 1
        yield ParquetPart(file, same)
    if not found:
        raise OSError("no Parquet file")
