"""What a release hands to the public, gathered in one value, written beside its place, and put there.

Invariant: every field is a public fact, an answer, or made of these.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

import pyarrow as pa

from dpsynth.accounting import events
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.rounding import float_up
from dpsynth.domain.known import Known
from dpsynth.domain.layout import Layout
from dpsynth.domain.measurement import Measurement
from dpsynth.model import Expansion, MarkovRandomField
from dpsynth.publish import Publication, StatisticTable, commit, write_public
from dpsynth.publish.public_table import PublicUse
from dpsynth.publish.reused import Reused
from dpsynth.rules import ways_of
from dpsynth.spec import Spec
from dpsynth.spec.plan import Plan
from dpsynth.structure.strategy import Selection
from dpsynth.work import Work

_PACKAGES = ("dpsynth", "opendp", "numpy", "pyarrow")


def publication_of(
    spec: Spec,
    layout: Layout,
    plan: Plan,
    work: Work,
    table: pa.Table,
    expansion: Expansion,
    singles: tuple[Measurement, ...],
    selection: Selection,
    reused: Reused | None,
    use: PublicUse | None,
    known: Known,
    model: MarkovRandomField,
    statistics: tuple[StatisticTable, ...],
    guarantee: Guarantee,
) -> Publication:
    """Everything that is handed to the public, in one value."""
    shares = plan.shares
    person = {str(plan.neighbours.person): ("max_rows",)} if plan.rows_price else {}
    sought = dict.fromkeys(search.column for search in plan.searches)
    together = tuple(dict.fromkeys(m.clique for m in selection.earlier if m.clique not in selection.public))
    return Publication(
        release=spec.release,
        release_id=work.release_id,
        date=work.date,
        part=work.occasion.part,
        layout=layout,
        synthetic=table,
        singles=singles,
        answers=tuple(m for m in selection.answers if m is not None),
        grouping=expansion.grouping,
        merged_below=plan.merged_below,
        model=model,
        statistics=statistics,
        guarantee=guarantee,
        events=tuple(_described(e.question, e.event) for e in work.journal.entries),
        structure=plan.structure,
        cliques=selection.cliques,
        budget={
            "epsilon": float(plan.epsilon),
            "delta": float(plan.spent_delta),
            "noise": plan.noise,
            "split": {
                "domain": float(shares.domain),
                "one_way": float(shares.one_way),
                "structure": float(shares.structure),
                "marginals": float(shares.marginals),
            },
        },
        formats=spec.publish.formats,
        lost=tuple(c for c, m in zip(selection.cliques, selection.answers, strict=True) if m is None),
        versions={p: _version(p) for p in _PACKAGES} | {"python": ".".join(map(str, sys.version_info[:3]))},
        reused=None if reused is None else replace(reused, cliques=together),
        nameless=None if plan.neighbours.person is None else plan.neighbours.nameless,
        found=person
        | {c: (*person.get(c, ()), *(s.find for s in plan.searches if s.column == c)) for c in sought},
        constraints=ways_of(spec.rules(), layout),
        known=known,
        public=None if use is None else replace(use, cliques=selection.public),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _described(question: object, event: events.Event) -> dict[str, object]:
    assert isinstance(question, dict)
    recorded = events.to_json(event)  # type: ignore[arg-type]
    candidates = question.get("candidates")
    bounds = {
        "l1": "L1 {}",
        "l2_squared": "squared L2 {}",
        "sensitivity": "each score {}",
        "partitions": "1 in each of {} numbers",
    }
    sensitivity = next(text.format(recorded[key]) for key, text in bounds.items() if key in recorded)
    return {
        "question": question["ask"] if question.get("columns") != [] else "count",
        "columns": [question["column"]] if "column" in question else question.get("columns"),
        "merged_values": "grouping" in question,
        "candidates": candidates["number"] if isinstance(candidates, dict) else None,
        "mechanism": recorded["mechanism"],
        "scale": recorded.get("scale", recorded.get("sigma")),
        "sensitivity": sensitivity,
        "epsilon": None if event.epsilon is None else float_up(event.epsilon),
        "rho": float_up(event.rho),
        "delta": float_up(event.delta),
    }


def write(work: Work, publication: Publication) -> None:
    """Write the bundle beside its place, where nobody takes it for one."""
    public = work.partial / "public"
    shutil.rmtree(public, ignore_errors=True)
    public.mkdir()
    write_public(public, publication)


def publish(work: Work) -> None:
    """Show the bundle whole, once it is settled; one that is in its place stays as it is."""
    if not work.published:
        commit(work.partial, work.final)
