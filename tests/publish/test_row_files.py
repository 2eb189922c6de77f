"""Rows in pieces: the same rows whichever threads make them, in files of every format."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.domain.column import domain_of
from dpsynth.domain.in_order import in_order
from dpsynth.domain.layout import Layout
from dpsynth.domain.measurement import Measurement
from dpsynth.model import estimate
from dpsynth.publish import row_source
from dpsynth.publish.row_files import TableWriter
from dpsynth.publish.row_source import RowSource
from tests.publish.conftest import COLUMNS, joint, source_of


@pytest.fixture(scope="module")
def source() -> RowSource:
    model = joint(1)
    cliques = ((), *((c.name,) for c in COLUMNS))
    counts = [Measurement(c, np.round(model.marginal(c)).astype(np.int64), "gaussian", 1.0) for c in cliques]
    return source_of(estimate(domain_of(COLUMNS), counts).model)


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_the_same_for_any_number_of_threads(source, monkeypatch, threads) -> None:
    expected = source.table(1000, np.random.default_rng(3))
    many = [r.table for r in source.pieces(1000, np.random.default_rng(3), piece=300)]
    monkeypatch.setattr(row_source, "_PIECES_AT_ONCE", threads)
    again = [r.table for r in source.pieces(1000, np.random.default_rng(3), piece=300)]
    assert [t.num_rows for t in again] == [300, 300, 300, 100]
    assert pa.concat_tables(again).equals(pa.concat_tables(many))
    assert not pa.concat_tables(again).equals(expected)
    assert pa.concat_tables(source.tables(300, 3, piece=300)).num_rows == 300


def test_pieces_together_follow_the_model_as_one_sample_does(source) -> None:
    rows = np.concatenate([r.codes["age"] for r in source.pieces(4000, np.random.default_rng(3), piece=700)])
    shares = source.model.marginal(("age",)) / source.model.total
    found = np.bincount(rows, minlength=len(shares))
    # Each piece is rounded, and refined to the nearest row or two.
    assert np.abs(found - 4000 * shares).max() < 30


def test_files_of_every_format_hold_the_same_rows(source, tmp_path) -> None:
    parts = [r.table for r in source.pieces(1000, np.random.default_rng(3), piece=300)]
    formats = ("parquet", "csv.zst", "csv", "csv.gz")
    with TableWriter(tmp_path, Layout(COLUMNS), formats, rows_a_file=450) as writer:
        for part in parts:
            writer.write(part)
    names = writer.written.names
    assert names[:3] == ("synthetic.csv", "synthetic.csv.gz", "synthetic.csv.zst")
    assert names[3:] == tuple(f"synthetic.parquet/part-0000{i}.parquet" for i in range(3))
    assert [pq.read_metadata(tmp_path / name).num_rows for name in names[3:]] == [450, 450, 100]
    assert pq.read_table(tmp_path / "synthetic.parquet").equals(pa.concat_tables(parts))
    plain = (tmp_path / names[0]).read_bytes()
    assert plain.count(b"\n") > 1000 and gzip.decompress((tmp_path / names[1]).read_bytes()) == plain
    with pa.CompressedInputStream(str(tmp_path / names[2]), "zstd") as file:
        assert file.read() == plain


def test_a_csv_file_doesn_t_depend_on_the_pieces(source, tmp_path) -> None:
    whole = pa.concat_tables([r.table for r in source.pieces(500, np.random.default_rng(3), piece=300)])
    for name, step in (("one", 500), ("many", 7)):
        (tmp_path / name).mkdir()
        with TableWriter(tmp_path / name, Layout(COLUMNS), ("csv",)) as writer:
            for begin in range(0, 500, step):
                writer.write(whole.slice(begin, step))
    assert (tmp_path / "one/synthetic.csv").read_bytes() == (tmp_path / "many/synthetic.csv").read_bytes()


def test_an_error_of_a_task_is_raised_in_its_turn_and_no_task_begins_after_it() -> None:
    begun: list[int] = []

    def task(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise ValueError("two")
        return number

    results = in_order(((lambda n=n: task(n)) for n in range(9)), 2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(results)
    assert set(begun) <= {0, 1, 2, 3}
