"""The command speaks on any terminal, and every command has its help and its --debug."""

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from dpsynth.cli import app, ledger_commands
from tests.cli.here import Command
from tests.release.place import furnished

SLOW = pytest.mark.slow
COMMANDS = [
    *((c.name or c.callback.__name__,) for c in app.app.registered_commands if c.callback),
    *(
        ("ledger", c.name or c.callback.__name__)
        for c in ledger_commands.app.registered_commands
        if c.callback
    ),
]


def test_without_a_command_the_help_is_shown_and_nothing_else(dpsynth: Command) -> None:
    for arguments in ((), ("ledger",)):
        ended = dpsynth(*arguments)
        assert (ended.code, ended.err) == (2, "") and "Usage: dpsynth" in ended.out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_takes_debug(
    dpsynth: Command, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = dpsynth(*command, "--debug", "--help")
    assert (ended.code, ended.err) == (0, "") and os.environ["DPSYNTH_DEBUG"] == "1"


def test_debug_shows_the_traceback_of_an_error_that_is_one_paragraph_without(
    dpsynth: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsynth.errors import ConfigError

    assert dpsynth("plan", "nothing.yaml").err.startswith("Error: There is no file nothing.yaml")
    monkeypatch.setattr(sys, "argv", ["dpsynth", "plan", "nothing.yaml", "--debug"])
    with pytest.raises(ConfigError):
        app.main()


def test_a_value_that_is_debug_is_left_alone() -> None:
    arguments = ["ledger", "cap", "visits", "--", "--debug"]
    assert app._with_debug_in_front(arguments) == arguments


@dataclass(frozen=True)
class Said:
    """The exit code of a command, and the bytes that it wrote."""

    code: int
    out: bytes
    err: bytes


Plain = Callable[..., Said]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Plain:
    """The command in this process, on a terminal of another encoding."""

    def said(folder: Path, *arguments: str, encoding: str) -> Said:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding, write_through=True) for _ in range(2))
        with monkeypatch.context() as patched:
            patched.chdir(folder)
            patched.setenv("PREFECT_API_URL", "")
            patched.setattr(sys, "argv", ["dpsynth", *arguments])
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as stopped:
                app.main()
        return Said(int(stopped.value.code or 0), *(stream.buffer.getvalue() for stream in (out, err)))  # type: ignore[attr-defined]

    return said


@pytest.mark.parametrize("encoding", ["ascii", *(pytest.param(e, marks=SLOW) for e in ("latin-1", "cp437"))])
def test_a_terminal_without_our_letters_gets_them_spelt(tmp_path: Path, plain: Plain, encoding: str) -> None:
    place = furnished(tmp_path)
    released = plain(place.folder, "run", "config.yaml", encoding=encoding)
    assert released.code == 0, released.err
    said = released.out.decode(encoding)
    assert (place.folder / said.splitlines()[-1]).is_dir()
    shown = plain(place.folder, "ledger", "show", "--config", "config.yaml", encoding=encoding)
    assert shown.code == 0, shown.err
    if encoding == "ascii":
        assert "epsilon = 1, delta = 1e-06 for one row" in said
        assert "epsilon = 1, delta = 1e-6 reserved" in shown.out.decode("ascii")


def test_what_a_program_reads_stays_readable_on_such_a_terminal(tmp_path: Path, plain: Plain) -> None:
    (tmp_path / "visits.csv").write_text("Größe,ε\n1,2\n")
    (tmp_path / "config.yaml").write_text(
        json.dumps(
            {
                "source": {"path": "visits.csv"},
                "privacy": {"epsilon": 1},
                "columns": {"Größe": {"type": "integer", "min": 0, "max": 9}, "ε": {"type": "boolean"}},
            }
        )
    )
    started = plain(tmp_path, "init", "visits.csv", "--out", "-", encoding="ascii")
    assert set(yaml.safe_load(started.out.decode("ascii"))["columns"]) == {"Größe", "ε"}
    planned = plain(tmp_path, "plan", "config.yaml", "--json", encoding="ascii")
    assert planned.code == 0, planned.err
    json.loads(planned.out.decode("ascii"))


def test_a_name_that_is_no_text_is_printed_even_so(dpsynth: Command) -> None:
    name = os.fsdecode(b"caf\xe9.yaml")
    ended = dpsynth("plan", name)
    assert ended.code == 2 and "caf" in ended.err and "Traceback" not in ended.err


def test_an_encoding_error_would_be_seen(
    tmp_path: Path, plain: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: an output that spells nothing."""
    place = furnished(tmp_path)
    monkeypatch.setattr(app, "say_what_the_terminal_can", lambda: None)
    done = plain(place.folder, "plan", "config.yaml", encoding="ascii")
    assert done.code == 1 and b"UnicodeEncodeError" in done.err


def test_the_schema_is_printed(dpsynth: Command) -> None:
    assert json.loads(dpsynth("schema").out)["title"] == "dpsynth configuration"
