"""The pages of a bundle: the report and the recipient's README, and the report's frame in a notebook.

Invariant: a page shows every name as text, whatever it holds. The report runs no script and fetches nothing;
its content security policy, and its frame in a notebook, forbid both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from jinja2 import Environment

from dpsynth import figures
from dpsynth.bundle import explanation
from dpsynth.bundle.explanation import Words
from dpsynth.bundle.publication import Publication
from dpsynth.bundle.report_source import (
    ReportSource,
    ShownColumn,
    crosstab_view,
    mean_view,
    one_way_view,
    steps,
)
from dpsynth.bundle.row_files import table_names
from dpsynth.bundle.structure_tree import COLOURS, branches_of, largest, pair_view
from dpsynth.columns.column import Column, merged_columns
from dpsynth.columns.derived import Derived
from dpsynth.columns.identifier import Surrogates
from dpsynth.columns.layout import Part
from dpsynth.columns.public_schema import type_name
from dpsynth.figures import listed
from dpsynth.page_templates import environment
from dpsynth.statistics.verdict import USES, Judgement


@dataclass(frozen=True, repr=False)
class InlinePage:
    """A page that a notebook shows.

    Attributes:
        height: height of its frame, in pixels.
    """

    path: Path
    height: int = 700

    def __repr__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        page = escape(self.path.read_text(encoding="utf-8"))
        return (
            f'<iframe srcdoc="{page}" sandbox style="width:100%;border:0" height="{self.height}" '
            f'title="{escape(self.path.name)}"></iframe>'
        )


_LABELS_SHOWN = 6

_MERGED_SHOWN = 24

_PAIR = 2

_WORST = 20


@cache
def _environment() -> Environment:
    pages = environment()
    pages.filters["markdown"] = markdown_text
    pages.filters["up"] = figures.rounded_up
    pages.filters["count"] = figures.count
    pages.filters["grouped"] = figures.grouped
    pages.filters["some"] = some_in_words
    pages.filters["percent_of_width"] = lambda value: f"{value:.2f}%"
    return pages


def markdown_text(text: str) -> str:
    r"""A text escaped for Markdown, on one line.

    >>> markdown_text("a|b <script>")
    'a\\|b \\<script\\>'
    """
    return re.sub(r"([\\`*\[\]<>|&~])", r"\\\1", " ".join(str(text).split()))


def values_in_words(column: Column) -> str:
    """A column's values: all of a short list, the first and the last of a long one."""
    labels = column.codec.labels
    if len(labels) <= _LABELS_SHOWN:
        return ", ".join(labels)
    return f"{labels[0]} … {labels[-1]} ({len(labels)} values)"


def some_in_words(labels: Sequence[str]) -> str:
    """A list of labels: all of a short list, the first of a long one."""
    if len(labels) <= _MERGED_SHOWN:
        return ", ".join(labels)
    return f"{', '.join(labels[:_MERGED_SHOWN])} … ({len(labels)} values)"


def report_html(source: ReportSource) -> str:
    """The report, one self-contained page."""
    manifest, guarantee = source.manifest, source.manifest.composed
    modelled, relations, verdict = manifest.modelled, manifest.relations, manifest.verdict.verdict
    columns = {name: ShownColumn.of(facts) for name, facts in modelled.items()}
    by_kind = {
        kind: [statistic for statistic in source.statistics if statistic.kind == kind]
        for kind in ("one_way", "crosstab", "mean")
    }
    others = [statistic for statistic in source.statistics if statistic.kind not in by_kind]
    measure = "epsilon" if guarantee.rho is None else "rho"
    page = _environment().get_template("report.html.j2")
    return page.render(
        manifest=manifest,
        guarantee=guarantee,
        headline=explanation.headline(guarantee),
        rows_about=explanation.rows_about(manifest.period),
        rehearsal=explanation.REHEARSAL,
        builds_on=_builds_on(manifest.earlier_releases),
        steps=steps(manifest.mechanisms, measure),
        questions=len(manifest.mechanisms),
        one_each=str((manifest.local or {}).get("answers_a_report")).startswith("one "),
        measure={"epsilon": "ε", "rho": "\N{GREEK SMALL LETTER RHO}"}[measure],
        relations=relations,
        larger=[c for c in largest([*relations.measured, *relations.earlier]) if len(c) > _PAIR],
        pairs=pair_view(list(modelled), relations, source.errors, verdict),
        verdict=verdict,
        doubtful=_doubtful(verdict.columns),
        worst_pairs=[p for p in _doubtful(verdict.pairs) if p.verdict == USES[-1]][:_WORST],
        colours=COLOURS,
        trees=branches_of(manifest.structure.model),
        rules=manifest.constraints.rules,
        one_ways=[one_way_view(s, columns[s.columns[0]]) for s in by_kind["one_way"]],
        crosstabs=[crosstab_view(s, len(modelled[s.columns[-1]]["labels"])) for s in by_kind["crosstab"]],
        means=[mean_view(s) for s in by_kind["mean"]],
        others=[mean_view(s) for s in others],
        modelled=any(not statistic.measured for statistic in source.statistics),
        assumptions={Path(s.file).stem: s.assumption for s in manifest.statistics},
        statistics=source.statistics,
        files=source.files,
        table_files=table_names(source.files),
        views=manifest.views,
    )


def _doubtful(judged: Sequence[Judgement]) -> list[Judgement]:
    found = [one for one in judged if one.verdict != USES[0]]
    return sorted(found, key=lambda one: one.rank, reverse=True)


def _builds_on(earlier: object) -> bool:
    """True if the model rests on answers of earlier releases, by the manifest's ``earlier_releases``."""
    releases = earlier["releases"] if isinstance(earlier, Mapping) else ()
    return any(not str(release["use"]).startswith("left out") for release in releases)


def readme_text(publication: Publication, words: Words, catalogues: Collection[str]) -> str:
    """The recipient's README."""
    kinds = publication.layout.kinds
    described = [
        (part.name, type_name(part, kinds[part.name]), _values_in_words(part), _missing_in_words(part))
        for part in publication.layout.parts
    ]
    return (
        _environment()
        .get_template("README.md.j2")
        .render(
            publication=publication,
            words=words,
            guarantee=publication.guarantee,
            headline=explanation.headline(publication.guarantee),
            rehearsal=explanation.REHEARSAL,
            rows_about=explanation.rows_about(publication.part and publication.part.to_json()),
            modelled=any(not statistic.measured for statistic in publication.statistics),
            merged=merged_columns(publication.columns, publication.compression),
            columns=described,
            catalogues=catalogues,
            table_texts=[name for name in table_names(publication.synthetic.names) if ".csv" in name],
            parts=sum(name.endswith(".parquet") for name in publication.synthetic.names),
        )
    )


def _values_in_words(part: Part) -> str:
    if isinstance(part, Surrogates):
        return f"made up, from {part.first} on"
    if isinstance(part, Derived):
        return f"computed: {part.written}"
    return values_in_words(part)


def _missing_in_words(part: Part) -> str:
    if isinstance(part, Surrogates):
        return "never"
    if isinstance(part, Derived):
        return f'"{part.marker}"' if part.marker else "an empty cell"
    shown = [f'"{part.markers[0]}"' if part.markers else "an empty cell"] if part.missing else []
    return (
        listed((*shown, *(f'"{marker}"' for marker in part.distinct))) if shown or part.distinct else "never"
    )
