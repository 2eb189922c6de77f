"""A bundle in the forms of archives and of statistical offices: a DDI Codebook, and an SDMX cube.

DDI Codebook (version 2.5) describes files and their variables, with categories and noisy counts. SDMX-JSON
(version 2.0, of SDMX 3.0) describes the statistics as one cube, whose figures SDMX-CSV holds: a dimension for
each column, whose code ``_T`` stands for all of its values, and one for what a figure is. Both have the
guarantee, and what is public without noise, in the words of the vocabulary that stands in ``docs/files.md``.

Invariant: the bundle alone is read, and equal bundles make equal exports.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from io import StringIO
from itertools import chain, count
from typing import Any, NamedTuple, cast

from dpsynth.bundle.manifest import Manifest
from dpsynth.bundle.report_source import ReportSource
from dpsynth.bundle.row_files import table_names
from dpsynth.page_templates import environment
from dpsynth.statistics.tables import StatisticTable
from dpsynth.wings.proof.catalogues import FORMATS, as_text, filled, grouped

TERMS = "urn:dpsynth:terms:"
"""The beginning of each term of the vocabulary."""


class Fact(NamedTuple):
    """A fact about the privacy of a release: a term, its value, and of a disclosure its kind and column."""

    term: str
    value: str
    kind: str = ""
    column: str = ""


def facts_of(manifest: Manifest) -> Iterator[Fact]:
    """The guarantee of a release, and what it doesn't cover."""
    promise = manifest.guarantee
    yield Fact("model", manifest.trust)
    for term in ("epsilon", "delta", "rho", "mu", "unit", "neighbours", "accountant"):
        if (value := getattr(promise, term)) is not None:
            yield Fact(term, str(value))
    for at in promise.profile:
        yield Fact("profile", f"epsilon {at.epsilon}, delta {at.delta}")
    for bound in promise.recognition:
        yield Fact("tradeOff", f"falseAlarms {bound.false_alarms}, recognisedAtMost {bound.at_most}")
    for one in grouped(manifest.mechanisms):
        scale = cast("Sequence[float] | None", one["scale"])
        noise = f", scale {scale[0]} to {scale[1]}" if scale else ""
        asked = f"{one['mechanism']}, question {one['question']}, answers {one['answers']}"
        yield Fact("mechanism", f"{asked}, sensitivity {one['sensitivity']}{noise}")
    yield from (Fact("notProtected", sentence) for sentence in manifest.not_protected)
    for told in manifest.disclosed_outside:
        yield Fact("disclosedOutside", told["what"], told["kind"], told.get("column", ""))


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _linked(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Each of linked tables, with its columns and the column of the wide table that describes each, or ""."""
    own = {column: f"{prefix}{column}" for column in table["columns"]}
    more = (*table["above"], *table["key"], table["number"], *table["derived"])
    yield table["name"], dict.fromkeys(filter(None, more), "") | own
    for child in table["children"]:
        yield from _linked(child, f"{prefix}{child['name']}_1_")


def _described(source: ReportSource) -> dict[str, list[tuple[object, ...]]]:
    """Facts of files and of variables, in the order in which the template names them.

    ``files``: identifier, name, media type, rows if it is known how many, columns. ``variables``: identifier,
    name, files, what the public schema says ({} of a key), noisy counts by label.
    """
    manifest, files, variables = source.manifest, list[tuple[object, ...]](), list[tuple[object, ...]]()
    described = {str(facts["name"]): facts for facts in manifest.columns}
    counts: dict[str, dict[str, float]] = {}
    for one in (table for table in source.statistics if table.kind == "one_way"):
        labels, estimates = (one.table[c].to_pylist() for c in (one.label_names[0], "estimate"))
        counts[one.columns[0]] = dict(zip(labels, estimates, strict=True))
    tables = [(table_names(manifest.files), {name: name for name in described})]
    for name, own in _linked(manifest.tables["root"]) if manifest.tables else ():
        tables.append((tuple(f for f in manifest.files if f.startswith(f"tables/{name}.")), own))
    for i, (names, own) in enumerate(tables):
        # Of linked tables neither rows nor values are counted.
        rows, counted = (None, {}) if i else (manifest.synthetic_rows, counts)
        ids = [f"F{len(files) + place}" for place in range(1, len(names) + 1)]
        for one_id, name in zip(ids, names, strict=True):
            files.append((one_id, name, FORMATS[name.rsplit(".", 1)[-1]], rows, len(own)))
        for name, wide in own.items():
            facts = (described.get(wide, {}), counted.get(wide, {}))
            variables.append((f"V{len(variables) + 1}", name, " ".join(ids), *facts))
    return {"files": files, "variables": variables}


def codebook(source: ReportSource, agency: str | None) -> str:
    """A release as a DDI Codebook, by ``codebook.xml.j2``; the agency is that which keeps it."""
    manifest, pages = source.manifest, environment("wings/proof")
    # XML has no control characters, not even escaped ones.
    pages.finalize = lambda v: _NOT_IN_XML.sub("\ufffd", v) if type(v) is str else v
    period = manifest.period or {}
    last = date.fromisoformat(period["stop"]) - timedelta(days=1) if "stop" in period else None
    return pages.get_template("codebook.xml.j2").render(
        manifest=manifest, agency=agency, period=period, last=last, terms=TERMS, facts=[*facts_of(manifest)],
        **_described(source),
    )  # fmt: skip


_PLAIN_CODE = re.compile("[A-Za-z0-9][A-Za-z0-9_@$-]*")
_TOTAL, _ROWS, _MEASURE = "_T", "ROWS", "OBS_VALUE"
_RESERVED = ("STRUCTURE", "STRUCTURE_ID", "ACTION", "TIME_PERIOD", "REPORTING_YEAR_START_DAY", "FIGURE")
_VERSION = "1.0.0"


def _identifiers(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """An identifier for each name, of letters, digits, "_" and "-", unlike those taken.

    >>> _identifiers(["age", "a ge", "1", "a_ge"], ["age"])
    {'age': 'age_2', 'a ge': 'a_ge', '1': 'C_1', 'a_ge': 'a_ge_2'}
    """
    used, found = set(taken), dict[str, str]()
    for name in names:
        stem = re.sub("[^A-Za-z0-9_-]", "_", name)
        stem = stem if re.match("[A-Za-z]", stem) else f"C_{stem}"
        more = (f"{stem}_{number}" for number in count(2))
        found[name] = next(one for one in chain([stem], more) if one not in used)
        used.add(found[name])
    return found


class _Part(NamedTuple):
    """The rows of one table of statistics in the cube."""

    figure: str
    title: str
    groups: tuple[str, ...]
    table: StatisticTable
    rows: Sequence[int]

    @property
    def figures(self) -> list[str]:
        """The names of figures beside the estimate."""
        return [*self.table.table.column_names[len(self.table.label_names) + 1 :]]


@dataclass(frozen=True, eq=False)
class Cube:
    """The statistics of a release as an SDMX cube.

    Attributes:
        agency: the identifier of the agency that maintains the structure.
    """

    source: ReportSource
    agency: str

    @cached_property
    def _parts(self) -> tuple[_Part, ...]:
        found, counted = list[_Part](), set[frozenset[str]]()
        stated = zip(self.source.manifest.statistics, self.source.statistics, strict=True)
        for number, (one, table) in enumerate(stated, 1):
            rows, groups = range(len(table.table)), () if one.request is None else one.request.groups
            if one.kind in ("one_way", "crosstab"):
                # Two tables may count the same columns.
                if frozenset(one.columns) not in counted:
                    found.append(_Part(_ROWS, "Number of rows", one.columns, table, rows))
                counted.add(frozenset(one.columns))
                continue
            # Further labels, such as the level of a quantile, make a figure of its own.
            more = [table.table[name].to_pylist() for name in table.label_names[len(groups) :]]
            labels = [tuple(str(column[row]) for column in more) for row in rows]
            for place, own in enumerate(dict.fromkeys(labels), 1):
                # The title of a mean may be its columns alone.
                named = f"mean of {one.title.removeprefix('mean of ')}" if one.kind == "mean" else one.title
                title = ": ".join(filter(None, (named, ", ".join(own))))
                chosen = [row for row in rows if labels[row] == own]
                found.append(_Part(f"S{number}_{place}", title, groups, table, chosen))
        return tuple(found)

    @cached_property
    def _attributes(self) -> dict[str, str]:
        """Identifiers of figures beside the estimate, by name."""
        names = dict.fromkeys(name for part in self._parts for name in part.figures)
        found = _identifiers((name.upper() for name in names), (*_RESERVED, _MEASURE))
        return {name: found[name.upper()] for name in names}

    @cached_property
    def _labels(self) -> dict[str, dict[str, str]]:
        """For each column of a group the code of each label."""
        used = {column for part in self._parts for column in part.groups}
        listed = {str(facts["name"]): facts.get("labels", ()) for facts in self.source.manifest.columns}
        return {
            name: {one: one if _PLAIN_CODE.fullmatch(one) else f"_{i}" for i, one in enumerate(labels)}
            for name, labels in listed.items()
            if name in used
        }

    @cached_property
    def _dimensions(self) -> dict[str, str]:
        return _identifiers(self._labels, (*_RESERVED, _MEASURE, *self._attributes.values()))

    @cached_property
    def _id(self) -> str:
        """An identifier of this release, or of its bundle for an audience."""
        about = self.source.manifest
        name = "_".join((about.release, about.release_id, *([about.audience.name] if about.audience else ())))
        return _identifiers([name], ())[name]

    def structure(self) -> str:
        """The structure message, by ``sdmx.json.j2``."""
        lists = {"FIGURE": ("What the figure is", {part.figure: part.title for part in self._parts})}
        for column, labels in self._labels.items():
            codes = {_TOTAL: "All values"} | {code: label or "(empty)" for label, code in labels.items()}
            lists[self._dimensions[column]] = (column, codes)
        facts: dict[str, object] = {"id": self._id, "agency": self.agency, "version": _VERSION}
        facts |= {"lists": lists, "measure": _MEASURE, "attributes": self._attributes, "terms": TERMS}
        facts |= {"facts": [*facts_of(self.source.manifest)], "about": self._dimensions}
        return as_text(filled("sdmx.json.j2", self.source.manifest, **facts))

    def figures(self) -> str:
        """The figures as SDMX-CSV 2.0."""
        written = StringIO()
        rows = csv.writer(written, lineterminator="\n")
        begin = ["STRUCTURE", "STRUCTURE_ID", "ACTION", "FIGURE", *self._dimensions.values()]
        rows.writerow([*begin, _MEASURE, *self._attributes.values()])
        begin = ["dataflow", f"{self.agency}:{self._id}({_VERSION})", "I"]
        for part in self._parts:
            cells = part.table.table.to_pydict()
            for row in part.rows:
                key = dict.fromkeys(self._dimensions, _TOTAL)
                for column, name in zip(part.groups, part.table.label_names, strict=False):
                    key[column] = self._labels[column][cells[name][row]]
                given = (cells[name][row] if name in part.figures else None for name in self._attributes)
                rows.writerow([*begin, part.figure, *key.values(), cells["estimate"][row], *given])
        return written.getvalue()
