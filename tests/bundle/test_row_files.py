"""Rows in pieces: the same rows whichever threads make them, in files of every format."""

import gzip
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dpsynth.bundle import row_source
from dpsynth.bundle.row_files import TableWriter
from dpsynth.bundle.row_source import RowSource
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.layout import Layout, in_order
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.rules import rules_of
from dpsynth.model import estimate
from tests.bundle.conftest import COLUMNS, joint, source_of


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


@pytest.mark.parametrize("threads", [1, 3])
def test_pieces_beyond_the_distinct_rows_have_cells_of_refined_ones(source, monkeypatch, threads) -> None:
    monkeypatch.setattr(row_source, "DISTINCT", 600)
    monkeypatch.setattr(row_source, "_PIECES_AT_ONCE", threads)
    pieces = list(source.pieces(1900, np.random.default_rng(3), piece=300))
    assert [piece.table.num_rows for piece in pieces] == [300] * 6 + [100]
    cells = [np.column_stack([piece.codes[c.name] for c in COLUMNS]) for piece in pieces]
    in_order = [rows[np.lexsort(rows.T)] for rows in cells]
    for turn in (2, 3, 4, 5):
        # The same rows of cells as the first or the second piece, in another order.
        assert np.array_equal(in_order[turn], in_order[turn % 2])
        assert not np.array_equal(cells[turn], cells[turn % 2])
    assert not np.array_equal(in_order[0], in_order[1])
    assert not np.array_equal(cells[2], cells[4])
    # Values inside a bin are drawn anew.
    values = [np.sort(pieces[turn].table.column("pay").drop_null().to_numpy()) for turn in (0, 2)]
    assert len(values[0]) == len(values[1]) and not np.array_equal(*values)
    monkeypatch.setattr(row_source, "_PIECES_AT_ONCE", 2)
    again = pa.concat_tables([r.table for r in source.pieces(1900, np.random.default_rng(3), piece=300)])
    assert again.equals(pa.concat_tables([piece.table for piece in pieces]))


def test_small_pieces_repeat_no_cells_before_there_are_many_rows(source) -> None:
    pieces = list(source.pieces(1000, np.random.default_rng(3), piece=100))
    cells = [np.column_stack([piece.codes[c.name] for c in COLUMNS]) for piece in pieces]
    in_order = {rows[np.lexsort(rows.T)].tobytes() for rows in cells}
    assert len(in_order) == len(pieces)


def test_every_row_of_every_piece_obeys_the_constraints(monkeypatch) -> None:
    """Cells that break a rule are drawn in refined pieces too, and are replaced in each copy."""
    monkeypatch.setattr(row_source, "DISTINCT", 300)
    bins = NumericCodec((0.0, 5.0, 10.0), 0, integer=True)
    columns = (Column("low", bins), Column("high", bins))
    layout = Layout(columns)
    counts = [Measurement(("low", "high"), np.full((3, 3), 40), "gaussian", 1.0)]
    source = replace(
        source_of(estimate(domain_of(columns), counts).model),
        layout=layout,
        rules=rules_of(["low <= high"], layout),
    )
    pieces = list(source.pieces(1000, np.random.default_rng(3), piece=300))
    table = pa.concat_tables([rows.table for rows in pieces])
    assert table.num_rows == 1000
    # What was changed is told of each piece, those with the cells of another one too.
    assert [rows.repairs.rows for rows in pieces] == [300, 300, 300, 100]
    assert all(0 < broken < rows.repairs.rows for rows in pieces for broken in rows.repairs.broken)
    both = table.drop_null()
    assert both.num_rows > 200
    assert pc.all(pc.less_equal(both.column("low"), both.column("high"))).as_py()


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
