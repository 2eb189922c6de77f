"""Releases through Prefect: what is checked before a server starts, what is said, and how runs are named."""

import io
import re
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpsynth.cli.app import through_prefect
from dpsynth.pipeline.steps import Step
from tests.release.keeper import Keeper
from tests.release.place import Place, changed
from tests.release.served import free_port

SLOW = pytest.mark.slow
PROFILE = 'active = "a"\n[profiles.a]\n'
API = "PREFECT_API_URL"


def test_a_plain_run_that_is_piped_names_each_step(keeper: Keeper, place: Place) -> None:
    ended = keeper.run(place)
    assert ended.code == 0 and ended.under_way[0] == "Step: plan"
    steps = [line for line in ended.under_way if not line.startswith("Note: This config was never checked")]
    assert len(steps) == len(ended.under_way) - 1
    assert all(re.fullmatch("Step: [a-z ]+", line) for line in steps)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"period": "2026-01"}, "visits 2026-01"),
        ({}, "visits 2026-10"),
        ({"resume": "20261101-0a1b2c3d"}, "visits 20261101-0a1b2c3d"),
        ({"config": "nowhere.yaml"}, "nowhere.yaml"),
    ],
)
def test_a_run_is_named_after_its_period(
    place: Place, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], name: str
) -> None:
    import flows.release

    place.configure(
        release="visits",
        period={"column": "seen", "every": "month"},
        schedule={"cron": "0 3 1 * *", "timezone": "UTC"},
    )
    monkeypatch.chdir(place.folder)

    class Run:
        parameters = changed({"config": "config.yaml", "source": None, "resume": None, "period": None}, given)
        scheduled_start_time = datetime(2026, 11, 1, 3, tzinfo=UTC)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 11, 1, 2, 59, 59, 700_000, UTC)

    monkeypatch.setattr(flows.release, "flow_run", Run)
    monkeypatch.setattr(flows.release, "datetime", Clock)
    assert flows.release._run_name() == name


def test_a_password_that_was_made_up_stands_in_a_file_of_the_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.settings import PREFECT_HOME, temporary_settings

    from flows import server as local_server

    settings: dict[str, str] = {}

    class Process:
        def __init__(self, command: object, *, env: dict[str, str], **_: object) -> None:
            settings.update(env)
            self.stdin = io.BytesIO()

        def wait(self, seconds: float) -> None: ...

    monkeypatch.setattr(local_server.subprocess, "Popen", Process)
    monkeypatch.setattr(local_server, "_wait_until_it_answers", lambda *_: None)
    monkeypatch.delenv("PREFECT_SERVER_API_AUTH_STRING", raising=False)
    left = tmp_path / "dpsynth-serve-4321.password"
    left.write_text("of a server that was killed")
    with temporary_settings({PREFECT_HOME: tmp_path}), local_server.running(4321) as server:
        assert server.password_file == left and stat.S_IMODE(left.stat().st_mode) == 0o600
        assert left.read_text() == f"{server.sign_in}\n"
        assert settings["PREFECT_SERVER_API_AUTH_STRING"] == server.sign_in
    assert not left.exists()


def test_a_server_that_does_not_answer_is_one_plain_error(place: Place) -> None:
    ended = place.call(place.command(), PREFECT_API_URL=f"http://127.0.0.1:{free_port()}/api")
    assert ended.code == 1 and ended.err.startswith("Error: Prefect's server at http")
    assert ended.err.count("\n") == 1 and "--plain" in ended.err
    assert place.files == set() and place.balance is None


EVERY_SHARE = """
from dpsynth.pipeline import steps as progress
progress.EVERY = 0.0
from dpsynth.cli.app import main
main()
"""


@SLOW
def test_prefect_is_shown_shares_of_public_work_alone(place: Place) -> None:
    """With every share told at once, and a server of its own, whose database is searched."""
    python, _, _, *arguments = place.command("--prefect")
    ended = place.call([python, "-c", EVERY_SHARE, *arguments])
    assert ended.code == 0
    (database,) = (place.home / "prefect").glob("prefect.db")
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute(
            "SELECT key, description, data FROM artifact WHERE type = 'progress'"
        ).fetchall()
    assert {key for key, _, _ in found} == {"fit-the-model", "sample-rows"}
    assert {description for _, description, _ in found} == {Step.FIT.value, Step.SAMPLE.value}
    assert all(0 < float(data) <= 100 for _, _, data in found)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("prefect.toml", '[api]\nurl = "http://127.0.0.1:4200/api"\n'),
        pytest.param("pyproject.toml", '[tool.prefect.api]\nurl = "http://127.0.0.1:4200/api"\n', marks=SLOW),
        pytest.param(".env", "PREFECT_API_URL=http://127.0.0.1:4200/api\n", marks=SLOW),
        pytest.param("home/profiles.toml", f'{PROFILE}{API} = "http://127.0.0.1:4200/api"\n', marks=SLOW),
    ],
)
def test_a_run_goes_through_prefect_where_one_of_its_files_names_a_server(
    tmp_path: Path, file: str, text: str
) -> None:
    """In a process of its own, since Prefect reads these files when it is imported."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / file).write_text(text)
    asked = "from dpsynth.cli.app import through_prefect; print(through_prefect())"
    place = Place(tmp_path, tmp_path / "place")
    ended = place.call([place.command()[0], "-c", asked], PREFECT_HOME=str(home))
    assert (ended.code, ended.out) == (0, "True\n")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (None, ""),
        ("pyproject.toml", "[tool.ruff]\nline-length = 110\n"),
        ("home/profiles.toml", f'{PROFILE}PREFECT_LOGGING_LEVEL = "INFO"\n'),
    ],
)
def test_a_run_is_plain_where_none_of_its_files_names_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str | None, text: str
) -> None:
    (tmp_path / "home").mkdir()
    if file is not None:
        (tmp_path / file).write_text(text)
    monkeypatch.chdir(tmp_path)
    for name in (API, "PREFECT_PROFILES_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    assert not through_prefect()


def test_the_environment_decides_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("http://127.0.0.1:4200/api", ""):
        monkeypatch.setenv("PREFECT_API_URL", address)
        assert through_prefect() is bool(address)
