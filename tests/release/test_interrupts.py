"""A release that is interrupted ends with exit code 5 and says how to finish it."""

import os
import re
import signal
from collections.abc import Callable

import pytest

from dpsynth.pipeline.steps import Step
from tests.release.keeper import Keeper
from tests.release.killed import Watch, finished, passed
from tests.release.place import Place
from tests.thinned import some

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

MakePlace = Callable[[], Place]


def interrupted(
    keeper: Keeper, makers: MakePlace, by: signal.Signals, every: int, reserving: int = 1
) -> None:
    """Interrupt a release at one place in so many, and while it reserves at one in so many others."""
    stops = passed(keeper, makers())
    begin, end = stops.index((f"begin {Step.RESERVE}", 1)), stops.index((f"end {Step.RESERVE}", 1))
    told = 0
    for stop in sorted({*stops[::every], *stops[begin:end:reserving]}, key=stops.index):
        place = makers()
        watch = Watch(place)
        ended = keeper.run(place, stop=stop, by=by)
        watch.look()
        begun = watch.begun
        where = (stop, ended)
        if ended.code == 0:
            # The signal came when all was done.
            assert stops.index(stop) >= stops.index((f"begin {Step.SETTLE}", 1)), where
            watch.ended(ended.folder, 1)
            continue
        assert ended.code == 5 and not ended.out, where
        assert re.fullmatch(r"[^\n]+\n", ended.err) and "Traceback" not in ended.err, where
        if stops.index(stop) > stops.index((f"end {Step.RESERVE}", 1)):
            assert ended.err.endswith(f"--resume {begun[-1]}\n"), where
            told += 1
        else:
            assert not watch.draws, where
        finished(keeper, place, watch, deaths=1)
    assert told


@pytest.mark.parametrize("by", some([signal.SIGINT, signal.SIGTERM], 1))
def test_an_interrupted_release_says_how_to_finish_it(
    keeper: Keeper, makers: MakePlace, by: signal.Signals
) -> None:
    """Exit code 5, one line, and the id to resume; while reserving, and at a few places more."""
    interrupted(keeper, makers, by, every=90, reserving=28)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_release_interrupted_at_any_place_says_how_to_finish_it(
    keeper: Keeper, makers: MakePlace, by: signal.Signals
) -> None:
    """As above, at every place."""
    interrupted(keeper, makers, by, every=1)
