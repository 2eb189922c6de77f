"""Findings about one column: cells that are not read, clipped or missing, and what to write about them.

Invariant: a finding follows from the exact tally of the column, so it is private.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from dpsynth.columns.codec import Reading
from dpsynth.columns.column import Column
from dpsynth.columns.search import NumberSearch
from dpsynth.wings.owner.assess.findings import Finding, commonest, examples, keys, quoted
from dpsynth.wings.owner.assess.repairs import Explained, explained, shape
from dpsynth.wings.owner.assess.tallies import ColumnTally

FEWEST_ROWS = 10
"""Fewest cells of a value that is proposed for the config."""

_MOST_LISTED = 40
_SHAPES = 3
_MANY_OTHERS = 0.2
_CROWDED = 0.9
_FEW = 0.01
_FEWEST_PLACES, _FEWEST_VALUES = 4, 50
_SENTINEL = re.compile(r"-?9{2,}(\.0+)?|-[1-9](\.0+)?|(9999-12-31|1[0-9]00-01-01)([T ].*)?")


def column_findings(tally: ColumnTally) -> list[Finding]:
    """The findings about a column."""
    if not tally.cells:
        return []
    return [*_missing(tally), *_unread(tally), *_clipped(tally), *_crowded(tally)]


def _taken_as(column: Column) -> str:
    return "as missing" if column.missing else f"as {quoted(column.labels[column.unusable])}"


def _missing(tally: ColumnTally) -> Iterator[Finding]:
    column, name = tally.column, tally.column.name
    if tally.missing == tally.cells:
        yield Finding(name, tally.missing, "no row has a value", "leave the column out, or see to the table")
    elif tally.missing and not column.missing:
        yield Finding(
            name,
            tally.missing,
            f"{_cells(tally.missing)} without a value, counted {_taken_as(column)} by missing: false",
            "let missing be a value of its own",
            "missing: true",
        )


def _unread(tally: ColumnTally) -> Iterator[Finding]:
    column, codec = tally.column, tally.codec
    meant: dict[str, str] = {}
    left: dict[str, int] = {}
    spelt: list[tuple[Explained, str]] = []
    for reading, counted in (
        (Reading.NONE, _taken_as(column)),
        (Reading.OTHER, "among all other values"),
    ):
        misread = tally.misread.get(reading)
        if misread is None:
            continue
        found, rest = explained(codec, misread.texts)
        for one in found:
            meant |= one.values
            if not one.values:
                yield _of(tally, one, counted)
                continue
            spelt.append((one, counted))
        if not codec.closed and rest:
            yield _no_value(tally, rest, counted)
        elif reading is Reading.NONE or sum(rest.values()) >= _MANY_OTHERS * tally.cells:
            left |= rest
    for one, counted in spelt:
        write = "" if left else keys({"values": _declared(tally, meant)})
        yield replace(_of(tally, one, counted), write=write)
    if left:
        yield from _undeclared(tally, left, meant)


def _of(tally: ColumnTally, one: Explained, counted: str) -> Finding:
    cells = sum(one.texts.values())
    return Finding(
        tally.column.name,
        cells,
        f"{_cells(cells)} with {one.what}, counted {counted}: {examples(one.texts)}",
        one.remedy,
        keys({**one.write, **_markers(tally, one.write)}) if one.write else "",
    )


def _markers(tally: ColumnTally, write: Mapping[str, object]) -> dict[str, object]:
    """The markers of missing cells that are declared, with those to write."""
    declared, new = tally.column.markers, write.get("missing")
    if new is None or not (declared or tally.column.distinct):
        return {}
    markers = [*declared, *(new if isinstance(new, list) else [new])]
    if tally.column.distinct:
        return {"missing": {"distinct": list(tally.column.distinct), "markers": markers}}
    return {"missing": markers}


def _undeclared(tally: ColumnTally, left: Mapping[str, int], meant: Mapping[str, str]) -> Iterator[Finding]:
    """Values that are not declared, and the list of values as the table spells them."""
    name, cells = tally.column.name, sum(left.values())
    what = f"{_cells(cells)} with a value that is not declared: {examples(left)}"
    common = [text for text in commonest(left) if left[text] >= FEWEST_ROWS and text.isprintable()]
    if len(common) > _MOST_LISTED:
        remedy = "let a release find the values that many rows have"
        yield Finding(name, cells, what, remedy, "open: true", tuned=True)
        return
    values = [*_declared(tally, meant), *common]
    no_other = Reading.OTHER in tally.misread or tally.codec.kind.word == "truth" or tally.codec.ordered
    if values == [label for label in tally.codec.labels if label != tally.codec.schema.get("other")]:
        alone = f"leave it so: none of them is in {FEWEST_ROWS} rows"
        remedy = alone if no_other else "let all other values count together"
        yield Finding(name, cells, what, remedy, "" if no_other else "other: other")
        return
    remedy = "list the values as the table spells them"
    if tally.codec.kind.word == "truth":
        if len(values) != 2:
            write = keys({"type": "category", "values": values})
            yield Finding(name, cells, what, "declare it as a category", write, tuned=True)
            return
        remedy += ", that for false first"
    write = keys({"values": values}) if values else ""
    if len(left) > len(common) and not no_other:
        remedy += ", and let all others count together"
        write += ", other: other" if write else ""
    yield Finding(name, cells, what, remedy if values else "see to the table", write, tuned=True)


def _declared(tally: ColumnTally, meant: Mapping[str, str]) -> list[str]:
    """The declared values, each as the table spells it; none that stands in no cell if none does."""
    labels = [label for label in tally.codec.labels if label != tally.codec.schema.get("other")]
    rows = dict(zip(tally.codec.labels, tally.places.tolist(), strict=False))
    spelt: dict[str, str] = {}
    for text in commonest({text: _rows_of(tally, text) for text in meant}):
        spelt.setdefault(meant[text], text)
    occurs = any(rows.get(label) for label in labels)
    return [
        spelt[label] if label in spelt and not rows.get(label) else label
        for label in labels
        if occurs or label in spelt
    ]


def _rows_of(tally: ColumnTally, text: str) -> int:
    return sum(misread.texts.get(text, 0) for misread in tally.misread.values())


def _no_value(tally: ColumnTally, texts: Mapping[str, int], counted: str) -> Finding:
    """Texts that no repair explains, by their shapes."""
    shapes = Counter[str]()
    for text, cells in texts.items():
        shapes[shape(text)] += cells
    common = [
        f"{quoted(next(t for t in commonest(texts) if shape(t) == found))} ({cells:,} like it)"
        for found, cells in shapes.most_common(_SHAPES)
    ]
    more = ", ..." if len(shapes) > _SHAPES else ""
    cells = sum(texts.values())
    remedy = "see if they are a kind of missing cell, and name them with missing: [...]; or see to the table"
    if cells > tally.cells / 2:
        remedy = "see if the column is of another type"
    return Finding(
        tally.column.name,
        cells,
        f"{_cells(cells)} with no {_kind(tally)}, counted {counted}: {', '.join(common)}{more}",
        remedy,
    )


def _kind(tally: ColumnTally) -> str:
    word = tally.codec.kind.word
    return "text of its pattern" if word == "text" else word


def _clipped(tally: ColumnTally) -> Iterator[Finding]:
    name = tally.column.name
    for reading, key, side in ((Reading.BELOW, "min", "below"), (Reading.ABOVE, "max", "above")):
        misread = tally.misread.get(reading)
        if misread is None:
            continue
        first = commonest(misread.texts)[0]
        marks = misread.texts[first] >= max(FEWEST_ROWS, misread.cells / 2) and _SENTINEL.fullmatch(first)
        what = f"{_cells(misread.cells)} {side} {key}, counted as {key}: {examples(misread.texts)}"
        if marks:
            remedy = f"see if {quoted(first)} means that nothing is known; then say so"
            write = {"missing": first}
            yield Finding(name, misread.cells, what, remedy, keys(write | _markers(tally, write)))
            continue
        if misread.cells <= _FEW * tally.cells:
            yield Finding(name, misread.cells, what, "leave it so: these are few")
            continue
        search = tally.column.search
        if isinstance(search, NumberSearch) and search.low is None:
            yield Finding(
                name, misread.cells, what, "see to the table: no number of this size is searched for"
            )
            continue
        can_search = tally.codec.continuous
        remedy = f"give a {key} that anyone knows without the table" + (
            ", or let a release find the ends, in place of min, max and edges of bins" if can_search else ""
        )
        yield Finding(name, misread.cells, what, remedy, "bounds: private" if can_search else "", tuned=True)


def _crowded(tally: ColumnTally) -> Iterator[Finding]:
    """Bins of which one holds nearly all cells, and more than one value."""
    widths, places = tally.codec.half_widths, tally.places
    if widths is None or len(widths) < _FEWEST_PLACES or tally.column.search is not None:
        return
    here = places[: len(widths)]
    fullest = int(np.argmax(here))
    if tally.values < max(_FEWEST_VALUES, (tally.cells - tally.missing) / 2):
        # Few cells, or most cells are not read as they stand: where they lie says little.
        return
    if widths[fullest] and here[fullest] >= _CROWDED * max(1, here.sum()):
        label = tally.codec.labels[fullest]
        most = "all" if here[fullest] == here.sum() else f"{min(here[fullest] / here.sum(), 0.999):.1%}"
        yield Finding(
            tally.column.name,
            int(here[fullest]),
            f"{most} of the values are in one bin, {label}",
            "declare narrower bins there, or let a release find them",
            "edges: tree" if tally.codec.continuous else "",
        )


def _cells(count: int) -> str:
    return f"{count:,} cell{'s' * (count != 1)}"
