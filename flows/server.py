"""Prefect's server: the one that is set up on this machine, or one of its own for as long as a command runs.

The one that is set up is only greeted. Prefect's schedules need one: the temporary server that a single flow
starts has no scheduler.

Invariant: a server of its own listens on this machine only, requires a password, writes files that only their
owner can read, sends nothing elsewhere, and ends with the process that started it.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from dpsynth.errors import DpsynthError


def configured_server() -> str | None:
    """The address of Prefect's server, from the environment or Prefect's own files; None without one."""
    from prefect.settings import PREFECT_API_URL

    return PREFECT_API_URL.value()


def check_usable(address: str, instead: str) -> None:
    """Greet the server.

    Args:
        instead: advice for those who don't need it.

    Raises:
        DpsynthError: it doesn't answer, or doesn't let this user in.
    """
    from prefect import get_client

    try:
        with get_client(sync_client=True) as client:
            client.hello()
    except Exception as error:
        # The first line of Prefect's long message names the error.
        why = str(error).split(chr(10), maxsplit=1)[0] or type(error).__name__
        raise DpsynthError(
            f"Prefect's server at {address}, which PREFECT_API_URL names, can't be used: {why}. Start it; or "
            f"correct PREFECT_API_URL and PREFECT_API_AUTH_STRING; or {instead}."
        ) from None


HOST = "127.0.0.1"
_START = 120.0
_END = 20.0
"""Seconds that the server may take to start (for the first time on a slow machine), and to end."""


@dataclass(frozen=True)
class Server:
    """A running server: its address and its password.

    Attributes:
        page: the address of its pages.
        sign_in: name and password, with a colon between.
        password_file: a file with both, if they were made up for this server; only its owner can read it.
    """

    page: str
    sign_in: str
    password_file: Path | None


@contextmanager
def running(port: int) -> Iterator[Server]:
    """Run a server; its database is Prefect's usual one, in PREFECT_HOME.

    Raises:
        DpsynthError: the port is taken, or the server does not start.
    """
    page = f"http://{HOST}:{port}"
    _check_free(port)
    chosen = os.environ.get("PREFECT_SERVER_API_AUTH_STRING")
    sign_in = chosen or f"dpsynth:{secrets.token_urlsafe(12)}"
    settings = {
        "PREFECT_SERVER_API_AUTH_STRING": sign_in,
        "PREFECT_SERVER_API_HOST": HOST,
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_UI_API_URL": f"{page}/api",
        # Pages of other sites, open in the same browser, may not send requests to it.
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": page,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    # A session of its own: the server must outlast a Ctrl-C, to record the ends of current runs.
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.server", str(port)],
        env={**os.environ, **settings},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    password_file = None if chosen else _home() / f"dpsynth-serve-{port}.password"
    try:
        _wait_until_it_answers(process, page)
        if password_file is not None:
            _write_for_its_owner(password_file, sign_in)
        yield Server(page, sign_in, password_file)
    finally:
        if password_file is not None:
            password_file.unlink(missing_ok=True)
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _home() -> Path:
    """Prefect's own folder; imported here, since the server's process needs no client."""
    from prefect.settings import PREFECT_HOME

    return PREFECT_HOME.value()


def _write_for_its_owner(path: Path, text: str) -> None:
    """Write a new file of mode 0600; a file of that name that a killed server left is replaced."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{text}\n")


def _check_free(port: int) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            raise DpsynthError(
                f"Port {port} of this machine is in use. If a Prefect server listens there, use it: set "
                f"PREFECT_API_URL=http://{HOST}:{port}/api. If not, name a free port with "
                "PREFECT_SERVER_API_PORT."
            ) from None


def _wait_until_it_answers(process: subprocess.Popen[bytes], page: str) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{page}/api/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise DpsynthError(
        "Prefect's server did not start; what it wrote above says why. To see more: prefect server start"
    )


def main() -> None:
    """Run the server until its standard input ends, which means that the starting process has ended."""
    import uvicorn
    from prefect.server.api.server import create_app

    class Deaf(uvicorn.Server):
        """A server that outlasts signals to a whole terminal, to record the ends of current runs."""

        def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
            return nullcontext()

    os.umask(0o077)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # Prefect's log reports errors; single requests need no log.
    config = uvicorn.Config(
        create_app(final=True), HOST, int(sys.argv[1]), log_level="error", timeout_graceful_shutdown=5
    )
    server = Deaf(config)

    def end_with_the_starter() -> None:
        sys.stdin.buffer.read()
        server.should_exit = True

    threading.Thread(target=end_with_the_starter, daemon=True).start()
    server.run()


if __name__ == "__main__":
    main()
