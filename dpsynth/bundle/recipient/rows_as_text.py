"""The rows of a bundle's files as texts, and the synthetic rows as codes.

Invariant: texts are those before ``neutralise``, whichever file they come from.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.bundle.csv_files import restore
from dpsynth.bundle.manifest import BundleRefused
from dpsynth.bundle.recipient.opened import OpenedBundle
from dpsynth.bundle.row_files import table_names
from dpsynth.columns.column import codes_of, each_once

Texts = Mapping[str, pa.StringArray]


def csv_texts(path: Path) -> Texts:
    """The columns of a CSV file by name, all as texts; by its ending it is compressed.

    Raises:
        OSError, pa.ArrowException: it can't be read.
    """
    # An empty text in quotes and one without are the same.
    header = pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(autogenerate_column_names=True, block_size=1 << 26),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types={f"f{number}": pa.string() for number in range(_width(path))},
            strings_can_be_null=False,
        ),
    )
    names = [column[0].as_py() for column in header.columns]
    cells = [restore(column.combine_chunks().slice(1)) for column in header.columns]
    return dict(zip(restore(pa.array(names, pa.string())).to_pylist(), cells, strict=True))


def _width(path: Path) -> int:
    with pa.input_stream(str(path)) as file, io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
        return text.readline().count(",") + 1


def synthetic_texts(bundle: OpenedBundle) -> Texts:
    """The synthetic table as it stands, or would stand, in synthetic.csv.

    Raises:
        BundleRefused: it can't be read.
    """
    folder = bundle.folder
    try:
        # A Parquet file or folder is the last.
        path = folder / table_names(sorted(found.name for found in folder.iterdir()))[-1]
        return bundle.layout.texts(pq.read_table(path)) if path.suffix == ".parquet" else csv_texts(path)
    except (OSError, LookupError, ValueError, pa.ArrowException) as error:
        raise BundleRefused(f"{folder}: the synthetic table is damaged ({type(error).__name__}).") from None


def synthetic_codes(bundle: OpenedBundle) -> Mapping[str, NDArray[np.unsignedinteger]]:
    """The codes of the synthetic rows, unsigned[rows] for each column that the model has.

    Raises:
        BundleRefused: the synthetic table can't be read, or lacks a column.
    """
    texts = synthetic_texts(bundle)
    columns = bundle.layout.columns
    missing = [column.source for column in columns if column.source not in texts]
    if missing:
        raise BundleRefused(f"{bundle.folder}: the synthetic table has no column {missing[0]}.")
    return {column.name: each_once(partial(codes_of, column), texts[column.source]) for column in columns}
