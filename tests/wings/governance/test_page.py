"""The story of the page on approval, as its commands and outputs are, on a small table."""

import re
import shlex
from pathlib import Path

import pytest

from dpsynth.wings.governance.signed import KEY
from tests.cli.here import Command

PAGE = (Path(__file__).parents[3] / "docs" / "governance.md").read_text(encoding="utf-8")
STORY = PAGE.split("\n## A story\n")[1].split("\n## ")[0]
CONFIG = """
release: visits
source: {path: visits.csv}
privacy: {epsilon: 2, delta: 1.0e-6, unit: row}
ledger: {url: "sqlite:///ledger.db", dataset: visits, cap: {epsilon: 10, delta: 1.0e-4}}
columns:
  age: {type: integer, min: 0, max: 89, bins: 18, missing: false}
  sex: {type: category, values: [F, M], missing: false}
"""
VARIES = re.compile(
    r"(?:request-)?\b\d{8}-[0-9a-f]{8}\b|ed25519:[0-9a-f]+…?|\b\d{4}-\d\d-\d\d\b|/[\w/-]+/visits\.csv"
)
"""Names, keys, dates and places, which are others in each run."""


def commands() -> list[tuple[str, list[str]]]:
    """Each command of the story with the lines of its output."""
    found: list[tuple[str, list[str]]] = []
    without = re.sub(r"^```yaml\n.*?^```$", "", STORY, flags=re.DOTALL | re.MULTILINE)
    for block in re.findall(r"^```\n(.*?)^```$", without, flags=re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def pattern(lines: list[str]) -> str:
    """What an output must look like: ``...`` stands for anything, and what varies for another of its kind."""
    whole = "\n".join(lines)
    pieces = [re.escape(VARIES.sub("\0", piece)).replace("\0", r"\S+?") for piece in whole.split("...")]
    return ".*".join(pieces).replace(
        r'Ask\ with:\ dpsynth\ request\ CONFIG\ \-\-purpose\ ".*"', r"Ask\ with:.*"
    )


def test_the_story_of_the_page_is_so(dpsynth: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    rows = "".join(f"{i * 7 % 90},{'FM'[i % 2]}\n" for i in range(1000))
    (dpsynth.folder / "visits.csv").write_text("age,sex\n" + rows)
    (dpsynth.folder / "visits.yaml").write_text(CONFIG)
    (policy,) = re.findall(r"```yaml\n(.*?)```", STORY, flags=re.DOTALL)
    real: dict[str, str] = {}
    told = commands()
    assert len(told) == 12
    for written, lines in told:
        command = written
        if "--set" in command:
            for name, key in real.items():
                policy = policy.replace(name, key)
            (dpsynth.folder / "policy.yaml").write_text(policy)
        for name, key in real.items():
            command = command.replace(name, key)
        program, *words = shlex.split(command)
        assert program == "dpsynth"
        done = dpsynth(*words)
        refused = lines[0].startswith("Error: ")
        assert done.code == (3 if refused else 1 if words[0] == "verify" else 0), done
        said = done.err.splitlines()[-1] if refused else done.out.rstrip("\n")
        assert re.fullmatch(pattern(lines), said, flags=re.DOTALL), (lines, said)
        # What the last line names, later commands use.
        if not refused:
            for name, found in zip(
                VARIES.findall(lines[-1]), VARIES.findall(said.splitlines()[-1]), strict=True
            ):
                real.setdefault(name, found)


def test_every_key_of_a_policy_is_on_the_page() -> None:
    from dpsynth.wings.governance.policy import Policy

    named = re.findall(r"^\| `(\w+)` \| ", PAGE.split("\n## The policy\n")[1].split("\n## ")[0], re.MULTILINE)
    assert named == list(Policy.model_fields)
