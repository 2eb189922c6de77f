"""A release for audiences dies of SIGKILL at any place: all bundles are there or none, for one charge."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsynth.bundle.recipient.verification import verified
from dpsynth.curator.marginals import TOGETHER
from dpsynth.pipeline.steps import Step
from tests.release import evidence
from tests.release.keeper import Keeper, Stop
from tests.release.killed import DIED, EPSILON, Watch, apart, passed
from tests.release.place import Place
from tests.thinned import some

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

MakePlace = Callable[[], Place]
AUDIENCES = {"public": {"epsilon": 0.5}, "partners": {"epsilon": EPSILON}}
FOLDERS = {"private", *AUDIENCES}
LATE: list[Stop] = [
    (f"end {Step.WRITE} for public", 1),
    ("end ledger settlement", 1),
    ("os.rename bundle", 1),
]
"""Between the two bundles; after the ledger's entry is closed; before the rename that shows both."""


def for_audiences(makers: MakePlace) -> Place:
    place = makers()
    place.configure(privacy={"epsilon": None}, audiences=AUDIENCES)
    return place


def shown(place: Place) -> list[Path]:
    """The folders of releases that can be seen."""
    found = (place.folder / "outputs" / "people").glob("*")
    return [path for path in found if path.is_dir() and not path.name.startswith(".")]


def assert_all_or_none(place: Place) -> None:
    """Each release that can be seen has the bundles of all audiences, each whole."""
    for folder in shown(place):
        assert {path.name for path in folder.iterdir()} == FOLDERS
        for name in AUDIENCES:
            bundle = folder / name
            files = json.loads((bundle / "manifest.json").read_text())["files"]
            assert evidence.there(bundle) == {*files, "manifest.json", "SHA256SUMS"}
            for file, facts in files.items():
                assert hashlib.sha256((bundle / file).read_bytes()).hexdigest() == facts["sha256"]


def killed_at(keeper: Keeper, makers: MakePlace, stop: Stop) -> int:
    """Kill a release at a place and resume it; how many answers were lost."""
    place = for_audiences(makers)
    watch = Watch(place)
    assert keeper.run(place, stop=stop).code == DIED, stop
    watch.look()
    assert_all_or_none(place)
    before, begun = dict(watch.kept), watch.begun
    seen = shown(place)
    done = keeper.run(place, *(("--resume", begun[-1]) if begun else ()))
    assert done.code == 0, (done, stop)
    watch.look()
    assert_all_or_none(place)
    (folder,) = shown(place)
    assert not seen or seen == [folder]
    assert not list(folder.parent.glob(f".{folder.name}*")), stop
    journal = evidence.records(folder / "private" / "journal.jsonl")
    lost = sum(record["kind"] == "lost" for record in journal)
    assert lost <= TOGETHER and (not begun or (folder.name == begun[-1] and before[begun[-1]]))
    assert len(watch.begun) == 1, "one charge"
    (entry,) = place.balance.releases  # type: ignore[union-attr]
    assert entry.state == "closed" and entry.cost.amount.epsilon <= EPSILON
    return lost


def swept(keeper: Keeper, makers: MakePlace, every: int, begin: int = 0) -> None:
    stops = apart(passed(keeper, for_audiences(makers)))
    assert len(stops) > 150
    lost = sum(killed_at(keeper, makers, stop) for stop in stops[begin::every])
    assert lost, "no kill made a question be asked again: the sweep missed the draws"


@pytest.mark.parametrize("stop", some([(stop,) for stop in LATE[1:]], 1))
def test_a_release_killed_late_shows_both_bundles_or_none_and_is_finished(
    keeper: Keeper, makers: MakePlace, stop: Stop
) -> None:
    killed_at(keeper, makers, stop)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_a_release_killed_at_any_place_shows_both_bundles_or_none_and_is_finished(
    keeper: Keeper, makers: MakePlace, part: int
) -> None:
    swept(keeper, makers, every=8, begin=part)


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDIENCES)
def test_the_bundles_of_a_resumed_release_are_verified(keeper: Keeper, makers: MakePlace, name: str) -> None:
    place = for_audiences(makers)
    assert keeper.run(place, stop=LATE[0]).code == DIED
    assert not shown(place)
    assert keeper.run(place, "--resume", Watch(place).begun[-1]).code == 0
    (folder,) = shown(place)
    checked = verified(folder / name)
    assert checked.good, checked.findings


@pytest.mark.slow
def test_a_bundle_that_is_shown_by_itself_would_be_noticed(keeper: Keeper, makers: MakePlace) -> None:
    place = for_audiences(makers)
    assert keeper.run(place, stop=LATE[1]).code == DIED
    (partial,) = (place.folder / "outputs" / "people").glob(".*.partial")
    early = partial.with_name(partial.name[1:].removesuffix(".partial"))
    early.mkdir()
    (partial / "public").rename(early / "public")
    with pytest.raises(AssertionError):
        assert_all_or_none(place)
