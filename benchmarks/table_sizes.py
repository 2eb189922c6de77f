"""Time and memory of whole releases as a table grows, step by step, beside floors and the plan's forecast.

    python benchmarks/table_sizes.py [--rows 20000 200000 2000000] [--columns 10] [--real fire]
        [--source parquet] [--structure auto] [--made 10000] [--written parquet] [--duckdb] [--folder FOLDER]

The table is made up; with --real it is a coded table of the folder that DPSYNTH_DATA names, all of its
columns, repeated, with one cell in twenty taken from another row. --made is the number of synthetic rows;
left out, as many as the table has. --written is their format. --folder keeps the tables, and takes those that
are there.

Each release is a fresh process of `dpsynth run --plain`, timed and measured from outside: the whole, its
steps up to the choice of marginals (reading), and the one that draws, refines, decodes, codes and writes
the synthetic rows (making). The floors are processes of their own. That of reading is one pass of Arrow's
reader over the same file; with --duckdb (needs `dpsynth[duckdb]`) it is DuckDB counting all pairs of
columns of the same file in one query. That of making is Arrow's writer, given the release's own synthetic
table in memory, in the same format and compression; reading the table to memory isn't counted. The forecast
is that of `dpsynth plan --rows`. The work of each step goes to standard error.

Linux only: processor seconds of a step are read from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from coded_tables import measured
from pyarrow import csv, parquet

PLACES = 20
CHUNK = 1 << 20
PART = 10_000_000
"""Rows of a file of Parquet. A table of several times as many is a folder of links to one file."""
CHANGED = 0.05
"""The part of the cells of a repeated table that are taken from other rows."""
COUNTED = ("open the table", "measure single columns", "merge rare values", "choose and measure marginals")
MADE = "sample rows"

READING = {
    "csv": "import sys; from pyarrow import csv; print(csv.read_csv(sys.argv[1]).num_rows)",
    "parquet": "import sys; from pyarrow.dataset import dataset; "
    "print(sum(batch.num_rows for batch in dataset(sys.argv[1]).to_batches()))",
}

PAIRS = """
import itertools, os, sys, duckdb
path = sys.argv[1] + ("/*.parquet" if os.path.isdir(sys.argv[1]) else "")
names = [f'"{name}"' for name in duckdb.sql(f"SELECT * FROM '{path}' LIMIT 0").columns]
sets = ", ".join(f"({a}, {b})" for a, b in itertools.combinations(names, 2))
listed = ", ".join(names)
cells = f"SELECT {listed}, count(*) AS n FROM '{path}' GROUP BY GROUPING SETS ({sets})"
print(duckdb.sql(f"SELECT count(*), sum(n) FROM ({cells})").fetchall())
"""

WRITING = """
import sys, time
import pyarrow as pa
from pyarrow import csv, dataset, parquet
source, path = sys.argv[1:]
table = dataset.dataset(source, format=path.rsplit(".")[-1])
batches = table.to_batches(batch_size=1 << 20, batch_readahead=1, fragment_readahead=1)
wall, cpu, writer = 0.0, 0.0, None
for batch in batches:
    table = pa.Table.from_batches([batch])
    begun = time.perf_counter(), time.process_time()
    if writer is None and path.endswith("csv"):
        writer = csv.CSVWriter(path, table.schema)
    elif writer is None:
        writer = parquet.ParquetWriter(path, table.schema, compression="zstd")
    writer.write_table(table)
    wall, cpu = wall + time.perf_counter() - begun[0], cpu + time.process_time() - begun[1]
begun = time.perf_counter(), time.process_time()
writer.close()
print(wall + time.perf_counter() - begun[0], cpu + time.process_time() - begun[1])
"""


@dataclass(frozen=True)
class Work:
    """Seconds, and seconds of all processors."""

    seconds: float
    cpu: float


@dataclass(frozen=True)
class Shape:
    """A table to be made.

    Attributes:
        rows: the number of rows.
        columns: that of columns of a made-up table.
        real: name of a real table; None for a made-up one.
        kind: format of the file.
    """

    rows: int
    columns: int
    real: str | None
    kind: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.real or self.columns}-{self.rows}.{self.kind}"


def sizes_of(shape: Shape) -> dict[str, int]:
    """The number of values of each column, which are whole numbers from 0."""
    if shape.real is None:
        return {f"c{i}": PLACES for i in range(shape.columns)}
    found: dict[str, int] = json.loads((data() / f"{shape.real}-domain.json").read_text())
    return found


def data() -> Path:
    """The folder of real tables."""
    return Path(os.environ["DPSYNTH_DATA"])


def chunks(shape: Shape) -> Iterator[pa.Table]:
    """The rows of a table."""
    rng = np.random.default_rng(shape.rows)
    names = list(sizes_of(shape))
    base: dict[str, np.ndarray] = {}
    if shape.real is not None:
        file = next(p for p in (data() / f"{shape.real}.csv.gz", data() / f"{shape.real}.csv") if p.exists())
        table = csv.read_csv(file)
        base = {name: table.column(name).to_numpy() for name in names}
    for begin in range(0, shape.rows, CHUNK):
        rows = min(CHUNK, shape.rows - begin)
        if base:
            number = len(base[names[0]])
            columns = [base[name][(begin + np.arange(rows)) % number] for name in names]
            for name, codes in zip(names, columns, strict=True):
                others = np.flatnonzero(rng.random(rows) < CHANGED)
                codes[others] = base[name][rng.integers(0, number, others.size)]
        else:
            shared = rng.integers(0, 5, rows)
            columns = [(rng.integers(0, PLACES, rows) + shared * (i % 7)) % PLACES for i in range(len(names))]
        yield pa.table(columns, names=names)


def write_table(path: Path, shape: Shape) -> None:
    """Write the table chunk by chunk, in a process of its own.

    Where a peak of memory counts what a process had before, this one stays small.
    """
    if shape.kind == "parquet" and shape.rows > PART and shape.rows % PART == 0:
        part = replace(shape, rows=PART)
        if not (one := path.parent / part.name).exists():
            write_table(one, part)
        path.mkdir()
        for number in range(shape.rows // PART):
            (path / f"{number}.parquet").hardlink_to(one)
        return
    if (child := os.fork()) == 0:
        writer = None
        for chunk in chunks(shape):
            if writer is None:
                kind = csv.CSVWriter if shape.kind == "csv" else parquet.ParquetWriter
                writer = kind(path, chunk.schema)
            writer.write_table(chunk)
        if writer is not None:
            writer.close()
        os._exit(0)
    os.waitpid(child, 0)


def write_config(folder: Path, path: Path, shape: Shape, asked: argparse.Namespace) -> Path:
    """Write the config of a release."""
    declared = "".join(
        f"  {json.dumps(name)}: {{type: integer, min: 0, max: {size - 1}, bins: {size}, missing: false}}\n"
        for name, size in sizes_of(shape).items()
    )
    split = f", rows_a_file: {asked.rows_a_file}" if asked.rows_a_file else ""
    config = folder / "release.yaml"
    config.write_text(
        f"source: {{path: {path}}}\nprivacy: {{epsilon: 1, delta: 1.0e-9}}\n"
        f"ledger: {{url: 'sqlite:///{folder}/ledger.db'}}\nstructure: {asked.structure}\n"
        + (f"sample: {{rows: {asked.made}}}\n" if asked.made else "")
        + f"publish: {{formats: [{asked.written}]{split}}}\ncolumns:\n{declared}"
    )
    return config


def stepped(command: Sequence[str]) -> tuple[Path, dict[str, Work], Work, float]:
    """Run a release; its bundle, the work of each step and of the whole, and the peak in megabytes."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    ticks, moments, said = os.sysconf("SC_CLK_TCK"), [], []
    for line in process.stderr:
        said.append(line)
        if line.startswith("Step: "):
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            cpu = (int(fields[11]) + int(fields[12])) / ticks
            moments.append((line.removeprefix("Step: ").strip(), Work(time.perf_counter() - begun, cpu)))
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("".join(said))
    whole = Work(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime)
    ends = [*(moment for _, moment in moments[1:]), whole]
    steps = {
        name: Work(end.seconds - start.seconds, end.cpu - start.cpu)
        for (name, start), end in zip(moments, ends, strict=True)
    }
    return Path(printed.strip().splitlines()[-1]), steps, whole, usage.ru_maxrss / 1e3


def forecast(config: Path, rows: int) -> Work:
    """The plan's forecast: seconds, and megabytes in the place of processor seconds."""
    plan = [sys.executable, "-m", "dpsynth", "plan", str(config), "--rows", str(rows), "--json"]
    engine = json.loads(subprocess.run(plan, check=True, capture_output=True, text=True).stdout)["engine"]
    return Work(engine["seconds"], engine["megabytes"])


def least_writing(bundle: Path, written: str) -> Work:
    """The work of Arrow's writer for the synthetic table of a bundle."""
    source, copy = bundle / "public" / f"synthetic.{written}", bundle / f"copy.{written}"
    command = [sys.executable, "-c", WRITING, str(source), str(copy)]
    seconds, cpu = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    copy.unlink()
    return Work(float(seconds), float(cpu))


def release(config: Path, shape: Shape, asked: argparse.Namespace, least: Work) -> tuple[float, ...]:
    """The figures of one release, in the order of the table's columns."""
    expected = forecast(config, shape.rows)
    run = [
        sys.executable,
        "-m",
        "dpsynth",
        "run",
        str(config),
        "--plain",
        "--out",
        str(config.parent / "out"),
    ]
    bundle, steps, whole, peak = stepped(run)
    for name, work in steps.items():
        print(f"{name}: {work.seconds:.2f} s, {work.cpu:.2f} CPU s", file=sys.stderr)
    print(f"in all: {whole.seconds:.2f} s, {whole.cpu:.2f} CPU s, {peak:.0f} MB", file=sys.stderr, flush=True)
    read = [steps[name] for name in COUNTED if name in steps]
    made, floor = steps[MADE], least_writing(bundle, asked.written)
    return (
        *(whole.seconds, whole.cpu, peak, expected.seconds, expected.cpu),
        *(sum(w.seconds for w in read), sum(w.cpu for w in read), least.seconds, least.cpu),
        *(made.seconds, made.cpu, floor.seconds, floor.cpu),
        *(made.seconds / floor.seconds, made.cpu / floor.cpu),
    )


@contextmanager
def folder_of(kept: Path | None) -> Iterator[Path]:
    """The folder of the tables: a given one, or one that is removed in the end."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main() -> None:
    """Print a Markdown row a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=lambda text: int(float(text)), default=[20_000, 200_000])
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--real")
    parser.add_argument("--source", choices=READING, default="parquet")
    parser.add_argument("--structure", nargs="+", default=["auto"])
    parser.add_argument("--made", type=int)
    parser.add_argument("--written", choices=READING, default="parquet")
    parser.add_argument("--rows-a-file", type=int)
    parser.add_argument("--duckdb", action="store_true")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    structures = asked.structure
    heads = (
        "rows",
        "method",
        "s",
        "CPU s",
        "MB",
        "forecast s",
        "MB",
        "reading s",
        "CPU s",
        "floor s",
        "CPU s",
    )
    print("| " + " | ".join((*heads, "making s", "CPU s", "floor s", "CPU s", "ratio", "of CPU s")) + " |")
    print("|--:|---" + "|--:" * 15 + "|")
    with folder_of(asked.folder) as tables:
        for rows in asked.rows:
            shape = Shape(rows, asked.columns, asked.real, asked.source)
            path = tables / shape.name
            if not path.exists():
                write_table(path, shape)
            _, least = measured(
                [sys.executable, "-c", PAIRS if asked.duckdb else READING[asked.source], str(path)]
            )
            for structure in structures:
                asked.structure = structure
                with tempfile.TemporaryDirectory(dir=tables) as name:
                    config = write_config(Path(name), path, shape, asked)
                    figures = release(config, shape, asked, Work(least["seconds"], least["cpu"]))
                print(
                    f"| {rows:,} | {structure} | " + " | ".join(f"{f:.2f}" for f in figures) + " |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
