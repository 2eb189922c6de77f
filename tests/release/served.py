"""``dpsynth serve`` under way in a place, and the API of the Prefect server that it started."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from tests.release.clock import Clock
from tests.release.place import Place, environment

SIGN_IN = "test:secret"
OVER = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}

T = TypeVar("T")
Json = dict[str, Any]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def until(found: Callable[[], T], seconds: float = 240) -> T:
    """What a question comes to, asked again until it is something."""
    end = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < end, "waited for in vain"
        # Each question costs a server some tens of milliseconds.
        time.sleep(0.5)
    return answer


class Api:
    """The API of a Prefect server on this machine."""

    def __init__(self, port: int, sign_in: str = SIGN_IN) -> None:
        """Say where it is."""
        self._url = f"http://127.0.0.1:{port}/api"
        self._token = base64.b64encode(sign_in.encode()).decode()

    def ask(self, path: str, body: object = None) -> Any:
        """The answer to a request; POST if there is a body."""
        request = urllib.request.Request(
            self._url + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Basic {self._token}"},
        )

        def answer() -> list[Any]:
            try:
                with urllib.request.urlopen(request, timeout=30) as answered:
                    return [json.load(answered)]
            except urllib.error.HTTPError as error:
                # Its database was in use for a moment; Prefect's own client asks again too.
                if error.code != 503:
                    raise
                return []
            except TimeoutError:
                # The machine was busy; but what starts a run may have started it.
                if "create_flow_run" in path:
                    raise
                return []

        return until(answer)[0]

    @property
    def up(self) -> bool:
        """Whether it answers."""
        try:
            self.ask("/health")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def runs(self, *kinds: str, before: datetime | None = None) -> list[Json]:
        """Flow runs by scheduled time, of all kinds of state or of some, due by a moment."""
        chosen: Json = {"state": {"type": {"any_": list(kinds)}}} if kinds else {}
        if before is not None:
            chosen["expected_start_time"] = {"before_": before.isoformat()}
        found: list[Json] = self.ask(
            "/flow_runs/filter", {"sort": "EXPECTED_START_TIME_ASC", "flow_runs": chosen}
        )
        return found

    def deployment(self, name: str) -> Json:
        """The deployment of a release."""
        found: Json = self.ask(f"/deployments/name/dpsynth-release/{name}")
        return found

    def start(self, name: str, **parameters: object) -> str:
        """Start a run by hand; its id."""
        path = f"/deployments/{self.deployment(name)['id']}/create_flow_run"
        return str(self.ask(path, {"parameters": parameters, "state": {"type": "SCHEDULED"}})["id"])

    def ended(self, run: str, seconds: float = 300) -> Json:
        """A run, once it is over."""

        def over() -> Json | None:
            found: Json = self.ask(f"/flow_runs/{run}")
            return found if found["state"]["type"] in OVER else None

        return until(over, seconds)

    def events(self, since: datetime) -> list[Json]:
        """Events of ours from a moment on, in order; Prefect keeps them for a week."""
        chosen = {"event": {"prefix": ["dpsynth."]}, "occurred": {"since": since.isoformat()}, "order": "ASC"}
        return list(self.ask("/events/filter", {"filter": chosen})["events"])


class Served:
    """The command under way, with a server of its own; a test must end it."""

    def __init__(self, place: Place, clock: Clock, *configs: str, first: list[str] | None = None) -> None:
        """Start it.

        Args:
            place: where.
            clock: what it and all that it starts go by.
            configs: files; config.yaml if left out.
            first: what comes before ``serve``, in place of ``python -m dpsynth``.
        """
        self.place = place
        self.clock = clock
        self.port = free_port()
        self.api = Api(self.port)
        self.log = place.home / f"serve-{self.port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*(first or [sys.executable, "-m", "dpsynth"]), "serve", *(configs or ["config.yaml"])],
                cwd=place.folder,
                env=environment(
                    place.home,
                    PREFECT_SERVER_API_PORT=str(self.port),
                    PREFECT_SERVER_API_AUTH_STRING=SIGN_IN,
                    PREFECT_RUNNER_POLL_FREQUENCY="2",
                    OPENBLAS_NUM_THREADS="1",
                    **clock.environment,
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_for_ticks(self) -> None:
        """Until the next run is in Prefect's list, so that the clock may be put ahead."""

        def listed() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return self.api.up and any(
                datetime.fromisoformat(run["expected_start_time"]) > self.clock.now
                for run in self.api.runs("SCHEDULED")
            )

        until(listed)

    def jump(self, when: datetime, seconds: float = 300) -> list[Json]:
        """Set the clock; the runs that fell due by it, once all are over."""
        self.wait_for_ticks()
        before = self.clock.now
        self.clock.set(when)

        def due() -> list[Json]:
            return [r for r in self.api.runs() if _between(before, r, when)]

        def over() -> list[Json]:
            found = due()
            return found if all(r["state"]["type"] in OVER for r in found) else []

        return until(over, seconds)

    def stop(self) -> int:
        """End it as a service is ended; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def kill(self) -> None:
        """Kill it and the releases that it runs, as a failure of power would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)


def _between(after: datetime, run: Json, until_then: datetime) -> bool:
    return after < datetime.fromisoformat(run["expected_start_time"]) <= until_then
