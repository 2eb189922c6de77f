"""Lower bounds on mu and epsilon beside the claims, from many canaries in each of a few releases.

    python benchmarks/lower_bounds.py [--releases 20] [--canaries 400] [--fault]

In each made-up table every canary has a cell of its own in every marginal, and a coin decides if it is there.
An attacker who sees all noisy counts and knows all but the coins decides for each canary. That is its worst
case: all of its rows lie in one cell, and the attacker's test is the likelihood ratio. Since the noise of
different cells is independent (``tests/guarantee/test_noise.py``), decisions about different canaries are
independent trials, and one release of 400 canaries is worth 400 releases of one. What a canary does to
choices and to distances is left out, which can only lower the bounds: the column "counts" is what the
canaries' own counts cost of the claim, the most that this attacker could ever show.

mu is bounded at the threshold 0, which is known beforehand. Epsilon is bounded at a threshold that is chosen
by the first tenth of the canaries, and judged on the rest.

A household is a row of linked tables with as many members as are used, and its value in each cell.

With ``--fault`` all noise is 0.7 of its size: the same number of releases must then refute the claim. With
``--folder`` the decisions stay there, and a later run goes on with them until there are so many releases.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from scipy.stats import beta

from dpsynth.accounting.events import GaussianEvent, LaplaceEvent
from dpsynth.config import Spec, from_mapping
from dpsynth.curator import samplers
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.wings.proof.audit.losses import CONFIDENCE, LowerBound, lower_bound
from dpsynth.wings.proof.audit.replay import Asked, Transcript, observe, replay

COLUMNS = ("one", "two", "three")
ROWS_A_VALUE = {"row": 100, "person": 400, "household": 100}
"""So many that no value is merged with others: the noise for persons is larger."""
MAX_ROWS = 3
KEPT_AFTER = 10
"""Releases between two writings of the decisions."""
FAULT = 0.7


@dataclass(frozen=True)
class Case:
    """The claim: a strategy, the noise, the relation and the unit."""

    method: str
    noise: str
    relation: str
    unit: str
    canaries: int
    epsilon: float

    @property
    def values(self) -> list[str]:
        """A value for each canary; two where units are exchanged."""
        number = self.canaries * (2 if self.relation == "replace_one" else 1)
        return [f"v{i:04d}" for i in range(number)]

    def spec(self, folder: Path, name: str) -> Spec:
        """The config of the table of a name."""
        laplace = self.noise == "laplace"
        columns = {c: {"type": "category", "values": self.values, "missing": False} for c in COLUMNS}
        table: dict[str, object] = {"source": {"path": str(folder / f"{name}.csv")}, "columns": columns}
        if self.unit == "household":
            parent = {"table": "homes", "key": "who", "max_children": MAX_ROWS}
            own = {"source": {"path": str(folder / f"{name}-members.csv")}, "parent": parent}
            homes = {**table, "key": "who", "unit": "household"}
            table = {"tables": {"homes": homes, "members": {**own, "columns": {"four": columns["one"]}}}}
        return from_mapping(
            {
                "release": "canaries",
                **table,
                "ledger": {"url": f"sqlite:///{folder / name}.db", "dataset": "canaries"},
                "privacy": {
                    "epsilon": self.epsilon,
                    **({} if laplace else {"delta": 1e-6}),
                    "neighbours": self.relation,
                    "on_empty": "go",
                    # The last question then comes before the model, which takes most of the time.
                    "split": {"exam": 0},
                    **({"unit": {"column": "who", "max_rows": MAX_ROWS}} if self.unit == "person" else {}),
                },
                "structure": {"method": self.method},
                "sample": {"rows": 100},
            }
        )

    def write(self, path: Path, coins: NDArray[np.bool_]) -> None:
        """Write a table: every value many times, and the canaries whose coin says so."""
        rows = MAX_ROWS if self.unit == "person" else 1
        others = np.arange(len(self.values) * ROWS_A_VALUE[self.unit])
        if self.relation == "replace_one":
            canaries = np.arange(self.canaries)
            at = 2 * canaries + coins
        else:
            canaries = at = np.flatnonzero(coins)
        cells = np.concatenate([others % len(self.values), np.repeat(at, rows)])
        who = np.concatenate([others, -1 - np.repeat(canaries, rows)])
        column = pa.DictionaryArray.from_arrays(cells, self.values).dictionary_decode()
        csv.write_csv(pa.table({"who": who, **dict.fromkeys(COLUMNS, column)}), path)
        if self.unit == "household":
            each = np.repeat(np.arange(len(who)), MAX_ROWS)
            members = pa.table({"who": who[each], "four": column.take(each)})
            csv.write_csv(members, path.with_name(f"{path.stem}-members.csv"))


def scores(case: Case, record: Transcript, other: Transcript) -> tuple[NDArray[np.float64], float]:
    """The loss of each canary's own cells: how much likelier the answers are with its coin as it fell.

    Returns:
        float64[canaries], and what the cells of one canary cost: mu for Gaussian noise, epsilon for Laplace.
    """
    found = np.zeros(case.canaries)
    squares = sum_ = 0.0
    for one, two in zip(record.asked, other.asked, strict=True):
        if one.question["ask"] != "marginal" or not one.question["columns"]:
            continue
        losses = _losses(one, two)
        cells = np.flatnonzero(losses)
        named = dict(zip(one.question["columns"], one.exact.shape, strict=True))  # type: ignore
        axes = np.unravel_index(cells, one.exact.shape)  # type: ignore[union-attr]
        # All canaries have as many members. Of merged values a cell would be that of several canaries.
        axes = [axis for axis, name in zip(axes, named, strict=True) if name != "members"]
        if not axes or any(size < len(case.values) for name, size in named.items() if name != "members"):
            continue
        assert all((axis == axes[0]).all() for axis in axes)
        owner = axes[0] // 2 if case.relation == "replace_one" else axes[0]
        np.add.at(found, owner, losses.ravel()[cells])
        gap = np.abs(np.asarray(one.exact) - np.asarray(two.exact)).ravel()[cells].astype(np.float64)
        match one.event:
            case GaussianEvent(sigma=sigma):
                squares += np.bincount(owner, gap**2).max() / float(sigma) ** 2
            case LaplaceEvent(scale=scale):
                sum_ += np.bincount(owner, gap).max() / float(scale)
    # Sums of the same losses in another order are the same score.
    return found.round(9), sqrt(squares) or sum_


def _losses(one: Asked, two: Asked) -> NDArray[np.float64]:
    """The loss of every cell."""
    answer = np.asarray(one.answer)
    near, far = (np.abs(answer - np.asarray(a.exact)).astype(np.float64) for a in (one, two))
    match one.event:
        case GaussianEvent(sigma=sigma):
            return (far**2 - near**2) / (2 * float(sigma) ** 2)
        case LaplaceEvent(scale=scale):
            return (far - near) / float(scale)
    raise AssertionError(one.event)


@dataclass
class Decisions:
    """The scores of all canaries so far.

    Attributes:
        releases: number of releases.
        inside, outside: float64[canaries], scores of those that are there, and of those that aren't.
        counts: float64[releases], what the cells of one canary cost.
    """

    releases: int
    inside: NDArray[np.float64]
    outside: NDArray[np.float64]
    counts: NDArray[np.float64]

    @staticmethod
    def kept(file: Path) -> Decisions:
        """Those in a file, or none."""
        if not file.exists():
            return Decisions(0, *[np.zeros(0)] * 3)
        with np.load(file) as found:
            return Decisions(int(found["releases"]), found["inside"], found["outside"], found["counts"])

    def keep(self, file: Path) -> None:
        """Write them to a file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **vars(self))

    def release(self, case: Case) -> None:
        """Make one more release, and score its canaries."""
        coins = np.random.default_rng([1, self.releases]).random(case.canaries) < 0.5
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            case.write(folder / "here.csv", coins)
            case.write(folder / "there.csv", ~coins)
            outputs = folder / "outputs"
            outputs.mkdir()
            record = observe(case.spec(folder, "here"), outputs, table=False)
            other = replay(case.spec(folder, "there"), record, outputs, folder / "again", table=False)
        losses, cost = scores(case, record, other)
        self.releases += 1
        self.counts = np.append(self.counts, cost)
        self.inside = np.concatenate([self.inside, losses[coins]])
        self.outside = np.concatenate([self.outside, -losses[~coins]])


def epsilon_bound(found: Decisions, delta: float) -> LowerBound:
    """The bound at the threshold that promises most, by a tenth of the canaries, judged on the rest.

    A score is the logarithm of a likelihood ratio, so P(score >= t, out) = E(exp(-score); score >= t, in) and
    the other way round: rates far out on one side are known well from the other side.
    """
    cut, other = len(found.inside) // 10, len(found.outside) // 10
    inside, outside = np.sort(found.inside[:cut]), np.sort(found.outside[:other])
    left = min(len(found.inside) - cut, len(found.outside) - other)

    def promised(threshold: float) -> float:
        hits, false = np.mean(inside > threshold), np.mean(np.exp(-inside) * (inside > threshold))
        right, missed = np.mean(outside <= threshold), np.mean(np.exp(outside) * (outside <= threshold))
        one = (hits - delta) / _at_most(false * left, left)
        two = (right - delta) / _at_most(missed * left, left)
        return float(max(one, two))

    levels = np.unique(np.concatenate([inside, outside]))
    best = max((levels[1:] + levels[:-1]) / 2, key=promised)
    return lower_bound(found.inside[cut:], found.outside[other:], delta, threshold=float(best))


def _at_most(events: float, trials: int) -> float:
    return float(beta.ppf(1 - (1 - CONFIDENCE) / 2, events + 1, max(trials - events, 1e-9)))


def row_of(case: Case, found: Decisions) -> str:
    """A row of a Markdown table: claims, bounds, rates."""
    plan = inputs_of(case.spec(Path("nowhere"), "here")).plan
    delta = float(plan.whole.delta or 0)
    at_zero = lower_bound(found.inside, found.outside, delta, threshold=0.0)
    chosen = epsilon_bound(found, delta)
    mu = plan.measure.mu(plan.whole.budget) if delta else None
    claim = case.epsilon if mu is None else mu
    shown = chosen.epsilon if mu is None else at_zero.mu
    return (
        f"| {case.method} | {case.noise} | {case.relation} | {case.unit} | "
        f"{found.releases} x {case.canaries} | {'epsilon' if mu is None else 'mu'} = {claim:.3f} | "
        f"{found.counts.mean() / claim:.2f} | {shown:.3f} | {shown / claim:.2f} | "
        f"{chosen.epsilon:.2f} | {chosen.hits:.4f} | {chosen.false_alarms:.4f} | "
        f"{np.abs(np.concatenate([found.inside, found.outside])).max():.3f} |"
    )


def small_noise() -> None:
    """Plant the fault: noise of 0.7 of its size."""
    for name in ("add_gaussian", "add_laplace"):
        sound = getattr(samplers, name)

        def small(values, scale, sound=sound):  # type: ignore[no-untyped-def]
            return values + np.rint(FAULT * (sound(values, scale) - values)).astype(np.int64)

        setattr(samplers, name, small)


def cases(canaries: int, epsilon: float) -> Iterator[Case]:
    """Every strategy under every noise, relation and unit."""
    kinds = product(
        ("auto", "mst", "aim"),
        ("gaussian", "laplace"),
        ("add_remove", "replace_one"),
        ("row", "person", "household"),
    )
    known = (kind for kind in kinds if kind[2:] != ("replace_one", "household"))
    yield from (Case(*kind, canaries, epsilon) for kind in known)


def main() -> None:
    """Print a row of a Markdown table for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--canaries", type=int, default=400)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--only", nargs="*", default=[], help="words that the case must have")
    parser.add_argument("--folder", type=Path, help="where the decisions stay")
    parser.add_argument("--fault", action="store_true", help="noise of 0.7 of its size")
    asked = parser.parse_args()
    if asked.fault:
        small_noise()
    for case in cases(asked.canaries, asked.epsilon):
        words = (case.method, case.noise, case.relation, case.unit)
        if not set(asked.only) <= set(words):
            continue
        name = "-".join((*words, str(case.canaries), "fault" if asked.fault else "sound"))
        file = None if asked.folder is None else asked.folder / f"{name}.npz"
        found = Decisions.kept(file or Path("nowhere"))
        while found.releases < asked.releases:
            found.release(case)
            if file is not None and (found.releases % KEPT_AFTER == 0 or found.releases == asked.releases):
                found.keep(file)
        print(row_of(case, found), flush=True)


if __name__ == "__main__":
    main()
