"""The schedules for a team, in prefect.yaml, are those of the configs, and run on a server with a worker."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from dpsynth import load
from dpsynth.ledger.ledger import Ledger
from dpsynth.wings.owner.starter.examples import write_example
from tests.release.place import PACKAGES, Place, environment
from tests.release.served import Api, free_port, until

ROOT = Path(__file__).resolve().parents[2]


def test_its_deployments_agree_with_the_configs_that_they_name() -> None:
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    assert deployments
    for deployment in deployments:
        path, name = deployment["entrypoint"].split(":")
        assert (ROOT / path).is_file() and name == "release"
        spec = load(ROOT / deployment["parameters"]["config"])
        assert deployment["name"] == spec.release and spec.schedule is not None
        assert deployment["schedules"] == [spec.schedule.model_dump()]
        assert deployment["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}


@dataclass(frozen=True)
class Team:
    """Prefect's own commands in a checkout, and a server that is up."""

    work: Path
    settings: Mapping[str, str]
    api: Api
    started: list[subprocess.Popen[bytes]]

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start ``python -m`` something; it ends with the tests at the latest."""
        with (self.work.parent / f"{'-'.join(command[:2])}.log").open("wb") as log:
            self.started.append(
                subprocess.Popen(
                    [sys.executable, "-m", *command],
                    cwd=self.work,
                    env=self.settings,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )
        return self.started[-1]

    def released(self, month: str) -> str | None:
        """The state in which the ledger has a month."""
        balance = Ledger(f"sqlite:///{self.work / 'ledger.db'}").balance("randhie-monthly")
        return next((r.state for r in balance.releases if r.occasion == month), None) if balance else None


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A checkout with the example's table, and a server."""
    pytest.importorskip("statsmodels")
    home, port = tmp_path_factory.mktemp("team"), free_port()
    settings = environment(
        home,
        PREFECT_API_URL=f"http://127.0.0.1:{port}/api",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        DO_NOT_TRACK="1",
        OPENBLAS_NUM_THREADS="1",
    )
    made = Team(home / "work", settings, Api(port, ""), [])
    write_example("randhie-monthly", made.work)
    shutil.copy(ROOT / "prefect.yaml", made.work)
    shutil.copytree(PACKAGES / "flows", made.work / "flows")
    made.start("prefect", "server", "start", "--port", str(port))
    until(lambda: made.api.up)
    yield made
    for process in reversed(made.started):
        process.terminate()
        process.wait(60)


@pytest.mark.slow
def test_the_commands_that_it_names_release_a_month(team: Team) -> None:
    for command in ("work-pool create --type process releases", "deploy --all --no-prompt"):
        assert team.start("prefect", *command.split()).wait(60) == 0, command
    worker = team.start("prefect", "worker", "start", "--pool", "releases")
    run = team.api.ended(team.api.start("randhie-monthly", period="2025-03"))
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    assert team.released("2025-03") == "closed"
    worker.terminate()
    worker.wait(60)


@pytest.mark.slow
def test_serve_runs_on_the_server_that_is_configured(team: Team) -> None:
    served = team.start("dpsynth", "serve", "configs/randhie-monthly.yaml")

    def theirs() -> bool:
        deployment = team.api.deployment("randhie-monthly")
        return deployment["work_pool_name"] is None and deployment["status"] == "READY"

    until(theirs)
    run = team.api.ended(team.api.start("randhie-monthly", period="2025-04"))
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    assert team.released("2025-04") == "closed"
    served.terminate()
    assert served.wait(60) == 0 and team.api.up


@pytest.mark.slow
def test_a_server_that_cannot_be_reached_is_a_plain_error(place: Place) -> None:
    place.configure(schedule={"cron": "0 3 1 1 *", "timezone": "Europe/Paris"})
    command = [sys.executable, "-m", "dpsynth", "serve", "config.yaml"]
    done = place.call(command, PREFECT_API_URL=f"http://127.0.0.1:{free_port()}/api")
    assert done.code == 1
    assert done.err.startswith("Error: Prefect's server at http") and done.err.count("\n") == 1
