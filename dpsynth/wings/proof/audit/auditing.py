"""The audit of a config: whole releases of made-up tables, replayed on neighbours and attacked.

Invariant: the private table isn't opened, and no ledger is charged. Every table is made up from the config,
and every ledger is a file of the audit. So all figures are public.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from math import inf
from pathlib import Path
from time import monotonic

import numpy as np
import pyarrow as pa

from dpsynth.config import Spec
from dpsynth.config.source import Source
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.pipeline.reservation import occasion_of
from dpsynth.pipeline.steps import Advance, showing, unshown
from dpsynth.plan.plan import Plan
from dpsynth.wing import Point
from dpsynth.wings.proof.audit.losses import (
    DrawnNoise,
    LowerBound,
    drawn_noise,
    exact_cost,
    lower_bound,
    many_distances,
    transcript_loss,
)
from dpsynth.wings.proof.audit.made_up import MadeUpTable, extreme_pair, made_up, neighbours
from dpsynth.wings.proof.audit.membership import Sight, promising, scored, sight
from dpsynth.wings.proof.audit.replay import Transcript, declared, faults, observe, replay, sensitivity
from dpsynth.wings.proof.loss_pairs import NormalPair, right_at_most

ROWS = 300
"""Default number of made-up rows."""
NEIGHBOURS = 100
"""Default number of neighbours that releases are replayed on."""
RELEASES = 100
"""Default number of releases of each of the two tables that the attackers tell apart."""
LEAST_RELEASES = 12
"""Least number of such releases, other than none: a third of them is for learning."""
_ROUNDING = 1e-9
_FEW = 10
"""One neighbour in so many is of an empty table, and one of a table of one row."""


WRITTEN: Point[Callable[[Spec, Sequence[str], Sequence[Sequence[str]], Path], Spec]] = Point(
    "written tables", "tables"
)
FULLEST: Point[Callable[[Spec], Mapping[str, str]]] = Point("fullest row", "tables")

_Count = Callable[[int], None]
_Replay = tuple[str, Transcript, Transcript | str]
"""A change in words, the transcript of a table, and that of its neighbour or the words of a refusal."""


@dataclass(frozen=True)
class Reached:
    """The moves by neighbours of the answers to one kind of question.

    Attributes:
        ask: the kind of question.
        questions: number of questions of the kind, over all replays.
        largest: the largest measured sensitivity over the declared one, of any of them.
    """

    ask: str
    questions: int
    largest: float


@dataclass(frozen=True)
class Replayed:
    """The outcome of the replays.

    Attributes:
        neighbours: number of neighbours.
        changes: number of neighbours by kind of change.
        questions: number of questions that were compared.
        reached: how far answers moved, by kind of question.
        dearest: the largest exact cost of a transcript over the budget, of all neighbours; at most 1.
        faults: what was found, each with its change; none if the release is sound.
    """

    neighbours: int
    changes: tuple[tuple[str, int], ...]
    questions: int
    reached: tuple[Reached, ...]
    dearest: float
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Attacked:
    """The outcome of the attacks on two tables that differ in one unit.

    Attributes:
        releases: number of releases of each of the two tables.
        transcript: what the best attacker achieves, who sees every answer.
        table: what each attack on the synthetic table alone achieves, by its name.
        chosen: the one of these that was chosen beforehand, on other releases.
        noise: the noise that was drawn, beside the stated one.
    """

    releases: int
    transcript: LowerBound
    table: Mapping[str, LowerBound]
    chosen: str
    noise: DrawnNoise

    @property
    def chosen_bound(self) -> LowerBound:
        return self.table[self.chosen]


@dataclass(frozen=True)
class Claim:
    """The guarantee that the config claims.

    Attributes:
        epsilon, delta: the guarantee.
        mu: mu of Gaussian DP if losses are counted so; None otherwise.
        right: the largest share of right guesses that it allows, where both tables are equally likely.
        unit: the protected unit, in words.
        relation: the neighbour relation.
    """

    epsilon: float
    delta: float
    mu: float | None
    right: float
    unit: str
    relation: str


@dataclass(frozen=True)
class Audit:
    """The outcome of an audit.

    Attributes:
        release: the config's name.
        method: the structure strategy.
        claim: the guarantee.
        rows: number of rows of the made-up tables.
        replayed: the outcome of the replays.
        many: the outcome of the replays for many distances, on tables of other columns.
        attacked: the outcome of the attacks; None if no releases were made for them.
        seconds: how long the audit took.
    """

    release: str
    method: str
    claim: Claim
    rows: int
    replayed: Replayed
    many: Replayed
    attacked: Attacked | None
    seconds: float

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that contradicts the claim; none if nothing was found."""
        found = [*self.replayed.faults, *self.many.faults]
        dearest = max(self.replayed.dearest, self.many.dearest)
        if dearest > 1 + _ROUNDING:
            found.append(f"a transcript cost {dearest:.4f} of the budget")
        if self.attacked is not None:
            attacked = self.attacked
            bounds = {"the answers": attacked.transcript, "the synthetic table": attacked.chosen_bound}
            for words, bound in bounds.items():
                if bound.epsilon > self.claim.epsilon:
                    found.append(f"an attacker on {words} shows epsilon {bound.epsilon:.3g} at the least")
                if self.claim.mu is not None and bound.mu > self.claim.mu:
                    found.append(f"an attacker on {words} shows mu {bound.mu:.3g} at the least")
            if not attacked.noise.as_stated:
                found.append(f"noise is {attacked.noise.ratio:.3f} times as large as stated")
        return tuple(found)


@dataclass(frozen=True)
class Extent:
    """The extent of an audit.

    Attributes:
        rows: number of rows of the made-up tables.
        neighbours: number of neighbours to replay on.
        releases: most releases of each of two tables to attack; 0: none.
        seconds: after so long no further releases are attacked, once there are ``LEAST_RELEASES``.
        seed: decides tables and neighbours; the noise has no seed.
    """

    rows: int = ROWS
    neighbours: int = NEIGHBOURS
    releases: int = RELEASES
    seconds: float = inf
    seed: int = 1


DEFAULT_EXTENT = Extent()


def audit(spec: Spec, extent: Extent = DEFAULT_EXTENT, period: str | None = None) -> Audit:
    """The audit of a config.

    Args:
        spec: the checked config; neither its source nor its ledger is opened.
        extent: how much is tried.
        period: label of the slice, if the config has periods.

    Raises:
        ConfigError: a release of the config would not begin either, or too few releases are asked for.
    """
    if 0 < extent.releases < LEAST_RELEASES:
        raise ConfigError(f"An attack needs {LEAST_RELEASES} releases at least; 0 leaves the attacks out.")
    began = monotonic()
    with _workshop(spec, period) as shop:
        inputs = inputs_of(shop.spec)
        occasion = occasion_of(shop.spec, datetime.now(UTC), period)
        base = made_up(inputs, occasion, extent.rows, extent.seed)
        with showing(f"replay on {extent.neighbours:,} neighbours", "neighbours") as advance:
            replays = _replays(shop, base, extent)
            replayed = _compared(replays, inputs.plan, lambda done: advance(done, extent.neighbours))
        with showing("ask for many distances"):
            asked = many_distances(inputs.plan, shop.folder / "many")
            many = _compared(asked, inputs.plan, lambda _: None)
        attacked = None
        if extent.releases:
            with showing(f"attack {extent.releases:,} releases of two tables", "releases") as advance:
                attacked = _attacked(shop, base, extent.releases, began + extent.seconds, advance)
    claim = _claim(inputs.plan)
    seconds = monotonic() - began
    method, rows = spec.structure.method, len(base.rows)
    return Audit(spec.release, method, claim, rows, replayed, many, attacked, seconds)


def _claim(plan: Plan) -> Claim:
    epsilon, delta = float(plan.whole.epsilon), float(plan.whole.delta or 0)
    mu = None if plan.sampling is not None else plan.measure.mu(plan.whole.budget)
    right = right_at_most(epsilon, delta)
    # Searches have a delta of their own, beside mu.
    if mu is not None and not plan.searches:
        right = min(right, NormalPair(mu).best_guess)
    return Claim(epsilon, delta, mu, right, plan.neighbours.unit, plan.neighbours.relation)


@dataclass(frozen=True)
class _Workshop:
    """A private folder in which releases are made."""

    spec: Spec
    folder: Path
    period: str | None

    def of(self, table: MadeUpTable) -> Spec:
        """The config with a made-up table as its source, and a new ledger."""
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        ledger = self.spec.ledger.model_copy(update={"url": f"sqlite:///{folder}/ledger.db"})
        spec = self.spec.model_copy(update={"ledger": ledger, "engine": self.spec.engine.in_this_process})
        if spec.tables is not None:
            return WRITTEN.needed("tables")(spec, table.names, table.rows, folder)
        source = Source.model_validate({"path": str(table.write(folder / "made-up.csv"))})
        return spec.model_copy(update={"source": source})

    @contextmanager
    def release(self, table: MadeUpTable) -> Iterator[_Recorded]:
        """A recorded release of a table; its files are removed at the end."""
        outputs = self.folder / secrets.token_hex(8)
        outputs.mkdir()
        try:
            with unshown():
                record = observe(self.of(table), outputs, period=self.period)
            yield _Recorded(self, record, outputs)
        finally:
            for path in self.folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@dataclass(frozen=True)
class _Recorded:
    """A recorded release, to be replayed on neighbours."""

    shop: _Workshop
    record: Transcript
    outputs: Path

    def on(self, neighbour: MadeUpTable) -> Transcript:
        """The transcript of a neighbour with the recorded answers forced.

        Raises:
            DpsynthError: a question differs from the record.
        """
        folder = self.shop.folder / "again"
        with unshown():
            return replay(self.shop.of(neighbour), self.record, self.outputs, folder, self.shop.period)


@contextmanager
def _workshop(spec: Spec, period: str | None) -> Iterator[_Workshop]:
    # Nobody need decide about a made-up table, and it gets as many synthetic rows as it has rows.
    privacy = spec.privacy.model_copy(update={"on_empty": "go"})
    sample = spec.sample.model_copy(update={"rows": "same"})
    ledger = spec.ledger.model_copy(update={"head": None})
    source = Source.model_validate({"path": "made-up.csv"})
    alike = spec.model_copy(update={"privacy": privacy, "sample": sample, "ledger": ledger, "source": source})
    with tempfile.TemporaryDirectory(prefix="dpsynth-audit-") as folder:
        yield _Workshop(alike, Path(folder), period)


def _replays(shop: _Workshop, base: MadeUpTable, extent: Extent) -> Iterator[_Replay]:
    """Every neighbour, with the transcript of its table, and its own or the words of a refusal."""
    rng = np.random.default_rng(extent.seed)
    few = extent.neighbours // _FEW
    tables = [
        (base, extent.neighbours - 2 * few),
        (base.holding(base.rows[:1]), few),
        (base.holding([]), few),
    ]
    for table, number in tables:
        if not number:
            continue
        with shop.release(table) as recorded:
            for neighbour in islice(neighbours(table, rng), number):
                try:
                    yield neighbour.change, recorded.record, recorded.on(neighbour.table)
                except DpsynthError as error:
                    # Its words name files of the audit.
                    yield neighbour.change, recorded.record, f"the replay ended in {type(error).__name__}"


def _compared(replays: Iterable[_Replay], plan: Plan, advance: _Count) -> Replayed:
    dearest = 0.0
    found: list[str] = []
    changes: Counter[str] = Counter()
    questions: Counter[str] = Counter()
    largest: dict[str, float] = {}
    for done, (change, before, after) in enumerate(replays, 1):
        advance(done)
        changes[change] += 1
        if isinstance(after, str):
            found.append(f"{change}: {after}")
            continue
        contradictions = list(faults(before, after))
        found.extend(f"{change}: {fault}" for fault in contradictions)
        if not contradictions:
            dearest = max(dearest, exact_cost(before, after).share_of(plan.measure, plan.whole.budget))
        for one, two in zip(before.asked, after.asked, strict=False):
            ask = str(one.question["ask"])
            questions[ask] += 1
            largest[ask] = max(largest.get(ask, 0.0), sensitivity(one, two) / declared(one.event))
    return Replayed(
        sum(changes.values()),
        tuple(changes.items()),
        sum(questions.values()),
        tuple(Reached(ask, number, largest[ask]) for ask, number in questions.items()),
        dearest,
        tuple(dict.fromkeys(found)),
    )


def _attacked(shop: _Workshop, base: MadeUpTable, releases: int, until: float, advance: Advance) -> Attacked:
    full = FULLEST.needed("tables")(shop.spec) if shop.spec.tables is not None else {}
    present, absent, row = extreme_pair(base, full)
    target = {name: pa.array([text], pa.string()) for name, text in zip(base.names, row, strict=True)}
    losses: dict[bool, list[float]] = {True: [], False: []}
    seen: dict[bool, list[Sight]] = {True: [], False: []}
    noise: list[DrawnNoise] = []
    for done in range(releases):
        if done >= LEAST_RELEASES and monotonic() > until:
            break
        for here, there, inside in ((present, absent, True), (absent, present, False)):
            with shop.release(here) as recorded:
                after = recorded.on(there)
                loss = transcript_loss(recorded.record, after)
                losses[inside].append(loss if inside else -loss)
                seen[inside].append(sight(recorded.record, target))
                noise.append(drawn_noise([recorded.record]))
        advance(done + 1, releases)
    delta = float(inputs_of(shop.spec).plan.whole.delta or 0)
    by_attack = scored(seen[True], seen[False])
    return Attacked(
        len(seen[True]),
        lower_bound(np.array(losses[True]), np.array(losses[False]), delta, threshold=0.0),
        {name: lower_bound(*both, delta) for name, both in by_attack.items()},
        promising(by_attack),
        _together(noise),
    )


def _together(noise: Sequence[DrawnNoise]) -> DrawnNoise:
    draws = sum(n.draws for n in noise)
    return DrawnNoise(draws, sum(n.draws * n.ratio for n in noise) / draws if draws else 1.0)
