"""No cell stays behind a release, from whatever source its rows come, by whatever engine, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpsynth.curator.marginals import TOGETHER
from tests.release import evidence
from tests.release.canaries import found_in, left_behind, table
from tests.release.killed import Watch
from tests.release.place import BY_PERSON, HEADER, Place, environment, furnished
from tests.release.sources import FORMS, in_postgresql

pytestmark = pytest.mark.slow

SOURCES = (*FORMS, "postgresql", "arrow", "pandas", "dask", "dask from csv")
ENDS = {"success": {0}, "failure": {1, 5}, "kill": {-signal.SIGKILL}}


@dataclass(frozen=True)
class Source:
    """Where the rows are.

    Attributes:
        config: sections of the configuration.
        kind: see ``ending``.
        files: the private table, which holds the canaries.
    """

    config: Mapping[str, object]
    kind: str
    files: list[Path]


def rows() -> pa.Table:
    return pa.table(dict(zip(HEADER, map(list, zip(*table(), strict=True)), strict=True)))


def source_of(name: str, folder: Path, request: pytest.FixtureRequest) -> Source:
    """The table in a form, outside of every folder that is searched."""
    folder.mkdir()
    if name in ("arrow", "pandas"):
        parquet.write_table(rows(), folder / "t.parquet")
        return Source({}, name, [folder / "t.parquet"])
    if name == "postgresql":
        return Source(
            {"source": in_postgresql(rows(), request.getfixturevalue("postgres").make())}, "config", []
        )
    form = {"dask": "parquet", "dask from csv": "csv"}.get(name, name)
    config: dict[str, object] = {"source": FORMS[form](rows(), folder)}
    if name.startswith("dask"):
        config["engine"] = {"dask": "local"}
    # DuckDB packs what it writes.
    return Source(config, "config", [] if name == "duckdb" else sorted(folder.iterdir()))


def run(place: Place, source: Source, end: str, **more: str) -> int:
    """The exit code of a release; what it wrote is in the home."""
    environ = environment(place.home, **more)
    if source.kind != "config":
        environ["TABLE"] = str(source.files[0])
    with (place.home / f"{end}.out").open("w") as out, (place.home / f"{end}.err").open("w") as err:
        return subprocess.run(
            [sys.executable, "-m", "tests.release.ending", source.kind, end],
            cwd=place.folder, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=300,
        ).returncode  # fmt: skip


def until_clusters_ended(place: Place) -> None:
    """Wait for the processes of Dask's that a killed release has left."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        left = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("HOME") == str(place.home / "home") and process.pid != os.getpid():
                    left.append(process)
        if not left:
            return
        time.sleep(0.2)
    raise AssertionError(f"still running: {left}")


@pytest.mark.parametrize("name", SOURCES)
def test_no_cell_is_left_behind_whatever_the_source_and_however_a_release_ends(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    place = furnished(tmp_path / "searched")
    (place.folder / "people.csv").unlink()
    source = source_of(name, tmp_path / "table", request)
    if source.files:
        assert found_in(source.files).keys() >= {"person id", "formula"} or name == "gz"
    place.configure(privacy={**BY_PERSON, "epsilon": 8}, **source.config)
    for end, codes in ENDS.items():
        said = run(place, source, end)
        assert said in codes, (end, said, (place.home / f"{end}.err").read_text())
        until_clusters_ended(place)
        left = left_behind(place.folder, place.home)
        assert any(p.name == "journal.jsonl" for p in left)
        assert found_in(left) == {}, end
        assert not [p for p in left if p.suffix in (".arrow", ".parquet") and "public" not in p.parts]


@pytest.mark.parametrize("end", ["failure", "kill"])
def test_a_release_by_dask_that_broke_off_is_finished_by_one_resumption(
    tmp_path: Path, end: str, request: pytest.FixtureRequest
) -> None:
    """The scheduler is killed, or the release; each charge has one answer, or is lost and stays paid for."""
    place = furnished(tmp_path / "place")
    source = source_of("dask", tmp_path / "table", request)
    place.configure(privacy=BY_PERSON, **source.config)
    watch = Watch(place)
    assert run(place, source, end) in {5, -signal.SIGKILL}
    if end == "failure":
        said = (place.home / "failure.err").read_text()
        assert "The Dask scheduler has ended" in said and "--resume" in said
    watch.look()
    (release_id,) = watch.begun
    assert run(place, source, "success", RESUME=release_id) == 0
    folder = Path("outputs", "people", release_id)
    found = evidence.records(place.folder / folder / "private" / "journal.jsonl")
    lost = [r for r in found if r["kind"] == "lost"]
    assert len(lost) <= TOGETHER
    answered = [r for r in found if r["kind"] == "answer"]
    assert len(evidence.charges(found)) == len(answered) + len(lost)
    evidence.assert_whole(place.folder / folder)
    assert place.ledger.state(release_id) == "closed"
    assert not list((place.folder / folder / "private").glob("dask*"))
