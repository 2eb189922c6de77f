"""The same cell has the same code from every source, and no source says a cell or a password."""

import gzip
import sqlite3
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.config import Spec, compiled
from dpsynth.config.files import FileForm
from dpsynth.config.files.place import RemotePath
from dpsynth.curator import Batch, DatabaseTable, MemoryTable, read_cells
from dpsynth.curator.rows.cell_texts import text_of
from dpsynth.errors import SourceError
from dpsynth.testing import load_table

CANARY = "canary-raccoon"
CELLS: dict[str, list[object]] = {
    "whole": [0, -7, 99, 10**12, None, 42, 1, 7],
    "number": [0.1, -0.0, 1e20, 2.5, None, 1e-7, 3.0, 12345.678],
    "exact": [*map(Decimal, ("0.10", "-3.00", "99999.99", "1.00", "2.50", "7.00", "0.00")), None],
    "text": ["007", " x ", "Zürich", "", None, CANARY, "7.0", "N/A"],
    "truth": [True, False, None, True, True, False, False, True],
    "day": [date(2024, 2, 29), date.min, None, date(2031, 1, 1), *[date(2024, 1, d) for d in (1, 2, 3, 4)]],
    "moment": [
        datetime(2024, 2, 29, 13, 5), datetime(2024, 1, 1), None, datetime(2023, 6, 1, 23, 59, 59, 999000),
        *[datetime(2024, 5, d, 8) for d in (1, 2, 3, 4)],
    ],
}  # fmt: skip
TYPES = {
    "whole": pa.int64(), "number": pa.float64(), "exact": pa.decimal128(9, 2), "text": pa.string(),
    "truth": pa.bool_(), "day": pa.date32(), "moment": pa.timestamp("us"),
}  # fmt: skip
TABLE = pa.table({name: pa.array(cells, TYPES[name]) for name, cells in CELLS.items()})
SQL_TYPES = {
    "whole": "bigint", "number": "double precision", "exact": "numeric(9,2)", "text": "text",
    "truth": "boolean", "day": "date", "moment": "timestamp",
}  # fmt: skip
COLUMNS = compiled(
    Spec.from_dict(
        {
            "privacy": {"epsilon": 1},
            "ledger": {"dataset": "d"},
            "columns": {
                "whole": {"type": "integer", "min": 0, "max": 99},
                "number": {"type": "number", "min": 0, "max": 100, "bins": 50},
                "exact": {"type": "category", "values": ["0.10", "-3.00", "1.00", "2.50"], "other": "rest"},
                "text": {"type": "category", "values": ["007", "x", "Zürich", "7.0"], "missing": "N/A"},
                "truth": {"type": "boolean"},
                "day": {"type": "date", "min": "2020-01-01", "max": "2026-12-31", "unit": "day"},
                "moment": {"type": "datetime", "min": "2023-01-01", "max": "2024-12-31", "unit": "day"},
            },
        }
    )
).columns
NAMES = list(CELLS)


def codes(batches: Iterator[Batch]) -> dict[str, list[int]]:
    table = load_table(batches, COLUMNS, Neighbours("add_remove"), b"k" * 32)
    return {name: table.codes[name].tolist() for name in NAMES}


EXPECTED = codes(iter([{name: text_of(TABLE[name].combine_chunks()) for name in NAMES}]))


def as_csv() -> bytes:
    texts = [text_of(TABLE[name].combine_chunks()).to_pylist() for name in NAMES]
    rows = [",".join("" if cell is None else f'"{cell}"' for cell in row) for row in zip(*texts, strict=True)]
    return "\n".join([",".join(NAMES), *rows, ""]).encode()


def file(path: Path, form: FileForm) -> Iterator[Batch]:
    return read_cells(path, NAMES, form, keep_broken=True)


def of_csv(folder: Path) -> Iterator[Batch]:
    (folder / "t.csv").write_bytes(as_csv())
    return file(folder / "t.csv", FileForm())


def of_gz(folder: Path) -> Iterator[Batch]:
    (folder / "t.csv.gz").write_bytes(gzip.compress(as_csv()))
    return file(folder / "t.csv.gz", FileForm(compression="gz"))


def of_zst(folder: Path) -> Iterator[Batch]:
    with pa.CompressedOutputStream(str(folder / "t.csv.zst"), "zstd") as packed:
        packed.write(as_csv())
    return file(folder / "t.csv.zst", FileForm(compression="zst"))


def of_utf_16(folder: Path) -> Iterator[Batch]:
    (folder / "t.csv").write_bytes(as_csv().decode().encode("utf-16"))
    return file(folder / "t.csv", FileForm(encoding="utf-16"))


def of_parquet(folder: Path) -> Iterator[Batch]:
    parquet.write_table(TABLE, folder / "t.parquet", row_group_size=3)
    return file(folder / "t.parquet", FileForm("parquet"))


def of_folder(folder: Path) -> Iterator[Batch]:
    parquet.write_table(TABLE[:3], folder / "part-0.parquet")
    parquet.write_table(TABLE[3:], folder / "part-1.parquet", use_dictionary=False)
    (folder / "_metadata.parquet").write_bytes(b"no table")
    return file(folder, FileForm("parquet"))


def of_partitions(folder: Path) -> Iterator[Batch]:
    """One folder for each text, in the order of the rows."""
    for row in range(TABLE.num_rows):
        text = CELLS["text"][row]
        # A folder's name has no way to say an empty text, and it is missing either way.
        name = "__HIVE_DEFAULT_PARTITION__" if not text else str(text).replace("/", "%2F").replace(" ", "%20")
        (folder / f"row={row}" / f"text={name}").mkdir(parents=True)
        parquet.write_table(
            TABLE[row : row + 1].drop_columns("text"), folder / f"row={row}/text={name}/0.parquet"
        )
    return file(folder, FileForm("parquet"))


def behind_url(folder: Path, made: Callable[[Path], Iterator[Batch]], name: str) -> Iterator[Batch]:
    """What a source above wrote, copied behind a URL."""
    fsspec = pytest.importorskip("fsspec")
    made(folder)
    url = f"memory://{folder.name}/"
    fsspec.filesystem("memory").put(f"{folder}/", f"/{folder.name}/", recursive=True)
    form = FileForm("parquet") if name in ("", "t.parquet") else FileForm(compression="gz")
    return read_cells(RemotePath(url + name), NAMES, form, keep_broken=True)


def of_csv_url(folder: Path) -> Iterator[Batch]:
    return behind_url(folder, of_gz, "t.csv.gz")


def of_parquet_url(folder: Path) -> Iterator[Batch]:
    return behind_url(folder, of_parquet, "t.parquet")


def of_folder_url(folder: Path) -> Iterator[Batch]:
    return behind_url(folder, of_folder, "")


def of_partitions_url(folder: Path) -> Iterator[Batch]:
    return behind_url(folder, of_partitions, "")


def of_arrow(_: Path) -> Iterator[Batch]:
    return MemoryTable(pa.concat_tables([TABLE[:5], TABLE[5:]])).batches(NAMES)


def of_pandas(_: Path) -> Iterator[Batch]:
    return MemoryTable(TABLE.to_pandas(types_mapper=pd.ArrowDtype)).batches(NAMES)


def of_objects(_: Path) -> Iterator[Batch]:
    return MemoryTable(pd.DataFrame({n: np.array(c, dtype=object) for n, c in CELLS.items()})).batches(NAMES)


def of_polars(_: Path) -> Iterator[Batch]:
    polars = pytest.importorskip("polars")
    return MemoryTable(polars.from_arrow(TABLE)).batches(NAMES)


def of_sqlite(folder: Path) -> Iterator[Batch]:
    with sqlite3.connect(folder / "t.db") as database:
        database.execute(f"CREATE TABLE t ({', '.join(NAMES)})")
        texts = {"exact", "day", "moment"}
        columns = [text_of(TABLE[n].combine_chunks()).to_pylist() if n in texts else CELLS[n] for n in NAMES]
        database.executemany(
            f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", zip(*columns, strict=True)
        )
    database.close()
    return DatabaseTable(
        f"sqlite:///{folder / 't.db'}", "SELECT * FROM t -- all of it", "A database"
    ).batches(NAMES)


def of_duckdb(folder: Path) -> Iterator[Batch]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        database.register("rows", TABLE)
        database.execute("CREATE TABLE t AS SELECT * FROM rows")
    return DatabaseTable(f"duckdb:///{folder / 't.duckdb'}", "SELECT * FROM t;", "A database").batches(NAMES)


SOURCES = [
    of_csv, of_gz, of_zst, of_utf_16, of_parquet, of_folder, of_partitions, of_arrow, of_pandas, of_objects,
    of_polars, of_sqlite, of_duckdb, of_csv_url, of_parquet_url, of_folder_url, of_partitions_url,
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_the_same_cell_has_the_same_code_from_every_source(
    source: Callable[[Path], Iterator[Batch]], tmp_path: Path
) -> None:
    assert codes(source(tmp_path)) == EXPECTED


def test_cells_of_a_postgresql_server_have_the_same_codes_too(postgres) -> None:
    url = postgres.make()
    columns = ", ".join(f'"{name}" {SQL_TYPES[name]}' for name in NAMES)
    postgres.execute(f"CREATE TABLE visits ({columns})", url)
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO visits VALUES ({', '.join(['%s'] * len(NAMES))})",
            list(zip(*CELLS.values(), strict=True)),
        )
    table = DatabaseTable(
        url, "SELECT *, '50%'::text AS \"a:b\" FROM visits WHERE text LIKE '%' OR true", "It"
    )
    assert table.names == [*NAMES, "a:b"]
    assert codes(table.batches(NAMES)) == EXPECTED
    with pytest.raises(SourceError) as refused:
        DatabaseTable(url, f"SELECT text::integer AS whole FROM visits WHERE text = '{CANARY}'", "It").check(
            ["whole"]
        )
        list(DatabaseTable(url, "SELECT text::integer AS whole FROM visits", "It").batches(["whole"]))
    assert CANARY not in str(refused.value) and refused.value.__cause__ is None
    with pytest.raises(SourceError, match="refuses"):
        list(
            DatabaseTable(
                url, "WITH gone AS (DELETE FROM visits RETURNING *) SELECT * FROM gone", "It"
            ).batches(NAMES)
        )
    assert postgres.execute("SELECT count(*) FROM visits", url) == [(len(CELLS["text"]),)]
    postgres.empty(url)


def test_what_is_wrong_with_a_database_is_said_without_a_secret(tmp_path: Path) -> None:
    wrong = [
        ("postgresql://me:hunter2@127.0.0.1:1/none", "can't be reached"),
        (f"sqlite:///{tmp_path / 'none.db'}", "is no file"),
        ("nosuch://me:hunter2@host/x", "can't be reached"),
        ("mysql+pymysql://me:hunter2@host/x", "needs a driver|can't be reached"),
    ]
    for address, words in wrong:
        with pytest.raises(SourceError, match=words) as refused:
            DatabaseTable(address, "SELECT 1 AS a", "The database").check(["a"])
        assert "hunter2" not in str(refused.value) and "hunter2" not in repr(DatabaseTable(address, "", "It"))
    assert not (tmp_path / "none.db").exists()
    of_sqlite(tmp_path)
    table = DatabaseTable(f"sqlite:///{tmp_path / 't.db'}", "SELECT whole AS Whole FROM t", "The database")
    with pytest.raises(SourceError, match="Did you mean 'Whole'"):
        table.check(["whole"])


def test_a_folder_without_a_table_is_refused_and_its_names_are_not_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no \.parquet file"):
        list(file(tmp_path, FileForm("parquet")))
    (tmp_path / f"text={CANARY}").mkdir()
    (tmp_path / f"text={CANARY}/0.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(SourceError) as refused:
        list(file(tmp_path, FileForm("parquet")))
    assert CANARY not in str(refused.value)


def test_tables_behind_s3_are_read_with_the_keys_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a server like S3 on this machine."""
    s3fs, server = pytest.importorskip("s3fs"), pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "reader")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    try:
        of_folder(tmp_path)
        of_gz(tmp_path)
        system = s3fs.S3FileSystem()
        system.mkdir("clinic")
        system.put(f"{tmp_path}/", "clinic/visits/", recursive=True)
        for url, form in (
            ("s3://clinic/visits/", FileForm("parquet")),
            ("s3://clinic/visits/part-0.parquet", FileForm("parquet")),
            ("s3://clinic/visits/t.csv.gz", FileForm(compression="gz")),
        ):
            found = codes(read_cells(RemotePath(url), NAMES, form, keep_broken=True))
            rows = 3 if "part-0" in url else TABLE.num_rows
            assert found == {name: cells[:rows] for name, cells in EXPECTED.items()}
        for url in ("s3://clinic/none.csv", "s3://none/t.csv"):
            with pytest.raises(SourceError) as refused:
                list(read_cells(RemotePath(url), NAMES, FileForm(), keep_broken=True))
            assert CANARY not in str(refused.value)
    finally:
        running.stop()


def test_what_is_wrong_with_a_url_is_said_without_a_secret(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    wrong = [
        ("memory://nothing/t.parquet", "There is no file"),
        ("nosuch://bucket/t.parquet", "fsspec doesn't know"),
        (f"file://{tmp_path}", r"no \.parquet file"),
    ]
    for url, words in wrong:
        with pytest.raises(SourceError, match=words):
            list(read_cells(RemotePath(url), NAMES, FileForm("parquet"), keep_broken=True))

    class Leaking(RemotePath):
        def is_file(self) -> bool:
            raise RuntimeError(f"refused for the key {CANARY}")

    with pytest.raises(SourceError, match="can't be reached") as refused:
        list(read_cells(Leaking("s3://bucket/t.csv"), NAMES, FileForm(), keep_broken=True))
    assert CANARY not in str(refused.value) and refused.value.__cause__ is None


def test_a_text_written_as_it_is_held_whatever_is_alike_beside_it() -> None:
    """Arrow takes 0.0 and -0.0 for one number; each is still written as it is."""
    cells = pa.array([0.0, -0.0, float("nan"), None, 0.0])
    from dpsynth.curator.rows.cell_texts import distinct_cells

    found = distinct_cells(cells)
    assert found.texts.take(pa.array(found.index)).to_pylist() == text_of(cells).to_pylist()
