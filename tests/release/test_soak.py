"""A short soak on both databases; ``make soak`` makes a long one."""

import os

import pytest

from tests.databases import reason_without
from tests.release.soak import soak

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@pytest.mark.slow
@pytest.mark.parametrize("postgresql", [False, True])
def test_a_hundred_releases_with_misfortunes(postgresql: bool) -> None:
    if postgresql and (reason := reason_without()):
        pytest.skip(reason)
    tally = soak(100, 2, postgresql=postgresql)
    assert tally.releases.total() >= 100
    assert tally.drawn <= tally.charged
    assert tally.resumed > 0
