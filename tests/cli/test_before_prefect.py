"""What is wrong with a release is said before Prefect is loaded, and so before any server is started."""

import sys

import pytest

from tests.cli.here import Command
from tests.release.place import Place, furnished


@pytest.fixture
def place(dpsynth: Command, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place in which the command runs, and where Prefect can't be imported."""
    made = furnished(dpsynth.folder)
    monkeypatch.chdir(made.folder)
    for name in ("prefect", "flows.release", "flows.server"):
        monkeypatch.setitem(sys.modules, name, None)
    return made


WRONG = {
    "file": ({"source": {"path": "nowhere.csv"}}, 4, "There is no file nowhere.csv"),
    "header": ({"columns": {"height": {"type": "boolean"}}}, 4, "no column 'height'"),
    "config": ({"privacy": {"epsilon": 0}}, 2, "privacy.epsilon"),
    "cap": ({"ledger": {"cap": {"epsilon": 0.5}, "filter": "sequential"}}, 3, "refuses"),
    "ledger": ({"ledger": {"url": "sqlite:///people.csv/l.db"}}, 2, "can't be made"),
    "public table": ({"public_table": {"path": "nowhere.csv"}}, 2, "public_table.path"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_before_prefect_is_loaded(dpsynth: Command, place: Place, case: str) -> None:
    changes, code, words = WRONG[case]
    place.configure(**changes)
    before = dpsynth.files
    ended = dpsynth("run", "config.yaml", "--prefect")
    assert ended.code == code and words in ended.err and ended.err.count("\n") == 1, ended
    assert dpsynth.files == before


def test_a_resumption_of_nothing_is_refused_before_prefect_is_loaded(dpsynth: Command, place: Place) -> None:
    ended = dpsynth("run", "config.yaml", "--prefect", "--resume", "20300131-0a1b2c3d")
    assert ended.code == 2 and "no release 20300131-0a1b2c3d" in ended.err and ended.err.count("\n") == 1


def test_prefect_loaded_first_would_be_seen(dpsynth: Command, place: Place) -> None:
    """The planted fault, where nothing else is wrong: Prefect is loaded, and can't be."""
    ended = dpsynth("run", "config.yaml", "--prefect")
    first, _, rest = ended.err.partition("\n")
    assert first.startswith("Note: This config was never checked against this table.")
    assert ended.code == 1 and rest.startswith("Loading Prefect ...\nError: ModuleNotFoundError")
