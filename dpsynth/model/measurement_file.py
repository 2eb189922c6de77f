"""The measurement file: all noisy numbers of a release, one row a cell, from which everything else was made.

Its metadata hold the public schema, the groups of merged values and the list of measurements, so that a
reader can reconstruct each marginal from this file alone.

Invariant: a file of another format, of other columns, or with numbers that don't fit its own list is never
half read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isfinite
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.columns.column import Column, domain_of, group_labels
from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import (
    EvidenceCounts,
    ExactTotal,
    Measurement,
    Observation,
    OwnAnswer,
    WeightedCounts,
)
from dpsynth.columns.public_schema import public_schema
from dpsynth.errors import DpsynthError

FORMAT, WITH_WEIGHTS = "dpsynth measurements 2", "dpsynth measurements 3"
"""The version of the file, in its metadata: without and with marginals of weights, which are no counts."""

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


def measurement_table(
    singles: Sequence[OwnAnswer],
    answers: Sequence[Measurement],
    columns: Sequence[Column],
    compression: Compression,
    weights: Sequence[WeightedCounts] = (),
) -> pa.Table:
    """All cells of all measurements, those of one measurement in the order of its flat array.

    ``codes`` and ``labels`` name the cell, one entry for each of ``columns``; both are empty in the
    measurement of the total. In ``answers`` a column with merged values is counted by group: its code is the
    group's number, its label names the group's values. A marginal of weights stands as it was drawn, in units
    of weight; ``weights`` are those of no column or a single one, over values.
    """
    for answer in (*singles, *weights, *answers):
        if not isinstance(answer, Measurement | ExactTotal):
            raise TypeError(
                f"{type(answer).__name__} is no answer of this release: it can't be written as one"
            )
    by_value = {c.name: c.labels for c in columns}
    by_group = {c.name: group_labels(c, compression) for c in columns if c.name in compression.groups}
    every = [*by_value.values(), *by_group.values()]
    ends = list(accumulate(map(len, every), initial=0))
    cells = [range(start, end) for start, end in pairwise(ends)]
    values = dict(zip(by_value, cells, strict=False))
    groups = values | dict(zip(by_group, cells[len(values) :], strict=True))
    all_labels = pa.array([label for labels in every for label in labels], pa.string())
    listed = [*((m, values) for m in (*singles, *weights)), *((m, groups) for m in answers)]
    weighted = [
        {"whole_weight": m.whole, "by": m.by} if isinstance(m, WeightedCounts) else {} for m, _ in listed
    ]
    numbered = [(m.drawn or m if isinstance(m, WeightedCounts) else m, by) for m, by in listed]
    batches = [_batch(number, m, coded_by, all_labels) for number, (m, coded_by) in enumerate(numbered)]
    summary = [
        {
            "columns": list(m.clique),
            "by_group": [c for c in m.clique if coded_by[c] is not values[c]],
            "shape": [len(coded_by[c]) for c in m.clique],
            "noise": m.noise,
            "scale": m.scale,
            "standard_deviation": m.stddev,
            **how,
        }
        for (m, coded_by), how in zip(numbered, weighted, strict=True)
    ]
    metadata = {
        "dpsynth.format": WITH_WEIGHTS if any(weighted) else FORMAT,
        "dpsynth.columns": json.dumps(public_schema(Layout.of(columns)), ensure_ascii=False),
        "dpsynth.groups": json.dumps(
            {c: compression.groups[c].tolist() for c in by_group}, ensure_ascii=False
        ),
        "dpsynth.measurements": json.dumps(summary, ensure_ascii=False),
    }
    return pa.Table.from_batches(batches, _SCHEMA).replace_schema_metadata(metadata)


def _batch(
    number: int, measurement: OwnAnswer, cells: Mapping[str, range], all_labels: pa.StringArray
) -> pa.RecordBatch:
    clique, values = measurement.clique, measurement.values.ravel()
    rows, axes = len(values), len(clique)
    shape = tuple(len(cells[name]) for name in clique)
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
    weights: Sequence[WeightedCounts] = (),
) -> None:
    """Write ``measurement_table`` as Parquet."""
    table = measurement_table(singles, answers, columns, compression, weights)
    pq.write_table(table, path, compression="zstd")


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of a release.

    Attributes:
        singles: the total and the one-way answers, over all values.
        answers: joint marginals, over the compressed domain.
        weights: marginals of rows that count by weights, in units of weight: no counts.
    """

    singles: tuple[Observation, ...]
    answers: tuple[Observation, ...]
    compression: Compression
    weights: tuple[Observation, ...] = ()


class UnusableMeasurements(DpsynthError):
    """A measurement file that is no evidence; the message gives the reason, as the end of a clause."""


def read_measurements(path: Path, columns: Sequence[Column]) -> Answered:
    """The answers of a release.

    Args:
        columns: the public schema that it must have had.

    Raises:
        UnusableMeasurements: the file is missing, damaged, of another format or of other columns.
    """
    try:
        table = pq.read_table(path, columns=["measurement", "value"])
    except OSError as error:
        raise UnusableMeasurements("its measurements.parquet can't be opened") from error
    except (pa.ArrowException, ValueError) as error:
        raise UnusableMeasurements("its measurements.parquet is damaged") from error
    metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    if metadata.get("dpsynth.format") not in (FORMAT, WITH_WEIGHTS):
        raise UnusableMeasurements("its measurements.parquet is of another version of dpsynth")
    try:
        if json.loads(metadata["dpsynth.columns"]) != json.loads(
            json.dumps(public_schema(Layout.of(columns)))
        ):
            raise UnusableMeasurements("it had other columns, or other values for them, in its config")
        compression = Compression({c: np.array(g) for c, g in json.loads(metadata["dpsynth.groups"]).items()})
        return _answered(table, json.loads(metadata["dpsynth.measurements"]), compression, domain_of(columns))
    except (KeyError, TypeError, ValueError) as error:
        raise UnusableMeasurements("its measurements.parquet is damaged") from error


def _answered(
    table: pa.Table, listed: Sequence[Mapping[str, object]], compression: Compression, domain: Domain
) -> Answered:
    number, values = (table[name].to_numpy().astype(np.int64) for name in ("measurement", "value"))
    cells = [int(np.prod(_shape(described), dtype=np.int64)) for described in listed]
    if not np.array_equal(number, np.repeat(np.arange(len(cells)), cells)):
        raise ValueError("cells are missing, or out of order")
    coarse = compression.coarse(domain)
    parts = np.split(values, np.cumsum(cells)[:-1])
    singles, answers, weights = list[EvidenceCounts](), list[EvidenceCounts](), list[EvidenceCounts]()
    for described, part in zip(listed, parts, strict=True):
        measurement = _measurement(described, part)
        by_group = [c for c in measurement.clique if c in compression.groups]
        # A single column is counted by values or, where a strategy measured it like a clique, by groups.
        alone = len(measurement.clique) < 2 and described["by_group"] == []
        shape = (domain if alone else coarse).shape(measurement.clique)
        if measurement.values.shape != shape or not (alone or described["by_group"] == by_group):
            raise ValueError("a marginal of another shape than its columns have")
        (weights if "whole_weight" in described else singles if alone else answers).append(measurement)
    return Answered(tuple(singles), tuple(answers), compression, tuple(weights))


def _shape(described: Mapping[str, object]) -> tuple[int, ...]:
    shape = described["shape"]
    if not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
        raise ValueError("a marginal has a shape")
    return tuple(shape)


def _measurement(described: Mapping[str, object], values: NDArray[np.int64]) -> EvidenceCounts:
    clique, noise, scale = described["columns"], described["noise"], described["scale"]
    if not isinstance(clique, list) or not isinstance(noise, str) or not isinstance(scale, float):
        raise ValueError("a measurement has columns, noise and a scale")
    counts = EvidenceCounts(tuple(clique), values.reshape(_shape(described)), noise, scale)
    if not isfinite(scale) or (counts.variance > 0) != (noise != "none"):
        raise ValueError("noise has a scale above 0")
    return counts
