"""Outputs of a release: the publication as one value, written to a partial folder, then put in place.

Invariant: every field is a public fact, an answer, or made of these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol, get_args

import pyarrow as pa

from dpsynth.accounting import events
from dpsynth.accounting.amount import float_up
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.neighbours import Weighting
from dpsynth.bundle import Publication, StatisticTable, commit, write_public
from dpsynth.bundle.publication import BundleAudience, Database, Views
from dpsynth.bundle.row_files import SyntheticTable
from dpsynth.columns.finished_table import CodedRows
from dpsynth.columns.layout import Layout
from dpsynth.config import Spec
from dpsynth.config.publish import Publish
from dpsynth.pipeline.generating import FittedModel, row_source, sampled_units
from dpsynth.pipeline.inputs import Inputs
from dpsynth.pipeline.release_run import ReleaseRun, alone_in, charges
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.steps import Tell
from dpsynth.plan.plan import Plan
from dpsynth.statistics.cut_off import CutOff
from dpsynth.statistics.estimates import Unbiased
from dpsynth.statistics.exam import Exam
from dpsynth.statistics.single_columns import DataWarning
from dpsynth.statistics.verdict import NO_VERDICT, Verdict
from dpsynth.wing import Point

_PACKAGES = ("dpsynth", "opendp", "numpy", "pyarrow")


@dataclass(frozen=True, eq=False)
class Synthesis:
    """The products of a release's answers.

    Attributes:
        table: the synthetic rows, written already.
        warnings: signs in the noisy single columns that something was misread.
        cut: the rows that the contribution bound cuts off; None if it was not asked.
    """

    fitted: FittedModel
    table: SyntheticTable
    statistics: tuple[StatisticTable, ...]
    guarantee: Guarantee
    warnings: tuple[DataWarning, ...] = ()
    exam: Exam | None = None
    verdict: Verdict = NO_VERDICT
    cut: CutOff | None = None


class MakeViews(Protocol):
    """Makes the views that are asked for, from the synthetic table alone."""

    def __call__(
        self,
        publish: Publish,
        layout: Layout,
        coded: CodedRows,
        table: Callable[[], pa.Table],
        release_id: str,
    ) -> Views | None:
        """The views."""


VIEWS: Point[MakeViews] = Point("views")

DATABASE: Point[Callable[[Spec, Layout, SyntheticTable, Exam | None, Unbiased], Database]] = Point(
    "tables of a bundle", "tables"
)
"""Splits the synthetic rows into the linked tables that they stand for."""

PAGE_OF_RELEASES: Point[Callable[[Path], None]] = Point("page of releases")
"""Writes the page of all releases of a name, into the folder that holds a folder for each."""


def views_in(publish: Publish, layout: Layout, table: SyntheticTable, release_id: str) -> Views | None:
    """The views in the form of older disclosure control; None without any."""
    make = VIEWS.filled() if publish.views else None
    return None if make is None else make(publish, layout, table.coded, lambda: table.table, release_id)


def publication_of(inputs: Inputs, run: ReleaseRun, plan: Plan, synthesis: Synthesis) -> Publication:
    """The publication: all that a release publishes."""
    fitted, measured, table = synthesis.fitted, synthesis.fitted.measured, synthesis.table
    answers, selection = measured.answers, measured.selection
    together = tuple(dict.fromkeys(m.clique for m in selection.earlier if m.clique not in selection.public))
    public = inputs.public_table
    use = None if public is None else public.use(answers.evidence, answers.rows)
    split = None if inputs.spec.tables is None else DATABASE.needed("tables")
    epsilons = {tier.audience: float_up(tier.epsilon) for tier in plan.tiers}
    audience = BundleAudience(plan.tier.audience, epsilons, answers.tiers.joint)
    return Publication(
        release=inputs.spec.release,
        release_id=run.release_id,
        date=run.date,
        part=run.occasion.part,
        layout=fitted.layout,
        synthetic=table.files,
        singles=answers.own,
        answers=tuple(measured.joint),
        compression=measured.expansion.compression,
        merged_below=plan.merged_below,
        rows=row_source(inputs.compiled, fitted),
        statistics=synthesis.statistics,
        guarantee=synthesis.guarantee,
        events=tuple(_described(e.question, e.event) for e in charges(plan, run.journal)),
        structure=plan.structure,
        cliques=selection.cliques,
        budget=_budget(plan),
        formats=inputs.spec.publish.formats,
        lost=tuple(c for c, m in zip(selection.cliques, selection.answers, strict=True) if m is None),
        versions=software(),
        reused=None if answers.reused is None else replace(answers.reused, cliques=together),
        unit_changed=run.unit_changed,
        nameless=None if plan.neighbours.person is None else plan.neighbours.nameless,
        found=_found(plan),
        public_marginals=inputs.compiled.public_marginals,
        public_table=None if use is None else replace(use, cliques=selection.public),
        rehearsal=run.rehearsal,
        form=None if inputs.spec.source.path is None else asdict(inputs.spec.source.form),
        rows_on_trust=inputs.spec.source.row_by_row,
        warnings=synthesis.warnings,
        exam=synthesis.exam,
        verdict=synthesis.verdict,
        cut=synthesis.cut,
        sums=answers.sums,
        finer=answers.finer,
        minimum_set_size=inputs.spec.publish.minimum_set_size,
        terms=inputs.spec.publish.terms,
        views=views_in(inputs.spec.publish, fitted.layout, table, run.release_id),
        database=split(inputs.spec, fitted.layout, table, synthesis.exam, fitted.direct) if split else None,
        signed_by=None if inputs.signing_key is None else inputs.signing_key.public,
        sampled=sampled_units(inputs.spec),
        audience=audience if audience.name else None,
        weights=(*measured.by_weights, *measured.surplus),
        history=() if measured.history is None else measured.history.described,
        provenance=inputs.spec.provenance,
    )


def _budget(plan: Plan) -> dict[str, object]:
    shares = plan.shares
    return {
        "epsilon": float(plan.tier.epsilon),
        "delta": float(plan.tier.spent_delta),
        "noise": plan.noise,
        "split": {
            "domain": float(shares.domain),
            "one_way": float(shares.one_way),
            **({"statistics": float(shares.statistics)} if shares.statistics else {}),
            "structure": float(shares.structure),
            "marginals": float(shares.marginals),
            "exam": float(shares.exam),
            **({"cutoff": float(shares.cutoff)} if shares.cutoff else {}),
            **({"history": float(shares.history)} if shares.history else {}),
        },
    }


def _found(plan: Plan) -> dict[str, tuple[str, ...]]:
    first, person = plan.first, str(plan.neighbours.person)
    found: dict[str, tuple[str, ...]] = {person: ("max_rows",)} if first.bound_price else {}
    for search in first.searches:
        found[search.column] = (*found.get(search.column, ()), search.find)
    return found


def software() -> dict[str, str]:
    """Names and versions of the software that runs."""
    return {p: _version(p) for p in _PACKAGES} | {"python": ".".join(map(str, sys.version_info[:3]))}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _described(question: object, event: events.Event) -> dict[str, object]:
    assert isinstance(question, dict)
    recorded = events.to_json(event)  # type: ignore[arg-type]
    candidates = question.get("candidates")
    asked = question["ask"] if question.get("columns") != [] else "count"
    bounds = {
        "l1": "L1 {}",
        "l2_squared": "squared L2 {}",
        "sensitivity": "each score {}",
        "partitions": "1 in each of {} numbers",
    }
    sensitivity = next(text.format(recorded[key]) for key, text in bounds.items() if key in recorded)
    return {
        "question": next((f"{asked} by {way}" for way in get_args(Weighting) if way in question), asked),
        "columns": [question["column"]] if "column" in question else question.get("columns"),
        "merged_values": "grouping" in question,
        "candidates": candidates["number"] if isinstance(candidates, dict) else None,
        "mechanism": recorded["mechanism"],
        "parameters": {key: value for key, value in recorded.items() if key != "mechanism"},
        "scale": recorded.get("scale", recorded.get("sigma")),
        "sensitivity": sensitivity,
        "epsilon": None if event.epsilon is None else float_up(event.epsilon),
        "rho": float_up(event.rho),
        "delta": float_up(event.delta),
    }


def release_of(run: ReleaseRun, plan: Plan, synthesis: Synthesis) -> Release:
    """The result of a release, or of one of its audiences, for callers in Python."""
    return Release(
        run.release_id,
        run.final,
        synthesis.guarantee,
        synthesis.table,
        {table.title: table for table in synthesis.statistics},
        plan.steps,
        synthesis.exam,
        synthesis.warnings,
        audience=plan.tier.audience,
        verdict=synthesis.verdict,
    )


def public_of(run: ReleaseRun, plan: Plan) -> Path:
    """The public folder of the partial bundle: that of the plan's audience, if it has one."""
    return run.partial / (plan.tier.audience or "public")


def write(inputs: Inputs, run: ReleaseRun, plan: Plan, synthesis: Synthesis) -> None:
    """Write the bundle to the partial folder, where it isn't mistaken for a finished one.

    The synthetic table is there already. Each audience has a folder of its own name, in place of ``public``.
    """
    write_public(public_of(run, plan), publication_of(inputs, run, plan, synthesis), inputs.signing_key)


SEAL: Point[Callable[[Path, str, str], str]] = Point("seal of a bundle", "governance")
"""Encrypts the bundles in a partial folder of a release until an instant, and says so."""


def publish(inputs: Inputs, run: ReleaseRun, tell: Tell) -> None:
    """Put the bundle in place after it is settled, sealed under an embargo; one in place stays unchanged.

    The page of the releases beside it is written anew, one run at a time. A release doesn't fail because its
    page can't be written; the next one writes it.
    """
    if not run.published:
        embargo = None if run.rehearsal else inputs.spec.embargo
        if embargo is not None:
            tell(SEAL.needed("embargo")(run.partial, run.release_id, embargo))
        commit(run.partial, run.final)
    write_page = None if run.rehearsal else PAGE_OF_RELEASES.filled()
    if write_page is None:
        return
    folder = run.final.parent
    try:
        with alone_in(folder):
            write_page(folder)
    except OSError as error:
        words = f"The page of all releases in {folder} was not updated: {error.strerror}."
        tell(f"{words} The next release writes it.")
