"""How much is tried of each property, and the databases that a ledger can stand in, for every suite."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.databases import Postgres, reason_without
from tests.examples import LEAST, PART

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put whole releases first: their files take longest, and workers should end together."""
    items.sort(key=lambda item: item.path.parent.name != "release")


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
