"""Pictures in SVG, which a notebook shows in place and a file keeps.

SVG needs no library to be drawn, is legible at any size, and is shown by notebooks, browsers and code hosts.

Invariant: every word is text, whatever it holds; a picture runs no script and fetches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

INK, SOFT, BAR = "#1c2530", "#5c6773", "#8cc2bb"
HEAT = (31, 122, 114)
_LETTER = 0.56
"""Width of a letter, on average, in sizes of its font."""


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture.

    Attributes:
        title: its title, which it shows.
        words: sentences below the title.
        width: width of the drawing, in pixels.
        height: height of the drawing, in pixels.
        parts: the elements of the drawing, from 0, 0 on.
    """

    title: str
    words: tuple[str, ...]
    width: int
    height: int
    parts: tuple[str, ...]

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        lines = [line for words in self.words for line in wrap(words, int(self.width / (12 * _LETTER)))]
        top = 34 + 16 * len(lines)
        head = [label(12, 22, self.title, size=15)]
        head += [label(12, 41 + 16 * spot, line, fill=SOFT) for spot, line in enumerate(lines)]
        wide, high = self.width, top + self.height
        size = f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(self.title)}" '
            f'font-family="system-ui, sans-serif">{box(0, 0, wide, high, "#ffffff")}'
            f'{"".join(head)}<g transform="translate(0 {top})">{"".join(self.parts)}</g></svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        """The title and the words."""
        return "\n".join([self.title, *self.words])

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file, such as ``age.svg``.

        Returns:
            Its path.
        """
        Path(path).write_text(self.svg, encoding="utf-8")
        return Path(path)


def box(x: float, y: float, width: float, height: float, fill: str, words: str = "") -> str:
    """A filled rectangle; its words show where a mouse rests on it."""
    inside = f"><title>{escape(words)}</title></rect>" if words else "/>"
    return f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" fill="{fill}"{inside}'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = INK) -> str:
    """A thin line."""
    return f'<path d="M{x1:.4g} {y1:.4g}L{x2:.4g} {y2:.4g}" stroke="{colour}"/>'


def ring(x: float, y: float) -> str:
    """A small ring."""
    return f'<circle cx="{x:.4g}" cy="{y:.4g}" r="3" fill="none" stroke="#b4432f" stroke-width="1.5"/>'


def label(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: int = 12,
    fill: str = INK,
    room: float = 0.0,
) -> str:
    """A text, cut where it is longer than its room; the whole of it shows where a mouse rests on it.

    Args:
        x: place of its anchor.
        y: place of its base line.
        words: the text.
        anchor: "start", "middle" or "end".
        size: size of its letters.
        fill: its colour.
        room: its room, in pixels; 0 for any.
    """
    most = int(room / (size * _LETTER)) if room else len(words)
    shown = words if len(words) <= most else f"{words[: max(most - 1, 1)]}…"
    whole = "" if shown == words else f"<title>{escape(words)}</title>"
    return (
        f'<text x="{x:.4g}" y="{y:.4g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">'
        f"{whole}{escape(shown)}</text>"
    )


def upwards(x: float, y: float, part: str) -> str:
    """An element that is turned around a point, so that its words run upwards."""
    return f'<g transform="rotate(-90 {x:.4g} {y:.4g})">{part}</g>'


def shade(depth: float, colour: tuple[int, int, int] = HEAT) -> str:
    """A colour on white, as deep as 0 to 1."""
    part = min(max(depth, 0.0), 1.0)
    return "#" + "".join(f"{round(255 + (c - 255) * part):02x}" for c in colour)
