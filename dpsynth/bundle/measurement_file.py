"""The measurement file: all noisy numbers, one row a cell, from which everything else was made.

Its metadata hold the public schema, the groups of merged values and the list of measurements, so that a
reader can reconstruct each marginal from this file alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth.columns.column import Column
from dpsynth.columns.compression import Compression
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import ExactTotal, Measurement, OwnAnswer
from dpsynth.columns.public_schema import public_schema
from dpsynth.statistics.merged_values import group_labels
from dpsynth.strategy.evidence.measurement_reading import FORMAT

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


@dataclass(frozen=True)
class _Cells:
    """The cells of a column in a marginal: its values, or its groups of values.

    Attributes:
        start: position of their first label in the list of all labels.
        size: number of cells.
    """

    start: int
    size: int


def measurement_table(
    singles: Sequence[OwnAnswer],
    answers: Sequence[Measurement],
    columns: Sequence[Column],
    compression: Compression,
) -> pa.Table:
    """All cells of all measurements, those of one measurement in the order of its flat array.

    ``codes`` and ``labels`` name the cell, one entry for each of ``columns``; both are empty
    in the measurement of the total. In ``answers`` a column with merged values is counted by
    group: its code is the group's number, its label names the group's values.
    """
    for answer in (*singles, *answers):
        if not isinstance(answer, Measurement | ExactTotal):
            raise TypeError(
                f"{type(answer).__name__} is no answer of this release: it can't be written as one"
            )
    by_value = {c.name: c.labels for c in columns}
    by_group = {c.name: group_labels(c, compression) for c in columns if c.name in compression.groups}
    every = [*by_value.values(), *by_group.values()]
    starts = np.cumsum([0, *map(len, every)]).tolist()
    cells = [_Cells(start, len(labels)) for start, labels in zip(starts, every, strict=False)]
    values = dict(zip(by_value, cells, strict=False))
    groups = values | dict(zip(by_group, cells[len(values) :], strict=True))
    all_labels = pa.array([label for labels in every for label in labels], pa.string())
    numbered = [(m, values) for m in singles] + [(m, groups) for m in answers]
    batches = [_batch(number, m, coded_by, all_labels) for number, (m, coded_by) in enumerate(numbered)]
    summary = [
        {
            "columns": list(m.clique),
            "by_group": [c for c in m.clique if coded_by[c] is not values[c]],
            "shape": [coded_by[c].size for c in m.clique],
            "noise": m.noise,
            "scale": m.scale,
            "standard_deviation": m.stddev,
        }
        for m, coded_by in numbered
    ]
    metadata = {
        "dpsynth.format": FORMAT,
        "dpsynth.columns": json.dumps(public_schema(Layout.of(columns)), ensure_ascii=False),
        "dpsynth.groups": json.dumps(
            {c: compression.groups[c].tolist() for c in by_group}, ensure_ascii=False
        ),
        "dpsynth.measurements": json.dumps(summary, ensure_ascii=False),
    }
    return pa.Table.from_batches(batches, _SCHEMA).replace_schema_metadata(metadata)


def _batch(
    number: int, measurement: OwnAnswer, cells: Mapping[str, _Cells], all_labels: pa.StringArray
) -> pa.RecordBatch:
    clique, values = measurement.clique, measurement.values.ravel()
    rows, axes = len(values), len(clique)
    shape = tuple(cells[name].size for name in clique)
    codes = np.indices(shape).reshape(axes, rows).T if axes else np.empty((rows, 0), np.int64)
    offsets = pa.array(np.arange(0, rows * axes + 1, axes) if axes else np.zeros(rows + 1), pa.int32())
    members = pa.array(np.tile(np.arange(axes), rows), pa.int64())
    first = np.array([cells[name].start for name in clique], np.int64)

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


def write_measurements(
    path: Path,
    singles: Sequence[OwnAnswer],
    answers: Sequence[Measurement],
    columns: Sequence[Column],
    compression: Compression,
) -> None:
    """Write ``measurement_table`` as Parquet."""
    pq.write_table(measurement_table(singles, answers, columns, compression), path, compression="zstd")
