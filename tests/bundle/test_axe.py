"""Pages by the rules of axe-core, in real Chromium at desktop and phone width: nothing serious is found.

axe-core is no part of this project. ``npm pack axe-core`` fetches it; the test runs where the environment
variable DPSYNTH_AXE names its file ``axe.min.js``.
"""

import html
import json
import os
import re
from pathlib import Path

import pytest

from tests.chromium import PHONE, browse, needs_chromium

AXE = os.environ.get("DPSYNTH_AXE")
needs_axe = pytest.mark.skipif(AXE is None, reason="DPSYNTH_AXE doesn't name axe.min.js")
pytestmark = [pytest.mark.slow, needs_chromium, needs_axe]

SERIOUS = ("serious", "critical")
WIDE = 1280
_ASK = """axe.run(document, {resultTypes: ['violations']})
  .then(found => parent.postMessage(JSON.stringify(found.violations.map(v => [v.impact, v.id])), '*'))"""
_HEAR = """addEventListener('message', said => {
  const out = document.createElement('pre');
  out.textContent = said.data;
  document.body.replaceChildren(out);
})"""


def violations(page: str, folder: Path, width: int) -> list[list[str]]:
    """Impact and rule of each violation of a page, in a frame of some width."""
    assert AXE is not None
    # A page of ours forbids all scripts; here it has to run one.
    open_to_scripts = re.sub(r"<meta[^>]*Content-Security-Policy[^>]*>", "", page)
    scripts = f"<script>{Path(AXE).read_text('utf-8')}</script><script>{_ASK}</script></body>"
    asked = html.escape(open_to_scripts.replace("</body>", scripts))
    frame = f'<iframe title="page" style="border:0;width:{width}px;height:3000px" srcdoc="{asked}"></iframe>'
    shown = folder / "shown.html"
    shown.write_text(
        f"<!doctype html><meta charset=utf-8><body><script>{_HEAR}</script>{frame}", encoding="utf-8"
    )
    said = browse(
        folder, "--virtual-time-budget=60000", "--window-size=1400,3000", "--dump-dom", shown.as_uri()
    )
    (found,) = re.findall(r"<pre>(.*?)</pre>", said, re.DOTALL)
    answer: list[list[str]] = json.loads(html.unescape(found))
    return answer


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_axe_finds_nothing_serious_in_a_report(written, merged, tmp_path: Path, width: int) -> None:
    page = (written(of=merged) / "report.html").read_text(encoding="utf-8")
    assert [v for v in violations(page, tmp_path, width) if v[0] in SERIOUS] == []


def test_axe_would_find_a_picture_without_a_name_and_a_faint_text(written, tmp_path: Path) -> None:
    page = (written() / "report.html").read_text(encoding="utf-8")
    planted = '<main><div role="img"></div><p style="color:#999;background:#fff">faint</p>'
    found = violations(page.replace("<main>", planted, 1), tmp_path, WIDE)
    assert {"role-img-alt", "color-contrast"} <= {rule for impact, rule in found if impact in SERIOUS}
