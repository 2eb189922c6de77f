"""A release from the command line: the steps as plain functions, as a Prefect flow, or as a rehearsal.

Plain is the default for one table on one machine. A flow without a server of its own starts one for each run,
which takes four times the time of the release, and ends with it, so that nobody could look at the run. Where
Prefect has a server (PREFECT_API_URL), runs are kept there, and the flow is the default.

Invariant: file, header, config and ledger are checked before any server is started or asked. No words let a
rehearsal pass for a release.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.cli.printing import let_arrow_start_without_pandas
from dpsynth.wing import Point

if TYPE_CHECKING:
    from dpsynth.config import Spec
    from dpsynth.pipeline.beginning import Request


NEVER_CHECKED: Point[Callable[[Path, Spec], str]] = Point("never checked")
"""From a config's file and its spec to a sentence if it was never checked against its table, or ""."""


@dataclass(frozen=True)
class Wanted:
    """The release that the command line asks for.

    Attributes:
        config: path of the YAML file.
        source: path of a table that replaces the config's.
        out: folder for bundles.
        resume: id of a release to finish.
        period: label of the slice to release.
    """

    config: Path
    source: str | None
    out: Path
    resume: str | None
    period: str | None

    @property
    def request(self) -> Request:
        """The request to the steps of a release."""
        from dpsynth.pipeline.beginning import Request

        return Request(self.out, self.resume, self.period)


def run_plainly(wanted: Wanted) -> Path:
    """Run the steps as plain functions; the bundle's folder."""
    let_arrow_start_without_pandas()
    from dpsynth.config import load
    from dpsynth.pipeline.spine import run
    from dpsynth.pipeline.steps import lines_for_steps

    spec = _noted(load(wanted.config, source=wanted.source))
    request = replace(wanted.request, notice=_unchecked(wanted, spec))
    with lines_for_steps():
        done = run(spec, request, tell=_note)
    return done.folder


def run_flow(wanted: Wanted) -> Path:
    """Run the Prefect flow, its log kept off the terminal unless asked for; the bundle's folder.

    Raises:
        DpsynthError: as ``run_plainly``; or Prefect's server can't be used.
    """
    let_arrow_start_without_pandas()
    from dpsynth.config import load
    from dpsynth.pipeline.beginning import check_beginning
    from dpsynth.pipeline.steps import lines_for_steps

    spec = _noted(load(wanted.config, source=wanted.source))
    check_beginning(spec, wanted.request)
    if unchecked := _unchecked(wanted, spec):
        _note(unchecked)
    if not os.environ.get("DPSYNTH_DEBUG"):
        os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
        os.environ.setdefault("PREFECT_LOGGING_SERVER_LEVEL", "CRITICAL")
    _say("Loading Prefect ...")
    from flows.release import release, telling
    from flows.server_in_use import check_usable, configured_server

    address = configured_server()
    if address is None:
        _say(
            "Waiting for a Prefect server of this run's own, 10 to 20 s; a server that runs already is named "
            "with PREFECT_API_URL, and --plain needs none ..."
        )
    else:
        _say(f"Waiting for Prefect's server at {address} ...")
        check_usable(address, "give --plain, which needs no server")
    with telling(_note), lines_for_steps():
        state = release(
            config=str(wanted.config),
            source=wanted.source,
            out=str(wanted.out),
            resume=wanted.resume,
            period=wanted.period,
            return_state=True,
        )
    result = state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    return Path(str(result))


def run_rehearsal(config: Path, out: Path, rows: int | None, period: str | None) -> Path:
    """Run all steps on a made-up table, and say so; the folder of its bundle."""
    let_arrow_start_without_pandas()
    from dpsynth.config import load
    from dpsynth.pipeline.rehearsal import rehearse

    done = rehearse(_noted(load(config)), rows=rows, outputs=out, period=period, tell=_note)
    print(
        "Rehearsed on a made-up table, without Prefect: no source was opened, and no ledger. "
        f"{done.drawn.rows:,} synthetic rows of {done.drawn.columns} columns and "
        f"{len(done.statistics)} tables."
    )
    print(f"Begin with {done.handed_over / 'report.html'}; it says nothing about the private table.")
    return done.folder


def _noted(spec: Spec) -> Spec:
    """The config, after its warnings are said."""
    for warning in spec.warnings():
        _note(warning)
    return spec


def _unchecked(wanted: Wanted, spec: Spec) -> str:
    """The sentence for a config that was never checked; "" for a release that was told so when it began."""
    never_checked = NEVER_CHECKED.filled()
    return "" if wanted.resume or never_checked is None else never_checked(wanted.config, spec)


def through_prefect() -> bool:
    """True if Prefect has a server, by the environment or one of Prefect's own files.

    Prefect takes a second or two to import, so it is asked only where one of them names a server.
    """
    if "PREFECT_API_URL" in os.environ:
        return bool(os.environ["PREFECT_API_URL"])
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml")
    if not any(map(_names_a_server, (profiles, Path("prefect.toml"), Path("pyproject.toml"), Path(".env")))):
        return False
    from flows.server_in_use import configured_server

    return configured_server() is not None


def _names_a_server(settings: Path) -> bool:
    try:
        text = settings.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return False
    return any(sign in text for sign in ("prefect_api_url", "[api]", "api.url", "[tool.prefect"))


def _note(sentence: str) -> None:
    print(f"Note: {sentence}", file=sys.stderr)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
