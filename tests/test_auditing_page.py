"""The page for auditors names files, tests, commands and mechanisms that exist."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from dpsynth.cli.app import app
from dpsynth.wings.proof.explain import subject

DOCS = Path(__file__).parent.parent / "docs"
PYTHON = re.compile(r"`((?:dpsynth|flows)/[\w/]+\.py)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
COMMAND = re.compile(r"`dpsynth ([a-z]+)( [^`]*)?`")
MECHANISM = re.compile(r'`dpsynth explain "([^"]+)"')


def wrong(text: str) -> list[str]:
    """Files, tests, commands, options and mechanisms that a page names and that don't exist."""
    missing = [file for file in PYTHON.findall(text) if not (DOCS.parent / file).is_file()]
    for file, test in TEST.findall(text):
        path = DOCS.parent / file
        if not path.is_file() or f"def {test}(" not in path.read_text(encoding="utf-8"):
            missing.append(f"{file}::{test}")
    group = get_command(app)
    commands = {name: group.get_command(None, name) for name in group.list_commands(None)}  # type: ignore[attr-defined, arg-type]
    for name, rest in COMMAND.findall(text):
        options = {option for p in commands[name].params for option in p.opts} if name in commands else set()
        if name not in commands or not set(re.findall(r"--[a-z-]+", rest)) <= options:
            missing.append(f"{name}{rest}")
    for call in MECHANISM.findall(text):
        subject(call)
    return missing


def test_every_file_test_and_command_of_the_page_exists() -> None:
    text = (DOCS / "auditing.md").read_text(encoding="utf-8")
    assert len(TEST.findall(text)) >= 165
    assert len(COMMAND.findall(text)) >= 20 and len(MECHANISM.findall(text)) >= 8
    assert wrong(text) == []


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("test_the_analytic_gaussian_is_its_formula", "test_the_analytic_gaussian_is_gone"),
        ("--accountants", "--gone"),
    ],
)
def test_what_is_gone_is_caught(name: str, gone: str) -> None:
    text = (DOCS / "auditing.md").read_text(encoding="utf-8")
    assert name in text and wrong(text.replace(name, gone))


def test_a_file_that_is_gone_is_caught() -> None:
    assert wrong("`dpsynth/accounting/events.py`") == []
    assert wrong("`dpsynth/accounting/gone.py`") == ["dpsynth/accounting/gone.py"]
