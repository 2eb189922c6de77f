"""The public half of a bundle: its files, and the commit that publishes them.

Invariant: a bundle is published whole or not at all. Files are written and synced in a partial folder, the
manifest last; one rename then publishes them all. Until ``commit`` only the owner can enter the partial
folder.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.bundle import publication as audiences
from dpsynth.bundle.explanation import Words
from dpsynth.bundle.manifest import MANIFEST, Manifest, manifest_text
from dpsynth.bundle.pages import readme_text, report_html
from dpsynth.bundle.publication import Publication
from dpsynth.bundle.report_source import REPORT, report_source
from dpsynth.bundle.row_files import number_texts, write_csv
from dpsynth.bundle.row_source import CHAIN_FILES, save_row_source
from dpsynth.bundle.signature import CHECKSUMS, SIGNATURE, SigningKey, checksums_text
from dpsynth.columns.measurement import Measurement, WeightedCounts
from dpsynth.errors import DpsynthError
from dpsynth.model import save
from dpsynth.model.measurement_file import write_measurements
from dpsynth.statistics import exam
from dpsynth.statistics.measured_figures import FINER, SUMS, finer_counts_file, sums_file
from dpsynth.wing import Point

__all__ = ["MANIFEST", "Publication", "commit", "write_public"]

LINKS = "history.json"
"""The noisy counts of each column together with that of the row before."""

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
    catalogues, words = CATALOGUES.filled() or {}, Words.of(publication)
    (folder / "README.md").write_text(
        readme_text(publication, words, catalogues), encoding="utf-8", newline="\n"
    )
    manifest = Manifest.of(publication, words)
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
        publication.weights,
    )
    yield "measurements.parquet"
    for told in () if publication.audience is None else publication.audience.earlier:
        file = audiences.file_of(told.audience)
        write_measurements(folder / file, (), told.answers, publication.columns, told.compression)
        yield file
    if publication.sums:
        _write_json(folder / SUMS, sums_file(publication.sums, publication.layout.modelled))
        yield SUMS
    if publication.finer:
        _write_json(folder / FINER, finer_counts_file(publication.finer, publication.layout.modelled))
        yield FINER
    save(publication.model, folder / "model.npz")
    yield "model.npz"
    save_row_source(publication.rows, folder / "rows.npz")
    yield "rows.npz"
    if publication.rows.chain is not None:
        yield from CHAIN_FILES
        _write_json(folder / LINKS, [{**_described(m), **axes} for m, axes in publication.history])
        yield LINKS
    if publication.exam is not None and publication.exam.distances is not None:
        _write_table(folder / exam.FILE, publication.exam.table)
        yield exam.FILE
    yield from _write_views(folder, publication)
    if publication.database is not None:
        yield from publication.database.write(folder)
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


def _described(answer: Measurement) -> dict[str, object]:
    """A noisy marginal as JSON values; by weights, what was drawn."""
    drawn = answer.drawn if isinstance(answer, WeightedCounts) and answer.drawn is not None else answer
    weight = {"weight_of_a_unit": answer.whole} if isinstance(answer, WeightedCounts) else {}
    facts = {"columns": answer.clique, "noise": drawn.noise, "scale": drawn.scale, **weight}
    return {**facts, "counts": drawn.values.tolist()}


def _write_json(path: Path, content: object) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8", newline="\n")


def _write_table(path: Path, table: pa.Table) -> None:
    columns = [column.combine_chunks() for column in table.columns]
    texts = [number_texts(c) if c.type == pa.float64() else pc.cast(c, pa.string()) for c in columns]
    write_csv(path, table.column_names, texts)


def _sync(path: Path) -> None:
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
