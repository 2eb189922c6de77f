"""The finished synthetic table in codes, as the private table would be coded if it were this one.

A value lies in the cell from which it was drawn, so its code is known before it is written. For which columns
that holds is no assumption: ``read_back`` reads the written ends of all cells of a column. The cells of any
other column are read as they are written, each distinct value once.

Invariant: public. The codes are those of the table's own texts, as they are written for its recipients.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes, Intervals
from dpsynth.columns.column import Column, codes_of
from dpsynth.columns.domain import Domain
from dpsynth.columns.layout import DrawnRows, Layout

Coded = Mapping[str, NDArray[np.unsignedinteger]]
"""Column to unsigned codes[rows], the smallest type that holds the domain."""

IN_MEMORY = 1 << 27
"""Bytes of codes beyond which they lie in a file without a name."""
_LARGEST = float(1 << 53)


def read_back(column: Column) -> bool:
    """True if every value that a code decodes to is written as a text of that same code.

    A column of declared texts has one value a cell, and all of them are read. In a column of numbers the
    first and the last value of each cell are read. The codes of texts rise with the numbers that these
    write, so whatever lies between the two has their code. Columns in which a value may mean missing, and
    moments, durations and patterns, are not decided here: False.
    """
    codes = np.arange(len(column.codec.labels))
    if column.markers_may_be_drawn:
        return False
    if column.codec.closed:
        ends = [column.codec.decode(codes, np.random.default_rng(0))]
    elif column.codec.continuous:
        values = column.codec.cell_values
        assert isinstance(values, Intervals)
        # Numbers of more digits may be rounded on their way to a text and back.
        most = float(np.abs([values.low, values.high]).max())
        if most * 10.0**column.codec.kind.decimals >= _LARGEST:
            return False
        ends = [pa.array(v).cast(column.codec.arrow_type) for v in (values.low, values.high)]
    else:
        return False
    return all(np.array_equal(column.encode(column.text(end)), codes) for end in ends)


@dataclass(frozen=True)
class Reading:
    """The reading of one column of a finished table."""

    column: Column

    @cached_property
    def _known(self) -> bool:
        return read_back(self.column)

    @cached_property
    def _missing(self) -> Codes:
        """For each code, the code of the text that a missing cell of it is written as; int64[size]."""
        column, codes = self.column, np.arange(self.column.size)
        marked = column.distinct_texts(codes) if column.distinct else None
        return column.encode(column.text(pa.nulls(column.size, column.codec.arrow_type), marked))

    def codes(self, rows: DrawnRows) -> NDArray[np.unsignedinteger]:
        column = self.column
        drawn = rows.codes.get(column.name)
        if drawn is None or not self._known:
            texts = Layout.text_of(column, rows.table)
            return codes_of(column, texts.dictionary)[texts.indices.to_numpy(zero_copy_only=False)]
        kind = column.code_type
        values = rows.table.column(column.name)
        if not values.null_count:
            return drawn.astype(kind)
        missing = np.asarray(values.is_null())
        found = drawn.astype(kind)
        found[missing] = self._missing[drawn[missing]]
        return found


@dataclass(eq=False)
class CodedRows:
    """Rows of codes, piece by piece; large ones lie in a file that has no name and ends with the process.

    Attributes:
        folder: the folder of the file; None for the system's folder of temporary files.
        in_memory: number of bytes from which on pieces lie in the file.
    """

    folder: Path | None = None
    in_memory: int = IN_MEMORY
    rows: int = 0
    _pieces: list[_Piece] = field(default_factory=list)
    _file: IO[bytes] | None = None
    _bytes: int = 0

    def add(self, codes: Coded) -> None:
        """Add rows after those that are there; OSError where the file can't be written."""
        rows = len(next(iter(codes.values())))
        self.rows += rows
        self._bytes += sum(own.nbytes for own in codes.values())
        if self._bytes <= self.in_memory:
            self._pieces.append(_Piece(rows, dict(codes), 0))
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
        begin = self._file.seek(0, 2)
        for own in codes.values():
            self._file.write(np.ascontiguousarray(own).data)
        self._pieces.append(
            _Piece(rows, {name: np.empty(0, own.dtype) for name, own in codes.items()}, begin)
        )

    def whole(self) -> Coded:
        pieces = [codes for _, codes in self.pieces()]
        return {name: np.concatenate([codes[name] for codes in pieces]) for name in pieces[0]}

    def pieces(self) -> Iterator[tuple[int, Coded]]:
        for piece in self._pieces:
            if not piece.rows or len(next(iter(piece.codes.values()))):
                yield piece.rows, piece.codes
                continue
            assert self._file is not None
            self._file.seek(piece.begin)
            yield (
                piece.rows,
                {
                    name: np.frombuffer(self._file.read(piece.rows * own.itemsize), own.dtype)
                    for name, own in piece.codes.items()
                },
            )


@dataclass(frozen=True, eq=False)
class _Piece:
    """Codes in memory; or empty arrays of their types, and the place in the file where they begin."""

    rows: int
    codes: Coded
    begin: int


@dataclass(frozen=True, eq=False)
class FinishedTable:
    """A synthetic table that is compared with the private one.

    Attributes:
        stands_for: the number of rows that its counts are scaled to, at least 1. It is public: exact, or an
            estimate from noisy answers.
    """

    coded: CodedRows
    stands_for: int

    @classmethod
    def of(cls, layout: Layout, table: pa.Table, stands_for: int) -> FinishedTable:
        """A table in memory, whose cells are read as they are written."""
        coded, rows = CodedRows(), DrawnRows(table, {})
        coded.add({column.name: Reading(column).codes(rows) for column in layout.columns})
        return cls(coded, stands_for)

    @property
    def rows(self) -> int:
        return self.coded.rows

    @cached_property
    def sha256(self) -> str:
        """SHA-256 in hex of the codes, piece by piece, and of the number of rows that they are scaled to."""
        digest = sha256(repr((self.rows, self.stands_for)).encode())
        for _, piece in self.coded.pieces():
            for name, codes in piece.items():
                digest.update(repr((name, codes.dtype.str)).encode())
                digest.update(np.ascontiguousarray(codes).tobytes())
        return digest.hexdigest()


RIGHT = "right"
"""The axis of counts that says whether a guess is right."""


@dataclass(frozen=True, eq=False)
class Classifier:
    """A public classifier: one column's code, guessed as the class with the largest sum of scores.

    Scores are integers. A sum of floating-point numbers may depend on the rows that are computed with it, and
    then one person's rows move the guess of another's.

    Attributes:
        target: the column that is guessed.
        aim: what it is trained for, in words.
        scores: scores by column, int64[codes, classes]. Classes are the first codes of the target.
    """

    target: str
    aim: str
    scores: Mapping[str, NDArray[np.int64]]

    @property
    def classes(self) -> int:
        return next(iter(self.scores.values())).shape[1]

    @property
    def sha256(self) -> str:
        """SHA-256 in hex of all that decides the guesses."""
        digest = sha256(self.target.encode())
        for name, scores in self.scores.items():
            digest.update(repr((name, scores.shape)).encode() + scores.astype("<i8").tobytes())
        return digest.hexdigest()

    def fits(self, domain: Domain) -> bool:
        """True if each code of a domain has scores, and each class is a code."""
        sizes = domain.sizes
        scored = all(s.shape == (sizes.get(name), self.classes) for name, s in self.scores.items())
        return scored and 0 < self.classes <= sizes.get(self.target, 0)

    def right(self, codes: Mapping[str, NDArray[np.unsignedinteger]]) -> NDArray[np.uint8]:
        """1 for each row of codes whose target is guessed right, otherwise 0."""
        truth = codes[self.target]
        sums = np.zeros((len(truth), self.classes), np.int64)
        for name, scores in self.scores.items():
            sums += scores[codes[name]]
        return (sums.argmax(axis=1) == truth).astype(np.uint8)
