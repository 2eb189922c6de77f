"""A self-contained page of HTML, shown in place by a notebook.

Invariant: the page is shown in a frame of its own that runs no script and reaches nothing around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path


@dataclass(frozen=True, repr=False)
class InlinePage:
    """A page that a notebook shows.

    Attributes:
        path: the file of the page.
        height: height of its frame, in pixels.
    """

    path: Path
    height: int = 700

    def __repr__(self) -> str:
        """The path."""
        return str(self.path)

    def _repr_html_(self) -> str:
        """A frame that holds the whole page."""
        page = escape(self.path.read_text(encoding="utf-8"))
        return (
            f'<iframe srcdoc="{page}" sandbox style="width:100%;border:0" height="{self.height}" '
            f'title="{escape(self.path.name)}"></iframe>'
        )
