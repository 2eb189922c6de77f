"""The public half of a bundle: its files, and the commit that publishes them.

Invariant: a bundle is published whole or not at all. Files are written and synced in a partial folder, the
manifest last; one rename then publishes them all. Until ``commit`` only the owner can enter the partial
folder.

The measurement file: all noisy numbers, one row a cell, from which everything else was made.

Its metadata hold the public schema, the groups of merged values and the list of measurements, so that a
reader can reconstruct each marginal from this file alone.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsynth.bundle import publication as audiences
from dpsynth.bundle.csv_files import number_texts, write_csv
from dpsynth.bundle.manifest import MANIFEST, Manifest, manifest_text
from dpsynth.bundle.pages import readme_text, report_html
from dpsynth.bundle.publication import Publication
from dpsynth.bundle.report_source import REPORT, report_source
from dpsynth.bundle.row_source import save_row_source
from dpsynth.bundle.signature import CHECKSUMS, SIGNATURE, SigningKey, checksums_text
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Compression
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import ExactTotal, Measurement, OwnAnswer
from dpsynth.columns.public_schema import public_schema
from dpsynth.errors import DpsynthError
from dpsynth.model import save
from dpsynth.statistics import exam, finer_quantiles
from dpsynth.statistics.structure_tree import group_labels
from dpsynth.statistics.summed_means import sums_file
from dpsynth.strategy.reused_answers import FORMAT
from dpsynth.wing import Point

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


__all__ = ["MANIFEST", "Publication", "commit", "write_public"]

CATALOGUES: Point[Mapping[str, Callable[[Manifest], str]]] = Point("catalogues")
"""Descriptions of a bundle for catalogues of data: the text of each file, by its name, from the manifest."""


def write_public(folder: Path, publication: Publication, key: SigningKey | None = None) -> None:
    """Write every public file into a folder that holds the synthetic table, and sync each.

    The manifest comes after the files that it lists, then the checksums of all of them, then their signature.

    Args:
        folder: a folder with the files of the synthetic table, and no others.
        publication: the content; ``signed_by`` is the key's public half.
        key: the key that signs the bundle; None leaves it unsigned.

    Raises:
        DpsynthError: the folder has other files, or lacks one.
    """
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    if found != set(publication.synthetic.names):
        raise DpsynthError(
            f"The folder {folder.name} must hold the synthetic table, and nothing else, before a release is "
            "written into it."
        )
    names = list(_write_tables(folder, publication))
    catalogues = CATALOGUES.filled() or {}
    (folder / "README.md").write_text(readme_text(publication, catalogues), encoding="utf-8", newline="\n")
    manifest = Manifest.of(publication)
    source = report_source(folder, manifest, [*names, *catalogues])
    (folder / REPORT).write_text(report_html(source), encoding="utf-8", newline="\n")
    # A large table is read once for its checksum.
    described = manifest.listing(folder, [*names, REPORT, "README.md"])
    for name, text_of in catalogues.items():
        (folder / name).write_text(text_of(described), encoding="utf-8", newline="\n")
    whole = described.listing(folder, list(catalogues))
    for name in whole.files:
        _sync(folder / name)
    _write_text(folder / MANIFEST, manifest_text(whole.values))
    listed = {name: file.sha256 for name, file in whole.listing(folder, [MANIFEST]).files.items()}
    checksums = checksums_text(listed)
    _write_text(folder / CHECKSUMS, checksums)
    if key is not None:
        _write_text(folder / SIGNATURE, key.signature_text(checksums.encode()))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
    _sync(path)


def _write_tables(folder: Path, publication: Publication) -> Iterator[str]:
    """Write the data files beside the synthetic table, and yield the name of each."""
    yield from publication.synthetic.names
    write_measurements(
        folder / "measurements.parquet",
        publication.singles,
        publication.answers,
        publication.columns,
        publication.compression,
    )
    yield "measurements.parquet"
    for told in () if publication.audience is None else publication.audience.earlier:
        file = audiences.file_of(told.audience)
        write_measurements(folder / file, (), told.answers, publication.columns, told.compression)
        yield file
    if publication.sums:
        content = sums_file(publication.sums, {column.name: column for column in publication.columns})
        _write_json(folder / "sums.json", content)
        yield "sums.json"
    if publication.finer:
        named = {column.name: column for column in publication.columns}
        counts = finer_quantiles.finer_counts_file(publication.finer, named)
        _write_json(folder / finer_quantiles.FILE, counts)
        yield finer_quantiles.FILE
    save(publication.model, folder / "model.npz")
    yield "model.npz"
    save_row_source(publication.rows, folder / "rows.npz")
    yield "rows.npz"
    if publication.exam is not None and publication.exam.distances is not None:
        _write_table(folder / exam.FILE, publication.exam.table)
        yield exam.FILE
    yield from _write_views(folder, publication)
    (folder / "statistics").mkdir()
    for statistic in publication.statistics:
        name = f"statistics/{statistic.name}.csv"
        _write_table(folder / name, statistic.table)
        yield name
        if statistic.document is not None:
            name = f"statistics/{statistic.name}.json"
            _write_json(folder / name, statistic.document)
            yield name


def _write_views(folder: Path, publication: Publication) -> Iterator[str]:
    if publication.views is None:
        return
    for name, texts in publication.views.files():
        (folder / name).parent.mkdir(exist_ok=True)
        columns = [pa.array(own, pa.string()) for own in texts.values()]
        write_csv(folder / name, list(texts), columns)
        yield name


def _write_json(path: Path, content: object) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8", newline="\n")


def _write_table(path: Path, table: pa.Table) -> None:
    columns = [column.combine_chunks() for column in table.columns]
    texts = [number_texts(c) if c.type == pa.float64() else pc.cast(c, pa.string()) for c in columns]
    write_csv(path, table.column_names, texts)


def _sync(path: Path) -> None:
    """Sync the content of a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def commit(partial: Path, final: Path) -> None:
    """Publish a finished bundle under its final name, by one rename on the same file system.

    Raises:
        DpsynthError: the final name exists already; nothing is changed.
    """
    if os.path.lexists(final):
        raise DpsynthError(f"The bundle {final.name} is there already; a release never overwrites one.")
    for inner, _, _ in os.walk(partial):
        _sync(Path(inner))
    _open_to_readers(partial)
    # Should another process have taken the name since, renaming onto its files fails too.
    partial.rename(final)
    _sync(final.parent)
    if partial.parent != final.parent:
        _sync(partial.parent)


def _open_to_readers(partial: Path) -> None:
    """Let those read a bundle who may read the folder that it is put in; nobody else may write to it."""
    above = stat.S_IMODE(partial.parent.stat().st_mode)
    partial.chmod(stat.S_IMODE(partial.stat().st_mode) | 0o700 | above & 0o055)
