"""How much is tried of each property, and the databases that a ledger can stand in, for every suite."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

from tests.databases import Postgres, reason_without
from tests.examples import LEAST, PART
from tests.seeded_noise import seed_noise

if TYPE_CHECKING:
    from tests.cli.here import Command
    from tests.release.keeper import Keeper

settings.register_profile("full", deadline=None, max_examples=100)
settings.register_profile("quick", deadline=None, max_examples=max(LEAST, 100 // PART), derandomize=True)
settings.register_profile(
    "unshrunk", settings.get_profile("quick"), phases=(Phase.explicit, Phase.generate, Phase.target)
)
# --hypothesis-profile=full is read later than this, and earlier than the tests.
settings.load_profile("quick")


_MEMORY, _ROOM = Path("/dev/shm"), 4 << 30


def _in_memory() -> bool:
    """True if temporary files can lie in memory: there is room, and programs that are built may be run."""
    if "TMPDIR" in os.environ or not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK):
        return False
    there = os.statvfs(_MEMORY)
    return there.f_bavail * there.f_frsize >= _ROOM and not there.f_flag & getattr(os, "ST_NOEXEC", 0)


# A release syncs about a hundred times, at some milliseconds each on a disk. Workers inherit the variable.
if _in_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


# A worker has a core of its own at most. Libraries read this when they are first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

LONGEST = (
    "test_serve",
    "test_canary",
    "test_linked_tables",
    "test_kills",
    "test_large_and_second",
    "test_audit",
    "test_histories",
    "test_copies",
    "test_wings",
    "test_pausing",
    "test_weights",
    "test_faults",
    "test_numbers_of_children",
    "test_databases",
    "test_embargo",
    "test_fuzz",
    "test_broken_sources",
    "test_cells_say_nothing",
    "test_occasions",
    "test_approval",
    "test_released",
    "test_acceptance",
    "test_auto",
    "test_linked_tables_by_replay",
    "test_no_row_violates",
    "test_notebook",
    "test_evaluate_command",
    "test_reviewing",
)
"""Files of which each takes long by itself, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long files first, then other whole releases, so that workers end together."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}

    def rank(item: pytest.Item) -> tuple[int, bool]:
        return ranks.get(item.path.stem, len(LONGEST)), item.path.parent.name != "release"

    items.sort(key=rank)


# Nothing of what is collected is garbage.
gc.disable()


def pytest_collection_finish() -> None:
    """Take what was collected out of the garbage collector's rounds: thousands of items, which stay."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def seeded_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that is the same each time: for what a release is good for, never for its guarantee."""
    seed_noise(monkeypatch, seed=1)


@pytest.fixture
def dpsynth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, in an empty folder."""
    from tests.cli.here import Command

    return Command(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="session")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    """A process that forks releases."""
    from tests.release.keeper import Keeper

    with Keeper(tmp_path_factory.mktemp("keeper")) as kept:
        yield kept


@pytest.fixture(scope="session")
def _server() -> Iterator[Postgres]:
    if reason := reason_without():
        pytest.skip(reason)
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def postgres(_server: Postgres) -> Iterator[Postgres]:
    """A running PostgreSQL server, which a test may stop and start."""
    yield _server
    if not _server.running:
        _server.start()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a ledger that isn't there yet: in SQLite, then in PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.make()
    yield url
    server.empty(url)
