"""The two pages of a bundle: the report and the recipient's README.

Invariant: a page shows every name as text, whatever it holds. The report runs no script and fetches nothing;
its content security policy forbids both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment

from dpsynth.domain.column import Column
from dpsynth.domain.derived import Derived
from dpsynth.domain.domain import Clique
from dpsynth.domain.layout import Part
from dpsynth.domain.public_schema import type_name
from dpsynth.domain.surrogates import Surrogates
from dpsynth.presentation import figures
from dpsynth.presentation.page_templates import environment
from dpsynth.publish import explanation
from dpsynth.publish.publication import Publication
from dpsynth.publish.report_views import crosstab_view, mean_view, one_way_view, steps
from dpsynth.publish.statistics import listed
from dpsynth.publish.structure_tree import forest, largest

_LABELS_SHOWN = 6
_MERGED_SHOWN = 24


@cache
def _environment() -> Environment:
    pages = environment()
    pages.filters["markdown"] = markdown_text
    pages.filters["up"] = figures.rounded_up
    pages.filters["count"] = figures.count
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


def report_html(publication: Publication) -> str:
    """The report, one self-contained page."""
    columns = {column.name: column for column in publication.columns}
    by_kind = {
        kind: [statistic for statistic in publication.statistics if statistic.kind == kind]
        for kind in ("one_way", "crosstab", "mean")
    }
    others = [statistic for statistic in publication.statistics if statistic.kind not in by_kind]
    measure = "epsilon" if publication.guarantee.rho is None else "rho"
    here, earlier = [m.clique for m in publication.answers], _earlier_cliques(publication)
    together = largest([*here, *earlier])
    page = _environment().get_template("report.html.j2")
    return page.render(
        explanation.shared_by_pages(publication),
        steps=steps(publication.events, measure),
        measure={"epsilon": "ε", "rho": "\N{GREEK SMALL LETTER RHO}"}[measure],
        together=together,
        trees=forest(tuple(columns), together),
        one_ways=[one_way_view(s, columns[s.columns[0]]) for s in by_kind["one_way"]],
        crosstabs=[crosstab_view(s, columns[s.columns[-1]].size) for s in by_kind["crosstab"]],
        means=[mean_view(s) for s in by_kind["mean"]],
        others=[mean_view(s) for s in others],
        earlier_alone=bool(set(together) - set(here)),
        assumptions={s.name: explanation.assumption(s, here, earlier) for s in publication.statistics},
    )


def readme_text(publication: Publication) -> str:
    """The recipient's README."""
    kinds = publication.layout.kinds
    described = [
        (part.name, type_name(part, kinds[part.name]), _values_in_words(part), _missing_in_words(part))
        for part in publication.layout.parts
    ]
    return (
        _environment()
        .get_template("README.md.j2")
        .render(explanation.shared_by_pages(publication), columns=described)
    )


def _earlier_cliques(publication: Publication) -> tuple[Clique, ...]:
    uses = (publication.reused, publication.public_table)
    return tuple(clique for use in uses if use is not None for clique in use.cliques)


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
