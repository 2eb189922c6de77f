"""Sampling: the synthetic rows, drawn, written and coded piece by piece.

Invariant: what is written is what is coded, and what a caller gets in memory: all three are made of the same
pieces. Memory is that of two pieces, and of a table of one piece.
"""

from __future__ import annotations

import copy
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpsynth.bundle.row_files import TableFiles, TableWriter
from dpsynth.bundle.row_source import PIECE, RowSource
from dpsynth.columns.finished_table import CodedRows, Reading
from dpsynth.columns.rules import RuledRows, RuleRepairs
from dpsynth.pipeline.generating import Described, FittedModel, row_source
from dpsynth.pipeline.progress import Advance


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """The synthetic table of a release.

    Attributes:
        source: the source of its rows.
        rows: their number.
        columns: the number of its columns.
        coded: its codes.
        files: its files; without names if it was published before.
        generator: the generator as it was before the rows were drawn.
        piece: all rows, if they are one piece.
        repairs: the rows that broke rules as they were drawn, and what was changed so that all obey.
    """

    source: RowSource
    rows: int
    columns: int
    coded: CodedRows
    files: TableFiles
    generator: np.random.Generator
    piece: pa.Table | None = None
    repairs: RuleRepairs = field(default_factory=RuleRepairs)

    @cached_property
    def table(self) -> pa.Table:
        """All rows in memory; if they are several pieces, drawn once more, which gives the same rows."""
        if self.piece is not None:
            return self.piece
        return self.source.table(self.rows, copy.deepcopy(self.generator))


def sample_rows(
    advance: Advance, inputs: Described, fitted: FittedModel, public: Path | None, rng: np.random.Generator
) -> SyntheticTable:
    """The synthetic table: as many rows as the private one has, or as many as the config asks for.

    Args:
        advance: takes the number of rows that are written, and that of all rows.
        inputs: what the release is about.
        fitted: its model.
        public: the public folder of the partial bundle, which is made anew with the table's files; None if
            the bundle is published already.
        rng: generator of this post-processing step.
    """
    publish, asked = inputs.spec.publish, inputs.spec.sample.rows
    source = row_source(inputs, fitted)
    before, sampling = copy.deepcopy(rng), inputs.spec.privacy.sampling
    same = fitted.rows if sampling is None else round(fitted.rows / sampling.rate)
    number = same if asked == "same" else asked
    readings = [Reading(column) for column in fitted.layout.columns]
    coded, done, whole = CodedRows(None if public is None else public.parent), 0, []
    repairs = RuleRepairs()
    with ExitStack() as stack:
        writer = None
        if public is not None:
            shutil.rmtree(public, ignore_errors=True)
            public.mkdir()
            writer = TableWriter(public, fitted.layout, publish.formats, publish.rows_a_file)
            stack.enter_context(writer)
        for rows in source.pieces(number, rng):
            coded.add({reading.column.name: reading.codes(rows) for reading in readings})
            if writer is not None:
                writer.write(rows.table, rows.codes)
            done += rows.table.num_rows
            if isinstance(rows, RuledRows):
                repairs = repairs.with_more(rows.repairs)
            if number <= PIECE:
                whole.append(rows.table)
            columns = rows.table.num_columns
            advance(done, number)
    files = TableFiles((), number) if writer is None else writer.written
    piece = whole[0] if whole else None
    return SyntheticTable(source, number, columns, coded, files, before, piece, repairs)
