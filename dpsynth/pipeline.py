"""The spine: the steps of a release, in order, once.

    config -> spec -> plan -> reservation -> curator(private table, budget, journal)
                                                 |  noisy answers only
    one-way marginals -> merged values -> structure, marginals  SELECT, MEASURE
                                                 |
    model -> synthetic table, statistics -> public bundle       GENERATE: post-processing

The same sequence runs plainly and as Prefect tasks: ``run`` is handed the function that
runs a step.

Invariant: from the moment the table may be opened, the ledger holds a reservation of the
whole budget; it is let go only when the journal shows that nothing was asked.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dpsynth.accounting import events
from dpsynth.accounting.accountants import compose
from dpsynth.accounting.balance import Reservation
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.rounding import float_up
from dpsynth.curator import Curator, Journal, Terms, load_table, read_batches
from dpsynth.domain.column import domain_of
from dpsynth.domain.domain import Domain
from dpsynth.domain.measurement import Measurement
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, Interrupted, StepFailed
from dpsynth.model import (
    Expansion,
    Fit,
    LeastSquares,
    MarkovRandomField,
    estimate,
    estimated_total,
    refits,
    sample,
)
from dpsynth.progress import Advance, showing
from dpsynth.publish import Publication, StatisticTable, commit, compute_statistics, write_public
from dpsynth.released import Release
from dpsynth.spec import Spec
from dpsynth.spec.plan import Plan, make_plan
from dpsynth.spec.steps import one_way_weights
from dpsynth.structure import Strategy, strategy_of
from dpsynth.structure.rare import rare_groups
from dpsynth.structure.strategy import Problem, Selection

if TYPE_CHECKING:
    from dpsynth.accounting.ledger import Ledger

T = TypeVar("T")

REPLICATES = 12
_PACKAGES = ("dpsynth", "opendp", "numpy", "pyarrow")


class RunStep(Protocol):
    """Runs one named step of a release and returns what it returns."""

    def __call__(self, name: str, action: Callable[[], T]) -> T:
        """Run ``action`` under a public name."""
        ...


def guarded(name: str, action: Callable[[Advance], T]) -> T:
    """Run a step so that only errors of our own get out, and none that may quote a cell.

    Details of any other error are written to a file of mode 0600 if DPSYNTH_DEBUG is set.
    """
    try:
        with showing(name) as advance:
            return action(advance)
    except DpsynthError as error:
        error.__cause__ = error.__context__ = None
        raise
    except Exception as error:
        failure: BaseException = StepFailed.of(
            name, error, _details() if os.environ.get("DPSYNTH_DEBUG") else None
        )
    except BaseException:
        # A signal; or a panic in a library, whose text may quote a cell too.
        failure = KeyboardInterrupt()
    raise failure


def _details() -> str:
    """Write the traceback under way to a new file that its owner alone can read."""
    descriptor, path = tempfile.mkstemp(prefix="dpsynth-debug-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(traceback.format_exc())
    return path


def plainly(name: str, action: Callable[[], T]) -> T:
    """Run a step as a plain function."""
    del name
    return action()


@dataclass
class Work:
    """One release under way: where it stands on disk and in the ledger."""

    release_id: str
    final: Path
    partial: Path
    ledger: Ledger
    journal: Journal

    @property
    def date(self) -> str:
        """The ISO date on which the release began."""
        return str(self.journal.header["date"])

    @property
    def rng(self) -> np.random.Generator:
        """The generator for post-processing; a resumed release draws the same rows again."""
        return np.random.default_rng(int(str(self.journal.header["seed"])))

    @property
    def published(self) -> bool:
        """Whether the bundle is whole and in place."""
        return self.final.exists()


def run(
    spec: Spec,
    *,
    outputs: str | Path = "outputs",
    resume: str | None = None,
    run_step: RunStep = plainly,
) -> Release:
    """Run a release from its spec to its bundle.

    Args:
        spec: the checked config.
        outputs: folder under which ``<release>/<release id>`` appears.
        resume: id of an interrupted release to finish.
        run_step: how to run a step; plainly, or as a task of an orchestrator.

    Raises:
        ConfigError, BudgetRefused, SourceError: before anything is charged.
        Interrupted: stopped by a signal; ``resume`` finishes it.
        StepFailed: an unforeseen error, its details withheld.
    """

    def step(name: str, action: Callable[[Advance], T]) -> T:
        return run_step(name, lambda: guarded(name, action))

    strategy = strategy_of(spec.structure.method, spec.structure.cliques or ())
    domain = domain_of(spec.table_columns())

    plan = step("plan", lambda _: make_plan(spec, strategy))
    work = step("reserve budget", lambda _: reserve(spec, plan, Path(outputs), resume))
    with _ending(work):
        rng = work.rng
        curator = step("open the table", lambda _: open_door(spec, plan, work))
        singles = step("measure single columns", lambda _: measure_singles(curator, domain, plan))
        expansion = step("merge rare values", lambda _: merge_rare(spec, plan, domain, singles))
        selection = step(
            "choose and measure marginals", lambda _: select(strategy, curator, expansion, spec, plan)
        )
        answers = tuple(m for m in selection.answers if m is not None)
        expansion = replace(expansion, singles=(*expansion.singles, *selection.singles))
        guarantee = step("compose the guarantee", lambda _: composed(plan, work.journal))
        fitted = step("fit the model", lambda advance: fit(expansion, answers, selection, advance))
        model = step("spread groups over values", lambda _: expansion.model(fitted.model))
        table = step("sample rows", lambda _: sampled(spec, model, singles, rng))
        statistics = step(
            "compute statistics", lambda _: tabulated(spec, model, expansion, fitted, answers, rng)
        )
        if not work.published:
            publication = publication_of(
                spec, plan, work, table, expansion, selection, model, statistics, guarantee
            )
            step("publish the bundle", lambda _: publish(work, publication))
        step("settle the ledger", lambda _: settle(work, plan, guarantee))
    titles = {t.title: t for t in statistics}
    return Release(work.release_id, work.final, guarantee, table, titles)


class _ending:
    """Decides what becomes of a reservation when a step fails."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        work = self._work
        nothing_asked = not work.journal.entries
        work.journal.close()
        if error is None:
            return
        if nothing_asked and isinstance(error, Exception):
            work.ledger.abandon(work.release_id, Fraction(0), Fraction(0), [])
            _discard(work.partial)
            return
        rest = f"Its budget stays reserved; finish it with: --resume {work.release_id}"
        if not isinstance(error, Exception):
            raise Interrupted(f"Release {work.release_id} was interrupted. {rest}") from None
        if isinstance(error, DpsynthError):
            error.args = (f"{error} Release {work.release_id} is not finished. {rest}",)


def _discard(partial: Path) -> None:
    """Remove the folder of a release that asked nothing, and the one above if nothing else is there."""
    shutil.rmtree(partial, ignore_errors=True)
    with suppress(OSError):
        partial.parent.rmdir()


def reserve(spec: Spec, plan: Plan, outputs: Path, resume: str | None) -> Work:
    """Start or find the journal, then reserve the whole budget in the ledger.

    The journal comes first: a reservation without one means that it was lost, and then
    nobody can say what was drawn.
    """
    from dpsynth.accounting.ledger import Ledger

    release_id = resume or f"{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(4)}"
    final = outputs / spec.release / release_id
    partial = outputs / spec.release / f".{release_id}.partial"
    ledger = Ledger(spec.ledger.url)
    if resume is None:
        header: dict[str, object] = {
            "release": spec.release,
            "id": release_id,
            "spec": spec.fingerprint(),
            "date": datetime.now(UTC).date().isoformat(),
            "seed": secrets.randbits(64) if spec.sample.seed is None else spec.sample.seed,
            "key": secrets.token_hex(32),
        }
        journal = Journal.create(partial / "private" / "journal.jsonl", header)
    else:
        journal = _found(spec, final, partial, release_id)
    try:
        ledger.reserve(_reservation(spec, plan, release_id))
    except (BudgetRefused, ConfigError):
        journal.close()
        if resume is None:
            _discard(partial)
        raise
    journal.sealed = ledger.state(release_id) == "closed"
    return Work(release_id, final, partial, ledger, journal)


def _found(spec: Spec, final: Path, partial: Path, release_id: str) -> Journal:
    """The journal of a release that was begun, checked against the spec."""
    if not release_id.replace("-", "").isalnum():
        raise ConfigError(f"'{release_id}' is no release id: one looks like 20300131-0a1b2c3d.")
    folder = final if final.exists() else partial
    path = folder / "private" / "journal.jsonl"
    if not path.is_file():
        raise ConfigError(
            f"There is no release {release_id} to resume under {final.parent}: no journal is there. If it "
            "was deleted, what the release reserved stays charged; start a new one."
        )
    journal = Journal.open(path)
    if journal.header["spec"] != spec.fingerprint():
        raise ConfigError(
            f"The config has changed since release {release_id} began, so its answers can't be used with it. "
            "Resume with the config that it began with, or start a new release."
        )
    return journal


def _reservation(spec: Spec, plan: Plan, release_id: str) -> Reservation:
    cap = spec.ledger.cap
    return Reservation(
        release_id=release_id,
        dataset=spec.ledger.dataset,
        unit=plan.neighbours.unit,
        neighbours=plan.neighbours.relation,
        cap_epsilon=Fraction(cap.epsilon),
        cap_delta=Fraction(cap.delta),
        epsilon=plan.epsilon,
        delta=plan.spent_delta,
    )


def open_door(spec: Spec, plan: Plan, work: Work) -> Curator:
    """Read the private table, bound each person's rows, and put a curator before it."""
    columns = spec.table_columns()
    person = plan.neighbours.person
    names = dict.fromkeys([c.name for c in columns] + ([person] if person else []))
    source = spec.source
    if source.path is None or source.format is None:
        raise ConfigError("source.path is missing.")
    key = bytes.fromhex(str(work.journal.header["key"]))
    batches = read_batches(Path(source.path), list(names), source.format, keep_broken=person is None)
    table = load_table(batches, columns, plan.neighbours, key)
    return Curator(table, Terms(plan.neighbours, plan.measure, plan.budget, plan.noise), work.journal)


def measure_singles(curator: Curator, domain: Domain, plan: Plan) -> tuple[Measurement, ...]:
    """The total and the marginal of every column."""
    weights = one_way_weights(domain, plan.neighbours)
    last = plan.steps[-1].step == "one_way"
    allowance = curator.remaining if last else plan.budget * plan.shares.one_way
    public = [curator.count(allowance)] if plan.neighbours.rows_public else []
    answers = [*public, *curator.marginals(list(weights), allowance, list(weights.values()))]
    measured = tuple(m for m in answers if m is not None)
    if len(measured) < len(answers):
        raise BudgetRefused(
            "Interruptions used up the budget of this release before its columns were measured."
        )
    return measured


def merge_rare(spec: Spec, plan: Plan, domain: Domain, singles: tuple[Measurement, ...]) -> Expansion:
    """Which values count as one with other columns, and how they are told apart again.

    Columns that a requested statistic pairs with another keep all of their values. Where
    nothing is measured but single columns, there is nothing to merge for. Groups stand beside
    values in the model that comes out: they may take half of its cells.
    """
    paired = {column for pair in plan.wanted for column in pair}
    found = rare_groups(domain, singles, plan.merged_below, paired)
    return Expansion(domain, found, singles).within(plan.max_cells // 2)


def select(strategy: Strategy, curator: Curator, expansion: Expansion, spec: Spec, plan: Plan) -> Selection:
    """What the strategy measures: marginals over groups, where values were merged."""
    grouping = expansion.grouping
    asks = plan.outlined.choices + plan.outlined.errors > 0
    problem = Problem(
        domain=expansion.coarse,
        values=expansion.domain,
        singles=expansion.sums,
        start=estimate(expansion.coarse, expansion.sums),
        workload=spec.workload(),
        wanted=plan.wanted,
        structure=plan.budget * plan.shares.structure if asks else Fraction(0),
        max_cells=plan.max_cells - expansion.cells,
    )
    return strategy.select(curator.grouped(grouping) if grouping.groups else curator, problem)


def composed(plan: Plan, journal: Journal) -> Guarantee:
    """The guarantee that the journal's events add up to, checked against the plan."""
    guarantee = compose((e.event for e in journal.entries), plan.measure, plan.delta, plan.neighbours)
    if guarantee.epsilon > float_up(plan.epsilon) or guarantee.delta > float(plan.spent_delta):
        raise DpsynthError(
            f"The journal {journal.path} adds up to epsilon {guarantee.epsilon:g}, more than the "
            f"{float(plan.epsilon):g} planned. Nothing is published; please report this."
        )
    return guarantee


def fit(expansion: Expansion, answers: Sequence[Measurement], selection: Selection, advance: Advance) -> Fit:
    """Fit the model of groups to all noisy marginals, from where the strategy's own fit ended."""
    limit, known = 1000, [*expansion.sums, *answers]
    return estimate(
        expansion.coarse,
        known,
        prior_rows=selection.prior * estimated_total(known),
        max_iterations=limit,
        start=selection.fit,
        progress=lambda done: advance(done, limit),
    )


def sampled(
    spec: Spec, model: MarkovRandomField, singles: Sequence[Measurement], rng: np.random.Generator
) -> pa.Table:
    """The synthetic table: codes drawn from the model, decoded column by column.

    It has as many rows as the private table if their number is public, else as estimated.
    """
    public = [int(m.values) for m in singles if m.noise == "none"]
    same = public[0] if public else round(model.total)
    rows = same if spec.sample.rows == "same" else spec.sample.rows
    codes = sample(model, rows, rng)
    columns = spec.table_columns()
    return pa.table([c.decode(codes[c.name], rng) for c in columns], names=[c.name for c in columns])


def tabulated(
    spec: Spec,
    model: MarkovRandomField,
    expansion: Expansion,
    fitted: Fit,
    answers: Sequence[Measurement],
    rng: np.random.Generator,
) -> tuple[StatisticTable, ...]:
    """Statistics with standard errors; refits are made only if one needs them."""
    direct = LeastSquares(expansion.domain, expansion.direct(answers))
    requests = spec.publish.statistics
    modelled = any(not direct.covers(r.columns) for r in requests)
    replicates = refits(fitted, answers, REPLICATES, rng, expansion) if modelled else ()
    return compute_statistics(requests, spec.table_columns(), direct, model, replicates)


def publication_of(
    spec: Spec,
    plan: Plan,
    work: Work,
    table: pa.Table,
    expansion: Expansion,
    selection: Selection,
    model: MarkovRandomField,
    statistics: tuple[StatisticTable, ...],
    guarantee: Guarantee,
) -> Publication:
    """Everything that is handed to the public, in one value."""
    shares = plan.shares
    return Publication(
        release=spec.release,
        release_id=work.release_id,
        date=work.date,
        columns=spec.table_columns(),
        synthetic=table,
        singles=expansion.singles,
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
                "one_way": float(shares.one_way),
                "structure": float(shares.structure),
                "marginals": float(shares.marginals),
            },
        },
        formats=spec.publish.formats,
        lost=tuple(c for c, m in zip(selection.cliques, selection.answers, strict=True) if m is None),
        versions={p: _version(p) for p in _PACKAGES} | {"python": ".".join(map(str, sys.version_info[:3]))},
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
    bounds = {"l1": "L1 {}", "l2_squared": "squared L2 {}", "sensitivity": "each score {}"}
    sensitivity = next(text.format(recorded[key]) for key, text in bounds.items() if key in recorded)
    return {
        "question": question["ask"] if question.get("columns") != [] else "count",
        "columns": question.get("columns"),
        "merged_values": "grouping" in question,
        "candidates": candidates["number"] if isinstance(candidates, dict) else None,
        "mechanism": recorded["mechanism"],
        "scale": recorded.get("scale", recorded.get("sigma")),
        "sensitivity": sensitivity,
        "epsilon": None if event.epsilon is None else float_up(event.epsilon),
        "rho": float_up(event.rho),
    }


def publish(work: Work, publication: Publication) -> None:
    """Write the bundle beside its place and show it whole."""
    public = work.partial / "public"
    shutil.rmtree(public, ignore_errors=True)
    public.mkdir()
    write_public(public, publication)
    commit(work.partial, work.final)


def settle(work: Work, plan: Plan, guarantee: Guarantee) -> None:
    """Close the release in the ledger at what its journal adds up to."""
    spent = min(Fraction(guarantee.epsilon), plan.epsilon)
    recorded = [events.to_json(e.event) for e in work.journal.entries]
    work.ledger.settle(work.release_id, spent, plan.spent_delta, recorded)
