"""The story of the page on approval, as its commands and outputs are, on the table of the RAND experiment."""

import re
import shlex
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from dpsynth.wings.governance import sealing
from dpsynth.wings.governance.signed import KEY
from tests.cli.here import Command

PAGE = (Path(__file__).parents[3] / "docs" / "governance.md").read_text(encoding="utf-8")
STORY = PAGE.split("\n## The whole story\n")[1].split("\n## ")[0]
NAMES = re.compile(r"(?:request-)?\b\d{8}-[0-9a-f]{8}\b|ed25519:[0-9a-f]+…?|\b[0-9a-f]{64}\b")
"""Names of requests and releases, keys and hashes, which are others in each run."""
WORDS = "(?:holds|does not hold|can't be told)"
VARIES = {
    NAMES: r"\S+?",
    re.compile(r"(?<=clock it is )\S+ \S+ UTC"): r"\S+ \S+ UTC",
    re.compile(r"\b\d{4}-\d\d-\d\d\b(?! \d\d:\d\d UTC)"): r"\d{4}-\d\d-\d\d",
    re.compile(r"/[\w/-]+/randhie\.csv"): r"\S+/randhie\.csv",
    re.compile(r"(?m)^\d +\S+ +\S+ +\S+ +\S+  model$"): r"\d( +[\d.,]+){4}  model",
    re.compile(rf"\S+ {WORDS} \(\S+ to \S+\)"): rf"\S+ {WORDS} \(\S+ to \S+\)",
    re.compile(r"2 holds\."): rf"\d {WORDS}[^.]*\.",
}
"""What is another in each run, or follows from noise, with what it has to look like."""


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
    whole, kinds = "\n".join(lines).replace('--purpose "..." --key', "\1"), list(VARIES.values())
    for number, kind in enumerate(VARIES):
        whole = kind.sub(f"\2{number}\3", whole)
    pieces = ".*".join(re.escape(piece) for piece in whole.split("..."))
    known = re.sub("\2(\\d)\3", lambda found: kinds[int(found[1])], pieces)
    return known.replace("\1", re.escape('--purpose "..." --key'))


def code_of(program: str, lines: list[str]) -> int:
    """The exit code that an output tells of."""
    if lines[0].startswith("Error: "):
        return 3 if " refuses release " in lines[0] else 1
    return 1 if program == "verify" and lines[0].startswith("WITHDRAWN") else 0


@pytest.mark.usefixtures("seeded_noise")
def test_the_story_of_the_page_is_so(dpsynth: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("statsmodels")
    monkeypatch.delenv(KEY, raising=False)
    policy, more = re.findall(r"```yaml\n(.*?)```", STORY, flags=re.DOTALL)
    (instant,) = re.findall(r"^embargo: (\S+)$", more, flags=re.MULTILINE)
    until = datetime.fromisoformat(instant)
    monkeypatch.setattr(sealing, "_now", lambda: until - timedelta(days=4))
    real: dict[str, str] = {}
    told = commands()
    assert len(told) == 30
    for written, lines in told:
        command = written
        for name, own in real.items():
            command, policy = command.replace(name, own), policy.replace(name, own)
        program, *words = shlex.split(command)
        if program == "export":
            monkeypatch.setenv(*words[0].split("="))
            continue
        assert program == "dpsynth"
        if "--set" in words:
            Path("policy.yaml").write_text(policy)
            with Path("configs/randhie.yaml").open("a") as config:
                config.write(f"\n{more}")
        if lines[0] == "Published.":
            monkeypatch.setattr(sealing, "_now", lambda: until)
        done = dpsynth(*words)
        assert done.code == code_of(words[0], lines), (written, done)
        said = (done.err + done.out).rstrip("\n")
        said = said.splitlines()[-1] if done.code and done.err else said
        assert re.fullmatch(pattern(lines), said, flags=re.DOTALL), (written, lines, said)
        # What the last line names, later commands use.
        if not lines[0].startswith("Error: "):
            names, own = NAMES.findall(lines[-1]), NAMES.findall(said.splitlines()[-1])
            if len(names) == len(own):
                real.update((name, one) for name, one in zip(names, own, strict=True) if name not in real)
    page = Path("release.html").read_text(encoding="utf-8")
    assert "Teaching material" in Path("request.html").read_text(encoding="utf-8") and "criteria" in page


def test_every_key_of_a_policy_is_on_the_page() -> None:
    from dpsynth.wings.governance.policy import Policy

    named = re.findall(r"^\| `(\w+)` \| ", PAGE.split("\n## The policy\n")[1].split("\n## ")[0], re.MULTILINE)
    assert named == list(Policy.model_fields)
