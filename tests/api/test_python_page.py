"""The code of the page on Python runs as it stands there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the pages are those of a checkout")


def test_the_code_of_the_page_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(names["rows"]) == len(names["adults"]) == 1_000 and names["adults"].age.min() >= 18
    assert len(list(tmp_path.glob("outputs/visits/*/public"))) == 3
