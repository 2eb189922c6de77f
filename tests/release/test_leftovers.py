"""What other runs left among the bundles: the next run says what it found, and takes nothing for its own."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsynth.pipeline.steps import Step
from tests.release import evidence
from tests.release.keeper import Keeper
from tests.release.killed import DIED, FEW_COLUMNS, Watch, finished
from tests.release.place import Place
from tests.thinned import some

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

UNKNOWN = "20300131-0a1b2c3d"


def journal_of(place: Place, name: str) -> Path:
    return place.folder / "outputs" / "people" / f".{name}.partial" / "private" / "journal.jsonl"


def begun(keeper: Keeper, place: Place, stop: str) -> str:
    """A release that was killed at a place; its id."""
    assert keeper.run(place, stop=(stop, 1)).code == DIED
    return Watch(place).begun[-1]


@pytest.mark.parametrize(
    "left", some(["no journal", "an empty journal", "a torn first line", "a first line"], 2)
)
def test_what_a_run_left_that_had_reserved_nothing_is_removed_and_told(
    keeper: Keeper, small: Place, left: str
) -> None:
    name = begun(keeper, small, "begin ledger entry")
    path = journal_of(small, name)
    whole = path.read_bytes()
    if left == "no journal":
        path.unlink()
    else:
        keep = {"an empty journal": 0, "a torn first line": len(whole) // 2, "a first line": len(whole)}[left]
        path.write_bytes(whole[:keep])
    done = keeper.run(small)
    assert done.code == 0 and done.err.count("\n") == 1 and name in done.err, done
    assert "removed" in done.err
    Watch(small).ended(done.folder, deaths=0)
    assert {p.name for p in (small.folder / "outputs" / "people").iterdir()} == {
        done.folder.name,
        "index.html",
    }


def test_what_another_run_is_about_to_reserve_is_left_alone(
    keeper: Keeper, other: Keeper, small: Place, tmp_path: Path
) -> None:
    other.begin(small, pauses=[("begin ledger entry", 1)])
    other.reached()
    done = keeper.run(Place(small.folder, tmp_path))
    assert done.code == 0 and not done.err, done
    other.go_on()
    first = other.end()
    assert first.code == 0 and first.folder != done.folder, first
    for folder in (first.folder, done.folder):
        evidence.assert_whole(small.folder / folder)
    balance = small.balance
    assert balance is not None and [r.state for r in balance.releases] == ["closed"] * 2


def test_a_release_with_answers_is_left_alone_and_told_also_where_the_ledger_does_not_know_it(
    keeper: Keeper, small: Place
) -> None:
    """Hazard 32: another ledger, or the same one restored from an older copy."""
    name = begun(keeper, small, f"begin {Step.FIT}")
    kept = journal_of(small, name).read_bytes()
    known = keeper.run(small)
    assert known.code == 0 and f"--resume {name}" in known.err, known
    (small.folder / "ledger.db").unlink()
    unknown = keeper.run(small)
    assert unknown.code == 0 and unknown.err.count("\n") == 1 and name in unknown.err, unknown
    assert "ledger" in unknown.err and "older copy" in unknown.err
    assert journal_of(small, name).read_bytes() == kept


@pytest.mark.parametrize("where", some(["partial", "bundle"], 1))
def test_the_journal_of_another_release_is_not_taken_for_its_own(
    keeper: Keeper, small: Place, where: str
) -> None:
    """It would be charged a second time, and publish under its name what another has."""
    if where == "partial":
        name = begun(keeper, small, f"begin {Step.FIT}")
        source = journal_of(small, name).parents[1]
        copy = source.with_name(f".{UNKNOWN}.partial")
    else:
        done = keeper.run(small)
        name, source = done.folder.name, small.folder / done.folder
        copy = source.with_name(UNKNOWN)
    shutil.copytree(source, copy)
    balance, drawn = small.balance, Watch(small).draws
    refused = keeper.run(small, "--resume", UNKNOWN)
    assert refused.code == 2 and not refused.out, refused
    assert refused.err.count("\n") <= 2 and name in refused.err.splitlines()[-1]
    assert (small.balance, Watch(small).draws) == (balance, drawn)
    shutil.rmtree(copy)
    if where == "partial":
        finished(keeper, small, Watch(small), deaths=1)


def test_a_month_that_another_process_is_releasing_is_not_released_beside_it(
    keeper: Keeper, other: Keeper, makers: Callable[[], Place], tmp_path: Path
) -> None:
    place = makers()
    place.configure(**{**FEW_COLUMNS, "period": {"column": "notes", "every": "month"}})
    other.begin(place, "--period", "2025-01", pauses=[(f"begin {Step.FIT}", 1)])
    other.reached()
    beside = keeper.run(Place(place.folder, tmp_path), "--period", "2025-01")
    assert beside.code == 1 and "is being run already" in beside.err and not beside.out, beside
    other.go_on()
    done = other.end()
    assert done.code == 0, done
    after = keeper.run(place, "--period", "2025-01")
    assert after.code == 0 and after.folder == done.folder
    balance = place.balance
    assert balance is not None and [r.state for r in balance.releases] == ["closed"]
    assert len(list((place.folder / "outputs" / "people").glob("*/public"))) == 1
