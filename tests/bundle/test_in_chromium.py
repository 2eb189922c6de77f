"""The report in real Chromium: at desktop and phone width nothing is cut off, and everything has its name."""

from pathlib import Path

import pytest

from dpsynth.bundle.report_source import read_source
from tests.chromium import DESKTOP, PHONE, browse, faults, needs_chromium

pytestmark = needs_chromium


def test_reports_are_whole_labelled_and_legible_at_desktop_and_phone_width(
    written, merged, tmp_path: Path
) -> None:
    pages = [(written(of=of) / "report.html").read_text("utf-8") for of in (merged,)]
    pages.append((written() / "report.html").read_text(encoding="utf-8"))
    browser = tmp_path / "browser"
    browser.mkdir()
    assert faults(pages, browser) == []


def test_a_matrix_of_many_columns_scrolls_in_its_frame_and_not_with_the_page(written, tmp_path: Path) -> None:
    page = (written() / "report.html").read_text(encoding="utf-8")
    cells = "<td><span class=unseen>words</span>0</td>" * 40
    wide = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="x"><table><tr>{cells}</tr></table></div>'
    )
    browser = tmp_path / "browser"
    browser.mkdir()
    shown = page.replace("<main>", f"<main>{wide}", 1)
    assert faults([shown], browser, (PHONE,)) == []
    # The planted fault: words for those who don't see hang outside of the frame.
    loose = shown.replace(".scroll { position: relative;", ".scroll {", 1)
    assert loose != shown and "the page is wider than its window" in str(faults([loose], browser, (PHONE,)))


def test_faults_of_every_kind_would_be_seen(written, tmp_path: Path) -> None:
    """The planted faults: a table without a frame, a faint text, a picture and a heading without a name."""
    page = (written() / "report.html").read_text(encoding="utf-8")
    planted = (
        '<main><table style="width:900px"><tr><th>x</th></tr></table><p style="color:#999">faint</p>'
        '<div role="img"></div><h4>too deep</h4><div class="scroll">no key</div>'
    )
    browser = tmp_path / "browser"
    browser.mkdir()
    found = "\n".join(faults([page.replace("<main>", planted, 1)], browser, (PHONE,)))
    for fault in ("wider than its window", "cut off: table", "contrast 2.", "no scope: th", "no name: div"):
        assert fault in found, found
    assert "a level is skipped before h4" in found and "no key reaches div.scroll" in found
    assert str(DESKTOP) not in found


@pytest.mark.slow
def test_a_report_prints_to_pdf(written, tmp_path: Path) -> None:
    folder = written()
    assert read_source(folder).statistics
    browse(tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}", (folder / "report.html").as_uri())
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF") and (
        tmp_path / "r.pdf"
    ).stat().st_size > 20_000
