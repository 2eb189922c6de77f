"""The command line: parses, calls, prints.

Invariant: an error of ours is one plain paragraph on stderr with its own exit code; a
traceback appears only with --debug. What a command needs, and the commands that wings add, is imported when
it is called for.

A release runs as plain functions by default, for one table on one machine. A flow without a server of its own
starts one for each run, which takes four times the time of the release, and ends with it, so that nobody
could look at the run. Where Prefect has a server (PREFECT_API_URL), runs are kept there, and the flow is the
default. File, header, config and ledger are checked before any server is started or asked. No words let a
rehearsal pass for a release.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from dpsynth import __version__
from dpsynth.cli import ledger_commands, recipient_commands
from dpsynth.cli.plan_command import plan
from dpsynth.cli.printing import let_arrow_start_without_pandas, say_what_the_terminal_can
from dpsynth.cli.recipient_commands import manifest, report
from dpsynth.errors import ConfigError, DpsynthError, Interrupted, Paused, spelt_out
from dpsynth.wing import Point, Wing, added, wings

if TYPE_CHECKING:
    from typer._click import Command, Context

    from dpsynth.config import Spec
    from dpsynth.pipeline.beginning import Request

NEVER_CHECKED: Point[Callable[[Path, Spec], str]] = Point("never checked")
"""From a config's file and its spec to a sentence if it was never checked against its table, or ""."""


def run_plainly(config: Path, source: str | None, request: Request) -> Path:
    """Run the steps as plain functions; the bundle's folder."""
    from dpsynth.config import load
    from dpsynth.pipeline.spine import run
    from dpsynth.pipeline.steps import lines_for_steps

    spec = _noted(load(config, source=source))
    noticed = replace(request, notice=_unchecked(config, spec, request))
    with lines_for_steps():
        done = run(spec, noticed, tell=_note)
    return done.folder


def run_flow(config: Path, source: str | None, request: Request) -> Path:
    """Run the Prefect flow, its log kept off the terminal unless asked for; the bundle's folder.

    Raises:
        DpsynthError: as ``run_plainly``; or Prefect's server can't be used.
    """
    from dpsynth.config import load
    from dpsynth.pipeline.beginning import check_beginning
    from dpsynth.pipeline.steps import lines_for_steps

    spec = _noted(load(config, source=source))
    check_beginning(spec, request)
    if unchecked := _unchecked(config, spec, request):
        _note(unchecked)
    if not os.environ.get("DPSYNTH_DEBUG"):
        os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
        os.environ.setdefault("PREFECT_LOGGING_SERVER_LEVEL", "CRITICAL")
    _say("Loading Prefect ...")
    from flows.release import release, telling
    from flows.server import check_usable, configured_server

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
            config=str(config),
            source=source,
            out=str(request.outputs),
            resume=request.resume,
            period=request.period,
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
    for warning in spec.warnings():
        _note(warning)
    return spec


def _unchecked(config: Path, spec: Spec, request: Request) -> str:
    """The sentence for a config that was never checked; "" for a release that was told so when it began."""
    never_checked = NEVER_CHECKED.filled()
    return "" if request.resume or never_checked is None else never_checked(config, spec)


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
    from flows.server import configured_server

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


class CommandsOfAll(TyperGroup):
    """The core's commands, then those of the wings."""

    def list_commands(self, ctx: Context) -> list[str]:
        return [*super().list_commands(ctx), *(name for wing in wings() for name in wing.commands)]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in self.commands:
            found = added("commands", cmd_name)
            if found is not None:
                self.commands[cmd_name] = _loaded(cmd_name, *found)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The command that is meant. Where there is none, all are loaded, to name the nearest."""
        if self.get_command(ctx, args[0]) is None:
            for name in self.list_commands(ctx):
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _loaded(name: str, addition: object, wing: Wing) -> Command:
    if not isinstance(addition, typer.Typer):
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name, rich_help_panel=wing.title)(cast(Callable[..., None], addition))
        addition = alone
    command = get_command(addition)
    assert isinstance(command, TyperCommand | TyperGroup)
    command.rich_help_panel = wing.title
    return command


app = typer.Typer(
    cls=CommandsOfAll,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Differentially private synthetic data releases.",
)
app.add_typer(ledger_commands.app, name="ledger")
app.command()(plan)
app.add_typer(recipient_commands.app)
app.command()(report)
app.command()(manifest)

Config = Annotated[Path, typer.Argument(help="The release's YAML file.")]

Source = Annotated[str | None, typer.Option(help="A table to use in place of the config's.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"dpsynth {__version__}")
        raise typer.Exit


def _debug(asked: bool) -> None:
    if asked:
        os.environ["DPSYNTH_DEBUG"] = "1"


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            callback=_debug,
            help="Show tracebacks; those that may quote private data go to a private file. It may also stand "
            "after any command.",
        ),
    ] = False,
) -> None:
    del version, debug


@app.command()
def run(  # noqa: PLR0913 (options of a command)
    config: Config,
    plain: Annotated[
        bool, typer.Option("--plain", help="Run without Prefect, even if it is set up.")
    ] = False,
    prefect: Annotated[
        bool,
        typer.Option(
            "--prefect",
            help="Run as a Prefect flow; the default where Prefect has a server (PREFECT_API_URL).",
        ),
    ] = False,
    source: Source = None,
    out: Annotated[Path, typer.Option(help="Folder for bundles.")] = Path("outputs"),
    resume: Annotated[
        str | None, typer.Option(help="Finish the interrupted or paused release of this id.")
    ] = None,
    abandon: Annotated[
        str | None, typer.Option(help="End the unfinished release of this id, and say what it is charged.")
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="Which period to release, such as 2026-03; left out: the last whole one."),
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Run all steps on a made-up table: reads nothing, charges nothing."),
    ] = False,
    rows: Annotated[
        int | None, typer.Option(min=1, help="With --rehearse: made-up rows. Left out: 10 000.")
    ] = None,
) -> None:
    """Run a release; the last line printed is the bundle's folder."""
    if plain and prefect:
        raise ConfigError("--plain and --prefect contradict each other. Give one of them, or none.")
    if abandon is not None:
        if resume is not None:
            raise ConfigError("--resume goes on with a release and --abandon ends it: give one of them.")
        ledger_commands.abandon_of(config, out, abandon)
        return
    signal.signal(signal.SIGTERM, _interrupt)
    if rehearse:
        if resume is not None:
            raise ConfigError(
                "--resume has no use with --rehearse: a rehearsal that was stopped is begun anew."
            )
        print(run_rehearsal(config, out, rows, period))
        return
    if rows is not None:
        raise ConfigError("--rows has no use without --rehearse: a release has the rows that its table has.")
    let_arrow_start_without_pandas()
    from dpsynth.pipeline.beginning import Request

    runs = run_flow if prefect or (not plain and through_prefect()) else run_plainly
    _announce(runs(config, source, Request(out, resume, period)))


_MANIFESTS = "*/manifest.json"
"""The manifest of each bundle, in the folder of a release."""


def _announce(bundle: Path) -> None:
    """Print a summary of the release from its manifests, with the folder of its bundles on the last line."""
    manifests = [
        (path.parent, json.loads(path.read_text(encoding="utf-8"))) for path in bundle.glob(_MANIFESTS)
    ]
    for folder, facts in sorted(manifests, key=lambda found: float(found[1]["guarantee"]["epsilon"])):
        promise, audience = facts["guarantee"], facts.get("audience")
        rows, columns = facts["synthetic_rows"], len(facts["columns"])
        tables = len(facts["statistics"])
        whom = "" if audience is None else f" for {audience['name']}"
        print(
            f"Released{whom} {rows:,} synthetic row{'s' * (rows != 1)} of {columns} columns and "
            f"{tables} tables."
        )
        for line in (facts.get("tables") or {}).get("in_words", ()):
            print(spelt_out(line))
        for line in facts["verdict"]["in_words"]:
            print(f"Verdict{whom}: {spelt_out(line)}")
        print(f"Guarantee: ε = {promise['epsilon']:.6g}, δ = {promise['delta']:.3g} for {promise['unit']}.")
        print(
            f"To hand over{whom}: {folder} (begin with report.html).", end=" " if audience is None else "\n"
        )
    print(f"To keep private: {bundle / 'private'}")
    print(bundle)


@app.command()
def serve(
    configs: Annotated[list[Path], typer.Argument(help="YAML files of releases, each with a key schedule.")],
    out: Annotated[Path, typer.Option(help="Folder for bundles.")] = Path("outputs"),
) -> None:
    """Release at the times of each config's schedule, through Prefect, until stopped."""
    from flows.served import StopSignals, checked

    # Before Prefect is loaded, which takes seconds.
    served, stop = checked(configs), StopSignals()
    from flows.schedule import serve_all

    serve_all(served, out, lambda sentence: print(sentence, flush=True), stop)


@app.command()
def schema() -> None:
    """Print the JSON Schema of configs, by which editors complete and check keys."""
    from dpsynth.config.json_schema import schema_text

    print(schema_text(), end="")


def _interrupt(number: int, frame: object) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt


_TYPERS_INTERRUPT = 130
"""Exit code that typer returns for a KeyboardInterrupt."""


def _with_debug_in_front(arguments: Sequence[str]) -> list[str]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    before = [argument for argument in arguments[:end] if argument != "--debug"]
    return [*["--debug"] * (len(before) < end), *before, *arguments[end:]]


_OBJECTS_A_COLLECTION = 100_000


@cache
def _command() -> Callable[..., int | None]:
    return get_command(app)


def main() -> None:
    """Entry point of the ``dpsynth`` command."""
    # Imports make 200 000 objects that stay; looking for garbage among them takes a tenth of their time.
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    say_what_the_terminal_can()
    arguments = _with_debug_in_front(sys.argv[1:])
    debug = arguments[:1] == ["--debug"]
    try:
        code = _command()(arguments, prog_name="dpsynth", standalone_mode=False) or 0
        if code == _TYPERS_INTERRUPT:
            raise KeyboardInterrupt
    except DpsynthError as error:
        if debug:
            raise
        # The warnings of a pause have been told already.
        print(f"Error: {error.ending if isinstance(error, Paused) else error}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        print("Interrupted before the table was opened: nothing was asked of it.", file=sys.stderr)
        code = Interrupted.exit_code
    except typer.Exit as stop:
        code = stop.exit_code
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            # Without a command, the help has been printed, and nothing is left to be said.
            if words := error.format_message():
                command = getattr(getattr(error, "ctx", None), "command_path", "dpsynth")
                end = "" if words.endswith(("?", ".")) else "."
                print(f"Error: {words}{end} See: {command} --help", file=sys.stderr)
            code = int(error.exit_code)
        elif debug:
            raise
        else:
            print(f"Error: {type(error).__name__}; details are shown with --debug.", file=sys.stderr)
            code = 1
    sys.exit(code)
