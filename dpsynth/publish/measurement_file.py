"""The file of all noisy numbers, one row a cell: what everything else was made from.

Its metadata hold the public schema and the list of measurements, so that a stranger can
put each marginal together again with nothing but this file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth.domain.column import Column, domain_of
from dpsynth.domain.measurement import Measurement
from dpsynth.publish.public_schema import public_schema

FORMAT = "dpsynth measurements 1"

_SCHEMA = pa.schema(
    [
        pa.field("measurement", pa.int32(), nullable=False),
        pa.field("columns", pa.list_(pa.string()), nullable=False),
        pa.field("codes", pa.list_(pa.int32()), nullable=False),
        pa.field("labels", pa.list_(pa.string()), nullable=False),
        pa.field("value", pa.int64(), nullable=False),
        pa.field("noise", pa.string(), nullable=False),
        pa.field("scale", pa.float64(), nullable=False),
        pa.field("standard_deviation", pa.float64(), nullable=False),
    ]
)


def measurement_table(measurements: Sequence[Measurement], columns: Sequence[Column]) -> pa.Table:
    """All cells of all measurements, those of one measurement in the order of its flat array.

    ``codes`` and ``labels`` name the cell, one entry for each of ``columns``; both are empty
    in the measurement of the total.
    """
    sizes = domain_of(columns).sizes
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()])[:-1], strict=True))
    all_labels = pa.array([label for column in columns for label in column.labels], pa.string())
    batches = [_cells(number, m, sizes, starts, all_labels) for number, m in enumerate(measurements)]
    summary = [
        {
            "columns": list(m.clique),
            "shape": [sizes[name] for name in m.clique],
            "noise": m.noise,
            "scale": m.scale,
            "standard_deviation": m.stddev,
        }
        for m in measurements
    ]
    metadata = {
        "dpsynth.format": FORMAT,
        "dpsynth.columns": json.dumps(public_schema(columns), ensure_ascii=False),
        "dpsynth.measurements": json.dumps(summary, ensure_ascii=False),
    }
    return pa.Table.from_batches(batches, _SCHEMA).replace_schema_metadata(metadata)


def _cells(
    number: int,
    measurement: Measurement,
    sizes: Mapping[str, int],
    starts: Mapping[str, int],
    all_labels: pa.StringArray,
) -> pa.RecordBatch:
    clique, values = measurement.clique, measurement.values.ravel()
    rows, ways = len(values), len(clique)
    shape = tuple(sizes[name] for name in clique)
    codes = np.indices(shape).reshape(ways, rows).T if ways else np.empty((rows, 0), np.int64)
    offsets = pa.array(np.arange(0, rows * ways + 1, ways) if ways else np.zeros(rows + 1), pa.int32())
    members = pa.array(np.tile(np.arange(ways), rows), pa.int64())
    first = np.array([starts[name] for name in clique], np.int64)

    def lists(flat: pa.Array) -> pa.ListArray:
        return pa.ListArray.from_arrays(offsets, flat)

    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(rows, number, np.int32)),
            lists(pa.array(list(clique), pa.string()).take(members)),
            lists(pa.array(codes.ravel().astype(np.int32))),
            lists(all_labels.take(pa.array((codes + first).ravel(), pa.int64()))),
            pa.array(values, pa.int64()),
            pa.repeat(pa.scalar(measurement.noise, pa.string()), rows),
            pa.array(np.full(rows, measurement.scale, np.float64)),
            pa.array(np.full(rows, measurement.stddev, np.float64)),
        ],
        schema=_SCHEMA,
    )


def write_measurements(path: Path, measurements: Sequence[Measurement], columns: Sequence[Column]) -> None:
    """Write ``measurement_table`` as Parquet."""
    pq.write_table(measurement_table(measurements, columns), path, compression="zstd")
