"""Something that happens to a release as a step of it begins, through the product's own watcher of steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpsynth.pipeline.steps import StepWatcher, watched


class _Happening(StepWatcher):
    def __init__(self, step: str, happens: Callable[[], object]) -> None:
        self._step, self._happens = step, happens

    def begun(self, step: str) -> None:
        if step == self._step:
            self._happens()


@contextmanager
def at(step: str, happens: Callable[[], object]) -> Iterator[None]:
    """Let something happen whenever a step begins, as if its own code did it."""
    with watched(_Happening(step, happens)):
        yield


@contextmanager
def stopped_at(step: str, error: BaseException) -> Iterator[None]:
    """Let a step raise an error, or a signal, as it begins."""

    def stop() -> None:
        raise error

    with at(step, stop):
        yield
