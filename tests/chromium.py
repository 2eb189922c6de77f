"""Pages in real Chromium: what of a page is cut off, unlabelled or too faint, at some widths of its window.

A page runs no script of its own. It is shown in a frame of a page of ours, whose script looks at it.
"""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")

DESKTOP, PHONE = 1200, 390

LOOK = r"""
function faults(frame) {
  const page = frame.contentDocument, view = frame.contentWindow, found = [];
  const named = e => e.tagName.toLowerCase() + (e.className ? '.' + e.className : '') + ': '
    + (e.textContent || '').trim().slice(0, 40);
  const say = (what, e) => found.push(what + ' ' + named(e));
  const unseen = e => e.closest('.unseen, [aria-hidden=true]') !== null;
  for (const details of page.querySelectorAll('details')) details.open = true;
  const wide = page.documentElement.scrollWidth;
  if (wide > frame.clientWidth + 1) found.push('the page is wider than its window');
  for (const e of page.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (e.closest('.scroll, .unseen, .stack thead') || !box.width) continue;
    if (box.right > frame.clientWidth + 1 || box.left < -1) say('cut off:', e);
  }
  for (const e of page.querySelectorAll('.scroll')) {
    if (e.tabIndex !== 0 || !e.getAttribute('aria-label')) say('no key reaches', e);
  }
  for (const e of page.querySelectorAll('table')) {
    for (const th of e.querySelectorAll('th')) if (!th.getAttribute('scope')) say('no scope:', th);
    for (const th of e.querySelectorAll('th')) if (!th.textContent.trim()) say('an empty heading', th);
  }
  for (const e of page.querySelectorAll('[role=img], nav, section')) {
    const title = e.getAttribute('aria-label') || e.getAttribute('aria-labelledby');
    if (!title) say('no name:', e);
  }
  for (const e of page.querySelectorAll('[aria-labelledby]')) {
    if (!page.getElementById(e.getAttribute('aria-labelledby'))) say('named by nothing:', e);
  }
  for (const mark of ['main', 'header', 'h1', 'title']) {
    if (page.querySelectorAll(mark).length !== 1) found.push('not one ' + mark);
  }
  if (!page.documentElement.lang) found.push('no language');
  let level = 1;
  for (const e of page.querySelectorAll('h1, h2, h3, h4')) {
    const now = Number(e.tagName[1]);
    if (now > level + 1) say('a level is skipped before', e);
    level = now;
  }
  const ids = [...page.querySelectorAll('[id]')].map(e => e.id);
  if (new Set(ids).size < ids.length) found.push('an id twice');
  const channels = colour => colour.match(/[\d.]+/g).map(Number);
  const light = rgb => rgb.slice(0, 3).map(c => c / 255)
    .map(c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const behind = e => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      layers.push(channels(view.getComputedStyle(at).backgroundColor));
    }
    let base = [255, 255, 255];
    for (const [r, g, b, a = 1] of layers.reverse()) {
      base = [r, g, b].map((c, i) => c * a + base[i] * (1 - a));
    }
    return base;
  };
  const texts = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || unseen(e) || seen.has(e)) continue;
    seen.add(e);
    const ink = light(channels(view.getComputedStyle(e).color)), paper = light(behind(e));
    const contrast = (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
    if (contrast < 4.5) say('contrast ' + contrast.toFixed(1) + ':', e);
  }
  return [...new Set(found)];
}
addEventListener('load', () => {
  const all = [...document.querySelectorAll('iframe')].map(faults);
  document.body.innerHTML = '';
  const out = document.createElement('pre');
  out.textContent = JSON.stringify(all);
  document.body.append(out);
});
"""


def faults(pages: Sequence[str], folder: Path, widths: Sequence[int] = (DESKTOP, PHONE)) -> list[str]:
    """Faults of some pages at some widths, in the light scheme and at rest.

    Args:
        pages: their HTML.
        folder: an empty folder for the browser's files.
        widths: of the window, in pixels.
    """
    frames = [
        f'<iframe style="border:0;width:{width}px;height:800px" srcdoc="{html.escape(page)}"></iframe>'
        for page in pages
        for width in widths
    ]
    shown = folder / "shown.html"
    shown.write_text(
        f"<!doctype html><meta charset=utf-8><body>{''.join(frames)}<script>{LOOK}</script>", encoding="utf-8"
    )
    said = browse(folder, "--dump-dom", shown.as_uri())
    (found,) = re.findall(r"<pre>(.*?)</pre>", said, re.DOTALL)
    asked = [(number, width) for number in range(len(pages)) for width in widths]
    results = json.loads(html.unescape(found))
    assert len(results) == len(asked)
    return [
        f"page {number} at {width}: {fault}"
        for (number, width), of_page in zip(asked, results, strict=True)
        for fault in of_page
    ]


def browse(folder: Path, *arguments: str) -> str:
    """The standard output of Chromium without a window."""
    assert BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    ended = subprocess.run(
        [BROWSER, *options, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    return ended.stdout
