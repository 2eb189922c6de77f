"""The command of the starter, whose end each test expects."""

import pytest


@pytest.fixture
def dpsynth(dpsynth):
    """Run the command in a folder of its own; how it ended, which is as expected."""

    def run(*arguments, code=0):
        done = dpsynth(*arguments)
        assert done.code == code, done.err
        return done

    return run
