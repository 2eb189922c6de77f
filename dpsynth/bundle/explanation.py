"""The guarantee of a release and its limits, in plain words.

The manifest, the report and the recipient's README share these sentences, so they can't disagree. They stand
in the template ``words.txt.j2``. Here is what fills it, and which of its blocks a release needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

from jinja2 import Template

from dpsynth.accounting.amount import float_up
from dpsynth.accounting.composition import group_amount
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.neighbours import EVENT, ROW, left_unprotected, neighbours_in_words
from dpsynth.bundle.publication import Publication
from dpsynth.bundle.structure_tree import Paths
from dpsynth.columns.calendar import invents_time_of_day
from dpsynth.columns.column import merged_columns
from dpsynth.columns.domain import Clique
from dpsynth.figures import count, guess_percent, listed, odds_factor, rounded_up
from dpsynth.page_templates import environment, paragraphs
from dpsynth.statistics.tables import StatisticTable

REHEARSAL = (
    "REHEARSAL, no release: the table behind it was made up from the configuration. Nothing here says "
    "anything about real data, and nothing was charged."
)
"""The first line of every page of a rehearsal."""

_FOUND = {
    "max_rows": "most rows to use of one value",
    "bounds": "smallest and largest value",
    "quantiles": "edges of bins",
    "tree": "edges of bins",
    "values": "values",
    "prefixes": "beginnings",
}

_GROUPS = (2, 5, 20)
"""Sizes of groups whose guarantee stands in a sentence."""

_NAMED = 6
"""Largest number of releases that a sentence names one by one."""


@cache
def _template() -> Template:
    pages = environment()
    pages.filters |= {"up": rounded_up, "count": count, "listed": listed}
    return pages.get_template("words.txt.j2")


@dataclass(frozen=True)
class Words:
    """A release in words, as sentences.

    Attributes:
        guarantee: the guarantee, by a curator or of every respondent by herself.
        not_protected: the limits of the guarantee.
        cautions: how far to believe the numbers.
        reuse: the part of earlier releases in both.
        public_table: the part of a public table.
        found: the facts of columns that were found with a part of the budget; "" where all were declared.
        merged: the columns with merged values, the reason and the consequences.
        constraints: the meaning of the rules of the synthetic rows.
        builds_on: true if answers of earlier releases are in the model.
    """

    guarantee: tuple[str, ...]
    not_protected: tuple[str, ...]
    cautions: tuple[str, ...]
    reuse: tuple[str, ...]
    public_table: tuple[str, ...]
    found: str
    merged: str
    constraints: tuple[str, ...]
    builds_on: bool

    @staticmethod
    def of(publication: Publication) -> Words:
        say = partial(paragraphs, _template(), facts=_facts(publication))
        reused, collection = publication.reused, publication.collection
        builds_on = reused is not None and bool(reused.used)
        cautions, reuse = say("cautions"), say("reuse") if builds_on else ()
        guarantee = (
            say("guarantee") if collection is None else collection.guarantee_in_words(publication.guarantee)
        )
        return Words(
            guarantee=(*guarantee, *reuse),
            not_protected=say("not_protected") if collection is None else collection.not_protected(),
            cautions=cautions if collection is None else collection.cautions(cautions),
            reuse=(*reuse, *say("reuse_cautions")),
            public_table=say("public_table_cautions"),
            found=" ".join(say("found")) if publication.found else "",
            merged=" ".join(say("merged")),
            constraints=say("constraints") if publication.constraints else (),
            builds_on=builds_on,
        )


def _facts(publication: Publication) -> Mapping[str, object]:
    guarantee, audience = publication.guarantee, publication.audience
    epsilons = {} if audience is None else audience.epsilons
    own = 0.0 if audience is None else epsilons[audience.name]
    finds_of: dict[str, list[str]] = {}
    for column, finds in publication.found.items():
        finds_of.setdefault(" and ".join(dict.fromkeys(_FOUND[find] for find in finds)), []).append(column)
    return {
        "of": publication,
        "guarantee": guarantee,
        "unit": guarantee.unit.split(":")[0],
        "by_row": {ROW: "rows", EVENT: "events"}.get(guarantee.unit, ""),
        "exchanged": guarantee.neighbours == "replace_one",
        "near": neighbours_in_words("add_remove", guarantee.unit),
        "left_unprotected": left_unprotected(guarantee.unit),
        "factor": odds_factor(guarantee.epsilon),
        "chance": guess_percent(guarantee.epsilon, guarantee.delta),
        "group": partial(_group, guarantee),
        "groups": partial(_groups, guarantee),
        "fewer": _audiences({name: epsilon for name, epsilon in epsilons.items() if epsilon < own}),
        "more": _audiences({name: epsilon for name, epsilon in epsilons.items() if epsilon > own}),
        "equation": _equation,
        "releases": _releases,
        "found": "; ".join(f"{what} of {', '.join(columns)}" for what, columns in finds_of.items()),
        "merged": merged_columns(publication.columns, publication.compression),
        "modelled": any(not statistic.measured for statistic in publication.statistics),
        "invented": [column.name for column in publication.columns if invents_time_of_day(column)],
        "public": "; ".join(" with ".join(m.clique) for m in publication.public_marginals.marginals),
        "lost": "; ".join(" and ".join(clique) for clique in publication.lost),
    }


def _equation(letter: str, value: float) -> str:
    """``ε = 1.2``, rounded up, without line breaks."""
    return f"{letter}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{rounded_up(value)}"


def headline(guarantee: Guarantee) -> str:
    """The guarantee in its usual notation; no line breaks inside an equation."""
    epsilon = _equation("ε", guarantee.epsilon)
    if not guarantee.delta:
        return f"ε-differential privacy with {epsilon}"
    return (
        f"(ε,\N{NO-BREAK SPACE}δ)-differential privacy with {epsilon} and {_equation('δ', guarantee.delta)}"
    )


def _audiences(epsilons: Mapping[str, float]) -> str:
    return " and one for ".join(f"{name} ({_equation('ε', epsilon)})" for name, epsilon in epsilons.items())


def _releases(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        return f"{len(names)} earlier releases"
    return f"the earlier release{'s' * (len(names) > 1)} {listed(names)}"


def _group(guarantee: Guarantee, units: int) -> str:
    """The guarantee of a group: ``ε = 2.12``, with its delta where that differs from the release's."""
    amount = group_amount(guarantee, units)
    if amount is None:
        return "no guarantee that says anything"
    epsilon = f"ε = {rounded_up(float_up(amount.epsilon))}"
    if amount.delta == Fraction(repr(guarantee.delta)):
        return epsilon
    return f"{epsilon} with δ = {rounded_up(float_up(amount.delta))}"


def _groups(guarantee: Guarantee, of: str) -> str:
    """The guarantees of groups of several sizes: ``with 2 rows it is ε = 2.12, with 5 rows ε = 5.93``."""
    same = " at the same δ" if guarantee.delta and not guarantee.approximate_delta else ""
    return f"{', '.join(f'with {k} {of} it is {_group(guarantee, k)}' for k in _GROUPS)}{same}"


def rows_about(period: object) -> str:
    """The rows that a release is about by its manifest's ``period``, as a sentence; "" for all of them."""
    if not isinstance(period, Mapping):
        return ""
    return f"It is about the rows of {period['label']} alone, by the column '{period['column']}'."


def assumption(statistic: StatisticTable, cliques: Sequence[Clique], earlier: Sequence[Clique] = ()) -> str:
    """The assumption of a table by the model; "" for a measured one.

    Args:
        statistic: the table.
        cliques: the cliques that were measured together, by groups where values were merged.
        earlier: the cliques of earlier releases and of a public table on which the model rests.
    """
    if statistic.measured:
        return ""
    columns = statistic.columns
    together = [any({*columns} <= {*clique} for clique in held) for held in (cliques, earlier)]
    facts = {
        "basis": "measured" if together[0] else "earlier" if together[1] else "",
        "path": Paths((*cliques, *earlier)).between(*columns) if len(columns) == 2 else (),
        "limits": statistic.limits,
    }
    return " ".join(paragraphs(_template(), "assumption", facts))
