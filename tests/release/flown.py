"""Runs flows in one process, each with a misfortune as a step begins, or a fault planted.

Started as ``python -m tests.release.flown``.

Arguments: the names of faults, in order. Each runs ``dpsynth run config.yaml`` in the
working directory through Prefect; a line on stdout, and the same one on stderr, tells its exit code.
"""

import contextlib
import faulthandler
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from unittest import mock

import pyarrow as pa

import dpsynth.cli.app
from dpsynth.errors import DpsynthError
from dpsynth.pipeline.steps import Step
from tests.release.canaries import CANARIES, PLANTED
from tests.release.stopping import at

Fault = Callable[[], contextlib.AbstractContextManager[Any]]
LONGEST = 170
"""Seconds after which a run that has not ended says where it stands, and all end."""


class Panic(BaseException):
    """What a library written in another language may raise."""


def _raise(error: BaseException) -> NoReturn:
    raise error


def _cast() -> NoReturn:
    pa.array([CANARIES["malformed number"]]).cast(pa.float64())
    raise AssertionError


def _chained() -> NoReturn:
    try:
        int(CANARIES["text in an integer column"])
    except ValueError as error:
        raise DpsynthError("The ledger has gone away.") from error


def _nested() -> NoReturn:
    try:
        int(CANARIES["malformed truth"])
    except ValueError:
        raise KeyError(CANARIES["unknown category"]) from None


def _hang() -> NoReturn:
    cell = CANARIES["formula"]
    print("hanging", flush=True)
    time.sleep(600)
    raise AssertionError(cell)


def _failing(step: Step, action: Callable[[], NoReturn]) -> Fault:
    return lambda: at(step, action)


@contextlib.contextmanager
def _unguarded() -> Iterator[None]:
    def as_it_is(name: str, action: Callable[..., Any], unit: str = "") -> Any:
        if name == Step.FIT:
            raise ValueError(PLANTED["no guard"])
        return action()

    with mock.patch("dpsynth.pipeline.steps.guarded", as_it_is):
        yield


@contextlib.contextmanager
def _persisted() -> Iterator[None]:
    from prefect import task

    import flows.release

    inner = flows.release.as_task

    def as_task(name: str, action: Callable[[], Any]) -> Any:
        if name == Step.FIT:
            task(name="look", persist_result=True)(lambda: PLANTED["a kept result"])()
        return inner(name, action)

    with mock.patch("flows.release.as_task", as_task):
        yield


FAULTS: dict[str, Fault] = {
    "none": contextlib.nullcontext,
    "a cast fails": _failing(Step.OPEN, _cast),
    "a value error": _failing(Step.FIT, lambda: _raise(ValueError(f"bad cell {CANARIES['decimals']}"))),
    "an error within an error": _failing(Step.SAMPLE, _nested),
    "an error of ours with a cause": _failing(Step.SETTLE, _chained),
    "a decoding error": _failing(
        Step.PUBLISH, lambda: _raise(UnicodeDecodeError("utf-8", CANARIES["formula"].encode(), 0, 1, "no"))
    ),
    "a panic": _failing(Step.COMPOSE, lambda: _raise(Panic(CANARIES["person id"]))),
    "an exit": _failing(Step.TABULATE, lambda: _raise(SystemExit(CANARIES["person id"]))),
    "a value error with --debug": _failing(Step.FIT, lambda: _raise(ValueError(CANARIES["a person"]))),
    "a hang": _failing(Step.FIT, _hang),
    "planted: no guard": _unguarded,
    "planted: a kept result": _persisted,
}


def main() -> None:
    """Run each fault named."""
    for name in sys.argv[1:]:
        debug = ["--debug"] if "--debug" in name else []
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        sys_argv, sys.argv = sys.argv, ["dpsynth", "run", "config.yaml", "--prefect", *debug]
        code: object = 0
        try:
            with FAULTS[name]():
                dpsynth.cli.app.main()
        except SystemExit as stop:
            code = stop.code
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.argv = sys_argv
        for stream in (sys.stdout, sys.stderr):
            print(f"{name} -> {code}", file=stream, flush=True)


if __name__ == "__main__":
    main()
