"""A query whose rows don't each follow from one row of one table is refused unless its owner vouches for
it."""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

import dpsynth
from dpsynth.config import Spec, from_mapping
from dpsynth.config import source as queries
from dpsynth.config.source import Source, doubt_of
from dpsynth.errors import ConfigError
from tests.release.place import Place, furnished

ROW_BY_ROW = (
    "SELECT * FROM t",
    "SELECT age, lower(sex) AS sex FROM t WHERE age >= '18' ORDER BY age;",
    "SELECT age FROM t AS v WHERE sex LIKE 'F%' AND NOT age IS NULL OR sex IN ('M', 'X')",
    "WITH v AS (SELECT age, sex FROM t WHERE age > '3') SELECT age FROM v",
    "SELECT age FROM (SELECT age FROM t WHERE sex = 'F') AS v",
    "SELECT CASE WHEN age > '40' THEN 'old' ELSE 'young' END AS age, coalesce(sex, '?') AS sex FROM t",
    "SELECT nullif(sex, '-') || 'x' AS sex, trim(sex) AS s, CAST(age AS text) AS age FROM t -- LIMIT 3",
)
SEVERAL_ROWS = (
    "SELECT age FROM t LIMIT 3",
    "SELECT age FROM t ORDER BY age LIMIT 3 OFFSET 1",
    "SELECT DISTINCT sex FROM t",
    "SELECT sex, count(*) AS n FROM t GROUP BY sex",
    "SELECT max(age) AS age FROM t",
    "SELECT a.age FROM t AS a JOIN t AS b ON a.sex = b.sex",
    "SELECT a.age FROM t AS a, t AS b",
    "SELECT a.age FROM t a NATURAL JOIN t b",
    "SELECT age, rank() OVER (ORDER BY age) AS r FROM t",
    "SELECT age - lag(age) OVER (ORDER BY age) AS r FROM t",
    "SELECT age FROM t UNION ALL SELECT age FROM t",
    "SELECT age FROM t EXCEPT SELECT age FROM t WHERE sex = 'F'",
    "SELECT age FROM t WHERE age > (SELECT avg(age) FROM t)",
    "SELECT age FROM t WHERE age IN (SELECT max(age) FROM t)",
    "SELECT age FROM t WHERE sex IN (SELECT sex FROM t WHERE age > '80')",
    "SELECT age FROM t WHERE age > (SELECT age FROM t WHERE sex = 'X')",
    "SELECT age FROM t WHERE EXISTS (SELECT 1 FROM t WHERE age > 80)",
    "SELECT age, (SELECT count(*) FROM t) AS n FROM t",
    "WITH RECURSIVE v(age) AS (SELECT age FROM t UNION SELECT age + 1 FROM v WHERE age < 5) SELECT 1 FROM v",
    "WITH v AS (SELECT age FROM t LIMIT 2) SELECT age FROM v",
    "SELECT age FROM (SELECT age FROM t ORDER BY age LIMIT 2) AS v",
    "SELECT age FROM t, json_each('[1, 2]')",
)
OF_OTHERS = (
    ("postgres", "SELECT age FROM t FETCH FIRST 3 ROWS ONLY"),
    ("postgres", "SELECT DISTINCT ON (sex) age FROM t"),
    ("postgres", "SELECT age FROM t TABLESAMPLE BERNOULLI (10)"),
    ("postgres", "SELECT generate_series(1, age) AS age FROM t"),
    ("postgres", "SELECT unnest(visits) AS v FROM t"),
    ("postgres", "SELECT age FROM t, LATERAL (SELECT 1) AS u"),
    ("postgres", "SELECT age FROM rows_of('x') AS t"),
    ("duckdb", "SELECT age FROM t USING SAMPLE 5"),
    ("duckdb", "SELECT age FROM t QUALIFY row_number() OVER () < 3"),
    ("duckdb", "SELECT age FROM read_csv('t.csv')"),
    ("tsql", "SELECT TOP 5 age FROM t"),
    ("oracle", "SELECT age FROM t WHERE rownum < 5"),
    ("mysql", "SELECT age FROM t /*!50000 LIMIT 5 */"),
)
MAY_FAIL = (
    ("postgres", "SELECT age::int FROM t"),
    ("postgres", "SELECT CAST(born AS date) AS born FROM t"),
    ("postgres", "SELECT 1 / age AS a FROM t"),
    ("postgres", "SELECT age * 1000 AS a FROM t"),
    ("postgres", "SELECT sqrt(age) AS a FROM t"),
    ("postgres", "SELECT to_date(born, 'YYYY') AS b FROM t"),
    ("postgres", "SELECT age FROM t WHERE sex LIKE code"),
    ("duckdb", "SELECT age FROM t WHERE age = 7"),
    ("duckdb", "SELECT age FROM t WHERE age IN (7, 8)"),
    ("duckdb", "SELECT age FROM t WHERE age = sex"),
    ("duckdb", "SELECT age FROM t WHERE sex"),
    ("duckdb", "SELECT age FROM t WHERE age = '7' AND NOT sex"),
    ("duckdb", "SELECT age FROM t WHERE sex IS TRUE"),
    ("duckdb", "SELECT CASE WHEN sex THEN 1 END AS age FROM t"),
    ("duckdb", "SELECT age::INTEGER AS age FROM t"),
    ("sqlite", "SELECT abs(age) AS a FROM t"),
    ("sqlite", "SELECT json_extract(sex, '$') AS a FROM t"),
)
ROWS = [(None if i == 3 else i * 13 % 90, "FM-"[i % 3]) for i in range(9)]


def of_sqlite(query: str, rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    """The rows of a query of a table."""
    with sqlite3.connect(":memory:") as made:
        made.execute("CREATE TABLE t (age, sex)")
        made.executemany("INSERT INTO t VALUES (?, ?)", rows)
        return Counter(made.execute(query.rstrip(";")).fetchall())


def moved(query: str) -> int:
    """The most rows of a query that appear and vanish with one row of its table."""
    whole = of_sqlite(query, ROWS)
    others = [of_sqlite(query, ROWS[:i] + ROWS[i + 1 :]) for i in range(len(ROWS))]
    return max(((whole - other) + (other - whole)).total() for other in others)


def assert_only_row_by_row() -> None:
    for query in (*ROW_BY_ROW, *SEVERAL_ROWS):
        if doubt_of(query, "sqlite") is None:
            assert moved(query) <= 1, query


def test_of_a_query_that_is_let_through_one_row_of_the_table_moves_one_row() -> None:
    assert_only_row_by_row()
    assert [
        q for q in ROW_BY_ROW for kind in ("", "sqlite", "postgres", "duckdb", "mysql") if doubt_of(q, kind)
    ] == []


@pytest.mark.parametrize("piece", ["Limit", "Group", "Join", "Window"])
def test_a_piece_that_is_let_through_and_moves_several_rows_is_seen(
    monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    """The planted faults."""
    monkeypatch.setattr(queries, "_PIECES", queries._PIECES | {piece, "Rank", "Count"})
    monkeypatch.setattr(queries, "_SQLITE", queries._SQLITE | {"Lag"})
    with pytest.raises(AssertionError):
        assert_only_row_by_row()


@pytest.mark.parametrize("query", SEVERAL_ROWS)
def test_a_query_by_which_a_row_decides_about_others_is_refused(query: str) -> None:
    for kind in ("", "sqlite", "postgres", "duckdb"):
        assert doubt_of(query, kind) is not None, kind


@pytest.mark.parametrize(("kind", "query"), [*OF_OTHERS, *MAY_FAIL])
def test_a_query_that_may_move_several_rows_or_fail_on_a_cell_is_refused(kind: str, query: str) -> None:
    assert doubt_of(query, kind) is not None


def test_casts_and_sums_that_never_fail_in_sqlite_are_let_through_there() -> None:
    query = "SELECT CAST(age AS integer) AS age, age * 2 AS b, 1 / age AS c, substr(sex, 1, 1) AS s FROM t"
    assert doubt_of(query, "sqlite") is None
    odd = [("x", "F"), (1e308, None), (0, b"\xff"), (-(2**63), "M"), ("", "")]
    assert of_sqlite(query, odd).total() == len(odd)


@pytest.mark.parametrize("query", ["SELECT FROM WHERE", "SELECT ((age FROM t", "SELECT " + "(" * 3000 + "1"])
def test_a_query_that_is_no_sql_is_refused_and_not_an_error(query: str) -> None:
    assert doubt_of(query) is not None


def test_the_refusal_says_what_to_do_and_a_statement_goes_by() -> None:
    given = {"url": "sqlite:///a.db", "query": SEVERAL_ROWS[0]}
    with pytest.raises(ValueError, match=r"has 'LIMIT 3'.*state so with source\.row_by_row: true"):
        Source.model_validate(given)
    assert Source.model_validate({**given, "row_by_row": True}).doubt("sqlite:///a.db") is None
    with pytest.raises(ValueError, match=r"is about source\.query"):
        Source.model_validate({"path": "a.csv", "row_by_row": True})


@pytest.mark.parametrize(
    ("where", "neighbours", "stated", "refused"),
    [
        (" WHERE sex = 'F'", "replace_one", False, True),
        (" WHERE sex = 'F'", "replace_one", True, False),
        (" WHERE sex = 'F'", "add_remove", False, False),
        ("", "replace_one", False, False),
    ],
)
def test_how_many_rows_pass_a_condition_is_not_public(
    where: str, neighbours: str, stated: bool, refused: bool
) -> None:
    """One row of the table, exchanged, would change the number of rows, which replace_one publishes."""
    source = {"url": "sqlite:///a.db", "query": f"SELECT sex FROM t{where}", "row_by_row": stated}
    config = {
        "release": "r",
        "source": source,
        "privacy": {"epsilon": 1, "neighbours": neighbours},
        "ledger": {"dataset": "d"},
        "columns": {"sex": {"type": "category", "values": ["F", "M"]}},
    }
    with pytest.raises(ConfigError, match="how many rows pass it") if refused else nullcontext():
        from_mapping(config)


def test_the_parser_is_imported_for_queries_alone() -> None:
    program = (
        "import sys, dpsynth; from dpsynth.config.source import Source; "
        "Source.model_validate({'path': 'a.csv'}); print('sqlglot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def in_a_database(folder: Path, query: str, **more: object) -> tuple[Place, Spec]:
    """A place whose table is the rows of a query of SQLite, and its config."""
    place = furnished(folder)
    header, *rows = [line.split(",") for line in (place.folder / "people.csv").read_text().splitlines()]
    with sqlite3.connect(place.folder / "t.db") as made:
        made.execute(f"CREATE TABLE t ({', '.join(header)})")
        made.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(header))})", rows)
    place.configure(
        source={"path": None, "query": query, **(more or {"url": f"sqlite:///{place.folder / 't.db'}"})},
        structure={"method": "independent"},
        ledger={"url": place.url},
    )
    return place, dpsynth.load(place.folder / "config.yaml")


def test_a_release_of_a_query_on_trust_says_so_in_its_plan_and_its_bundle(tmp_path: Path) -> None:
    limited, url = "SELECT * FROM t LIMIT 200", f"sqlite:///{tmp_path / 'work' / 't.db'}"
    place, spec = in_a_database(tmp_path, limited, url=url, row_by_row=True)
    assert any("source.row_by_row: true states" in note for note in spec.warnings())
    made = dpsynth.release(spec, outputs=place.folder / "outputs")
    manifest = (made.folder / "public" / "manifest.json").read_text()
    words = "Nothing checked that."
    assert any(words in line for line in json.loads(manifest)["not_protected"])
    assert words in (made.folder / "public" / "README.md").read_text() and limited not in manifest
    place, spec = in_a_database(tmp_path / "plain", "SELECT * FROM t")
    assert not any("row_by_row" in note for note in spec.warnings())
    plain = dpsynth.release(spec, outputs=place.folder / "outputs")
    assert words not in (plain.folder / "public" / "README.md").read_text()


def test_a_query_of_a_database_that_the_environment_names_is_read_in_its_own_dialect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB may fail on a cell where it compares numbers; that it is DuckDB is known when it is opened."""
    place, spec = in_a_database(tmp_path, "SELECT * FROM t WHERE age = 7", url_from="CLINIC")
    monkeypatch.setenv("CLINIC", "duckdb:///nowhere.duckdb")
    with pytest.raises(ConfigError, match="may fail on some cells"):
        dpsynth.release(spec, outputs=place.folder / "outputs")
    assert place.balance is None
