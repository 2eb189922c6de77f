"""A table of texts in each form that a release reads rows from."""

import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

Section = dict[str, object]


def in_csv(rows: pa.Table, folder: Path) -> Section:
    csv.write_csv(rows, folder / "t.csv")
    return {"path": str(folder / "t.csv")}


def in_gz(rows: pa.Table, folder: Path) -> Section:
    in_csv(rows, folder)
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    (folder / "t.csv").unlink()
    return {"path": str(folder / "t.csv.gz")}


def in_parquet(rows: pa.Table, folder: Path) -> Section:
    """Three files of several row groups."""
    size = -(-rows.num_rows * 3 // 8)
    for part, start in enumerate(range(0, rows.num_rows, size)):
        path = folder / f"part-{part}.parquet"
        parquet.write_table(rows[start : start + size], path, row_group_size=rows.num_rows // 10)
    return {"path": str(folder), "format": "parquet"}


def in_url(rows: pa.Table, folder: Path) -> Section:
    return in_parquet(rows, folder) | {"path": f"file://{folder}"}


def in_sqlite(rows: pa.Table, folder: Path) -> Section:
    with sqlite3.connect(folder / "t.db") as database:
        rows.to_pandas().to_sql("people", database, index=False)
    database.close()
    return {"path": None, "url": f"sqlite:///{folder / 't.db'}", "query": "SELECT * FROM people"}


def in_duckdb(rows: pa.Table, folder: Path) -> Section:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        database.register("rows", rows)
        database.execute("CREATE TABLE people AS SELECT * FROM rows")
    return {"path": None, "url": f"duckdb:///{folder / 't.duckdb'}", "query": "SELECT * FROM people"}


def in_postgresql(rows: pa.Table, url: str) -> Section:
    """In an empty database."""
    import psycopg

    names = ", ".join(f'"{column}" text' for column in rows.column_names)
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE people ({names})")
        cells = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        cursor.executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * rows.num_columns)})", cells)
    return {"path": None, "url": url, "query": "SELECT * FROM people"}


FORMS: dict[str, Callable[[pa.Table, Path], Section]] = {
    "csv": in_csv, "gz": in_gz, "parquet": in_parquet, "url": in_url, "sqlite": in_sqlite,
    "duckdb": in_duckdb,
}  # fmt: skip
"""Writers into an empty folder; each gives the section ``source``."""
