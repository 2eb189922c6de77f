"""Coded columns are the same in memory and in files, and the files have no name."""

import errno
import os
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column, NumberSearch
from dpsynth.columns.domain import Compression
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import Centring
from dpsynth.curator import load_rows
from dpsynth.curator.rows import coded_columns
from dpsynth.curator.rows.coded_columns import CodedColumns, Room
from dpsynth.errors import SourceError

KEY = b"k" * 32
BINS = NumericCodec(tuple(map(float, range(401))), 0, True)
COLUMNS = (
    Column("n", BINS),
    Column("sex", CategoryCodec(("F", "M"))),
    Column("pay", NumericCodec((0.0, 10.0, 50.0), 0, True)),
)


def batches(rows, long=97, seed=0):
    rng = np.random.default_rng(seed)
    whole = pa.table(
        {
            "n": rng.integers(-5, 450, rows),
            "sex": pa.array(["F", "M", "?", None]).take(pa.array(rng.integers(0, 4, rows))),
            "pay": rng.integers(0, 60, rows).astype(float),
            "id": rng.integers(0, rows // 3 + 1, rows),
        }
    )
    for batch in whole.to_batches(max_chunksize=long):
        yield dict(zip(batch.schema.names, batch.columns, strict=True))


def loaded(near, room, columns=COLUMNS, rows=1_000):
    return load_rows(batches(rows), columns, near, KEY, None, frozenset(("pay",)), room)


@pytest.mark.parametrize("near", [Neighbours("add_remove"), Neighbours("add_remove", "id", 2)])
@pytest.mark.parametrize("memory", [0, 1_500])
def test_rows_in_files_are_those_in_memory(tmp_path: Path, near: Neighbours, memory: int) -> None:
    here, there = (loaded(near, room).bounded(2, KEY) for room in (Room(), Room(memory, tmp_path / "p")))
    assert isinstance(there.codes["n"], np.memmap) and not isinstance(here.codes["n"], np.memmap)
    assert list((tmp_path / "p").iterdir()) == [] and (tmp_path / "p").stat().st_mode & 0o777 == 0o700
    for name, codes in here.codes.items():
        assert codes.dtype == there.codes[name].dtype
        np.testing.assert_array_equal(codes, there.codes[name])
    cliques = [(), *combinations(("n", "sex", "pay"), 2)]
    groups = Compression({"n": np.arange(COLUMNS[0].size) % 5})
    for one, two in ((here, there), (here.recoded(groups), there.recoded(groups))):
        for a, b in zip(one.counts_of(cliques), two.counts_of(cliques), strict=True):
            np.testing.assert_array_equal(a, b)
    centring = Centring((3, 20), 9)
    np.testing.assert_array_equal(here.sums("pay", ("sex",), centring), there.sums("pay", ("sex",), centring))


def test_texts_in_files_are_those_in_memory(tmp_path: Path) -> None:
    searched = (Column("n", BINS, search=NumberSearch(0.0, 400.0, "quantiles", 400, 0, True)), *COLUMNS[1:])
    near = Neighbours("add_remove", "id", 2)
    here, there = (loaded(near, room, searched).bounded(2, KEY) for room in (Room(), Room(0, tmp_path / "p")))
    assert isinstance(there.texts["n"].index, np.memmap)
    np.testing.assert_array_equal(here.texts_of("n").units, there.texts_of("n").units)
    assert here.texts["n"].distinct.to_pylist() == there.texts["n"].distinct.to_pylist()
    one, two = here.coded(COLUMNS), there.coded(COLUMNS)
    assert isinstance(two.codes["n"], np.memmap)
    np.testing.assert_array_equal(one.counts(("n", "sex")), two.counts(("n", "sex")))


def test_a_table_without_rows_lies_in_files_too(tmp_path: Path) -> None:
    table = load_rows([], COLUMNS, Neighbours("add_remove"), KEY, room=Room(0, tmp_path)).bounded(1, KEY)
    assert table.rows == 0 and not table.counts(("n", "sex")).any()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_full_disk_is_said_in_words_without_a_cell(tmp_path: Path, monkeypatch, number: int) -> None:
    class Full:
        def write(self, _):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(coded_columns, "_nameless", lambda folder: Full())
    with pytest.raises(SourceError, match=r"larger than engine\.memory") as refused:
        CodedColumns(Room(0, tmp_path)).add({"a": np.array([77], np.uint8)})
    assert "77" not in str(refused.value).replace(str(tmp_path), "")
    why = "the disk is full" if number == errno.ENOSPC else os.strerror(number)
    assert f": {why}. " in str(refused.value)


@pytest.mark.parametrize(
    ("memory", "folder", "in_files"), [(1, False, False), (9, True, False), (7, True, True)]
)
def test_columns_lie_in_files_only_beyond_their_memory_and_where_they_may(
    tmp_path: Path, memory: int, folder: bool, in_files: bool
) -> None:
    columns = CodedColumns(Room(memory, tmp_path / "not" / "there" if folder else None))
    columns.add({name: np.arange(4, dtype=np.uint8) for name in "ab"})
    last = columns.array("b")
    assert isinstance(last, np.memmap) == in_files
    np.testing.assert_array_equal(last, np.arange(4))


HOLDING = """
import sys, time, numpy as np
from pathlib import Path
from dpsynth.curator.rows.coded_columns import CodedColumns, Room
columns = CodedColumns(Room(0, Path(sys.argv[1])))
columns.add({"a": np.frombuffer(b"canary-raccoon" * 1000, np.uint8)})
held = columns.array("a")
print(len(held), flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_kill_leaves_nothing_of_the_coded_rows(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline().strip() == b"14000"
    assert list(tmp_path.iterdir()) == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(tmp_path.iterdir()) == []
