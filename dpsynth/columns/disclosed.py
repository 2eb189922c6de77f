"""The facts that a release makes public without noise, as one list; and the section of its provenance.

Invariant: made of the configuration and of public facts. Before and after a release it is one list, but for
the titles of statistics.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from dpsynth.columns.domain import Clique
from dpsynth.columns.layout import Layout
from dpsynth.columns.public_schema import public_schema
from dpsynth.columns.section import Number, Section, Text

_Name = Annotated[str, Text("the name of a column")]


class Chosen(Section):
    """A choice, as ``dpsynth choose`` writes it."""

    on: Annotated[str, Text("what the candidates were run on", longest=300)] = Field(
        description="The table that stood in for the private one."
    )
    among: Mapping[str, Annotated[Decimal, Number(at_least="0", at_most="1")]] = Field(
        description="The candidates, each with its mean error of a pair of columns on that table."
    )
    name: Annotated[str, Text("one of the candidates", longest=1000)] = Field(
        description="The candidate that was taken."
    )

    @property
    def words(self) -> str:
        errors = "; ".join(f"{name}: {100 * error:.2f} %" for name, error in self.among.items())
        return (
            f"The configuration is the candidate {self.name}, chosen for nothing by runs on {self.on}, "
            f"without the private table. Mean error of a pair of columns there, in rows: {errors}."
        )


class Provenance(Section):
    """The section provenance: where a configuration comes from. A release states it, and nothing follows."""

    looked_at: tuple[_Name, ...] = Field(
        default=(), description="Columns whose bounds or values were taken from a look at the private table."
    )
    chosen: Chosen | None = Field(default=None, description="The choice among candidates that it comes from.")


NO_PROVENANCE = Provenance()


def disclosed(  # noqa: PLR0913 (facts of a release)
    release: str,
    layout: Layout,
    origin: Provenance,
    *,
    found: Container[str],
    rules: Sequence[str],
    counts: Sequence[Clique],
    table: str,
    period: str,
    asked: Sequence[str],
) -> Iterator[dict[str, str]]:
    """Facts that are public without noise, each with its kind, and the column if it is about one."""
    for facts in public_schema(layout):
        name, formula = str(facts["name"]), facts.get("computed_from")
        yield {"kind": "column", "column": name, "what": f"The name of {name}, and its type {facts['type']}."}
        if formula is not None:
            what = f"How {name} follows from other columns: {formula}"
            yield {"kind": "formula", "column": name, "what": what}
        elif facts.get("labels") is not None and name not in found:
            what = f"The values, or ends and bins, that {name} was declared with."
            yield {"kind": "domain", "column": name, "what": what}
        if name in origin.looked_at:
            what = f"What a look at the private table told of {name}: its declaration was taken from it."
            yield {"kind": "look", "column": name, "what": what}
    of_all = [("name", f"The name of the release, {release}.")]
    of_all += [("choice", origin.chosen.words)] if origin.chosen else []
    of_all += [("constraint", f"A rule that all rows are taken to obey: {rule}") for rule in rules]
    of_all += [("public counts", f"Counts or shares of {', '.join(columns)}.") for columns in counts]
    of_all += [("public table", f"{table}; nothing protects what it says.")] if table else []
    of_all += [("period", f"The column of periods, {period}, and their length.")] if period else []
    of_all += [("statistic", f"That it was asked for: {title}") for title in asked]
    yield from ({"kind": kind, "what": what} for kind, what in of_all)
