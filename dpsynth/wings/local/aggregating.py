"""Aggregation of reports to a release. The steps stand in order, once, in ``aggregate``.

    reports -> debiased answers -> held answers -> model -> synthetic table -> verdict -> statistics -> bundle
    -> ledger

The steps after the answers are those of ``dpsynth.pipeline.spine``.

Invariant: everything here is public: there is no curator, no private table and no journal, and the ledger
gets an entry without a charge. Each respondent has borne the contract's epsilon already.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from math import sqrt
from pathlib import Path

import numpy as np

from dpsynth.accounting.amount import Amount, float_up
from dpsynth.accounting.calibration import RANDOMISED
from dpsynth.accounting.composition import NOTHING
from dpsynth.accounting.events import LOCAL_REPORTS, Guarantee
from dpsynth.accounting.measures import PURE
from dpsynth.bundle import Publication, commit, write_public
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique, Compression, Domain
from dpsynth.columns.measurement import CombinedCounts, Measurement, OwnAnswer
from dpsynth.config import CompiledSpec, Spec
from dpsynth.errors import ConfigError
from dpsynth.ledger.balance import Reservation
from dpsynth.model import Expansion, Fit, Triangulation, estimate
from dpsynth.model.denoising import outside, smoothed
from dpsynth.model.factor import Array
from dpsynth.model.least_squares import centred
from dpsynth.model.reused_answers import ReusedAnswers
from dpsynth.pipeline.generating import fit_model, row_source, sample_rows, spread_over_values, tabulate
from dpsynth.pipeline.measuring import Answers, Measured
from dpsynth.pipeline.outputs import Synthesis, software, views_in
from dpsynth.pipeline.pausing import judge
from dpsynth.pipeline.release_run import alone_in, check_outputs, make_partial, partial_of
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.steps import RunStep, Step, Steps, plainly
from dpsynth.strategy.strategy import Selection
from dpsynth.wings.local.collecting import contract_for
from dpsynth.wings.local.collection import Collection
from dpsynth.wings.local.contract import Contract
from dpsynth.wings.local.estimates import LocalAnswers, local_answers
from dpsynth.wings.local.randomisers import log_above
from dpsynth.wings.local.reports import Tally, read_folder


def aggregate(
    spec: Spec, reports: Path, outputs: Path = Path("outputs"), *, run_step: RunStep = plainly
) -> Release:
    """Make a release from the reports of respondents, under trust: local.

    Args:
        spec: the contract's config.
        reports: folder of reports.
        outputs: folder under which ``<release>/<release id>`` appears.
        run_step: runs a step.

    Raises:
        ConfigError: the config is not of the local model, or the ledger can't be used.
        SourceError: there are too few reports.
        DpsynthError: the folder of reports can't be read.
    """
    step = Steps(run_step)
    collected = step(Step.READ_REPORTS, read_reports, spec, reports)
    rng = np.random.default_rng(collected.seed)
    measured = step(Step.HOLD_ANSWERS, hold, collected)
    compiled, layout = collected.compiled, collected.compiled.layout
    fit = step(Step.FIT, fit_model, compiled, layout, collected.max_cells, measured)
    fitted = step(Step.SPREAD, spread_over_values, compiled, layout, measured, fit, collected.answers)
    place = step(Step.BEGIN_BUNDLE, begun, spec, outputs)
    drawn = step(Step.SAMPLE, sample_rows, compiled, fitted, place.partial / "public", rng)
    verdict = step(Step.JUDGE, judge, compiled, fitted, drawn)
    statistics = step(Step.TABULATE, tabulate, compiled, fitted, rng)
    synthesis = Synthesis(fitted, drawn, statistics, collected.guarantee, verdict=verdict)
    step(Step.WRITE, write_local, collected, place, synthesis)
    step(Step.ENTER, enter, collected, place)
    step(Step.PUBLISH, show, place)
    titles = {t.title: t for t in statistics}
    return Release(
        place.release_id,
        place.final,
        collected.guarantee,
        drawn,
        titles,
        (),
        collection=collected.collection,
        verdict=verdict,
    )


UNIT = "one respondent: the whole record that a report is made from"
_CELL_BYTES = 8


@dataclass(frozen=True, eq=False)
class Aggregated:
    """The contract, the reports and the debiased answers of a collection."""

    contract: Contract
    tally: Tally
    answers: LocalAnswers

    @property
    def compiled(self) -> CompiledSpec:
        return self.contract.compiled

    @property
    def spec(self) -> Spec:
        return self.compiled.spec

    @property
    def max_cells(self) -> int:
        asked = self.spec.structure.max_model_mb
        return HELD_CELLS if asked is None else int(asked * 1_000_000 / _CELL_BYTES)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of every respondent, under exchange of her record."""
        return Guarantee(float_up(self.contract.epsilon), 0.0, None, UNIT, "replace_one", "local")

    @property
    def collection(self) -> Collection:
        return Collection.of(self.contract, self.tally, self.answers)

    @property
    def seed(self) -> int:
        """Seed of post-processing: the config's, or one that follows from the reports."""
        if self.spec.sample.seed is not None:
            return self.spec.sample.seed
        return int(self.digest[:16], 16)

    @property
    def digest(self) -> str:
        """SHA-256 of the contract and of the debiased answers."""
        facts = [self.contract.digest, self.tally.reports]
        numbers = [[a.clique, a.reports, np.rint(a.values).tolist()] for a in self.answers.answers]
        return sha256(json.dumps([facts, numbers]).encode()).hexdigest()


def read_reports(spec: Spec, folder: Path) -> Aggregated:
    """The reports of a folder, debiased.

    Raises:
        ConfigError: the config is not of the local model, or has no contract.
        SourceError: there are too few reports of the contract.
        DpsynthError: the folder can't be read.
    """
    contract = contract_for(spec)
    tally = read_folder(folder, contract)
    return Aggregated(contract, tally, local_answers(contract, tally))


def hold(collected: Aggregated) -> Measured:
    """All answers as the model takes them: single columns reconciled, and the pairs that it holds.

    Raises:
        ConfigError: the model would be too large for a clique that the config lists.
    """
    answers, domain = collected.answers, collected.contract.domain
    asked = [answer.measurement for answer in answers.answers]
    alone = {m.clique for m in asked if len(m.clique) == 1}
    joint = [m for m in asked if len(m.clique) > 1]
    related = {c for m in joint for c in m.clique}
    combined = [
        _combined(collected, column, smooth=column.name not in related)
        for column in collected.compiled.columns
    ]
    singles = (answers.total, *combined)
    expansion = Expansion(
        domain,
        Compression({}),
        singles,
        {c.name: len(c.codec.labels) for c in collected.compiled.columns if c.codec.continuous},
        {c.name: len(c.codec.labels) for c in collected.compiled.columns},
    )
    listed = collected.spec.structure.method == "fixed"
    selection = held_answers(
        domain, joint, estimate(domain, singles), listed=listed, max_cells=collected.max_cells
    )
    wide = next((clique for clique in selection.beside if len(clique) > 2), None)
    if wide is not None:
        raise ConfigError(
            f"The model has no room for {' with '.join(wide)} of structure.cliques or "
            "publish.statistics. Raise structure.max_model_mb, or ask for fewer columns together."
        )
    own = tuple(m for m in asked if m.clique in alone)
    first: tuple[OwnAnswer, ...] = (answers.total, *own)
    rest = tuple(c for c in combined if c.clique not in alone)
    counts = Answers(first, (), (), ReusedAnswers(domain), None, combined=rest)
    return Measured(counts, expansion, selection)


def _combined(collected: Aggregated, column: Column, *, smooth: bool) -> CombinedCounts:
    """The reconciled counts of a column; numbers are evened out over neighbours that noise sets apart."""
    answers, clique = collected.answers, (column.name,)
    counts, variance = answers.marginal(clique), answers.cell_variance(clique)
    if smooth and column.codec.continuous and variance > 0:
        numbers = len(column.codec.labels)
        steps = smoothed(counts[:numbers], variance)
        counts = np.concatenate([np.where(outside(steps, variance), 0.0, steps), counts[numbers:]])
    return CombinedCounts(clique, np.rint(counts).astype(np.int64), RANDOMISED, sqrt(variance))


@dataclass(frozen=True)
class Place:
    """The place of a release of reports.

    Attributes:
        release_id: the permanent name of the release.
        date: ISO date.
        partial, final: its folder before it is complete, and when it is.
    """

    release_id: str
    date: str
    partial: Path
    final: Path


def begun(spec: Spec, outputs: Path) -> Place:
    """A new place, with an empty partial folder."""
    now, folder = datetime.now(UTC), outputs / spec.release
    release_id = f"{now:%Y%m%d}-{secrets.token_hex(4)}"
    check_outputs(outputs, ())
    with alone_in(folder):
        partial = partial_of(folder, release_id)
        make_partial(partial)
        (partial / "private").mkdir(mode=0o700)
    return Place(release_id, now.date().isoformat(), partial, folder / release_id)


def write_local(collected: Aggregated, place: Place, synthesis: Synthesis) -> None:
    """Write the bundle to the partial folder, where the synthetic table is already."""
    write_public(place.partial / "public", _publication(collected, place, synthesis))


def enter(collected: Aggregated, place: Place) -> None:
    """Enter the release in the ledger, at no charge.

    Raises:
        ConfigError: the ledger can't be used, or has an account of this name for a curator's table.
    """
    from dpsynth.ledger.ledger import Ledger

    spec = collected.spec
    ledger = Ledger(spec.ledger.url, spec.ledger.head)
    dataset = spec.ledger.dataset or spec.release
    account = ledger.balance(dataset)
    if account is not None and account.unit != UNIT:
        raise ConfigError(
            f"ledger.dataset: '{dataset}' is the account of a curator's table in the ledger {ledger.name}. "
            "Give the collection an account of its own."
        )
    holder = secrets.token_hex(16)
    entry = Reservation(
        release_id=place.release_id,
        dataset=dataset,
        unit=UNIT,
        neighbours="replace_one",
        cap=Amount(Fraction(spec.privacy.epsilon)),
        filter=None,
        suits=PURE,
        cost=NOTHING,
        release=spec.release,
        spec=collected.contract.digest,
        holder=holder,
        cap_declared=False,
    )
    ledger.reserve(entry)
    record: dict[str, object] = {
        "mechanism": LOCAL_REPORTS,
        "epsilon_of_each": str(collected.contract.epsilon),
        "reports": collected.tally.reports,
    }
    ledger.settle(place.release_id, NOTHING, [record], holder, collected.digest)


def show(place: Place) -> None:
    """Put the bundle in place."""
    commit(place.partial, place.final)


def _publication(collected: Aggregated, place: Place, synthesis: Synthesis) -> Publication:
    spec, fitted, table = collected.spec, synthesis.fitted, synthesis.table
    selection = fitted.measured.selection
    asked = [answer.measurement for answer in collected.answers.answers]
    return Publication(
        release=spec.release,
        release_id=place.release_id,
        date=place.date,
        part=None,
        layout=fitted.layout,
        synthetic=table.files,
        singles=(collected.answers.total, *(m for m in asked if len(m.clique) == 1)),
        answers=tuple(m for m in asked if len(m.clique) > 1),
        compression=Compression({}),
        merged_below=0.0,
        rows=row_source(collected.compiled, fitted),
        statistics=synthesis.statistics,
        verdict=synthesis.verdict,
        guarantee=synthesis.guarantee,
        events=tuple(_described(collected)),
        structure=spec.structure.method,
        cliques=selection.cliques,
        budget={"epsilon": float(spec.privacy.epsilon), "delta": 0.0, "trust": "local"},
        formats=spec.publish.formats,
        lost=(),
        versions=software(),
        collection=collected.collection,
        minimum_set_size=spec.publish.minimum_set_size,
        terms=spec.publish.terms,
        provenance=spec.provenance,
        views=views_in(spec.publish, fitted.layout, table, place.release_id),
    )


def _described(collected: Aggregated) -> list[Mapping[str, object]]:
    """The questions of a report; with one question a report, each costs the whole of its epsilon."""
    return [
        {
            "question": "local report",
            "columns": list(question.columns),
            "merged_values": False,
            "candidates": None,
            "mechanism": question.randomiser,
            "scale": question.standard_deviation,
            "sensitivity": f"odds of an answer at most {float(question.odds):.6g}",
            "epsilon": float_up(log_above(question.odds)),
            "rho": None,
            "delta": 0.0,
        }
        for question in collected.collection.questions
    ]


HELD_CELLS = 125_000
"""Most cells of the model, if the config states no bound."""
LEAST_SIGNAL = 0.5
"""Least share of signal in the observed relation of a pair that is held."""
_MOST_TRIED = 400
_RELATIONS = np.concatenate([[0.0], np.geomspace(0.003, 1.0, 12)])
"""The shares of the respondents that a relation may move."""
_ROUNDS = 60
_WITHOUT = 9.0
"""Pairs without a relation that are taken to have been seen beforehand."""


def held_answers(
    domain: Domain, answers: Sequence[Measurement], start: Fit, listed: bool, max_cells: int
) -> Selection:
    """The selection of answered cliques, those that the model can't hold beside it.

    Respondents are asked everything at once, so many pairs are answered that are worth nothing: their noise
    exceeds their relation. A pair's answer improves an estimate that takes its columns to be independent if
    the squared relation is above its squared noise; the squared distance exceeds the squared relation by that
    noise, so it must be twice the noise (Akaike's criterion). That alone would hold a sixth of pairs of pure
    noise, and the table would be worse than one of independent columns. So most of the distance must be
    relation, besides, as far as one can tell: how frequent relations of which strength are is learnt from all
    answers by empirical Bayes, with a prior that leans to none (Stephens 2016). Such pairs are held by the
    model in the order of what they improve, as far as its size allows. The synthetic table is refined to the
    others.

    Args:
        domain: the columns.
        answers: noisy marginals of several columns.
        start: a fit of the single columns, which are independent in it.
        listed: True if the config lists the cliques, which are all held then.
        max_cells: largest number of cells of the model.
    """
    squares = np.array([_square(answer, start) for answer in answers])
    freedoms = np.array([np.prod([size - 1.0 for size in a.values.shape]) for a in answers])
    cells = np.array([a.values.size for a in answers])
    variances = np.array([a.variance for a in answers])
    found = signals(squares, freedoms, variances, start.model.total / cells) if answers else np.zeros(0)
    # The approximate decrease of the squared L1 error of each clique by its answer.
    gains = (squares - 2 * freedoms * variances) * cells
    clear = (gains > 0) & (found > LEAST_SIGNAL)
    worth = [int(i) for i in np.argsort(-gains, kind="stable") if listed or clear[i]]
    tree = Triangulation.of(domain, [(c,) for c in domain.columns])
    beside: list[Clique] = []
    for tried, answer in enumerate(answers[i] for i in worth):
        if tried >= _MOST_TRIED or tree.cells_with(answer.clique) > max_cells:
            beside.append(answer.clique)
            continue
        tree = tree.with_clique(answer.clique)
    return Selection(
        tuple(answers[i].clique for i in worth), tuple(answers[i] for i in worth), start, beside=tuple(beside)
    )


def signals(squares: Array, freedoms: Array, variances: Array, cell: Array) -> Array:
    """The share of signal in each observed relation, float64[answers].

    Args:
        squares: float64[answers], sums of squares of the observed relations.
        freedoms: float64[answers], their degrees of freedom.
        variances: float64[answers], the variance of the noise of a cell.
        cell: float64[answers], respondents of a cell on average.
    """
    prior = np.square(np.outer(_RELATIONS, cell))
    total = prior + variances
    likelihood = -0.5 * (freedoms * np.log(total) + squares / total)
    likelihood = np.exp(likelihood - likelihood.max(axis=0))
    frequencies = np.full(len(_RELATIONS), 1 / len(_RELATIONS))
    for _ in range(_ROUNDS):
        kinds = frequencies[:, None] * likelihood
        kinds /= kinds.sum(axis=0)
        frequencies = kinds.sum(axis=1)
        frequencies[0] += _WITHOUT
        frequencies /= frequencies.sum()
    return np.asarray((kinds * prior / total).sum(axis=0))


def _square(answer: Measurement, start: Fit) -> float:
    """The sum of squares of an answer's relation beyond independent columns."""
    return float(np.square(centred(answer.values - start.model.marginal(answer.clique))).sum())
