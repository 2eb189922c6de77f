"""A wheel holds all that the checkout has to run a release with."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (REPOSITORY / "pyproject.toml").is_file(), reason="a wheel is built from a checkout"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


def test_a_wheel_holds_every_file_that_a_release_reads(wheel: zipfile.ZipFile) -> None:
    held = set(wheel.namelist())
    for package in ("dpsynth", "flows"):
        for file in (REPOSITORY / package).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert file.relative_to(REPOSITORY).as_posix() in held
    for kind in ("configs", "schemas"):
        for file in (REPOSITORY / kind).iterdir():
            assert f"dpsynth/{kind}/{file.name}" in held


def test_a_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"dpsynth", "flows"}


def test_a_wheel_names_its_command_and_licence(wheel: zipfile.ZipFile) -> None:
    read = {name.split("/", 1)[1]: name for name in wheel.namelist() if ".dist-info/" in name}
    assert "dpsynth = dpsynth.cli.app:main" in wheel.read(read["entry_points.txt"]).decode()
    assert "License-Expression: Apache-2.0" in wheel.read(read["METADATA"]).decode()
    assert "licenses/LICENSE" in read


@pytest.mark.slow
def test_a_wheel_that_is_installed_by_pip_makes_releases_without_a_checkout(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    """Its packages are those of this environment; dpsynth and flows are those of the wheel."""
    place, work = tmp_path / "installed", tmp_path / "work"
    work.mkdir()
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(place),
    ]
    subprocess.run([*pip, str(wheel.filename)], check=True, timeout=120)
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": str(place)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("-c", "import dpsynth, flows; print(dpsynth.__file__, flows.__file__)").count(str(place)) == 2
    assert "configs/minimal.yaml" in run("-m", "dpsynth", "example", "minimal")
    for way in (["--plain"], []):
        bundle = work / run("-m", "dpsynth", "run", *way, "configs/minimal.yaml").splitlines()[-1]
        assert (bundle / "public" / "report.html").is_file()
    frame = "pandas.read_csv('data/randhie.csv')"
    columns = {"mdvis": {"type": "integer", "min": 0, "max": 40}}
    released = f"dpsynth.release({frame}, epsilon=1, dataset='frame', columns={columns}).synthetic"
    assert "mdvis" in run("-c", f"import dpsynth, pandas; print({released})")


def unpinned(lock: str) -> list[str]:
    """Requirements of a lock file that name no exact version, or no hash."""
    entries = re.split(r"\n(?=\S)", "\n".join(line for line in lock.splitlines() if line.strip()[:1] != "#"))
    return [
        entry.split()[0]
        for entry in entries
        if entry.strip() and not re.match(r"[\w.\-\[\]]+==\S+(.|\n)*--hash=sha256:[0-9a-f]{64}", entry)
    ]


def test_every_dependency_is_pinned_with_its_hash() -> None:
    """Hazard 40; planted: a version that may rise, and a hash that is missing."""
    lock = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
    assert unpinned(lock) == []
    assert lock.count("==") > 50
    assert unpinned(lock + "\nsome>=1.0 \\\n    --hash=sha256:" + 64 * "0" + "\n") == ["some>=1.0"]
    assert unpinned(lock + "\nother==1.0\n") == ["other==1.0"]
