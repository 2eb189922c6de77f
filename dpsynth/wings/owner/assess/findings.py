"""Findings about the private table, each with its remedy: about the file, about who repeats, about a column.

What keeps a file from being read at all, such as another separator, is the reader's own error. Findings about
who repeats matter where rows are the unit: a release then protects each row of a person, and the person less,
and a published column of names or numbers of persons gives them away. So all columns are looked at, declared
or not.

Invariant: a finding follows from exact counts, may quote cells, and is private: it is printed, and kept
nowhere. Rows are counted by the one reader of the curator; a file is read again only for the places of what
it has counted.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa
import yaml

from dpsynth.columns.codec import Reading
from dpsynth.columns.column import Column, NumberSearch
from dpsynth.config.files.form import WIDE, FileForm
from dpsynth.config.files.opening import opened
from dpsynth.config.files.place import Place
from dpsynth.curator.rows.csv_lines import BrokenRows
from dpsynth.model.rare_values import unlike
from dpsynth.wings.owner.assess.column_guesses import ColumnTexts
from dpsynth.wings.owner.assess.identifier_forms import FREE_TEXT, NAMES, Form
from dpsynth.wings.owner.assess.repairs import Explained, explained, shape
from dpsynth.wings.owner.assess.row_sample import MOST_TEXTS, ColumnTally
from dpsynth.wings.owner.assess.unit_guesses import NUMBERS, Repeating

_SHOWN = 3

_LONGEST = 40

_WIDEST = 10_000

TUNED = (
    "Bounds and values that were chosen by what this shows are not private: the largest amount or a rare "
    "value may be that of one person. Take them from a codebook, the law or common sense, or let a release "
    "find them: bounds: private, open: true."
)
"""The reminder that goes with every remedy that names bounds or values."""


@dataclass(frozen=True)
class Finding:
    """Something about the table that a release would not say.

    Attributes:
        about: the column's name; or the key of the config that it is about, such as "source".
        cells: number of cells or rows.
        what: the sentence.
        remedy: what to do; "" where nothing is wrong by itself.
        write: the keys to write into the config, as YAML; "" where the config can't mend it.
        tuned: True if the remedy names bounds or values, which must be known without the table.
    """

    about: str
    cells: int
    what: str
    remedy: str = ""
    write: str = ""
    tuned: bool = False


def examples(texts: Mapping[str, int], shown: int = _SHOWN) -> str:
    """The commonest texts, each with its number of cells.

    >>> examples({"a": 2, "b": 1200})
    "'b' (1,200), 'a' (2)"
    """
    common = commonest(texts)[:shown]
    more = ", ..." if len(texts) > shown else ""
    return ", ".join(f"{quoted(text)} ({texts[text]:,})" for text in common) + more


def commonest(texts: Mapping[str, int]) -> list[str]:
    """The texts, the commonest first; equally common ones in their order."""
    return sorted(texts, key=lambda text: (-texts[text], text))


def quoted(text: str) -> str:
    r"""A text in quotes, cut where it is long, with every sign that can't be printed spelt out.

    >>> quoted("a\x1b[2J")
    "'a\\x1b[2J'"
    """
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
    return f"'{plain}'"


def keys(values: Mapping[str, object]) -> str:
    """Keys of a column as YAML within one line.

    >>> keys({"values": ["no", "F"], "other": "other"})
    "values: ['no', F], other: other"
    """
    written = yaml.safe_dump(
        dict(values), default_flow_style=True, sort_keys=False, allow_unicode=True, width=_WIDEST
    )
    return written.strip().removeprefix("{").removesuffix("}")


def listed(words: Iterable[str], last: str = "and") -> str:
    """Words in a row: "a, b and c"."""
    found: Sequence[str] = list(words)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} {last} {found[-1]}"


_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")
"""Bytes that Windows-1252 gives no meaning."""


def source_findings(
    path: Place, form: FileForm, broken: BrokenRows, headers: int, *, keeps_broken: bool
) -> Iterator[Finding]:
    """The findings about a file.

    Args:
        path: the private table.
        form: the form of its file.
        broken: the counts of the reader.
        headers: rows that are the header once more.
        keeps_broken: True if a release reads broken rows as rows of missing cells; False if it leaves them
            out.
    """
    fate = "read as rows of missing cells" if keeps_broken else "left out"
    if form.kind == "csv":
        yield from _encoding(path, form, broken)
        yield from _quotes(path, form, broken, fate)
    for rows, what, remedy in (
        (
            broken.uneven,
            f"with too few or too many cells, {fate}",
            "see to the table: an amount such as 1,234 needs quotes where a comma is the separator",
        ),
        (broken.overlong, f"of more bytes than a row may have, {fate}", "see to it"),
        (
            headers,
            "with the header once more, not counted below; a release takes it for cells",
            "take it out there: files were put together with their headers",
        ),
    ):
        if rows:
            yield Finding("source", rows, f"{_rows(rows)} {what}", remedy)


def _encoding(path: Place, form: FileForm, broken: BrokenRows) -> Iterator[Finding]:
    if form.encoding == "utf-8" and broken.undecodable:
        yield Finding(
            "source",
            broken.undecodable,
            f"{_rows(broken.undecodable)} with bytes that are not UTF-8",
            "say how the file is encoded, most often so",
            f"encoding: {_western(path, form)}",
        )
    elif form.encoding not in ("utf-8", *WIDE) and _is_utf8(path, form):
        yield Finding(
            "source",
            0,
            f"the file is UTF-8 text, and is read as {form.encoding}",
            "say how the file is encoded",
            "encoding: utf-8",
        )
    elif broken.undecodable:
        yield Finding(
            "source",
            broken.undecodable,
            f"{_rows(broken.undecodable)} with bytes that are no text in {form.encoding}",
            "ask whoever wrote the file how it is encoded, and say so with encoding",
        )


def _western(path: Place, form: FileForm) -> str:
    """The usual encoding of bytes that are not UTF-8, in which each of them has a meaning."""
    with opened(path, form) as stream:
        foreign = any(_UNDEFINED.intersection(line) for line in stream if not _decodes(line))
    return "latin-1" if foreign else "windows-1252"


def _decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_utf8(path: Place, form: FileForm) -> bool:
    """True if a file holds signs beyond ASCII, and all of it is UTF-8."""
    decoder, plain = codecs.getincrementaldecoder("utf-8")(), True
    try:
        with opened(path, form) as stream:
            while data := stream.read(1 << 20):
                plain = plain and data.isascii()
                decoder.decode(data)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return not plain


def _quotes(path: Place, form: FileForm, broken: BrokenRows, fate: str) -> Iterator[Finding]:
    if not broken.unclosed:
        return
    with opened(path, form) as stream:
        odd = (str(number) for number, line in enumerate(stream, 1) if line.count(b'"') % 2)
        lines = list(islice(odd, _SHOWN))
    where = f"; lines with an odd number of quotes are {', '.join(lines)}" if lines else ""
    trust, distrust = (
        "say that cells have line breaks",
        "say that each line is a row, whatever quotes it holds",
    )
    yield Finding(
        "source",
        broken.unclosed,
        f"{_rows(broken.unclosed)} with a quote that is not closed{where}; {fate}",
        f"close it, or leave it out; or {distrust if form.multiline else trust}",
        f"multiline: {str(not form.multiline).lower()}",
    )


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


_ABOUT = "privacy.unit"

_REMEDY = (
    "if they are, protect them, before the first release; an account that has releases of rows goes on with "
    "persons by dpsynth ledger unit"
)


class UnitTally:
    """Who repeats, by all columns of a table, in one pass and bounded memory."""

    def __init__(self, names: Sequence[str], declared: Sequence[Column], *, rows: bool) -> None:
        """No row of a table.

        Args:
            names: all columns of the table.
            declared: the columns of the config that are published.
            rows: True if rows, or events, are the units.
        """
        self._texts = ColumnTexts(
            list(names) if rows else [column.name for column in declared if not column.part_of]
        )
        self._declared = [column.name for column in declared if not column.part_of]
        self._rows = rows

    def add(self, batch: Mapping[str, pa.StringArray]) -> None:
        self._texts.add(batch)

    def findings(self) -> Iterator[Finding]:
        """Questions about the unit, then the columns that name persons."""
        who = self._texts.who()
        if self._rows:
            yield from self._about_unit(who)
        for name in self._declared:
            form = self._texts.forms[name] or (NUMBERS if name in who.columns else None)
            if form is not None:
                yield self._about_column(name, form)

    def _about_unit(self, who: Repeating) -> Iterator[Finding]:
        if who.unit is not None:
            unit = who.unit
            kind = {} if unit.kind == "person" else {"kind": unit.kind}
            yield Finding(
                _ABOUT,
                self._texts.texts[unit.column].rows,
                f"{unit.question} The unit is one row, so whoever has several is protected less than the "
                "config says of a row",
                _REMEDY,
                keys({"unit": {"column": unit.column, "max_rows": unit.max_rows, **kind}}),
                tuned=True,
            )
        for question in who.questions:
            # A finding ends with a full stop.
            what = question.removesuffix(".") if question.endswith(".") else f"{question} The unit is one row"
            yield Finding(_ABOUT, 0, what, _REMEDY)

    def _about_column(self, name: str, form: Form) -> Finding:
        texts = self._texts.texts[name]
        what = (
            f"its values are {form.words}"
            if form in (NAMES, FREE_TEXT)
            else f"its values look like {form.words}"
        )
        return Finding(
            name,
            texts.rows,
            f"{what}, and it is a column of the synthetic table: {examples(texts.counts)}",
            "leave it out, unless anybody may know who is in the table",
            keys({"type": "identifier"}),
        )


FEWEST_ROWS = 10
"""Fewest cells of a value that is proposed for the config."""

_MOST_LISTED = 40

_SHAPES = 3

_MANY_OTHERS = 0.2

_CROWDED = 0.9

_FEW = 0.01

_FEWEST_PLACES, _FEWEST_VALUES = 4, 50

_OFTEN = 20
"""Rows of a usual code."""

_SENTINEL = re.compile(r"-?9{2,}(\.0+)?|-[1-9](\.0+)?|(9999-12-31|1[0-9]00-01-01)([T ].*)?")


def column_findings(tally: ColumnTally) -> list[Finding]:
    """The findings about a column."""
    if not tally.cells:
        return []
    return [*_missing(tally), *_unread(tally), *_clipped(tally), *_crowded(tally), *_codes(tally)]


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
    lists = codec.closed and tally.lists
    meant: dict[str, str] = {}
    left: dict[str, int] = {}
    spelt: list[tuple[Explained, str]] = []
    for reading, counted in ((Reading.NONE, _taken_as(column)), (Reading.OTHER, "among all other values")):
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
        if not lists and rest:
            yield _no_value(tally, rest, counted)
        elif reading is Reading.NONE or sum(rest.values()) >= _MANY_OTHERS * tally.cells:
            left |= rest
    for one, counted in spelt:
        write = "" if left or not lists else keys({"values": _declared(tally, meant)})
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


_NEGATIVE = re.compile(r"\([0-9][0-9.,' ]*\)|[0-9][0-9.,' ]*-")


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
    if tally.codec.kind.word == "number" and any(map(_NEGATIVE.fullmatch, texts)):
        remedy = (
            "numbers in brackets or with - behind are negative for many programs: have - in front of them"
        )
    elif cells > tally.cells / 2:
        remedy = "see if the column is of another type"
    return Finding(
        tally.column.name,
        cells,
        f"{_cells(cells)} with no {_kind(tally)}, counted {counted}: {', '.join(common)}{more}",
        remedy,
    )


def _kind(tally: ColumnTally) -> str:
    word = tally.codec.kind.word
    if tally.codec.closed:
        return "declared value"
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
            "list narrower bins there, or let a release find them",
            "edges: tree" if tally.codec.continuous else "",
        )


def _codes(tally: ColumnTally) -> Iterator[Finding]:
    """Whole numbers in wide cells that are likely codes: what follows from one of them is lost."""
    texts = tally.numbers.texts
    if not texts or len(texts) >= MOST_TEXTS:
        return
    numbers = tally.codec.parsed(pa.array(list(texts))).to_numpy(zero_copy_only=False)
    counts = np.array(list(texts.values()), np.float64)[np.argsort(numbers)]
    if np.median(counts) >= _OFTEN and unlike(counts, 0.0):
        yield Finding(
            tally.column.name,
            int(counts.sum()),
            f"{counts.size:,} whole numbers occur, and those next to each other differ in rows as much as "
            "any two. They are likely codes, and as numbers they lose what follows from each of them",
            "if they are codes, declare type: category, with the values of a codebook or with open: true, in "
            "place of min and max",
            tuned=True,
        )


def _cells(count: int) -> str:
    return f"{count:,} cell{'s' * (count != 1)}"
