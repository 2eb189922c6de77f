"""A disk that is full stops a release and costs it nothing that its journal does not say.

The disk is a real one: a file system of 12 MB that one process alone sees, and that another
file fills when the release passes a chosen place.
"""

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsynth.pipeline.steps import Step
from tests.release.keeper import Keeper, Stop, on_a_small_disk
from tests.release.killed import Watch, apart, finished, passed
from tests.release.place import Ended, Place, people

MakePlace = Callable[[], Place]
FULL = re.compile(r"\bdisk\b.* is full")


class SmallPlace(Place):
    """A place on the small disk."""

    @property
    def url(self) -> str:
        """A copy of the ledger as it lies there: SQLite would take the path for one of everybody's."""
        for name in ("ledger.db", "ledger.db-journal"):
            (self.home / name).unlink(missing_ok=True)
            if (self.folder / name).exists():
                shutil.copyfile(self.folder / name, self.home / name)
        return f"sqlite:///{self.home / 'ledger.db'}"


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    """A process that forks releases, with a small disk."""
    disk = tmp_path_factory.mktemp("disk")
    if (
        not shutil.which("unshare")
        or subprocess.run([*on_a_small_disk(disk), "true"], capture_output=True, timeout=60).returncode
    ):
        pytest.skip("needs the right to mount a file system")
    with Keeper(tmp_path_factory.mktemp("keeper"), disk) as kept:
        yield kept


@pytest.fixture
def on_disk(confined: Keeper, tmp_path: Path) -> Iterator[MakePlace]:
    """Makes places on the small disk, one at a time."""
    assert confined.disk is not None
    work, numbers = confined.disk / "work", itertools.count()

    def make() -> Place:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        place = SmallPlace(work, tmp_path / f"home{next(numbers)}")
        place.home.mkdir()
        place.table(people(300))
        # With all columns the journal is longer than a block.
        place.configure()
        return place

    yield make
    shutil.rmtree(work, ignore_errors=True)


def stopped(confined: Keeper, place: Place, stop: Stop, fault: str | None = None) -> Ended:
    """How a release ends on whose disk nothing more can be written from a place on."""
    ended = confined.run(place, stop=stop, by="a full disk", fault=fault)
    assert (place.home / "stopped").exists(), stop
    (place.folder / "filler").unlink()
    return ended


def filled_at(confined: Keeper, on_disk: MakePlace, stop: Stop, reserved: bool) -> str | None:
    """Fill the disk at a place, see how the release ends, and finish it once there is room; its message."""
    place = on_disk()
    watch = Watch(place)
    ended = stopped(confined, place, stop)
    where = (stop, ended)
    watch.look()
    drawn = watch.draws
    if ended.code == 0:
        # Nothing was left to be written, or there was room in the last block of a file.
        watch.ended(ended.folder, 0)
        return None
    assert ended.err.count("\n") == 1 and not ended.out, where
    assert FULL.search(ended.err), where
    if ended.code == 2:
        # The ledger's own file: nothing was reserved.
        assert not reserved and not drawn and not watch.begun, where
    else:
        assert ended.code == 5, where
    named = re.search(r"--resume (\S+)\n$", ended.err)
    assert (named is not None) == bool(watch.begun), where
    if named is not None:
        assert named[1] == watch.begun[-1], where
    finished(confined, place, watch, deaths=1)
    return ended.err


def swept(confined: Keeper, on_disk: MakePlace, every: int) -> set[str]:
    passing = passed(confined, on_disk())
    reserved = passing.index((f"end {Step.RESERVE}", 1))
    some = {*apart(passing)[::every], *(stop for stop in passing if stop[0] == "begin ledger commit")}
    told = set()
    for stop in sorted(some, key=passing.index):
        said = filled_at(confined, on_disk, stop, reserved=passing.index(stop) >= reserved)
        told.add(re.sub(r"\d{8}-[0-9a-f]{8}", "ID", said or ""))
    return told


def test_a_release_on_a_full_disk_says_so_and_is_finished_when_there_is_room(
    confined: Keeper, on_disk: MakePlace
) -> None:
    """The disk is full at a few places: for the journal, the bundle and the ledger."""
    told = swept(confined, on_disk, every=40)
    for step in ("measure", "write the bundle", "The ledger"):
        assert any(step in said for said in told), (step, told)


def test_a_full_disk_that_the_release_does_not_know_is_caught(confined: Keeper, on_disk: MakePlace) -> None:
    """The planted fault: an error of the file system like any other."""
    place = on_disk()
    ended = stopped(confined, place, (f"begin {Step.WRITE}", 1), fault="full disks unknown")
    assert ended.code == 1 and not FULL.search(ended.err)


@pytest.mark.slow
def test_a_release_on_a_disk_full_at_any_place_is_finished_when_there_is_room(
    confined: Keeper, on_disk: MakePlace
) -> None:
    """As above, at every place."""
    assert swept(confined, on_disk, every=1)
