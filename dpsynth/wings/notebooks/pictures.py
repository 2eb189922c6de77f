"""Pictures of a published bundle: a column, a pair of columns, the verdict on all of them.

They are SVG, which a notebook shows in place and a file keeps. It needs no library to be drawn, is legible at
any size, and is shown by notebooks, browsers and code hosts.

Invariant: a picture shows what a recipient may ask, under the owner's rules for questions, and nothing else.
Every word is text, whatever it holds; a picture runs no script and fetches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from pathlib import Path
from textwrap import wrap

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.bundle.recipient.opened import OpenedBundle, synthetic_codes
from dpsynth.bundle.recipient.query import Question, grouped_counts
from dpsynth.bundle.report_source import Bar, OneWayView, ShownColumn, one_way_view
from dpsynth.bundle.structure_tree import COLOURS, pair_view
from dpsynth.columns.column import Column, codes_of
from dpsynth.columns.layout import companion
from dpsynth.errors import DpsynthError
from dpsynth.figures import count

Numbers = NDArray[np.float64]

_WIDE, _NAMES, _FIGURES = 640, 170, 110
"""Widths of a picture, and of the names and the figures at its sides."""
_HIGH, _LINE = 170, 20
_MOST = 24
"""Largest number of values of a column in the picture of a pair; more of them are put together."""
_FEW = 8
"""Largest number of values across at which cells of a pair have room for figures."""
INK, SOFT, BAR = "#1c2530", "#5c6773", "#8cc2bb"
HEAT = (31, 122, 114)
_COLOURS = {COLOURS["use"]: HEAT, COLOURS["with care"]: (214, 158, 46), COLOURS["don't use"]: (190, 46, 46)}
_LETTER = 0.56
"""Width of a letter, on average, in sizes of its font."""


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture.

    Attributes:
        words: sentences below the title.
        parts: the elements of the drawing, from 0, 0 on.
    """

    title: str
    words: tuple[str, ...]
    width: int
    height: int
    parts: tuple[str, ...]

    @property
    def svg(self) -> str:
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
    """A text, cut where it is longer than its room; the whole of it shows where a mouse rests on it."""
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


def picture_of(bundle: OpenedBundle, columns: Sequence[str]) -> Picture:
    """The picture of a column, of a pair, or of the verdict if no column is named.

    Raises:
        DpsynthError: a column is unknown, or there are too many of them.
    """
    known = bundle.rows.layout.modelled
    for name in columns:
        if name not in known:
            raise DpsynthError(f"'{name}' is no column that the model holds. Those are: {', '.join(known)}.")
    if not columns:
        return _of_verdict(bundle)
    if len(columns) == 1:
        return _of_column(bundle, known[columns[0]])
    if len({*columns}) != 2 or len(columns) != 2:
        raise DpsynthError("Name one column, two different columns, or none for the verdict on all.")
    return _of_pair(bundle, known[columns[0]], known[columns[1]])


# a column


def _of_column(bundle: OpenedBundle, column: Column) -> Picture:
    facts = bundle.shown
    statistic = next(
        (s for s in facts.statistics if s.kind == "one_way" and s.columns == (column.name,)), None
    )
    if statistic is None:
        raise DpsynthError(f"The bundle has no counts of '{column.name}' to be shown.")
    made = _made(bundle, column)
    if made.sum() > 0:
        # As many rows as are estimated, so that both can be compared.
        made *= sum(max(rows, 0.0) for rows in statistic.table["estimate"].to_pylist()) / made.sum()
    view = one_way_view(statistic, ShownColumn.of(facts.manifest.modelled[column.name]), list(made))
    parts, below = _histogram(view) if view.histogram else ([], 0.0)
    for spot, bar in enumerate(view.shown):
        parts += _across(bar, below + spot * _LINE, view.margin)
    left_out = len(view.everything) - len(view.shown) - len(view.histogram)
    words = (
        "Estimated rows of the private table: bars, with 95 % intervals"
        f"{f', each {view.margin}' if view.margin else ''}. Rings: the synthetic table, scaled to as many "
        "rows.",
        *(["Heights are on a logarithmic scale."] if view.logarithmic else []),
        *([f"The most frequent values; {left_out:,} more are not shown."] if left_out > 0 else []),
        *_verdict(bundle, (column.name,)),
    )
    return Picture(column.name, words, _WIDE, round(below + len(view.shown) * _LINE + 10), tuple(parts))


def _made(bundle: OpenedBundle, column: Column) -> Numbers:
    """The rows of the synthetic table with each code."""
    path = bundle.folder / "synthetic.parquet"
    if path.exists():
        wanted = [column.name, *([companion(column.name)] if column.distinct else [])]
        table = pq.read_table(path, columns=wanted).combine_chunks()
        values, *distinct = (table[name].combine_chunks() for name in wanted)
        codes = codes_of(column, column.text(values, *distinct))
    else:
        codes = synthetic_codes(bundle)[column.name]
    return np.bincount(codes, minlength=column.size).astype(np.float64)


def _histogram(view: OneWayView) -> tuple[list[str], float]:
    """Upright bars, and the height that they take."""
    left, wide = 12.0, _WIDE - 24.0
    step = wide / len(view.histogram)
    parts = []
    for spot, bar in enumerate(view.histogram):
        x, middle = left + spot * step, left + (spot + 0.5) * step
        length, low, high = (_HIGH * part / 100 for part in (bar.length, bar.low, bar.high))
        said = f"{bar.label}: {bar.figure} {bar.margin or view.margin}"
        parts.append(box(x, _HIGH - length, max(step - 1, 0.5), length, BAR, said))
        parts.append(line(middle, _HIGH - high, middle, _HIGH - low))
        if bar.made is not None:
            parts.append(ring(middle, _HIGH - _HIGH * bar.made / 100))
    parts.append(line(left, _HIGH, left + wide, _HIGH, SOFT))
    for place, words in view.ticks:
        anchor = "start" if place < 10 else "end" if place > 90 else "middle"
        parts.append(label(left + wide * place / 100, _HIGH + 16, words, anchor=anchor, size=11, fill=SOFT))
    return parts, _HIGH + 30.0


def _across(bar: Bar, top: float, margin: str) -> list[str]:
    wide, middle = _WIDE - _NAMES - _FIGURES - 24, top + _LINE / 2
    length, low, high = (wide * part / 100 for part in (bar.length, bar.low, bar.high))
    figure = bar.figure if margin else f"{bar.figure} {bar.margin}"
    return [
        label(_NAMES, middle + 4, bar.label, anchor="end", room=_NAMES - 12),
        box(_NAMES + 8, top + 2, length, _LINE - 4, BAR, f"{bar.label}: {bar.figure} {bar.margin or margin}"),
        line(_NAMES + 8 + low, middle, _NAMES + 8 + high, middle),
        *([] if bar.made is None else [ring(_NAMES + 8 + wide * bar.made / 100, middle)]),
        label(_WIDE - 12, middle + 4, figure, anchor="end"),
    ]


# a pair


def _of_pair(bundle: OpenedBundle, down: Column, across: Column) -> Picture:
    pair = (down.name, across.name)
    counted = grouped_counts(bundle, Question("count", "count", by=pair)).counted
    cells, rows = _together(np.asarray(counted.cells, np.float64), down)
    cells, heads = _together(cells.T, across)
    cells = cells.T
    least = bundle.facts.minimum_set_size
    withheld = np.zeros(cells.shape, np.bool_) if least is None else cells < least
    most = max(float(cells[~withheld].max(initial=0.0)), 1.0)
    wide = (_WIDE - _NAMES - 20) / len(heads)
    parts = []
    for y, name in enumerate(rows):
        parts.append(label(_NAMES, y * _LINE + 14, name, anchor="end", room=_NAMES - 12))
        for x, head in enumerate(heads):
            if withheld[y, x]:
                continue
            figure, depth = count(float(cells[y, x])), sqrt(max(float(cells[y, x]), 0.0) / most)
            place = _NAMES + 8 + x * wide
            parts.append(
                box(place, y * _LINE, wide - 1, _LINE - 1, shade(depth), f"{name} · {head}: {figure}")
            )
            if len(heads) <= _FEW:
                ink = "#ffffff" if depth > 0.6 else INK
                parts.append(
                    label(place + wide / 2, y * _LINE + 14, figure, anchor="middle", size=11, fill=ink)
                )
    bottom = len(rows) * _LINE
    turned = len(heads) > _FEW
    for x, head in enumerate(heads):
        place = _NAMES + 8 + (x + 0.5) * wide
        if turned:
            name = label(place + 4, bottom + 6, head, anchor="end", size=11, room=90)
            parts.append(upwards(place + 4, bottom + 6, name))
        else:
            parts.append(label(place, bottom + 14, head, anchor="middle", size=11, room=wide))
    said = (
        f"Estimated rows: the deeper the colour, the more, up to {count(most)} in a cell. {down.name} runs "
        f"down, {across.name} across. Basis: {counted.basis}.",
        *([f"Cells of fewer than {least:,} rows, by estimate, are withheld."] if withheld.any() else []),
        *_verdict(bundle, pair),
    )
    return Picture(" and ".join(pair), said, _WIDE, bottom + (104 if turned else 26), tuple(parts))


def _together(cells: Numbers, column: Column) -> tuple[Numbers, list[str]]:
    """The lines of a table, of which there are at most ``_MOST`` for values, and their names.

    Neighbours are put together where the order means something, otherwise the least frequent.
    """
    labels, values = list(column.labels), len(column.codec.labels)
    if values <= _MOST:
        return cells, labels
    if column.codec.ordered:
        groups = [part.tolist() for part in np.array_split(np.arange(values), _MOST)]
        names = [labels[g[0]] if len(g) == 1 else f"{labels[g[0]]} … {labels[g[-1]]}" for g in groups]
    else:
        order = np.argsort(-cells[:values].sum(axis=1), kind="stable").tolist()
        groups = [[code] for code in sorted(order[: _MOST - 1])] + [sorted(order[_MOST - 1 :])]
        names = [labels[group[0]] for group in groups[:-1]] + [f"{len(groups[-1]):,} others"]
    groups += [[code] for code in range(values, len(labels))]
    return np.stack([cells[group].sum(axis=0) for group in groups]), [*names, *labels[values:]]


# the verdict


def _verdict(bundle: OpenedBundle, columns: Sequence[str]) -> list[str]:
    said = bundle.verdict.on(columns)
    return [f"Verdict: {said}"] if said else []


def _of_verdict(bundle: OpenedBundle) -> Picture:
    facts, verdict = bundle.shown, bundle.verdict
    names = list(facts.manifest.modelled)
    view = pair_view(names, facts.manifest.relations, facts.errors, verdict)
    if view.matrix is None:
        raise DpsynthError(
            f"The {len(names):,} columns are too many for a picture of all pairs: verdict.frame lists them."
        )
    own = {one.columns[0]: one for one in verdict.columns}
    size = min(28.0, (_WIDE - _NAMES - 28) / len(names))
    parts, letters = [], 12 if size >= 15 else 8
    for y, (name, cells) in enumerate(view.matrix.lines):
        top = y * size
        parts.append(label(_NAMES, top + size / 2 + 4, name, anchor="end", room=_NAMES - 12, size=letters))
        for x, cell in enumerate(cells):
            fill = shade(0.1 + 0.6 * cell.shade, _COLOURS.get(cell.colour, HEAT))
            words = "" if view.matrix.folded else cell.words
            parts += _cell(x * size, top, size, fill, words, cell.figure or cell.mark)
        if name in own:
            colour = _COLOURS[COLOURS[own[name].verdict]]
            why = f"{name}: {own[name].verdict}. {own[name].why}"
            parts += _cell(y * size, top, size, shade(0.85, colour), why, "")
    height = len(names) * size + 12
    for spot, (use, kind, number) in enumerate(view.verdicts):
        parts.append(box(_WIDE - 200, spot * _LINE, 12, 12, shade(0.6, _COLOURS[kind])))
        parts.append(label(_WIDE - 182, spot * _LINE + 11, f"{use}: {number:,} pairs"))
    said = (
        "Columns on the diagonal, and all pairs below it: the colour is the verdict, the figure the measured "
        "error, in per cent of the rows.",
        *verdict.lines[:1],
    )
    return Picture("Verdict", said, _WIDE, round(max(height, 3 * _LINE)), tuple(parts))


def _cell(x: float, y: float, size: float, fill: str, words: str, mark: str) -> list[str]:
    parts = [box(_NAMES + 8 + x, y, size - 1, size - 1, fill, words)]
    if mark and size >= _LINE:
        parts.append(label(_NAMES + 8 + x + size / 2, y + size / 2 + 4, mark, anchor="middle", size=11))
    return parts
