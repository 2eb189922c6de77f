"""A finished bundle in its owner's hands, and its private and its synthetic table in released cells.

Invariant: nothing here is written, and an error names files and columns alone. Both tables are read by the
same codecs. The private table is exact, and stays in memory.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from dpsynth.accounting.neighbours import Neighbours, neighbours_in_words
from dpsynth.accounting.slices import Slice
from dpsynth.bundle import restore
from dpsynth.bundle.manifest import MANIFEST, BundleRefused, Manifest, read_values
from dpsynth.bundle.row_files import table_names
from dpsynth.columns.column import Column, codes_of
from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import companion
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.public_schema import UnknownColumn
from dpsynth.config.files import FileForm
from dpsynth.config.files.form import named_form
from dpsynth.config.files.place import Place, RemotePath
from dpsynth.curator import Journal, MemoryTable, as_texts, read_batches
from dpsynth.curator.loaded_rows import rows_within
from dpsynth.curator.units import nobody, rows_kept, unit_codes
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.pipeline.inputs import LinkedRows

PAGE = "utility.html"
"""The page of an evaluation, in the folder ``private``."""


@dataclass(frozen=True, eq=False)
class OwnedBundle:
    """A bundle with both of its folders.

    Attributes:
        public: the folder that is handed over: ``public``, or that of an audience.
        private: the folder for what is the owner's alone; that of an audience, inside of the release's.
        journal: the journal of the release.
        facts: its manifest.
        columns: the columns that were read from the private table.
    """

    public: Path
    private: Path
    journal: Path
    facts: Manifest
    columns: tuple[Column, ...]

    @staticmethod
    def at(folder: Path) -> OwnedBundle:
        """The bundle in a folder: that of a release, or of one audience inside of it.

        Raises:
            ConfigError: the folder holds no finished bundle with its private half, or that of a rehearsal.
        """
        whole = not (folder / MANIFEST).is_file()
        public, owner = (folder / "public", folder) if whole else (folder, folder.parent)
        if not (public / MANIFEST).is_file():
            raise ConfigError(
                f"{folder} is no bundle: it has no public/{MANIFEST}. Name the folder that dpsynth run "
                "printed last, which holds public/ and private/, or the folder of an audience inside of it."
            )
        if not (owner / "private").is_dir():
            raise ConfigError(
                f"{folder} has no folder private/, so there is no place for an evaluation. Name the "
                "owner's own bundle, where the release ran."
            )
        try:
            facts = Manifest.of_values(read_values(public))
        except (BundleRefused, ValidationError):
            raise ConfigError(f"{public / MANIFEST} is no manifest of a bundle: it is damaged.") from None
        if facts.rehearsal:
            raise ConfigError(
                f"{folder} is a rehearsal: its table was made up, and says nothing of a real one. Name the "
                "bundle of a release."
            )
        try:
            columns = facts.layout.columns
        except UnknownColumn as error:
            raise ConfigError(
                f"The manifest of {folder} {error}. Use the version of dpsynth that it names under software."
            ) from None
        kept = owner / "private"
        private = kept if facts.audience is None else kept / public.name
        return OwnedBundle(public, private, kept / "journal.jsonl", facts, columns)

    @property
    def part(self) -> Slice | None:
        return None if self.facts.period is None else Slice.from_json(self.facts.period)

    @property
    def form(self) -> FileForm | None:
        """The form of the private table's file; None if it was no file.

        Raises:
            ConfigError: the manifest is damaged.
        """
        if self.facts.source is None:
            return None
        try:
            return TypeAdapter(FileForm).validate_python(self.facts.source)
        except ValidationError:
            raise ConfigError(f"{self.public / MANIFEST}: source is no form of a file.") from None

    @cached_property
    def neighbours(self) -> Neighbours:
        stated = self.facts.guarantee
        return neighbours_in_words(stated.neighbours, stated.unit, stated.rows_without_id or "left_out")

    @property
    def cliques(self) -> tuple[Clique, ...]:
        structure = self.facts.structure
        return tuple(clique for clique in structure.cliques if clique not in structure.lost)

    @property
    def rules(self) -> tuple[str, ...]:
        """The constraints, as they were written."""
        return tuple(stated.rule for stated in self.facts.constraints.rules)

    def key(self) -> bytes:
        """The secret that decided which rows of a person were kept; a new one where the journal is gone."""
        try:
            journal = Journal.open(self.journal)
        except (OSError, DpsynthError):
            return secrets.token_bytes(32)
        journal.close()
        return bytes.fromhex(str(journal.header["key"]))


Cells = NDArray[np.unsignedinteger]

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class CodedTable:
    """Rows in released cells, with the numbers themselves where a column has numbers. Its repr shows nothing.

    Attributes:
        columns: the released columns.
        codes: column to unsigned codes[rows].
        numbers: column of numbers to float64[rows] in raw units; NaN for a cell without a number.
        units: uint64[rows], the person of each row; None where rows are the units.
    """

    columns: tuple[Column, ...]
    codes: Mapping[str, Cells]
    numbers: Mapping[str, Numbers]
    units: NDArray[np.uint64] | None = None

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        return {column.name: column.size for column in self.columns}

    def take(self, spots: NDArray[np.int64]) -> CodedTable:
        return CodedTable(
            self.columns,
            {name: codes[spots] for name, codes in self.codes.items()},
            {name: numbers[spots] for name, numbers in self.numbers.items()},
            None if self.units is None else self.units[spots],
        )

    def cells(self, clique: Clique) -> NDArray[np.int64]:
        """The cell of each row in a marginal, int64[rows], in row-major order."""
        cell = np.zeros(self.rows, np.int64)
        for name in clique:
            cell = cell * self.sizes[name] + self.codes[name]
        return cell

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """The exact marginal, int64[cells], in row-major order."""
        cells = int(np.prod([self.sizes[name] for name in clique], dtype=np.int64))
        return np.bincount(self.cells(clique), minlength=cells)


def private_table(bundle: OwnedBundle, table: Place | MemoryTable | LinkedRows, form: FileForm) -> CodedTable:
    """The private table as the release read it: its rows of the slice, after contribution bounding.

    Args:
        bundle: the bundle.
        table: the table in memory, linked tables, or the place of its file.
        form: the form of the file.

    Raises:
        SourceError: the table can't be read, or lacks a column.
    """
    near, part = bundle.neighbours, bundle.part
    names = [column.source for column in bundle.columns]
    more = [*near.columns, *([] if part is None else [part.column])]
    wanted, broken = list(dict.fromkeys([*names, *more])), near.person is None
    if isinstance(table, Path | RemotePath):
        read = read_batches(table, wanted, form, keep_broken=broken, keep_empty=near.rows_public)
    else:
        read = as_texts(table.batches(wanted))
    batches = (dict(batch) if part is None else rows_within(batch, part) for batch in read)
    if near.person is None:
        return _coded(bundle.columns, batches)
    key, people = bundle.key(), list[NDArray[np.uint64]]()

    def named() -> Iterator[Mapping[str, pa.StringArray]]:
        for batch in batches:
            persons = unit_codes(batch, near, key)
            used = np.ones(len(persons), np.bool_)
            if near.nameless == "left_out":
                used = persons != nobody(key)
            people.append(persons[used])
            yield {name: cells.filter(pa.array(used)) for name, cells in batch.items()}

    coded = _coded(bundle.columns, named())
    units = np.concatenate([np.zeros(0, np.uint64), *people])
    whole = CodedTable(coded.columns, coded.codes, coded.numbers, units)
    return whole.take(np.flatnonzero(rows_kept(units, near.max_rows, key)))


def synthetic_table(bundle: OwnedBundle) -> CodedTable:
    """The synthetic table of a bundle.

    Raises:
        ConfigError: the bundle has none.
    """
    columns = bundle.columns
    names = [column.name for column in columns if not column.part_of]
    found = table_names(sorted(path.name for path in bundle.public.iterdir()))
    if not found:
        raise ConfigError(
            f"{bundle.public} has no synthetic table: neither synthetic.parquet nor synthetic.csv."
        )
    # The Parquet file or folder is the last; it has types.
    text = bundle.public / found[-1]
    if text.suffix == ".parquet":
        wanted = [*names, *(companion(c.name) for c in columns if c.distinct)]
        files = sorted(text.glob("*.parquet")) if text.is_dir() else [text]
        batches = (b for file in files for b in pq.ParquetFile(file).iter_batches(columns=wanted))
        return _coded(columns, (_texts(columns, batch) for batch in batches))
    # Names, too, may have an apostrophe in front.
    header = pa.array(names, pa.string())
    from dpsynth.bundle import neutralise

    written = dict(zip(neutralise(header).to_pylist(), names, strict=True))
    form = FileForm(compression=named_form(text.name)[1])
    read = read_batches(text, list(written), form, keep_broken=True)
    return _coded(columns, ({written[n]: restore(c) for n, c in batch.items()} for batch in read))


def _texts(columns: Sequence[Column], batch: pa.RecordBatch) -> dict[str, pa.StringArray]:
    return {
        c.name: c.text(
            batch.column(batch.schema.get_field_index(c.name)),
            batch.column(batch.schema.get_field_index(companion(c.name))) if c.distinct else None,
        )
        for c in columns
        if not c.part_of
    }


def _coded(columns: tuple[Column, ...], batches: Iterable[Mapping[str, pa.StringArray]]) -> CodedTable:
    codes: dict[str, list[Cells]] = {c.name: [np.zeros(0, np.min_scalar_type(c.size - 1))] for c in columns}
    numbers: dict[str, list[Numbers]] = {
        c.name: [np.zeros(0)] for c in columns if isinstance(c.codec, NumericCodec)
    }
    for batch in batches:
        for column in columns:
            coded = batch[column.source].dictionary_encode(null_encoding="encode")
            spots = coded.indices.to_numpy(zero_copy_only=False)
            codes[column.name].append(codes_of(column, coded.dictionary)[spots])
            if isinstance(column.codec, NumericCodec):
                read = column.codec.form.read(column.values_of(coded.dictionary))
                numbers[column.name].append(np.asarray(read, np.float64)[spots])
    return CodedTable(
        columns,
        {name: np.concatenate(parts) for name, parts in codes.items()},
        {name: np.concatenate(parts) for name, parts in numbers.items()},
    )
