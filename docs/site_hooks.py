"""Hooks of the site: the pages that stand outside of docs/, and the notebook as a page.

Pages link to each other as files of the repository do, so that links work there too: README.md to
docs/privacy.md, and docs/privacy.md to ../SECURITY.md. In the site they lie in one folder.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

TOP = Path(__file__).parents[1]
BESIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
NOTEBOOKS = TOP / "docs" / "notebooks"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the top folder, and each notebook as a page."""
    for name in BESIDE:
        files.append(File.generated(config, name, content=(TOP / name).read_text(encoding="utf-8")))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        files.append(File.generated(config, f"{path.stem}.md", content=page_of(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page with links as they are in the site."""
    del config, files
    away = "docs" if page.file.src_uri in BESIDE else r"\.\."
    flat = re.sub(rf"\]\({away}/", "](", markdown)
    if page.file.src_uri == "auditing.md":
        # Each proof is one click away; a name that the API reference lacks is a warning.
        flat = re.sub(r"`(dpsynth(?:\.\w+)+)`(?=[^|\n]*\|)", r"[`\1`][\1]", flat)
    return re.sub(r"\]\((?:notebooks/)?([\w-]+)\.ipynb\)", r"](\1.md)", flat)


def page_of(notebook: Path) -> str:
    """A notebook as Markdown: its texts, its code, and what the code printed or showed."""
    parts = []
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            shown = output.get("data", {})
            if picture := shown.get("image/svg+xml") or shown.get("text/html"):
                parts.append(f"<div>{picture}</div>")
            elif text := output.get("text") or shown.get("text/plain"):
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
