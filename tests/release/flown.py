"""Runs flows in one process, each with a fault planted; started as ``python -m tests.release.flown``.

Arguments: the names of faults, in order. Each runs ``dpsynth run config.yaml`` in the
working directory through Prefect; a line on stdout, and the same one on stderr, tells its exit code.
"""

from __future__ import annotations

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
import dpsynth.pipeline
from dpsynth.errors import DpsynthError
from dpsynth.lifecycle.steps import Step
from tests.release.canaries import CANARIES, PLANTED

Fault = Callable[[], contextlib.AbstractContextManager[Any]]
PIPELINE = "dpsynth.pipeline."
LONGEST = 170
"""Seconds after which a run that has not ended says where it stands, and all end."""


class Panic(BaseException):
    """What a library written in another language may raise."""


def _raise(error: BaseException) -> NoReturn:
    raise error


def _cast(*_: object) -> NoReturn:
    pa.array([CANARIES["malformed number"]]).cast(pa.float64())
    raise AssertionError


def _chained(*_: object) -> NoReturn:
    try:
        int(CANARIES["text in an integer column"])
    except ValueError as error:
        raise DpsynthError("The ledger has gone away.") from error


def _nested(*_: object) -> NoReturn:
    try:
        int(CANARIES["malformed truth"])
    except ValueError:
        raise KeyError(CANARIES["unknown category"]) from None


def _hang(*_: object) -> NoReturn:
    cell = CANARIES["formula"]
    print("hanging", flush=True)
    time.sleep(600)
    raise AssertionError(cell)


def _failing(step: str, action: Callable[..., NoReturn]) -> Fault:
    return lambda: mock.patch(PIPELINE + step, action)


@contextlib.contextmanager
def _unguarded() -> Iterator[None]:
    def as_it_is(name: str, action: Callable[..., Any], unit: str = "") -> Any:
        return action(lambda done, total: None)

    fails = _failing("fit_model", lambda *_: _raise(ValueError(PLANTED["no guard"])))
    with mock.patch("dpsynth.lifecycle.steps.guarded", as_it_is), fails():
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
    "a cast fails": lambda: mock.patch("dpsynth.lifecycle.measuring.load_rows", _cast),
    "a value error": _failing("fit_model", lambda *_: _raise(ValueError(f"bad cell {CANARIES['decimals']}"))),
    "an error within an error": _failing("sample_rows", _nested),
    "an error of ours with a cause": _failing("settle", _chained),
    "a decoding error": _failing(
        "publish", lambda *_: _raise(UnicodeDecodeError("utf-8", CANARIES["formula"].encode(), 0, 1, "no"))
    ),
    "a panic": _failing("composed", lambda *_: _raise(Panic(CANARIES["person id"]))),
    "an exit": _failing("tabulate", lambda *_: _raise(SystemExit(CANARIES["person id"]))),
    "a value error with --debug": _failing("fit_model", lambda *_: _raise(ValueError(CANARIES["a person"]))),
    "a hang": _failing("fit_model", _hang),
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
