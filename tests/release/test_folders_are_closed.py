"""Nobody but the owner can read what a release has drawn until the ledger has closed it.

Hazard 52. A release that is killed leaves its folder behind, and a copy of a release that was finished
elsewhere holds a second draw for one charge.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsynth.errors import Interrupted
from dpsynth.pipeline import release_run as folders
from dpsynth.pipeline.steps import Step
from tests.release.keeper import Keeper, Stop
from tests.release.killed import DIED, Watch, apart, passed
from tests.release.place import Place, release
from tests.release.stopping import stopped_at

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def open_files(folder: Path) -> Iterator[str]:
    """The files below a folder, by name, that other users can read: each folder on the way lets them in."""
    for path in folder.iterdir():
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.is_dir():
            if mode & 0o011:
                yield from open_files(path)
        elif mode & 0o044:
            yield str(path)


def assert_closed(place: Place) -> None:
    """What others can read is public: of each release nothing, or the public folder of one that is closed."""
    own = {str(place.folder / name) for name in ("people.csv", "config.yaml")}
    for name in Watch(place).begun:
        state = place.ledger.state(name)
        for path in set(open_files(place.folder)) - own:
            assert name not in path or (state == "closed" and "/public/" in path), (path, state)


def killed_and_looked_at(keeper: Keeper, place: Place, stop: Stop) -> None:
    assert keeper.run(place, stop=stop).code == DIED, stop
    for partial in (place.folder / "outputs").rglob(".*.partial"):
        inside = [stat.S_IMODE(p.stat().st_mode) for p in (partial, *partial.glob("private"))]
        assert set(inside) == {0o700} or place.ledger.state(partial.name[1:-8]) == "closed", stop
    assert_closed(place)


def test_a_release_that_is_killed_at_some_places_leaves_nothing_that_others_can_read(
    keeper: Keeper, small: Place
) -> None:
    last = {stop[0]: stop for stop in apart(passed(keeper, small))}
    named = (
        "begin draw",
        "open synthetic.csv",
        "open manifest.json",
        "begin ledger settlement",
        "os.rename bundle",
    )
    for name in named:
        killed_and_looked_at(keeper, small, last[name])


@pytest.mark.slow
def test_a_release_that_is_killed_at_any_place_leaves_nothing_that_others_can_read(
    keeper: Keeper, makers: Callable[[], Place]
) -> None:
    for stop in apart(passed(keeper, makers())):
        killed_and_looked_at(keeper, makers(), stop)


def test_an_open_folder_would_be_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the partial folder is made as any other."""
    monkeypatch.setattr(folders, "make_partial", lambda partial: partial.mkdir())
    with stopped_at(Step.SETTLE, KeyboardInterrupt()), pytest.raises(Interrupted):
        release(place)
    with pytest.raises(AssertionError, match="public"):
        assert_closed(place)


def test_a_finished_bundle_can_be_read_by_whoever_can_read_its_folder(keeper: Keeper, small: Place) -> None:
    folder = small.folder / keeper.run(small).folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    public = {p for p in (folder / "public").rglob("*") if p.is_file()}
    assert {Path(p) for p in open_files(folder)} == public


def test_a_partial_folder_that_an_older_version_left_open_is_closed_when_it_is_resumed(
    keeper: Keeper, small: Place
) -> None:
    assert keeper.run(small, stop=("end draw", 3)).code == DIED
    (partial,) = (small.folder / "outputs" / "people").glob(".*.partial")
    partial.chmod(0o755)
    (name,) = Watch(small).begun
    assert keeper.run(small, "--resume", name, stop=("end draw", 1)).code == DIED
    assert stat.S_IMODE(partial.stat().st_mode) == 0o700
