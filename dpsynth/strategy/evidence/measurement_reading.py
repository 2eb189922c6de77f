"""Reader of an earlier bundle's measurement file.

Invariant: the result is exactly the input of ``dpsynth.bundle.measurement_file``, or there is an error: a
file of another format, of other columns, or with numbers that don't fit its own list is never half read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.compression import Compression
from dpsynth.columns.domain import Domain
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import EvidenceCounts, noise_variance
from dpsynth.columns.public_schema import public_schema
from dpsynth.errors import DpsynthError
from dpsynth.strategy.evidence.evidence import Answered

FORMAT = "dpsynth measurements 2"
"""The version of the file, in its metadata."""


class UnusableMeasurements(DpsynthError):
    """A measurement file that is no evidence; the message gives the reason, as the end of a clause."""


def read_measurements(path: Path, columns: Sequence[Column]) -> Answered:
    """The answers of a release.

    Args:
        path: its ``measurements.parquet``.
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
    if metadata.get("dpsynth.format") != FORMAT:
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
    cells = [_cells(described) for described in listed]
    if not np.array_equal(number, np.repeat(np.arange(len(cells)), cells)):
        raise ValueError("cells are missing, or out of order")
    coarse = compression.coarse(domain)
    parts = np.split(values, np.cumsum(cells)[:-1])
    singles, answers = list[EvidenceCounts](), list[EvidenceCounts]()
    for described, part in zip(listed, parts, strict=True):
        measurement = _measurement(described, part)
        by_group = [c for c in measurement.clique if c in compression.groups]
        # A single column is counted by values or, where a strategy measured it like a clique, by groups.
        alone = len(measurement.clique) < 2 and described["by_group"] == []
        shape = (domain if alone else coarse).shape(measurement.clique)
        if measurement.values.shape != shape or not (alone or described["by_group"] == by_group):
            raise ValueError("a marginal of another shape than its columns have")
        (singles if alone else answers).append(measurement)
    return Answered(tuple(singles), tuple(answers), compression)


def _shape(described: Mapping[str, object]) -> tuple[int, ...]:
    shape = described["shape"]
    if not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
        raise ValueError("a marginal has a shape")
    return tuple(shape)


def _cells(described: Mapping[str, object]) -> int:
    return int(np.prod(_shape(described), dtype=np.int64))


def _measurement(described: Mapping[str, object], values: NDArray[np.int64]) -> EvidenceCounts:
    clique, noise, scale = described["columns"], described["noise"], described["scale"]
    if not isinstance(clique, list) or not isinstance(noise, str) or not isinstance(scale, float):
        raise ValueError("a measurement has columns, noise and a scale")
    if not isfinite(scale) or (noise_variance(noise, scale) > 0) != (noise != "none"):
        raise ValueError("noise has a scale above 0")
    return EvidenceCounts(tuple(clique), values.reshape(_shape(described)), noise, scale)
