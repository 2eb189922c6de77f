"""The files of changelog.d have names that say what changed and of which kind, and become the changelog."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "changelog.d"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the changes are those of a checkout")


def kinds() -> list[str]:
    """The kinds of changes that pyproject.toml knows."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    return [kind["directory"] for kind in settings["type"]]


def malformed(names: list[str]) -> list[str]:
    """Names of files that aren't ``+words-with-hyphens.kind.md``."""
    name = re.compile(rf"\+[a-z0-9]+(?:-[a-z0-9]+)+\.(?:{'|'.join(kinds())})\.md")
    return [found for found in names if not name.fullmatch(found)]


def test_every_change_has_a_well_formed_name_and_says_something() -> None:
    changes = [path for path in FOLDER.iterdir() if path.name not in ("README.md", ".gitignore")]
    assert malformed([path.name for path in changes]) == []
    assert [
        path.name for path in changes if not path.read_text(encoding="utf-8").rstrip().endswith(".")
    ] == []


@pytest.mark.parametrize(
    "name",
    ["older-ledger.fixed.md", "+older-ledger.mended.md", "+Older ledger.fixed.md", "+x.fixed.md", "notes"],
)
def test_a_malformed_name_is_caught(name: str) -> None:
    assert malformed([name, "+older-ledger-refused.fixed.md"]) == [name]


def test_the_table_of_kinds_is_that_of_the_settings() -> None:
    told = re.findall(r"^\| `(\w+)` \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert told == kinds()


def test_changes_become_a_section_above_the_versions_before(tmp_path: Path) -> None:
    pytest.importorskip("towncrier", reason="the changelog is made with the packages of the lock file")
    (tmp_path / "changelog.d").mkdir()
    for name in ("pyproject.toml", "CHANGELOG.md", "changelog.d/README.md"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / "changelog.d" / "+older-ledger-refused.fixed.md").write_text("It is refused.\n")
    (tmp_path / "changelog.d" / "+noise-too-small.guarantee.md").write_text("Withdraw them.\n")
    subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "9.9", "--date", "2030-01-02"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=60,
    )
    text = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    said = [
        "## 9.9, 2030-01-02",
        "weaker than stated",
        "- Withdraw them.",
        "Fixed",
        "- It is refused.",
        "## 0.1.0",
    ]
    places = [text.index(words) for words in said]
    assert places == sorted(places)
    assert text.count("# Changelog") == 1 and "underline" not in text
