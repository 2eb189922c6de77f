"""What the README shows a stranger is so."""

import re
from pathlib import Path

import pytest

from dpsynth import load
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, Interrupted, SourceError

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_config_that_it_shows_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    config = tmp_path / "visits.yaml"
    config.write_text(block, encoding="utf-8")
    spec = load(config)
    assert spec.release == "visits" and len(spec.publish.statistics) == 1


def test_it_can_be_read_in_five_minutes() -> None:
    assert len(README.split()) <= 900


def test_the_commands_that_it_names_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = re.findall(r"\bmake ([a-z-]+)\b", README)
    assert {"demo", "test", "check"} <= set(named) <= set(targets)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_the_files_that_it_links_to_exist(link: str) -> None:
    assert (ROOT / link.partition("#")[0]).is_file()


def test_the_exit_codes_that_it_states_are_those_of_the_errors() -> None:
    stated = {
        ConfigError: "2 config invalid",
        BudgetRefused: "3 budget refused",
        SourceError: "4 source",
        Interrupted: "5 interrupted",
        DpsynthError: "1 anything else",
    }
    plain = " ".join(README.split())
    for error, words in stated.items():
        assert words in plain and words.startswith(str(error.exit_code))
