"""Processor seconds of each stage that makes synthetic rows, a million rows each, beside Arrow's writers.

    python benchmarks/row_stages.py BUNDLE

BUNDLE is the public folder of a release. Two pieces are drawn and refined, ordered anew as the pieces after
the first million rows are, decoded, coded as the exam reads them, and written. Arrow writes the same tables.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from pyarrow import csv, parquet

from dpsynth.bundle.recipient.bundle import open_bundle
from dpsynth.bundle.row_files import row_file
from dpsynth.bundle.row_source import ENOUGH, PIECE
from dpsynth.columns.finished_table import Reading
from dpsynth.columns.layout import DrawnRows
from dpsynth.model import Effort, chunk_draws, permuted, refined_rows

PIECES = 2
T = TypeVar("T")


def stage(name: str, work: Callable[[], T]) -> T:
    """Do some work on all pieces, and print what a million rows take."""
    begun = time.process_time()
    found = work()
    print(f"{name:<28}{(time.process_time() - begun) / (PIECES * PIECE) * 1e6:8.3f}", flush=True)
    return found


def main() -> None:
    """Print one line a stage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bundle", type=Path)
    source = open_bundle(parser.parse_args().bundle).rows
    layout, model = source.layout, source.model
    rngs = [np.random.default_rng(seed) for seed in range(PIECES)]
    effort = Effort(enough=ENOUGH)
    targets = stage("targets", lambda: source.wanted.targets(model, PIECE))
    drawn = stage("drawing", lambda: [d() for d in chunk_draws(model, PIECES * PIECE, 1, chunk=PIECE)])
    refined = stage(
        "refining",
        lambda: [
            refined_rows(model, source.wanted, codes, rng, source.bounds, targets, effort)
            for codes, rng in zip(drawn, rngs, strict=True)
        ],
    )
    narrow = [{c.name: codes[c.name].astype(c.code_type) for c in layout.columns} for codes in refined]
    orders = stage("order of a copy", lambda: [permuted(PIECE, rng) for rng in rngs])
    copies = stage(
        "codes of a copy",
        lambda: [
            {name: codes[order] for name, codes in piece.items()}
            for piece, order in zip(narrow, orders, strict=True)
        ],
    )
    whole = [
        {
            c.name: piece[c.name] if c.one_text_a_code else piece[c.name].astype(np.int64)
            for c in layout.columns
        }
        for piece in copies
    ]
    pieces = [(codes, rng) for codes, rng in zip(whole, rngs, strict=True)]
    tables = stage("decoding", lambda: [layout.decode(codes, rng) for codes, rng in pieces])
    rows = [DrawnRows(table, codes) for table, codes in zip(tables, whole, strict=True)]
    readings = [Reading(column) for column in layout.columns]
    stage("coding for the exam", lambda: [[reading.codes(r) for reading in readings] for r in rows])
    with tempfile.TemporaryDirectory() as name:
        for suffix, writer in ((".parquet", parquet.ParquetWriter), (".csv", csv.CSVWriter)):

            def ours(path: Path = Path(name) / f"ours{suffix}") -> None:
                file = row_file(path, layout)
                for piece in rows:
                    file.write(piece.table, piece.codes)
                file.close()

            def arrows(path: Path = Path(name) / f"arrow{suffix}", writer: type = writer) -> None:
                how = {"compression": "zstd"} if path.suffix == ".parquet" else {}
                with writer(path, tables[0].schema, **how) as file:
                    for table in tables:
                        file.write_table(table)

            stage(f"writing {suffix}", ours)
            stage(f"Arrow writing {suffix}", arrows)


if __name__ == "__main__":
    main()
