"""Rows with many workers are coded, bounded and counted as by one process, whatever piece they come in."""

import pickle
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Compression
from dpsynth.columns.finished_table import Classifier
from dpsynth.config import Spec, compiled
from dpsynth.config.files import FileForm
from dpsynth.curator import Room, UnitSample, load_rows, read_cells
from dpsynth.curator.table import Engine
from dpsynth.testing import same_figures
from dpsynth.wings.cluster.partitioned import Coding, PartitionedRows, RowGroups, WholeTable, pieces_of_file
from dpsynth.wings.tables.wide_rows import wide_table
from tests.wings.tables.linked import TABLES, frames

KEY = b"k" * 32
FORM = FileForm("parquet")
NEAR = [
    Neighbours("add_remove"),
    Neighbours("add_remove", "person", 3),
    Neighbours("replace_one", "person", 2),
]
COLUMNS = compiled(
    Spec.from_dict(
        {
            "privacy": {"epsilon": 1, "delta": 1e-6},
            "ledger": {"dataset": "d"},
            "columns": {
                "age": {"type": "integer", "min": 0, "max": 89, "bins": 9},
                "sex": {"type": "category", "values": ["F", "M"]},
                "city": {"type": "category", "open": True},
                "pay": {"type": "number", "min": 0, "max": 100, "bins": 4},
            },
        }
    )
).columns
NAMES = [c.name for c in COLUMNS]


def table(rows: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "person": pa.array(rng.integers(0, max(rows // 4, 1), rows)),
            "age": pa.array(rng.integers(-3, 95, rows)),
            "sex": pa.array(rng.choice(["F", "M", "X"], rows)),
            "city": pa.array([f"city {c}" for c in rng.integers(0, 9, rows)]),
            "pay": pa.array(rng.normal(50, 40, rows)),
        }
    )


class ThisProcess:
    """Workers that are none: values go through pickle, as if they went to other processes."""

    def each(self, make, parts):
        return [pickle.loads(pickle.dumps(make))(pickle.loads(pickle.dumps(part))) for part in parts]

    def regrouped(self, split, join, parts):
        shares = [split(part, 5) for part in parts]
        return [join([pickle.loads(pickle.dumps(share[i])) for share in shares]) for i in range(5)]

    def combined(self, figure, add, parts):
        return reduce(lambda one, two: add([one, two]), map(pickle.loads(pickle.dumps(figure)), parts))


def both(folder: Path, near: Neighbours, workers=None, rows: int = 700, sample: UnitSample | None = None):
    """The rows by one process, and by workers."""
    parquet.write_table(table(rows), folder / "t.parquet", row_group_size=101)
    names = [*near.columns, *NAMES]
    summed = frozenset({"pay"})
    whole = read_cells(folder / "t.parquet", names, FORM, keep_broken=True)
    if sample is not None:
        whole = sample.of(whole, near)
    one = load_rows(whole, COLUMNS, near, KEY, None, summed)
    coding = Coding(COLUMNS, near, KEY, None, summed, sample, partial(Room))
    pieces = pieces_of_file(folder / "t.parquet", names, FORM, 4, keep_broken=True)
    assert 1 < len(pieces) <= 4
    return one, PartitionedRows.read(workers or ThisProcess(), pieces, coding)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_linked_tables_by_workers_have_the_figures_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    """Their keys, broken ones too, are found by one worker, in whatever folder; each root lies with one."""
    given = frames(60, wild=True)
    tables = {name: {**table, "source": {"path": f"{name}.csv"}} for name, table in TABLES.items()}
    for name, frame in given.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    keys = {"privacy": {"epsilon": 1, "neighbours": relation}, "ledger": {"dataset": "homes"}}
    spec = compiled(Spec.from_dict({**keys, "tables": tables}))
    near, columns = spec.spec.protected, spec.columns
    wide = wide_table(spec.spec, None)
    names = [*near.columns, *(c.name for c in columns)]
    summed = frozenset({"rent"})
    one = load_rows(wide.batches(names), columns, near, KEY, None, summed)
    coding = Coding(columns, near, KEY, None, summed, None, partial(Room))
    piece = WholeTable(wide, names)
    assert "street" not in repr(piece) and ".csv" not in repr(piece)
    monkeypatch.chdir("/")
    many = PartitionedRows.read(ThisProcess(), [piece], coding)
    here, there = one.bounded(1, KEY), many.bounded(1, KEY)
    assert here.rows == there.rows == 60
    same_figures(here, there)


@pytest.mark.parametrize("near", NEAR, ids=str)
def test_all_figures_are_those_of_one_process(tmp_path: Path, near: Neighbours) -> None:
    one, many = both(tmp_path, near)
    if near.person is not None:
        np.testing.assert_array_equal(one.rows_of_units((1, 2, 5)), many.rows_of_units((1, 2, 5)))
    here, there = one.bounded(near.max_rows, KEY), many.bounded(near.max_rows, KEY)
    same_figures(here, there)
    found = compiled(
        Spec.from_dict(
            {
                "privacy": {"epsilon": 1},
                "ledger": {"dataset": "d"},
                "columns": {
                    "age": {"type": "integer", "min": 0, "max": 89, "bins": 9},
                    "sex": {"type": "category", "values": ["F", "M"]},
                    "city": {"type": "category", "values": ["city 1", "city 4"], "other": "rest"},
                    "pay": {"type": "number", "min": 0, "max": 100, "bins": 4},
                },
            }
        )
    ).columns
    here, there = here.coded(found), there.coded(found)
    same_figures(here, there)
    same_guesses(here, there)
    # Columns of two groups have parities too.
    groups = Compression({c: np.minimum(np.arange(size), 1) for c, size in here.domain.sizes.items()})
    same_figures(here.recoded(groups), there.recoded(groups))
    if near.person is not None:
        for by in ("weights", "surplus"):
            one, many = here.weighted(by), there.weighted(by)
            assert (one.largest < 0) == (by == "surplus")
            same_figures(one, many)
            same_figures(one.recoded(groups), many.recoded(groups))
            same_guesses(one.recoded(groups), many.recoded(groups))


def same_guesses(one: Engine, many: Engine) -> None:
    """Raise AssertionError unless two engines count the guesses of each classifier alike."""
    rng, sizes = np.random.default_rng(1), one.domain.sizes
    for target in sizes:
        scores = {c: rng.integers(-9, 9, (sizes[c], 2)) for c in sizes if c != target}
        guess = Classifier(target, "accuracy", scores)
        found = one.classified(guess)
        assert guess.fits(one.domain) and found.sum() == one.counts_of([(target,)])[0].sum()
        np.testing.assert_array_equal(found, many.classified(guess))


def test_a_sample_of_rows_has_the_same_rows_whatever_the_pieces(tmp_path: Path) -> None:
    one, many = both(tmp_path, NEAR[0], sample=UnitSample(1 << 62, KEY))
    same_figures(one.bounded(1, KEY), many.bounded(1, KEY))


def test_every_row_is_in_one_piece_whatever_the_row_groups(tmp_path: Path) -> None:
    whole = table(997)
    for size in (10, 150, 2000):
        for most in (1, 2, 7, 99):
            (tmp_path / "t").mkdir(exist_ok=True)
            parquet.write_table(whole[:300], tmp_path / "t" / "a.parquet", row_group_size=size)
            parquet.write_table(whole[300:300], tmp_path / "t" / "b.parquet")
            parquet.write_table(whole[300:], tmp_path / "t" / "c.parquet", row_group_size=size)
            pieces = pieces_of_file(tmp_path / "t", ["pay"], FORM, most, keep_broken=True)
            assert len(pieces) <= most
            start = 0
            cells = []
            for piece in pieces:
                assert isinstance(piece, RowGroups) and piece.start == start
                read = [cell for batch in piece.batches() for cell in batch["pay"].to_pylist()]
                start += len(read)
                cells += read
            assert cells == whole["pay"].to_pylist()


@pytest.mark.parametrize(
    ("rows", "most", "starts"),
    [
        ([10] * 10, 3, [0, 40, 70]),
        ([10] * 10, 2, [0, 50]),
        ([10, 10], 9, [0, 10]),
        ([10, 10, 0], 2, [0, 10]),
        ([90, 1, 1, 8], 2, [0, 90]),
    ],
)
def test_pieces_have_about_as_many_rows(monkeypatch, rows: list[int], most: int, starts: list[int]) -> None:
    groups = [("file", group, number) for group, number in enumerate(rows)]
    monkeypatch.setattr("dpsynth.wings.cluster.partitioned.row_groups", lambda path, form: groups)
    found = pieces_of_file(Path("t"), ["pay"], FORM, most, keep_broken=True)
    assert [piece.start for piece in found] == starts
    assert [file for piece in found for file, _ in piece.chosen] == ["file"] * len(starts)
    assert [group for piece in found for _, some in piece.chosen for group in some] == list(range(len(rows)))
    assert WholeTable(None, []).start == 0  # type: ignore[arg-type]


def test_groups_of_workers_are_not_grouped_again(tmp_path: Path) -> None:
    _, many = both(tmp_path, NEAR[0], rows=200)
    groups = Compression({"sex": np.zeros(3, dtype=int)})
    with pytest.raises(ValueError, match="can't be grouped again"):
        many.bounded(1, KEY).recoded(groups).recoded(groups)


def test_a_person_whose_rows_are_apart_would_have_too_many_and_is_caught(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(
        "dpsynth.wings.cluster.partitioned.by_person",
        lambda rows, number: [rows.of_rows(np.arange(rows.rows) % number == i) for i in range(number)],
    )
    one, many = both(tmp_path, NEAR[1])
    with pytest.raises(AssertionError):
        same_figures(one.bounded(3, KEY), many.bounded(3, KEY))


def test_a_part_that_counts_twice_is_caught(tmp_path: Path) -> None:
    class Twice(ThisProcess):
        def combined(self, figure, add, parts):
            return super().combined(figure, add, [*parts, parts[0]])

    one, many = both(tmp_path, NEAR[0], Twice())
    with pytest.raises(AssertionError):
        same_figures(one.bounded(1, KEY), many.bounded(1, KEY))


def test_nothing_is_shown_when_rows_of_workers_are_printed(tmp_path: Path) -> None:
    _, many = both(tmp_path, NEAR[1])
    pieces = pieces_of_file(tmp_path / "t.parquet", ["pay"], FORM, 4, keep_broken=True)
    for shown in (many, many.bounded(1, KEY), many.coding, pieces[0]):
        assert "t.parquet" not in repr(shown) and "array" not in repr(shown) and "kkkk" not in repr(shown)
