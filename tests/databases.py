"""A PostgreSQL server of the tests' own, for as long as they run.

It listens on a socket in a temporary folder and nowhere else, so it meets no other server.
PostgreSQL refuses to run as root: for root it runs as another user.

Invariant: whatever becomes of pytest, no server stays and no folder, but one that is kept. This
file, as a script, holds the other end of a pipe from pytest; when that is closed, by a kill too,
it stops the server and removes the folder.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal

Programs = Path
"""The folder of initdb and pg_ctl."""

SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "80",
    "shared_buffers": "16MB",
    # Syncing is for a loss of power. Tests kill servers, and those lose what they had not written.
    "fsync": "off",
    # What is not written at a commit stays unwritten for long.
    "wal_writer_delay": "10s",
    "logging_collector": "off",
}

_SESSIONS = "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def programs() -> Programs | None:
    """Where PostgreSQL's server programs are, the newest version first, or None."""
    on_path = shutil.which("pg_ctl")
    found = [Path(on_path).resolve().parent] if on_path else []
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    found += sorted(installed, key=lambda p: p.parent.name.zfill(4), reverse=True)
    return next((p for p in found if (p / "initdb").exists() and (p / "pg_ctl").exists()), None)


def reason_without() -> str | None:
    """Why there can be no server here, or None."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "needs psycopg"
    return None if programs() else "needs PostgreSQL's server programs, initdb and pg_ctl"


class Postgres:
    """One running server, with as many empty databases as wanted."""

    def __init__(self, kept: Path | None = None) -> None:
        """Make the server's files and start it.

        Args:
            kept: a folder for its files, which stays; if it holds them already, they are used.
        """
        found = programs()
        assert found is not None
        self._folder = kept or Path(tempfile.mkdtemp(prefix="dpsynth-pg-"))
        self._guard = subprocess.Popen(
            [sys.executable, __file__, str(found), str(self._folder), "kept" if kept else "removed"],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._programs = found
        self._made = 0
        self._free: list[str] = []
        if (self._folder / "data").exists():
            # Its last end may have been a kill.
            (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)
            self.start()
            return
        if kept is not None:
            kept.mkdir(parents=True)
        if os.geteuid() == 0:
            shutil.chown(self._folder, *_other_user())
        how = ["-U", "dpsynth", "--auth", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        _call(found, self._folder, "initdb", *how)
        settings = "".join(f"{name} = {value}\n" for name, value in SETTINGS.items())
        with (self._folder / "data" / "postgresql.conf").open("a") as file:
            file.write(f"{settings}unix_socket_directories = '{self._folder}'\n")
        self.start()

    def url(self, name: str) -> str:
        """The URL of a database."""
        return f"postgresql://dpsynth@/{name}?host={self._folder}"

    def make(self) -> str:
        """An empty database; its URL."""
        if self._free:
            return self._free.pop()
        self._made += 1
        name = f"ledger{self._made}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def found(self, name: str) -> str:
        """A database of a name, made if there is none; its URL."""
        if not self.execute(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def empty(self, url: str) -> None:
        """End a database's sessions and take out all that it holds: ``make`` may give it again.

        Dropping it would cost a checkpoint, which is half a second; and to start after a loss of
        power the server looks at every file of every database.
        """
        self.end_sessions(url)
        self.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public", url)
        self._free.append(url)

    def end_sessions(self, url: str) -> None:
        """Cut off all clients of a database."""
        self.execute(f"SELECT pg_terminate_backend(pid, 9000) FROM {_SESSIONS}", url)

    def execute(self, statement: str, url: str | None = None) -> list[tuple[object, ...]]:
        """Run a statement as the superuser; the rows that it gives."""
        import psycopg

        with psycopg.connect(url or self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def sessions(self, url: str) -> int:
        """How many clients are connected to a database."""
        # The server's own processes, such as one that vacuums, come and go.
        clients = f"{_SESSIONS} AND backend_type = 'client backend'"
        ((number,),) = self.execute(f"SELECT count(*) FROM {clients}", url)
        return int(str(number))

    @property
    def running(self) -> bool:
        """Whether the server takes connections."""
        return (self._folder / "data" / "postmaster.pid").exists()

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        log = str(self._folder / "log")
        _call(self._programs, self._folder, "pg_ctl", "start", "-w", "-s", "-t", "60", "-l", log)

    def stop(self, how: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server: in order, or as by a loss of power."""
        _call(self._programs, self._folder, "pg_ctl", "stop", "-w", "-s", "-m", how)

    def close(self) -> None:
        """Stop the server, and remove its files if they aren't kept."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(timeout=60)


def _other_user() -> tuple[int, int]:
    """User and group that run the server for root."""
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise AssertionError("root needs a user to run PostgreSQL as")


def _call(found: Programs, folder: Path, program: str, *arguments: str) -> None:
    user, group = _other_user() if os.geteuid() == 0 else (None, None)
    done = subprocess.run(
        [found / program, *arguments, "-D", folder / "data"],
        cwd=folder,
        env={"PATH": os.defpath, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        # A pipe would stay open in the server.
        stdout=subprocess.DEVNULL,
        stderr=(folder / "errors").open("w"),
        user=user,
        group=group,
        extra_groups=None if user is None else [],
        check=False,
    )
    assert done.returncode == 0, (program, (folder / "errors").read_text())


def _guard() -> None:
    found, folder = map(Path, sys.argv[1:3])
    sys.stdin.read()
    with suppress(AssertionError, OSError):
        _call(found, folder, "pg_ctl", "stop", "-w", "-s", "-m", "immediate")
    if sys.argv[3] == "removed":
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _guard()
