"""Places to run releases in, for every suite of whole releases."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.databases import Postgres
from tests.release.keeper import Keeper
from tests.release.killed import FEW_COLUMNS
from tests.release.place import Place, furnished


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty folder with a good table of 300 rows and the usual config."""
    return furnished(tmp_path)


@pytest.fixture
def kind() -> str:
    """The kind of database that ledgers stand in; a promise about both is parametrized with it."""
    return "sqlite"


@pytest.fixture
def places(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> Iterator[Callable[[], Place]]:
    """Makes as many such folders as wanted, with ledgers of a kind; in PostgreSQL the last three count."""
    server: Postgres | None = request.getfixturevalue("postgres") if kind == "postgresql" else None
    databases: list[str] = []
    numbers = itertools.count()

    def make() -> Place:
        if server is not None:
            databases.append(server.make())
            if len(databases) > 3:
                server.empty(databases.pop(0))
        return furnished(tmp_path / f"place{next(numbers)}", databases[-1] if databases else None)

    yield make
    for database in databases:
        assert server is not None
        server.empty(database)


@pytest.fixture
def makers(places: Callable[[], Place]) -> Callable[[], Place]:
    """Makes places with a table of three columns."""

    def make() -> Place:
        made = places()
        made.configure(**FEW_COLUMNS)
        return made

    return make


@pytest.fixture
def small(makers: Callable[[], Place]) -> Place:
    """One such place."""
    return makers()


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    """A second one, for releases that run at once, or on two machines."""
    with Keeper(tmp_path_factory.mktemp("other")) as kept:
        yield kept
