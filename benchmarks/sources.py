"""Seconds, processor time and memory of one table from every source, and whether all of them count alike.

    python -m benchmarks.sources [--rows 10000000] [--only csv gz folder ...] [--bundles] [--folder DIR]

Run it from the root of the repository: it starts the tests' own PostgreSQL server, which needs Debian's
package `postgresql`. The made-up table has ten related columns of 20 values each: six of integers, two of
texts, two of floats; a hundredth of all cells is missing. On the disk it is there twice at most, and the
server's.

Each source is read, coded and counted by a fresh process, with access to the exact counts of all 45 pairs.
Its seconds and peak memory are measured from outside; Dask's processes say their own, and the server's
processor time is what its processes took. All counts must be the same to the last row. With --bundles a
release is left when all its questions are asked, and finished from each source: all bundles must be the
same to the last byte.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import csv, ipc, parquet

from benchmarks.coded_tables import measured
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.config import Spec
from dpsynth.curator import MemoryTable
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.inputs import cells_of, file_of, inputs_of
from dpsynth.pipeline.reservation import Occasion
from dpsynth.testing import load_table
from dpsynth.wings.cluster.dask_clusters import local_workers
from dpsynth.wings.cluster.partitioned import Coding, PartitionedRows, pieces_of_file
from dpsynth.wings.proof.audit.replay import observe
from tests.databases import Postgres

PLACES, PIECE, PIECES_OF_TEN = 20, 1_000_000, 10
KINDS = ["integer"] * 6 + ["text"] * 2 + ["float"] * 2
NAMES = [f"c{i}" for i in range(len(KINDS))]
TYPES = {"integer": pa.int32(), "text": pa.string(), "float": pa.float64()}
SQL = {"integer": "integer", "text": "text", "float": "double precision"}
SCHEMA = pa.schema([(n, TYPES[k]) for n, k in zip(NAMES, KINDS, strict=True)])
QUERY = f"SELECT {', '.join(NAMES)} FROM visits"
NEAR = Neighbours("add_remove")


def pieces(rows: int) -> Iterator[pa.Table]:
    """The table, a million rows at a time; always the same."""
    words = pa.array([f"word {k}" for k in range(PLACES)])
    for number, start in enumerate(range(0, rows, PIECE)):
        rng, size = np.random.default_rng(number), min(PIECE, rows - start)
        shared = rng.integers(0, 5, size)
        columns = []
        for i, kind in enumerate(KINDS):
            code = (rng.integers(0, PLACES, size) + shared * i) % PLACES
            none = rng.random(size) < 0.01
            if kind == "text":
                columns.append(words.take(pa.array(code, mask=none)))
            else:
                columns.append(pa.array(code + (0.5 if kind == "float" else 0), TYPES[kind], mask=none))
        yield pa.table(columns, schema=SCHEMA)


def to_csv(rows: int, folder: Path) -> dict[str, object]:
    """A CSV file."""
    with csv.CSVWriter(folder / "t.csv", SCHEMA) as file:
        for piece in pieces(rows):
            file.write(piece)
    return {"path": f"{folder / 't.csv'}"}


def to_gz(rows: int, folder: Path) -> dict[str, object]:
    """A CSV file, packed."""
    with gzip.open(folder / "t.csv.gz", "wb", 1) as packed, csv.CSVWriter(packed, SCHEMA) as file:
        for piece in pieces(rows):
            file.write(piece)
    return {"path": f"{folder / 't.csv.gz'}"}


def to_folder(rows: int, folder: Path) -> dict[str, object]:
    """A folder of Parquet files."""
    for number, piece in enumerate(pieces(rows)):
        parquet.write_table(piece, folder / f"part-{number:04}.parquet")
    return {"path": f"{folder}", "format": "parquet"}


def to_memory(rows: int, folder: Path) -> dict[str, object]:
    """An Arrow table; it lies in a file that is mapped into the memory of the process that reads it."""
    with ipc.new_file(str(folder / "t.arrow"), SCHEMA) as file:
        for piece in pieces(rows):
            file.write_table(piece)
    return {}


def to_sqlite(rows: int, folder: Path) -> dict[str, object]:
    """A file of SQLite's."""
    database = sqlite3.connect(folder / "t.db")
    database.execute(f"CREATE TABLE visits ({', '.join(NAMES)})")
    for piece in pieces(rows):
        cells = zip(*(column.to_pylist() for column in piece.columns), strict=True)
        database.executemany(f"INSERT INTO visits VALUES ({', '.join('?' * len(NAMES))})", cells)
    database.commit()
    database.close()
    return {"url": f"sqlite:///{folder / 't.db'}", "query": QUERY}


def to_duckdb(rows: int, folder: Path) -> dict[str, object]:
    """A file of DuckDB's."""
    import duckdb

    with duckdb.connect(str(folder / "t.duckdb")) as database:
        for number, piece in enumerate(pieces(rows)):
            database.register("piece", piece)
            into = "INSERT INTO visits" if number else "CREATE TABLE visits AS"
            database.execute(f"{into} SELECT * FROM piece")
    return {"url": f"duckdb:///{folder / 't.duckdb'}", "query": QUERY}


def to_postgresql(rows: int, folder: Path, server: Postgres) -> dict[str, object]:
    """A table of a PostgreSQL server."""
    import psycopg

    url = server.make()
    columns = ", ".join(f"{n} {SQL[k]}" for n, k in zip(NAMES, KINDS, strict=True))
    server.execute(f"CREATE UNLOGGED TABLE visits ({columns})", url)
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for piece in pieces(rows):
            with cursor.copy("COPY visits FROM STDIN (FORMAT csv)") as copy, pa.BufferOutputStream() as text:
                csv.write_csv(piece, text, csv.WriteOptions(include_header=False))
                copy.write(memoryview(text.getvalue()))
    # So that no reader pays for what writing has left.
    server.execute("VACUUM ANALYZE visits", url)
    return {"url": url, "query": QUERY}


SOURCES: dict[str, Callable[..., dict[str, object]]] = {
    "csv": to_csv,
    "gz": to_gz,
    "folder": to_folder,
    "postgresql": to_postgresql,
    "sqlite": to_sqlite,
    "duckdb": to_duckdb,
    "memory": to_memory,
    "dask": to_folder,
}


def spec_of(name: str, folder: Path, source: dict[str, object]) -> Spec:
    """The config of a release of the table from a source."""
    declared: dict[str, dict[str, object]] = {
        "integer": {"type": "integer", "min": 0, "max": PLACES - 1},
        "text": {"type": "category", "values": [f"word {k}" for k in range(PLACES)]},
        "float": {"type": "number", "min": 0, "max": PLACES, "bins": PLACES},
    }
    facts = {
        "release": "visits",
        "source": source or {"path": "in-memory.parquet"},
        # With a public number of rows a release that is finished reads its table again.
        "privacy": {"epsilon": 1, "delta": 1e-9, "neighbours": "replace_one"},
        "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "visits"},
        "sample": {"rows": 10_000},
        "columns": {n: declared[k] for n, k in zip(NAMES, KINDS, strict=True)},
        **({"engine": {"dask": "local"}} if name == "dask" else {}),
    }
    return Spec.from_dict(facts)


def memory_table(folder: Path) -> MemoryTable:
    """The Arrow table in memory."""
    return MemoryTable(ipc.open_file(pa.memory_map(str(folder / "t.arrow"))).read_all())


def count(name: str, folder: Path, source: dict[str, object]) -> None:
    """Read, code and count the table; print a digest of the counts, and the workers' figures."""
    spec, said = spec_of(name, folder, source), dict[str, object]()
    memory = memory_table(folder) if name == "memory" else None
    inputs = inputs_of(spec.in_memory() if memory else spec, memory)
    columns, pairs = inputs.compiled.columns, [(), *combinations(NAMES, 2)]
    if name == "dask":
        workers, end = local_workers(folder / "dask")
        path, form = file_of(inputs)
        coding = Coding(columns, NEAR, b"", None, frozenset(), None, workers.room(spec.engine.memory))
        parts = pieces_of_file(path, NAMES, form, workers.pieces, keep_broken=True)
        counts = PartitionedRows.read(workers, parts, coding).bounded(1, b"").counts_of(pairs)
        said["workers"] = [_figures_of(p) for p in psutil.Process().children(recursive=True)]
        end()
    else:
        counts = load_table(cells_of(inputs, Occasion("", None)), columns, NEAR, b"").counts_of(pairs)
    digest = hashlib.sha256(b"".join(c.tobytes() for c in counts)).hexdigest()
    print(json.dumps({"rows": int(counts[0].sum()), "digest": digest, **said}))


def _figures_of(process: psutil.Process) -> tuple[float, float]:
    """Seconds of all processors, and peak megabytes."""
    times = process.cpu_times()
    status = Path(f"/proc/{process.pid}/status").read_text()
    return times.user + times.system, int(status.split("VmHWM:")[1].split()[0]) / 1e3


def finish(name: str, folder: Path, source: dict[str, object], left: Path) -> None:
    """Finish the release that was left, from a source; print a digest of its bundle."""
    spec = spec_of(name, folder, source)
    (partial_folder,) = (left / "visits").glob(".*.partial")
    release_id = partial_folder.name.removeprefix(".").removesuffix(".partial")
    shutil.copytree(left, folder / "out")
    table = memory_table(folder) if name == "memory" else None
    done = pipeline.run(spec.in_memory() if table else spec, Request(folder / "out", release_id), table=table)
    public = done.folder / "public"
    files = {f"{p.relative_to(public)}": p.read_bytes() for p in public.rglob("*") if p.is_file()}
    print(json.dumps({name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}))


def child(act: Callable[[], object]) -> None:
    """Do something in another process: where a peak counts what a process had, this one stays small."""
    if (process := os.fork()) == 0:
        try:
            act()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        sys.exit("A table was not made.")


def server_seconds(server: Postgres) -> float:
    """Seconds of all processors that the server's processes have taken, those that have ended included."""
    pid = int((server._folder / "data" / "postmaster.pid").read_text().split()[0])
    found = [psutil.Process(pid).cpu_times()]
    found += [p.cpu_times() for p in psutil.Process(pid).children()]
    return sum(t.user + t.system for t in found) + found[0].children_user + found[0].children_system


def compared(names: Sequence[str], rows: int, work: Path, *, bundles: bool) -> None:
    """Print a row for each source; exit 1 if one counts otherwise, or makes another bundle."""
    server = Postgres() if "postgresql" in names else None
    counts: dict[str, str] = {}
    files: dict[str, str] = {}
    faults = []
    print("source       seconds       CPU        MB  beside: CPU, MB each")
    try:
        for name in names:
            (folder := work / name).mkdir()
            _make(name, rows, folder, server)
            call = [sys.executable, "-m", "benchmarks.sources", "--child", name, str(folder)]
            before = server_seconds(server) if server else 0.0
            text, figures = measured([*call, "count"])
            said = json.loads(text)
            beside = "; ".join(f"{cpu:.1f} s {peak:.0f} MB" for cpu, peak in said.pop("workers", []))
            if name == "postgresql" and server is not None:
                beside = f"{server_seconds(server) - before:.1f} s of the server"
            shown = "".join(f"{figures[key]:10.1f}" for key in ("seconds", "cpu", "MB"))
            print(f"{name:10}{shown}  {beside}", flush=True)
            counts = counts or said
            if said != counts or said["rows"] != rows:
                faults.append(f"{name} counts otherwise")
            if bundles:
                left = work / "left"
                if not left.exists():
                    child(partial(observe, _spec_in(name, folder, work), left))
                mine = json.loads(measured([*call, "finish", str(left)])[0])
                files = files or mine
                others = [file for file in sorted(files | mine) if files.get(file) != mine.get(file)]
                faults += [f"{name} makes another bundle: {', '.join(others)}"] if others else []
            if name != "postgresql":
                shutil.rmtree(folder)
    finally:
        if server is not None:
            server.close()
    if faults:
        sys.exit("\n".join(faults))
    print(f"all count {rows:,} rows alike{f', and make the same {len(files)} files' if files else ''}")


def _make(name: str, rows: int, folder: Path, server: Postgres | None) -> None:
    """Make a source, and keep its part of a config."""

    def make() -> None:
        more = (server,) if name == "postgresql" else ()
        (folder / "source.json").write_text(json.dumps(SOURCES[name](rows, folder, *more)))

    child(make)


def _spec_in(name: str, folder: Path, work: Path) -> Spec:
    return spec_of(name, work, json.loads((folder / "source.json").read_text()))


def main() -> None:
    """Make the sources, one after another, and measure each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--bundles", action="store_true")
    parser.add_argument("--folder", type=Path, help="where to work; left out: a temporary folder")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        name, folder, act, *more = asked.child
        source = json.loads(Path(folder, "source.json").read_text())
        if act == "count":
            count(name, Path(folder), source)
        else:
            finish(name, Path(folder), source, Path(more[0]))
        return
    if asked.folder:
        tempfile.tempdir = str(asked.folder)
    with tempfile.TemporaryDirectory() as work:
        compared(asked.only, asked.rows, Path(work), bundles=asked.bundles)


if __name__ == "__main__":
    main()
