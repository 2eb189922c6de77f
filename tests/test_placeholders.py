"""No word that holds the place of a figure or a sentence is left in what people read."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "dpsynth/**/templates/*")
    for path in ROOT.glob(pattern)
    if path.is_file()
)
PLACEHOLDER = re.compile(r"\b(?:BENCH|TODO|TBD|TBC|XXX+|FIXME|[Ll]orem ipsum)\b|\?\?\?")


def test_all_pages_are_looked_at() -> None:
    names = {str(path.relative_to(ROOT)) for path in PAGES}
    assert {"README.md", "SECURITY.md", "CHANGELOG.md", "docs/public.md"} <= names
    assert {f"dpsynth/bundle/templates/{name}" for name in ("README.md.j2", "report.html.j2")} <= names


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_placeholder_is_left(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if PLACEHOLDER.search(line)] == []


@pytest.mark.parametrize(
    "line", ["BENCH", "(TODO: figures)", "about ??? rows", "XXXX seconds", "Lorem ipsum"]
)
def test_a_placeholder_would_be_seen(line: str) -> None:
    assert PLACEHOLDER.search(line)
